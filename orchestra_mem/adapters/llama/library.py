"""The compiled llama.cpp library, and models loaded with it: only the vocabulary, or the weights with a context.

The library is loaded with the first model. If the host program has loaded it before, its logging is left unchanged.

The vocabulary suffices to count tokens, tokenize prompts and read the file's metadata.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property, lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import finalize

from orchestra_mem.adapters.llama.lifetime import Held, Stop
from orchestra_mem.adapters.llama.trial import INSTALL, require_library, require_loadable
from orchestra_mem.errors import ModelError, TokenizerError
from orchestra_mem.model_types import Message
from orchestra_mem.types import Json

_log = logging.getLogger(__name__)

_PIECE_BYTES = 4_000_000

_lock = Lock()
_library: Any = None
# The library keeps a pointer to this callback, so it must never be freed.
_log_callback: Any = None


def load_library() -> Any:
    """Load the library once per process, and return it; its functions have the names of `llama.h`.

    Raises:
        ModelError: The library is not installed, or cannot be loaded.
    """
    global _library  # noqa: PLW0603 (a library is loaded once for a process)
    with _lock:
        if _library is None:
            _library = _loaded()
        return _library


def _loaded() -> Any:
    require_library()
    by_host = "llama_cpp" in sys.modules
    # Threads wait at hundreds of barriers per token. While one other process was busy, a generation took 510 s if they
    # spin there, and 13 s if they sleep. OpenMP reads the variable once, when it is first loaded. It also applies to
    # other users of the same OpenMP later in this process, and to child processes.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        from llama_cpp import llama_cpp as library
    except (ImportError, OSError, RuntimeError) as error:
        raise ModelError(f"llama-cpp-python cannot be loaded ({error}); {INSTALL}") from error
    if not by_host:
        _hand_on_logs(library)
        library.llama_backend_init()
    return library


def _hand_on_logs(library: Any) -> None:
    """Send llama.cpp's messages to this module's logger, at level DEBUG, instead of stderr."""
    global _log_callback  # noqa: PLW0603

    def tell(level: int, text: bytes, data: object) -> None:
        _log.debug("llama.cpp: %s", text.decode("utf-8", "replace").rstrip())

    _log_callback = library.llama_log_callback(tell)
    library.llama_log_set(_log_callback, ctypes.c_void_p(0))


def default_threads() -> int:
    """Return the default number of threads for a generation: the physical cores of this process minus one, at least 1.

    Two threads on one core would share its arithmetic units.
    """
    # Only Linux reports the cores that the process may use, and which logical processors share a core.
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return max(1, len({_core_of(number) for number in usable}) - 1)


def _core_of(number: int) -> str:
    with suppress(OSError):
        siblings = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        return siblings.read_text(encoding="ascii").strip()
    return str(number)


class LoadedModel:
    """A GGUF in memory, for one thread at a time. Freed by `close`, or when it is garbage-collected.

    Args:
        path: The GGUF file.
        stop: Polled while the model is loaded.
        weights: Whether to load the complete model, or only its vocabulary.

    Raises:
        ModelError: llama.cpp is not installed or does not run on this machine, the file is unusable, or `stop` is set.
    """

    def __init__(self, path: Path, stop: Stop, *, weights: bool = True) -> None:
        require_loadable(path, weights=weights, stop=stop)
        if weights:
            _read_ahead(path, stop)
        self.path = path
        self.library: Any = load_library()
        parameters = self.library.llama_model_default_params()
        parameters.vocab_only = not weights
        self.model = self.library.llama_model_load_from_file(os.fsencode(path), parameters)
        if not self.model:
            raise ModelError(f"llama.cpp cannot load {path}")
        self.frees = ExitStack()
        self.frees.callback(self.library.llama_model_free, self.model)
        self.close = finalize(self, self.frees.close)
        # The interpreter's exit must not free the model: a thread may still use it.
        self.close.atexit = False
        self.vocabulary = self.library.llama_model_get_vocab(self.model)

    def open_context(self, context_tokens: int, **parameters: object) -> Any:
        """Create a context for inference; `parameters` are fields of `llama_context_params`.

        Raises:
            ModelError: llama.cpp refuses.
        """
        given = self.library.llama_context_default_params()
        for name, value in {**parameters, "n_ctx": context_tokens, "no_perf": True}.items():
            setattr(given, name, value)
        context = self.library.llama_init_from_model(self.model, given)
        if not context:
            raise ModelError(f"llama.cpp cannot create a context of {context_tokens:,} tokens for {self.path}")
        self.frees.callback(self.library.llama_free, context)
        return context

    def tokens(self, text: str, *, special: bool = False, marks: bool = False) -> list[int]:
        """Tokenize a text.

        Args:
            text: Any string.
            special: Whether the spelling of a special token becomes that token, rather than plain text.
            marks: Whether to add the tokens with which the model marks the beginning and end of a text.
        """
        raw = text.encode("utf-8", "replace")
        room = len(raw) + 8  # at least one byte per token, and 8 tokens for the marks and a prepended space
        found = (self.library.llama_token * room)()
        count = self.library.llama_tokenize(self.vocabulary, raw, len(raw), found, room, marks, special)
        if count < 0:
            raise ModelError(f"llama.cpp cannot tokenize a text of {len(text):,} characters")
        return list(found[:count])

    def text_of(self, token: int) -> str:
        """Return the text of a token, "" for -1, which means that the vocabulary has no such token."""
        text: bytes = self.library.llama_vocab_get_text(self.vocabulary, token) if token >= 0 else b""
        return text.decode("utf-8", "replace")

    def said(self, key: str) -> str | None:
        """Return the file's metadata under a key, such as `qwen2.context_length`; None if the key is missing."""
        tell = self.library.llama_model_meta_val_str
        size = tell(self.model, key.encode(), None, 0)
        if size < 0:
            return None
        value = ctypes.create_string_buffer(size + 1)
        tell(self.model, key.encode(), value, size + 1)
        return value.value.decode("utf-8", "replace")


def _read_ahead(path: Path, stop: Stop) -> None:
    """Read a file into the system's cache, from which llama.cpp loads a gigabyte in a tenth of a second.

    From a slow disk, loading takes minutes, and llama.cpp cannot be interrupted while it loads.
    """
    piece = bytearray(_PIECE_BYTES)
    try:
        with path.open("rb", buffering=0) as file:
            while file.readinto(piece):
                stop.require_wanted(path)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from error


# Byte-pair encodings whose pattern (in llama.cpp's `llama-vocab.cpp`) always splits a text between a line feed and the
# text after it, and takes all white space up to the last line feed as one piece: `\s*[\r\n]+`. GPT-2 and SmolLM differ.
_ADDITIVE_PATTERNS = frozenset({"qwen2", "deepseek-r1-qwen", "llama-bpe"})
_BPE = "gpt2"
# Chat template for a GGUF without one; the default of llama.cpp's server, too.
_CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{'<|im_start|>assistant\\n'}}{% endif %}"
)
_PRIVATE_USE = range(0xE000, 0xF900)


class GgufVocabulary:
    """The vocabulary of a GGUF, loaded on first use: half a second, 50 MB for Qwen2.5. Safe to share between threads.

    Implements `TokenCounter` with the model's own counts. The spelling of a special token counts as plain text.

    Args:
        path: The GGUF file.
    """

    exact = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"vocabulary of {path.stem}"
        self._load = partial(LoadedModel, path, weights=False)
        self._held = Held(path, self._load)

    @cached_property
    def additive(self) -> bool:
        """Whether the counts of a text's pieces add up to the text's count, as with Qwen and some other encodings."""
        pattern, kind = map(self.said, ("tokenizer.ggml.pre", "tokenizer.ggml.model"))
        return kind == _BPE and pattern in _ADDITIVE_PATTERNS

    def count(self, text: str) -> int:
        """Count the tokens of `text`.

        Raises:
            TokenizerError: llama.cpp is not installed or does not run on this machine, or the file cannot be used.
        """
        try:
            return len(self.tokens(text))
        except ModelError as error:
            raise TokenizerError(str(error)) from error

    def tokens(self, text: str) -> list[int]:
        """Tokenize a text.

        Raises:
            ModelError: llama.cpp is not installed or does not run on this machine, or the file cannot be used.
        """
        with self._held.use() as loaded:
            return loaded.tokens(text)

    def prompt_tokens(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Json]] = ()) -> list[int]:
        """Tokenize a prompt, laid out by the model's chat template, up to where the answer begins.

        Tools add tokens only if the template has a place for them.

        Raises:
            ModelError: As for `tokens`, or the template rejects the messages.
        """
        offered = json.dumps(list(tools), ensure_ascii=False)
        names = (b"tool_use", None) if tools else (None,)
        with self._held.use() as loaded:
            library, vocabulary = loaded.library, loaded.vocabulary
            # A character that occurs in none of the texts.
            texts = [offered, *(message.text for message in messages)]
            sign = next(chr(code) for code in _PRIVATE_USE if not any(chr(code) in text for text in texts))
            messages_text = [
                {"role": each.role.value, "content": _break_spellings(each.text, _spelled(loaded, each.text), sign)}
                for each in messages
            ]
            bos, eos = library.llama_vocab_bos(vocabulary), library.llama_vocab_eos(vocabulary)
            first, last = loaded.text_of(bos), loaded.text_of(eos)
            # A file may have a separate template for prompts with tools.
            found_templates = (library.llama_model_chat_template(loaded.model, name) for name in names)
            template = next(filter(None, found_templates), b"").decode("utf-8", "replace")
            given = json.loads(_break_spellings(offered, _spelled(loaded, offered), sign))
            try:
                laid_out = _formatter(template or _CHATML, first, last)(messages=messages_text, tools=given or None)
            except Exception as error:  # a template is a program and may raise anything
                raise ModelError(f"the model's chat template rejected these messages: {error}") from error
            prompt = str(laid_out.prompt)
            found = [token for piece in prompt.split(sign) for token in loaded.tokens(piece, special=True)]
            if library.llama_vocab_get_add_bos(vocabulary) and not prompt.startswith(first):
                found.insert(0, bos)
            return found

    def said(self, key: str) -> str | None:
        """Return the file's metadata under a key, such as `qwen2.context_length`; None if the key is missing.

        Raises:
            ModelError: As for `tokens`.
        """
        with self._held.use() as loaded:
            return loaded.said(key)

    def number(self, key: str) -> int | None:
        """Return the integer under a key of the model's architecture, such as `context_length`; None if it is missing.

        Raises:
            ModelError: As for `tokens`.
        """
        value = self.said(f"{self.said('general.architecture')}.{key}") or ""
        return int(value) if value.isdecimal() else None

    def close(self) -> None:
        """Free the vocabulary, and abort its loading; the next use loads it again."""
        held, self._held = self._held, Held(self.path, self._load)
        held.close()


def _spelled(loaded: LoadedModel, text: str) -> set[str]:
    """Return the special tokens whose spelling occurs in a text."""
    is_special = loaded.library.llama_vocab_is_control
    tokens = set(loaded.tokens(text, special=True))
    return {loaded.text_of(each) for each in tokens if is_special(loaded.vocabulary, each)}


@lru_cache(maxsize=8)
def _formatter(template: str, first: str, last: str) -> Any:
    """Return what lays out messages by a Jinja template, with the texts of the tokens around a prompt and an answer."""
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    return Jinja2ChatFormatter(template=template, bos_token=first, eos_token=last)


def _break_spellings(text: str, spellings: Iterable[str], sign: str) -> str:
    """Insert the character `sign` into each spelling of a special token.

    A spelling in a message, such as `<|im_end|>` in an operation's data, must not act as the special token. The prompt
    is cut at each `sign` and tokenized in pieces, so only the chat template can contribute special tokens.
    """
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, spelling[:1] + sign + spelling[1:])
    return text

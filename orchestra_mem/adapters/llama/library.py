"""Load the compiled library, and with it a model: its vocabulary alone, or its weights with a context to work in.

Loaded with the first model, and no sooner. Where the host program has loaded it before, its ways are left as they are.

The vocabulary alone counts tokens, tokenizes prompts and reads the file's metadata.
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

from orchestra_mem.adapters.llama.ending import Held, Stop
from orchestra_mem.adapters.llama.trial import INSTALL, require_library, require_sound
from orchestra_mem.errors import ModelError, TokenizerError
from orchestra_mem.model_types import Message, Role
from orchestra_mem.types import Json

_log = logging.getLogger(__name__)

_PIECE_BYTES = 4_000_000

# With one other process at work a generation took 510 s where the threads of llama.cpp spin at each of their hundreds
# of meetings a token, and 13 s where they sleep. OpenMP reads it once, when the first program part loads it.
_WAIT_POLICY = "OMP_WAIT_POLICY"

_lock = Lock()
_library: Any = None
# The library calls it for ever.
_log_callback: Any = None


def load_library() -> Any:
    """Load the library, once for the process, and give its functions under the names of `llama.h`.

    Raises:
        ModelError: it is not installed, or cannot be loaded.
    """
    global _library  # noqa: PLW0603 (a library is loaded once for a process)
    with _lock:
        if _library is None:
            _library = _loaded()
        return _library


def wait_policy() -> str:
    """Tell in words where the library's threads spin while they wait; empty where they sleep."""
    chosen = os.environ.get(_WAIT_POLICY, "passive")
    if chosen.strip().lower() == "passive":
        return ""
    return (
        f"{_WAIT_POLICY} is {chosen}: the threads of llama.cpp spin while they wait, which stalls them where other "
        f"programs are at work; start the program with {_WAIT_POLICY}=passive"
    )


def _loaded() -> Any:
    require_library()
    by_host = "llama_cpp" in sys.modules
    # Heeded by whatever uses the same OpenMP later in this process, and by its children.
    os.environ.setdefault(_WAIT_POLICY, "passive")
    if waiting := wait_policy():
        _log.warning("%s", waiting)
    try:
        from llama_cpp import llama_cpp as library
    except (ImportError, OSError, RuntimeError) as error:
        raise ModelError(f"llama-cpp-python cannot be loaded ({error}); {INSTALL}") from error
    if not by_host:
        _hand_on_logs(library)
        library.llama_backend_init()
    return library


def _hand_on_logs(library: Any) -> None:
    """Have what llama.cpp says go to the program's log, for those who look for it, and not to stderr."""
    global _log_callback  # noqa: PLW0603

    def tell(level: int, text: bytes, data: object) -> None:
        _log.debug("llama.cpp: %s", text.decode("utf-8", "replace").rstrip())

    _log_callback = library.llama_log_callback(tell)
    library.llama_log_set(_log_callback, ctypes.c_void_p(0))


def default_threads() -> int:
    """Return how many threads a generation takes by itself: the cores that this process may use less one, at least 1.

    Cores are physical ones: two threads of one core share what multiplies.
    """
    # Only Linux has the first, and tells which threads are of one core.
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return max(1, len({_core_of(number) for number in usable}) - 1)


def _core_of(number: int) -> str:
    with suppress(OSError):
        siblings = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        return siblings.read_text(encoding="ascii").strip()
    return str(number)


class LoadedModel:
    """A GGUF in memory, for one thread at a time. Freed by `close`, or when nobody holds it any more.

    Args:
        path: the GGUF.
        stop: asked while it is loaded.
        weights: whether all of it is loaded, or its vocabulary alone.

    Raises:
        ModelError: llama.cpp is not installed or does not run here, the file cannot be used, or `stop` says so.
    """

    def __init__(self, path: Path, stop: Stop, *, weights: bool = True) -> None:
        require_sound(path, weights=weights, stop=stop)
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
        # The interpreter's end frees nothing: a thread may be at work with it.
        self.close.atexit = False
        self.vocabulary = self.library.llama_model_get_vocab(self.model)

    def open_context(self, context_tokens: int, **parameters: object) -> Any:
        """Make the context to work in.

        Raises:
            ModelError: llama.cpp refuses.
        """
        given = self.library.llama_context_default_params()
        for name, value in {**parameters, "n_ctx": context_tokens, "no_perf": True}.items():
            setattr(given, name, value)
        context = self.library.llama_init_from_model(self.model, given)
        if not context:
            raise ModelError(f"llama.cpp cannot make a context of {context_tokens:,} tokens for {self.path}")
        self.frees.callback(self.library.llama_free, context)
        return context

    def tokens(self, text: str, *, special: bool = False, marks: bool = False) -> list[int]:
        """Cut a text into tokens.

        Args:
            text: any string.
            special: whether what is spelled like a special token is that token.
            marks: whether to add those with which the model marks beginning and end.
        """
        raw = text.encode("utf-8", "replace")
        room = len(raw) + 8  # a token is a byte or more; some vocabularies put a space before, and there are the marks
        found = (self.library.llama_token * room)()
        count = self.library.llama_tokenize(self.vocabulary, raw, len(raw), found, room, marks, special)
        if count < 0:
            raise ModelError(f"llama.cpp cannot cut a text of {len(text):,} characters into tokens")
        return list(found[:count])

    def text_of(self, token: int) -> str:
        """Give the text of a token; empty where there is no such token."""
        text: bytes = self.library.llama_vocab_get_text(self.vocabulary, token) if token >= 0 else b""
        return text.decode("utf-8", "replace")

    def said(self, key: str) -> str | None:
        """Return what the file says of itself under a key, as in `qwen2.context_length`; None where nothing."""
        tell = self.library.llama_model_meta_val_str
        size = tell(self.model, key.encode(), None, 0)
        if size < 0:
            return None
        value = ctypes.create_string_buffer(size + 1)
        tell(self.model, key.encode(), value, size + 1)
        return value.value.decode("utf-8", "replace")


def _read_ahead(path: Path, stop: Stop) -> None:
    """Read a file into the system's cache, out of which llama.cpp has a gigabyte in a tenth of a second.

    From a slow disk that takes minutes, and llama.cpp cannot be told to end while it reads.
    """
    piece = bytearray(_PIECE_BYTES)
    try:
        with path.open("rb", buffering=0) as file:
            while file.readinto(piece):
                stop.require_wanted(path)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from error


# Byte-pair encodings whose pattern, in llama.cpp's `llama-vocab.cpp`, lets no match reach over a line feed into what is
# not white space, and takes white space up to the last line feed as one: `\s*[\r\n]+`. GPT-2's and SmolLM's do not.
_ADDITIVE_PATTERNS = frozenset({"qwen2", "deepseek-r1-qwen", "llama-bpe"})
_BPE = "gpt2"
# For a GGUF that brings none; llama.cpp's server takes this one as well.
_CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{'<|im_start|>assistant\\n'}}{% endif %}"
)
_PRIVATE_USE = range(0xE000, 0xF900)


class GgufVocabulary:
    """The vocabulary of a GGUF, loaded on first use: half a second, 50 MB for Qwen2.5. Safe to share between threads.

    Fulfils `TokenCounter`, and counts as the model does; text that spells a special token counts as the text it is.

    Args:
        path: the GGUF.
    """

    exact = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"vocabulary of {path.stem}"
        self._load = partial(LoadedModel, path, weights=False)
        self._held = Held(path, self._load)

    @cached_property
    def additive(self) -> bool:
        """Pieces add up for byte-pair encodings of which it is known, Qwen's among them."""
        pattern, kind = map(self.said, ("tokenizer.ggml.pre", "tokenizer.ggml.model"))
        return kind == _BPE and pattern in _ADDITIVE_PATTERNS

    def count(self, text: str) -> int:
        """Count the tokens of `text`.

        Raises:
            TokenizerError: llama.cpp is not installed or does not run here, or the file cannot be used.
        """
        try:
            return len(self.tokens(text))
        except ModelError as error:
            raise TokenizerError(str(error)) from error

    def tokens(self, text: str) -> list[int]:
        """Cut a text into tokens.

        Raises:
            ModelError: llama.cpp is not installed or does not run here, or the file cannot be used.
        """
        with self._held.use() as loaded:
            return loaded.tokens(text)

    def prompt_tokens(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Json]] = ()) -> list[int]:
        """Cut a prompt into tokens, laid out by the model's chat template, up to where its answer begins.

        Tools take tokens where the template has a place for them.

        Raises:
            ModelError: as `tokens`; or the template refuses the messages.
        """
        offered = json.dumps(list(tools), ensure_ascii=False)
        names = (b"tool_use", None) if tools else (None,)
        with self._held.use() as loaded:
            library, vocabulary = loaded.library, loaded.vocabulary
            # A character that stands in none of the texts.
            texts = [offered, *(message.text for message in messages)]
            sign = next(chr(code) for code in _PRIVATE_USE if not any(chr(code) in text for text in texts))
            said = [(each.role, _break_spellings(each.text, _spelled(loaded, each.text), sign)) for each in messages]
            bos, eos = library.llama_vocab_bos(vocabulary), library.llama_vocab_eos(vocabulary)
            # A file may have a template of its own for prompts with tools.
            found_templates = (library.llama_model_chat_template(loaded.model, name) for name in names)
            template = next(filter(None, found_templates), b"").decode("utf-8", "replace")
            given = json.loads(_break_spellings(offered, _spelled(loaded, offered), sign))
            prompt = _render(template, said, given, first=loaded.text_of(bos), last=loaded.text_of(eos))
            found = [token for piece in prompt.split(sign) for token in loaded.tokens(piece, special=True)]
            if library.llama_vocab_get_add_bos(vocabulary) and not prompt.startswith(loaded.text_of(bos)):
                found.insert(0, bos)
            return found

    def said(self, key: str) -> str | None:
        """Return what the file says of itself under a key, as in `qwen2.context_length`; None where nothing.

        Raises:
            ModelError: as `tokens`.
        """
        with self._held.use() as loaded:
            return loaded.said(key)

    def number(self, key: str) -> int | None:
        """The whole number under a key of the model's architecture, as in `context_length`; None where there is none.

        Raises:
            ModelError: as `tokens`.
        """
        value = self.said(f"{self.said('general.architecture')}.{key}") or ""
        return int(value) if value.isdecimal() else None

    def close(self) -> None:
        """Let go of it, ending its loading; loaded anew when used again."""
        held, self._held = self._held, Held(self.path, self._load)
        held.close()


def _spelled(loaded: LoadedModel, text: str) -> set[str]:
    """Give the special tokens that a text spells."""
    is_special = loaded.library.llama_vocab_is_control
    tokens = set(loaded.tokens(text, special=True))
    return {loaded.text_of(each) for each in tokens if is_special(loaded.vocabulary, each)}


def _render(template: str, messages: Sequence[tuple[Role, str]], tools: list[Json], *, first: str, last: str) -> str:
    """Lay out messages by a Jinja template.

    Args:
        template: the model's; ChatML where it is empty.
        messages: who speaks, and what.
        tools: what the model may call.
        first: the text of the token that a prompt begins with.
        last: that of the token that ends an answer.

    Raises:
        ModelError: the template refuses the messages.
    """
    given = [{"role": role.value, "content": text} for role, text in messages]
    try:
        return str(_formatter(template or _CHATML, first, last)(messages=given, tools=tools or None).prompt)
    except Exception as error:  # a template is a program, and may raise anything
        raise ModelError(f"the model's chat template does not take these messages: {error}") from error


@lru_cache(maxsize=8)
def _formatter(template: str, first: str, last: str) -> Any:
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    return Jinja2ChatFormatter(template=template, bos_token=first, eos_token=last)


def _break_spellings(text: str, spellings: Iterable[str], sign: str) -> str:
    """Put a sign within each spelling of a special token.

    What a message says may spell one, as `<|im_end|>` in an operation's data, and must not speak as one. Cut at its
    signs and joined again as tokens, a prompt has the same characters, and special tokens from its template alone.
    """
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, spelling[:1] + sign + spelling[1:])
    return text

"""A GGUF's own vocabulary, loaded without the model's weights: exact counts, prompts as tokens, and what the file says.

While the whole model is loaded its vocabulary is used, so that there is one in memory and not two.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from orchestra_mem.adapters.llama.ending import Ending, under_way
from orchestra_mem.adapters.llama.library import load_library
from orchestra_mem.adapters.llama.prompt import break_spellings, render, unused_sign
from orchestra_mem.adapters.llama.trial import require_sound
from orchestra_mem.errors import ModelError, TokenizerError
from orchestra_mem.model_types import Message

# Byte-pair encodings whose pattern, in llama.cpp's `llama-vocab.cpp`, lets no match reach over a line feed into what is
# not white space, and takes white space up to the last line feed as one: `\s*[\r\n]+`. GPT-2's and SmolLM's do not.
_ADDITIVE_PATTERNS = frozenset({"qwen2", "deepseek-r1-qwen", "llama-bpe"})
_BPE = "gpt2"


class GgufVocabulary:
    """The vocabulary of a GGUF, loaded on first use: half a second, 50 MB for Qwen2.5. Safe to share between threads.

    Args:
        path: the GGUF.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Of all that is begun with the file, by the model as well.
        self.ending = Ending()
        self._lock = Lock()
        self._library: Any = None
        self._own: Any = None
        self._lent: Any = None

    def load(self) -> None:
        """Load it now.

        Raises:
            ModelError: llama.cpp is not installed or does not run here, or the file cannot be used.
        """
        with self._lock:
            self._loaded()

    def tokens(self, text: str) -> list[int]:
        """Cut a text into tokens; what is spelled like a special token is the text that it is.

        Raises:
            ModelError: as `load`.
        """
        with self._lock:
            return self._cut(text, special=False)

    def prompt_tokens(self, messages: Sequence[Message]) -> list[int]:
        """Cut a prompt into tokens, laid out by the model's chat template, up to where its answer begins.

        Raises:
            ModelError: as `load`; or the template refuses the messages.
        """
        with self._lock:
            library, model = self._loaded()
            vocabulary = library.llama_model_get_vocab(model)
            sign = unused_sign([message.text for message in messages])
            said = [(each.role, break_spellings(each.text, self._spelled(each.text), sign)) for each in messages]
            first = _text_of(library, vocabulary, library.llama_vocab_bos(vocabulary))
            last = _text_of(library, vocabulary, library.llama_vocab_eos(vocabulary))
            template = library.llama_model_chat_template(model, None) or b""
            prompt = render(template.decode("utf-8", "replace"), said, first=first, last=last)
            found = [token for piece in prompt.split(sign) for token in self._cut(piece, special=True)]
            if library.llama_vocab_get_add_bos(vocabulary) and not prompt.startswith(first):
                found.insert(0, library.llama_vocab_bos(vocabulary))
            return found

    def said(self, key: str) -> str | None:
        """What the file says of itself under a key, as in `qwen2.context_length`; None where nothing.

        Raises:
            ModelError: as `load`.
        """
        with self._lock:
            library, model = self._loaded()
            return _said(library, model, key)

    def number(self, key: str) -> int | None:
        """The whole number under a key of the model's architecture, as in `context_length`; None where there is none.

        Raises:
            ModelError: as `load`.
        """
        value = self.said(f"{self.said('general.architecture')}.{key}") or ""
        return int(value) if value.isdecimal() else None

    def lend(self, model: Any) -> None:
        """Use the vocabulary of the whole model from here on, and let go of the own one."""
        with self._lock:
            self._lent = model
            self._free_own()

    def reclaim(self, *, again: bool) -> None:
        """Use the model's no more, which is about to be let go.

        Args:
            again: whether to load an own one at once, so that no count has to wait for it.

        Raises:
            ModelError: as `load`; the model's is used on.
        """
        own = self._open() if again else None  # not under the lock: counts go on meanwhile
        with self._lock:
            self._free_own()
            self._own, self._lent = own, None

    def close(self) -> None:
        """Let go of it, ending its loading; loaded anew when used again."""
        with self.ending.closing(self._lock):
            self._free_own()

    def _loaded(self) -> tuple[Any, Any]:
        if self._lent is None and self._own is None:
            self._own = self._open()
        return self._library, self._lent or self._own

    def _open(self) -> Any:
        with under_way():
            return self._read()

    def _read(self) -> Any:
        require_sound(self.path, weights=False, ended=self.ending.begun())
        self._library = library = load_library()
        parameters = library.llama_model_default_params()
        parameters.vocab_only = True
        model = library.llama_model_load_from_file(str(self.path).encode("utf-8", "surrogateescape"), parameters)
        if not model:
            raise ModelError(f"llama.cpp cannot read the vocabulary of {self.path}")
        return model

    def _free_own(self) -> None:
        if self._own is not None:
            self._library.llama_model_free(self._own)
            self._own = None

    def _cut(self, text: str, *, special: bool) -> list[int]:
        library, model = self._loaded()
        raw = text.encode("utf-8", "replace")
        room = len(raw) + 2  # a token is a byte or more; some vocabularies put a space before
        found = (library.llama_token * room)()
        vocabulary = library.llama_model_get_vocab(model)
        count = library.llama_tokenize(vocabulary, raw, len(raw), found, room, False, special)
        if count < 0:
            raise ModelError(f"llama.cpp cannot cut a text of {len(text):,} characters into tokens")
        return list(found[:count])

    def _spelled(self, text: str) -> set[str]:
        """Give the special tokens that a text spells."""
        library, model = self._loaded()
        vocabulary = library.llama_model_get_vocab(model)
        tokens = set(self._cut(text, special=True))
        return {
            _text_of(library, vocabulary, each) for each in tokens if library.llama_vocab_is_control(vocabulary, each)
        }


def _text_of(library: Any, vocabulary: Any, token: int) -> str:
    text: bytes = library.llama_vocab_get_text(vocabulary, token) if token >= 0 else b""
    return text.decode("utf-8", "replace")


def _said(library: Any, model: Any, key: str) -> str | None:
    size = library.llama_model_meta_val_str(model, key.encode(), None, 0)
    if size < 0:
        return None
    value = ctypes.create_string_buffer(size + 1)
    library.llama_model_meta_val_str(model, key.encode(), value, size + 1)
    return value.value.decode("utf-8", "replace")


class GgufCounter:
    """Counts as the model of a GGUF does. Text that spells a special token counts as the text it is.

    Args:
        vocabulary: the GGUF's.
    """

    def __init__(self, vocabulary: GgufVocabulary) -> None:
        self._vocabulary = vocabulary
        self._additive: bool | None = None

    @property
    def name(self) -> str:
        """Name the counter."""
        return f"vocabulary of {self._vocabulary.path.stem}"

    @property
    def exact(self) -> bool:
        """It is the model's own count."""
        return True

    @property
    def additive(self) -> bool:
        """Pieces add up for byte-pair encodings of which it is known, Qwen's among them."""
        if self._additive is None:
            said = self._vocabulary.said
            try:
                pattern, kind = said("tokenizer.ggml.pre"), said("tokenizer.ggml.model")
            except ModelError as error:
                raise TokenizerError(str(error)) from error
            self._additive = kind == _BPE and pattern in _ADDITIVE_PATTERNS
        return self._additive

    def load(self) -> None:
        """Load the vocabulary now, and not at the first count.

        Raises:
            TokenizerError: llama.cpp is not installed or does not run here, or the file cannot be used.
        """
        try:
            self._vocabulary.load()
        except ModelError as error:
            raise TokenizerError(str(error)) from error

    def count(self, text: str) -> int:
        """Count the tokens of `text`.

        Raises:
            TokenizerError: as `load`.
        """
        try:
            return len(self._vocabulary.tokens(text))
        except ModelError as error:
            raise TokenizerError(str(error)) from error

"""A GGUF's own vocabulary, loaded without the weights: exact counts, prompts as tokens, and what the file says."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestra_mem.adapters.llama.ending import Turn, running
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
        self._turn = Turn()
        self._library: Any = None
        self._model: Any = None
        self._vocabulary: Any = None

    def load(self) -> None:
        """Load it now.

        Raises:
            ModelError: llama.cpp is not installed or does not run here, or the file cannot be used.
        """
        with self._turn.lock:
            self._load()

    def tokens(self, text: str) -> list[int]:
        """Cut a text into tokens; what is spelled like a special token is the text that it is.

        Raises:
            ModelError: as `load`.
        """
        with self._turn.lock:
            self._load()
            return cut(self._library, self._vocabulary, text)

    def prompt_tokens(self, messages: Sequence[Message]) -> list[int]:
        """Cut a prompt into tokens, laid out by the model's chat template, up to where its answer begins.

        Raises:
            ModelError: as `load`; or the template refuses the messages.
        """
        with self._turn.lock:
            self._load()
            library, vocabulary = self._library, self._vocabulary
            sign = unused_sign([message.text for message in messages])
            said = [(each.role, break_spellings(each.text, self._spelled(each.text), sign)) for each in messages]
            first, last = (self._text_of(of(vocabulary)) for of in (library.llama_vocab_bos, library.llama_vocab_eos))
            template = library.llama_model_chat_template(self._model, None) or b""
            prompt = render(template.decode("utf-8", "replace"), said, first=first, last=last)
            found = [each for piece in prompt.split(sign) for each in cut(library, vocabulary, piece, special=True)]
            if library.llama_vocab_get_add_bos(vocabulary) and not prompt.startswith(first):
                found.insert(0, library.llama_vocab_bos(vocabulary))
            return found

    def said(self, key: str) -> str | None:
        """What the file says of itself under a key, as in `qwen2.context_length`; None where nothing.

        Raises:
            ModelError: as `load`.
        """
        with self._turn.lock:
            self._load()
            tell = self._library.llama_model_meta_val_str
            size = tell(self._model, key.encode(), None, 0)
            if size < 0:
                return None
            value = ctypes.create_string_buffer(size + 1)
            tell(self._model, key.encode(), value, size + 1)
            return value.value.decode("utf-8", "replace")

    def number(self, key: str) -> int | None:
        """The whole number under a key of the model's architecture, as in `context_length`; None where there is none.

        Raises:
            ModelError: as `load`.
        """
        value = self.said(f"{self.said('general.architecture')}.{key}") or ""
        return int(value) if value.isdecimal() else None

    def close(self) -> None:
        """Let go of it, ending its loading; loaded anew when used again."""
        with self._turn.closing():
            if self._model is not None:
                self._library.llama_model_free(self._model)
                self._model = None

    def _load(self) -> None:
        if self._model is not None:
            return
        with running(stop := self._turn.stop):
            require_sound(self.path, weights=False, stop=stop)
            self._library = library = load_library()
            parameters = library.llama_model_default_params()
            parameters.vocab_only = True
            name = str(self.path).encode("utf-8", "surrogateescape")
            self._model = library.llama_model_load_from_file(name, parameters) or None
            if self._model is None:
                raise ModelError(f"llama.cpp cannot read the vocabulary of {self.path}")
            self._vocabulary = library.llama_model_get_vocab(self._model)

    def _spelled(self, text: str) -> set[str]:
        """Give the special tokens that a text spells."""
        tokens = set(cut(self._library, self._vocabulary, text, special=True))
        is_special = self._library.llama_vocab_is_control
        return {self._text_of(each) for each in tokens if is_special(self._vocabulary, each)}

    def _text_of(self, token: int) -> str:
        text: bytes = self._library.llama_vocab_get_text(self._vocabulary, token) if token >= 0 else b""
        return text.decode("utf-8", "replace")


def cut(library: Any, vocabulary: Any, text: str, *, special: bool = False, marks: bool = False) -> list[int]:
    """Cut a text into tokens by a loaded vocabulary.

    Args:
        library: the functions of `llama.h`.
        vocabulary: the loaded one.
        text: any string.
        special: whether what is spelled like a special token is that token.
        marks: whether to add those with which the model marks beginning and end.
    """
    raw = text.encode("utf-8", "replace")
    room = len(raw) + 8  # a token is a byte or more; some vocabularies put a space before, and there are the marks
    found = (library.llama_token * room)()
    count = library.llama_tokenize(vocabulary, raw, len(raw), found, room, marks, special)
    if count < 0:
        raise ModelError(f"llama.cpp cannot cut a text of {len(text):,} characters into tokens")
    return list(found[:count])


class GgufCounter:
    """Counts as the model of a GGUF does. Text that spells a special token counts as the text it is.

    Args:
        vocabulary: the GGUF's.
    """

    exact = True

    def __init__(self, vocabulary: GgufVocabulary) -> None:
        self._vocabulary = vocabulary
        self._additive: bool | None = None

    @property
    def name(self) -> str:
        """Name the counter."""
        return f"vocabulary of {self._vocabulary.path.stem}"

    @property
    def additive(self) -> bool:
        """Pieces add up for byte-pair encodings of which it is known, Qwen's among them."""
        if self._additive is None:
            with _as_tokenizer_error():
                pattern, kind = map(self._vocabulary.said, ("tokenizer.ggml.pre", "tokenizer.ggml.model"))
            self._additive = kind == _BPE and pattern in _ADDITIVE_PATTERNS
        return self._additive

    def load(self) -> None:
        """Load the vocabulary now, and not at the first count.

        Raises:
            TokenizerError: llama.cpp is not installed or does not run here, or the file cannot be used.
        """
        with _as_tokenizer_error():
            self._vocabulary.load()

    def count(self, text: str) -> int:
        """Count the tokens of `text`.

        Raises:
            TokenizerError: as `load`.
        """
        with _as_tokenizer_error():
            return len(self._vocabulary.tokens(text))


@contextmanager
def _as_tokenizer_error() -> Iterator[None]:
    try:
        yield
    except ModelError as error:
        raise TokenizerError(str(error)) from error

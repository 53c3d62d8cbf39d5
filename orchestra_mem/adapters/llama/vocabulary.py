"""A GGUF's own vocabulary, loaded without the weights: exact counts, prompts as tokens, and what the file says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path

from orchestra_mem.adapters.llama.ending import Held
from orchestra_mem.adapters.llama.loading import LoadedModel
from orchestra_mem.adapters.llama.prompt import break_spellings, render, unused_sign
from orchestra_mem.errors import ModelError, TokenizerError
from orchestra_mem.model_types import Message

# Byte-pair encodings whose pattern, in llama.cpp's `llama-vocab.cpp`, lets no match reach over a line feed into what is
# not white space, and takes white space up to the last line feed as one: `\s*[\r\n]+`. GPT-2's and SmolLM's do not.
_ADDITIVE_PATTERNS = frozenset({"qwen2", "deepseek-r1-qwen", "llama-bpe"})
_BPE = "gpt2"


class GgufVocabulary:
    """The vocabulary of a GGUF, loaded on first use: half a second, 50 MB for Qwen2.5. Safe to share between threads.

    Fulfils `TokenCounter`, and counts as the model does; text that spells a special token counts as the text it is.

    Args:
        path: the GGUF.
    """

    exact = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self._load = partial(LoadedModel, path, weights=False)
        self._held = Held(path, self._load)

    @property
    def name(self) -> str:
        """Name the counter."""
        return f"vocabulary of {self.path.stem}"

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

    def prompt_tokens(self, messages: Sequence[Message]) -> list[int]:
        """Cut a prompt into tokens, laid out by the model's chat template, up to where its answer begins.

        Raises:
            ModelError: as `tokens`; or the template refuses the messages.
        """
        with self._held.use() as loaded:
            library, vocabulary = loaded.library, loaded.vocabulary
            sign = unused_sign([message.text for message in messages])
            said = [(each.role, break_spellings(each.text, _spelled(loaded, each.text), sign)) for each in messages]
            bos, eos = library.llama_vocab_bos(vocabulary), library.llama_vocab_eos(vocabulary)
            template = (library.llama_model_chat_template(loaded.model, None) or b"").decode("utf-8", "replace")
            prompt = render(template, said, first=loaded.text_of(bos), last=loaded.text_of(eos))
            found = [token for piece in prompt.split(sign) for token in loaded.tokens(piece, special=True)]
            if library.llama_vocab_get_add_bos(vocabulary) and not prompt.startswith(loaded.text_of(bos)):
                found.insert(0, bos)
            return found

    def said(self, key: str) -> str | None:
        """What the file says of itself under a key, as in `qwen2.context_length`; None where nothing.

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

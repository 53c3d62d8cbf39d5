"""Load a GGUF's vocabulary without its weights: count tokens, tokenize prompts, and read the file's metadata."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from orchestra_mem.adapters.llama.ending import Held
from orchestra_mem.adapters.llama.library import LoadedModel
from orchestra_mem.errors import ModelError, TokenizerError
from orchestra_mem.model_types import Message, Role
from orchestra_mem.types import Json

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

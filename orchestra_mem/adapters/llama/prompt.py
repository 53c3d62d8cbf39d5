"""Messages as the text that a model was trained on, by the chat template of its GGUF."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Role

# For a GGUF that brings none; llama.cpp's server takes this one as well.
_CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{'<|im_start|>assistant\\n'}}{% endif %}"
)
_PRIVATE_USE = range(0xE000, 0xF900)


def render(template: str, messages: Sequence[tuple[Role, str]], *, first: str, last: str) -> str:
    """Lay out messages by a Jinja template.

    Args:
        template: the model's; ChatML where it is empty.
        messages: who speaks, and what.
        first: the text of the token that a prompt begins with.
        last: that of the token that ends an answer.

    Raises:
        ModelError: the template refuses the messages.
    """
    given = [{"role": role.value, "content": text} for role, text in messages]
    try:
        return str(_formatter(template or _CHATML, first, last)(messages=given).prompt)
    except Exception as error:  # a template is a program, and may raise anything
        raise ModelError(f"the model's chat template does not take these messages: {error}") from error


@lru_cache(maxsize=8)
def _formatter(template: str, first: str, last: str) -> Any:
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    return Jinja2ChatFormatter(template=template, bos_token=first, eos_token=last)


def unused_sign(texts: Sequence[str]) -> str:
    """Give a character that stands in none of the texts."""
    return next(chr(code) for code in _PRIVATE_USE if not any(chr(code) in text for text in texts))


def break_spellings(text: str, spellings: Iterable[str], sign: str) -> str:
    """Put a sign within each spelling of a special token.

    What a message says may spell one, as `<|im_end|>` in an operation's data, and must not speak as one. Cut at its
    signs and joined again as tokens, a prompt has the same characters, and special tokens from its template alone.
    """
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, spelling[:1] + sign + spelling[1:])
    return text

"""Messages to a language model, its answers, and the port that the adapters implement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from orchestra_mem.types import Json


class Role(StrEnum):
    """Who speaks a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a prompt."""

    role: Role
    text: str


class Finish(StrEnum):
    """Why an answer ended."""

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A model's answer. Tokens are by its own count, 0 if it gives none; times in seconds.

    `evaluated_tokens` are those of the prompt that it had to read; the rest came from its cache.
    """

    text: str
    finish: Finish
    prompt_tokens: int
    answer_tokens: int
    evaluated_tokens: int
    prompt_s: float
    answer_s: float


class LanguageModel(Protocol):
    """A model that answers prompts. Safe to share between threads; one generation runs at a time, others wait."""

    @property
    def name(self) -> str: ...

    @property
    def context_tokens(self) -> int:
        """The window that prompt and answer share, in tokens."""

    def count_prompt(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Json]] = ()) -> int:
        """Count the tokens of a prompt as the model does, chat template included.

        Args:
            messages: the prompt.
            tools: what the model may call, as OpenAI's protocol has it: `{"type": "function", "function": {…}}`.
        """

    def generate(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        schema: Mapping[str, Json] | None = None,
        cancelled: Callable[[], bool] | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        timeout_s: float | None = None,
    ) -> Generation:
        """Answer a prompt.

        Args:
            messages: the prompt.
            max_tokens: the most that the answer may take.
            schema: a JSON schema that the answer follows, enforced by a grammar.
            cancelled: called many times a second; once it returns True the answer ends there, as `CANCELLED`.
            temperature: 0 for the likeliest answer.
            seed: of the random choices, if any.
            timeout_s: after which the answer is given up.

        Raises:
            ModelError: it cannot be loaded or reached, the prompt is longer than its window, it broke, or time is up.
        """

    def close(self) -> None:
        """Free memory and connections; the next use loads it again."""


class PromptSender(Protocol):
    """What a host may have for a model: it answers one text with another."""

    def send_prompt(self, prompt: str, /) -> str: ...


AnyModel: TypeAlias = LanguageModel | PromptSender | Callable[[str], str]
"""What is taken for a model."""

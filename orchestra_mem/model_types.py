"""Messages to a language model, its answers, and the port that model adapters implement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from orchestra_mem.types import Json


class Role(StrEnum):
    """The role of a message's author."""

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
    """A model's answer. Token counts are the model's own, 0 if it reports none; times are in seconds.

    `evaluated_tokens` counts the prompt tokens that were processed; the rest came from the prompt cache.
    """

    text: str
    finish: Finish
    prompt_tokens: int = 0
    answer_tokens: int = 0
    evaluated_tokens: int = 0
    prompt_s: float = 0.0
    answer_s: float = 0.0


class LanguageModel(Protocol):
    """A model that answers prompts. Thread-safe: one generation runs at a time, the others wait."""

    @property
    def name(self) -> str: ...

    @property
    def context_tokens(self) -> int:
        """The context window in tokens, shared by prompt and answer."""

    def count_prompt(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Json]] = ()) -> int:
        """Count the tokens of a prompt as the model does, including its chat template.

        Args:
            messages: The prompt.
            tools: Tool definitions in OpenAI's format: `{"type": "function", "function": {…}}`.
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
            messages: The prompt.
            max_tokens: Upper limit for the answer.
            schema: JSON schema of the answer, enforced by a grammar.
            cancelled: Polled many times a second; once it returns True, the answer ends with `Finish.CANCELLED`.
            temperature: Sampling temperature; 0 for the most likely answer.
            seed: Seed for random sampling.
            timeout_s: Time limit in seconds, None for no limit.

        Raises:
            ModelError: The model is unavailable or fails, the prompt exceeds the window, or the time limit is reached.
        """

    def close(self) -> None:
        """Free memory and connections; the next use reloads the model."""


class PromptSender(Protocol):
    """A host's own model interface: it answers a text prompt with text."""

    def send_prompt(self, prompt: str, /) -> str: ...


AnyModel: TypeAlias = LanguageModel | PromptSender | Callable[[str], str]
"""Everything that is accepted as a model."""

"""Adapt a host's own model to `LanguageModel`: an object with `send_prompt`, or a callable from text to text."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import AnyModel, Finish, Generation, LanguageModel, Message, Role
from orchestra_mem.types import Json

# The tokenizer is unknown. Few texts have more tokens than a third of their bytes; each message adds template tokens.
_BYTES_A_TOKEN, _MARKS = 3, 8
# Natural language has at most this many characters per token.
_MOST_CHARS_A_TOKEN = 10


def language_model(model: AnyModel, *, context_tokens: int = 8_192) -> LanguageModel:
    """Return a `LanguageModel` unchanged; wrap any other model in a `PromptedModel`.

    Raises:
        TypeError: The object is not a model.
    """
    # `isinstance` with the protocol would read properties, and a server's `context_tokens` may send a request.
    if hasattr(model, "count_prompt") and hasattr(model, "generate"):
        return cast(LanguageModel, model)
    send = getattr(model, "send_prompt", model)
    if not callable(send):
        raise TypeError(
            f"{type(model).__name__} is not a model: pass a LanguageModel (orchestra_mem.model_types), an object with "
            "send_prompt(prompt), or a callable that takes a prompt and returns the answer"
        )
    return PromptedModel(send, name=getattr(model, "__name__", type(model).__name__), context_tokens=context_tokens)


class PromptedModel:
    """A host's model that answers text with text. Implements `LanguageModel`, with two limits.

    Token counts are estimated on the high side. An answer cannot be ended early: callers wait for it or abandon it.
    """

    def __init__(self, send: Callable[[str], object], *, name: str, context_tokens: int) -> None:
        self._send = send
        self.name = name
        self.context_tokens = context_tokens
        self._turn = threading.Lock()

    def count_prompt(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Json]] = ()) -> int:
        """Estimate the tokens of a prompt."""
        texts = [*(message.text for message in messages), *map(json.dumps, tools)]
        return sum(len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN + _MARKS for text in texts)

    def generate(
        self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Json] | None = None,
        cancelled: Callable[[], bool] | None = None, temperature: float = 0.0, seed: int = 0,
        timeout_s: float | None = None,
    ) -> Generation:  # fmt: skip
        """Answer a prompt; see `LanguageModel.generate`. `temperature`, `seed` and `timeout_s` have no effect."""
        turns = [m.text if m.role is Role.SYSTEM else f"{m.role.value.capitalize()}: {m.text}" for m in messages]
        if schema is not None:
            turns.append(f"Answer with JSON alone, by this schema: {json.dumps(schema)}")
        with self._turn:
            begun = time.perf_counter()
            try:
                text = self._send("\n\n".join([*turns, "Assistant:"]))
            except Exception as error:  # the host's code may raise anything
                raise ModelError(f"{self.name} failed: {type(error).__name__}: {error}") from error
        if not isinstance(text, str):
            raise ModelError(f"{self.name} returned a value of type {type(text).__name__} instead of text")
        most = _MOST_CHARS_A_TOKEN * max_tokens
        finish = Finish.LENGTH if len(text) > most else Finish.STOP
        finish = Finish.CANCELLED if cancelled and cancelled() else finish
        return Generation(text=text[:most], finish=finish, answer_s=time.perf_counter() - begun)

    def close(self) -> None:
        """Do nothing: the host owns the model."""

"""A time limit for calls to a language model that holds even if the model ignores it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace

from orchestra_mem.core.control_tokens import restore
from orchestra_mem.core.text import visible
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Finish, Generation, LanguageModel, Message
from orchestra_mem.ports import TokenCounter
from orchestra_mem.types import Json

# How long a model may take to stop after a timeout or a cancellation, in seconds.
_GRACE_S = 5.0
_LOOK_EVERY_S = 0.05
_MOST_WORDS = 1_000
# Safety factor for token counts of the counter, whose tokenizer may differ from the model's.
_CAUTION = 2
_MOST_TOKENS = 2**31


class InterruptedGenerationError(Exception):
    """A generation was cancelled by the caller. Not a failure."""


def never() -> bool:
    """Return False: the default for `cancelled`."""
    return False


class ModelWithTimeout:
    """Calls a model in a separate thread, and converts every error into `ModelError`.

    A call that neither answers nor stops in time is abandoned. Until it returns, this object rejects further prompts.

    Args:
        model: The model to ask.
        timeout_s: Time limit for one answer, in seconds.
        grace_s: How long to wait after the time limit before a call is abandoned, in seconds.
    """

    def __init__(self, model: LanguageModel, *, timeout_s: float, grace_s: float = _GRACE_S) -> None:
        self.model = model
        self._timeout_s = timeout_s
        self._grace_s = grace_s
        self._lost: threading.Thread | None = None

    @property
    def lost(self) -> bool:
        """Whether an abandoned call is still running."""
        return self._lost is not None and self._lost.is_alive()

    def fits(self, messages: Sequence[Message], *, answer_tokens: int, counter: TokenCounter) -> bool:
        """Check whether a prompt and its answer fit into the window. The model counts only if an estimate may not fit.

        Raises:
            ModelError: The counter fails, or the model fails to report its window or to count the prompt.
        """
        try:
            estimate = _CAUTION * sum(counter.count(message.text) for message in messages)
            room = self.model.context_tokens - answer_tokens
            return estimate <= room or self.model.count_prompt(messages) <= room
        except Exception as error:
            raise _as_model_error(error, self.model.name) from error

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        schema: Mapping[str, Json] | None = None,
        cancelled: Callable[[], bool] = never,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> Generation:
        """Return the model's answer; see `LanguageModel.generate`.

        Raises:
            InterruptedGenerationError: `cancelled` returned True.
            ModelError: The model failed, exceeded the time limit, or is still busy with an abandoned call.
        """
        cancelled = _lasting(cancelled)
        if cancelled():
            raise InterruptedGenerationError
        if self.lost:
            raise ModelError(f"{self.model.name} is still busy with an earlier prompt")
        found: Future[Generation] = Future()
        left = threading.Event()

        def work() -> None:
            try:
                answer = self.model.generate(
                    messages, max_tokens=max_tokens, schema=schema, cancelled=lambda: left.is_set() or cancelled(),
                    temperature=temperature, seed=seed, timeout_s=self._timeout_s,
                )  # fmt: skip
                found.set_result(_sound(answer))
            except BaseException as error:  # raised in the thread that asked
                found.set_exception(error)

        thread = threading.Thread(target=work, name="orchestra-mem generation", daemon=True)
        thread.start()
        try:
            self._wait(thread, cancelled)
        finally:
            left.set()  # an abandoned call, or one that the user interrupts, stops as soon as it can
        if error := found.exception():
            raise _as_model_error(error, self.model.name) from error
        if cancelled():
            raise InterruptedGenerationError
        if found.result().finish is Finish.CANCELLED:
            raise ModelError(f"{self.model.name} cancelled its answer without being asked to")
        return found.result()

    def _wait(self, thread: threading.Thread, cancelled: Callable[[], bool]) -> None:
        deadline, stopping = time.monotonic() + self._timeout_s + self._grace_s, False
        while True:
            thread.join(_LOOK_EVERY_S)
            if not thread.is_alive():
                return
            if not stopping and cancelled():
                stopping, deadline = True, min(deadline, time.monotonic() + self._grace_s)
            if time.monotonic() >= deadline:
                self._lost = thread
                if stopping:
                    raise InterruptedGenerationError
                raise ModelError(f"{self.model.name} did not answer within {self._timeout_s:g} s and was abandoned")


def _lasting(condition: Callable[[], bool]) -> Callable[[], bool]:
    """Return a function that stays True once `condition` was: a short foreground is over before the model stops."""
    seen = threading.Event()

    def check() -> bool:
        if not seen.is_set() and condition():
            seen.set()
        return seen.is_set()

    return check


def _sound(answer: object) -> Generation:
    """Return an answer with quotes restored after checking its values, as the host's own model may return anything."""
    if not isinstance(answer, Generation):
        raise TypeError(f"the answer is a {type(answer).__name__}, not a Generation")
    tokens = (answer.prompt_tokens, answer.answer_tokens, answer.evaluated_tokens)
    if not all(0 <= count < _MOST_TOKENS for count in tokens):
        raise ValueError(f"invalid token counts in the answer: {', '.join(map(str, tokens))}")
    if not (math.isfinite(answer.prompt_s) and math.isfinite(answer.answer_s)):
        raise ValueError(f"invalid times in the answer: {answer.prompt_s:g} and {answer.answer_s:g} s")
    return replace(answer, text=restore(answer.text))


def _as_model_error(error: BaseException, name: str) -> ModelError:
    """Convert an error to `ModelError`, with a message short and printable enough for a database and a terminal."""
    words = str(error) if isinstance(error, ModelError) else f"{name} failed: {type(error).__name__}: {error}"
    return ModelError(visible(words[:_MOST_WORDS]))

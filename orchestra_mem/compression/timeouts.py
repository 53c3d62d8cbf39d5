"""A language model that is not waited for longer than was agreed, whatever it does."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

from orchestra_mem.core.text import visible
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Finish, Generation, LanguageModel, Message
from orchestra_mem.ports import TokenCounter
from orchestra_mem.types import Json

# So long after its time is up, or it was told to stop, a model may take to see it.
_GRACE_S = 5.0
_LOOK_EVERY_S = 0.05
_MOST_WORDS = 1_000
# Tokens by a counter, which may be another than the model's, are taken times this.
_CAUTION = 2
_MOST_TOKENS = 2**31


class InterruptedGenerationError(Exception):
    """A generation was ended on request; nothing is wrong."""


def never() -> bool:
    """Say that a generation is not to be ended."""
    return False


class ModelWithTimeout:
    """Asks a model in a thread beside, and turns whatever goes wrong into `ModelError`.

    A model that neither answers nor stops is left to itself; until it is back, nothing else is asked of it.

    Args:
        model: the one to ask.
        timeout_s: the most that an answer may take.
        grace_s: so much longer it is waited for before it is given up.
    """

    def __init__(self, model: LanguageModel, *, timeout_s: float, grace_s: float = _GRACE_S) -> None:
        self.model = model
        self._timeout_s = timeout_s
        self._grace_s = grace_s
        self._lost: threading.Thread | None = None

    @property
    def lost(self) -> bool:
        """Whether the model has not come back from a prompt that was given up."""
        return self._lost is not None and self._lost.is_alive()

    def fits(self, messages: Sequence[Message], *, answer_tokens: int, counter: TokenCounter) -> bool:
        """Whether a prompt and so long an answer have room in the window; the model counts where a counter sees none.

        Raises:
            ModelError: the model cannot say.
        """
        estimate = _CAUTION * sum(counter.count(message.text) for message in messages)
        try:
            room = self.model.context_tokens - answer_tokens
            return estimate <= room or self.model.count_prompt(messages) <= room
        except Exception as error:
            raise _as_model_error(error, self.model.name) from error

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        schema: Mapping[str, Json],
        cancelled: Callable[[], bool],
        temperature: float = 0.0,
        seed: int = 0,
    ) -> Generation:
        """Give the model's answer; see `LanguageModel.generate`.

        Raises:
            InterruptedGenerationError: `cancelled` said so.
            ModelError: there is none.
        """
        if cancelled():
            raise InterruptedGenerationError
        if self.lost:
            raise ModelError(f"{self.model.name} has not come back from an earlier prompt")
        found: Future[Generation] = Future()

        def work() -> None:
            try:
                answer = self.model.generate(
                    messages, max_tokens=max_tokens, schema=schema, cancelled=cancelled, temperature=temperature,
                    seed=seed, timeout_s=self._timeout_s,
                )  # fmt: skip
                found.set_result(_sound(answer))
            except BaseException as error:  # told to who asked
                found.set_exception(error)

        thread = threading.Thread(target=work, name="orchestra-mem generation", daemon=True)
        thread.start()
        self._wait(thread, cancelled)
        if error := found.exception():
            raise _as_model_error(error, self.model.name) from error
        if cancelled():
            raise InterruptedGenerationError
        if found.result().finish is Finish.CANCELLED:
            raise ModelError(f"{self.model.name} ended its answer without a reason")
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
                raise ModelError(f"{self.model.name} was given up: no answer in {self._timeout_s:g} s")


def _sound(answer: object) -> Generation:
    """An answer that the ledger can take; a host may bring a model of its own."""
    if not isinstance(answer, Generation):
        raise TypeError(f"it answers with a {type(answer).__name__}, not with a Generation")
    tokens = (answer.prompt_tokens, answer.answer_tokens, answer.evaluated_tokens)
    if not all(0 <= count < _MOST_TOKENS for count in tokens):
        raise ValueError(f"it counts {', '.join(map(str, tokens))} tokens")
    if not (math.isfinite(answer.prompt_s) and math.isfinite(answer.answer_s)):
        raise ValueError(f"it took {answer.prompt_s:g} and {answer.answer_s:g} s")
    return answer


def _as_model_error(error: BaseException, name: str) -> ModelError:
    """The error in words that a database and a terminal can hold, whatever a server said."""
    words = str(error) if isinstance(error, ModelError) else f"{name} broke: {type(error).__name__}: {error}"
    return ModelError(visible(words[:_MOST_WORDS]))

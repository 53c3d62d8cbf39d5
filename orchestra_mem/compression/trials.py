"""Try a model, log the outcome, and ask a model that has mostly failed with a kind of content only now and then.

The log is in the database, so a model is not tried anew by each process.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from orchestra_mem.compression.model_reader import Talk
from orchestra_mem.errors import ModelError
from orchestra_mem.job_types import Trial, TrialVerdict
from orchestra_mem.ports import Clock
from orchestra_mem.stores import TrialLog

logger = logging.getLogger(__name__)

# The model is used for a kind of content if enough of its last `_LOOK_BACK` trials succeeded, or if there were
# fewer than `_FEWEST` trials, unless these took `_ENOUGH_S` seconds and none succeeded: on a slow processor, six trials
# with entire sessions take a quarter of an hour. Otherwise, it is used for one in `_TRIED_AGAIN` texts, as it may have
# improved.
_LOOK_BACK = 12
_FEWEST, _ENOUGH_S = 6, 120.0
_TRIED_AGAIN = 8
_MOSTLY_FAILED = "the model has mostly failed with such content"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTrials:
    """Runs a model's attempts, and decides from their outcomes which content is worth another.

    `log` is None for attempts that are neither logged nor refused. `timeout_s` is the time limit for one answer.
    """

    model: str
    log: TrialLog | None
    clock: Clock
    timeout_s: float

    def attempt(
        self,
        ask: Callable[[Talk], bool],
        content: str,
        subject: str = "",
        *,
        insist: bool = False,
        fault: str = "",
        least_share: float = 0.5,
    ) -> tuple[Talk, TrialVerdict]:
        """Run `ask` unless there is a fault or the model has mostly failed, and log the trial.

        Args:
            ask: Asks the model and returns whether an answer is used.
            content: The kind of source text, such as an operation type.
            subject: The summary's name; see `Job`. Empty for other texts.
            insist: Whether to ask even if the model has mostly failed with this kind of content.
            fault: Why there is no need to ask; empty if there is one.
            least_share: The model has mostly failed unless more than this share of its trials succeeded, 0 to 1.
        """
        talk, verdict = Talk(fault=fault), TrialVerdict.SKIPPED
        if not (fault or insist or self._is_worth_trying(content, least_share)):
            talk.fault = _MOSTLY_FAILED
        if not talk.fault:
            start, used = time.perf_counter(), False
            try:
                used = ask(talk)
            except ModelError as error:
                talk.fault, talk.failed = str(error), True
            talk.seconds = time.perf_counter() - start
            verdict = talk.verdict(used=used)
        logger.info("%s, %s: %s in %.1f s", self.model, content, verdict, talk.seconds)
        if self.log is not None:
            self.log.add(
                Trial(
                    time=self.clock(), model=self.model, content=content, subject=subject, verdict=verdict,
                    fault=talk.fault, seconds=talk.seconds, prompt_tokens=talk.prompt_tokens,
                    answer_tokens=talk.answer_tokens,
                )
            )  # fmt: skip
        return talk, verdict

    def _is_worth_trying(self, content: str, least_share: float) -> bool:
        """Check whether the model has lately succeeded with a kind of content, or is due for another trial with it."""
        if self.log is None:
            return True
        # Texts about which there was no need to ask say nothing, and at small windows these are most.
        recent = self.log.trials(
            model=self.model, content=content, refused_for=_MOSTLY_FAILED, limit=_LOOK_BACK * _TRIED_AGAIN
        )
        made = [trial for trial in recent if self._says_something(trial)][:_LOOK_BACK]
        good, spent_s = sum(trial.verdict.good for trial in made), sum(trial.seconds for trial in made)
        if good > least_share * len(made) or (len(made) < _FEWEST and (good or spent_s < _ENOUGH_S)):
            return True
        newest = recent[: _TRIED_AGAIN - 1]
        return len(newest) == _TRIED_AGAIN - 1 and all(trial.verdict is TrialVerdict.SKIPPED for trial in newest)

    def _says_something(self, trial: Trial) -> bool:
        """Check whether a trial is evidence. Timeouts are; skipped trials and an unavailable model are not."""
        if trial.verdict is TrialVerdict.FAILED:
            return trial.seconds >= self.timeout_s
        return trial.verdict is not TrialVerdict.SKIPPED

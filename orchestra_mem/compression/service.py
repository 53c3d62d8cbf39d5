"""The model's part in a memory's summaries: who asks for it when, what came of it, and what is wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING

from orchestra_mem.errors import ModelError, NotFoundError, StorageError
from orchestra_mem.job_types import DraftStore, Job, JobQueue, JobState, SummaryDraft, Trial, TrialLog, TrialVerdict
from orchestra_mem.ports import EventLog, Ledger
from orchestra_mem.types import EXTRACTIVE, Json, Session, Summary

if TYPE_CHECKING:
    from orchestra_mem.catalog_types import MemoryItem
    from orchestra_mem.compression.compressed import Compressed
    from orchestra_mem.compression.compressor import MemoryCompressor
    from orchestra_mem.compression.jobs import BackgroundWork
    from orchestra_mem.compression.refiner import ItemSummarizer, SummaryRefiner
    from orchestra_mem.model_types import LanguageModel
    from orchestra_mem.tiers.session_compaction import Refreshed

logger = logging.getLogger(__name__)

# Lower comes first: what a person asks for, then summaries of operations, then those of summaries, then what is whole,
# and at last what the catalog has.
_ASKED_FOR = 0
_LEVEL_PRIORITY = 10
_WHOLE_PRIORITY = 1_000
_ITEM_PRIORITY = 2_000
# Sessions, sections and items whose extracts may still wait for the model when a program starts.
_WHOLE_OFFERED = 20
_LOOKED_THROUGH = 1_000
# Of the largest number that a database takes.
_MOST_DIGITS = 18
_BAD = (TrialVerdict.REJECTED, TrialVerdict.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryStory:
    """A summary, what last came of letting a model better it, a draft that waits, and the job that does."""

    summary: Summary
    trial: Trial | None
    draft: SummaryDraft | None
    job: Job | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTools:
    """What a model betters texts with, and the thread that it does so in."""

    compressor: MemoryCompressor
    improver: SummaryRefiner
    items: ItemSummarizer
    jobs: BackgroundWork


@dataclass(frozen=True, kw_only=True, eq=False)
class Compression:
    """Joins the compressor with the queue. Everything but `redo` is quick, and without a model next to nothing.

    `open_tools` is called at their first use: without a model most programs need none of them.
    """

    model: LanguageModel | None
    open_tools: Callable[[], ModelTools]
    log: EventLog
    ledger: Ledger
    queue: JobQueue
    drafts: DraftStore
    trials: TrialLog
    auto: bool
    doubts: Callable[[], Sequence[str]]

    @cached_property
    def _tools(self) -> ModelTools:
        return self.open_tools()

    @property
    def compressor(self) -> MemoryCompressor:
        """Makes texts shorter, with the model where there is one."""
        return self._tools.compressor

    @property
    def _auto(self) -> bool:
        return self.auto and self.model is not None

    def start(self) -> None:
        """Begin to better summaries in the background, where a model is set and it is wanted."""
        if not self._auto:
            return
        try:
            self._offer_standing()
        except StorageError as error:  # a full disk keeps nobody from a memory
            logger.warning("extracts that wait for the model were not looked for: %s", error)
        self._tools.jobs.start()

    def work(self) -> bool:
        """Better the next summary that waits, in this thread, for programs with times of their own.

        Returns:
            Whether there was one.
        """
        if self.model is None:
            return False
        self._offer_standing()
        waiting = self.queue.jobs()
        self._tools.jobs.step()
        return self.queue.jobs() != waiting

    def _offer_standing(self) -> None:
        """Let extracts wait that this model was not asked for: the running session's, and the newest whole ones."""
        live, model = self.log.live_session(), self.model
        if model is None:
            return
        known = {trial.subject for trial in self.trials.trials(model=model.name, limit=_LOOKED_THROUGH)}
        known |= {job.subject for job in self.queue.jobs()} | {f"S{each.summary}" for each in self.drafts.drafts()}
        standing = self.ledger.summaries(live.id, standing=True) if live else []
        standing += self.ledger.whole_summaries(limit=_WHOLE_OFFERED)
        self._offer([summary for summary in standing if f"S{summary.id}" not in known])
        self._offer_items(
            [item for item in self._tools.items.store.extracts(_WHOLE_OFFERED) if f"M{item.number}" not in known]
        )

    def refreshed(self, memory: object, refreshed: Refreshed) -> None:
        """Hear of a refresh: its new summaries wait to be bettered; what was given up and has gone is forgotten."""
        self.offer(refreshed.compacted.summaries)
        for job in self.queue.jobs():
            if job.state is JobState.FAILED and self._stays(job.subject):
                self.queue.finish(job)
        if self._auto and any(each.document for each in self.ledger.whole_summaries(limit=_WHOLE_OFFERED)):
            self._offer_standing()

    def session_flushed(self, memory: object, session: Session, path: object) -> None:
        """Hear of a session's end: what it came to waits to be bettered."""
        self.offer([each for each in self.ledger.whole_summaries(session.id) if not each.document])

    def offer(self, summaries: Sequence[Summary]) -> None:
        """Let new extracts wait to be bettered."""
        if self._auto:
            self._offer(summaries)

    def _offer(self, summaries: Sequence[Summary]) -> None:
        for summary in summaries:
            if summary.method == EXTRACTIVE and not self._tools.improver.why_not(summary):
                self._tools.jobs.offer(f"S{summary.id}", _LEVEL_PRIORITY * summary.level or _WHOLE_PRIORITY)

    def item_said(self, item: MemoryItem) -> None:
        """Hear of an item of the catalog with a new text: its summary waits to be bettered."""
        if self._auto:
            self._offer_items([item])

    def _offer_items(self, items: Sequence[MemoryItem]) -> None:
        for item in filter(self._tools.items.may_better, items):
            self._tools.jobs.offer(f"M{item.number}", _ITEM_PRIORITY)

    def _stays(self, subject: str) -> bool:
        """Whether a summary cannot be bettered any more."""
        number = int(subject[1:])
        if subject[0] == "M":
            return not any(map(self._tools.items.may_better, self._tools.items.store.by_number([number])))
        try:
            return bool(self._tools.improver.why_not(self.ledger.summary(number)))
        except NotFoundError:
            return True

    def foreground(self) -> AbstractContextManager[None]:
        """Keep background work off the model meanwhile; costs nothing where there is no model."""
        return nullcontext() if self.model is None else self._tools.jobs.foreground()

    def redo(self, reference: str | int) -> Compressed:
        """Let the model better a summary now, whatever came of it before; the next refresh puts it in.

        Where the model does not answer the summary waits, before all others, to be bettered in the background.

        Raises:
            NotFoundError: there is no such summary.
            ModelError: there is no model, or the summary is none that it may better.
            StorageReadOnlyError: nothing may be written here.
        """
        text = str(reference).strip().upper().removeprefix("S")
        if not text.isdecimal() or len(text) > _MOST_DIGITS:
            raise NotFoundError(f"{str(reference)!r} names no summary: give S12 or 12")
        summary = self.ledger.summary(int(text))
        if self.model is None:
            raise ModelError("no model is set: give llm.model_path or llm.base_url")
        if why := self._tools.improver.why_not(summary):
            raise ModelError(f"S{summary.id} stays as it is: {why}")
        with self._tools.jobs.foreground():
            # Before the model takes its time: there it waits where the process is killed or the model does not answer.
            self._tools.jobs.offer(f"S{summary.id}", _ASKED_FOR)
            done = self._tools.improver.improve(summary.id, insist=True)
        if done is None:
            raise ModelError(f"S{summary.id} was changed meanwhile; try again")
        if done.verdict is not TrialVerdict.FAILED:
            for job in self.queue.jobs():
                if job.subject == f"S{summary.id}":
                    self.queue.finish(job)
        return done

    def stories(self, summaries: Sequence[Summary]) -> list[SummaryStory]:
        """Tell of summaries what a model had to do with them."""
        trials: dict[str, Trial] = {}
        for trial in self.trials.trials(limit=_LOOKED_THROUGH):
            trials.setdefault(trial.subject, trial)
        drafts = {draft.summary: draft for draft in self.drafts.drafts()}
        jobs = {job.subject: job for job in self.queue.jobs()}
        return [
            SummaryStory(summary=each, trial=trials.get(name), draft=drafts.get(each.id), job=jobs.get(name))
            for each in summaries
            for name in [f"S{each.id}"]
        ]

    def problems(self) -> list[Json]:
        """Return what is wrong with the model, since when, and in what words."""
        model = self.model
        if model is None:
            return []
        trials = self.trials.trials(model=model.name, limit=_LOOKED_THROUGH)
        made = (trial for trial in trials if trial.verdict is not TrialVerdict.SKIPPED)
        bad = list(takewhile(lambda trial: trial.verdict in _BAD, made))
        told: list[Json] = [_problem(doubt, None) for doubt in self.doubts()]
        if bad:
            count = "last summary was" if len(bad) == 1 else f"last {len(bad):,} summaries were"
            told.append(
                _problem(
                    f"{model.name}: its {count} not used: {bad[0].verdict}, {bad[0].fault}; extracts stand in their "
                    "place: `orchestra-mem summaries`",
                    bad[-1].time.isoformat(timespec="seconds"),
                )
            )
        failed = [job for job in self.queue.jobs() if job.state is JobState.FAILED]
        if failed:
            names = ", ".join(job.subject for job in failed[:5])
            redo = next(
                (f"`orchestra-mem summaries redo {each.subject}`" for each in failed if each.subject[0] == "S"), ""
            )
            told.append(
                _problem(
                    f"{model.name}: given up bettering {names}{', …' if len(failed) > 5 else ''}: {failed[-1].error}; "
                    f"{redo or 'the next start'} tries again",
                    None,
                )
            )
        return told

    def close(self) -> None:
        """End background work; what it was at waits for the next start."""
        if self.model is not None:
            self._tools.jobs.close()


def _problem(words: str, since: str | None) -> Json:
    return {"subject": "language model", "since": since, "problem": words}

"""Improvement of a memory's summaries by a model: when to enqueue jobs, outcomes, and current problems."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING

from orchestra_mem.errors import ModelError, NotFoundError, StorageError
from orchestra_mem.job_types import Job, JobState, SummaryDraft, Trial, TrialVerdict
from orchestra_mem.ports import Clock
from orchestra_mem.stores import DraftStore, EventLog, JobQueue, Ledger, TrialLog
from orchestra_mem.types import EXTRACTIVE, Json, Session, Summary

if TYPE_CHECKING:
    from orchestra_mem.catalog_types import MemoryItem
    from orchestra_mem.compression.compressor import Compressed, MemoryCompressor
    from orchestra_mem.compression.fact_reader import FactReader
    from orchestra_mem.compression.jobs import BackgroundWork
    from orchestra_mem.compression.refiner import ItemSummarizer, SummaryRefiner
    from orchestra_mem.model_types import LanguageModel
    from orchestra_mem.tiers.session_compaction import Refreshed

logger = logging.getLogger(__name__)

# Job priorities, lower first: a person's request, then what lasts longest: summaries of entire sessions and document
# sections (level 0), then those of higher levels, which later merges replace last; then those of catalog items.
_ASKED_FOR = 0
_WHOLE_PRIORITY = 10
_LEVEL_ONE_PRIORITY = 1_000
_ITEM_PRIORITY = 2_000
# Number of newest level-0 summaries and items considered for the queue, and of newest trials examined.
_WHOLE_OFFERED = 20
_LOOKED_THROUGH = 1_000
# A problem is told if of this many readings, which took at least so many seconds, so large a share was for nothing.
_LATELY, _MUCH_S, _NEARLY_ALL = 24, 60.0, 0.9
# The database stores ids of up to 18 digits.
_MOST_DIGITS = 18
_BAD = (TrialVerdict.REJECTED, TrialVerdict.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryHistory:
    """A summary with the latest attempt of a model, the waiting draft, and the job, each None if there is none."""

    summary: Summary
    trial: Trial | None
    draft: SummaryDraft | None
    job: Job | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTools:
    """The parts that improve texts with a model, and the background thread that runs them."""

    compressor: MemoryCompressor
    improver: SummaryRefiner
    items: ItemSummarizer
    jobs: BackgroundWork
    reader: FactReader | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Compression:
    """Connects the compressor with the job queue. Only `redo` and `work` wait for the model.

    `open_tools` is called on first use, as most programs without a model need none of the tools. `auto` tells whether
    summaries are improved in the background; false without a model.
    """

    model: LanguageModel | None
    open_tools: Callable[[], ModelTools]
    log: EventLog
    ledger: Ledger
    queue: JobQueue
    drafts: DraftStore
    trials: TrialLog
    auto: bool
    clock: Clock
    doubts: Callable[[], Sequence[str]]

    @cached_property
    def _tools(self) -> ModelTools:
        return self.open_tools()

    @property
    def compressor(self) -> MemoryCompressor:
        """The compressor: it shortens texts, with the model if there is one."""
        return self._tools.compressor

    def start(self) -> None:
        """Start to improve summaries in the background, if `auto` is true."""
        if not self.auto:
            return
        try:
            self._offer_standing()
        except StorageError as error:  # a full disk must not keep the memory from opening
            logger.warning("could not look for summaries to improve: %s", error)
        self._tools.jobs.start()

    def work(self) -> bool:
        """Run the next waiting job in this thread, for programs that schedule background work themselves.

        Returns:
            Whether a job was run, successfully or not.
        """
        if self.model is None:
            return False
        self._offer_standing()
        waiting = self.queue.jobs()
        self._tools.jobs.step()
        return self.queue.jobs() != waiting

    def _offer_standing(self) -> None:
        """Enqueue extracts that this model has not tried: of the live session, and the newest of level 0 and items."""
        live, model = self.log.live_session(), self.model
        if model is None:
            return
        known = {trial.subject for trial in self.trials.trials(model=model.name, limit=_LOOKED_THROUGH)}
        known |= {job.subject for job in self.queue.jobs()} | {f"S{each.summary}" for each in self.drafts.drafts()}
        standing = self.ledger.summaries(live.id, standing=True) if live else []
        standing += self.ledger.level_zero_summaries(limit=_WHOLE_OFFERED)
        self._offer([summary for summary in standing if f"S{summary.id}" not in known])
        self._offer_items(
            [item for item in self._tools.items.store.extracts(_WHOLE_OFFERED) if f"M{item.number}" not in known]
        )

    def refreshed(self, memory: object, refreshed: Refreshed) -> None:
        """Handle a refresh: enqueue its new summaries, and delete failed jobs that can no longer succeed."""
        self.offer(refreshed.compacted.summaries)
        for job in self.queue.jobs():
            if job.state is JobState.FAILED and self._stays(job.subject):
                self.queue.finish(job)
        if self.auto and any(each.document for each in self.ledger.level_zero_summaries(limit=_WHOLE_OFFERED)):
            self._offer_standing()

    def session_flushed(self, memory: object, session: Session, path: object) -> None:
        """Handle the end of a session: enqueue its summary."""
        self.offer([each for each in self.ledger.level_zero_summaries(session.id) if not each.document])

    def offer(self, summaries: Sequence[Summary]) -> None:
        """Enqueue new extracts, if background work is on."""
        if self.auto:
            self._offer(summaries)

    def _offer(self, summaries: Sequence[Summary]) -> None:
        for summary in sorted(summaries, key=attrgetter("id")):
            if summary.method == EXTRACTIVE and not self._tools.improver.why_not(summary):
                lasting = _LEVEL_ONE_PRIORITY // summary.level if summary.level else _WHOLE_PRIORITY
                self._tools.jobs.offer(f"S{summary.id}", lasting)

    def item_said(self, item: MemoryItem) -> None:
        """Handle a new or changed catalog item: enqueue its summary."""
        if self.auto:
            self._offer_items([item])

    def _offer_items(self, items: Sequence[MemoryItem]) -> None:
        for item in filter(self._tools.items.may_better, items):
            self._tools.jobs.offer(f"M{item.number}", _ITEM_PRIORITY)

    def _stays(self, subject: str) -> bool:
        """Check whether a job's summary or item cannot be improved any more."""
        number = int(subject[1:])
        if subject[0] == "M":
            return not any(map(self._tools.items.may_better, self._tools.items.store.by_number([number])))
        try:
            return bool(self._tools.improver.why_not(self.ledger.summary(number)))
        except NotFoundError:
            return True

    def foreground(self) -> AbstractContextManager[None]:
        """Return a context manager that keeps background jobs off the model. Does nothing without a model."""
        return nullcontext() if self.model is None else self._tools.jobs.foreground()

    def redo(self, reference: str | int) -> Compressed:
        """Improve a summary with the model now, whatever the earlier outcomes. The next refresh inserts the result.

        Its operations are read for facts as well. If the model fails, the summary stays in the queue, ahead of others.

        Raises:
            NotFoundError: There is no such summary.
            ModelError: There is no model, or this summary cannot be improved.
            StorageReadOnlyError: The memory is read-only.
        """
        text = str(reference).strip().upper().removeprefix("S")
        if not text.isdecimal() or len(text) > _MOST_DIGITS:
            raise NotFoundError(f"{str(reference)!r} is not a summary: use S12 or 12")
        summary = self.ledger.summary(int(text))
        if self.model is None:
            raise ModelError("no model is configured: set llm.model_path or llm.base_url")
        name = f"S{summary.id}"
        why = self._tools.improver.why_not(summary)
        if why and not any(job.subject == name for job in self.queue.jobs()):
            raise ModelError(f"{name} cannot be improved: {why}")
        with self._tools.jobs.foreground():
            # Enqueued first, so that the job remains if the process is killed or the model fails.
            self._tools.jobs.offer(name, _ASKED_FOR)
            done = None if why else self._tools.improver.improve(summary.id, insist=True)
            if self._tools.reader and (done is None or done.verdict is not TrialVerdict.FAILED):
                try:
                    self._tools.reader.read(summary.id, cancelled=lambda: False, insist=True)
                except ModelError as error:
                    raise ModelError(f"{name} stays queued: reading it for facts failed: {error}") from error
                for job in self.queue.jobs():
                    if job.subject == name:
                        self.queue.finish(job)
        if why:
            raise ModelError(f"{name} cannot be improved: {why}; its operations were read for facts")
        if done is None:
            raise ModelError(f"{name} was changed meanwhile; try again")
        return done

    def stories(self, summaries: Sequence[Summary]) -> list[SummaryHistory]:
        """Return the summaries, each with its latest trial, its draft and its job."""
        trials: dict[str, Trial] = {}
        for trial in self.trials.trials(limit=_LOOKED_THROUGH):
            trials.setdefault(trial.subject, trial)
        drafts = {draft.summary: draft for draft in self.drafts.drafts()}
        jobs = {job.subject: job for job in (*self.queue.jobs(), *self.queue.jobs_left(self.clock()))}
        return [
            SummaryHistory(summary=each, trial=trials.get(name), draft=drafts.get(each.id), job=jobs.get(name))
            for each in summaries
            for name in [f"S{each.id}"]
        ]

    def problems(self) -> list[Json]:
        """Return the model's problems in the format of `status`: subject, since when, message."""
        model = self.model
        if model is None:
            return []
        trials = self.trials.trials(model=model.name, limit=_LOOKED_THROUGH)
        made = [trial for trial in trials if trial.verdict is not TrialVerdict.SKIPPED]
        bad = list(takewhile(lambda trial: trial.verdict in _BAD, (trial for trial in made if trial.subject)))
        told: list[Json] = [_problem(doubt, None) for doubt in self.doubts()]
        if bad:
            count = "last summary was" if len(bad) == 1 else f"last {len(bad):,} summaries were"
            told.append(
                _problem(
                    f"{model.name}: its {count} not used: {bad[0].verdict}, {bad[0].fault}; extracts are used instead: "
                    "see `orchestra-mem summaries`",
                    bad[-1].time.isoformat(timespec="seconds"),
                )
            )
        lately = made[:_LATELY]
        spent_s = sum(trial.seconds for trial in lately)
        unused_s = sum(trial.seconds for trial in lately if not trial.verdict.good)
        if spent_s >= _MUCH_S and unused_s >= _NEARLY_ALL * spent_s:
            told.append(
                _problem(
                    f"{model.name}: {unused_s:,.0f} of the {spent_s:,.0f} s for its last {len(lately)} readings "
                    "improved no summary and found no fact; where it mostly fails it is asked for one in eight: try a "
                    "larger model, or set compression.auto: false",
                    lately[-1].time.isoformat(timespec="seconds"),
                )
            )
        failed = [job for job in self.queue.jobs() if job.state is JobState.FAILED]
        if failed:
            names = ", ".join(job.subject for job in failed[:5])
            summary = next((each.subject for each in failed if each.subject[0] == "S"), "")
            redo = f"; `orchestra-mem summaries redo {summary}` tries again" if summary else ""
            more = ", …" if len(failed) > 5 else ""
            words = f"{model.name}: could not improve {names}{more}: {failed[-1].error}{redo}"
            told.append(_problem(words, None))
        return told

    def close(self) -> None:
        """Stop background work. The interrupted job waits for the next start."""
        if self.model is not None:
            self._tools.jobs.close()


def _problem(words: str, since: str | None) -> Json:
    return {"subject": "language model", "since": since, "problem": words}

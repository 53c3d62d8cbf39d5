"""Records and ports of background work: jobs, drafts of better summaries, trials of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from orchestra_mem.types import Summary

STALLED = "it stalled, or the process that worked at it ended"
"""The error of a job whose lease expired. This is a failed attempt, because the job may have crashed the process."""


class JobState(StrEnum):
    """The state of a job. A finished job is deleted."""

    WAITING = "waiting"
    RUNNING = "running"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A summary for a model to improve. `subject` is the summary's id (`S12`) or that of its catalog item (`M7`).

    Jobs with a lower `priority` number run first. `due` is the earliest start. `attempts` counts failed attempts,
    `error` is the last failure; `since` is the start of the running attempt.
    """

    id: int
    subject: str
    priority: int
    state: JobState
    attempts: int
    due: datetime
    since: datetime | None = None
    error: str = ""


class JobQueue(Protocol):
    """Stores jobs, one per subject, until they are done. Shared by processes; one process at a time runs jobs."""

    def put(self, subject: str, *, priority: int, now: datetime, most: int) -> bool:
        """Enqueue a job that is due now, or reset the subject's existing job. Keep the first `most` waiting jobs.

        Returns:
            False if this job was dropped because `most` others come before it.
        """

    def take(self, owner: str, *, now: datetime, until: datetime) -> Job | None:
        """Lease the first due job to `owner`; before that, put jobs with an expired lease back in the queue."""

    def renew(self, job: Job, *, until: datetime) -> None: ...

    def finish(self, job: Job) -> None: ...

    def give_back(self, job: Job, *, due: datetime) -> None:
        """Put an interrupted job back in the queue, without counting a failed attempt."""

    def fail(self, job: Job, error: str, *, due: datetime | None) -> None:
        """Record a failed attempt. `due` is the time of the next attempt, None to give up."""

    def jobs(self) -> list[Job]: ...

    def lead(self, owner: str, *, now: datetime, until: datetime) -> bool:
        """Take or renew the lease for background work; return False if another process holds it."""

    def resign(self, owner: str) -> None:
        """Release the lease for background work, and put the running job back in the queue."""

    def due(self, now: datetime) -> bool:
        """Check whether a job could be taken now."""

    def other_holds_lease(self, owner: str, now: datetime) -> bool:
        """Check whether another process holds the lease for background work."""

    def announce(self, owner: str, *, until: datetime) -> None:
        """Ask the background process not to use the model until `withdraw`, or until the time `until` at the latest."""

    def withdraw(self, owner: str) -> None: ...

    def announced(self, owner: str, now: datetime) -> bool:
        """Check whether another process has announced that it needs the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryDraft:
    """A better text for a summary, to be inserted when the next epoch begins.

    `base` is the summary's text when the draft was made: if the summary's text has changed since, the draft is dropped.
    `placed` is true once the ledger has the new text; the document may still show the old one.
    """

    summary: int
    base: str
    text: str
    tokens: int
    method: str
    must_keeps: tuple[int, ...]
    put_back: tuple[str, ...]
    verdict: str
    seconds: float
    created: datetime
    placed: bool = False


class DraftStore(Protocol):
    """Stores drafts, at most one per summary."""

    def put(self, draft: SummaryDraft) -> None: ...

    def drafts(self, session: str | None = None) -> list[SummaryDraft]: ...

    def place(self, draft: SummaryDraft) -> Summary:
        """Write the draft's text to the summary in the ledger. The draft stays, marked as placed, until `drop`."""

    def drop(self, summary: int) -> None: ...


class TrialVerdict(StrEnum):
    """The outcome of a model's attempt at a summary."""

    ACCEPTED = "accepted"
    RETRIED = "accepted on retry"
    NO_BETTER = "no better than the extract"
    REJECTED = "rejected"
    FAILED = "failed"
    SKIPPED = "not tried"

    @property
    def good(self) -> bool:
        """Whether the model's answer was used."""
        return self in (TrialVerdict.ACCEPTED, TrialVerdict.RETRIED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One attempt of a model at a summary.

    `content` is the kind of source text. `subject` is the same as for a job, or empty. `fault` is the last fault found.
    """

    time: datetime
    model: str
    content: str
    subject: str
    verdict: TrialVerdict
    fault: str
    seconds: float
    prompt_tokens: int
    answer_tokens: int


class TrialLog(Protocol):
    """Stores the outcomes of models' attempts at summaries."""

    def add(self, trial: Trial) -> None: ...

    def trials(self, *, model: str | None = None, content: str | None = None, limit: int) -> Sequence[Trial]:
        """Return trials, newest first."""

"""Records and ports of background work: jobs, drafts of summaries, trials of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from orchestra_mem.types import Summary

STALLED = "it stalled, or the process that worked at it ended"
"""The error of a job whose lease has run out: the job may be what ends the process."""


class JobState(StrEnum):
    """The state of a job; one that is done is deleted."""

    WAITING = "waiting"
    RUNNING = "running"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a model is to improve: `subject` is a summary (`S12`), or the one of an item of the catalog (`M7`).

    A lower `priority` comes first. `attempts` counts failed attempts, `error` is that of the last one; `since` is when
    the running one began.
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
    """Keeps jobs, one a subject, until they are done. Shared by processes; one at a time works on them."""

    def put(self, subject: str, *, priority: int, now: datetime, most: int) -> bool:
        """Enqueue a job, due now; one that waits or has failed is made due. Beyond `most` the last ones are dropped.

        Returns:
            Whether it is in the queue.
        """

    def take(self, owner: str, *, now: datetime, until: datetime) -> Job | None:
        """Take the first job that is due, with a lease; jobs whose lease has run out wait again."""

    def renew(self, job: Job, *, until: datetime) -> None: ...

    def finish(self, job: Job) -> None: ...

    def give_back(self, job: Job, *, due: datetime) -> None:
        """Return an interrupted job to the queue; nothing failed."""

    def fail(self, job: Job, error: str, *, due: datetime | None) -> None:
        """Note that an attempt failed; `due` is when to try again, None for never."""

    def jobs(self) -> list[Job]: ...

    def lead(self, owner: str, *, now: datetime, until: datetime) -> bool:
        """Become or stay the process that does background work; False if another is."""

    def resign(self, owner: str) -> None:
        """Let another process do background work; this one's job waits again."""

    def due(self, now: datetime) -> bool:
        """Tell whether there is a job that could be taken now."""

    def another_leads(self, owner: str, now: datetime) -> bool:
        """Tell whether another process does background work."""

    def announce(self, owner: str, *, until: datetime) -> None:
        """Ask the process that does background work to leave the model alone, until `withdraw`."""

    def withdraw(self, owner: str) -> None: ...

    def announced(self, owner: str, now: datetime) -> bool:
        """Tell whether any other process has asked for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryDraft:
    """A better text for a summary, to be put in when the next epoch begins.

    `base` is the text that it replaces: if the summary has another text by then, the draft is dropped. `placed` is
    true when the ledger has the new text and the document may not have it yet.
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
    """Keeps drafts of summaries, one a summary."""

    def put(self, draft: SummaryDraft) -> None: ...

    def drafts(self, session: str | None = None) -> list[SummaryDraft]: ...

    def place(self, draft: SummaryDraft) -> Summary:
        """Make the draft the summary's text in the ledger, and keep it, as placed, until it is dropped."""

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
        """Whether what the model said was used."""
        return self in (TrialVerdict.ACCEPTED, TrialVerdict.RETRIED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One attempt of a model at a summary.

    `content` is the kind of source text; `subject` as of a job, empty for none; `fault` the last fault found.
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
    """Keeps the outcomes of models' attempts at summaries."""

    def add(self, trial: Trial) -> None: ...

    def trials(self, *, model: str | None = None, content: str | None = None, limit: int) -> Sequence[Trial]:
        """List trials, newest first."""

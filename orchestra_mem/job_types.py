"""What background work is spoken of in: jobs, drafts of summaries, trials of a model, and the ports that keep them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from orchestra_mem.types import Summary

STALLED = "it stalled, or the process that worked at it ended"
"""The error of a job whose lease has run out: what it does may take a process with it."""


class JobState(StrEnum):
    """Where a job stands; one that is done is gone."""

    WAITING = "waiting"
    RUNNING = "running"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A summary that a model is to make better. Of two the one with the lower `priority` comes first.

    `attempts` are those that have failed, `error` what the last one did of; `since` is when the running one began.
    """

    id: int
    summary: int
    priority: int
    state: JobState
    attempts: int
    due: datetime
    since: datetime | None = None
    error: str = ""


class JobQueue(Protocol):
    """Keeps jobs, one a summary, until they are done. Shared by processes; one of them at a time works."""

    def put(self, summary: int, *, priority: int, now: datetime, most: int) -> bool:
        """Let a job wait; where it does already, or has failed, it is due now. Of more than `most` the last ones go.

        Returns:
            Whether it is among those that wait.
        """
        ...

    def take(self, owner: str, *, now: datetime, until: datetime) -> Job | None:
        """Give the first job that is due and note who works at it; those whose lease has run out wait again."""
        ...

    def renew(self, job: Job, *, until: datetime) -> None: ...

    def finish(self, job: Job) -> None: ...

    def give_back(self, job: Job, *, due: datetime) -> None:
        """Let a job that was interrupted wait again; nothing failed."""
        ...

    def fail(self, job: Job, error: str, *, due: datetime | None) -> None:
        """Note that an attempt failed; None where there is to be no other."""
        ...

    def jobs(self) -> list[Job]: ...

    def lead(self, owner: str, *, now: datetime, until: datetime) -> bool:
        """Become, or stay, the one that does background work; False where another is."""
        ...

    def resign(self, owner: str) -> None:
        """Let another do background work; what this one was at waits again."""
        ...

    def due(self, now: datetime) -> bool:
        """Tell whether there is a job that could be taken now."""
        ...

    def another_leads(self, owner: str, now: datetime) -> bool:
        """Tell whether background work is done by somebody else."""
        ...

    def announce(self, owner: str, *, until: datetime) -> None:
        """Tell who does background work elsewhere that the model is wanted here, until `withdraw`."""
        ...

    def withdraw(self, owner: str) -> None: ...

    def announced(self, owner: str, now: datetime) -> bool:
        """Tell whether the model is wanted by anybody else."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryDraft:
    """A better text for a summary, waiting for an epoch's border.

    `base` is the text that it was made in place of: another one there meanwhile, and it is not put in. `placed` where
    the ledger has it and the document may not yet.
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
        """Let the draft be the summary's text in the ledger, and keep it, as placed, until it is dropped."""
        ...

    def drop(self, summary: int) -> None: ...


class TrialVerdict(StrEnum):
    """What came of letting a model summarise."""

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
    """One summary that a model was asked for. `content` is the kind of what it read; `fault` what was wrong at last."""

    time: datetime
    model: str
    content: str
    summary: int
    verdict: TrialVerdict
    fault: str
    seconds: float
    prompt_tokens: int
    answer_tokens: int


class TrialLog(Protocol):
    """Keeps what came of letting models summarise."""

    def add(self, trial: Trial) -> None: ...

    def trials(self, *, model: str | None = None, content: str | None = None, limit: int) -> Sequence[Trial]:
        """Give the newest trials, newest first."""
        ...

"""Records of background work: jobs, drafts of better summaries, trials of models."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

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

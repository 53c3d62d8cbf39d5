"""Stores for background work: the job queue with its leases, summary drafts, and trials of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from orchestra_mem.job_types import STALLED, Job, JobState, SummaryDraft, Trial, TrialVerdict
from orchestra_mem.stores.event_log import SESSION_NUMBER
from orchestra_mem.stores.ledger import Ledger, details_of
from orchestra_mem.stores.statements import FreeText, Stored, Table, limit_of, matching
from orchestra_mem.types import Summary

_JOBS = Table("jobs", Job)
_DRAFTS = Table("summary_drafts", SummaryDraft)
# What a draft changes in its summary.
_BETTER = ("text", "tokens", "method", "must_keeps", "put_back", "verdict", "seconds")
_TRIALS = Table("model_trials", Trial)
FREE_TEXT = (
    FreeText("jobs", ("error",)),
    FreeText("summary_drafts", ("base", "text"), json=("put_back",)),
    FreeText("model_trials", ("fault",)),
)
# Older trials say nothing about the current model.
_TRIALS_KEPT = 5_000
_LEAD = "background"
_WANTED = "foreground of "
# A time more than an hour ahead counts as past: no job waits and no lease lasts that long, so some clock ran fast.
_PAST = "({0} <= :now OR {0} > :now + 3600000000)"
_LASTS = f"NOT {_PAST.format('until')}"


class JobQueue(Stored):
    """Stores jobs, one per subject, until they are done. Shared by processes; one process at a time runs jobs.

    Of jobs with the same priority the newest is first, as merges replace the oldest summaries.
    """

    def put(self, subject: str, *, priority: int, now: datetime, most: int) -> bool:
        """Enqueue a job. If the subject has a waiting or failed job, make that job due now, with all attempts left.

        Only the first `most` waiting jobs are kept. Returns whether the job is in the queue.
        """
        with self._database.transaction("job"):
            self._write(
                "INSERT INTO jobs (subject, priority, state, due) VALUES (?, ?, 'waiting', ?) "
                "ON CONFLICT (subject) DO UPDATE SET due = excluded.due, attempts = 0, error = '', priority = "
                "CASE WHEN jobs.priority < excluded.priority THEN jobs.priority ELSE excluded.priority END, "
                "state = CASE WHEN jobs.state = 'failed' THEN 'waiting' ELSE jobs.state END",
                subject, priority, now,
            )  # fmt: skip
            self._write(
                "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE state = 'waiting' "
                "ORDER BY priority, id DESC LIMIT ? OFFSET ?)",
                limit_of(None),
                most,
            )
            return self._exists("SELECT 1 FROM jobs WHERE subject = :subject", subject=subject)

    def take(self, owner: str, *, now: datetime, until: datetime) -> Job | None:
        """Requeue jobs with an expired lease, then lease the first due job to `owner`; return None if no job is due."""
        with self._database.transaction("job"):
            self._database.write(
                "job",
                "UPDATE jobs SET state = 'waiting', attempts = attempts + 1, error = :error, owner = NULL "
                f"WHERE state = 'running' AND {_PAST.format('until')}",
                {"error": STALLED, "now": now},
            )
            first = f"WHERE state = 'waiting' AND {_PAST.format('due')} ORDER BY priority, id DESC LIMIT 1"
            found = self._database.find(_JOBS, first, {"now": now})
            if not found:
                return None
            self._write(
                "UPDATE jobs SET state = 'running', owner = ?, since = ?, until = ? WHERE id = ?",
                owner, now, until, found[0].id,
            )  # fmt: skip
        return replace(found[0], state=JobState.RUNNING, since=now)

    def renew(self, job: Job, *, until: datetime) -> None:
        """Extend the lease of a running job, unless another process has taken the job meanwhile."""
        self._write("UPDATE jobs SET until = ? WHERE id = ? AND since = ?", until, job.id, job.since)

    def finish(self, job: Job) -> None:
        """Remove a completed job."""
        self._write("DELETE FROM jobs WHERE id = ?", job.id)

    def give_back(self, job: Job, *, due: datetime) -> None:
        """Requeue an interrupted job without counting a failed attempt."""
        self._leave(job, JobState.WAITING, due, job.attempts, job.error)

    def fail(self, job: Job, error: str, *, due: datetime | None) -> None:
        """Record a failed attempt; `due` is the time of the next one, None to give up."""
        self._leave(job, JobState.WAITING if due else JobState.FAILED, due or job.due, job.attempts + 1, error)

    def _leave(self, job: Job, state: JobState, due: datetime, attempts: int, error: str) -> None:
        self._write(
            "UPDATE jobs SET state = ?, owner = NULL, attempts = ?, due = ?, error = ? WHERE id = ? AND since = ?",
            state, attempts, due, error, job.id, job.since,
        )  # fmt: skip

    def jobs(self) -> list[Job]:
        """Return all jobs: running and failed ones first, then the waiting ones in order of priority."""
        return self._database.find(_JOBS, "ORDER BY state = 'waiting', priority, id DESC")

    def jobs_left(self, now: datetime) -> list[Job]:
        """Return the jobs whose process has ended or stalled, as the next `take` will requeue them; change nothing."""
        found = self._database.find(_JOBS, f"WHERE state = 'running' AND {_PAST.format('until')}", {"now": now})
        return [replace(job, state=JobState.WAITING, attempts=job.attempts + 1, error=STALLED) for job in found]

    def lead(self, owner: str, *, now: datetime, until: datetime) -> bool:
        """Acquire or renew the background-work lease; return False if another process holds the lease."""
        taken = self._database.write(
            "job",
            "INSERT INTO leases (name, owner, until) VALUES (:name, :owner, :until) ON CONFLICT (name) DO UPDATE "
            "SET owner = excluded.owner, until = excluded.until "
            f"WHERE leases.owner = excluded.owner OR {_PAST.format('leases.until')}",
            {"name": _LEAD, "owner": owner, "until": until, "now": now},
        )
        return taken.rowcount == 1

    def resign(self, owner: str) -> None:
        """Release the background-work lease and requeue the owner's running job."""
        with self._database.transaction("job"):
            self._write("UPDATE jobs SET state = 'waiting', owner = NULL WHERE state = 'running' AND owner = ?", owner)
            self._write("DELETE FROM leases WHERE name = ? AND owner = ?", _LEAD, owner)

    def due(self, now: datetime) -> bool:
        """Check whether there is a job that `take` would return."""
        waiting, running = _PAST.format("due"), _PAST.format("until")
        return self._exists(
            f"SELECT 1 FROM jobs WHERE (state = 'waiting' AND {waiting}) OR (state = 'running' AND {running})", now=now
        )

    def other_holds_lease(self, owner: str, now: datetime) -> bool:
        """Check whether another process holds the background-work lease."""
        query = f"SELECT 1 FROM leases WHERE name = :name AND owner != :owner AND {_LASTS}"
        return self._exists(query, name=_LEAD, owner=owner, now=now)

    def announce(self, owner: str, *, until: datetime) -> None:
        """Ask the process that does background work to leave the model to `owner`, until `withdraw` or `until`."""
        self._write(
            "INSERT INTO leases (name, owner, until) VALUES (?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET until = excluded.until",
            f"{_WANTED}{owner}", owner, until,
        )  # fmt: skip

    def withdraw(self, owner: str) -> None:
        """Withdraw the request for the model made by `announce`."""
        self._write("DELETE FROM leases WHERE name = ?", f"{_WANTED}{owner}")

    def announced(self, owner: str, now: datetime) -> bool:
        """Check whether any other process has requested the model."""
        query = f"SELECT 1 FROM leases WHERE name != :name AND owner != :owner AND {_LASTS}"
        return self._exists(query, name=_LEAD, owner=owner, now=now)

    def _write(self, query: str, *values: object) -> None:
        self._database.write("job", query, values)

    def _exists(self, query: str, **values: object) -> bool:
        return bool(self._database.rows(f"{query} LIMIT 1", values))


class DraftStore(Stored):
    """Stores drafts, at most one per summary."""

    def put(self, draft: SummaryDraft) -> None:
        """Store a draft, replacing the summary's earlier draft, unless the earlier draft is already placed."""
        with self._database.transaction("draft"):
            self._database.write(
                "draft", "DELETE FROM summary_drafts WHERE summary = ? AND placed = 0", (draft.summary,)
            )
            self._database.write("draft", f"{_DRAFTS.insert()} ON CONFLICT (summary) DO NOTHING", _DRAFTS.values(draft))

    def drafts(self, session: str | None = None) -> list[SummaryDraft]:
        """Return the drafts of one session's summaries, or of all summaries, ordered by summary id."""
        condition, values = matching(
            {f"(SELECT session FROM summaries WHERE id = summary) = {SESSION_NUMBER}": session}
        )
        return self._database.find(_DRAFTS, f"{condition} ORDER BY summary", values)

    def place(self, draft: SummaryDraft) -> Summary:
        """Replace the summary's text in the ledger by the draft's. The draft stays, marked as placed, until `drop`."""
        with self._database.transaction("improve"):
            better = {name: getattr(draft, name) for name in _BETTER}
            summary = replace(Ledger(self._database).summary(draft.summary), **better)
            self._database.write(
                "improve",
                "UPDATE summaries SET text = ?, tokens = ?, method = ?, details = ? WHERE id = ?",
                (summary.text, summary.tokens, summary.method, details_of(summary), summary.id),
            )
            self._database.write("improve", "UPDATE summary_drafts SET placed = 1 WHERE summary = ?", (draft.summary,))
        return summary

    def drop(self, summary: int) -> None:
        """Delete the draft of a summary."""
        self._database.write("draft", "DELETE FROM summary_drafts WHERE summary = ?", (summary,))


class TrialLog(Stored):
    """Stores the outcomes of models' attempts at summaries."""

    def add(self, trial: Trial) -> None:
        """Store a trial; only the newest 5,000 are kept."""
        with self._database.transaction("trial"):
            self._database.write("trial", _TRIALS.insert(), _TRIALS.values(trial))
            self._database.write(
                "trial", "DELETE FROM model_trials WHERE id <= (SELECT max(id) FROM model_trials) - ?", (_TRIALS_KEPT,)
            )

    def trials(
        self, *, model: str | None = None, content: str | None = None, refused_for: str | None = None, limit: int
    ) -> Sequence[Trial]:
        """Return up to `limit` trials, newest first; of the skipped ones, only those `refused_for` this, if given."""
        made = f"(verdict <> '{TrialVerdict.SKIPPED}' OR fault = ?)"
        condition, values = matching({"model = ?": model, "content = ?": content, made: refused_for})
        return self._database.find(_TRIALS, f"{condition} ORDER BY id DESC LIMIT ?", [*values, max(0, limit)])

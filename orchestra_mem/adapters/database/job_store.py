"""Store background work: the job queue and its leases, drafts of better summaries, and trials of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from orchestra_mem.adapters.database.event_log import SESSION_NUMBER
from orchestra_mem.adapters.database.ledger import SqlLedger, details_of
from orchestra_mem.adapters.database.statements import SqlDatabase, Stored, Table, limit_of, matching
from orchestra_mem.job_types import STALLED, Job, JobState, SummaryDraft, Trial
from orchestra_mem.types import Summary

_JOBS = Table("jobs", Job)
_DRAFTS = Table("summary_drafts", SummaryDraft)
_TRIALS = Table("model_trials", Trial)
# What is older says nothing of the model that is there now.
_TRIALS_KEPT = 5_000
_LEAD = "background"
_WANTED = "foreground of "
# Nothing waits as long as an hour, nor does a lease last: what seems to was written by a clock that was ahead.
_PAST = "({0} <= :now OR {0} > :now + 3600000000)"
_LASTS = f"NOT {_PAST.format('until')}"


class SqlJobQueue(Stored):
    """Fulfils `job_types.JobQueue`."""

    def put(self, subject: str, *, priority: int, now: datetime, most: int) -> bool:
        """Let a job wait; where it does already, or has failed, it is due now. Of more than `most` the last ones go.

        Returns:
            Whether it is among those that wait.
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
                "ORDER BY priority, id LIMIT ? OFFSET ?)",
                limit_of(None),
                most,
            )
            return self._exists("SELECT 1 FROM jobs WHERE subject = :subject", subject=subject)

    def take(self, owner: str, *, now: datetime, until: datetime) -> Job | None:
        """Give the first job that is due and note who works at it; those whose lease has run out wait again."""
        with self._database.transaction("job"):
            self._database.write(
                "job",
                "UPDATE jobs SET state = 'waiting', attempts = attempts + 1, error = :error, owner = NULL "
                f"WHERE state = 'running' AND {_PAST.format('until')}",
                {"error": STALLED, "now": now},
            )
            first = f"WHERE state = 'waiting' AND {_PAST.format('due')} ORDER BY priority, id LIMIT 1"
            found = self._database.find("job", _JOBS, first, {"now": now})
            if not found:
                return None
            self._write(
                "UPDATE jobs SET state = 'running', owner = ?, since = ?, until = ? WHERE id = ?",
                owner, now, until, found[0].id,
            )  # fmt: skip
        return replace(found[0], state=JobState.RUNNING, since=now)

    def renew(self, job: Job, *, until: datetime) -> None:
        """Go on working at a job."""
        self._write("UPDATE jobs SET until = ? WHERE id = ?", until, job.id)

    def finish(self, job: Job) -> None:
        """Note that a job is done."""
        self._write("DELETE FROM jobs WHERE id = ?", job.id)

    def give_back(self, job: Job, *, due: datetime) -> None:
        """Let a job that was interrupted wait again; nothing failed."""
        self._leave(job, JobState.WAITING, due, job.attempts, job.error)

    def fail(self, job: Job, error: str, *, due: datetime | None) -> None:
        """Note that an attempt failed; None where there is to be no other."""
        self._leave(job, JobState.WAITING if due else JobState.FAILED, due or job.due, job.attempts + 1, error)

    def _leave(self, job: Job, state: JobState, due: datetime, attempts: int, error: str) -> None:
        self._write(
            "UPDATE jobs SET state = ?, owner = NULL, attempts = ?, due = ?, error = ? WHERE id = ?",
            state, attempts, due, error, job.id,
        )  # fmt: skip

    def jobs(self) -> list[Job]:
        """Return all that are not done, those first that come first."""
        return self._database.find("listing jobs", _JOBS, "ORDER BY state = 'waiting', priority, id")

    def lead(self, owner: str, *, now: datetime, until: datetime) -> bool:
        """Become, or stay, the one that does background work; False where another is."""
        taken = self._database.write(
            "job",
            "INSERT INTO leases (name, owner, until) VALUES (:name, :owner, :until) ON CONFLICT (name) DO UPDATE "
            "SET owner = excluded.owner, until = excluded.until "
            f"WHERE leases.owner = excluded.owner OR {_PAST.format('leases.until')}",
            {"name": _LEAD, "owner": owner, "until": until, "now": now},
        )
        return taken.rowcount == 1

    def resign(self, owner: str) -> None:
        """Let another do background work; what this one was at waits again."""
        with self._database.transaction("job"):
            self._write("UPDATE jobs SET state = 'waiting', owner = NULL WHERE state = 'running' AND owner = ?", owner)
            self._write("DELETE FROM leases WHERE name = ? AND owner = ?", _LEAD, owner)

    def due(self, now: datetime) -> bool:
        """Return whether there is a job that could be taken now."""
        waiting, running = _PAST.format("due"), _PAST.format("until")
        return self._exists(
            f"SELECT 1 FROM jobs WHERE (state = 'waiting' AND {waiting}) OR (state = 'running' AND {running})", now=now
        )

    def another_leads(self, owner: str, now: datetime) -> bool:
        """Return whether background work is done by somebody else."""
        query = f"SELECT 1 FROM leases WHERE name = :name AND owner != :owner AND {_LASTS}"
        return self._exists(query, name=_LEAD, owner=owner, now=now)

    def announce(self, owner: str, *, until: datetime) -> None:
        """Tell who does background work elsewhere that the model is wanted here, until `withdraw`."""
        self._write(
            "INSERT INTO leases (name, owner, until) VALUES (?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET until = excluded.until",
            f"{_WANTED}{owner}", owner, until,
        )  # fmt: skip

    def withdraw(self, owner: str) -> None:
        """Note that the model is wanted here no longer."""
        self._write("DELETE FROM leases WHERE name = ?", f"{_WANTED}{owner}")

    def announced(self, owner: str, now: datetime) -> bool:
        """Return whether the model is wanted by anybody else."""
        query = f"SELECT 1 FROM leases WHERE name != :name AND owner != :owner AND {_LASTS}"
        return self._exists(query, name=_LEAD, owner=owner, now=now)

    def _write(self, query: str, *values: object) -> None:
        self._database.write("job", query, values)

    def _exists(self, query: str, **values: object) -> bool:
        return bool(self._database.rows("looking for jobs", f"{query} LIMIT 1", values))


class SqlDraftStore(Stored):
    """Fulfils `job_types.DraftStore`."""

    def __init__(self, database: SqlDatabase) -> None:
        super().__init__(database)
        self._ledger = SqlLedger(database)

    def put(self, draft: SummaryDraft) -> None:
        """Keep a draft; an earlier one of the same summary goes, unless it has just been placed."""
        with self._database.transaction("draft"):
            self._database.write(
                "draft", "DELETE FROM summary_drafts WHERE summary = ? AND placed = 0", (draft.summary,)
            )
            self._database.write("draft", f"{_DRAFTS.insert()} ON CONFLICT (summary) DO NOTHING", _DRAFTS.values(draft))

    def drafts(self, session: str | None = None) -> list[SummaryDraft]:
        """Return the drafts of a session's summaries, or of all, in the order of the summaries."""
        condition, values = matching(
            {f"(SELECT session FROM summaries WHERE id = summary) = {SESSION_NUMBER}": session}
        )
        return self._database.find("listing drafts", _DRAFTS, f"{condition} ORDER BY summary", values)

    def place(self, draft: SummaryDraft) -> Summary:
        """Let the draft be the summary's text in the ledger, and keep it, as placed, until it is dropped."""
        with self._database.transaction("improve"):
            summary = replace(
                self._ledger.summary(draft.summary),
                text=draft.text,
                tokens=draft.tokens,
                method=draft.method,
                must_keeps=draft.must_keeps,
                put_back=draft.put_back,
                verdict=draft.verdict,
                seconds=draft.seconds,
            )
            self._database.write(
                "improve",
                "UPDATE summaries SET text = ?, tokens = ?, method = ?, details = ? WHERE id = ?",
                (summary.text, summary.tokens, summary.method, details_of(summary), summary.id),
            )
            self._database.write("improve", "UPDATE summary_drafts SET placed = 1 WHERE summary = ?", (draft.summary,))
        return summary

    def drop(self, summary: int) -> None:
        """Forget a draft."""
        self._database.write("draft", "DELETE FROM summary_drafts WHERE summary = ?", (summary,))


class SqlTrialLog(Stored):
    """Fulfils `job_types.TrialLog`."""

    def add(self, trial: Trial) -> None:
        """Keep a trial; of many the oldest go."""
        with self._database.transaction("trial"):
            self._database.write("trial", _TRIALS.insert(), _TRIALS.values(trial))
            self._database.write(
                "trial",
                "DELETE FROM model_trials WHERE id <= (SELECT max(id) FROM model_trials) - ?",
                (_TRIALS_KEPT,),
            )

    def trials(self, *, model: str | None = None, content: str | None = None, limit: int) -> Sequence[Trial]:
        """Return the newest trials, newest first."""
        condition, values = matching({"model = ?": model, "content = ?": content})
        tail = f"{condition} ORDER BY id DESC LIMIT ?"
        return self._database.find("listing trials", _TRIALS, tail, [*values, max(0, limit)])

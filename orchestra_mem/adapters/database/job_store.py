"""Jobs and who works at them: the queue of background work."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import Any

from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.job_types import STALLED, Job, JobState
from orchestra_mem.serialize import from_microseconds, to_microseconds

_JOB = "SELECT id, summary, priority, state, attempts, due, since, error FROM jobs"
_LEAD = "background"
_WANTED = "foreground of "
# Nothing waits as long as an hour, nor does a lease last: what seems to was written by a clock that was ahead.
_PAST = "({0} <= :now OR {0} > :now + 3600000000)"
_LASTS = f"NOT {_PAST.format('until')}"


class SqliteJobQueue:
    """Fulfils `job_types.JobQueue`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, summary: int, *, priority: int, now: datetime, most: int) -> bool:
        """Let a job wait; where it does already, or has failed, it is due now. Of more than `most` the last ones go.

        Returns:
            Whether it is among those that wait.
        """
        with self._database.transaction("job") as connection:
            connection.execute(
                "INSERT INTO jobs (summary, priority, state, due) VALUES (?, ?, 'waiting', ?) "
                "ON CONFLICT (summary) DO UPDATE SET priority = min(priority, excluded.priority), due = excluded.due, "
                "attempts = 0, error = '', state = iif(state = 'failed', 'waiting', state)",
                (summary, priority, to_microseconds(now)),
            )
            connection.execute(
                "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE state = 'waiting' "
                "ORDER BY priority, id LIMIT -1 OFFSET ?)",
                (most,),
            )
            return bool(connection.execute("SELECT 1 FROM jobs WHERE summary = ?", (summary,)).fetchone())

    def take(self, owner: str, *, now: datetime, until: datetime) -> Job | None:
        """Give the first job that is due and note who works at it; those whose lease has run out wait again."""
        time = to_microseconds(now)
        with self._database.transaction("job") as connection:
            connection.execute(
                "UPDATE jobs SET state = 'waiting', attempts = attempts + 1, error = :error, owner = NULL "
                f"WHERE state = 'running' AND {_PAST.format('until')}",
                {"error": STALLED, "now": time},
            )
            row = connection.execute(
                f"{_JOB} WHERE state = 'waiting' AND {_PAST.format('due')} ORDER BY priority, id LIMIT 1",
                {"now": time},
            ).fetchone()
            if row is None:
                return None
            connection.execute(
                "UPDATE jobs SET state = 'running', owner = ?, since = ?, until = ? WHERE id = ?",
                (owner, time, to_microseconds(until), row[0]),
            )
        return _job((*row[:3], JobState.RUNNING.value, row[4], row[5], time, row[7]))

    def renew(self, job: Job, *, until: datetime) -> None:
        """Go on working at a job."""
        with self._database.transaction("job") as connection:
            connection.execute("UPDATE jobs SET until = ? WHERE id = ?", (to_microseconds(until), job.id))

    def finish(self, job: Job) -> None:
        """Note that a job is done."""
        with self._database.transaction("job") as connection:
            connection.execute("DELETE FROM jobs WHERE id = ?", (job.id,))

    def give_back(self, job: Job, *, due: datetime) -> None:
        """Let a job that was interrupted wait again; nothing failed."""
        with self._database.transaction("job") as connection:
            _wait(connection, job, due, attempts=job.attempts, error=job.error)

    def fail(self, job: Job, error: str, *, due: datetime | None) -> None:
        """Note that an attempt failed; None where there is to be no other."""
        with self._database.transaction("job") as connection:
            _wait(connection, job, due or job.due, attempts=job.attempts + 1, error=error)
            if due is None:
                connection.execute("UPDATE jobs SET state = 'failed' WHERE id = ?", (job.id,))

    def jobs(self) -> list[Job]:
        """All that are not done, those first that come first."""
        with self._database.reading("listing jobs") as connection:
            rows = connection.execute(f"{_JOB} ORDER BY state = 'waiting', priority, id").fetchall()
        return [_job(row) for row in rows]

    def lead(self, owner: str, *, now: datetime, until: datetime) -> bool:
        """Become, or stay, the one that does background work; False where another is."""
        with self._database.transaction("job") as connection:
            cursor = connection.execute(
                "INSERT INTO leases (name, owner, until) VALUES (:name, :owner, :until) ON CONFLICT (name) DO UPDATE "
                "SET owner = excluded.owner, until = excluded.until "
                f"WHERE owner = excluded.owner OR {_PAST.format('until')}",
                {"name": _LEAD, "owner": owner, "until": to_microseconds(until), "now": to_microseconds(now)},
            )
            return cursor.rowcount == 1

    def resign(self, owner: str) -> None:
        """Let another do background work; what this one was at waits again."""
        with self._database.transaction("job") as connection:
            connection.execute(
                "UPDATE jobs SET state = 'waiting', owner = NULL WHERE state = 'running' AND owner = ?", (owner,)
            )
            connection.execute("DELETE FROM leases WHERE name = ? AND owner = ?", (_LEAD, owner))

    def due(self, now: datetime) -> bool:
        """Whether there is a job that could be taken now."""
        waiting, running = _PAST.format("due"), _PAST.format("until")
        return self._exists(
            f"SELECT 1 FROM jobs WHERE (state = 'waiting' AND {waiting}) OR (state = 'running' AND {running})", now
        )

    def another_leads(self, owner: str, now: datetime) -> bool:
        """Whether background work is done by somebody else."""
        return self._exists(
            f"SELECT 1 FROM leases WHERE name = :name AND owner != :owner AND {_LASTS}", now, name=_LEAD, owner=owner
        )

    def announce(self, owner: str, *, until: datetime) -> None:
        """Tell who does background work elsewhere that the model is wanted here, until `withdraw`."""
        with self._database.transaction("job") as connection:
            connection.execute(
                "INSERT INTO leases (name, owner, until) VALUES (?, ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET until = excluded.until",
                (f"{_WANTED}{owner}", owner, to_microseconds(until)),
            )

    def withdraw(self, owner: str) -> None:
        """Note that the model is wanted here no longer."""
        with self._database.transaction("job") as connection:
            connection.execute("DELETE FROM leases WHERE name = ?", (f"{_WANTED}{owner}",))

    def announced(self, owner: str, now: datetime) -> bool:
        """Whether the model is wanted by anybody else."""
        return self._exists(
            f"SELECT 1 FROM leases WHERE name != :name AND owner != :owner AND {_LASTS}", now, name=_LEAD, owner=owner
        )

    def _exists(self, query: str, now: datetime, **values: str) -> bool:
        with self._database.reading("looking for jobs") as connection:
            found = connection.execute(f"{query} LIMIT 1", {**values, "now": to_microseconds(now)}).fetchone()
        return found is not None


def _wait(connection: sqlite3.Connection, job: Job, due: datetime, *, attempts: int, error: str) -> None:
    connection.execute(
        "UPDATE jobs SET state = 'waiting', owner = NULL, attempts = ?, due = ?, error = ? WHERE id = ?",
        (attempts, to_microseconds(due), error, job.id),
    )


def _job(row: Any) -> Job:
    number, summary, priority, state, attempts, due, since, error = row
    return Job(
        id=number,
        summary=summary,
        priority=priority,
        state=JobState(state),
        attempts=attempts,
        due=from_microseconds(due),
        since=from_microseconds(since) if since is not None else None,
        error=error,
    )

"""The event log: operations, immutable and numbered, and the sessions they belong to."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import datetime
from typing import Any

from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.errors import NotFoundError
from orchestra_mem.serialize import dump_json, from_microseconds, load_json, to_microseconds
from orchestra_mem.types import Operation, OperationFilter, Session, SessionStatus, UnrecordedOperation

_MOST = 2**63 - 1
_OPERATION = (
    "SELECT o.id, s.id, o.type, o.data, o.timestamp, o.tokens, o.entry_tokens, o.agent, o.critical, o.idempotency_key "
    "FROM operations o JOIN sessions s ON s.number = o.session"
)
_SESSION = "SELECT id, started, status, spilled_through, judged_through, ended, archive FROM sessions"


class SqliteEventLog:
    """Fulfils `ports.EventLog`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, draft: UnrecordedOperation, new_session: Callable[[], Session]) -> tuple[Operation, bool]:
        """Record an operation in the live session, or in a new one; when this returns it is committed."""
        data = dump_json(draft.data)
        with self._database.transaction("record") as connection:
            if draft.idempotency_key is not None:
                row = connection.execute(
                    f"{_OPERATION} WHERE o.idempotency_key = ?", (draft.idempotency_key,)
                ).fetchone()
                if row is not None:
                    return _operation(row), False
            number, session = self._live_number(connection) or _insert_session(connection, new_session())
            cursor = connection.execute(
                "INSERT INTO operations (session, type, timestamp, tokens, entry_tokens, agent, critical, "
                "idempotency_key, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    number,
                    draft.type,
                    to_microseconds(draft.timestamp),
                    draft.tokens,
                    draft.entry_tokens,
                    draft.agent,
                    draft.critical,
                    draft.idempotency_key,
                    data,
                ),
            )
            operation = Operation(
                id=int(cursor.lastrowid or 0),
                session=session,
                type=draft.type,
                data=draft.data,
                timestamp=draft.timestamp,
                tokens=draft.tokens,
                entry_tokens=draft.entry_tokens,
                agent=draft.agent,
                critical=draft.critical,
                idempotency_key=draft.idempotency_key,
            )
        return operation, True

    @staticmethod
    def _live_number(connection: sqlite3.Connection) -> tuple[int, str] | None:
        row: tuple[int, str] | None = connection.execute(
            "SELECT number, id FROM sessions WHERE status = 'active' ORDER BY number DESC LIMIT 1"
        ).fetchone()
        return row

    def operation(self, operation_id: int) -> Operation:
        """One operation by its id.

        Raises:
            NotFoundError: there is none.
        """
        with self._database.reading("reading an operation") as connection:
            row = connection.execute(f"{_OPERATION} WHERE o.id = ?", (operation_id,)).fetchone()
        if row is None:
            raise NotFoundError(f"there is no operation {operation_id}; `orchestra-mem ops` lists them")
        return _operation(row)

    def operations(self, where: OperationFilter) -> list[Operation]:
        """The operations that pass a filter, in the order of their ids; of more than `limit` the newest."""
        clauses, values = _where(where)
        query = _OPERATION + (" WHERE " + " AND ".join(clauses) if clauses else "") + " ORDER BY o.id DESC"
        if where.limit is not None:
            query += " LIMIT ?"
            values.append(_comparable(where.limit))
        with self._database.reading("listing operations") as connection:
            rows = connection.execute(query, values).fetchall()
        return [_operation(row) for row in reversed(rows)]

    def outline(self, session: str, after: int) -> list[tuple[int, int, datetime]]:
        """Id, tokens of the entry, and time of a session's operations behind an id, without their data."""
        with self._database.reading("listing operations") as connection:
            rows = connection.execute(
                "SELECT o.id, o.entry_tokens, o.timestamp FROM operations o JOIN sessions s ON s.number = o.session "
                "WHERE s.id = ? AND o.id > ? ORDER BY o.id",
                (session, after),
            ).fetchall()
        return [(number, tokens, from_microseconds(time)) for number, tokens, time in rows]

    def count(self, session: str | None = None) -> int:
        """The number of operations, of one session or of all."""
        with self._database.reading("counting operations") as connection:
            if session is None:
                row = connection.execute("SELECT count(*) FROM operations").fetchone()
            else:
                row = connection.execute(
                    "SELECT count(*) FROM operations WHERE session = (SELECT number FROM sessions WHERE id = ?)",
                    (session,),
                ).fetchone()
        return int(row[0])

    def type_counts(self, session: str) -> dict[str, tuple[int, int]]:
        """For each type of operation in a session how many there are and the tokens that they used."""
        with self._database.reading("counting operations") as connection:
            rows = connection.execute(
                "SELECT type, count(*), sum(tokens) FROM operations "
                "WHERE session = (SELECT number FROM sessions WHERE id = ?) GROUP BY type ORDER BY min(id)",
                (session,),
            ).fetchall()
        return {kind: (count, tokens) for kind, count, tokens in rows}

    def first_operation(self, session: str) -> int:
        """The id of a session's first operation, 0 where it has none."""
        with self._database.reading("reading the first operation") as connection:
            row = connection.execute(
                "SELECT coalesce(min(o.id), 0) FROM operations o "
                "JOIN sessions s ON s.number = o.session WHERE s.id = ?",
                (session,),
            ).fetchone()
        return int(row[0])

    def last_operation(self) -> int:
        """The id of the newest operation, 0 where there is none."""
        with self._database.reading("reading the last operation") as connection:
            return int(connection.execute("SELECT coalesce(max(id), 0) FROM operations").fetchone()[0])

    def live_session(self) -> Session | None:
        """The session that operations go to, if one is under way."""
        with self._database.reading("reading the session") as connection:
            row = connection.execute(f"{_SESSION} WHERE status = 'active' ORDER BY number DESC LIMIT 1").fetchone()
        return _session(row) if row else None

    def session(self, session_id: str) -> Session:
        """A session by its id, or by the beginning of it where that is unambiguous.

        Raises:
            NotFoundError: there is none, or several begin so.
        """
        wanted = _comparable(session_id)
        with self._database.reading("reading a session") as connection:
            rows = connection.execute(f"{_SESSION} WHERE id = ?", (wanted,)).fetchall()
            if not rows:
                rows = connection.execute(
                    f"{_SESSION} WHERE substr(id, 1, ?) = ? ORDER BY number LIMIT 2", (len(session_id), wanted)
                ).fetchall()
        if len(rows) != 1:
            found = "several sessions begin" if rows else "no session begins"
            raise NotFoundError(f"{found} with {session_id!r}; `orchestra-mem sessions` lists them")
        return _session(rows[0])

    def sessions(self) -> list[Session]:
        """All sessions, oldest first."""
        with self._database.reading("listing sessions") as connection:
            return [_session(row) for row in connection.execute(f"{_SESSION} ORDER BY number")]

    def set_spilled(self, session: str, through: int) -> None:
        """Note that the operations up to `through` stand in the session document."""
        with self._database.transaction("spill") as connection:
            connection.execute("UPDATE sessions SET spilled_through = ? WHERE id = ?", (through, session))

    def begin_flush(self, session: str, closing: str) -> bool:
        """Close a session to new operations and keep its closing text.

        False where operations that do not stand in its document have come in meanwhile; then nothing is changed.
        """
        with self._database.transaction("flush") as connection:
            changed = connection.execute(
                "UPDATE sessions SET status = 'flushing', closing = ? "
                "WHERE id = ? AND status = 'active' AND NOT EXISTS "
                "(SELECT 1 FROM operations o WHERE o.session = sessions.number AND o.id > sessions.spilled_through)",
                (closing, session),
            ).rowcount
        return changed == 1

    def flushing(self) -> list[tuple[Session, str]]:
        """Sessions whose flush has begun and not ended, each with its closing text."""
        with self._database.reading("reading sessions") as connection:
            rows = connection.execute(
                _SESSION.replace(" FROM", ", closing FROM") + " WHERE status = 'flushing' ORDER BY number"
            ).fetchall()
        return [(_session(row[:-1]), row[-1] or "") for row in rows]

    def end_session(self, session: str, *, ended: datetime, archive: str) -> None:
        """Note where a flushed session's document lies."""
        with self._database.transaction("archive") as connection:
            connection.execute(
                "UPDATE sessions SET status = 'archived', ended = ?, archive = ? WHERE id = ?",
                (to_microseconds(ended), archive, session),
            )


def _comparable(value: object) -> object:
    """A value to compare with, as SQLite takes it: what is stored has no lone surrogate and no more than 64 bits."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return max(-_MOST, min(value, _MOST)) if isinstance(value, int) else value


def _where(where: OperationFilter) -> tuple[list[str], list[object]]:
    clauses: list[str] = []
    values: list[object] = []
    for clause, value in (
        ("o.session = (SELECT number FROM sessions WHERE id = ?)", where.session),
        ("o.type = ?", where.type),
        ("o.agent = ?", where.agent),
        ("o.timestamp >= ?", to_microseconds(where.since) if where.since else None),
        ("o.timestamp < ?", to_microseconds(where.until) if where.until else None),
        ("o.id > ?", where.after),
        ("o.id <= ?", where.through),
    ):
        if value is not None:
            clauses.append(clause)
            values.append(_comparable(value))
    return clauses, values


def _insert_session(connection: sqlite3.Connection, session: Session) -> tuple[int, str]:
    cursor = connection.execute(
        "INSERT INTO sessions (id, started, status) VALUES (?, ?, ?)",
        (session.id, to_microseconds(session.started), session.status.value),
    )
    return int(cursor.lastrowid or 0), session.id


def _operation(row: Any) -> Operation:
    number, session, kind, data, time, tokens, entry_tokens, agent, critical, key = row
    return Operation(
        id=int(number),
        session=session,
        type=kind,
        data=load_json(data),
        timestamp=from_microseconds(time),
        tokens=tokens,
        entry_tokens=entry_tokens,
        agent=agent,
        critical=bool(critical),
        idempotency_key=key,
    )


def _session(row: Any) -> Session:
    key, started, status, spilled, judged, ended, archive = row
    return Session(
        id=key,
        started=from_microseconds(started),
        status=SessionStatus(status),
        spilled_through=spilled,
        judged_through=judged,
        ended=from_microseconds(ended) if ended is not None else None,
        archive=archive,
    )

"""Store of the event log: numbered, immutable operations, their sessions, and the refreshes of the window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from orchestra_mem.errors import NotFoundError
from orchestra_mem.serialize import from_microseconds
from orchestra_mem.stores.statements import FreeText, Stored, Table, limit_of, matching
from orchestra_mem.types import STORED_ITEM, Operation, OperationFilter, Session, WindowRefresh

SESSION_NUMBER = "(SELECT number FROM sessions WHERE id = ?)"
"""SQL expression for the `session` column of operations and summaries: the number of the session with a given id."""
_OPERATIONS = Table(
    "operations", Operation, read={"session": "(SELECT id FROM sessions WHERE number = operations.session)"}
)
_DRAFTS = Table("operations", Operation, but=("id", "session"))
_SESSIONS = Table("sessions", Session)
_REFRESHES = Table("refreshes", WindowRefresh)
FREE_TEXT = (
    FreeText("operations", ("type", "agent", "idempotency_key"), json=("data",)),
    FreeText("sessions", ("closing",)),
)
_IS_SHOWN = f"(type <> '{STORED_ITEM}' OR idempotency_key IS NULL)"
_LIVE = "WHERE status = 'active' ORDER BY number DESC LIMIT 1"
# A single statement takes one round trip to a server. It returns no row if no session is live or the key is known.
_RECORD = (
    f"{_DRAFTS.insert_from('session', f'number FROM sessions {_LIVE}')} "
    "ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING "
    "RETURNING id, (SELECT id FROM sessions WHERE number = operations.session)"
)


def _passing(where: OperationFilter) -> tuple[str, list[object]]:
    """Return the WHERE clause of a filter and its values."""
    return matching(
        {
            f"session = {SESSION_NUMBER}": where.session,
            "type = ?": where.type,
            "type NOT IN (?)": where.except_types,
            "agent = ?": where.agent,
            "agent IN (?)": where.agents,
            "timestamp >= ?": where.since,
            "timestamp < ?": where.until,
            "id > ?": where.after,
            "id <= ?": where.through,
            "idempotency_key = ?": where.idempotency_key,
            "idempotency_key >= ?": where.idempotency_prefix,
            "idempotency_key < ?": where.idempotency_prefix and f"{where.idempotency_prefix}\U0010ffff",  # sorts last
        }
    )


class EventLog(Stored):
    """Stores operations, immutable and numbered, and the sessions that they belong to."""

    _begun = False  # whether this object has recorded an operation, so that a session is probably live

    def append(self, draft: Operation, new_session: Callable[[], Session]) -> tuple[Operation, bool]:
        """Record and commit an operation, in a new session if none is live.

        Returns the stored operation and whether it is new: False if its idempotency key was recorded before.
        """
        values, key = _DRAFTS.values(draft), draft.idempotency_key
        row = self._database.write("record", _RECORD, values).row if self._begun else None
        if row is None:
            with self._database.transaction("record"):
                if key is not None and (known := self.operations(OperationFilter(idempotency_key=key))):
                    return known[0], False
                if self.live_session() is None:
                    self._database.write("record", _SESSIONS.insert(), _SESSIONS.values(new_session()))
                row = self._database.write("record", _RECORD, values).row
            self._begun = True
        number, session = row
        return replace(draft, id=number, session=session), True

    def operation(self, operation_id: int) -> Operation:
        """Return one operation by its id.

        Raises:
            NotFoundError: No such operation exists.
        """
        missing = f"there is no operation {operation_id}; `orchestra-mem ops` lists them"
        return self._database.one(_OPERATIONS, "id = ?", operation_id, missing)

    def operations(self, where: OperationFilter) -> list[Operation]:
        """Return the operations that match a filter, by ascending id; with a `limit`, the newest ones."""
        condition, values = _passing(where)
        tail = f"{condition} ORDER BY id DESC LIMIT ? OFFSET ?"
        values += [limit_of(where.limit), where.offset]
        return self._database.find(_OPERATIONS, tail, values)[::-1]

    def outline(self, session: str, after: int) -> list[tuple[int, int, datetime]]:
        """Return (id, entry tokens, time) of the operations after id `after` that a session's document shows."""
        query = (
            "SELECT id, entry_tokens, timestamp FROM operations "
            f"WHERE session = {SESSION_NUMBER} AND id > ? AND {_IS_SHOWN} ORDER BY id"
        )
        rows = self._database.rows(query, (session, after))
        return [(number, tokens, from_microseconds(time)) for number, tokens, time in rows]

    def count(self, where: OperationFilter | None = None) -> int:
        """Return the number of operations that match a filter, ignoring its limit and offset."""
        condition, values = _passing(where or OperationFilter())
        return int(self._database.value(f"SELECT count(*) FROM operations{condition}", values))

    def type_counts(self, session: str) -> dict[str, tuple[int, int]]:
        """Return the count and the used tokens of each operation type in a session, in order of first use."""
        query = f"SELECT type, count(*), sum(tokens) FROM operations WHERE session = {SESSION_NUMBER} "
        rows = self._database.rows(f"{query}GROUP BY type ORDER BY min(id)", (session,))
        return {kind: (count, tokens) for kind, count, tokens in rows}

    def used_tokens(self, session: str, after: int, through: int) -> int:
        """Return the sum of the used tokens of a session's operations after id `after` up to `through`."""
        query = f"SELECT coalesce(sum(tokens), 0) FROM operations WHERE session = {SESSION_NUMBER} AND {_IS_SHOWN} "
        return int(self._database.value(f"{query}AND id > ? AND id <= ?", (session, after, through)))

    def agents(self, session: str) -> list[str]:
        """Return the names of the agents with operations in a session, sorted."""
        query = f"SELECT DISTINCT agent FROM operations WHERE session = {SESSION_NUMBER} AND agent IS NOT NULL"
        return sorted(agent for (agent,) in self._database.rows(query, (session,)))

    def first_operation(self, session: str) -> int:
        """Return the id of a session's first operation, 0 if it has none."""
        query = f"SELECT coalesce(min(id), 0) FROM operations WHERE session = {SESSION_NUMBER}"
        return int(self._database.value(query, (session,)))

    def last_operation(self) -> int:
        """Return the id of the newest operation, 0 if there is none."""
        return int(self._database.value("SELECT coalesce(max(id), 0) FROM operations"))

    def live_session(self) -> Session | None:
        """Return the session that new operations are recorded in, None if no session is active."""
        found = self._database.find(_SESSIONS, _LIVE)
        return found[0] if found else None

    def session(self, session_id: str) -> Session:
        """Return a session by its id or by an unambiguous prefix of its id.

        Raises:
            NotFoundError: No session matches, or several share the prefix.
        """
        found = self._database.find(_SESSIONS, "WHERE id = ?", (session_id,))
        if not found:
            tail = "WHERE substr(id, 1, ?) = ? ORDER BY number LIMIT 2"
            found = self._database.find(_SESSIONS, tail, (len(session_id), session_id))
        if len(found) != 1:
            problem = "several session ids start" if found else "no session id starts"
            raise NotFoundError(f"{problem} with {session_id!r}; `orchestra-mem sessions` lists them")
        return found[0]

    def sessions(self) -> list[Session]:
        """Return all sessions, oldest first."""
        return self._database.find(_SESSIONS, "ORDER BY number")

    def set_spilled(self, session: str, through: int) -> None:
        """Record that the session document contains the operations up to `through`."""
        self._database.write("spill", "UPDATE sessions SET spilled_through = ? WHERE id = ?", (through, session))

    def begin_flush(self, session: str, closing: str) -> bool:
        """Close a session to new operations and store its closing text.

        Returns False, changing nothing, if the session is not active or has operations still to be spilled.
        """
        changed = self._database.write(
            "flush",
            "UPDATE sessions SET status = 'flushing', closing = ? WHERE id = ? AND status = 'active' AND NOT EXISTS "
            "(SELECT 1 FROM operations o WHERE o.session = sessions.number AND o.id > sessions.spilled_through "
            f"AND {_IS_SHOWN})",
            (closing, session),
        )
        return changed.rowcount == 1

    def flushing(self) -> list[tuple[Session, str]]:
        """Return the sessions with an unfinished flush, each with its closing text; an empty list if read-only."""
        if self._database.read_only:  # a flush cannot be finished without writing
            return []
        query = f"SELECT {_SESSIONS.columns}, closing FROM sessions WHERE status = 'flushing' ORDER BY number"
        return [(_SESSIONS.load(row), row[-1] or "") for row in self._database.rows(query)]

    def end_session(self, session: str, *, ended: datetime, archive: str) -> None:
        """Mark a flushed session as archived, with its end time and the path of its document."""
        self._database.write(
            "archive",
            "UPDATE sessions SET status = 'archived', ended = ?, archive = ? WHERE id = ?",
            (ended, archive, session),
        )

    def closing(self, session: str) -> str:
        """Return the closing text of a flushed session."""
        query = "SELECT closing FROM sessions WHERE id = ?"
        return str(self._database.value(query, [session]) or "")

    def forget_archive(self, session: str) -> None:
        """Record that the archived document of a session has been deleted."""
        self._database.write("archive", "UPDATE sessions SET archive = NULL WHERE id = ?", (session,))

    def add_refresh(self, refresh: WindowRefresh) -> None:
        """Record a refresh of the window."""
        self._database.write("refresh", _REFRESHES.insert(), _REFRESHES.values(refresh))

    def last_refresh(self) -> int:
        """Return the id of the last operation before the latest refresh, 0 if there was no refresh."""
        return int(self._database.value("SELECT coalesce(max(operation), 0) FROM refreshes"))

    def window_usage(self, limit: int) -> tuple[list[tuple[int, datetime, int]], list[WindowRefresh]]:
        """Return (id, time, tokens) of about the `limit` newest operations, and the refreshes in that range.

        If a refresh precedes these operations, the range is extended back to it: this refresh is the first in the list.
        """
        begin = max(0, self.last_operation() - limit)
        query = "SELECT coalesce(max(operation), ?) FROM refreshes WHERE operation <= ?"
        begin = int(self._database.value(query, (begin, begin)))
        query = "SELECT id, timestamp, tokens FROM operations WHERE id > ? ORDER BY id"
        found = self._database.rows(query, (begin,))
        rows = [(id_, from_microseconds(time), tokens) for id_, time, tokens in found]
        return rows, self._database.find(_REFRESHES, "WHERE operation >= ? ORDER BY id", (begin,))

"""What was recorded, as the event log has it: a memory's calls that list and count operations and sessions."""

from __future__ import annotations

from orchestra_mem.core.context.window import MAX_POINTS, UsageEvent, UsagePoint, past_usage
from orchestra_mem.memory.lifecycle import Lifecycle
from orchestra_mem.memory.parts import MemoryLock, MemoryParts
from orchestra_mem.types import Operation, OperationFilter, Session, Summary


class HistoryCalls:
    """The calls of a memory that concern its history; `OrchestratorContextManager` has them."""

    _parts: MemoryParts
    _lock: MemoryLock
    _life: Lifecycle

    def query_recent_operations(self, operation_type: str | None = None, limit: int = 10) -> list[Operation]:
        """The newest operations, newest first, of one type if given; from older sessions too where these are few."""
        with self._life.settled():
            found = self._parts.working.get_operations(operation_type, limit)
        if len(found) >= limit:
            return found
        return self._parts.log.operations(OperationFilter(type=operation_type, limit=max(0, limit)))[::-1]

    def operations(self, where: OperationFilter | None = None) -> list[Operation]:
        """Return operations of all sessions from the event log, oldest first."""
        self._lock.check()
        return self._parts.log.operations(where or OperationFilter())

    def count_operations(self, where: OperationFilter | None = None) -> int:
        """Count the operations that pass a filter, whatever its limit."""
        self._lock.check()
        return self._parts.log.count(where)

    def window_history(self, limit: int = MAX_POINTS) -> list[UsagePoint]:
        """Return how full the window was after the newest operations and refreshes, oldest first, and is now.

        Of whatever process recorded, and after any restart.
        """
        self._lock.check()
        points = past_usage(*self._parts.log.window_usage(limit))
        used, last = self._parts.tracker.used_tokens(), points[-1].used_tokens if points else 0
        if used != last:  # as the model's server told, or as this process counts what it has begun with
            now = UsagePoint(
                sequence=len(points) + 1, time=self._parts.clock(), before_tokens=last, used_tokens=used,
                event=UsageEvent.REPORTED,
            )  # fmt: skip
            points.append(now)
        return points

    def sessions(self) -> list[Session]:
        """Return all sessions, oldest first."""
        self._lock.check()
        return self._parts.log.sessions()

    def session_agents(self, session: str) -> list[str]:
        """Return the agents that did something in a session, by their names."""
        self._lock.check()
        return self._parts.log.agents(session)

    def session_document(self, session: str) -> str:
        """Return the document of a session, under way or ended, as it can be shown; empty where it has been removed.

        Raises:
            NotFoundError: there is no such session.
        """
        self._lock.check()
        return self._parts.session.readable_text(self._parts.log.session(session))

    def summaries(self, session: str) -> list[Summary]:
        """Return the summaries of a session's operations, and those of summaries, in the order of what they cover."""
        self._lock.check()
        return self._parts.ledger.summaries(session)

    def session_summary(self, session: str) -> Summary | None:
        """Return what an ended session came to; None where it goes on, or was shorter than its summary."""
        self._lock.check()
        found = [each for each in self._parts.ledger.whole_summaries(session) if not each.document]
        return found[-1] if found else None

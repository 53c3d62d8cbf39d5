"""What was recorded, as the event log has it: a memory's calls that list and count operations and sessions."""

from __future__ import annotations

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

    def sessions(self) -> list[Session]:
        """Return all sessions, oldest first."""
        self._lock.check()
        return self._parts.log.sessions()

    def session_agents(self, session: str) -> list[str]:
        """Return the agents that did something in a session, by their names."""
        self._lock.check()
        return self._parts.log.agents(session)

    def session_summary(self, session: str) -> Summary | None:
        """Return what an ended session came to; None where it goes on, or was shorter than its summary."""
        self._lock.check()
        found = [each for each in self._parts.ledger.whole_summaries(session) if not each.document]
        return found[-1] if found else None

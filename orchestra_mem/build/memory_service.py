"""MemoryService: sessions and workers' observations by the names of the source design, over the one memory.

An observation is an operation whose agent is the worker. Nothing is stored beside the memory: what a session was given
when it began, and what was said of it at its end, are operations as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestra_mem.errors import ClosedError, InvalidChangeError, NotFoundError
from orchestra_mem.search_types import EVERYTHING, SearchFilter, SearchMode
from orchestra_mem.types import Json, Operation, OperationFilter, Session, SessionStatus

if TYPE_CHECKING:
    from orchestra_mem.memory.agent_view import AgentMemory
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.retrieval.search import Answer

_STARTED, _SUMMED_UP = "session_start", "session_summary"


class ObservationType(StrEnum):
    """What a worker's observation tells; those of the source design."""

    STATE_CHANGE = "state_change"
    PR_EVENT = "pr_event"
    ERROR = "error"
    TASK_COMPLETE = "task_complete"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewObservation:
    """What a worker did or saw. `session_id` is the session under way where it is None; `metadata` is any JSON."""

    worker_id: str
    content: str
    type: ObservationType = ObservationType.CUSTOM
    session_id: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a worker did or saw, as it was recorded. `worker_id` is None for what no worker did.

    `type` is one of `ObservationType`, or the type of an operation that was recorded in another way.
    """

    id: int
    session_id: str
    worker_id: str | None
    type: str
    content: str
    metadata: Mapping[str, Json]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationFilter:
    """Which observations are wanted: all that pass every condition given, the newest `limit` behind `offset`."""

    worker_id: str | None = None
    session_id: str | None = None
    type: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = 100
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A session: how many workers it had, what came of it, and what it was given when it began."""

    id: str
    started_at: datetime
    ended_at: datetime | None
    worker_count: int
    summary: str | None
    metadata: Mapping[str, Json]


class MemoryService:
    """The memory of an orchestrator and its workers. Safe to share between threads; all of it survives a restart.

    Args:
        memory: the project's folder, or an open memory: that stays the caller's to close. An agent's view of one
            gives what that agent may see, and records in its name.
        config: settings as `open_memory` takes them.
    """

    def __init__(
        self,
        memory: str | Path | OrchestratorContextManager | AgentMemory = ".",
        *,
        config: Mapping[str, object] | None = None,
    ) -> None:
        self._project = memory if isinstance(memory, str | Path) else None
        self._opened: Any = None if self._project is not None else memory
        self._config = config

    # Lifecycle

    def initialize(self) -> None:
        """Open the memory; the first time makes it. A session that was under way goes on.

        Raises:
            ConfigError: settings that cannot be used.
            StorageError: the folder or what lies in it cannot be used.
        """
        if self._opened is None and self._project is not None:
            from orchestra_mem.build import open_memory

            self._opened = open_memory(self._project, config=self._config)

    def shutdown(self) -> None:
        """Close the memory that `initialize` opened. The session goes on with the next start."""
        if self._project is not None and self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def _memory(self) -> Any:
        if self._opened is None:
            raise ClosedError("this memory service is not open; call initialize() first")
        return self._opened

    # Sessions

    def start_session(self, metadata: Mapping[str, Json] | None = None) -> str:
        """Begin a session and return its id. One that is under way ends first, as `end_session` ends it."""
        if self._memory.session_memory.session is not None:
            self._memory.flush_session()
        data = {"text": "A session was started.", "metadata": dict(metadata or {})}
        begun: Operation = self._memory.record_operation(_STARTED, data, 0, critical=False)
        return begun.session

    def end_session(self, session_id: str, summary: str | None = None) -> None:
        """End the session under way: keep what is said of it, sum it up, archive its document.

        Raises:
            NotFoundError: there is no such session.
            InvalidChangeError: it has ended already.
        """
        self._require_live(session_id)
        if summary:
            self._memory.record_operation(_SUMMED_UP, {"text": summary}, 0)
        self._memory.flush_session()

    def session(self, session_id: str) -> SessionRecord:
        """Return a session.

        Raises:
            NotFoundError: there is none with this id.
        """
        return self._record(self._find(session_id))

    def sessions(self, limit: int | None = None, offset: int = 0) -> list[SessionRecord]:
        """Return sessions, newest first."""
        found: list[Session] = self._memory.sessions()[::-1]
        return [self._record(each) for each in found[offset : None if limit is None else offset + limit]]

    def _find(self, session_id: str) -> Session:
        found: Session | None = next((each for each in self._memory.sessions() if each.id == session_id), None)
        if found is None:
            raise NotFoundError(f"there is no session {session_id!r}")
        return found

    def _require_live(self, session_id: str) -> None:
        if self._find(session_id).status is not SessionStatus.ACTIVE:
            raise InvalidChangeError(f"session {session_id} has ended; what is recorded now goes to the next one")

    def _record(self, session: Session) -> SessionRecord:
        metadata: dict[str, Json] = {}
        for begun in self._memory.operations(OperationFilter(session=session.id, type=_STARTED)):
            metadata |= observation_of(begun).metadata
        said = self._memory.operations(OperationFilter(session=session.id, type=_SUMMED_UP, limit=1))
        own = self._memory.session_summary(session.id)
        return SessionRecord(
            id=session.id,
            started_at=session.started,
            ended_at=session.ended,
            worker_count=len(self._memory.session_agents(session.id)),
            summary=observation_of(said[0]).content if said else own and own.text,
            metadata=metadata,
        )

    # Observations

    def capture_observation(self, observation: NewObservation) -> int:
        """Record what a worker did or saw, and return its id. When this returns it is kept for good.

        Raises:
            NotFoundError: there is no such session.
            InvalidChangeError: its session has ended.
            InvalidOperationError: something cannot be recorded; the message says what.
        """
        if observation.session_id is not None:
            self._require_live(observation.session_id)
        data: dict[str, Json] = {"text": observation.content}
        if observation.metadata:
            data["metadata"] = dict(observation.metadata)
        recorded: Operation = self._memory.record_operation(observation.type.value, data, agent=observation.worker_id)
        return recorded.id

    def get_observations(self, where: ObservationFilter | None = None) -> list[Observation]:
        """Return observations, newest first."""
        found: list[Operation] = self._memory.operations(_as_operations(where or ObservationFilter()))
        return [observation_of(each) for each in found[::-1]]

    def count_observations(self, where: ObservationFilter | None = None) -> int:
        """Count what `get_observations` would return without a limit."""
        return int(self._memory.count_operations(_as_operations(where or ObservationFilter())))

    def search(
        self, query: str, *, where: SearchFilter = EVERYTHING, mode: SearchMode = SearchMode.HYBRID, limit: int = 10
    ) -> Answer:
        """Find what answers a query, best first; see `OrchestratorContextManager.search`."""
        found: Answer = self._memory.search(query, where=where, mode=mode, limit=limit)
        return found


def _as_operations(where: ObservationFilter) -> OperationFilter:
    return OperationFilter(
        agent=where.worker_id, session=where.session_id, type=where.type, since=where.since, until=where.until,
        limit=where.limit, offset=where.offset, except_types=(_STARTED, _SUMMED_UP),
    )  # fmt: skip


def observation_of(operation: Operation) -> Observation:
    """Give an operation as an observation; one that was recorded in another way as what it says."""
    from orchestra_mem.core.documents.entries import plain_text

    data = operation.data if isinstance(operation.data, dict) else {}
    text, metadata = data.get("text"), data.get("metadata", {})
    own = isinstance(text, str) and isinstance(metadata, dict) and data.keys() <= {"text", "metadata"}
    return Observation(
        id=operation.id,
        session_id=operation.session,
        worker_id=operation.agent,
        type=operation.type,
        content=str(text) if own else plain_text(operation),
        metadata=metadata if own and isinstance(metadata, dict) else {},
        created_at=operation.timestamp,
    )

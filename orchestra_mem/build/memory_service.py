"""MemoryService: the source design's interface to sessions and workers' observations, on top of a memory.

An observation is an operation whose agent is the worker. The metadata of a session and the summary given at its end are
operations too, so nothing is stored outside the memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestra_mem.design_names import DesignNames
from orchestra_mem.errors import ClosedError, InvalidChangeError
from orchestra_mem.search_types import EVERYTHING, SearchFilter, SearchMode
from orchestra_mem.types import Json, Operation, OperationFilter, Session, SessionStatus

if TYPE_CHECKING:
    from orchestra_mem.memory.agent_view import AgentMemory
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.retrieval.search import Answer

_STARTED, _SUMMED_UP = "session_start", "session_summary"


class ObservationType(StrEnum):
    """The types of observations in the source design."""

    STATE_CHANGE = "state_change"
    PR_EVENT = "pr_event"
    ERROR = "error"
    TASK_COMPLETE = "task_complete"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewObservation:
    """An observation to record. A `session_id` of None means the live session; `metadata` is any JSON."""

    worker_id: str
    content: str
    type: ObservationType = ObservationType.CUSTOM
    session_id: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A recorded observation. `worker_id` is None if no worker made it.

    `type` is an `ObservationType`, or the type of an operation that was not recorded through this service.
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
    """A filter: all conditions must hold. The newest `offset` matches are skipped, the next `limit` are returned."""

    worker_id: str | None = None
    session_id: str | None = None
    type: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = 100
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A session with its number of workers, its summary if it has one, and the metadata given at its start."""

    id: str
    started_at: datetime
    ended_at: datetime | None
    worker_count: int
    summary: str | None
    metadata: Mapping[str, Json]


class MemoryService(DesignNames):
    """The memory of an orchestrator and its workers. Safe to share between threads. Everything survives a restart.

    Args:
        memory: The project's folder, or an open memory, which the caller closes. With an agent's view of a memory, only
            search and observations work: the agent records its observations, and finds only what the agent may see.
        config: Settings, as in `open_memory`.
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
        """Open the memory, and create it on first use. A live session continues.

        Raises:
            ConfigError: The settings are invalid.
            StorageError: The folder or its contents cannot be used.
        """
        if self._opened is None and self._project is not None:
            from orchestra_mem.build import open_memory

            self._opened = open_memory(self._project, config=self._config)

    def shutdown(self) -> None:
        """Close the memory that `initialize` opened. The live session continues after the next `initialize`."""
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
        """Start a session and return its id. A live session is ended first, as by `end_session`."""
        if self._memory.session_memory.session is not None:
            self._memory.flush_session()
        data = {"text": "A session was started.", "metadata": dict(metadata or {})}
        begun: Operation = self._memory.record_operation(_STARTED, data, 0, critical=False)
        return begun.session

    def end_session(self, session_id: str, summary: str | None = None) -> None:
        """End the live session: record `summary` if given, summarise the session, and archive its document.

        Raises:
            NotFoundError: There is no such session.
            InvalidChangeError: The session has already ended.
        """
        self._require_live(session_id)
        if summary:
            self._memory.record_operation(_SUMMED_UP, {"text": summary}, 0)
        self._memory.flush_session()

    def session(self, session_id: str) -> SessionRecord:
        """Return a session.

        Raises:
            NotFoundError: There is no session with this id.
        """
        return self._record(self._memory.find_session(session_id))

    def sessions(self, limit: int | None = None, offset: int = 0) -> list[SessionRecord]:
        """Return sessions, newest first."""
        found: list[Session] = self._memory.sessions()[::-1]
        return [self._record(each) for each in found[offset : None if limit is None else offset + limit]]

    def _require_live(self, session_id: str) -> None:
        if self._memory.find_session(session_id).status is not SessionStatus.ACTIVE:
            raise InvalidChangeError(f"session {session_id} has ended; new records belong to the next session")

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
        """Record an observation and return its id. From then on, the observation survives a killed process.

        Raises:
            NotFoundError: There is no such session.
            InvalidChangeError: The session has ended.
            InvalidOperationError: The observation cannot be recorded; the message says why.
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
        """Count the observations that `get_observations` would return without a limit."""
        return int(self._memory.count_operations(_as_operations(where or ObservationFilter())))

    def search(
        self, query: str, *, where: SearchFilter = EVERYTHING, mode: SearchMode = SearchMode.HYBRID, limit: int = 10
    ) -> Answer:
        """Search the memory, best hits first; see `OrchestratorContextManager.search`."""
        found: Answer = self._memory.search(query, where=where, mode=mode, limit=limit)
        return found


def _as_operations(where: ObservationFilter) -> OperationFilter:
    return OperationFilter(
        agent=where.worker_id, session=where.session_id, type=where.type, since=where.since, until=where.until,
        limit=where.limit, offset=where.offset, except_types=(_STARTED, _SUMMED_UP),
    )  # fmt: skip


def observation_of(operation: Operation) -> Observation:
    """Convert an operation to an observation; an operation not recorded by this service yields its plain text."""
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

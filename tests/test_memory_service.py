"""MemoryService: what its design requires, over a real memory and across restarts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import (
    ClosedError,
    InvalidChangeError,
    InvalidOperationError,
    MemoryService,
    NewObservation,
    NotFoundError,
    ObservationFilter,
    OperationFilter,
    Orchestrator,
    open_memory,
)
from orchestra_mem.build.memory_service import ObservationType
from orchestra_mem.orchestrator import TaskResult
from orchestra_mem.work_types import WorkKind


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    """The service of a new project."""
    service = MemoryService(tmp_path)
    service.initialize()
    yield service
    service.shutdown()


def _said(service: MemoryService, **where: Any) -> list[str]:
    return [each.content for each in service.get_observations(ObservationFilter(**where))]


def test_observations_are_kept_filtered_and_found(service: MemoryService, tmp_path: Path) -> None:
    """Observations are stored with all their fields, listed newest first, filtered, paged, counted and searched."""
    session = service.start_session({"branch": "main"})
    numbers = [
        service.capture_observation(
            NewObservation(worker_id=worker, type=kind, content=f"{worker} tells {kind}.", metadata={"try": 1})
        )
        for worker in ("ann", "bob")
        for kind in ObservationType
    ]
    with closing(sqlite3.connect(tmp_path / ".obra" / "obra.db", isolation_level=None)) as database:
        assert database.execute("SELECT count(*) FROM operations WHERE agent = 'bob'").fetchone() == (5,)
    newest, *_ = service.get_observations()
    assert (newest.id, newest.session_id, newest.worker_id) == (numbers[-1], session, "bob")
    assert (newest.type, newest.content, newest.metadata) == ("custom", "bob tells custom.", {"try": 1})
    assert _said(service, worker_id="ann", limit=2) == ["ann tells custom.", "ann tells task_complete."]
    assert _said(service, worker_id="ann", limit=2, offset=3) == ["ann tells pr_event.", "ann tells state_change."]
    assert _said(service, type="error") == ["bob tells error.", "ann tells error."]
    assert _said(service, session_id="another") == []
    assert service.count_observations() == 10
    assert service.count_observations(ObservationFilter(type="error", limit=1)) == 2
    assert service.search("bob tells pr_event").hits[0].chunk.agent == "bob"


def test_sessions_count_workers_and_carry_metadata_and_a_summary(service: MemoryService) -> None:
    """Sessions have metadata, a worker count and a summary; an ended session accepts nothing more."""
    first = service.start_session({"branch": "main", "depth": {"of": 2}})
    for worker in ("ann", "bob", "ann"):
        service.capture_observation(NewObservation(worker_id=worker, content=f"{worker} works."))
    running = service.session(first)
    assert (running.worker_count, running.metadata) == (2, {"branch": "main", "depth": {"of": 2}})
    assert (running.ended_at, running.summary) == (None, None)
    service.end_session(first, "The parser was mended.")
    second = service.start_session()
    sessions = service.sessions()
    assert [each.id for each in sessions] == [second, first]
    assert (sessions[1].summary, sessions[1].worker_count) == ("The parser was mended.", 2)
    assert sessions[1].ended_at is not None
    assert service.sessions(limit=1, offset=1) == sessions[1:]
    third = service.start_session()  # ends the second session
    assert service.session(second).ended_at is not None
    assert service.session(third).ended_at is None
    for ended in (first, second):
        with pytest.raises(InvalidChangeError, match=f"session {ended} has ended"):
            service.end_session(ended)
        with pytest.raises(InvalidChangeError, match=f"session {ended} has ended"):
            service.capture_observation(NewObservation(worker_id="ann", content="Late.", session_id=ended))
    for unknown in ("none", "", third[:6]):
        with pytest.raises(NotFoundError, match=f"there is no session '{unknown}'"):
            service.end_session(unknown)
    with pytest.raises(InvalidOperationError, match="agent: ' ' is not a name"):
        service.capture_observation(NewObservation(worker_id=" ", content="x"))
    assert service.count_observations() == 3


def test_a_long_session_is_summed_up_by_itself(service: MemoryService) -> None:
    """A session that ends without a given summary gets a generated one."""
    session = service.start_session()
    for number in range(60):
        said = f"Decided to use parser {number} for the files of customer {number}, as the one before was too slow."
        service.capture_observation(NewObservation(worker_id="ann", content=said))
    service.end_session(session)
    assert "Session Summary" in str(service.session(session).summary)


def test_all_survives_a_restart(service: MemoryService) -> None:
    """Observations, the session and its metadata survive a restart; a second `initialize` changes nothing."""
    session = service.start_session({"run": 7})
    service.capture_observation(NewObservation(worker_id="ann", content="Before."))
    service.shutdown()
    with pytest.raises(ClosedError, match="call initialize"):
        service.get_observations()
    service.initialize()
    service.capture_observation(NewObservation(worker_id="ann", content="After.", session_id=session))
    assert _said(service) == ["After.", "Before."]
    assert service.session(session).metadata == {"run": 7}
    service.initialize()  # once more changes nothing
    assert _said(service) == ["After.", "Before."]


def test_an_open_memory_is_used_and_left_open(tmp_path: Path) -> None:
    """A service over an open memory leaves it open; for an agent it shows that agent's observations only."""
    with open_memory(tmp_path, config={"catalog": {"isolation": "strict"}}) as memory:
        service = MemoryService(memory)
        service.initialize()
        for worker in ("ann", "bob", "ann", "bob", "ann"):
            service.capture_observation(NewObservation(worker_id=worker, content=f"{worker} works."))
        own = MemoryService(memory.as_agent("ann"))
        assert [each.id for each in own.get_observations(ObservationFilter(limit=2))] == [5, 3]
        assert [each.id for each in own.get_observations(ObservationFilter(limit=2, offset=1))] == [3, 1]
        assert [each.id for each in own.get_observations(ObservationFilter(offset=7))] == []
        assert own.count_observations(ObservationFilter(limit=1)) == 3
        (session,) = memory.sessions()
        own.capture_observation(NewObservation(worker_id="ann", content="Done.", session_id=session.id))
        assert own.get_observations()[0].content == "Done."
        with pytest.raises(NotFoundError, match="there is no session 'none'"):
            own.capture_observation(NewObservation(worker_id="ann", content="x", session_id="none"))
        service.shutdown()
        assert memory.count_operations(OperationFilter(agent="bob")) == 2


def test_what_an_orchestrators_worker_does_is_an_observation(tmp_path: Path) -> None:
    """The result of an orchestrator's task is an observation of its worker as soon as the task ends."""
    with open_memory(tmp_path) as memory:
        service = MemoryService(memory)
        task = memory.state.create(WorkKind.TASK, "Mend the parser")
        with Orchestrator(memory, agent="builder") as orchestrator:
            result: TaskResult = orchestrator.execute_task(task.id, lambda attempt: "mended")
            assert not result.error
            seen = service.get_observations(ObservationFilter(worker_id="builder"))
        assert [(each.worker_id, each.type) for each in seen] == [("builder", "task_execution")]
        assert "mended" in seen[0].content
        assert "completed" in seen[0].content

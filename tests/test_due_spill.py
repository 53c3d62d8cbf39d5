"""When operations that working memory cannot hold come into the session's document: soon, and not in a record."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.documents.session_document import SessionDocument
from orchestra_mem.errors import StorageError
from orchestra_mem.services import preparation
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.tiers.working import WorkingMemory
from tests.conftest import Clock, record

SMALL = {"orchestrator": {"working_memory": {"max_operations": 6}}}
OVER = 8


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[OrchestratorContextManager]:
    """A memory of few operations, with what it needs in pauses loaded."""
    with open_memory(tmp_path, config=SMALL) as opened:
        yield opened


@pytest.fixture
def no_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, the caller never seems still."""
    monkeypatch.setattr(preparation, "_MOMENT_S", 600.0)
    monkeypatch.setattr(preparation, "_QUIET_S", 600.0)


def standing(memory: OrchestratorContextManager) -> list[int]:
    """The operations in the document on disk, without asking the memory for it."""
    documents = list(memory._parts.session.place.folder.glob("*session*.md"))
    return [] if not documents else list(SessionDocument.parse(documents[0].read_text(encoding="utf-8")).entries())


def wait_for(done: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Whether something comes true in time."""
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        time.sleep(0.005)
    return done()


@pytest.mark.usefixtures("no_moment")
def test_a_record_does_not_wait_for_a_spill(memory: OrchestratorContextManager) -> None:
    """What working memory cannot hold is in the event log, and stays with the rest for now."""
    record(memory, OVER)
    assert standing(memory) == []
    assert len(memory.operations()) == OVER


def test_it_comes_as_soon_as_the_caller_is_still(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody asks, and no pause is long enough for a refresh."""
    monkeypatch.setattr(preparation, "_QUIET_S", 0.1)
    record(memory, OVER)
    monkeypatch.setattr(preparation, "_QUIET_S", 600.0)
    assert wait_for(lambda: standing(memory) == [1, 2, 3, 4])


@pytest.mark.usefixtures("no_moment")
@pytest.mark.parametrize(
    "reading",
    [
        "get_orchestrator_context('next')", "get_stats()", "query_recent_operations()", "blame('session')",
        "search('step')", "session_memory", "working_memory", "episodic_memory", "context_tracker", "close()",
    ],
)  # fmt: skip
def test_it_comes_before_the_next_reading(memory: OrchestratorContextManager, reading: str) -> None:
    """An operation stands in one tier, and who looks into a file after a reading finds there what has left."""
    record(memory, OVER)
    eval(f"memory.{reading}")  # one of those above
    assert standing(memory) == [1, 2, 3, 4]
    if reading != "close()":
        assert [operation.id for operation in memory.working_memory.get_all_operations()] == [5, 6, 7, 8]


@pytest.mark.parametrize("spills", ["record", "moment", "reading"])
def test_the_first_context_shows_what_has_been_spilled_before_it(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch, spills: str
) -> None:
    """Each operation once, from the document or from working memory, whoever has put it there."""
    monkeypatch.setattr(preparation, "_MOMENT_S", 600.0)
    monkeypatch.setattr(preparation, "_QUIET_S", 600.0)
    record(memory, 30 if spills == "record" else OVER)
    if spills == "moment":
        memory._in_pause(briefly=True)
    context = memory.get_orchestrator_context("first")
    shown = re.findall(r"^### .* \(op (\d+)\)$", context.prefix + context.timeline, re.MULTILINE)
    assert shown == [str(operation.id) for operation in memory.operations()]


@pytest.mark.usefixtures("no_moment")
def test_where_nobody_is_still_working_memory_stays_bounded(memory: OrchestratorContextManager) -> None:
    """Then a record spills after all: when as much waits as working memory may hold."""
    for number in range(1, 200):
        record(memory, 1, first=number)
        assert len(memory._parts.working.entries()) <= 2 * 6
        assert len(standing(memory)) + len(memory._parts.working.entries()) == number


def test_a_process_that_records_little_spills_in_its_record(tmp_path: Path) -> None:
    """A command may end right after it, however it ends."""
    with open_memory(tmp_path, config={"orchestrator": {"working_memory": {"max_operations": 2}}}) as memory:
        record(memory, 3)
        assert standing(memory) == [1, 2]


@settings(max_examples=25)
@given(st.lists(st.booleans(), min_size=7, max_size=40))
def test_the_documents_do_not_depend_on_when(tmp_path_factory: pytest.TempPathFactory, stills: list[bool]) -> None:
    """The same operations leave the same text, whether the caller was still after each of them, some, or none."""
    texts = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparation, "_MOMENT_S", 600.0)
        patch.setattr(preparation, "_QUIET_S", 600.0)
        for pattern in (stills, [True] * len(stills), [False] * len(stills)):
            project = tmp_path_factory.mktemp("memory") / "project"
            project.mkdir()
            with open_memory(project, config=SMALL, clock=Clock()) as memory:
                for number, still in enumerate(pattern, 1):
                    record(memory, 1, first=number)
                    if still:
                        memory._in_pause(briefly=True)
                session, path = memory.session_memory.session, memory.session_memory.path
                assert session
                assert path
                texts.append(
                    path.read_text(encoding="utf-8").replace(f'"{session.id}"', session.id).replace(session.id, "")
                )
    assert texts[0] == texts[1] == texts[2]


def test_a_spill_that_fails_in_a_moment_is_told_and_made_up_for(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that was recorded is in doubt, and the next one that can does it."""
    refused: list[int] = []

    def refuse(self: SessionMemoryManager, *_: object) -> int:
        refused.append(1)
        raise StorageError("spill: no space")

    with monkeypatch.context() as patch:
        patch.setattr(SessionMemoryManager, "append_operations", refuse)
        record(memory, OVER)
        assert wait_for(lambda: bool(refused))
        assert "no space" in str(memory.get_stats()["problems"])
        assert len(memory.query_recent_operations(limit=100)) == OVER
    record(memory, 40, first=OVER + 1)
    assert wait_for(lambda: len(standing(memory)) > 40)
    assert memory.get_stats()["problems"] == []
    assert standing(memory) == list(range(1, len(standing(memory)) + 1))


@pytest.mark.usefixtures("no_moment")
def test_it_waits_for_the_end_of_changes_that_may_be_taken_back(memory: OrchestratorContextManager) -> None:
    """What the document holds is noted in the same database: it would be taken back with them."""
    record(memory, OVER)
    state = memory._parts.state
    with suppress(ZeroDivisionError), state.together():
        memory.get_stats()
        memory._in_pause(briefly=True)
        assert standing(memory) == []
        raise ZeroDivisionError
    memory._in_pause(briefly=True)
    assert standing(memory) == [1, 2, 3, 4]


@pytest.mark.usefixtures("no_moment")
def test_what_waited_when_a_process_was_killed_is_spilled_by_the_next_that_looks(tmp_path: Path) -> None:
    """It is in the event log, and comes into working memory again; the other may be alive as well."""
    killed = open_memory(tmp_path, config=SMALL)
    record(killed, OVER)
    with open_memory(tmp_path, config=SMALL) as memory:
        shown = memory.get_orchestrator_context("next")
        assert standing(memory) == [1, 2, 3, 4]
        assert [operation.id for operation in memory.working_memory.get_all_operations()] == [5, 6, 7, 8]
    again = killed.get_orchestrator_context("next")
    assert (again.prefix, again.timeline) == (shown.prefix, shown.timeline)
    killed.close()
    assert standing(memory) == [1, 2, 3, 4]


@pytest.mark.usefixtures("no_moment")
def test_what_others_have_spilled_is_not_counted_when_their_operations_come(tmp_path: Path) -> None:
    """What spills does not depend on when a process sees what another has done."""
    with open_memory(tmp_path, config=SMALL) as one, open_memory(tmp_path, config=SMALL) as other:
        record(one, 6)
        other.refresh()
        record(other, 3, first=7)
        one.get_stats()
        assert not one._parts.working.overflows
        assert [operation.id for operation in one.working_memory.get_all_operations()] == [4, 5, 6, 7, 8, 9]


def test_a_moment_is_short(memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for a pause already, a long one, is woken for it."""
    record(memory, OVER - 2)
    assert wait_for(lambda: not memory._flow.preparation._came.is_set())  # all is loaded and done
    monkeypatch.setattr(preparation, "_QUIET_S", 600.0)
    record(memory, 1, first=OVER - 1)
    assert wait_for(lambda: standing(memory) == [1, 2, 3, 4], seconds=20)
    record(memory, 4, first=OVER)
    assert wait_for(lambda: len(standing(memory)) == 8, seconds=20)


@pytest.mark.usefixtures("no_moment")
def test_where_no_thread_can_be_had_a_record_spills(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing waits for a pause that nobody looks for, and it is said once."""

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        record(memory, 20)
        assert len(memory._parts.working.entries()) <= 6
        assert standing(memory) == list(range(1, len(standing(memory)) + 1))
    assert memory.get_stats()["problems"] == []
    assert caplog.text.count("can't start new thread") == 1


@pytest.mark.usefixtures("no_moment")
def test_ctrl_c_in_working_memory_doubles_nothing(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operation was recorded; it comes once into the tiers, with the next."""

    def interrupted(self: WorkingMemory, first: int) -> bool:
        raise KeyboardInterrupt

    record(memory, 6)
    with monkeypatch.context() as patch:
        patch.setattr(WorkingMemory, "_over_half", interrupted)
        with pytest.raises(KeyboardInterrupt):
            record(memory, 1, first=7)
    record(memory, 8, first=8)
    left = [operation.id for operation in memory.working_memory.get_all_operations()]
    assert [*standing(memory), *left] == list(range(1, 16))
    path = memory.flush_session()
    assert path
    assert list(SessionDocument.parse(path.read_text(encoding="utf-8")).entries()) == list(range(1, 16))
    assert path.read_text(encoding="utf-8").count("(op 7)") == 1


def test_what_is_spilled_in_moments_lets_no_document_grow_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is still now and then, and never pauses, meets the refresh in a record before the document is too large."""
    monkeypatch.setattr(preparation, "_MOMENT_S", 600.0)
    monkeypatch.setattr(preparation, "_QUIET_S", 600.0)
    config = {"orchestrator": {**SMALL["orchestrator"], "session_compression_threshold": 4_000}}
    with open_memory(tmp_path, config=config) as memory:
        session, tracker = memory.session_memory, memory.context_tracker
        for number in range(1, 601):
            text = f"We moved part {number} of the store behind the new queue, and its {number} rows are checked."
            memory.record_operation("note", {"text": text}, 0)
            memory._in_pause(briefly=True)
            assert session.token_count() < 6_500
        assert tracker.refresh_count >= 2

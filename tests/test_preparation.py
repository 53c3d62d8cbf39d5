"""Doing ahead in pauses what a refresh needs: by itself, quietly, and never to anybody's harm."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.services import preparation
from orchestra_mem.tiers.foresight import Foresight
from orchestra_mem.types import Operation


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[OrchestratorContextManager]:
    """A memory in a new folder."""
    with open_memory(tmp_path) as opened:
        yield opened


def record(memory: OrchestratorContextManager, count: int) -> None:
    """Operations that say something."""
    for number in range(count):
        memory.record_operation("note", {"text": f"We decided to keep part {number}. Part {number} has {number} rows."})


def wait_for(done: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether something comes true in time."""
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        time.sleep(0.01)
    return done()


def _workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "orchestra-mem preparation"]


def test_a_pause_is_enough(memory: OrchestratorContextManager) -> None:
    """Soon after the last record all operations have been looked through, and a refresh finds their facts."""
    record(memory, 12)
    found = memory._parts.compactor.foresight._judge._found
    assert wait_for(lambda: sorted(found) == list(range(1, 13)))
    assert all(facts for facts in found.values())
    memory.refresh()
    assert len(memory.facts()) == 12


def test_nothing_is_done_while_records_come(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits for nobody: a pause begins some time after the last."""
    monkeypatch.setattr(preparation, "_QUIET_S", 60.0)
    record(memory, 12)
    time.sleep(0.1)
    assert memory._parts.compactor.foresight._judge._found == {}


def test_a_process_that_records_little_is_left_alone(memory: OrchestratorContextManager) -> None:
    """A command that records and ends starts nothing."""
    before = _workers()
    record(memory, 3)
    assert memory._flow.preparation._worker is None
    record(memory, 1)
    assert len(_workers()) == len(before) + 1


def test_what_cannot_be_prepared_is_left_to_the_refresh(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are prepared all the same."""
    prepare = Foresight.prepare

    def failing(self: Foresight, operation: Operation) -> Iterator[None]:
        if operation.id == 5:
            raise RuntimeError("no")
        return prepare(self, operation)

    monkeypatch.setattr(Foresight, "prepare", failing)
    record(memory, 8)
    found = memory._parts.compactor.foresight._judge._found
    assert wait_for(lambda: sorted(found) == [1, 2, 3, 4, 6, 7, 8])
    memory.refresh()
    assert len(memory.facts()) == 8


def test_the_thread_ends_when_it_has_had_nothing_to_do_and_comes_back(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No thread is left behind by a memory that nobody records to any more."""
    monkeypatch.setattr(preparation, "_IDLE_S", 0.05)
    record(memory, 6)
    first = memory._flow.preparation._worker
    assert first is not None
    assert wait_for(lambda: not first.is_alive())
    record(memory, 1)
    found = memory._parts.compactor.foresight._judge._found
    assert wait_for(lambda: 7 in found)


def test_a_memory_that_closes_leaves_no_thread(tmp_path: Path) -> None:
    """It ends with the step at hand."""
    with open_memory(tmp_path) as memory:
        record(memory, 12)
        worker = memory._flow.preparation._worker
        assert worker is not None
    worker.join(10)
    assert not worker.is_alive()

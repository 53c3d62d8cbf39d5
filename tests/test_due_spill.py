"""When a due spill takes place: operations that exceed working memory reach the document before the next read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.documents.session_document import SessionDocument
from orchestra_mem.tiers.working import WorkingMemory
from tests.conftest import Clock, record
from tests.memories import flushed, session_of, text_of

CONFIG = {"orchestrator": {"working_memory": {"max_operations": 6}}}
OVER = 8


def standing(memory: OrchestratorContextManager) -> list[int]:
    """The operations in the document on disk, read without triggering a spill."""
    documents = list(memory._parts.session.place.folder.glob("*session*.md"))
    return [] if not documents else list(SessionDocument.parse(documents[0].read_text(encoding="utf-8")).entries())


@pytest.mark.parametrize(
    "reading",
    [
        "get_orchestrator_context('next')", "get_stats()", "query_recent_operations()", "blame('session')",
        "search('step')", "session_memory", "working_memory", "episodic_memory", "context_tracker", "close()",
    ],
)  # fmt: skip
def test_it_comes_before_the_next_reading(memory: OrchestratorContextManager, reading: str) -> None:
    """A due spill takes place before the next read: the oldest operations are in the document, the rest in memory."""
    record(memory, OVER)
    assert standing(memory) == []
    eval(f"memory.{reading}")  # a parameter of this test
    assert standing(memory) == [1, 2, 3, 4]
    if reading != "close()":
        assert [operation.id for operation in memory.working_memory.get_all_operations()] == [5, 6, 7, 8]


def test_where_nobody_reads_working_memory_stays_bounded(memory: OrchestratorContextManager) -> None:
    """Without any read, a record spills as soon as working memory holds twice its limit; no operation is lost."""
    for number in range(1, 200):
        record(memory, 1, first=number)
        assert len(memory._parts.working.entries()) <= 2 * 6
        assert len(standing(memory)) + len(memory._parts.working.entries()) == number


def test_no_record_waits_for_a_process_that_writes_the_documents(
    memory: OrchestratorContextManager, tmp_path: Path
) -> None:
    """Records go on while another process holds the documents, also in pauses; the first one afterwards spills."""
    record(memory, 1)
    start = time.monotonic()
    with FileLock(tmp_path / ".obra/obra.lock"):
        for number in range(2, 60):
            record(memory, 1, first=number)
            if number % 20 == 0:
                time.sleep(0.2)  # the background work of a pause begins
    assert time.monotonic() - start < 15  # half the time that it would wait for the lock
    assert standing(memory) == []
    record(memory, 1, first=60)
    assert standing(memory)
    assert [*standing(memory), *(each.operation.id for each in memory._parts.working.entries())] == [*range(1, 61)]


def test_what_waited_when_a_process_was_killed_is_spilled_by_the_next_that_looks(tmp_path: Path) -> None:
    """Operations that one memory has not spilled yet are spilled by the next one that reads, and not a second time."""
    killed = open_memory(tmp_path, config=CONFIG)
    record(killed, OVER)
    with open_memory(tmp_path, config=CONFIG) as memory:
        shown = memory.get_orchestrator_context("next")
        assert standing(memory) == [1, 2, 3, 4]
        assert [operation.id for operation in memory.working_memory.get_all_operations()] == [5, 6, 7, 8]
    again = killed.get_orchestrator_context("next")
    assert (again.prefix, again.timeline) == (shown.prefix, shown.timeline)
    killed.close()
    assert standing(memory) == [1, 2, 3, 4]


def test_ctrl_c_in_working_memory_doubles_nothing(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operation whose record is interrupted by Ctrl-C is in the tiers exactly once after the next record."""

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
    text = flushed(memory).read_text(encoding="utf-8")
    assert list(SessionDocument.parse(text).entries()) == list(range(1, 16))
    assert text.count("(op 7)") == 1


@settings(max_examples=8)
@given(st.lists(st.booleans(), min_size=7, max_size=24))
def test_the_documents_do_not_depend_on_when(tmp_path_factory: pytest.TempPathFactory, reads: list[bool]) -> None:
    """The same operations produce the same document, whether the caller reads after each, some or none of them."""
    texts = []
    for pattern in (reads, [True] * len(reads), [False] * len(reads)):
        project = tmp_path_factory.mktemp("memory") / "project"
        project.mkdir()
        with open_memory(project, config=CONFIG, clock=Clock()) as memory:
            for number, reading in enumerate(pattern, 1):
                record(memory, 1, first=number)
                if reading:
                    memory.get_stats()
            session = session_of(memory).id
            texts.append(text_of(memory).replace(f'"{session}"', session).replace(session, ""))
    assert texts[0] == texts[1] == texts[2]

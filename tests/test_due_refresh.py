"""When a refresh that is due takes place: before the next read, or during a record only if it cannot wait."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from filelock import FileLock

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.context.window import ContextWindowTracker
from orchestra_mem.errors import ClosedError, StorageError
from orchestra_mem.tiers.session_compaction import Refreshed
from orchestra_mem.work_types import WorkKind
from tests.processes import python
from tests.timing import until

WINDOW = 10_000
DUE, CRITICAL = 8_000, 9_500
CONFIG = {"orchestrator": {"context_window": {"max_tokens": WINDOW}}}


@pytest.fixture
def memory(memory: OrchestratorContextManager) -> OrchestratorContextManager:
    """A memory with a small window, after its first context."""
    memory.get_orchestrator_context("start")
    return memory


def fill(memory: OrchestratorContextManager, tokens: int = 200) -> ContextWindowTracker:
    """Record until a refresh is due, and return the tracker, which can be read without triggering the refresh."""
    tracker = memory.context_tracker
    for number in range(1_000):
        if tracker.used_tokens() >= DUE:
            return tracker
        memory.record_operation("note", {"text": f"We decided to keep part {number}."}, tokens)
    raise AssertionError("the window never filled up")


def test_in_a_loop_that_never_reads_it_comes_soon_after_it_is_due(memory: OrchestratorContextManager) -> None:
    """Without any read, a refresh takes place within 3.5 % of the window after it became due."""
    tracker = fill(memory, 50)
    used = 0
    while tracker.refresh_count == 0:
        used = tracker.used_tokens()
        memory.record_operation("note", {"text": "more"}, 50)
    assert DUE < used + 50 <= DUE + 0.035 * WINDOW


@pytest.mark.parametrize(
    "reading",
    [
        "get_orchestrator_context('next')", "get_stats()", "facts()", "query_recent_operations()", "search('part')",
        "blame('session')", "state", "session_memory", "working_memory", "episodic_memory", "context_tracker",
    ],
)  # fmt: skip
def test_it_comes_before_the_next_reading(memory: OrchestratorContextManager, reading: str) -> None:
    """A due refresh takes place before the next read, and only once."""
    tracker = fill(memory)
    assert tracker.refresh_count == 0
    for _ in range(2):
        eval(f"memory.{reading}")  # a parameter of this test
        assert tracker.refresh_count == 1


@pytest.mark.parametrize("end", ["close", "flush_session", "refresh"])
def test_it_does_not_outlast_the_memory(memory: OrchestratorContextManager, end: str) -> None:
    """Closing, flushing or refreshing performs the due refresh, exactly once."""
    tracker = fill(memory)
    getattr(memory, end)()
    assert tracker.refresh_count == 1
    if end != "close":
        memory.get_stats()
        assert tracker.refresh_count == 1


def test_where_nobody_reads_the_document_stays_bounded(tmp_path: Path) -> None:
    """Without any read, the session document never exceeds its compression threshold by half."""
    with open_memory(tmp_path, config={"orchestrator": {"session_compression_threshold": 4_000}}) as memory:
        tracker, session = memory.context_tracker, memory.session_memory
        for number in range(1_000):
            text = f"We moved part {number} of the store behind the new queue, and its {number} rows are checked."
            memory.record_operation("note", {"text": text}, 0)
            assert session.token_count() < 6_000
        assert tracker.refresh_count >= 2


def test_one_operation_that_fills_the_window_is_followed_by_a_refresh_at_once(
    memory: OrchestratorContextManager,
) -> None:
    """An operation that fills the window to the critical threshold is followed by a refresh immediately."""
    for number in range(6):
        memory.record_operation("note", {"text": f"part {number}"}, 100)
    tracker = memory.context_tracker
    memory.record_operation("note", {"text": "very much"}, CRITICAL)
    assert tracker.refresh_count == 1


def test_processes_that_share_a_memory_are_refreshed_by_one_of_them(tmp_path: Path) -> None:
    """Memories of one project do not each repeat its refreshes, and all of them show the newest operation."""
    refreshes: list[Refreshed] = []

    def told(sender: object, refreshed: Refreshed) -> None:
        refreshes.append(refreshed)

    with ExitStack() as stack:
        memories = [stack.enter_context(open_memory(tmp_path, config=CONFIG)) for _ in range(4)]
        for each in memories:
            each.events.refreshed.connect(told)
            each.get_orchestrator_context("start")
        for number in range(160):
            memories[number % 4].record_operation("note", {"text": f"We decided to keep part {number}."}, 200)
        contexts = [each.get_orchestrator_context("next") for each in memories]
        used = [each.context_tracker.used_tokens() for each in memories]
    assert len(refreshes) <= 8  # a single memory would refresh as often
    assert all(DUE > tokens >= context.tokens for tokens, context in zip(used, contexts, strict=True))
    assert all("keep part 159" in context.render() for context in contexts)


def test_a_refresh_waits_for_no_process_that_has_gone(tmp_path: Path) -> None:
    """After the memory that refreshed has been closed, another one refreshes before the window overflows."""
    with open_memory(tmp_path, config=CONFIG) as memory:
        with open_memory(tmp_path, config=CONFIG) as other:
            for number in range(100):
                (other if number % 2 else memory).record_operation("note", {"text": f"part {number}"}, 200)
            other.refresh()
        for number in range(100):
            memory.record_operation("note", {"text": f"part {number}"}, 200)
            assert memory.context_tracker.used_tokens() < CRITICAL


@pytest.mark.parametrize(("own", "others"), [(10, 250), (50, 50), (10, 1_000)])
def test_large_operations_of_other_processes_count_soon(tmp_path: Path, own: int, others: int) -> None:
    """In a loop that never reads, the usage lags behind all processes by a tenth of the window and an operation."""
    config = {"orchestrator": {**CONFIG["orchestrator"], "auto_refresh_enabled": False}}
    with open_memory(tmp_path, config=config) as memory, open_memory(tmp_path, config=config) as other:
        memory.record_operation("note", {"text": "the first one"}, 0)
        tracker, recorded = memory.context_tracker, 0
        for _ in range(220):
            other.record_operation("note", {"text": "a part"}, others)
            memory.record_operation("note", {"text": "a part"}, own)
            recorded += own + others
            assert recorded - 0.1 * WINDOW - own - others <= tracker.used_tokens() <= recorded


@pytest.mark.parametrize("when", ["reading", "close"])
def test_one_that_fails_is_told_and_takes_nothing_with_it(
    tmp_path: Path, when: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A refresh that fails is reported, loses no operation, blocks nothing, and a later refresh makes up for it."""
    with open_memory(tmp_path, config=CONFIG) as memory:
        memory.get_orchestrator_context("start")
        database = next(tmp_path.rglob("obra.db"))
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("CREATE TRIGGER refuse BEFORE INSERT ON must_keeps BEGIN SELECT RAISE(FAIL, 'refused'); END")
        tracker = fill(memory)
        if when == "close":
            memory.close()
        else:
            assert "part 0" in memory.get_orchestrator_context("next").render()
        until(lambda: "refused" in caplog.text)
        if when != "close":
            assert "refused" in str(memory.get_stats()["problems"])
        assert tracker.refresh_count == 0
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("DROP TRIGGER refuse")
    with open_memory(tmp_path, config=CONFIG) as memory:
        recorded = memory.operations()
        memory.refresh()
        assert len(memory.facts()) == len(recorded) > 20


def test_one_that_finds_the_documents_held_comes_with_the_next_reading(tmp_path: Path) -> None:
    """A due refresh that finds the documents held by another process takes place before the next read."""
    with open_memory(tmp_path, config={**CONFIG, "storage": {"lock_timeout_s": 0.1}}) as memory:
        tracker = fill(memory)
        with FileLock(tmp_path / ".obra" / "obra.lock"):
            memory.get_stats()
            assert tracker.refresh_count == 0
        memory.get_stats()
        assert tracker.refresh_count == 1


def test_it_waits_for_the_end_of_changes_that_may_be_taken_back(memory: OrchestratorContextManager) -> None:
    """No read within a transaction refreshes; after its rollback the next read does, without a problem."""
    state = memory.state
    tracker = fill(memory)
    with suppress(ZeroDivisionError), state.together():
        before = tracker.refresh_count
        memory.get_stats()
        assert tracker.refresh_count == before
        raise ZeroDivisionError
    assert memory.get_stats()["problems"] == []
    assert tracker.refresh_count == 1
    memory.refresh()
    assert memory.get_stats()["problems"] == []


def test_nothing_is_acknowledged_that_may_be_taken_back(memory: OrchestratorContextManager) -> None:
    """Recording within a transaction of work items is refused, as a rollback would undo it."""
    with memory.state.together():
        memory.state.create(WorkKind.TASK, "Bake")
        with pytest.raises(StorageError, match="after"):
            memory.record_operation("note", {"text": "baked"})
    assert memory.operations() == []
    memory.record_operation("note", {"text": "baked"})
    assert len(memory.operations()) == len(memory.state.items()) == 1


def test_ctrl_c_during_the_last_one_still_closes(memory: OrchestratorContextManager) -> None:
    """Ctrl-C during the refresh of `close` still closes the memory."""

    def told(sender: object, refreshed: Refreshed) -> None:
        raise KeyboardInterrupt

    memory.events.refreshed.connect(told)
    fill(memory)
    with pytest.raises(KeyboardInterrupt):
        memory.close()
    with pytest.raises(ClosedError):
        memory.record_operation("note", {"text": "more"})


def test_one_that_was_due_for_a_session_that_others_have_flushed_follows_them(tmp_path: Path) -> None:
    """If another memory has flushed the session, its new session is seen and the refresh is no longer due."""
    with open_memory(tmp_path, config=CONFIG) as other, open_memory(tmp_path, config=CONFIG) as memory:
        tracker = fill(memory)
        other.flush_session()
        for number in range(10):
            other.record_operation("note", {"text": f"After it {number}."}, 300)
        session = memory.sessions()[-1]
        assert memory.query_recent_operations(limit=1)[0].session == session.id
        assert tracker.used_tokens() < DUE


ENDING = """
import sys, time
from orchestra_mem import open_memory
class Host:
    def __init__(self):
        self.memory = open_memory(sys.argv[1], config={"orchestrator": {"context_window": {"max_tokens": 10_000}}})
    def __del__(self):
        self.memory.close()
host = Host()
for number in range(5):
    host.memory.record_operation("note", {"text": f"We decided to keep part {number}."}, 200)
time.sleep(0.5)
tracker = host.memory.context_tracker
while tracker.used_tokens() < 8_000:
    host.memory.record_operation("note", {"text": "We decided to keep it."}, 200)
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("pause_s", [0.0, 0.06])
def test_a_program_may_end_in_the_middle_of_one(tmp_path: Path, pause_s: float) -> None:
    """A program that ends during a refresh prints no traceback and leaves a sound memory."""
    assert "Traceback" not in python(ENDING, tmp_path, pause_s).stderr
    with open_memory(tmp_path) as memory:
        assert memory.operations()
        assert memory.get_stats()["problems"] == []

"""OrchestratorContextManager: each of its promises to a program, tested through its public methods."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.documents.session_document import SessionDocument
from orchestra_mem.errors import ClosedError, ConfigError, InvalidOperationError, NotFoundError, StorageError
from orchestra_mem.types import OperationFilter, SessionStatus
from orchestra_mem.work_types import WorkKind
from tests.conftest import Clock
from tests.conftest import record as record_steps

CONFIG = {"orchestrator": {"context_window": {"max_tokens": 8_192}, "working_memory": {"max_operations": 10}}}


def record(memory: OrchestratorContextManager, count: int, first: int = 1, kind: str = "step") -> None:
    """Record operations long enough to fill a small window."""
    record_steps(memory, count, first, kind, "Step {n}: the parser of part {n} reads its window and keeps its ledger.")


def ids(operations: list[Any]) -> list[int]:
    """The numbers of operations."""
    return [operation.id for operation in operations]


# Recording


def test_a_recorded_operation_comes_back_as_it_was_recorded(memory: OrchestratorContextManager, tmp_path: Path) -> None:
    """A recorded operation is returned with all its fields, in this process and in the next."""
    data = {"user_input": "Create epic\x00\ud800", "nested": [1, {"x": None}], "size": 2**70, "f": -0.0}
    when = datetime(2025, 1, 15, 12, 30, tzinfo=timezone(timedelta(hours=2)))
    operation = memory.record_operation(
        "nl_command", data, 512, agent="me", critical=True, timestamp=when, idempotency_key="k1"
    )
    assert (operation.id, operation.type, operation.tokens, operation.agent) == (1, "nl_command", 512, "me")
    assert (operation.data, operation.critical, operation.idempotency_key) == (data, True, "k1")
    assert operation.timestamp == datetime(2025, 1, 15, 10, 30, tzinfo=UTC)
    assert memory.expand("op 1").operations == (operation,)
    assert memory.query_recent_operations() == [operation]
    memory.close()
    with open_memory(tmp_path, config=CONFIG) as again:
        assert again.query_recent_operations() == [operation]


def test_an_idempotency_key_records_once(memory: OrchestratorContextManager, tmp_path: Path) -> None:
    """A second record with the same key uses no tokens and returns the first operation, also after a restart."""
    first = memory.record_operation("a", 1, 100, idempotency_key="k")
    used = memory.context_tracker.used_tokens()
    assert memory.record_operation("b", 2, 100, idempotency_key="k") == first
    assert memory.context_tracker.used_tokens() == used
    assert ids(memory.working_memory.get_all_operations()) == [1]
    memory.flush_session()
    assert memory.record_operation("b", 2, idempotency_key="k") == first
    memory.close()
    with open_memory(tmp_path, config=CONFIG) as again:
        assert again.record_operation("b", 2, idempotency_key="k") == first
        assert len(again.operations()) == 1


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"operation_type": None}, ": None is not a name: must be a string that is not blank"),
    ({"operation_type": "x\ny"}, ": a name must have at most 200 printable characters, on one line"),
    ({"operation_data": {"a": {1, 2}}}, "data.a: a value of type set is not JSON; give a string, number, list or dict"),
    *(
        ({"tokens_used": no}, f": {no} is not a number of tokens: must be an integer from 0")
        for no in (-1, True, 2**60)
    ),
    *(({"agent": no}, ": ") for no in ("a\x00", 5)),
    *(({"critical": no}, ": ") for no in ("no", 1)),
    ({"idempotency_key": "\ud800"}, ": "),
    *(({"timestamp": no}, ": ") for no in (datetime(2025, 1, 1), "2025-01-01")),
    ({"timestamp": datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))}, ": "),
]


def test_what_cannot_be_recorded_is_refused_in_words(memory: OrchestratorContextManager) -> None:
    """An invalid operation is refused with its argument and the reason, and neither it nor a session is stored."""
    for given, words in REFUSED:
        with pytest.raises(InvalidOperationError) as caught:
            memory.record_operation(**{"operation_type": "x", "operation_data": {}, **given})
        (name,) = given
        assert str(caught.value).startswith(f"{name}{words}" if words.startswith(": ") else words)
    assert (memory.operations(), memory.sessions()) == ([], [])


# The window


def test_without_auto_refresh_the_caller_decides(tmp_path: Path, clock: Clock) -> None:
    """Without auto-refresh the tracker reports that a refresh is due, and only the caller performs it."""
    orchestrator = {**CONFIG["orchestrator"], "auto_refresh_enabled": False}
    with open_memory(tmp_path, config={"orchestrator": orchestrator}, clock=clock) as memory:
        memory.record_operation("x", {"text": "a"}, 8_000)
        assert memory.context_tracker.should_refresh()
        assert memory.context_tracker.used_tokens() == 8_000
        memory.refresh()
        assert not memory.context_tracker.should_refresh()


def test_what_no_call_takes_is_refused(memory: OrchestratorContextManager) -> None:
    """A budget, limit or query of a wrong type, a negative one and an unknown kind of fact raise `ValueError`."""
    with pytest.raises(ValueError, match=r"^max_tokens is -1: a budget is a number of tokens, at least 0$"):
        memory.get_orchestrator_context("x", -1)
    with pytest.raises(ValueError, match=r"^max_tokens is '100': a budget is a number of tokens, at least 0$"):
        memory.get_orchestrator_context("x", "100")  # type: ignore[arg-type]
    for call in (memory.search, memory.retriever.retrieve_context):
        with pytest.raises(ValueError, match=r"^the query is 5: must be a string$"):
            call(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^the query is 5: must be a string$"):
        memory.get_orchestrator_context("x", query=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^limit is -1: must be at least 0$"):
        memory.facts(limit=-1)
    for kind in ("decisions", ""):
        with pytest.raises(ValueError, match=f"^{kind!r} is not a valid MustKeepKind$"):
            memory.facts(kind)  # type: ignore[arg-type]


# Queries


def test_what_did_we_just_do_is_answered_across_spills_flushes_and_sessions(memory: OrchestratorContextManager) -> None:
    """Recent operations come newest first, optionally of one type, across spills and sessions."""
    record(memory, 25)
    memory.record_operation("nl_command", {"user_input": "Create epic"})
    memory.flush_session()
    record(memory, 3, 27)
    assert ids(memory.query_recent_operations(limit=5)) == [29, 28, 27, 26, 25]
    assert ids(memory.query_recent_operations("nl_command")) == [26]
    assert ids(memory.query_recent_operations("step", 4)) == [29, 28, 27, 25]
    assert ids(memory.query_recent_operations(limit=0)) == ids(memory.query_recent_operations(limit=-3)) == []
    assert len(memory.query_recent_operations(limit=1_000)) == 29
    assert memory.query_recent_operations("nothing") == []


# Closing


def test_a_closed_memory_refuses_everything(memory: OrchestratorContextManager) -> None:
    """Methods of a closed memory and of its parts raise `ClosedError`; closing twice is allowed."""
    record(memory, 3)
    retriever, cache, state = memory.retriever, memory.response_cache, memory.state
    retriever.retrieve_context("kept")
    memory.close()
    memory.close()
    parts: list[Callable[[], object]] = [
        lambda: retriever.retrieve_context("kept"), lambda: cache.get("x"), lambda: cache.put("x", "y"),
        state.items, state.counts, lambda: state.create(WorkKind.TASK, "x"),
    ]  # fmt: skip
    for call in parts:
        with pytest.raises(ClosedError):
            call()
    calls: list[Callable[[], object]] = [
        lambda: memory.record_operation("x", 1), lambda: memory.get_orchestrator_context("x"), memory.refresh,
        memory.flush_session, memory.explain, memory.query_recent_operations, memory.operations, memory.sessions,
        lambda: memory.search_memory("x"), lambda: memory.expand(1), memory.losses, memory.get_stats,
        lambda: memory.retriever, memory.__enter__,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ClosedError, match=r"^this memory has been closed; open it again with open_memory\(\)$"):
            call()


def test_opening_what_cannot_be_opened_is_told(tmp_path: Path) -> None:
    """Opening a missing folder or with invalid settings raises an error and creates no database."""
    with pytest.raises(StorageError, match="is not a folder; create it first"):
        open_memory(tmp_path / "nowhere")
    with pytest.raises(ConfigError):
        open_memory(tmp_path, config={"orchestrator": {"context_windows": {}}})
    assert not (tmp_path / ".obra" / "obra.db").exists()


# Clocks, threads, processes


def test_eight_threads_record_read_and_refresh_at_once(tmp_path: Path) -> None:
    """With eight threads no operation is lost or doubled, and every context is within its budget."""
    with open_memory(tmp_path, config=CONFIG) as memory:

        def work(thread: int) -> list[int]:
            made = []
            for number in range(25):
                made.append(memory.record_operation("step", {"thread": thread, "n": number}).id)
                if number % 5 == thread % 5:
                    assert memory.get_orchestrator_context("x", 2_000).tokens <= 2_000
                    memory.query_recent_operations(limit=3)
                    memory.search_memory("thread")
                    assert memory.retriever.retrieve_context("the thread", max_tokens=300).tokens <= 300
                    assert memory.get_orchestrator_context("x", 800, query="the thread").tokens <= 800
                if number == 12 and thread == 0:
                    memory.refresh()
                if number == 20 and thread == 1:
                    memory.flush_session()
                memory.get_stats()
            return made

        with ThreadPoolExecutor(8) as pool:
            made = [number for numbers in pool.map(work, range(8)) for number in numbers]
        assert sorted(made) == list(range(1, 201))
        recorded = {(op.data["thread"], op.data["n"]) for op in memory.operations() if isinstance(op.data, dict)}
        assert recorded == {(thread, number) for thread in range(8) for number in range(25)}
        assert_whole(memory)


def assert_whole(memory: OrchestratorContextManager) -> None:
    """Check that each operation is in exactly one place, and that only unfinished sessions have a live document."""
    for session in memory.sessions():
        operations = ids(memory.operations(OperationFilter(session=session.id)))
        live = memory.session_memory.place.document(session)
        ended = session.status is SessionStatus.ARCHIVED
        assert live.exists() is not ended
        path = live.parent / session.archive if session.archive else live
        shown = list(SessionDocument.parse(path.read_text(encoding="utf-8")).entries())
        standing = [s for s in memory.losses(session.id) if s.level and not s.parent]
        covered = [op.id for s in standing for op in memory.expand(s.id).operations]
        working = [] if ended else ids(memory.working_memory.get_all_operations())
        assert sorted([*shown, *covered, *working]) == operations


def test_a_flush_right_after_anothers_commit_leaves_one_document(tmp_path: Path, clock: Clock) -> None:
    """An operation committed right before another memory's flush is archived; no live document reappears."""
    flusher: list[OrchestratorContextManager] = []

    def point(name: str) -> None:
        if name == "record.commit.after" and flusher:
            flusher.pop().flush_session()

    with (
        open_memory(tmp_path, config=CONFIG, clock=clock, write_point=point) as one,
        open_memory(tmp_path, config=CONFIG, clock=clock) as two,
    ):
        record(one, 10)
        flusher.append(two)
        record(one, 1, 11)
        assert flusher == []
        one.get_stats()
        assert [s.status for s in one.sessions()] == [SessionStatus.ARCHIVED]
        assert_whole(one)
        record(one, 3, 12)
        assert_whole(one)


# Failures


def test_a_first_operation_is_acknowledged_though_its_document_cannot_be_made(tmp_path: Path, clock: Clock) -> None:
    """An operation is acknowledged even if its session's document cannot be written; that is made up for later."""
    failing = ["resume.write.before"]

    def point(name: str) -> None:
        if name in failing:
            raise OSError(28, "No space left on device")

    with open_memory(tmp_path, config=CONFIG, clock=clock, write_point=point) as memory:
        operation = memory.record_operation("x", {"text": "first"})
        assert operation.id == 1
        assert len(memory.get_stats()["problems"]) == 1  # type: ignore[arg-type]
        record(memory, 5, 2)
        failing.clear()
        record(memory, 60, 7)
        assert memory.get_stats()["problems"] == []
        assert_whole(memory)


def test_a_child_does_not_wait_for_a_thread_that_is_not_there(tmp_path: Path) -> None:
    """A child forked while a thread held the memory gets `ClosedError` at once; the parent's memory stays open."""
    with open_memory(tmp_path) as memory:
        memory.record_operation("x", {"n": 1})
        held, done = threading.Event(), threading.Event()

        def hold(sender: object, **_: object) -> None:
            held.set()
            done.wait(30)

        memory.events.operation_recorded.connect(hold)
        thread = threading.Thread(target=memory.record_operation, args=("x", {"n": 2}))
        thread.start()
        assert held.wait(30)
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # otherwise a deadlock would last for ever
            told = 0
            for use in (memory.get_stats, memory.flush_session, lambda: memory.record_operation("x", {"n": 3})):
                try:
                    use()
                except ClosedError:
                    told += 1
            memory.close()
            os._exit(0 if told == 3 else 1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        done.set()
        thread.join()
        assert code == 0
        memory.record_operation("x", {"n": 4})
        assert [operation.data for operation in memory.operations()] == [{"n": 1}, {"n": 2}, {"n": 4}]


def test_names_and_numbers_of_subclasses_are_recorded_as_plain_ones(tmp_path: Path) -> None:
    """Enum members and other subclasses of str and int are recorded and returned as plain values."""

    class Kind(str, Enum):  # noqa: UP042
        DECISION = "decision"

    class Size(IntEnum):
        SMALL = 7

    with open_memory(tmp_path) as memory:
        recorded = memory.record_operation(Kind.DECISION, {}, Size.SMALL, agent=Kind.DECISION)
        assert (type(recorded.type), type(recorded.agent), type(recorded.tokens)) == (str, str, int)
        assert memory.operations() == [recorded]
        assert repr(recorded) == repr(memory.operations()[0])


def test_any_filter_is_a_question(tmp_path: Path) -> None:
    """Filters with impossible names or huge numbers raise nothing and match correctly."""
    with open_memory(tmp_path) as memory:
        for session in ("", "\udcff"):
            with pytest.raises(NotFoundError, match=f"no session id starts with '{session and '.*udcff'}'"):
                memory.losses(session)
        recorded = memory.record_operation("x", {"n": 1}, agent="a")
        assert memory.operations(OperationFilter(type="\udcff")) == []
        assert memory.operations(OperationFilter(agent="\ud800")) == []
        assert memory.operations(OperationFilter(after=10**30)) == []
        assert memory.operations(OperationFilter(through=10**30, limit=10**30)) == [recorded]
        assert memory.query_recent_operations(limit=10**30) == [recorded]
        assert memory.facts(limit=10**30) == []
        assert memory.search("nothing of that kind", limit=10**30).hits is not None

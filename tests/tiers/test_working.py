"""Working memory: it stays within its limits, and an operation leaves only after it is in the next tier."""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.documents.entries import Entry
from orchestra_mem.core.documents.markdown import PIN
from orchestra_mem.core.documents.session_document import SessionDocument
from orchestra_mem.tiers.working import WorkingMemory
from orchestra_mem.types import Json, OperationFilter, SessionStatus
from tests.builders import an_operation
from tests.timing import assert_linear

START = datetime(2025, 1, 15, 10, tzinfo=UTC)
# Small enough that a few dozen operations spill, are compacted, and are merged to higher levels.
SMALL = {
    "orchestrator": {
        "context_window": {"max_tokens": 4_096},
        "working_memory": {"max_operations": 8, "max_tokens": 500},
        "session_compression_threshold": 1_000,
    },
    "compaction": {"verbatim_floor_tokens": 100, "segment_tokens": 150, "fan_in": 3},
}


def entry(number: int, *, tokens: int = 10, kind: str = "x", data: Json = None) -> Entry:
    """An entry of so many tokens."""
    operation = an_operation(number, data, type=kind, tokens=tokens, entry_tokens=tokens)
    return Entry(operation=operation, started=date(2025, 1, 15), max_chars=1_000)


def filled(*tokens: int, max_operations: int = 6, max_tokens: int = 100) -> WorkingMemory:
    """A working memory with operations of these sizes, numbered from 1."""
    memory = WorkingMemory(max_operations=max_operations, max_tokens=max_tokens)
    for number, size in enumerate(tokens, start=1):
        memory.add(entry(number, tokens=size))
    return memory


def ids(entries: list[Entry]) -> list[int]:
    """Return the numbers of entries."""
    return [found.operation.id for found in entries]


@given(st.lists(st.tuples(st.integers(0, 120), st.booleans()), max_size=30), st.integers(2, 9), st.integers(1, 200))
def test_what_overflows_does_not_depend_on_when_it_is_let_go(
    steps: list[tuple[int, bool]], most: int, most_tokens: int
) -> None:
    """Passing a limit marks the oldest entries to leave, down to half of both limits, whenever they are dropped."""
    at_once = WorkingMemory(max_operations=most, max_tokens=most_tokens)
    later = WorkingMemory(max_operations=most, max_tokens=most_tokens)
    stay: list[int] = []
    for number, (tokens, let_go) in enumerate(steps, 1):
        stay.append(tokens)
        if len(stay) > most or sum(stay) > most_tokens:
            while len(stay) > 1 and (len(stay) > most // 2 or sum(stay) > most_tokens // 2):
                del stay[0]
        left = list(range(1, number - len(stay) + 1))
        for memory, now in ((at_once, True), (later, let_go)):
            memory.add(entry(number, tokens=tokens))
            before = ids(memory.entries())[:1]
            assert ids(memory.overflow()) == left[before[0] - 1 :]
            assert memory.overflows == bool(memory.overflow())
            if now:
                memory.drop_through(len(left))
                assert memory.overflow() == []
                assert memory.get_stats()["current_tokens"] == sum(stay)


def test_what_waits_is_far_over_when_it_is_as_much_as_the_limits_again() -> None:
    """`overflow_factor` is true once the waiting entries alone amount to a full limit, in number or tokens."""
    assert not filled(*[1] * 8).overflow_factor
    assert filled(*[1] * 12).overflow_factor
    assert not filled(90, 90).overflow_factor
    assert filled(90, 90, 90).overflow_factor


def test_questions_are_answered_newest_first() -> None:
    """Queries by count, type and text return the newest first, and text search ignores case."""
    memory = WorkingMemory()
    memory.add(entry(1, kind="a", data="Straße"))
    memory.add(entry(2, kind="b", data={"k": "PARSER"}))
    memory.add(entry(3, kind="a", data=["parser"]))
    assert [op.id for op in memory.get_all_operations()] == [1, 2, 3]
    assert [op.id for op in memory.get_recent_operations()] == [3, 2, 1]
    assert [op.id for op in memory.get_recent_operations(2)] == [3, 2]
    assert [op.id for op in memory.get_operations("a")] == [3, 1]
    assert [op.id for op in memory.get_operations("a", limit=1)] == [3]
    assert memory.get_operations(limit=0) == memory.get_operations(limit=-1) == []
    assert [op.id for op in memory.search("parser")] == [3, 2]
    assert [op.id for op in memory.search("parser", max_results=1)] == [3]
    assert [op.id for op in memory.search("STRASSE")] == [1]
    assert memory.search("nothing") == []


def test_a_cleared_memory_accepts_the_operations_that_it_held() -> None:
    """`add_operation` ignores an operation that is still held or has been spilled, not one that was cleared."""
    memory = filled(10, 10)
    operation = memory.get_all_operations()[0]
    memory.add_operation(operation)
    assert memory.get_stats()["operation_count"] == 2
    memory.clear()
    memory.add_operation(operation)
    assert memory.get_all_operations() == [operation]


# Through the manager

WORDS = ["parser", "cache", "router", "index", "queue", "ledger", "window", "budget", "reads", "writes", "drops"]
SAYINGS = st.sampled_from(
    [
        "We decided to use SQLite because it is embedded.",
        "Never deploy on Fridays.",
        "TODO: write the migration guide.",
        "The build failed with exit code 2 in src/build.py.",
        "\n### [10:00:00] X (op 3)\n<!-- pin -->\n```\n",
        "",
    ]
)


class Tiers(RuleBasedStateMachine):
    """Record, refresh, flush, restart and a person's edits, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.now = START
        self.said: dict[int, str] = {}
        self.pinned: set[int] = set()
        self.person: list[str] = []
        self.memory = self.open()

    def open(self) -> OrchestratorContextManager:
        """Open the memory of the folder."""
        return open_memory(self.folder.name, config=SMALL, clock=lambda: self.now)

    def teardown(self) -> None:
        """Close the memory and delete its folder."""
        self.memory.close()
        self.folder.cleanup()

    @property
    def path(self) -> Path | None:
        """The live document, or None if there is none."""
        path = self.memory.session_memory.path
        return path if path is not None and path.exists() else None

    @initialize()
    def begin(self) -> None:
        """Begin with a session that has already spilled."""
        self.record(20, 7, "", 4)

    @rule(
        count=st.integers(1, 15),
        seed=st.integers(0, 1_000),
        saying=SAYINGS,
        minutes=st.sampled_from([0, 1, 9, 40, -90]),
    )
    def record(self, count: int, seed: int, saying: str, minutes: int) -> None:
        """Record operations while the clock moves forwards or backwards."""
        for number in range(count):
            self.now += timedelta(minutes=minutes)
            words = " ".join(WORDS[(seed + number * k) % len(WORDS)] for k in range(1, 9 + seed % 30))
            text = f"Step {seed + number}: {words}. {saying}"
            operation = self.memory.record_operation("task_execution", {"task_id": seed % 5, "result": text})
            self.said[operation.id] = text

    @rule()
    def refresh(self) -> None:
        """Refresh: spill, compact, and begin a new epoch."""
        self.memory.refresh()

    @rule()
    def flush(self) -> None:
        """End the session; its archive must contain the person's sections."""
        path = self.memory.flush_session()
        if path is not None:
            text = path.read_text(encoding="utf-8")
            assert all(words in text for words in self.person)
        self.person.clear()
        self.pinned.clear()

    @rule()
    def restart(self) -> None:
        """Close and reopen the memory."""
        self.memory.close()
        self.memory = self.open()

    # Drawn values must not depend on the document: session ids are random, and so are their token counts.
    @precondition(lambda self: self.path is not None)
    @rule(pick=st.integers(0, 99))
    def pin(self, pick: int) -> None:
        """Pin an entry as a person."""
        assert self.path is not None
        text = self.path.read_text(encoding="utf-8")
        entries = [n for n in SessionDocument.parse(text).entries() if n in self.said and n not in self.pinned]
        if entries:
            number = entries[pick % len(entries)]
            self.path.write_text(text.replace(f"(op {number})\n", f"(op {number})\n{PIN}\n"), encoding="utf-8")
            self.pinned.add(number)

    @precondition(lambda self: self.path is not None)
    @rule(pick=st.integers(0, 99))
    def unpin(self, pick: int) -> None:
        """Remove a pin as a person."""
        assert self.path is not None
        if not self.pinned:
            return
        number = sorted(self.pinned)[pick % len(self.pinned)]
        text = self.path.read_text(encoding="utf-8")
        self.path.write_text(text.replace(f"(op {number})\n{PIN}\n", f"(op {number})\n"), encoding="utf-8")
        self.pinned.discard(number)

    @precondition(lambda self: self.path is not None)
    @rule(number=st.integers(0, 99), claimed=st.integers(0, 40))
    def write(self, number: int, claimed: int) -> None:
        """Write a person's section at the end of the document or between its entries."""
        assert self.path is not None
        words = f"#### Mine {number}.{len(self.person)}\n\nSee (op {claimed}), and ### that (op {claimed}).\n\n"
        text = self.path.read_text(encoding="utf-8")
        if number % 2:
            text += words
        else:
            text = text.replace("## Operations Log\n\n", f"## Operations Log\n\n{words}")
        self.path.write_text(text, encoding="utf-8")
        if words in text:
            self.person.append(words)

    @rule(budget=st.sampled_from([0, 50, 700, 3_000]))
    def context(self, budget: int) -> None:
        """Request a context, which must fit its budget."""
        assert self.memory.get_orchestrator_context("x", budget).tokens <= budget

    @invariant()
    def each_operation_stands_in_exactly_one_place(self) -> None:
        """Each operation is in working memory, in an entry, or in a summary of the document, and only in one."""
        session = self.memory.session_memory.session
        if session is None:
            assert self.memory.working_memory.get_all_operations() == []
            return
        recorded = self.memory.operations(OperationFilter(session=session.id))
        places: Counter[int] = Counter(op.id for op in self.memory.working_memory.get_all_operations())
        text = self.path.read_text(encoding="utf-8") if self.path else ""
        document = SessionDocument.parse(text)
        places.update(document.entries().keys())
        standing = {s.id: s for s in self.memory.losses(session.id) if s.level and not s.parent}
        assert set(standing) == set(document.summaries())
        for summary in standing.values():
            covered = [op.id for op in self.memory.expand(f"S{summary.id}").operations]
            assert len(covered) == summary.operation_count
            places.update(covered)
        assert {op.id: places[op.id] for op in recorded} == {op.id: 1 for op in recorded}
        assert all(self.said[op.id] == op.data["result"] for op in recorded if isinstance(op.data, dict))
        assert all(words in text for words in self.person)
        assert self.pinned <= set(document.entries())

    @invariant()
    def working_memory_is_within_its_limits(self) -> None:
        """After a record, operations and tokens are within their limits; one operation alone may exceed the tokens."""
        stats = self.memory.working_memory.get_stats()
        assert int(str(stats["operation_count"])) <= 8
        assert int(str(stats["current_tokens"])) <= 500 or stats["operation_count"] == 1

    @invariant()
    def ended_sessions_have_their_documents_in_the_archive(self) -> None:
        """Each archived session has an archive file, and live documents belong to active sessions."""
        folder = Path(self.folder.name) / ".obra" / "sessions"
        live = {path.name for path in folder.glob("*.md")}
        sessions = self.memory.sessions()
        assert live == {f"session_{s.id}.md" for s in sessions if s.status is SessionStatus.ACTIVE}
        assert all(s.archive and (folder / s.archive).exists() for s in sessions if s.status is SessionStatus.ARCHIVED)


Tiers.TestCase.settings = settings(max_examples=10, stateful_step_count=20)
TestNothingLeavesWithoutStandingInTheNextTier = Tiers.TestCase


def test_what_cannot_leave_for_long_costs_no_more_each_time() -> None:
    """Adding an operation takes constant time, however many operations wait for the next tier."""
    entries = [entry(number, tokens=60) for number in range(1, 20_001)]

    def add(size: int) -> None:
        memory = WorkingMemory(max_tokens=100)
        for each in entries[:size]:
            memory.add(each)

    assert_linear(add, len(entries))

"""Every operation is looked through once, and facts are kept true."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestra_mem.adapters.database import Database, SqliteEventLog, SqliteLedger
from orchestra_mem.tiers.fact_extractor import FactExtractor
from orchestra_mem.types import (
    Json,
    MustKeepKind,
    MustKeepStatus,
    Operation,
    Session,
    SessionStatus,
    UnrecordedOperation,
)

START = datetime(2025, 1, 15, 10, tzinfo=UTC)


class Found:
    """An extractor with a real event log and a real ledger."""

    def __init__(self, path: Path) -> None:
        self.database = Database(path / "obra.db")
        self.log = SqliteEventLog(self.database)
        self.ledger = SqliteLedger(self.database)
        self.extractor = FactExtractor(self.log, self.ledger)

    def record(self, data: Json, kind: str = "note", *, key: str | None = None, agent: str | None = None) -> Operation:
        """Record an operation."""
        draft = UnrecordedOperation(
            type=kind,
            data=data,
            timestamp=START,
            tokens=1,
            entry_tokens=1,
            agent=agent,
            critical=False,
            idempotency_key=key,
        )
        return self.log.append(draft, lambda: Session(id="s", started=START, status=SessionStatus.ACTIVE))[0]

    def go(self, through: int) -> None:
        """Extract the facts of the live session up to an operation."""
        self.extractor.extract(self.log.session("s"), through)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Found]:
    """An empty memory."""
    made = Found(tmp_path)
    yield made
    made.database.close()


def test_operations_are_looked_through_once_and_up_to_the_one_named(memory: Found) -> None:
    """Facts are numbered from 1 in the order of their operations; looking again finds nothing twice."""
    memory.record({"text": "Never deploy on Fridays."})
    memory.record({"text": "The weather is fine."})
    memory.record({"decision": "We decided to use SQLite because it is embedded."}, "decision")
    memory.go(2)
    assert [(f.id, f.kind, f.operation) for f in memory.extractor.facts(1, 9)] == [(1, MustKeepKind.CONSTRAINT, 1)]
    assert memory.log.session("s").judged_through == 2
    memory.go(2)
    memory.go(3)
    memory.go(3)
    facts = memory.extractor.facts(1, 9)
    assert [(f.id, f.kind, f.operation) for f in facts] == [
        (1, MustKeepKind.CONSTRAINT, 1),
        (2, MustKeepKind.DECISION, 3),
    ]
    assert all(f.status is MustKeepStatus.STANDING for f in facts)
    assert memory.extractor.facts(3, 3) == facts[1:]
    assert memory.log.session("s").judged_through == 3


RULE = "Never deploy on Fridays."


@pytest.mark.parametrize("apart", [True, False])
def test_the_next_version_of_a_note_supersedes_what_the_one_before_said(memory: Found, apart: bool) -> None:
    """Whether it was looked through before or is at the same time; what is said again stands as the new one's."""
    memory.record({"text": f"{RULE} Never push to main."}, key="file:a:1")
    if apart:
        memory.go(1)
    memory.record({"text": RULE, "replaces": "op 1"}, key="file:a:2")
    memory.go(2)
    assert [(fact.operation, fact.text, fact.status) for fact in memory.extractor.facts(1, 2)] == [
        (1, RULE, MustKeepStatus.SUPERSEDED), (1, "Never push to main.", MustKeepStatus.SUPERSEDED),
        (2, RULE, MustKeepStatus.STANDING),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("replaces", "key", "agent"),
    [
        ("op 1", "file:a:2", "mallory"), ("op 1", "file:b:2", None), ("op 1", None, None), ("op 9", "file:a:2", None),
        ("op 2", "file:a:2", None), (7, "file:a:2", None), ("op 99999999999999999999999", "file:a:2", None),
    ],
)  # fmt: skip
def test_nothing_else_supersedes_a_note(memory: Found, replaces: Json, key: str | None, agent: str | None) -> None:
    """What another agent says to replace it, or what is of another thing, leaves it alone."""
    memory.record({"text": RULE}, key="file:a:1")
    memory.record({"text": "The weather is fine.", "replaces": replaces}, key=key, agent=agent)
    memory.go(2)
    assert [fact.status for fact in memory.extractor.facts(1, 1)] == [MustKeepStatus.STANDING]


def test_a_lighter_remark_takes_no_decision_back(memory: Found) -> None:
    """What a tool printed, or a report says in passing, revokes nothing that a person decided."""
    memory.record({"speaker": "Ann", "text": "We decided to use MySQL for the event log."})
    remark = "We decided to use SQLite for the event log instead of MySQL."
    memory.record({"output": "", "notes": remark})
    memory.go(2)
    assert [fact.status for fact in memory.extractor.facts(1, 1)] == [MustKeepStatus.STANDING]
    memory.record({"speaker": "Ann", "text": remark})
    memory.go(3)
    assert [fact.status for fact in memory.extractor.facts(1, 1)] == [MustKeepStatus.SUPERSEDED]


def test_nothing_to_look_through_is_no_work(memory: Found) -> None:
    """An empty range changes nothing."""
    memory.record({"text": "Never deploy on Fridays."})
    memory.go(0)
    assert memory.extractor.facts(1, 1) == []
    assert memory.log.session("s").judged_through == 0

"""The judge: every operation is looked through once, and facts are kept true."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestra_mem.adapters.database import Database, SqliteEventLog, SqliteLedger
from orchestra_mem.tiers.judge import Judge
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


class Court:
    """A judge with a real event log and a real ledger."""

    def __init__(self, path: Path) -> None:
        self.database = Database(path / "obra.db")
        self.log = SqliteEventLog(self.database)
        self.ledger = SqliteLedger(self.database)
        self.judge = Judge(self.log, self.ledger)

    def record(self, data: Json, kind: str = "note") -> Operation:
        """Record an operation."""
        draft = UnrecordedOperation(
            type=kind,
            data=data,
            timestamp=START,
            tokens=1,
            entry_tokens=1,
            agent=None,
            critical=False,
            idempotency_key=None,
        )
        return self.log.append(draft, lambda: Session(id="s", started=START, status=SessionStatus.ACTIVE))[0]

    def go(self, through: int) -> None:
        """Judge the live session up to an operation."""
        self.judge.judge(self.log.session("s"), through)


@pytest.fixture
def court(tmp_path: Path) -> Iterator[Court]:
    """An empty court."""
    made = Court(tmp_path)
    yield made
    made.database.close()


def test_operations_are_looked_through_once_and_up_to_the_one_named(court: Court) -> None:
    """Facts are numbered from 1 in the order of their operations; judging again finds nothing twice."""
    court.record({"text": "Never deploy on Fridays."})
    court.record({"text": "The weather is fine."})
    court.record({"decision": "We decided to use SQLite because it is embedded."}, "decision")
    court.go(2)
    assert [(f.id, f.kind, f.operation) for f in court.judge.facts(1, 9)] == [(1, MustKeepKind.CONSTRAINT, 1)]
    assert court.log.session("s").judged_through == 2
    court.go(2)
    court.go(3)
    court.go(3)
    facts = court.judge.facts(1, 9)
    assert [(f.id, f.kind, f.operation) for f in facts] == [
        (1, MustKeepKind.CONSTRAINT, 1),
        (2, MustKeepKind.DECISION, 3),
    ]
    assert all(f.status is MustKeepStatus.STANDING for f in facts)
    assert court.judge.facts(3, 3) == facts[1:]
    assert court.log.session("s").judged_through == 3


def test_a_decision_taken_back_is_superseded_by_the_later_one(court: Court) -> None:
    """The older keeps its text and number and names what took its place."""
    court.record({"decision": "We decided to use MySQL for the event log."}, "decision")
    court.go(1)
    text = "We no longer use MySQL for the event log; we decided to use SQLite for the event log instead."
    court.record({"decision": text}, "decision")
    court.go(2)
    old, *new = court.judge.facts(1, 2)
    assert (old.id, old.status) == (1, MustKeepStatus.SUPERSEDED)
    assert old.text == "We decided to use MySQL for the event log."
    assert old.superseded_by in {fact.id for fact in new}


def test_a_decision_perhaps_taken_back_stands_and_is_counted_as_standing(court: Court) -> None:
    """What casts the doubt is a fact then, though it would be none alone; a lighter remark casts none."""
    court.record({"speaker": "Ann", "text": "We run nine stalls, that is signed with the town."})
    court.record({"speaker": "Ben", "text": "The weather is fine."})
    court.go(2)
    remark = "Six stalls then, the three by the fountain fall out, I told the mayor."
    for number in (3, 4, 5):
        court.record({"output": f"{remark} {number}"} if number == 3 else {"speaker": "Ben", "text": "Fine."})
    court.go(5)
    assert [fact.superseded_by for fact in court.judge.facts(1, 1)] == [0]
    last = court.record({"speaker": "Ann", "text": remark})
    court.go(last.id)
    old, new = court.judge.facts(1, 1)[0], court.judge.facts(last.id, last.id)[0]
    assert (old.status, old.superseded_by) == (MustKeepStatus.STANDING, new.id)
    assert new.text == remark
    assert court.ledger.count_must_keeps()[MustKeepKind.DECISION][MustKeepStatus.STANDING] == 2
    assert court.judge.facts(1, last.id)[0] in court.ledger.must_keeps(status=MustKeepStatus.STANDING)


def test_an_open_item_that_is_done_is_marked_done(court: Court) -> None:
    """Found open in one operation, completed in a later one."""
    court.record({"text": "TODO: write the migration guide for issue #77."})
    court.go(1)
    court.record({"text": "Finished: the migration guide for issue #77 is written."})
    court.go(2)
    first = court.judge.facts(1, 1)[0]
    assert (first.kind, first.status) == (MustKeepKind.OPEN_ITEM, MustKeepStatus.DONE)


@pytest.mark.parametrize("odd", ["\ud800 \udc80", "\x00", "\u2028", "<!-- pin -->", "\n## x\n"])
def test_facts_can_be_stored_and_shown_whatever_they_hold(court: Court, odd: str) -> None:
    """What no file could hold reads as its escape; nothing pins itself."""
    court.record({"decision": f"We decided to use {odd} SQLite because it is embedded."}, "decision")
    court.record({"text": f"Never deploy {odd} on Fridays."})
    court.go(2)
    facts = court.judge.facts(1, 2)
    assert facts
    for fact in facts:
        fact.text.encode("utf-8")
        assert "\x00" not in fact.text
        assert "<!-- pin -->" not in fact.text


def test_nothing_to_judge_is_no_work(court: Court) -> None:
    """An empty range changes nothing."""
    court.record({"text": "Never deploy on Fridays."})
    court.go(0)
    assert court.judge.facts(1, 1) == []
    assert court.log.session("s").judged_through == 0

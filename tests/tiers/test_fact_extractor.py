"""Fact extraction across operations: which later operations supersede the facts of an earlier one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.stores import EventLog, Ledger, SqlDatabase
from orchestra_mem.tiers.fact_extractor import FactExtractor
from orchestra_mem.types import Json, MustKeepKind, MustKeepStatus, Operation, Session, SessionStatus
from tests.builders import cases
from tests.conftest import START, Clock
from tests.memories import record_decisions, say

RULE = "Never deploy on Fridays."
STANDING, SUPERSEDED = MustKeepStatus.STANDING, MustKeepStatus.SUPERSEDED


def _first(memory: OrchestratorContextManager) -> list[MustKeepStatus]:
    """Return the statuses of the first operation's facts."""
    return [fact.status for fact in memory.facts(standing=False) if fact.operation == 1]


@pytest.mark.parametrize("apart", [True, False])
def test_the_next_version_of_a_note_supersedes_what_the_one_before_said(
    memory: OrchestratorContextManager, apart: bool
) -> None:
    """A new version of a note supersedes all facts of the old one, whether both are read at once or in turn."""
    memory.record_operation("note", {"text": f"{RULE} Never push to main."}, idempotency_key="file:a:1")
    if apart:
        assert _first(memory) == [STANDING, STANDING]
    memory.record_operation("note", {"text": RULE, "replaces": "op 1"}, idempotency_key="file:a:2")
    facts = sorted(memory.facts(standing=False), key=lambda fact: fact.id)
    assert [(fact.operation, fact.text, fact.status) for fact in facts] == [
        (1, RULE, SUPERSEDED), (1, "Never push to main.", SUPERSEDED), (2, RULE, STANDING),
    ]  # fmt: skip


def _ran(command: str, code: int, output: str) -> Json:
    return {"tool": "shell", "input": command, "exit_code": code, "output": output}


@pytest.mark.parametrize(("replaces", "key", "agent"), cases("nothing_else_supersedes_a_note"))
def test_nothing_else_supersedes_a_note(
    memory: OrchestratorContextManager, replaces: Json, key: str | None, agent: str | None
) -> None:
    """A `replaces` from another agent or source, or to no earlier operation, supersedes nothing."""
    memory.record_operation("note", {"text": RULE}, idempotency_key="file:a:1")
    said = {"text": "The weather is fine.", "replaces": replaces}
    memory.record_operation("note", said, idempotency_key=key, agent=agent)
    assert _first(memory) == [STANDING]


@pytest.mark.parametrize("apart", [True, False])
def test_a_completion_ends_the_errors_of_every_try(memory: OrchestratorContextManager, apart: bool) -> None:
    """A task that failed with other errors each time, and then succeeds, leaves none; another task's errors stand."""
    errors = "HTTP 502 from the provider", "the lock file is stale", "row 17 is malformed", ""
    for error in errors:
        outcome = {"status": "failed", "error": error} if error else {"status": "completed"}
        memory.record_operation("task_execution", {"task": "import the orders", **outcome})
        if apart:
            memory.facts()
        if error == errors[1]:
            memory.record_operation("task_execution", {"task": "print the labels", **outcome})
    assert [fact.text for fact in memory.facts(MustKeepKind.FAILURE)] == [
        "status: failed (print the labels)",
        errors[1],
    ]


@pytest.mark.parametrize("apart", [True, False])
def test_a_command_that_succeeds_again_is_no_failure_any_more(memory: OrchestratorContextManager, apart: bool) -> None:
    """A command's failures end once the same agent has run it again with success, and only then."""
    ran: list[tuple[str, str, int, str]] = [
        ("ann", "pytest -q", 1, "KeyError: 'user'"), ("ben", "pytest -q", 0, "21 passed"),
        ("ann", "pytest -q docs", 0, "2 passed"), ("ann", "make", 2, "Error: no rule"), ("ann", "pytest -q", 0, "ok"),
        ("ann", "pytest -q", 3, "KeyError: 'name'"),
    ]  # fmt: skip
    standing = []
    for agent, command, code, output in ran:
        memory.record_operation("tool_use", _ran(command, code, output), agent=agent)
        if apart:
            standing.append({fact.operation for fact in memory.facts()})
    if apart:
        assert standing == [{1}, {1}, {1}, {1, 4}, {4}, {4, 6}]
    assert {fact.operation for fact in memory.facts()} == {4, 6}
    assert {fact.status for fact in memory.facts(standing=False) if fact.operation == 1} == {MustKeepStatus.DONE}


@pytest.mark.parametrize("apart", [True, False])
def test_a_model_that_quotes_the_memory_decides_nothing(memory: OrchestratorContextManager, apart: bool) -> None:
    """An answer in the words of a known decision, rule or insight adds no fact and brings no superseded one back.

    A person's words do.
    """
    old, rule = "We keep the web sessions in Redis.", "Never restart the database by ssh."
    new = "We keep the web sessions in Postgres instead of Redis."
    learnt = "We found out that the font cache is empty on new machines."
    spoken = [("user", each) for each in (old, rule, new, learnt)]
    for role, text in [*spoken, *(("assistant", f"Let me see. {text} I hope that helps.") for _, text in spoken)]:
        memory.record_operation("message", {"role": role, "text": text})
        if apart:
            memory.facts()
    assert [fact.text for fact in memory.facts()] == [rule, new, learnt]
    assert len(memory.facts(standing=False)) == 4
    memory.record_operation("message", {"role": "user", "text": old})
    assert old in [fact.text for fact in memory.facts()]


_MANY = 450
_THINGS = ("PostgreSQL", "orders", "invoices", "uploads", "Ann", "import guide")
_OLD = (
    "We decided to use PostgreSQL for the orders.", "Ann is responsible for the invoices.",
    "Uploads may have at most 20 MB.", "We still have to write the import guide.",
)  # fmt: skip
_NEW = (
    "We decided to use MySQL instead of PostgreSQL for the orders.", "From now on Ben is responsible for the invoices.",
    "From now on uploads may have at most 50 MB.", "The import guide is written.",
)  # fmt: skip


def _record_many(memory: OrchestratorContextManager, kind: str) -> None:
    """Record facts that nothing ends; each shares words with many others, and some with the facts in `_OLD`."""
    if kind == "decision":
        record_decisions(memory, _MANY)
        return
    for number in range(_MANY):
        thing, place = _THINGS[number % len(_THINGS)], f"room{number}"
        memory.record_operation("tool_use", _ran(f"make {place}", 1, f"error: {thing} not found in {place}"))


@pytest.mark.parametrize("kind", ["failure", "decision"])
def test_no_number_of_facts_keeps_an_older_one_from_being_ended(tmp_path: Path, clock: Clock, kind: str) -> None:
    """Old facts are superseded and done, whatever other facts came between, after a restart too."""
    with open_memory(tmp_path, clock=clock) as memory:
        say(memory, clock, *_OLD)
        memory.record_operation("tool_use", _ran("pytest -q", 1, "KeyError: 'user'"))
        _record_many(memory, kind)
        memory.refresh()
    with open_memory(tmp_path, clock=clock) as memory:
        assert len(memory.facts()) > 350  # some name another place for the same thing
        say(memory, clock, *_NEW)
        memory.record_operation("tool_use", _ran("pytest -q", 0, "21 passed"))
        status = {fact.text: fact.status for fact in memory.facts(standing=False)}
    done = MustKeepStatus.DONE
    assert [status[text] for text in _OLD] == [SUPERSEDED, SUPERSEDED, SUPERSEDED, done]
    assert status["KeyError: 'user'"] is done


def test_a_memory_of_an_earlier_version_ends_its_facts(tmp_path: Path, clock: Clock) -> None:
    """Facts that an earlier version stored, without an index of their words, are found and ended."""
    with open_memory(tmp_path, clock=clock) as memory:
        say(memory, clock, *_OLD)
    (path,) = tmp_path.rglob("obra.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("DROP TABLE must_keep_words")
        raw.execute("DROP INDEX must_keeps_unindexed")
        for column in ("indexed", "former"):
            raw.execute(f"ALTER TABLE must_keeps DROP COLUMN {column}")
        raw.execute("ALTER TABLE shared_files DROP COLUMN saved")
        for counted in ("below_done", "below_total"):
            raw.execute(f"ALTER TABLE work_items ADD COLUMN {counted} INTEGER NOT NULL DEFAULT 0")
        raw.execute("PRAGMA user_version = 14")
    raw.close()
    with open_memory(tmp_path, clock=clock) as memory:
        say(memory, clock, *_NEW)
        status = {fact.text: fact.status for fact in memory.facts(standing=False)}
    assert [status[text] for text in _OLD[:3]] == [SUPERSEDED] * 3


def test_a_lighter_remark_takes_no_decision_back(memory: OrchestratorContextManager) -> None:
    """A remark in an operation's notes does not supersede a person's decision; a person's statement does."""
    memory.record_operation("note", {"speaker": "Ann", "text": "We decided to use MySQL for the event log."})
    remark = "We decided to use SQLite for the event log instead of MySQL."
    memory.record_operation("note", {"output": "", "notes": remark})
    assert _first(memory) == [STANDING]
    memory.record_operation("note", {"speaker": "Ann", "text": remark})
    assert _first(memory) == [SUPERSEDED]


@pytest.mark.parametrize(
    ("kind", "data", "weight"), cases("a_persons_words_weigh_2_and_a_models_1"), ids=lambda value: str(value)[:40]
)
def test_a_persons_words_weigh_2_and_a_models_1(
    memory: OrchestratorContextManager, kind: str, data: Json, weight: float
) -> None:
    """Role, speaker and type tell who speaks, whatever the form of the data; of a model, each of its names counts."""
    text = "Never restart the database by ssh on production machines."
    memory.record_operation(kind, text if data is None else {**data, "text": text} if isinstance(data, dict) else data)
    assert {(fact.text, fact.weight) for fact in memory.facts()} == {(text, weight)}


def test_two_processes_that_look_through_the_same_operations_find_each_fact_once(database: SqlDatabase) -> None:
    """Extracting an operation twice finds each fact once, even if a person has reworded it in between."""
    log, ledger = EventLog(database), Ledger(database)
    said = Operation(
        id=0, session="", type="note", data={"text": RULE}, timestamp=START, tokens=7, entry_tokens=5
    )  # fmt: skip
    log.append(said, lambda: Session(id="one", started=START, status=SessionStatus.ACTIVE))
    both_saw, extractor = log.session("one"), FactExtractor(log, ledger)
    extractor.extract(both_saw, 1)
    (fact,) = ledger.must_keeps()
    ledger.edit_must_keeps([], [(fact, replace(fact, text="Never deploy at night."))])
    extractor.extract(both_saw, 1)
    assert [fact.text for fact in ledger.must_keeps()] == ["Never deploy at night."]

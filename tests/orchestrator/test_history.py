"""Questions about recent work: which operations a question selects, and how the answer describes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.orchestrator.journal import RecentQuestion, answer_recent, has_failed, read_recent_question
from orchestra_mem.types import Author, Json, Operation
from orchestra_mem.work_types import WorkEvent, WorkItem, WorkKind
from tests.builders import an_operation, cases

NOW = datetime(2026, 3, 5, 15, 0, tzinfo=UTC)  # a Thursday


def operation(number: int, data: Json, *, hours_ago: float = 0, kind: str = "nl_command", **given: str) -> Operation:
    """An operation `hours_ago` before NOW."""
    return an_operation(number, data, type=kind, timestamp=NOW - timedelta(hours=hours_ago), **given)


def item(number: int, kind: WorkKind, title: str) -> WorkItem:
    """A work item."""
    return WorkItem(id=number, kind=kind, title=title, created=NOW, changed=NOW)


def event(of: int, work: int, field: str, after: str) -> WorkEvent:
    """A change of a work item by operation `of`."""
    return WorkEvent(
        id=of * 10 + work, item=work, time=NOW, author=Author.MACHINE, field=field, before=None, after=after,
        operation=of,
    )  # fmt: skip


ITEMS = {
    5: item(5, WorkKind.EPIC, "User authentication"),
    10: item(10, WorkKind.STORY, "Login"),
    11: item(11, WorkKind.STORY, "Signup"),
    15: item(15, WorkKind.TASK, "Run migrations"),
    16: item(16, WorkKind.TASK, "Write docs"),
}
OPERATIONS = [
    operation(1, {"intent": "create", "outcome": "done"}, hours_ago=30, session="s0"),
    operation(2, {"intent": "add", "outcome": "done"}, hours_ago=2),
    operation(3, {"intent": "status", "outcome": "answered"}, hours_ago=1.5),
    operation(4, {"task_id": 15, "error": "timeout after 30 s"}, hours_ago=1, kind="task_execution"),
    operation(5, {"intent": "finish", "outcome": "done"}, hours_ago=0.5),
    operation(6, {"intent": "recent", "outcome": "answered"}),
]
EVENTS = [
    event(1, 5, "created", "User authentication"), event(2, 10, "created", "Login"), event(2, 11, "created", "Signup"),
    event(2, 11, "status", "in progress"), event(4, 15, "status", "failed"), event(5, 16, "status", "done"),
]  # fmt: skip


def ask(question: str) -> tuple[str, list[int]]:
    """Return the answer and the numbers of the operations that it describes."""
    text, chosen = answer_recent(
        read_recent_question(question, NOW), OPERATIONS, EVENTS, ITEMS.__getitem__, ["s", "s0"]
    )
    return text, [each.id for each in chosen]


@pytest.mark.parametrize(("question", "expected"), cases("question_chooses_its_operations"))
def test_question_chooses_its_operations(question: str, expected: list[int]) -> None:
    """A question selects operations by time, kind, action and count, newest first, but never mere questions."""
    assert ask(question)[1] == expected


def test_answer_is_told_from_changes_of_work() -> None:
    """The answer lists each change once, oldest first; a failure states its error, and an empty result says so."""
    assert ask("what did we create?")[0] == (
        'Epic #5 "User authentication" was created; Story #10 "Login" was created; Story #11 "Signup" was created'
        '; Story #11 "Signup": status in progress, was none'
    )
    assert "timeout after 30 s" in ask("show the last failed task")[0]
    assert ask("what did we rename")[0] == "No renamed records match that."


def test_operations_without_changes_speak_for_themselves() -> None:
    """An operation without work events is described by its own data, with its number and day."""
    failed: Json = {"task": "load the orders", "error": "row 4711 has no currency"}
    own = [operation(7, {"decision": "use bcrypt", "type": "x"}, kind="decision"), operation(8, "plain", kind="remark")]
    text, _ = answer_recent(
        RecentQuestion(), [*own, operation(9, failed, kind="task_execution")], [], ITEMS.__getitem__, []
    )
    assert text.splitlines() == [
        "Decision: use bcrypt [op 7, 2026-03-05]", "Remark: plain [op 8, 2026-03-05]",
        'Task execution "load the orders": row 4711 has no currency [op 9, 2026-03-05]',
    ]  # fmt: skip


def test_failure_is_known_by_error_outcome_or_result() -> None:
    """An operation has failed if its fields say so; an input that mentions errors has not."""
    assert has_failed(operation(1, {"error": "boom"}))
    assert has_failed(operation(1, {"status": "failed"}))
    assert has_failed(operation(1, {"success": False}))
    assert not has_failed(operation(1, {"user_input": "handle errors", "outcome": "done"}))
    assert not has_failed(operation(1, "failed"))


@given(st.text(max_size=200))
def test_any_question_is_read(text: str) -> None:
    """Any question parses without an error, and its period ends after it starts."""
    question = read_recent_question(text, NOW)
    assert question.since is None or question.until is None or question.since < question.until

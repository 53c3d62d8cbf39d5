"""The commands for work items: what they print and refuse, and that their filters match the memory's."""

from __future__ import annotations

import re
from typing import Any

import pytest

from orchestra_mem.errors import StorageError
from orchestra_mem.memory.manager import OrchestratorContextManager
from tests.builders import cases
from tests.faces.conftest import MadeBy, Program


def _plan(run: Program) -> None:
    run("work", "add", "epic", "User authentication")
    run("work", "add", "story", "Log in", "--parent", "1", "--priority", "2", "--acceptance", "by mail")
    run("work", "add", "story", "Sign up [bold]", "--parent", "1", "--depends-on", "2", "--assignee", "ann")


@pytest.fixture
def working(made_by: MadeBy) -> Program:
    """Epic #1 with the stories #2 and #3, of which #3 depends on #2."""
    return made_by(_plan)


def test_work_is_listed_in_the_order_of_the_backlog(working: Any) -> None:
    """`work` lists items in backlog order, and markup in titles is printed literally."""
    shown = [line.rstrip() for line in working("work").splitlines()]
    assert [line.split(maxsplit=4) for line in shown if line.startswith("#")] == [
        ["#2", "story", "pending", "2", "Log in"],
        ["#1", "epic", "pending", "3", "User authentication"],
        ["#3", "story", "pending", "3", "Sign up [bold]"],
    ]
    working("work", "--limit", "2")
    assert working.errors == "showing the first 2; --limit 0 shows all\n"


def test_a_long_title_hides_nothing_else(working: Any) -> None:
    """In 80 columns a long title is cut, and number, kind, status and times stay legible; so do sessions."""
    working("work", "add", "task", "Move the refunds of all shops to the new provider, with all exceptions for Spain")
    assert "#4   task    pending          3   Move the refunds" in working("work")
    assert re.search(r":\d\d   person   created: Move the refunds", working("work", "show", "4"))
    working("record", "note", "--text", "x")
    working("flush")
    assert re.search(r"\n[0-9a-f]{8} +\S+ \d\d:\d\d +\S+ \d\d:\d\d +archived", working("sessions"))


@pytest.mark.parametrize(("options", "found"), cases("filters_are_those_of_the_memory"))
def test_filters_are_those_of_the_memory(working: Any, options: list[str], found: list[int]) -> None:
    """`work` lists only items that match all filters."""
    working("work", "set", "2", "in-progress")
    assert [item["id"] for item in working.json("work", *options)] == found


def test_one_item_is_shown_with_how_it_came_to_be_so(working: Any) -> None:
    """`work show` prints an item with its relations and history, and as JSON all of it."""
    working("work", "set", "3", "blocked", "--reason", "the vendor")
    shown = working("work", "show", "3")
    assert shown.splitlines()[:5] == [
        'Story #3 "Sign up [bold]"', "blocked, priority 3, ann", 'part of Epic #1 "User authentication"',
        "depends on #2", 'waits for Story #2 "Log in" (pending)',
    ]  # fmt: skip
    assert "person   status: pending -> blocked (the vendor)" in shown
    record = working.json("work", "show", "3")
    assert record["item"]["status"] == "blocked"
    assert [item["id"] for item in record["blockers"]] == [2]
    last = record["events"][-1]
    assert (last["field"], last["before"], last["after"], last["reason"], last["author"]) == (
        "status", "pending", "blocked", "the vendor", "person",
    )  # fmt: skip
    assert working.json("work", "show", "1")["progress"] == {"done": 0, "total": 2, "share": 0.0}
    assert "0 of 2 done (0%)" in working("work", "show", "1")
    assert "- by mail" in working("work", "show", "2")


def test_what_is_typed_in_the_shell_is_a_persons(working: Any) -> None:
    """A change that a typed line makes, or takes back, is a person's; secrets in it are redacted all the same."""
    script = working.folder / "day.txt"
    script.write_text("start story 2\nundo\ncreate a story: rotate ghp_abcdefghijklmnopqrstuvwxyz0123456789\n")
    working("shell", "--yes", "--script", script)
    assert {event["author"] for event in working.json("work", "show", "2")["events"]} == {"person"}
    made = working.json("work", "show", "4")
    assert "ghp_" not in str(made)
    assert {event["author"] for event in made["events"]} == {"person"}


def test_what_is_set_is_told(working: Any) -> None:
    """`work set` and `work add` print the changed item as a line or as JSON."""
    assert working("work", "set", "2", "in progress") == 'Story #2 "Log in" is in progress\n'
    assert working.json("work", "set", "2", "done")["finished"] is not None
    assert working("work", "add", "task", "Hash", "--parent", "3") == 'Task #4 "Hash"\n'


def test_what_is_changed_stands_in_the_plan_at_once(run: Any) -> None:
    """After each command that changes work the plan shows the change, with or without a session."""
    plan = run.folder / ".obra" / "memory" / "work_plan.md"
    run("work", "add", "epic", "User auth")
    assert "- [ ] #1 User auth (epic)" in plan.read_text()
    assert "User auth" in run("context")
    run("record", "note", "--text", "It rains.")
    run("work", "add", "task", "Hash passwords")
    assert "- [ ] #2 Hash passwords" in plan.read_text()
    run("work", "set", "2", "in-progress")
    assert '- Task #2 "Hash passwords": in progress' in plan.read_text()
    run("run", "2", "true")
    assert "- [ ] #2 Hash passwords" not in plan.read_text()
    (run.folder / "day.txt").write_text("create an epic for billing\n")
    run("shell", "--script", run.folder / "day.txt")
    assert "Billing" in plan.read_text()


def test_a_plan_that_cannot_be_written_takes_no_change_back(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of work succeeds even if the plan cannot be written, and the problem is reported on stderr."""
    run("init")
    plan = run.folder / ".obra" / "memory" / "work_plan.md"
    plan.unlink()
    plan.mkdir()
    assert run("work", "add", "epic", "User auth") == 'Epic #1 "User auth"\n'
    assert f"{plan} is a folder" in run.errors

    def refuse(memory: OrchestratorContextManager) -> None:
        raise StorageError("the lock is held")

    monkeypatch.setattr(OrchestratorContextManager, "refresh", refuse)
    assert run("work", "set", "1", "in-progress") == 'Epic #1 "User auth" is in progress\n'
    assert run.errors.endswith("the change is stored, but the documents could not be updated: the lock is held\n")


@pytest.mark.parametrize(("arguments", "told"), cases("what_cannot_be_exits_with_1_and_says_why"))
def test_what_cannot_be_exits_with_1_and_says_why(working: Any, arguments: list[str], told: str) -> None:
    """A change of work that cannot be done exits with 1 and the reason on stderr, or as JSON with `--json`."""
    assert working("work", *arguments, exit_code=1) == ""
    assert told in working.errors
    assert told in working.json("work", *arguments, exit_code=1)["error"]["message"]

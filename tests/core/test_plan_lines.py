"""Work items as lines of the plan: written, parsed as people edit them, compared, and merged."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestra_mem.core.documents.document_merge import merged
from orchestra_mem.core.documents.owned_lines import owned_lines
from orchestra_mem.core.documents.plan_edits import plan_edits
from orchestra_mem.core.documents.plan_lines import item_line, parse_row, plan_lines, render_line
from orchestra_mem.core.work.wording import kept_title
from orchestra_mem.errors import InvalidChangeError
from orchestra_mem.work_types import WorkItem, WorkKind, WorkStatus
from tests.builders import cases
from tests.timing import assert_linear

NOW = datetime(2025, 1, 15, 10, tzinfo=UTC)
PLAN = """# Work Plan

## Immediate Next Steps

- Story #10 "Login form": can be started, under #5

## Prioritized Backlog

- [ ] #5 User authentication (epic, high, 1 of 3 done)
  - [x] #9 Table of users (task)
  - [ ] #10 Login form (story)
  - [ ] #11 Signup form (story, blocked by #10)
- [ ] #12 Tidy up (task)
- TODO: write the guide. (K1)

## Future Work

- [ ] #13 Dark mode (task, deferred)
"""


def _title(text: str) -> str:
    try:
        return kept_title(text)
    except InvalidChangeError:
        return "Login"


TITLES = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="ab ~*#[]()<>!-\\K12,x@|`", max_size=30),
    st.sampled_from(["(high)", "#7 seven", "[x] done", "~~off~~", "a (story)", "b (K5)", "<!-- pin -->", "- [ ] #9 x"]),
).map(_title)


@st.composite
def items(draw: st.DrawFn) -> WorkItem:
    """A work item with any fields."""
    return WorkItem(
        id=draw(st.integers(1, 10**9)), kind=draw(st.sampled_from(WorkKind)), title=draw(TITLES), created=NOW,
        changed=NOW, status=draw(st.sampled_from(WorkStatus)), priority=draw(st.integers(1, 5)),
        assignee=draw(st.none() | TITLES),
    )  # fmt: skip


@given(items(), st.lists(st.integers(1, 999), unique=True, max_size=3), st.sampled_from(["", "2 of 3 done"]))
def test_a_line_says_what_was_written_into_it(item: WorkItem, waits: list[int], progress: str) -> None:
    """A rendered line parses to the same item, whatever its title, so that it is not taken for a person's edit."""
    line = item_line(item, waits_for=tuple(waits), progress=progress)
    row = render_line(line)
    read = parse_row(row)
    assert "\n" not in row
    assert read is not None
    assert (read.number, read.title, read.ticked, read.struck, read.kind) == (
        item.id, line.title, item.status is WorkStatus.DONE, item.status is WorkStatus.CANCELLED, item.kind,
    )  # fmt: skip
    assert (read.priority, read.status, read.waits_for, read.assignee, read.progress) == (
        item.priority, line.status, tuple(waits), line.assignee, progress,
    )  # fmt: skip


@pytest.mark.parametrize(("row", "number", "title", "ticked", "struck"), cases("what_people_write"))
def test_what_people_write(row: str, number: int, title: str, ticked: bool, struck: bool) -> None:
    """Other bullets, boxes and strikes are understood; brackets with unknown words are part of the title."""
    line = parse_row(row)
    assert line is not None
    assert (line.number, line.title, line.ticked, line.struck) == (number, title, ticked, struck)


def test_moving_a_line_between_backlog_and_future_defers_and_takes_up() -> None:
    """Moving a line to Future Work defers the item, and moving it back resumes it, whatever its brackets say."""
    row = "- [ ] #13 Dark mode (task, deferred)\n"
    taken_up = plan_edits(PLAN, PLAN.replace(row, "").replace("- TODO", f"{row}- TODO"))
    row = "- [ ] #12 Tidy up (task)\n"
    deferred = plan_edits(PLAN, PLAN.replace(row, "") + row)
    assert [(edit.number, edit.status) for edit in taken_up.changed] == [(13, WorkStatus.PENDING)]
    assert [(edit.number, edit.status) for edit in deferred.changed] == [(12, WorkStatus.DEFERRED)]
    assert not taken_up.removed
    assert not deferred.removed


def _machine(text: str) -> str:
    """Return a later plan: #10 is done, #12 comes first with a remark, #11 is gone, #15 is new."""
    return (
        text.replace("- [ ] #10 Login form (story)", "- [x] #10 Login form (story)")
        .replace("  - [ ] #11 Signup form (story, blocked by #10)\n", "  - [ ] #15 MFA (story)\n")
        .replace("- [ ] #12 Tidy up (task)\n", "")
        .replace("- [ ] #5", '- [ ] #12 Tidy up (task)\n  <!-- Task #12 "Tidy up" is so. -->\n- [ ] #5')
        .replace("1 of 3", "2 of 3")
    )


NOTES = ["a note", "  indented", "- a thing", "", "    - deeper", "> quoted", "### Heading"]


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(NOTES)), max_size=8), st.booleans())
@example(notes=[(4, "a note"), (0, "a note"), (18, "  indented")], crlf=False)
def test_lines_of_work_are_the_machines_and_all_else_is_the_persons(notes: list[tuple[int, str]], crlf: bool) -> None:
    """A merge keeps every note of the person, and each work line once, in the machine's order."""
    rows = PLAN.split("\n")
    for number, (place, note) in enumerate(notes):
        rows.insert(8 + place % (len(rows) - 8), f"{note} {number}" if note else note)
    person = "\n".join(rows)
    machine = _machine(PLAN)
    if crlf:
        person = person.replace("\n", "\r\n")
    found = merged(PLAN, machine, person)
    text = found.text.replace("\r\n", "\n")
    assert found.conflicts == ()
    for number, (_, note) in enumerate(notes):
        assert not note or text.split("\n").count(f"{note} {number}") == 1
    shown = [line.number for line in plan_lines(text)]  # the line of #11 stays above a person's notes
    assert [number for number in shown if number != 11] == [line.number for line in plan_lines(machine)]
    assert shown.count(11) <= len(notes)
    assert text.count('<!-- Task #12 "Tidy up" is so. -->') == 1
    assert text.count("- TODO: write the guide. (K1)") == 1
    if crlf:
        assert found.text.count("\n") == found.text.count("\r\n")
    assert merged(machine, machine, found.text).text == found.text


def test_next_steps_are_told_anew() -> None:
    """Old next steps are replaced without a conflict; a step to which a person has added words stays."""
    step = '- Story #10 "Login form": can be started, under #5\n'
    machine = PLAN.replace(
        step, '- Story #11 "Signup form": in progress, under #5\n- Task #12 "Tidy up": can be started\n'
    )
    old = PLAN.replace(step, f'- Mine\n- Task #9 "Table of users": in progress\n{step}- Mine, too\n')
    found = merged(PLAN, machine, old)
    assert found.conflicts == ()
    steps = machine.partition("Steps\n\n")[2].partition("\n\n## ")[0]
    assert f"Steps\n\n- Mine\n{steps}\n- Mine, too\n\n## " in found.text
    assert (
        "can be started, under #5, ask Bob\n" in merged(PLAN, PLAN, PLAN.replace("under #5", "under #5, ask Bob")).text
    )


def test_an_item_over_many_rows_is_read_in_linear_time() -> None:
    """Reading a list item that goes on for thousands of rows takes time linear in their number."""

    def read(rows: int) -> None:
        text = f"## Backlog\n\n- [ ] item {rows}\n" + "".join(f"row {row} of the item goes on\n" for row in range(rows))
        assert [line.title for line in plan_lines(text)] == [f"item {rows}"]
        assert len([line for line in owned_lines(text) if line.fact]) == 1

    assert_linear(read, 8_000)

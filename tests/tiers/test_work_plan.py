"""The work plan in both directions: it shows the state of work, and edits of its lines change the work."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from orchestra_mem.serialize import to_object
from orchestra_mem.tiers.authorship import Writer
from orchestra_mem.types import Author, Json
from orchestra_mem.work_types import WorkFilter, WorkItem, WorkKind, WorkStatus
from tests.builders import promised
from tests.memories import edited
from tests.tiers.conftest import Desk
from tests.timing import assert_quick

CONFIG = {"orchestrator": {"context_window": {"max_tokens": 32_000}, "working_memory": {"max_operations": 2}}}
PENDING, DONE, CANCELLED = WorkStatus.PENDING, WorkStatus.DONE, WorkStatus.CANCELLED


@pytest.fixture
def desk(empty: Desk) -> Desk:
    """An epic with three stories, the second blocked by the first; two single tasks; one deferred task."""
    work = empty.work
    epic = work.create(WorkKind.EPIC, "User authentication", priority=2)
    login = work.create(WorkKind.STORY, "Login", parent=epic.id)
    work.create(WorkKind.STORY, "Signup", parent=epic.id, depends_on=[login.id])
    work.create(WorkKind.STORY, "MFA", parent=epic.id)
    for title in ("Tidy up", "Paint the door"):
        work.create(WorkKind.TASK, title)
    work.set_status(work.create(WorkKind.TASK, "Dark mode").id, WorkStatus.DEFERRED)
    empty.go_on()
    return empty


def _section(text: str, title: str) -> str:
    return text.partition(f"\n## {title}\n\n")[2].partition("\n\n## ")[0].rstrip("\n") + "\n"


def _item(desk: Desk, title: str) -> WorkItem:
    (found,) = [item for item in desk.work.items() if item.title == title]
    return found


def test_the_documents_show_the_state_of_work(desk: Desk) -> None:
    """The documents show all work in the source design's sections, after a refresh and after a flush."""
    desk.work.set_status(2, WorkStatus.IN_PROGRESS)
    desk.work.set_status(6, WorkStatus.BLOCKED, reason="no paint")
    desk.work.set_status(5, DONE)
    desk.go_on()
    assert desk.plan.text.partition("UTC\n")[2] == (
        "\n## Immediate Next Steps\n\n"
        '- Story #2 "Login": in progress, under #1\n'
        '- Story #4 "MFA": can be started, under #1\n'
        "\n## Prioritized Backlog\n\n"
        "- [ ] #1 User authentication (epic, high, 0 of 3 done)\n"
        "  - [ ] #2 Login (story, in progress)\n"
        "  - [ ] #3 Signup (story, blocked by #2)\n"
        "  - [ ] #4 MFA (story)\n"
        "- [x] #5 Tidy up (task)\n"
        "- [ ] #6 Paint the door (task, blocked)\n"
        "\n## Future Work\n\n"
        "- [ ] #7 Dark mode (task, deferred)\n"
    )
    state = desk.state.text
    assert '- Story #2 "Login"\n- [' in _section(state, "Active Work")
    assert _section(state, "Recent Progress") == '- Task #5 "Tidy up": done 2025-01-15 10:03:00\n'
    assert _section(state, "Blockers") == '- Task #6 "Paint the door": blocked, no paint\n'
    assert "- **Total Stories**: 3\n" in state
    assert "- **Work Done**: 1\n- **Work In Progress**: 1\n- **Work Blocked**: 1\n" in state
    desk.work.set_status(2, DONE)
    desk.memory.flush_session()
    assert "  - [x] #2 Login (story)\n  - [ ] #3 Signup (story)\n" in desk.plan.text


def test_an_item_that_was_finished_again_is_among_the_last_that_were_done(empty: Desk) -> None:
    """Of ten finished items, the eight finished last are shown, in the order in which they were last finished."""
    items = [empty.work.create(WorkKind.TASK, f"Door {number}").id for number in range(10)]
    for item in items:
        empty.work.set_status(item, DONE)
    empty.work.set_status(items[0], WorkStatus.IN_PROGRESS)
    empty.work.set_status(items[0], DONE)
    empty.go_on()
    shown = re.findall(r'"Door (\d)": done', _section(empty.state.text, "Recent Progress"))
    assert shown == ["3", "4", "5", "6", "7", "8", "9", "0"]


def test_an_item_whose_parts_are_all_done_can_be_finished(empty: Desk) -> None:
    """An item with everything below it done is to be finished as the next step; it may still be renamed there."""
    empty.work.create(WorkKind.STORY, "Login")
    empty.work.set_status(empty.work.create(WorkKind.TASK, "Form", parent=1).id, DONE)
    empty.go_on()
    assert _section(empty.plan.text, "Immediate Next Steps") == '- Story #1 "Login": can be finished\n'
    empty.change(('#1 "Login": can', '#1 "Sign in": can'))
    assert _section(empty.plan.text, "Immediate Next Steps") == '- Story #1 "Sign in": can be finished\n'
    empty.work.set_status(1, DONE)
    empty.go_on()
    assert "can be finished" not in empty.plan.text


def test_boxes_below_a_box_that_is_a_fact_stay_below_it(empty: Desk) -> None:
    """Boxes nested before the first work item stay parts of their box, also once it has items; a new one has parts."""
    empty.go_on()
    parts = "  - [ ] Write the notes\n    - [ ] Ask Bob\n  - [x] Tag it\n"
    empty.change(("## Backlog\n\n- None\n", f"## Backlog\n\n- [ ] Ship it <!-- pin -->\n{parts}- [ ] Buy a bell\n"))
    empty.work.create(WorkKind.TASK, "Tidy up")
    empty.go_on()
    empty.change(
        ("- [ ] #1 Tidy up (task)\n", "- [ ] #1 Tidy up (task)\n- [ ] Oil it\n  - [ ] Find the oil\n"), times=2
    )
    assert _section(empty.plan.text, "Prioritized Backlog") == (
        "- [ ] #1 Tidy up (task)\n- [ ] #2 Oil it (task, 0 of 1 done)\n  - [ ] #3 Find the oil (subtask)\n"
        f"- [ ] Ship it (K1) <!-- pin -->\n{parts}- [ ] Buy a bell (K2)\n"
    )
    assert [item.title for item in empty.work.items()] == ["Tidy up", "Oil it", "Find the oil"]
    assert [fact.text for fact in empty.memory.facts()] == ["Ship it", "Buy a bell"]


@pytest.mark.parametrize(
    ("edits", "items", "once", "absent", "told", "count"), promised("an_edit_of_the_plan_is_taken_as_it_is_meant")
)
def test_an_edit_of_the_plan_is_taken_as_it_is_meant(
    desk: Desk,
    edits: list[list[tuple[str, str]]],
    items: dict[str, dict[str, Json]],
    once: list[str],
    absent: list[str],
    told: str,
    count: int,
) -> None:
    """After these edits the items are so, the plan has these passages once or not at all, and this problem or none."""
    known = desk.work.events(limit=1)[0].id
    for changes in edits:
        desk.change(*changes, times=2)
    assert {event.author for event in desk.work.events(after=known)} <= {Author.PERSON}
    found = {str(item.id): to_object(item) for item in desk.work.items()}
    assert {number: {name: found[number][name] for name in fields} for number, fields in items.items()} == items
    assert len(found) == count
    desk.plan.has_once(*once)
    assert [each for each in absent if each in desk.plan.text] == []
    assert told in desk.problems() if told else desk.problems() == "[]"
    assert desk.memory.conflicts() == []


def test_the_order_of_lines_is_the_order_of_work(desk: Desk) -> None:
    """Reordering lines reorders the items; a line moved above a more urgent one gets that priority."""
    text = desk.plan.text
    desk.plan.edit(
        ("  - [ ] #2 Login (story)\n", ""),
        ("  - [ ] #4 MFA (story)\n", "  - [ ] #4 MFA (story)\n  - [ ] #2 Login (story)\n"),
        ("- [ ] #6 Paint the door (task)\n", ""),
        ("- [ ] #1", "- [ ] #6 Paint the door (task)\n- [ ] #1"),
    )
    assert [item.id for item in desk.work.items(WorkFilter(parent=1))] == [3, 4, 2]
    assert [item.id for item in desk.work.items(WorkFilter(parent=0))][:3] == [6, 1, 5]
    assert desk.work.item(6).priority == 2
    desk.go_on()
    rows = [row.strip() for row in _section(desk.plan.text, "Prioritized Backlog").splitlines()]
    assert [row.split()[3] for row in rows] == ["#6", "#1", "#3", "#4", "#2", "#5"]
    assert desk.memory.conflicts() == []
    assert "- [ ] #1" in text


def test_what_may_not_be_is_told_beside_the_line(desk: Desk) -> None:
    """A refused edit changes nothing; a remark below its line and the problems tell why until the remark is deleted."""
    desk.work.set_status(1, WorkStatus.BLOCKED, reason="no budget")
    desk.go_on()
    desk.change(("- [ ] #1 User", "- [x] #1 User"))
    assert desk.work.item(1).status is WorkStatus.BLOCKED
    told = 'Epic #1 "User authentication" cannot be finished before the items below it: Story #2 "Login" (pending)'
    row = next(row for row in desk.plan.text.splitlines() if told in row)
    assert row.startswith(f"  <!-- {told}")
    assert f"- [ ] #1 User authentication (epic, high, blocked, 0 of 3 done)\n{row}\n" in desk.plan.text
    assert told in desk.problems()
    desk.go_on()
    assert row in desk.plan.text
    desk.plan.edit((f"{row}\n", ""))
    for _ in range(2):
        desk.go_on()
        assert "<!--" not in desk.plan.text
    assert told not in desk.problems()


@pytest.mark.parametrize("status", [WorkStatus.BLOCKED, WorkStatus.FAILED, WorkStatus.DEFERRED])
def test_who_ticks_an_item_knows_that_it_is_done(desk: Desk, status: WorkStatus) -> None:
    """A ticked item is done whatever held it up, with each step in its history; what it waited for stays open."""
    desk.work.set_status(3, WorkStatus.IN_PROGRESS)
    desk.work.set_status(3, status, reason="waits for the vendor")
    desk.go_on()
    known = desk.work.events(limit=1)[0].id
    desk.plan.edit(("- [ ] #3 Signup", "- [x] #3 Signup"))
    assert [desk.work.item(number).status for number in (2, 3)] == [PENDING, DONE]
    assert [(event.field, event.before, event.after) for event in desk.work.events(3, after=known)] == [
        ("depends_on", "[2]", None),
        ("status", status.value, "pending"),
        ("status", "pending", "done"),
        ("finished", None, desk.clock.now.isoformat()),
        ("depends_on", None, "[2]"),
    ]
    desk.go_on()
    desk.plan.has_once("  - [x] #3 Signup (story)\n")
    assert "<!--" not in desk.plan.text
    assert desk.memory.get_stats()["problems"] == []
    desk.plan.edit(("- [x] #3 Signup", "- [ ] #3 Signup"))
    assert (desk.work.item(3).status, desk.work.item(3).depends_on) == (PENDING, (2,))
    desk.go_on()
    desk.plan.has_once("  - [ ] #3 Signup (story, blocked by #2)\n")


def test_an_edit_is_taken_in_once(desk: Desk) -> None:
    """An edit is applied once: later changes by the machine hold though the file differs, in another process too."""
    desk.plan.edit(("- [ ] #5", "- [x] #5"), ("- [ ] #6", "- [ ] Buy a bell\n- [ ] #6"))
    assert desk.work.item(5).status is DONE
    desk.work.set_status(5, WorkStatus.IN_PROGRESS)
    with desk.once_more() as other:
        assert other.work.item(5).status is WorkStatus.IN_PROGRESS
        desk.plan.edit(("#6 Paint the door", "#6 Paint the gate"))
        assert other.work.item(6).title == "Paint the gate"
        assert other.work.item(5).status is WorkStatus.IN_PROGRESS
        other.go_on()
    assert "- [ ] #5 Tidy up (task, in progress)\n- [ ] #8 Buy a bell (task)\n" in desk.plan.text
    assert len(desk.work.items()) == 8


def test_an_old_text_undoes_nothing_of_what_came_since(desk: Desk) -> None:
    """Saving an old text applies the person's edits, and keeps what was done, added and renamed since."""
    opened = desk.plan.text
    desk.work.set_status(2, DONE)
    desk.work.change(4, title="Second factor")
    desk.work.create(WorkKind.TASK, "Oil the hinge")
    desk.go_on()
    mine = edited(
        opened, ("#2 Login", "#2 Sign in"), ("- [ ] #5", "- [x] #5"), ("- [ ] #6", "- [ ] Buy a bell\n- [ ] #6")
    )
    desk.plan.save(mine)
    desk.go_on(times=2)
    assert _section(desk.plan.text, "Prioritized Backlog") == (
        "- [ ] #1 User authentication (epic, high, 1 of 3 done)\n"
        "  - [x] #2 Sign in (story)\n"
        "  - [ ] #3 Signup (story)\n"
        "  - [ ] #4 Second factor (story)\n"
        "- [x] #5 Tidy up (task)\n"
        "- [ ] #9 Buy a bell (task)\n"
        "- [ ] #6 Paint the door (task)\n"
        "- [ ] #8 Oil the hinge (task)\n"
    )
    assert desk.memory.conflicts() == []


def test_an_item_that_a_person_takes_out_of_an_old_text_is_cancelled_though_the_plan_shows_it_no_more(
    desk: Desk,
) -> None:
    """Deleting a line from an old text cancels only its item, even if the current plan does not show the item."""
    opened = desk.plan.text
    urgent = [desk.work.create(WorkKind.TASK, f"Urgent {number}", priority=1) for number in range(50)]
    desk.go_on()
    for item in urgent[:25]:
        desk.clock.now += timedelta(minutes=1)
        desk.work.set_status(item.id, DONE)
    desk.go_on()
    assert "#5 Tidy up" not in desk.plan.text
    desk.plan.save(edited(opened, ("- [ ] #5 Tidy up (task)\n", "")))
    for _ in range(2):
        desk.go_on()
        assert _item(desk, "Tidy up").status is CANCELLED
        assert _item(desk, "Paint the door").status is PENDING
        assert "#5 Tidy up" not in desk.plan.text


def test_an_editor_that_saves_again_makes_nothing_twice(desk: Desk) -> None:
    """Saving a new line again, before the editor has seen its number, creates no second item."""
    desk.plan.edit(("- [ ] #6", "- [ ] Buy a bell\n- [x] Buy a rope\n- [ ] #6"))
    saved = desk.plan.text
    desk.go_on()
    assert "- [ ] #8 Buy a bell (task)\n- [x] #9 Buy a rope (task)\n" in desk.plan.text
    desk.plan.save(saved.replace("#6 Paint", "#6 Oil"))
    desk.go_on()
    assert "- [ ] #8 Buy a bell (task)\n- [x] #9 Buy a rope (task)\n- [ ] #6 Oil the door (task)\n" in desk.plan.text
    assert len(desk.work.items()) == 9


def test_a_line_under_the_heading_of_before_makes_nothing_twice(desk: Desk) -> None:
    """A new line becomes one item though the person gave the section the heading that plans without work have."""
    desk.plan.edit(("## Prioritized Backlog\n", "## Backlog\n\n- [ ] Buy milk\n"))
    for said in ("One more.", "Another.", "A third."):
        desk.go_on(said)
        assert desk.plan.text.count("Buy milk") == 2, "once as a next step, once in the backlog"
        desk.plan.edit(("# Work Plan\n", f"# Work Plan\n\n{said}\n"))
    assert f"\n- [ ] #{_item(desk, 'Buy milk').id} Buy milk (task, high)\n" in desk.plan.text


def test_a_text_from_before_there_was_work_does_not_bring_its_heading_back(empty: Desk) -> None:
    """Saving a plan from before the first item keeps one backlog, which includes the new line."""
    empty.go_on()
    opened = empty.plan.text
    empty.work.create(WorkKind.TASK, "Tidy up")
    empty.go_on()
    empty.plan.save(edited(opened, ("## Backlog\n\n- None\n", "## Backlog\n\n- [ ] Oil it\n")))
    for _ in range(2):
        empty.go_on()
        assert [line for line in empty.plan.text.splitlines() if "Backlog" in line] == ["## Prioritized Backlog"]
    backlog = _section(empty.plan.text, "Prioritized Backlog")
    assert "#1 Tidy up (task)" in backlog
    assert "#2 Oil it (task)" in backlog


def test_a_new_title_in_a_next_step_is_the_items(empty: Desk) -> None:
    """Correcting a title in a next step renames the item, unless its own line has another new title."""
    empty.work.create(WorkKind.TASK, "Tidy pu")
    empty.work.create(WorkKind.TASK, "Oil it")
    empty.go_on()
    empty.plan.edit(('#1 "Tidy pu": can', '#1 "Tidy up": can'), ('#2 "Oil it"', '#2 "Oil"'))
    empty.change(("#2 Oil it", "#2 Grease"))
    assert [item.title for item in empty.work.items()] == ["Tidy up", "Grease"]
    assert _section(empty.plan.text, "Immediate Next Steps") == (
        '- Task #1 "Tidy up": can be started\n- Task #2 "Grease": can be started\n'
    )


def test_a_process_that_dies_while_taking_in_makes_nothing_twice(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new line whose reading was interrupted becomes exactly one item in the next process."""

    def dies(text: str, number_of: object) -> str:
        raise KeyboardInterrupt

    desk.plan.edit(("- [ ] #6", "- [ ] Buy a bell\n- [ ] #6"))
    with monkeypatch.context() as patched:
        patched.setattr("orchestra_mem.core.documents.plan_edits.with_item_numbers", dies)
        with pytest.raises(KeyboardInterrupt):
            desk.memory.facts()
    with desk.once_more() as other:
        other.go_on()
    assert _item(desk, "Buy a bell").id == 8
    assert "- [ ] #8 Buy a bell (task)\n" in desk.plan.text


def test_machine_and_person_change_one_item(desk: Desk) -> None:
    """A person's title wins over the machine's, which a remark shows for a while; other changes are merged."""
    desk.work.change(5, title="Sweep the yard", priority=2)
    desk.change(("#5 Tidy up", "#5 Clean up"))
    item = desk.work.item(5)
    assert (item.title, item.priority) == ("Clean up", 2)
    assert "- [ ] #5 Clean up (task, high)\n" in desk.plan.text
    assert 'its title had meanwhile become "Sweep the yard"; yours is kept -->\n' in desk.plan.text
    desk.clock.now += timedelta(days=2)
    desk.go_on()
    assert "yours is kept" not in desk.plan.text


def test_notes_between_the_lines_stay_where_they_are(desk: Desk) -> None:
    """Notes stay below their line when it moves, and the document keeps its line ends."""
    desk.plan.edit(
        ("  - [ ] #4 MFA (story)\n", "  - [ ] #4 MFA (story)\n    Ask Bob.\n    - how long?\n"),
        ("- [ ] #5 Tidy up (task)\n", "- [ ] #5 Tidy up (task) <!-- pin -->\n  With a broom.\n"),
    )
    desk.plan.save(desk.plan.text.replace("\n", "\r\n"))
    desk.work.set_status(4, WorkStatus.IN_PROGRESS)
    desk.work.change(5, priority=1)
    desk.go_on()
    text = desk.plan.text
    assert text.count("\n") == text.count("\r\n")
    assert "  - [ ] #4 MFA (story, in progress)\r\n    Ask Bob.\r\n    - how long?\r\n" in text
    assert "Backlog\r\n\r\n- [ ] #5 Tidy up (task, urgent) <!-- pin -->\r\n  With a broom.\r\n- [ ] #1" in text
    assert desk.memory.facts() == []


def test_a_new_line_is_no_other_item_of_that_name(desk: Desk) -> None:
    """A new line creates an item even if an item of the same title exists under another parent."""
    parents = [desk.work.create(WorkKind.EPIC, f"Epic {each}", priority=1).id for each in range(90)]
    desk.go_on()
    hidden = desk.work.create(WorkKind.TASK, "Write tests", parent=parents[-1], author=Author.PERSON)
    row = f"- [ ] #{parents[0]} Epic 0 (epic, urgent)\n"
    new = "  - [ ] Write tests\n- [ ] Mend the roof (epic)\n  - [ ] Write tests\n"
    desk.change((row, row + new))
    roof = _item(desk, "Mend the roof")
    found = desk.work.items(WorkFilter(text="Write tests"))
    assert {item.parent for item in found} == {parents[0], parents[-1], roof.id}
    assert desk.work.item(hidden.id).parent == parents[-1]


def test_a_new_line_stays_where_the_list_goes_on(desk: Desk) -> None:
    """A line added at the end of a shortened list stays visible with its number, and the list stays bounded."""
    for each in range(60):
        desk.work.create(WorkKind.TASK, f"Thing {each}")
    desk.go_on()
    more = next(row for row in desk.plan.text.split("\n") if row.startswith("- … and "))
    desk.change((more, f"- [ ] Feed the cat\n{more}"), times=3)
    assert f"- [ ] #{_item(desk, 'Feed the cat').id} Feed the cat (task)\n- … and " in desk.plan.text
    for each in range(60):
        desk.work.create(WorkKind.TASK, f"Soon {each}", priority=1)
        desk.go_on() if each % 5 == 0 else None
    assert len(_section(desk.plan.text, "Prioritized Backlog").split("\n")) < 60


def test_a_plan_that_is_restored_says_what_it_says(desk: Desk) -> None:
    """Restoring an earlier plan restores the statuses that its lines show."""
    desk.go_on()
    desk.work.set_status(5, DONE)
    desk.go_on()
    desk.plan.restore(desk.plan.first_version("- [ ] #5"))
    assert desk.work.item(5).status is PENDING


def test_work_begun_since_a_restored_plan_stays(empty: Desk) -> None:
    """Restoring a plan from before an item, or from before all work, ends no item and keeps its line."""
    empty.go_on("TODO: order the paper.")
    old = {"Backlog": "order the paper", "Prioritized Backlog": "Order bread"}
    empty.work.create(WorkKind.TASK, "Order bread")
    empty.go_on()
    empty.work.create(WorkKind.TASK, "Paint the door")
    empty.plan.edit(("## Future Work", "A remark.\n\n## Future Work"))
    empty.go_on()
    for heading, has in old.items():
        empty.plan.restore(empty.plan.first_version(has, "Paint the door"))
        lines = "\n- [ ] #1 Order bread (task)\n- [ ] #2 Paint the door (task)\n"
        for _ in range(2):
            assert f"## Prioritized Backlog\n{lines}" in empty.plan.text, heading
            empty.plan.has_once("order the paper", *lines.split("\n")[1:3])
            assert [item.status for item in empty.work.items()] == [PENDING, PENDING]
            assert "A remark." not in empty.plan.text
            empty.go_on()


def test_who_wrote_a_line_of_work(desk: Desk) -> None:
    """A line is a person's if a person wrote its present content, though the machine added the number."""
    operation = desk.memory.record_operation("task_execution", {"title": "Paint"})
    desk.work.set_status(6, WorkStatus.IN_PROGRESS, operation=operation.id)
    desk.change(("- [ ] #5 Tidy up", "- [ ] #5 Sweep up"), ("- [ ] #6", "- [ ] Buy a bell\n- [ ] #6"))
    origins = {
        line.text.partition("] ")[2][:2]: line.origin for line in desk.memory.blame("work_plan") if "- [ ]" in line.text
    }
    assert [origins[number].writer for number in ("#4", "#5", "#6", "#8")] == [
        Writer.MACHINE, Writer.PERSON, Writer.AGENT, Writer.PERSON,
    ]  # fmt: skip
    assert origins["#6"].operations == ((operation.id, operation.id),)


def test_documents_stay_small_and_quick_with_much_work(empty: Desk) -> None:
    """The plan lists 80 of 660 items and counts the rest, and a refresh takes less than 0.3 seconds."""
    for number in range(60):
        epic = empty.work.create(WorkKind.EPIC, f"Epic {number} " + "long " * 20)
        for part in range(10):
            empty.work.create(WorkKind.TASK, f"Task {number}.{part}", parent=epic.id)
    empty.go_on()
    text = empty.plan.text
    assert text.count("- [ ] #") == 80
    assert "- … and 580 more: `orchestra-mem work`\n" in text
    assert "\n- [ ] #1 Epic 0" in text
    assert "(epic, 0 of 10 done)\n  - [ ] #2 Task 0.0 (task)\n" in text
    assert empty.work.item(300).status is PENDING
    empty.work.set_status(2, DONE)
    assert_quick(0.3, empty.go_on, tries=1)
    assert "  - [x] #2 Task 0.0 (task)\n" in empty.plan.text


def test_ticks_and_lines_that_an_undo_brings_back_stand_again(desk: Desk) -> None:
    """An editor's undo reopens six ticked or deleted items, though a refresh has seen the edit."""
    for number in range(6):
        desk.work.create(WorkKind.TASK, f"Paint door {number}")
    desk.go_on()
    ids = [item.id for item in desk.work.items() if item.title.startswith("Paint door")]
    for gone in ("", r"[^\n]*\n"):
        opened = desk.plan.text
        desk.plan.save(re.sub(rf"- \[ \] (#\d+ Paint door \d{gone})", "" if gone else r"- [x] \1", opened))
        desk.go_on()
        assert not any(desk.work.item(each).status.is_open for each in ids)
        desk.plan.save(opened)
        desk.go_on()
        assert [desk.work.item(each).status for each in ids] == [PENDING] * 6
        desk.plan.has_once(*(f"- [ ] #{each} Paint" for each in ids))


def test_a_context_says_in_one_voice_how_work_stands_after_a_tick(desk: Desk) -> None:
    """A tick is noted below the unchanged prefix, which it corrects; a new epoch has only the new status."""
    stale = '- Story #2 "Login": can be started'
    before = desk.memory.get_orchestrator_context("task_execution")
    assert stale in before.prefix
    desk.plan.edit(("- [ ] #2 Login", "- [x] #2 Login"))
    after = desk.memory.get_orchestrator_context("task_execution")
    assert after.prefix == before.prefix
    assert f"> -{stale}" in after.timeline
    assert "> +" in after.timeline
    assert "> +  - [x] #2 Login (story)\n" in after.timeline
    assert "> +  - [ ] #3 Signup (story)\n" in after.timeline, "it waits for nothing more"
    assert "> +- [ ] #1 User authentication (epic, high, 1 of 3 done)\n" in after.timeline
    with desk.once_more() as other:
        text = other.memory.get_orchestrator_context("task_execution").render()
    assert stale not in text
    assert "- [x] #2 Login (story)\n  - [ ] #3 Signup (story)\n" in text


def test_a_context_says_in_one_voice_what_the_machine_has_done(desk: Desk) -> None:
    """A new epoch shows the statuses that the machine has set since the plan was written."""
    desk.work.set_status(5, WorkStatus.IN_PROGRESS)
    desk.work.set_status(6, WorkStatus.CANCELLED)
    with desk.once_more() as other:
        text = other.memory.get_orchestrator_context("task_execution").render()
    assert '- Task #5 "Tidy up": in progress' in text
    assert 'Task #6 "Paint the door": can be started' not in text


def test_a_copy_of_a_line_says_nothing_until_it_is_changed(desk: Desk) -> None:
    """A copied line changes nothing while the machine changes the item; ticking one copy finishes it."""
    desk.change(("- [ ] #6 Paint", "- [ ] #5 Tidy up (task)\n- [ ] #6 Paint"))
    desk.work.set_status(5, WorkStatus.IN_PROGRESS)
    for _ in range(3):
        desk.go_on()
        assert desk.work.item(5).status is WorkStatus.IN_PROGRESS
    desk.change(("- [ ] #5 Tidy up (task)\n", "- [x] #5 Tidy up (task)\n"))
    assert desk.work.item(5).status is DONE

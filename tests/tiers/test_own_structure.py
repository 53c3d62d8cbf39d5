"""Headings and notes with which people structure the machine's lists."""

from __future__ import annotations

import pytest

from orchestra_mem.catalog_types import ItemFilter, ItemStatus
from orchestra_mem.types import MustKeepKind
from orchestra_mem.work_types import WorkKind, WorkStatus
from tests.tiers.conftest import Desk

CONFIG = {"orchestrator": {"context_window": {"max_tokens": 32_000}, "working_memory": {"max_operations": 2}}}
RULE, TODO = "Never deploy on a Friday.", "TODO: write the migration guide."


@pytest.fixture
def desk(empty: Desk) -> Desk:
    """A memory with a rule and an open item in its documents."""
    empty.go_on(RULE, TODO)
    return empty


@pytest.mark.parametrize("heading", ["## This autumn", "# This autumn", "### This autumn"])
def test_lines_below_an_own_heading_in_the_backlog_stay_work(desk: Desk, heading: str) -> None:
    """The machine goes on to update items that a person has put under a heading, and reads what becomes of them."""
    epic = desk.work.create(WorkKind.EPIC, "Open the shop")
    desk.work.create(WorkKind.STORY, "Build the cart", parent=epic.id)
    for title in ("Order bread", "Paint the door", "Hang the sign"):
        desk.work.create(WorkKind.TASK, title)
    desk.go_on()
    line = "- [ ] #4 Paint the door (task)\n"
    desk.change((line, f"{heading}\n\nBefore the rain.\n\n{line}"))
    desk.work.set_status(4, WorkStatus.DONE)
    desk.work.change(5, title="Hang both signs")
    desk.go_on()
    assert "- [ ] #4" not in desk.plan.text
    desk.plan.has_once(heading, "Before the rain.", "- [ ] #5 Hang both signs (task)")
    desk.change(("- [ ] #5", "- [x] #5"))
    assert desk.work.item(5).status is WorkStatus.DONE
    assert desk.problems() == "[]"


def test_work_that_a_person_moves_into_an_own_section_stays_there(desk: Desk) -> None:
    """A line keeps its item and its place in an own section; a copy, a reference and a new box there are only text."""
    for title in ("Order bread", "Paint the door", "Hang the sign"):
        desk.work.create(WorkKind.TASK, title)
    desk.go_on()
    own = (
        "\n## This week\n\n- [ ] #3 Hang the sign (task)\n- [ ] #2 Paint the door (task)\n- [ ] #1 bread, rolls\n"
        "- [ ] buy socks\n"
    )
    desk.plan.edit(("- [ ] #2 Paint the door (task)\n", ""), ("- [ ] #3 Hang the sign (task)\n", ""))
    desk.plan.save(desk.plan.text + own)
    desk.go_on(times=2)
    assert desk.plan.text.endswith(own)
    assert [(item.title, item.status) for item in desk.work.items()] == [
        (title, WorkStatus.PENDING) for title in ("Order bread", "Paint the door", "Hang the sign")
    ]
    desk.work.set_status(2, WorkStatus.IN_PROGRESS)
    desk.change(("- [ ] #3 Hang the sign", "- [x] #3 Hang the sign"))
    assert desk.work.item(3).status is WorkStatus.DONE
    desk.plan.has_once("- [ ] #2 Paint the door (task, in progress)", "- [ ] #1 Order bread", "- [ ] #1 bread, rolls")
    assert desk.problems() == "[]"


NOTE = "  - except photos: up to 20 MB\n"


def test_work_in_an_own_section_is_indented_as_the_person_has_indented_it(desk: Desk) -> None:
    """The machine updates the line, and does not put it below the box above it, as in its own list."""
    epic = desk.memory.state.create(WorkKind.EPIC, "Print the book")
    task = desk.memory.state.create(WorkKind.STORY, "Ask Ada", parent=epic.id)
    desk.go_on()
    desk.plan.edit((f"  - [ ] #{task.id} Ask Ada (story)\n", ""))
    desk.plan.save(f"{desk.plan.text}\n## This week\n\n- [ ] call the mayor\n- [ ] #{task.id} Ask Ada (story)\n")
    desk.go_on()
    desk.plan.has_once(f"\n- [ ] call the mayor\n- [ ] #{task.id} Ask Ada (story)\n")
    desk.memory.state.set_status(task.id, WorkStatus.DONE)
    desk.go_on()
    desk.plan.has_once(f"\n- [ ] call the mayor\n- [x] #{task.id} Ask Ada (story)\n")


def test_notes_below_a_line_that_ends_stay_with_its_words(desk: Desk) -> None:
    """When a rule is superseded, a person's notes on it stay below its words, struck out, and pass to no other rule."""
    desk.go_on("Helmets must be checked every spring.", "The maximum request size is 2 MB.", "Passwords must be long.")
    (fact,) = [each for each in desk.memory.facts(MustKeepKind.CONSTRAINT) if "2 MB" in each.text]
    line = f"- {fact.text} (K{fact.id})\n"
    desk.state.edit((line, f"{line}  Since May.\n{NOTE}"))
    desk.go_on("The maximum request size is now 5 MB.")
    ended = f"- ~~{fact.text}~~ (K{fact.id})\n  Since May.\n{NOTE}"
    for _ in range(2):
        desk.state.has_once(ended, "The maximum request size is now 5 MB.")
        assert [each.text for each in desk.memory.facts(MustKeepKind.CONSTRAINT)] == [
            RULE, "Helmets must be checked every spring.", "Passwords must be long.",
            "The maximum request size is now 5 MB.",
        ]  # fmt: skip
        (was,) = [each for each in desk.memory.facts(standing=False) if each.id == fact.id]
        assert was.status == "superseded"
        desk.go_on()
    desk.state.edit((ended, ""))
    desk.go_on()
    assert "2 MB" not in desk.state.text
    assert "20 MB" not in desk.state.text


def test_notes_below_an_open_item_that_is_done_stay_with_its_words(desk: Desk) -> None:
    """When the machine learns that an open item is done, a person's notes on it stay below its words."""
    desk.memory.record_operation("note", {"next_steps": ["order tyres", "call the bank"]})
    desk.go_on()
    (fact,) = [each for each in desk.memory.facts(MustKeepKind.OPEN_ITEM) if "bank" in each.text]
    line = f"- {fact.text} (K{fact.id})\n"
    desk.plan.edit((line, f"{line}  - Herr Maier, 0664 1234\n"))
    desk.memory.record_operation("note", {"done": ["call the bank"]})
    desk.go_on(times=2)
    desk.plan.has_once(f"- ~~{fact.text}~~ (K{fact.id})\n  - Herr Maier, 0664 1234\n")
    assert "call the bank" not in str(desk.says(MustKeepKind.OPEN_ITEM))


def test_notes_below_a_next_step_stay_with_it(desk: Desk) -> None:
    """When an item is no next step any more, a person's notes below its line stay there and pass to no other step."""
    for title in ("Order bread", "Paint the door"):
        desk.work.create(WorkKind.TASK, title)
    desk.go_on()
    step = 'Task #1 "Order bread": can be started'
    desk.plan.edit((f"- {step}\n", f"- {step}\n  Two rye loaves.\n"))
    desk.work.set_status(1, WorkStatus.DONE)
    desk.go_on(times=3)
    desk.plan.has_once(f"- ~~{step}~~\n  Two rye loaves.\n")
    assert desk.problems() == "[]"


def test_notes_below_a_catalog_item_stay_with_it_until_it_is_purged(desk: Desk) -> None:
    """An item that is hidden keeps its line above a person's notes, struck out; a purge erases the line."""
    catalog = desk.memory.catalog
    for content in ("We bake rye bread on Tuesdays.", "We sell old bread at noon."):
        catalog.store({"content": content, "agent": "baker", "type": "decision"})
    desk.memory.write_catalog()
    page = desk.memory.documents.path("catalog/baker")
    line = "- We sell old bread at noon. (priority: 6) (M2)\n"
    page.write_text(page.read_text().replace(line, f"{line}  Not in July.\n"))
    catalog.delete("M2")
    for _ in range(2):
        desk.memory.write_catalog()
        assert "- ~~We sell old bread at noon. (priority: 6)~~ (M2)\n  Not in July.\n" in page.read_text()
        desk.go_on()
    catalog.restore("M2")
    desk.memory.write_catalog()
    assert f"{line}  Not in July.\n" in page.read_text()
    catalog.delete("M2")
    desk.memory.write_catalog()
    catalog.purge(ItemFilter(statuses=[ItemStatus.DELETED]))
    desk.go_on(times=2)
    assert "sell old bread" not in page.read_text()
    assert "Not in July." in page.read_text()
    assert not any("sell old bread" in each.read_text() for each in page.parents[1].rglob("*.md"))
    assert desk.problems() == "[]"

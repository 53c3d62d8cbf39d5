"""Editors that replace quotation marks, dashes, blanks and line ends reword and remove nothing."""

from __future__ import annotations

from orchestra_mem.types import DocumentName
from orchestra_mem.work_types import WorkKind, WorkStatus
from tests.memories import machine_writes
from tests.tiers.conftest import Desk, retyped

CONFIG = {"orchestrator": {"context_window": {"max_tokens": 32_000}, "working_memory": {"max_operations": 2}}}


def test_an_editors_dash_that_a_person_corrects_is_a_rewording(empty: Desk) -> None:
    """What an editor has made of a command is corrected by hand in a fact and in the title of a work item."""
    empty.memory.state.create(WorkKind.EPIC, "Run git commit —amend")
    empty.go_on("Always use “git commit —amend” here.")
    for page in (empty.plan, empty.state):
        page.save(page.text.replace("—amend", "--amend"))
    empty.go_on()
    assert [fact.text for fact in empty.memory.facts()] == ["Always use “git commit --amend” here."]
    assert empty.memory.state.item(1).title == "Run git commit --amend"
    empty.plan.has_once("- [ ] #1 Run git commit --amend (epic)")


def test_a_retyped_title_stays_in_the_plan(empty: Desk) -> None:
    """A person's dash and ellipsis stay in the line of a work item, and its figures stay current."""
    epic = empty.memory.state.create(WorkKind.EPIC, "Write on... and on")
    story = empty.memory.state.create(WorkKind.STORY, "Read -- at last", parent=epic.id)
    empty.go_on("We decided to print the plan.")
    empty.plan.save(empty.plan.text.replace("on... and", "on… and").replace("Read -- at", "Read — at"))
    empty.go_on()
    empty.plan.has_once("- [ ] #1 Write on… and on (epic, 0 of 1 done)", "  - [ ] #2 Read — at last (story)")
    empty.memory.state.set_status(story.id, WorkStatus.IN_PROGRESS)
    empty.memory.state.set_status(story.id, WorkStatus.DONE)
    empty.go_on()
    assert "(epic, 1 of 1 done)" in empty.plan.text
    assert "  - [x] #2 Read" in empty.plan.text


def test_a_conflict_that_an_editor_retyped_can_still_be_resolved(empty: Desk) -> None:
    """Typographic quotation marks leave a conflict block intact."""
    text = empty.plan.text
    machine_writes(empty.memory, {DocumentName.WORK_PLAN: f'{text}\n- buy "fine" flour\n'})
    empty.plan.edit(('- buy "fine" flour', "- buy rye"))
    machine_writes(empty.memory, {DocumentName.WORK_PLAN: f'{text}\n- buy "coarse" flour\n'})
    ((_, block),) = empty.memory.documents.conflicts()
    empty.plan.save(retyped(empty.plan.text))
    empty.memory.documents.resolve(block.id, accepted=True)
    assert "- buy “coarse” flour" in empty.plan.text
    assert empty.memory.documents.conflicts() == []

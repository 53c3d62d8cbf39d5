"""Editors that replace quotation marks, blanks and line ends, or rewrite front matter, reword and remove nothing."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

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


def test_a_retyped_fact_can_still_be_superseded(empty: Desk) -> None:
    """A rule whose quotation marks an editor replaced ends when a later rule says otherwise."""
    empty.go_on("We decided to store Anna's sessions in Postgres.")
    empty.log.save(retyped(empty.log.text))
    empty.go_on("We decided to store Anna's sessions in SQLite, not in Postgres.")
    assert [fact.text for fact in empty.memory.facts()] == [
        "We decided to store Anna's sessions in SQLite, not in Postgres."
    ]


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


@pytest.mark.parametrize("characters", [16, 19])
def test_edits_count_although_an_editor_shortened_the_time(empty: Desk, characters: int) -> None:
    """A save that cuts the time of writing in the front matter is an edit like any other, not another ledger's."""
    empty.clock.now += timedelta(seconds=7, milliseconds=123)
    empty.go_on("We decided to print the plan.", "Never quote the letters.")
    for page in (empty.log, empty.state):
        text = re.sub(rf"^((?:written|updated): .{{{characters}}}).*", r"\1", page.text, flags=re.MULTILINE)
        text = text.replace("\n---\n", "\ntags:\n  - book\n---\n", 1)
        page.save(text.replace("the plan", "the map").replace("- Never quote", "- Always quote"))
    empty.go_on()
    assert [fact.text for fact in empty.memory.facts()] == ["We decided to print the map.", "Always quote the letters."]
    assert all("\ntags:\n  - book\n" in page.text for page in (empty.log, empty.state))

"""Catalog hooks of the orchestrator: items are injected into prompts, and learnt from lines that are no commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import ItemFilter, open_memory
from orchestra_mem.orchestrator import Orchestrator, reply_record
from orchestra_mem.testing import ScriptedModel
from tests.builders import cases

RULE = "We decided to use bcrypt because it is slow on purpose."


@pytest.fixture
def hooked(tmp_path: Path) -> Iterator[Orchestrator]:
    """An orchestrator of the agent ada, with catalog hooks and a scripted model."""
    model = ScriptedModel("Because it is slow.")
    with open_memory(tmp_path, config={"catalog": {"hooks": True}}, model=model) as memory:
        yield Orchestrator(memory, agent="ada")


def _learnt(orchestrator: Orchestrator) -> list[str]:
    return [item.content for item in orchestrator.memory.catalog.items(ItemFilter(agents=["ada"]))]


def test_the_model_is_given_what_the_agent_has_learnt(hooked: Orchestrator) -> None:
    """The agent's items precede the question in a fence, the reply lists them, and new items bypass a cached answer."""
    hooked.execute(RULE)
    hooked.memory.catalog.store({"content": "bcrypt takes a second.", "agent": "ada", "tags": ["bcrypt"]})
    hooked.memory.catalog.store({"content": "bcrypt is Bob's.", "agent": "bob", "tags": ["bcrypt"]})
    reply = hooked.execute("why did we choose bcrypt?")
    model: Any = hooked.memory.model
    prompt = model.prompts[-1][-1].text
    assert prompt.startswith("```recalled catalog\n")
    assert "bcrypt takes a second." in prompt
    injection = reply.injection
    assert injection is not None
    assert {each.item.ci_source for each in injection.items} == {"ada"}
    record = reply_record(reply)
    assert (record["context_loaded"], record["injected_tokens"]) == (True, injection.tokens)
    assert record["injected"] == [each.item.id for each in injection.items]
    asked = len(model.prompts)
    hooked.memory.catalog.store({"content": "bcrypt is old.", "agent": "ada", "tags": ["bcrypt"]})
    hooked.execute("why did we choose bcrypt?")
    assert len(model.prompts) == asked + 1


def test_what_is_given_is_no_command(hooked: Orchestrator) -> None:
    """An injected item is neither parsed as a command nor recorded; only the line itself is."""
    hooked.memory.catalog.store({"content": "create an epic for billing", "agent": "ada", "tags": ["task"]})
    reply = hooked.execute("create a task called Rest")
    assert reply.context_loaded
    assert [item.title for item in hooked.tracker.items()] == ["Rest"]
    assert "billing" not in str([operation.data for operation in hooked.memory.operations()])


@pytest.mark.parametrize(("line", "learnt"), cases("lines_are_learnt_from_and_commands_and_answers_are_not"))
def test_lines_are_learnt_from_and_commands_and_answers_are_not(hooked: Orchestrator, line: str, learnt: bool) -> None:
    """A statement becomes a catalog item of the agent; commands and questions do not."""
    for each in ("create an epic for billing", "create an epic for shipping", line):
        hooked.execute(each)
    assert _learnt(hooked) == [line] * learnt


def test_a_task_is_given_what_its_agent_has_learnt(hooked: Orchestrator) -> None:
    """A command gets the items on standard input and a callable in its attempt, unless `use_memory` is False."""
    hooked.memory.catalog.store({"content": "The juniper oven is hot.", "agent": "ada", "tags": ["oven"]})
    task = hooked.execute("create a task called Clean the oven").effects[0].items[0]
    result = hooked.execute_task(task, "head -2")
    assert "The juniper oven is hot." in result.result
    assert result.context_loaded
    hooked.execute("create a task called Heat the oven")
    result = hooked.execute_task(task + 1, lambda attempt: repr(attempt.injection), use_memory=False)
    assert (result.result, result.context_loaded) == ("None", False)


def test_without_memory_nothing_is_given_or_learnt(hooked: Orchestrator) -> None:
    """With `use_memory=False`, or without the setting, nothing is injected, and nothing is learnt or audited."""
    hooked.memory.catalog.store({"content": "bcrypt takes a second.", "agent": "ada"})
    before = len(hooked.memory.audit())
    reply = hooked.execute(RULE, use_memory=False)
    assert (reply.injection, reply.context_loaded, len(hooked.memory.audit())) == (None, False, before)
    assert _learnt(hooked) == ["bcrypt takes a second."]
    with open_memory(hooked.memory.session_memory.place.folder) as memory:
        assert Orchestrator(memory).execute("help").injection is None

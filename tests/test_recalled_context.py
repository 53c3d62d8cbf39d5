"""Memories that are recalled for a query: behind the context, within its budget, with reasons, as data."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.context.items import Part
from tests.conftest import Clock, record

CONFIG = {"orchestrator": {"context_window": {"max_tokens": 8_192}, "working_memory": {"max_operations": 10}}}
OLD = "The saffron gateway was heard on port 8443, behind the blue proxy."


@pytest.fixture
def memory(memory: OrchestratorContextManager, clock: Clock) -> OrchestratorContextManager:
    """A memory in which something was said long ago, in a session that has ended."""
    memory.record_operation("message", {"role": "user", "text": OLD}, agent="dana")
    record(memory, 60, kind="note", say="Step {n}: the parser of part {n} reads its window; nothing else is new.")
    memory.flush_session()
    clock.now += timedelta(days=3)
    record(memory, 5, first=100)
    return memory


def test_what_answers_the_query_stands_behind_the_newest_operations(memory: OrchestratorContextManager) -> None:
    """Fenced with its source; from question to question nothing before it changes a byte."""
    plain = memory.get_orchestrator_context("step")
    other = memory.get_orchestrator_context("step", query="zzqqxy")
    asked = memory.get_orchestrator_context("step", query="which port does the saffron gateway answer on?")
    assert OLD not in plain.render()
    assert asked.render().startswith(f'{asked.prefix}{asked.timeline}<memory part="recalled_memories">\n')
    assert (asked.prefix, asked.timeline, asked.epoch) == (other.prefix, other.timeline, other.epoch)
    assert f"```recalled op 1 (2025-01-15, dana)\n{OLD}\n```\n" in asked.recalled
    assert asked.tokens == memory._parts.counter.count(asked.render()) <= asked.budget_tokens
    assert memory.get_orchestrator_context("step").render() == plain.render()


def test_explain_tells_why_each_was_recalled(memory: OrchestratorContextManager) -> None:
    """Ranks of the searches that found it, and how it is shown; no part of it without a query."""
    told = memory.explain("step", query="saffron gateway")
    (line,) = [line for line in told.splitlines() if "recalled op 1" in line]
    assert "by words rank 1" in line
    assert line.endswith("; in full")
    assert "recalled_memories" not in memory.explain("step")


def test_what_the_context_has_already_is_not_recalled_again(memory: OrchestratorContextManager) -> None:
    """It is told, and takes no tokens."""
    text = "The amber lamp of the lighthouse was lit at nine by the keeper."
    memory.record_operation("note", {"text": text})
    asked = memory.get_orchestrator_context("step", query="who lit the amber lamp?")
    assert asked.render().count("amber lamp") == 1
    told = [p for p in asked.placements if p.part is Part.RECALLED and "amber" not in p.text and p.form is None]
    assert any(p.reason.endswith("left out: the context has it already") and p.tokens == 0 for p in told)


def test_the_share_is_a_setting(tmp_path: Path, clock: Clock) -> None:
    """At 0 nothing is recalled, and a question changes nothing."""
    config = {**CONFIG, "retrieval": {"context_share": 0.0}}
    with open_memory(tmp_path, config=config, clock=clock) as memory:
        memory.record_operation("note", {"text": OLD})
        memory.flush_session()
        context = memory.get_orchestrator_context("x", query="saffron gateway")
        assert context.recalled == ""
        assert context.render() == memory.get_orchestrator_context("x").render()

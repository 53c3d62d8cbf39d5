"""Memories recalled for a query, placed after the rest of the context and fenced as data; and small contexts."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.context.items import Part
from orchestra_mem.search_types import SearchFilter, Tier
from orchestra_mem.types import DocumentName
from orchestra_mem.work_types import WorkKind
from tests.builders import cases
from tests.conftest import Clock, record
from tests.memories import edit, take_out

CONFIG = {"orchestrator": {"context_window": {"max_tokens": 8_192}, "working_memory": {"max_operations": 10}}}
OLD = "She told me of the saffron gateway, of port 8443 and of the blue proxy."


@pytest.fixture
def memory(memory: OrchestratorContextManager, clock: Clock) -> OrchestratorContextManager:
    """A memory in which a message was recorded long ago, in a session that has ended."""
    memory.record_operation("message", {"role": "user", "text": OLD}, agent="dana")
    record(memory, 60, kind="note", say="Step {n}: the parser of part {n} reads its window; nothing else is new.")
    memory.flush_session()
    clock.now += timedelta(days=3)
    record(memory, 5, first=100)
    return memory


def test_what_answers_the_query_stands_behind_the_newest_operations(memory: OrchestratorContextManager) -> None:
    """Recalled memories follow the newest operations, fenced with their source; nothing before them changes."""
    plain = memory.get_orchestrator_context("step")
    other = memory.get_orchestrator_context("step", query="zzqqxy")
    asked = memory.get_orchestrator_context("step", query="which port does the saffron gateway answer on?")
    assert OLD not in plain.render()
    assert asked.render().startswith(f'{asked.prefix}{asked.timeline}<memory part="recalled_memories">\n')
    assert (asked.prefix, asked.timeline, asked.epoch) == (other.prefix, other.timeline, other.epoch)
    assert f"```recalled op 1 (2025-01-15, dana)\n{OLD}\n```\n" in asked.recalled
    assert asked.tokens == memory.counter.count(asked.render()) <= asked.budget_tokens
    assert memory.get_orchestrator_context("step").render() == plain.render()
    told = memory.explain("step", query="saffron gateway")
    (line,) = [line for line in told.splitlines() if "recalled op 1" in line]
    assert "rank 1 by words" in line
    assert line.endswith("; in full")
    assert "recalled_memories" not in memory.explain("step")


def test_a_search_that_finds_nothing_for_now_keeps_the_prefix(tmp_path: Path, clock: Clock) -> None:
    """While vectors are missing and nothing is found, contexts begin as with the next query that finds something."""
    away = {"search": {"embedder": "http", "base_url": "http://127.0.0.1:9/v1", "model": "m"}}
    with open_memory(tmp_path, config={**CONFIG, **away}, clock=clock) as memory:
        memory.record_operation("message", {"role": "user", "text": OLD})
        record(memory, 20, kind="note", say="Step {n}: the parser of part {n} reads its window; nothing else is new.")
        memory.flush_session()
        record(memory, 5, first=100)
        first, then, last = (
            memory.get_orchestrator_context("step", query=query) for query in ("zzqqxy", "saffron gateway", "zzqqxy")
        )
        assert not first.recalled
        assert "search by meaning is off" in first.notes[0]
        assert OLD in then.recalled
        assert (first.prefix, first.epoch) == (then.prefix, then.epoch) == (last.prefix, last.epoch)


@pytest.mark.parametrize(("said", "agent", "label"), cases("a_recalled_message_names_who_said_it"))
def test_a_recalled_message_names_who_said_it(
    tmp_path: Path, clock: Clock, said: dict[str, str], agent: str | None, label: str
) -> None:
    """The label of a recalled message has its speaker, the agent that recorded it, or else its role."""
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        memory.record_operation("message", {**said, "text": "My dog is called Oscar."}, agent=agent)
        memory.flush_session()
        recalled = memory.get_orchestrator_context("next", query="what is the dog called?").recalled
    assert f"```recalled op 1 ({label})\nMy dog is called Oscar.\n```\n" in recalled


def test_a_recalled_fact_names_its_speaker_once(tmp_path: Path, clock: Clock) -> None:
    """A recalled fact is labelled with the speaker of its operation, unless its text begins with the name."""
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        memory.record_operation("message", {"speaker": "Melanie", "text": "I am the owner of the billing service."})
        memory.record_operation("message", {"speaker": "Melanie", "text": "We decided to fire the kiln on Mondays."})
        memory.flush_session()
        facts = SearchFilter(tiers=(Tier.SEMANTIC,))
        found = memory.retriever.retrieve_context("billing service, and when we fire the kiln", where=facts)
    texts = [each.text for each in found.entries]
    assert "```recalled K1 (role, 2025-01-15)\nMelanie: I am the owner of the billing service.\n```\n" in texts
    assert "```recalled K2 (decision, 2025-01-15, Melanie)\nWe decided to fire the kiln on Mondays.\n```\n" in texts


def test_what_the_context_has_already_is_not_recalled_again(memory: OrchestratorContextManager) -> None:
    """A memory that the context already shows is not recalled again; `placements` say so."""
    text = "The amber lamp of the lighthouse was lit at nine by the keeper."
    memory.record_operation("note", {"text": text})
    asked = memory.get_orchestrator_context("step", query="who lit the amber lamp?")
    assert asked.render().count("amber lamp") == 1
    told = [p for p in asked.placements if p.part is Part.RECALLED and "amber" not in p.text and p.form is None]
    assert any(p.reason.endswith("left out: already in the context") and p.tokens == 0 for p in told)


def test_the_share_is_a_setting(tmp_path: Path, clock: Clock) -> None:
    """With `context_share` 0 nothing is recalled, and a query does not change the context."""
    config = {**CONFIG, "retrieval": {"context_share": 0.0}}
    with open_memory(tmp_path, config=config, clock=clock) as memory:
        memory.record_operation("note", {"text": OLD})
        memory.flush_session()
        context = memory.get_orchestrator_context("x", query="saffron gateway")
        assert context.recalled == ""
        assert context.render() == memory.get_orchestrator_context("x").render()


def test_a_persons_correction_is_not_contradicted_by_what_is_recalled(tmp_path: Path, clock: Clock) -> None:
    """A decision that a person rewords or deletes is recalled neither in its former words nor from a session's lists.

    Its operation is recalled with a mark that names the reworded fact, or says that a person removed it. The lists of
    the session that are empty then, and labels and states without anything else, are not recalled.
    """
    old, gone = "We agreed that refunds are possible until 48 hours before departure.", "We use Stripe for refunds."
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        for text in (old, gone):
            memory.record_operation("message", {"role": "user", "text": text})
        record(memory, 30, kind="note", say="Step {n}: the parser of part {n} reads its window; nothing else is new.")
        memory.flush_session()
        path = memory.episodic_memory.path(DocumentName.DECISION_LOG)
        edit(path, ("48 hours", "24 hours"))
        take_out(path, "Stripe")
        asked = "Until when are refunds possible? And with Stripe?"
        context = memory.get_orchestrator_context("x", 3_000, query=asked)
    shown = context.recalled
    assert f"```recalled op 1 (2025-01-15, user, superseded by K1)\n{old}\n" in shown
    assert f"```recalled op 2 (2025-01-15, user, removed by a person)\n{gone}\n```\n" in shown
    assert [context.render().count(text) for text in (old, gone, "24 hours")] == [1, 1, 1]
    assert "**:" not in shown


def test_a_recalled_failure_says_whether_it_was_solved(tmp_path: Path, clock: Clock) -> None:
    """A recalled operation with failures or open items is marked once all of them are solved or done, not before."""
    asked = "What failed with the mill, the sluice and the crane?"
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        for task, error in (("grease the mill", "the mill is jammed"), ("open the sluice", "the sluice is frozen")):
            memory.record_operation("task_execution", {"task": task, "status": "failed", "error": error}, agent="ann")
        memory.record_operation("note", {"next_steps": ["paint the crane", "oil the crane"]}, agent="ann")
        record(memory, 60, kind="note", say="Step {n}: the parser of part {n} reads its window; nothing else is new.")
        for task in ("grease the mill", "paint the crane"):
            memory.record_operation("task_execution", {"task": task, "status": "completed"})
        memory.flush_session()
        shown = memory.get_orchestrator_context("x", 3_000, query=asked).recalled
        memory.record_operation("task_execution", {"task": "oil the crane", "status": "completed"})
        memory.flush_session()
        later = memory.search("paint and oil the crane").hits
    told = {op: "settled since" in label for op, label in re.findall(r"```recalled op (\d+) \((.*)\)", shown)}
    assert {op: told[op] for op in ("1", "2", "3")} == {"1": True, "2": False, "3": False}
    assert [hit.fate for hit in later if hit.chunk.operation == 3] == ["settled since"]


def test_a_superseded_passage_comes_with_what_superseded_it(tmp_path: Path, clock: Clock) -> None:
    """A recalled operation that a later fact superseded has that fact in its last line, unless it is shown anyway.

    If a hit before it or the context tells the fact, it is not repeated; a hit after it is not shown again.
    """
    old, new = "Ben is responsible for the payments module.", "Carmen takes over the payments module from Ben."
    asked = "Who is responsible for the payments module?"
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        memory.record_operation("message", {"role": "user", "text": old}, agent="ann")
        record(memory, 60, kind="note", say="Step {n}: the parser of part {n} reads its window; nothing else is new.")
        memory.record_operation("message", {"role": "user", "text": new})
        memory.flush_session()
        found = memory.retriever.retrieve_context(asked, where=SearchFilter(agent="ann"))
        everything = memory.retriever.retrieve_context(asked).text
        context = memory.get_orchestrator_context("x", 3_000, query=asked)
    assert f"```recalled op 1 (2025-01-15, ann, superseded by K2)\n{old}\nK2: {new}\n```\n" in found.text
    assert everything.count(f"\n{new}\n") + everything.count(f"\nK2: {new}\n") == 1
    assert f"```recalled op 1 (2025-01-15, ann, superseded by K2)\n{old}\n```\n" in context.recalled
    assert new in context.prefix


def test_a_recalled_work_item_has_its_title(tmp_path: Path, clock: Clock) -> None:
    """A recalled work item has its title, as its status alone says nothing."""
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        memory.state.create(WorkKind.TASK, "Refund the crane")
        shown = memory.retriever.retrieve_context("crane", where=SearchFilter(kinds=("task",))).text
    assert '```recalled task 1 (task, 2025-01-15)\nTask #1 "Refund the crane": pending\n```\n' in shown


# Small contexts: messages, and rules and decisions first

RULE = "You must never deploy on a Friday."


def test_a_small_context_has_no_times_ids_or_empty_sections(tmp_path: Path) -> None:
    """A small context shows only who speaks and what they say, without times, ids or empty sections."""
    with open_memory(tmp_path) as memory:
        for speaker, text in (("Ann", "The oven is hot."), ("Ben", "Which of them?"), ("Ann", "The left one.")):
            memory.record_operation("message", {"speaker": speaker, "text": text})
        shown = memory.get_orchestrator_context("next", 120).render()
    assert shown == (
        '<memory part="working_memory">\n- Ann: The oven is hot.\n- Ben: Which of them?\n- Ann: The left one.\n'
    )


def test_a_persons_counts_are_in_contexts_and_the_machines_are_not(tmp_path: Path) -> None:
    """Counts in a person's section are content, whatever they are called; the machine's are for people alone."""
    with open_memory(tmp_path) as memory:
        memory.record_operation("note", {"text": "x"})
        memory.flush_session()
        path = memory.episodic_memory.path(DocumentName.PROJECT_STATE)
        assert "- **Operations**: 1\n" in path.read_text()
        path.write_text(f"{path.read_text()}\n## Load test\n\n- **Sessions**: 4,000\n- **Operations**: 120\n")
        shown = memory.get_orchestrator_context("next").render()
    assert "- **Sessions**: 4,000\n- **Operations**: 120\n" in shown
    assert "Statistics" not in shown


def test_a_small_context_shows_decisions_of_operations_that_it_has_no_room_for(tmp_path: Path) -> None:
    """The decision log's entry of a long operation stays in a small context."""
    with open_memory(tmp_path) as memory:
        for number in range(6):
            memory.record_operation("report", {"text": f"We decided to keep barn {number}. " + "It rained. " * 200})
        memory.refresh()
        shown = memory.get_orchestrator_context("next", 500).render()
        assert [number for number in range(6) if f"barn {number}" in shown] == [*range(6)]


def test_most_of_a_context_with_a_question_is_what_answers_it(tmp_path: Path) -> None:
    """With a query most of a small context is recalled text, in full; a large budget is not left unused."""
    said = [
        f"In week {week} the saffron gateway was down for {week} minutes, because of its {week}th valve; we noted the "
        f"hour, the colour of the sky, who was there, what the dog of the neighbour did, and how it was mended in the "
        f"end: by hammer number {week}."
        for week in range(30)
    ]
    with open_memory(tmp_path) as memory:
        for text in said:
            memory.record_operation("message", {"role": "user", "text": text})
        memory.flush_session()
        asked = memory.get_orchestrator_context("x", 2_000, query="when was the saffron gateway down?")
        assert sum(text in asked.recalled for text in said) >= 15
        assert asked.tokens > 0.9 * 2_000
        for number in range(300):
            memory.record_operation("note", {"text": f"Part {number} of the plan is as it was, with no news. {RULE}"})
        plain = memory.get_orchestrator_context("x", 60_000)
        asked = memory.get_orchestrator_context("x", 60_000, query="when was the saffron gateway down?")
        assert asked.tokens >= plain.tokens > 8_000


def test_a_small_context_of_a_new_session_shows_what_binds(tmp_path: Path) -> None:
    """The small context of a new session has earlier decisions, rules and roles, with their days but no times."""
    said = "I'm Ana and I lead the billing team.", "We decided to host on Hetzner because it is cheap.", RULE
    with open_memory(tmp_path) as memory:
        for text in said:
            memory.record_operation("message", {"role": "user", "text": text})
        memory.flush_session()
    with open_memory(tmp_path) as memory:
        shown = memory.get_orchestrator_context("next", 120).render()
        asked = memory.get_orchestrator_context("next", 200, query="Where do we host?").render()
    for text in said:
        assert text in shown
        assert text in asked  # few memories answer it; the rest of the budget is used too
    assert not re.search(r"\d\d:\d\d:\d\d", shown)


def test_the_rule_that_is_asked_for_is_not_among_those_that_a_small_context_leaves_out(tmp_path: Path) -> None:
    """Where not all rules fit, those nearest to the question stay, though others are newer."""
    rules = cases("rules_of_a_bakery")
    with open_memory(tmp_path) as memory:
        for rule in rules:
            memory.record_operation("message", {"speaker": "Greta", "text": rule})
        memory.flush_session()
        record(memory, 12, say="The counter sold {n} rolls in an hour, mostly with butter.")
        query = "May I put sesame rolls into the order for the kindergarten?"
        asked = memory.get_orchestrator_context("prompt", 300, query=query).render()
        assert "other lines are left out here" in asked
        assert rules[0] in asked


def test_a_superseded_decision_is_marked_though_its_reason_is_not_repeated(tmp_path: Path) -> None:
    """The words of a reason do not count as something that may still hold."""
    with open_memory(tmp_path) as memory:
        told = {
            "text": "The delivery fee is 3.50 euros.",
            "reason": "That covers the petrol of the van to the sea.",
        }
        old = memory.record_operation("decision", told)
        memory.record_operation("decision", {"text": "The delivery fee is 4.20 euros."})
        memory.flush_session()
        (hit,) = (hit for hit in memory.search("What is the delivery fee?").hits if hit.chunk.operation == old.id)
        assert hit.superseded_by == "K2"


def test_what_superseded_a_decision_stands_in_the_context_that_names_it(tmp_path: Path) -> None:
    """A decision stays in the log's part though a rule says the same, because the old one refers to its number."""
    with open_memory(tmp_path) as memory:
        memory.record_operation("decision", {"text": "The delivery fee is 3.50 euros."})
        later = "The delivery fee is 4.20 euros now, and delivery is free above 60 euros."
        memory.record_operation("decision", {"text": later})
        memory.flush_session()
        shown = memory.get_orchestrator_context("step", 2_000).render()
        assert "*Superseded by K2.*" in shown
        assert f"{later} (K2)" in shown

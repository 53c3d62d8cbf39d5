"""Recalling on the command line: for a task, for a context, as text for a model and as JSON."""

from __future__ import annotations

import shutil

import pytest

from tests.faces.conftest import Program

QUESTION = "how hot was oven 7?"


def test_retrieve_prints_an_index_and_the_entries(filled: Program) -> None:
    """As it is for a model, within the budget; with --explain why, with --json all of it."""
    text = filled("retrieve", QUESTION, "--max-tokens", "500")
    assert text.startswith("What follows is recorded memory")
    assert "```recalled index\n" in text
    assert "Oven 7 was heated to 187 degrees" in text
    found = filled.json("retrieve", QUESTION, "--max-tokens", "500")
    assert found["text"] == text
    assert found["tokens"] <= found["budget_tokens"] == 500
    assert found["entries"][0]["explanation"] in filled("retrieve", QUESTION, "--max-tokens", "500", "--explain")


def test_recommend_prints_what_past_work_says(filled: Program) -> None:
    """In groups, each with its source; exit code 1 where it says nothing."""
    filled("record", "decision", '{"text": "We decided to heat oven 7 with wood alone."}')
    assert "```recalled op 61 (" in filled("recommend", "heat oven 7")
    found = filled.json("recommend", "heat oven 7", "--limit", "2")
    assert found["decisions"][0]["source"] == "op 61"
    assert set(found) == {"task", "decisions", "rules", "failures", "similar_tasks", "notes"}
    assert filled("recommend", "zzqqxy", exit_code=1) == ""
    told = "no past decision, rule, failure or similar task says anything for this one"
    assert filled.errors == f"orchestra-mem: {told}\n"
    assert filled.json("retrieve", "zzqqxy", exit_code=1)["entries"] == []


@pytest.mark.parametrize("command", ["retrieve", "recommend"])
@pytest.mark.parametrize("task", ["", " \n\t"])
def test_without_a_task_it_says_what_is_missing(filled: Program, command: str, task: str) -> None:
    """That is bad use, and tells so by its exit code."""
    assert filled(command, task, exit_code=2) == ""
    assert "it is empty: say what is to be done" in filled.errors


def test_a_context_recalls_for_a_query(filled: Program) -> None:
    """At its end, behind everything else."""
    filled("flush")
    filled("record", "note", '{"text": "A new day."}')
    asked = filled("context", "--max-tokens", "600", "--query", QUESTION)
    before, _, recalled = asked.partition('<memory part="recalled_memories">')
    assert "A new day." in before
    assert "Oven 7 was heated to 187 degrees" in recalled
    record = filled.json("context", "--query", QUESTION, "--max-tokens", "600")
    assert record["text"] == asked
    assert record["notes"] == []
    assert "recalled_memories" in record["parts"]


def test_without_search_a_note_goes_to_stderr(filled: Program) -> None:
    """And the context is as without a query."""
    plain = filled("context")
    index = filled.folder / ".obra" / "index"
    shutil.rmtree(index, ignore_errors=True)
    index.write_text("no folder")
    assert filled("context", "--query", QUESTION) == plain
    assert "orchestra-mem: nothing is recalled, search cannot be used: " in filled.errors


@pytest.mark.parametrize("command", ["retrieve", "recommend"])
def test_an_agent_without_a_name_is_given_nothing(filled: Program, command: str) -> None:
    """As by a variable that is not set: it would be taken for the owner, who sees every agent's items."""
    filled("catalog", "add", "The heron key lies in drawer 4.", "--of", "ada", "--type", "decision")
    for nobody in ("", " "):
        assert filled(command, "heron key", "--agent", nobody, exit_code=2) == ""
        assert "name an agent, or leave it out" in filled.errors
    assert "drawer 4" in filled(command, "heron key", "--agent", " ada ")

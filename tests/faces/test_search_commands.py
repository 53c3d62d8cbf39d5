"""What `search`, `expand`, `status`, `check` and `doctor` print about search, as text and as JSON."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.faces.conftest import MadeBy, Program


def _say(run: Program) -> None:
    run("init")
    run("record", "message", '{"text": "We decided to hash passwords with bcrypt."}', "--agent", "dana")
    run("record", "tool_call", '{"text": "The login tests of bcrypt failed.", "task_id": 7}', "--agent", "coder")
    run("refresh")


@pytest.fixture
def said(made_by: MadeBy) -> Program:
    """A project with a decision in its documents and operations of two agents."""
    return made_by(_say)


def test_a_hit_says_where_it_stands_and_leads_there(said: Any) -> None:
    """A hit in a document has file and line, which `expand` resolves to the line and its operation."""
    hits = said.json("search", "bcrypt")["hits"]
    hit = next(hit for hit in hits if hit["source"] == "decision_log.md" and "bcrypt" in hit["text"])
    lines = (said.folder / ".obra/memory/decision_log.md").read_text().split("\n")
    assert "bcrypt" in lines[hit["line"] - 1]
    assert next(hit["line"] for hit in hits if hit["source"] == "op 1") is None
    place = f"decision_log.md:{hit['line']}"
    assert place in said("search", "bcrypt")
    shown = said("expand", place)
    assert f"> {hit['line']:>5}  " in shown
    assert '{"text":"We decided to hash passwords with bcrypt."}' in shown
    found = said.json("expand", place)
    assert found["place"]["line"] == hit["line"]
    assert [operation["id"] for operation in found["operations"]] == [1]


def test_a_heading_leads_to_the_entry_below_it(said: Any) -> None:
    """`expand` of a line that is an entry's heading shows the entry and the operation that the heading names."""
    said("record", "decision", "--text", "The archive closes at 9 pm.")
    said("record", "decision", "--text", "The archive closes at 8 pm instead of 9 pm.")
    said("refresh")
    lines = (said.folder / ".obra/memory/decision_log.md").read_text().split("\n")
    assert "*Superseded by" in "\n".join(lines)
    for text in ("The archive closes at 9 pm.", "The archive closes at 8 pm instead of 9 pm."):
        (line,) = (number for number, each in enumerate(lines, 1) if each.startswith("###") and text in each)
        (operation,) = said.json("expand", f"decision_log.md:{line}")["operations"]
        assert operation["data"]["text"] == text


def test_an_operation_is_shown_among_its_neighbours(said: Any) -> None:
    """`expand` shows an operation among its neighbours, a line each, and then its data as recorded."""
    shown = said("expand", "op1").split("\n")
    assert shown[0].startswith("> op1 ")
    assert shown[1].startswith("  op2 ")
    assert shown[1].endswith(" tool_call: The login tests of bcrypt failed.")
    assert json.loads(shown[4]) == {"text": "We decided to hash passwords with bcrypt."}
    said("record", "note", "--text", " ".join(f"word{number}" for number in range(99)))
    assert said("expand", "op1").split("\n")[2].endswith(" word39 word40 wor …")  # a cut is marked, not hidden


FILTERS = [
    (["--tier", "working"], {"op 1", "op 2"}), (["--tier", "episodic"], {"decision_log.md"}),
    (["--kind", "tool_call", "--kind", "message"], {"op 1", "op 2"}), (["--item", "7"], {"op 2"}),
    (["--since", "1h", "--kind", "message"], {"op 1"}), (["--until", "2020-01-01"], set()),
    (["--mode", "dense", "--agent", "dana"], {"op 1"}),
]  # fmt: skip


def test_filters_leave_out_what_does_not_pass(said: Any) -> None:
    """Each filter alone removes the hits that do not match it."""
    for options, sources in FILTERS:
        found = said.json("search", "bcrypt", *options, exit_code=0 if sources else 1)
        assert {hit["source"] for hit in found["hits"]} & {"op 1", "op 2", "decision_log.md"} == sources, options


def test_explain_tells_ranks_scores_and_priors_of_each_hit(said: Any) -> None:
    """`--explain` prints keyword and dense ranks, the score and the priors of each hit."""
    shown = said("search", "bcrypt", "--explain")
    count = len(said.json("search", "bcrypt")["hits"])
    assert shown.count("words: ") == shown.count("meaning: ") == shown.count("score: ") == count
    assert shown.count("recency, ") == shown.count("importance, ") == count
    assert "words: rank 1, score " in shown
    assert "meaning: rank 1, score " in shown


def test_a_search_says_what_is_certain_and_what_is_not(run: Any) -> None:
    """Unlikely hits are marked as such, and a search without any hit exits with 1."""
    run("init")
    assert run("search", "password hashing", exit_code=1) == "nothing found\n"
    run("record", "decision", "--text", "We use bcrypt because it is slow on purpose")
    shown = run("search", "password hashing", "--explain").split("\n")
    assert shown[0] == "No certain hits; perhaps:"
    assert shown[1].startswith("  1  op 1  Decision")
    assert re.fullmatch(r" +likelihood 0\.0[0-3]\d, perhaps", shown[-2])
    for text in ("The lamp in the cellar was changed.", "It rained on the harbour.", "Tea was had in the hall."):
        run("record", "note", "--text", text)
    shown = run("search", "bcrypt")
    assert shown.startswith("  1  op 1  Decision")
    assert shown.count("erhaps:") == shown.count("\nPerhaps:\n") == 1


# Health of the index


def _part(run: Any, exit_code: int = 0) -> Any:
    findings = run.json("doctor", exit_code=exit_code)["findings"]
    return next(found for found in findings if found["part"] == "search")


def test_an_index_that_is_not_there_yet_is_no_fault(said: Any) -> None:
    """A missing index is reported as sound, since the first search creates it."""
    words = "not built yet; the first search builds it"
    assert _part(said) == {"part": "search", "health": "sound", "words": words, "advice": ""}
    assert f"search   {words}\n" in said("status")


def test_an_index_tells_what_it_holds_and_how_far_it_is_behind(said: Any) -> None:
    """`doctor` reports the index's passages, model, dimensions and size, how far it is behind, and what updates it."""
    said("index")
    index = said.folder / ".obra" / "index"
    with closing(sqlite3.connect(index / "search.db", isolation_level=None)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM chunk").fetchone()
    connection.close()
    words = f"{count} passages, embedded by wordllama l2_supercat (256 dimensions), 0."
    found = _part(said)
    assert found["health"] == "sound"
    assert found["words"].startswith(words)
    assert found["words"].endswith(" MB")
    said("record", "note", '{"text": "later"}')
    found = _part(said)
    assert found["health"] == "note"
    assert found["words"].endswith(" MB; 1 operations behind")
    assert found["advice"] == "the next search indexes the rest; `orchestra-mem index` does it now"
    assert said.json("status")["search_index"].endswith("; 1 operations behind")


@pytest.mark.parametrize("damage", ["file", "vectors"])
def test_a_damaged_index_is_named_and_the_next_search_makes_it_anew(said: Any, damage: str) -> None:
    """`check` and `doctor` report a damaged index, and the next search rebuilds it."""
    said("index")
    index = said.folder / ".obra" / "index"
    if damage == "file":
        (index / "search.db").write_bytes(b"no database" * 999)
        fault = "file is not a database"
    else:
        (file,) = index.glob("vectors-*")
        file.unlink()
        fault = f"lacks its vectors: {file.name} is missing"
    (problem,) = said.json("check", exit_code=1)["problems"]
    assert problem["path"].endswith("search.db")
    assert problem["problem"] == fault
    meanwhile = "the next search rebuilds it; nothing is lost, because the index is derived data"
    assert problem["meanwhile"] == meanwhile
    found = _part(said, exit_code=1)
    assert (found["health"], found["advice"]) == ("fault", meanwhile)
    assert found["words"].endswith(fault)
    assert "op 1" in said("search", "bcrypt")
    assert said.json("check")["problems"] == []
    assert _part(said)["health"] == "sound"


def test_an_index_that_cannot_be_kept_is_no_success(said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the index cannot be written, `index` exits with 4 and searches still answer."""
    home, access = said.folder / ".obra", os.access

    def denied(path: Path, mode: int, **options: bool) -> bool:
        return access(path, mode, **options) and not (mode == os.W_OK and Path(path).is_relative_to(home))

    monkeypatch.setattr(os, "access", denied)
    monkeypatch.setattr(os, "supports_effective_ids", {denied})
    assert said("index", exit_code=4) == ""
    assert f"the index was not saved in {home / 'index'}, so each search builds a temporary one" in said.errors
    assert "the index is up to date" not in said.errors
    assert said.json("index", exit_code=4)["error"]["exit_code"] == 4
    assert said.json("search", "bcrypt")["hits"]
    monkeypatch.undo()
    monkeypatch.chdir(said.folder)
    said("index")
    assert said.errors == "the index is up to date\n"
    monkeypatch.setattr(os, "access", denied)
    monkeypatch.setattr(os, "supports_effective_ids", {denied})
    said("index")
    assert said.errors.endswith("the index is up to date\n")


# Recall for a task or a context

QUESTION = "how hot was oven 7?"


def test_retrieve_prints_an_index_and_the_entries(filled: Program) -> None:
    """`retrieve` prints its text within the budget, with explanations under `--explain` and everything as JSON."""
    text = filled("retrieve", QUESTION, "--max-tokens", "500")
    assert text.startswith("What follows is recorded memory")
    assert "```recalled index\n" in text
    assert "Oven 7 was heated to 187 degrees" in text
    found = filled.json("retrieve", QUESTION, "--max-tokens", "500")
    assert found["text"] == text
    assert found["tokens"] <= found["budget_tokens"] == 500
    assert found["entries"][0]["explanation"] in filled("retrieve", QUESTION, "--max-tokens", "500", "--explain")


def test_recommend_prints_what_past_work_says(filled: Program) -> None:
    """`recommend` prints grouped entries with their sources, and exits with 1 if it finds none.

    A decision that a later one replaced is none of them, though both were recorded a moment ago.
    """
    filled("record", "decision", '{"text": "We decided to heat oven 7 with gas."}')
    filled("record", "decision", '{"text": "We decided to heat oven 7 with wood alone, no longer with gas."}')
    assert "```recalled K62 (" in filled("recommend", "heat oven 7")
    found = filled.json("recommend", "heat oven 7", "--limit", "2")
    assert [each["source"] for each in found["decisions"]] == ["K62"]
    assert set(found) == {"task", "decisions", "rules", "failures", "similar_tasks", "notes"}
    assert filled("recommend", "zzqqxy", exit_code=1) == ""
    told = "no past decision, rule, failure or similar task was found for this task"
    assert filled.errors == f"orchestra-mem: {told}\n"
    assert filled.json("retrieve", "zzqqxy", exit_code=1)["entries"] == []


def test_a_guess_about_past_work_is_called_one(said: Program) -> None:
    """`retrieve` and `recommend` mark guesses `perhaps` as `search` does, and put them last; the exit code stays 0."""
    wall = "decide on the colour of the wall"
    assert "No certain hits; perhaps:" in said("search", wall)
    assert re.match(
        r"Past decisions .*\n```recalled K1 \([\d-]+, perhaps, \d+ tokens in full\)\n", said("recommend", wall)
    )
    assert [each["perhaps"] for each in said.json("recommend", wall)["decisions"]] == [True]
    assert ", perhaps), " in said("retrieve", wall).split("```")[1]
    colour = said.json("retrieve", "login screen colour")["entries"]
    assert [(each["perhaps"], each["likelihood"] < 0.04) for each in colour] == [(False, False), (True, True)]
    assert "perhaps" not in said("recommend", "bcrypt")


def test_a_context_recalls_for_a_query(filled: Program) -> None:
    """A context for a query ends with the recalled memories."""
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
    """If search is unavailable, a context equals the one without a query, and a note goes to stderr."""
    plain = filled("context")
    index = filled.folder / ".obra" / "index"
    shutil.rmtree(index, ignore_errors=True)
    index.write_text("no folder")
    assert filled("context", "--query", QUESTION) == plain
    assert "orchestra-mem: nothing is recalled because search cannot be used: " in filled.errors


@pytest.mark.parametrize("command", ["retrieve", "recommend"])
def test_an_agent_without_a_name_is_given_nothing(filled: Program, command: str) -> None:
    """An empty agent name is refused, since it would count as the owner, who sees every agent's items."""
    filled("catalog", "add", "The heron key lies in drawer 4.", "--of", "ada", "--type", "decision")
    for nobody in ("", " "):
        assert filled(command, "heron key", "--agent", nobody, exit_code=2) == ""
        assert "name an agent, or leave the option out" in filled.errors
    assert "drawer 4" in filled(command, "heron key", "--agent", " ada ")

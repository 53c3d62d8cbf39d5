"""The commands for summaries made by a model, with a local server that answers like a good model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestra_mem.adapters.database import Database
from orchestra_mem.model_types import Message, Role
from orchestra_mem.stores import JobQueue
from orchestra_mem.testing import ScriptedModel
from tests.adapters.test_openai_http import Llama, serving
from tests.faces.conftest import MadeBy, Program
from tests.test_jobs import first_line


def _print(run: Program) -> None:
    run("init")
    config = "orchestrator:\n  session_compression_threshold: 4000\n"
    config += "compaction:\n  verbatim_window_s: 0\n  verbatim_floor_tokens: 0\n  segment_tokens: 600\n"
    (run.folder / ".obra" / "config.yaml").write_text(config)
    lines = [
        json.dumps({
            "type": "tool_call", "timestamp": f"2025-01-15T{number:02}:00:00Z", "tool": "bash",
            "output": "\n".join(f"tests/test_{number}_{k}.py::test_row_{k} ran for {k} ms" for k in range(1, 12)),
        })
        for number in range(24)
    ]  # fmt: skip
    (run.folder / "runs.jsonl").write_text("\n".join(lines))
    run("import", "jsonl", "runs.jsonl")
    run("refresh")


@pytest.fixture
def printing(made_by: MadeBy) -> Program:
    """The program in a compacted project of tool output, of which extraction keeps little."""
    return made_by(_print)


def test_a_job_that_its_process_left_waits_again(printing: Any) -> None:
    """The list shows a job in progress only while a process is at it."""
    summary, now = f"S{printing.json('summaries')[-1]['id']}", datetime.now(UTC)
    with closing(Database(printing.folder / ".obra" / "obra.db")) as database:
        queue = JobQueue(database)
        queue.put(summary, priority=0, now=now, most=9)
        assert queue.take("me", now=now, until=now + timedelta(minutes=1)) is not None
        assert "in progress" in printing("summaries")
        queue.resign("me")
    shown = printing("summaries")
    assert "waiting for the model" in shown
    assert "in progress" not in shown


def test_a_job_of_a_killed_process_is_told_as_interrupted(printing: Any) -> None:
    """A job whose lease has run out is not in progress, though nobody gave it back; reading changes nothing."""
    summary, then = f"S{printing.json('summaries')[-1]['id']}", datetime.now(UTC) - timedelta(hours=2)
    with closing(Database(printing.folder / ".obra" / "obra.db")) as database:
        queue = JobQueue(database)
        queue.put(summary, priority=0, now=then, most=9)
        taken = queue.take("killed", now=then, until=then + timedelta(minutes=1))
        shown = " ".join(printing("summaries").split())
        assert "in progress" not in shown
        assert "ing for the model, 1 tries fail" in shown
        assert printing.json("summaries")[-1]["job"] == "waiting"
        assert queue.jobs() == [taken]


@pytest.fixture
def served(printing: Program, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """A compacted project whose model is a server that answers well and at once."""
    llama, model = Llama(), ScriptedModel(first_line)

    def answer(body: Any) -> str:
        messages = [Message(role=Role(each["role"]), text=each["content"]) for each in body["messages"]]
        return model.generate(messages, max_tokens=body["max_tokens"]).text

    llama.whole, llama.served, llama.answer = True, set(), answer
    with serving(llama) as url:
        monkeypatch.setenv("ORCHESTRA_MEM__LLM__BASE_URL", url)
        monkeypatch.setenv("ORCHESTRA_MEM__LLM__MODEL", "good")
        monkeypatch.setenv("ORCHESTRA_MEM__COMPRESSION__AUTO", "false")
        yield printing


def test_summaries_are_listed_with_what_came_of_them(filled: Program) -> None:
    """Without a model every listed summary is an extract, and the list says that no model was asked."""
    listed = filled.json("summaries")
    assert listed
    assert {(each["method"], each["tried"], each["job"]) for each in listed} == {("extractive", None, None)}
    assert [each["id"] for each in filled.json("summaries", "--limit", "1")] == [listed[-1]["id"]]
    assert filled.json("summaries", "--session", listed[0]["session"][:6]) == listed
    shown = filled("summaries")
    assert "no model was asked" in shown
    assert f"S{listed[0]['id']}" in shown


def test_a_summary_is_redone_and_put_in_by_the_next_refresh(served: Program) -> None:
    """`summaries redo` reports the model's verdict, and the next refresh puts accepted summaries in."""
    standing = [each["id"] for each in served.json("summaries") if each["parent"] is None]
    done = {number: served.json("summaries", "redo", f"S{number}") for number in standing}
    better = [number for number, answer in done.items() if answer["verdict"] == "accepted"]
    assert {answer["verdict"] for answer in done.values()} <= {"accepted", "no better than the extract"}
    for number, answer in done.items():
        assert answer["method"] == ("extractive + good" if number in better else "extractive")
    assert better
    assert "used at next refresh" in served("summaries")
    served("refresh")
    put_in = {each["id"]: each for each in served.json("summaries")}
    assert {put_in[number]["method"] for number in better} == {"extractive + good"}
    assert not any(each["draft_waits"] for each in put_in.values())


def test_what_a_session_came_to_is_listed_and_redone(served: Program) -> None:
    """A session's summary is listed, expanded and redone like the others; an answer of a wrong shape is rejected."""
    served("flush")
    (whole,) = (each for each in served.json("summaries") if not each["level"])
    assert (whole["operation_count"], whole["document"], whole["method"]) == (24, None, "extractive")
    assert f"S{whole['id']} session {whole['session'][:8]}" in " ".join(served("summaries").split())
    assert f"session {whole['session'][:8]}" in " ".join(served("losses").split())
    assert served("expand", f"S{whole['id']}").startswith(f"S{whole['id']}, session {whole['session'][:8]}: 24 operat")
    done = served.json("summaries", "redo", f"S{whole['id']}")
    assert (done["verdict"], done["text"]) == ("rejected", whole["text"])
    assert done["fault"].startswith("the answer must be a JSON object with lists of texts under key_accomplishments")

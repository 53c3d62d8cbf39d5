"""`orchestra-mem import`: repeating it records only what is new or changed, and secrets are never recorded."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem.build import open_memory
from orchestra_mem.types import MustKeepStatus
from tests.builders import cases
from tests.faces.conftest import start

SAMPLES = Path(__file__).parents[1] / "adapters" / "samples"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with one file of each importable kind."""
    folder = tmp_path / "source"
    folder.mkdir()
    for name, place in (("claude_code.jsonl", "a.jsonl"), ("codex.jsonl", "b.jsonl"), ("rules.md", "CLAUDE.md"),
                        ("basic_memory.md", "store.md"), ("conversations.json", "conversations.json")):  # fmt: skip
        shutil.copy(SAMPLES / name, folder / place)
    conversations = json.loads((SAMPLES / "conversations.json").read_text())
    (folder / "conversations.json").write_text(json.dumps(conversations[:2]))
    return folder


def _transcript(file: Path, messages: int, text: str = "The oven of bakery {} is hot.") -> Path:
    lines = (
        {"type": "user", "sessionId": "s", "uuid": f"u{number}", "timestamp": "2026-01-05T09:00:00Z",
         "message": {"content": text.format(number)}}
        for number in range(messages)
    )  # fmt: skip
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_a_second_time_nothing_is_recorded(run: Any, source: Path) -> None:
    """Importing twice, with or without the word `from`, records nothing new; skipped content is listed on stderr."""
    assert run("import", source) == f"recorded 23 operations from {source}\n"
    assert run.errors.endswith(
        "left out: 1 file-history-snapshot, 1 internal line, 1 thinking, 1 image, 1 message of role "
        "developer, 1 preamble, 1 reasoning, 1 world_state, 1 compacted, 1 message of another branch, 1 thoughts, 1 "
        "image_asset_pointer\n"
    )
    done = run.json("import", "from", source, "--as", "transcripts")
    assert (done["recorded"], done["known"], done["faults"]) == (0, 14, [])
    assert run("import", source) == f"recorded 0 operations from {source}; 23 already recorded\n"
    assert len(run.json("ops", "--limit", "0")) == 23


@pytest.mark.parametrize("name", ["claude_code.jsonl", "codex.jsonl"])
def test_of_a_session_that_goes_on_the_rest_is_recorded_later(run: Any, tmp_path: Path, name: str) -> None:
    """Importing a growing session again records its new entries once, and a tool call again once it has output."""
    lines = (SAMPLES / name).read_bytes().splitlines(keepends=True)
    file = tmp_path / "s.jsonl"
    for count in range(1, len(lines) + 1):
        file.write_bytes(b"".join(lines[:count]))
        run("import", file, "--as", "transcripts")
    found = [json.dumps(op["data"], sort_keys=True) for op in run.json("ops", "--limit", "0")]
    assert len(set(found)) == len(found)
    other = tmp_path / "other"
    other.mkdir()
    run("import", file, "-C", other)
    at_once = {json.dumps(op["data"], sort_keys=True) for op in run.json("ops", "--limit", "0", "-C", other)}
    assert at_once <= set(found)
    assert all('"input"' in each for each in set(found) - at_once)


def test_a_dry_run_says_what_would_come_and_changes_nothing(run: Any, source: Path) -> None:
    """`--dry-run` reports what an import would record, without operations recorded before, and changes nothing."""
    done = run.json("import", source, "--dry-run")
    assert (done["dry_run"], done["recorded"], done["known"]) == (True, 23, 0)
    assert done["types"] == {"message": 12, "tool_use": 7, "session_summary": 2, "rules": 1, "note": 1}
    assert not (run.folder / ".obra").exists()
    run("import", source / "CLAUDE.md")
    assert run("import", source, "--dry-run") == (
        f"would have recorded 22 operations from {source}; 1 already recorded\n"
        "12 message, 7 tool_use, 2 session_summary, 1 note\n"
    )
    assert len(run.json("ops")) == 1


def test_what_was_imported_can_be_searched_and_its_facts_are_known(run: Any, source: Path) -> None:
    """Imported rules and decisions become facts that expand to their file and line, and imported text is searchable."""
    run("import", source)
    run("refresh")
    facts = {(fact["kind"], fact["text"]): f"K{fact['id']}" for fact in run.json("facts")}
    rule = facts["constraint", "Never push to main"]
    assert {
        ("constraint", "Never round before the tax is added."),
        ("decision", "Use SQLite as the one store of orders #db (simple)"),
        ("constraint", "Commit messages are in the imperative mood"),
    } <= facts.keys()
    (behind,) = run.json("expand", rule)["operations"]
    assert behind["data"]["file"] == str(source / "CLAUDE.md")
    assert "Never push to main" in behind["data"]["line 9"]
    assert "the hut is booked by Ana" in run("search", "who booked the hut in the hills", "--mode", "keyword")
    assert "Never push to main" in run("context")


def test_a_changed_file_is_its_next_version(run: Any, source: Path) -> None:
    """A changed rules file supersedes the facts of its previous version, also when it changes back."""
    rules = source / "CLAUDE.md"
    first = rules.read_text()
    run("import", rules)
    rules.write_text(first.replace("Never push to main", "Push to main only after a review"))
    assert run.json("import", source, "--as", "rules")["recorded"] == 1
    run("refresh")
    rules.write_text(first)
    assert run("import", rules) == f"recorded 1 operation from {rules}\n"
    assert run("import", rules) == f"recorded 0 operations from {rules}; 1 already recorded\n"
    run("refresh")
    versions = run.json("ops", "--type", "rules")
    assert [op["data"].get("replaces") for op in versions] == [None, "op 1", "op 2"]
    with open_memory(run.folder) as memory:
        standing = [(fact.text, fact.operation) for fact in memory.facts()]
        gone = {(fact.text, fact.operation, fact.status) for fact in memory.facts(standing=False)} - {
            (*fact, MustKeepStatus.STANDING) for fact in standing
        }
    commits = "Commit messages are in the imperative mood"
    assert standing == [("Never push to main", 3), (commits, 3)]
    assert gone == {
        ("Never push to main", 1, MustKeepStatus.SUPERSEDED), (commits, 1, MustKeepStatus.SUPERSEDED),
        ("Push to main only after a review", 2, MustKeepStatus.SUPERSEDED), (commits, 2, MustKeepStatus.SUPERSEDED),
    }  # fmt: skip


@pytest.mark.parametrize(("arguments", "code", "problem"), cases("what_cannot_be_imported_is_told"))
def test_what_cannot_be_imported_is_told(run: Any, arguments: tuple[str, ...], code: int, problem: str) -> None:
    """An import that cannot be done says why, exits with its code and creates no memory."""
    run("import", *arguments, exit_code=code)
    assert problem in run.errors
    assert not (run.folder / ".obra").exists()


def test_a_secret_in_a_transcript_is_not_kept(run: Any, tmp_path: Path) -> None:
    """A secret in an imported transcript is redacted and is in no file of the memory."""
    run("import", _transcript(tmp_path / "s.jsonl", 3, f"Use {TOKEN} for upload {{}}."))
    run("flush")
    assert "[redacted:" in run.json("ops")[0]["data"]["text"]
    files = [path for path in (run.folder / ".obra").rglob("*") if path.is_file()]
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_import_that_was_ended_goes_on_where_it_was(run: Any, tmp_path: Path, how: signal.Signals) -> None:
    """An import ended by `kill -9` or Ctrl-C keeps its operations, and a second one adds the rest once, in order."""
    file = _transcript(tmp_path / "s.jsonl", 500)
    run("init")
    process = start("import", file, cwd=run.folder)
    with open_memory(run.folder) as memory:
        while memory.count_operations() < 100 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(how)
        _, errors = process.communicate(timeout=60)
        begun = memory.count_operations()
    assert 100 <= begun < 500
    assert process.returncode == (-how if how is signal.SIGKILL else 130)
    assert "importing" not in errors
    assert "Traceback" not in errors
    assert ("interrupted; everything recorded before is kept" in errors) is (how is signal.SIGINT)
    done = run.json("import", file)
    assert (done["recorded"], done["known"]) == (500 - begun, begun)
    texts = [op["data"]["text"] for op in run.json("ops", "--limit", "0")]
    assert texts == [f"The oven of bakery {number} is hot." for number in range(500)]
    run("check")

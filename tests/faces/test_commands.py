"""What each command does: it passes its arguments to the library and shows the result."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from filelock import FileLock

from orchestra_mem.build import open_memory
from orchestra_mem.core.documents.signature import timeless
from orchestra_mem.errors import InvalidTimeError
from orchestra_mem.faces.filter_times import filter_time
from orchestra_mem.types import DocumentName
from orchestra_mem.work_types import WorkKind
from tests.builders import cases

TEMPLATE = Path(__file__).parents[2] / ".obra-template"

# Recording


def test_init_lays_down_the_template_and_the_documents_and_may_be_repeated(run: Any) -> None:
    """`init` creates the template and the documents and lists them; repeated, it changes nothing."""
    names = sorted(path.relative_to(TEMPLATE).as_posix() for path in TEMPLATE.rglob("*") if path.is_file())
    made = [*(f".obra/{name}" for name in names), ".obra/obra.db",
            *(f".obra/memory/{name.value}.md" for name in DocumentName)]  # fmt: skip
    assert run.json("init") == {"project": str(run.folder), "made": made, "kept": []}
    for name in names:
        assert (run.folder / ".obra" / name).read_bytes() == (TEMPLATE / name).read_bytes()
    (run.folder / ".obra" / "config.yaml").write_text("project:\n  name: Mine\n")
    plan = run.folder / ".obra" / "memory" / "work_plan.md"
    plan.write_text(plan.read_text() + "\nby hand\n")
    assert "orchestra-mem record" in run("init")
    assert run.errors == "".join(f"already there: {name}\n" for name in made)
    assert (run.folder / ".obra" / "config.yaml").read_text() == "project:\n  name: Mine\n"
    assert plan.read_text().endswith("\nby hand\n")


@pytest.mark.parametrize(
    ("arguments", "stdin", "data"),
    [
        (('{"text": "hi"}',), None, {"text": "hi"}),
        (("[1, null]",), None, [1, None]),
        (("-",), '{"big": 1e3, "nul": "\\u0000", "lone": "\\ud800"}', {"big": 1000.0, "nul": "\0", "lone": "\ud800"}),
        (("--text", '"quoted" and plain'), None, {"text": '"quoted" and plain'}),
        (("--text", "-"), "The crane lifts 1.8 tonnes.\n", {"text": "The crane lifts 1.8 tonnes.\n"}),
    ],
)
def test_record_takes_json_from_the_argument_stdin_or_a_text(
    run: Any, arguments: tuple[str, ...], stdin: str | None, data: object
) -> None:
    """`record` takes JSON from an argument or stdin, or a text, and creates the memory if there is none."""
    assert run.json("record", "note", *arguments, stdin=stdin)["data"] == data
    assert run.errors == f"created a new memory in {run.folder / '.obra'}\n"
    assert run.json("ops")[0]["data"] == data
    assert run.json("expand", "op1")["operations"][0]["data"] == data


def test_json_is_readable_in_any_language(run: Any) -> None:
    """With `--json` letters stand as they are; escaped are control characters, and what no encoding can hold."""
    run(
        "record",
        "note",
        "-",
        stdin=r'{"text": "\u738b\u82b3 \u00f6lt \ud83e\uddea", "odd": "\ud800 \u009b \u2028 \u0000"}',
    )
    said = run("ops", "--json")
    assert '"text": "王芳 ölt 🧪"' in said
    assert r'"odd": "\ud800 \u009b \u2028 \u0000"' in said
    (run.folder / "script").write_text("was ist mit 王芳?\n", encoding="utf-8")
    assert "was ist mit 王芳?" in run("shell", "--script", "script", "--json")


@pytest.mark.parametrize("mode", ["mask", "drop"])
def test_a_secret_that_is_recorded_again_is_no_other_content(run: Any, mode: str) -> None:
    """A repeated record whose secret was redacted is told as recorded, not as refused, in either mode."""
    run("init")
    (run.folder / ".obra" / "config.yaml").write_text(f"redaction: {{mode: {mode}}}\n", encoding="utf-8")
    for _ in range(2):
        assert run("record", "note", '{"password": "kX9v!qT27zLm4"}', "--key", "k") == "op1\n"
        assert run.errors == ""


def test_record_hands_on_every_option(run: Any) -> None:
    """`record` passes every option on, and the same key twice records once."""
    options = ("--tokens", "7", "--agent", "bob", "--critical", "--timestamp", "2025-01-15T10:00:00Z", "--key", "k")
    first = run.json("record", "note", '"a"', *options)
    expected = {"id": 1, "type": "note", "data": "a", "timestamp": "2025-01-15T10:00:00+00:00", "tokens": 7,
                "agent": "bob", "critical": True, "idempotency_key": "k"}  # fmt: skip
    assert {name: first[name] for name in expected} == expected
    run("record", "note", '"a"', "--key", "k")
    assert run.errors == ""
    assert run("record", "note", '"other"', "--key", "k") == "op1\n"
    assert run.errors == "orchestra-mem: Not recorded: op1 has the key 'k'. Record anything else with another key.\n"
    assert run("record", "decision", '"b"', "--no-critical") == "op2\n"
    assert [op["critical"] for op in run.json("ops")] == [True, False]


def test_import_jsonl_tells_bad_lines_and_records_the_others(run: Any) -> None:
    """A bad line is reported by place with exit code 1, the others are recorded, and a corrected line the next time."""
    file = run.folder / "log.jsonl"
    file.write_text('{"a": 1}\nnot json\n{"type": "x\\ny"}\n{"b": 2}\n')
    done = run.json("import", "jsonl", file, exit_code=1)
    assert (done["recorded"], done["known"]) == (2, 0)
    assert [fault["place"] for fault in done["faults"]] == [f"{file}:2", f"{file}:3"]
    assert f"skipped: {file}:2: is not JSON" in run.errors
    assert [op["data"] for op in run.json("ops")] == [{"a": 1}, {"b": 2}]
    file.write_text('{"a": 1}\n{"c": 3}\n{"type": "x"}\n{"b": 2}\n')
    done = run.json("import", "jsonl", file, "--type", "line")
    assert (done["recorded"], done["known"], done["faults"]) == (2, 2, [])
    assert [op["type"] for op in run.json("ops")] == ["imported", "imported", "line", "x"]


def test_what_ops_prints_can_be_imported_elsewhere(filled: Any, tmp_path: Path) -> None:
    """The JSON that `ops` prints can be imported into another memory with equal content."""
    operations = filled.json("ops", "--limit", "0")
    file = tmp_path / "moved.jsonl"
    file.write_text("\n".join(map(json.dumps, operations)))
    other = tmp_path / "other"
    other.mkdir()
    assert filled("import", "jsonl", file, "-C", other) == f"recorded 60 operations from {file}\n"
    moved = filled.json("ops", "--limit", "0", "-C", other)
    assert [{**op, "session": ""} for op in moved] == [{**op, "session": ""} for op in operations]


def test_flush_ends_the_session_and_refresh_compacts(filled: Any) -> None:
    """`refresh` and `flush` report what they did, or that there was nothing to do."""
    done = filled.json("refresh")
    assert done["used_tokens"] > 0
    assert "spilled" in filled("refresh")
    (session,) = filled.json("sessions")
    archive = Path(filled("flush").strip())
    assert session["id"][:8] in archive.read_text()
    assert filled.json("sessions")[0]["archive"] == f"archive/{archive.name}"
    assert session["id"][:8] in filled("sessions")
    assert filled.json("flush") == {"archive": None}
    assert filled("flush") == "there is no session to end\n"
    assert filled.json("refresh") == {"session": False, "documents": []}
    assert filled("refresh") == "there is no session; no document changed\n"


def test_refresh_names_the_documents_that_it_wrote(run: Any) -> None:
    """`refresh` names the documents that it wrote, also without a session when only work has changed."""
    with open_memory(run.folder) as memory:
        memory.state.create(WorkKind.EPIC, "User auth")
    assert run("refresh") == "there is no session; wrote project_state.md, work_plan.md\n"
    assert run("refresh") == "there is no session; no document changed\n"
    with open_memory(run.folder) as memory:
        memory.record_operation("decision", {"text": "We decided to bake rye bread."})
    done = run.json("refresh")
    assert (done["session"], "decision_log.md" in done["documents"]) == (True, True)


# Asking


def test_context_prints_the_rendered_context_and_nothing_else(filled: Any) -> None:
    """`context` prints the library's context byte for byte, or its explanation, or its chat messages."""
    with open_memory(filled.folder) as memory:
        expected = memory.get_orchestrator_context("prompt")
        small = memory.get_orchestrator_context("plan", 300)
    assert filled("context") == expected.render()
    assert filled("context", "--max-tokens", "300", "--for", "plan") == small.render()
    assert filled("context", "--explain") == expected.explain()
    assert json.loads(filled("context", "--messages")) == expected.as_messages()
    record = filled.json("context", "--max-tokens", "300", "--for", "plan")
    assert (record["text"], record["tokens"], record["budget_tokens"]) == (small.render(), small.tokens, 300)
    assert record["tokens"] <= 300
    assert filled("context", "--max-tokens", "0") == ""
    assert filled.errors == "nothing is recorded, or nothing fits 0 tokens; --explain shows which\n"


def test_status_tells_window_tiers_documents_and_problems(filled: Any) -> None:
    """`status` shows window, tiers, documents and problems as JSON, and as text within 80 columns."""
    record = filled.json("status")
    assert record["thresholds"] == {"warning": 0.7, "refresh": 0.8, "critical": 0.95}
    assert record["context_window"]["max_tokens"] == 2048
    assert record["session_memory"]["operation_count"] == 60
    assert Path(record["documents"]["session"]).exists()
    shown = filled("status")
    for words in ("of 2,048 tokens", "refresh at 80%", ".obra/memory/work_plan.md", "60 operations", "no problems"):
        assert words in shown
    # The first line has a path that may be longer than 80 columns.
    assert max(map(len, shown.splitlines()[1:])) <= 80


def test_status_tells_a_model_that_cannot_be_had(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`status` and `doctor` report a missing model file before anything needs it; no model set is no problem."""
    pytest.importorskip("llama_cpp", reason="needs the extra llama")
    run("init")
    assert run.json("status")["problems"] == []
    gone = run.folder / "gone.gguf"
    monkeypatch.setenv("ORCHESTRA_MEM__LLM__MODEL_PATH", str(gone))
    monkeypatch.setenv("ORCHESTRA_MEM__TOKENS__COUNTER", "estimate")
    (problem,) = run.json("status")["problems"]
    told = f"{gone} does not exist; set llm.model_path or search.model_path to a GGUF model file"
    assert problem["subject"] == "language model"
    assert problem["problem"].startswith(f"{told}; until then summaries are made by extraction")
    assert _findings(run)["model"][:2] == ("fault", told)
    assert f"! language model: {gone} does not exist" in run("status")


@pytest.mark.parametrize(("filters", "expected"), cases("ops_filters_by_each_condition"))
def test_ops_filters_by_each_condition(filled: Any, filters: list[str], expected: list[int]) -> None:
    """`ops` filters by each condition and lists the newest operations within the limit, oldest first."""
    assert [op["id"] - 1 for op in filled.json("ops", *filters)] == expected


def test_ops_shows_a_table_that_fits(filled: Any) -> None:
    """`ops` prints a line per operation within 80 columns, clips long data, and says how to see more."""
    lines = filled("ops", "--limit", "5").splitlines()
    assert len(lines) == 2 + 5
    assert max(map(len, lines)) <= 80
    assert lines[2].split()[:5] == ["56", "2025-01-03", "07:00:00", "50", "ann"]
    assert lines[2].endswith("…")
    assert filled.errors == "showing the newest 5; --limit 0 shows all\n"
    assert filled("ops", "--type", "none") == "no operations\n"


def test_text_of_operations_is_never_read_as_markup(run: Any) -> None:
    """Recorded text is printed without interpreting markup and with control characters escaped."""
    run("record", "note", json.dumps({"text": "[bold]x[/bold] [/no] \x1b[31mr\x07"}))
    shown = run("ops")
    assert r"[bold]x[/bold] [/no] \x1b[31mr\x07" in shown
    assert "\x1b" not in shown + run("expand", "op1") + run("context") + run("shell", stdin="what did we just do?")


def test_expand_shows_any_script_as_it_was_written(run: Any) -> None:
    """`expand` prints data as JSON that is readable in all scripts and equal to what was recorded."""
    data = {"text": "Jörg: 我们决定用电子票。", "raw": "\x9b\x7f\ud800\u2028<!-- pin -->"}
    run("record", "note", json.dumps(data))
    line = run("expand", "op1").splitlines()[-1]
    assert "Jörg: 我们决定用电子票。" in line
    assert json.loads(line) == data


def test_losses_and_expand_lead_back_to_the_originals(filled: Any) -> None:
    """`losses` lists summaries, and `expand` prints the operations that a summary covers as recorded."""
    losses = filled.json("losses", "--limit", "0")
    assert losses
    assert [loss["id"] for loss in filled.json("losses", "--limit", "2")] == [loss["id"] for loss in losses[-2:]]
    (session,) = filled.json("sessions")
    assert filled.json("losses", "--session", session["id"][:6], "--limit", "0") == losses
    first = losses[0]
    expansion = filled.json("expand", f"S{first['id']}")
    covered = range(first["operations"][0], first["operations"][1] + 1)
    assert [op["id"] for op in expansion["operations"]] == list(covered)
    recorded = {op["id"]: op for op in filled.json("ops", "--limit", "0")}
    assert expansion["operations"] == [recorded[number] for number in covered]
    shown = filled("expand", f"s{first['id']}")
    assert f"S{first['id']}, level 1:" in shown
    assert json.dumps(recorded[covered[0]]["data"], separators=(",", ":")) in shown
    table = filled("losses")
    assert f"S{losses[-1]['id']}" in table
    assert max(map(len, table.splitlines())) <= 80


# Documents


def test_facts_tells_the_day_of_each(run: Any) -> None:
    """`facts` prints the day on which each fact was recorded."""
    run("record", "decision", "--text", "We deploy on Mondays.", "--timestamp", "2026-03-01T12:00:00Z")
    row = run("facts").splitlines()[2]
    assert re.split(r"\s{2,}", row.strip()) == ["K1", "decision", "op1", "2026-03-01", "We deploy on Mondays."]


def test_history_diff_and_restore_go_back_to_an_earlier_text(run: Any) -> None:
    """A person's edit is a version that `history` lists, `diff` compares and `restore` brings back word for word.

    What has been recorded since that version stays.
    """
    run("init")
    assert run("history", "work_plan") == "no earlier versions\n"
    plan = run.folder / ".obra" / "memory" / "work_plan.md"
    original = plan.read_text()
    edited = original.replace("## Backlog", "## Backlog\n\n- paint the oven")
    plan.write_text(edited)
    run("record", "note", '{"text": "TODO: buy flour."}')
    run("flush")
    (version,) = [each for each in run.json("history", "work_plan.md") if each["author"] == "person"]
    assert "person" in run("history", "work_plan")
    assert f"(version {version['sequence']})" in run("diff", "work_plan", version["sequence"])
    assert run.json("diff", "work_plan", version["sequence"])["diff"] == run("diff", "work_plan", version["sequence"])
    assert "the previous text is kept as version" in run("restore", "work_plan", version["sequence"])
    restored, was = {*timeless(plan.read_text())}, {*timeless(edited)}
    assert was < restored
    assert restored - was == {"- TODO: buy flour. (K2)"}
    assert "- paint the oven\n" not in re.sub(r"(?m)^ .*\n", "", run("diff", "work_plan", version["sequence"]))
    assert "no text was replaced" in run("restore", "work_plan", version["sequence"])
    assert run.json("restore", "work_plan", version["sequence"])["restored"] == version["sequence"]


# Maintenance


def test_config_show_tells_each_value_and_where_it_comes_from(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`config show` prints each value with its origin: default, file and line, or environment variable."""
    assert run.json("config", "show")["storage.durability"] == {"value": "normal", "origin": "default"}
    assert run("config", "check") == "valid: the defaults and the environment\n"
    assert list(run.folder.iterdir()) == []
    run("init")
    file = run.folder / ".obra" / "config.yaml"
    file.write_text("storage:\n  durability: full\n")
    monkeypatch.setenv("ORCHESTRA_MEM__TOKENS__COUNTER", "estimate")
    shown = run.json("config", "show")
    assert shown["storage.durability"]["value"] == "full"
    assert f"{file}:2" in shown["storage.durability"]["origin"]
    assert "ORCHESTRA_MEM__TOKENS__COUNTER" in shown["tokens.counter"]["origin"]
    assert "storage.durability" in run("config", "show")
    assert run.json("config", "check") == {"faults": []}
    assert run("config", "check") == f"valid: {file} and the environment\n"
    defaults = (TEMPLATE.parent / "config" / "default_config.yaml").read_text()
    assert run("config", "show", "--defaults") == defaults
    assert run.json("config", "show", "--defaults")["storage.durability"]["origin"] == "default"


def _findings(run: Any, exit_code: int = 1) -> dict[str, tuple[str, str, str]]:
    found = run.json("doctor", exit_code=exit_code)["findings"]
    return {each["part"]: (each["health"], each["words"], each["advice"]) for each in reversed(found)}


def test_doctor_finds_a_healthy_memory_healthy(filled: Any) -> None:
    """`doctor` finds no fault in a sound memory; a token counter that is not exact is a note."""
    found = _findings(filled, exit_code=0)
    assert found.pop("token counter")[0] == "note"
    parts = "configuration folder disk lock database documents versions sessions search model"
    assert {part: health for part, (health, _, _) in found.items()} == dict.fromkeys(parts.split(), "sound")
    shown = filled("doctor")
    assert shown.splitlines()[-1] == "no faults"
    assert max(map(len, shown.splitlines())) <= 80


def test_doctor_names_a_wrong_configuration_and_looks_at_the_rest(run: Any) -> None:
    """With a wrong configuration `doctor` names its line, checks the folder, and skips database and documents."""
    run("init")
    (run.folder / ".obra" / "obra.db").unlink()
    (run.folder / ".obra" / "config.yaml").write_text("speed: 9\n")
    found = _findings(run)
    assert found["configuration"][0] == "fault"
    assert "config.yaml:1: speed" in found["configuration"][1]
    assert found["folder"][0] == "sound"
    assert found["database"][:2] == ("note", "not checked: first fix the configuration")
    assert "documents" not in found


def test_doctor_names_a_damaged_database(filled: Any) -> None:
    """`doctor` reports a database that is damaged, no database or missing, and what to do about it."""
    database = filled.folder / ".obra" / "obra.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    sound = database.read_bytes()
    page = 4096
    database.write_bytes(sound[: 3 * page] + b"\xee" * (len(sound) - 3 * page))
    assert _findings(filled)["database"][0] == "fault"
    database.write_bytes(b"nothing like it" * 1000)
    health, words, advice = _findings(filled)["database"]
    assert (health, advice) == ("fault", "do what it says, then run `orchestra-mem doctor` again")
    assert f"{database}: file is not a database" in words
    assert "fault" in filled("doctor", exit_code=1)
    database.unlink()
    health, words, advice = _findings(filled)["database"]
    assert health == "fault"
    assert words.startswith(f"{database} is missing, but there are documents of a memory: project_state.md, ")
    assert advice.startswith("restore a copy of it before you record anything. ")
    assert not database.exists()


def test_doctor_names_damaged_and_missing_documents(filled: Any) -> None:
    """`doctor` reports a damaged document by line, a folder in a document's place, and a missing archive."""
    filled("flush")
    memory = filled.folder / ".obra" / "memory"
    (memory / "work_plan.md").write_text("---\nformat: 1\nno field at all\n---\n\n# Work Plan\n")
    (memory / "decision_log.md").unlink()
    (memory / "decision_log.md").mkdir()
    for archive in (filled.folder / ".obra" / "sessions" / "archive").iterdir():
        archive.unlink()
    findings = filled.json("doctor", exit_code=1)["findings"]
    words = [found["words"] for found in findings if found["health"] == "fault"]
    assert len(words) == 2
    assert any(f"{memory / 'work_plan.md'}:3: 'no field at all' is no" in each for each in words)
    assert any(f"{memory / 'decision_log.md'} is a folder" in each for each in words)
    (gone,) = [found for found in findings if found["part"] == "sessions" and found["health"] == "note"]
    assert gone["words"].endswith(" is missing")
    session = gone["advice"].split("--session ")[1].rstrip("`")
    assert len(filled.json("ops", "--session", session, "--limit", "0")) == 60


def test_doctor_names_a_lock_that_is_held(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` reports a lock that is held, and by whom, instead of waiting for it."""
    run("init")
    monkeypatch.setattr("orchestra_mem.doctor.memory._LOCK_WAIT_S", 0.05)
    monkeypatch.setenv("ORCHESTRA_MEM__STORAGE__LOCK_TIMEOUT_S", "0.05")
    with FileLock(str(run.folder / ".obra" / "obra.lock")):
        found = _findings(run)
    assert found["lock"][0] == "fault"
    assert found["lock"][1].startswith("another part of this process has locked")
    assert found["versions"][0] == "sound"  # the memory can be opened meanwhile


def test_doctor_names_a_database_that_is_held(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` reports a write transaction that stays open, and whose it is."""
    run("init")
    monkeypatch.setattr("orchestra_mem.doctor.memory._LOCK_WAIT_S", 0.05)
    other = sqlite3.connect(run.folder / ".obra" / "obra.db", isolation_level=None)
    with closing(other):
        other.execute("BEGIN IMMEDIATE")
        health, words, advice = _findings(run)["database"]
        assert health == "fault"
        assert words.startswith("another part of this process has blocked writes to")
        assert advice == "a write takes milliseconds: end that process if it hangs"
    assert _findings(run, exit_code=0)["database"][0] == "sound"


def test_doctor_asks_the_embedder(run: Any) -> None:
    """`doctor` calls a configured embedder, and reports one that does not answer."""
    run("init")
    settings = "search: {embedder: http, model: any, base_url: http://127.0.0.1:9}\n"
    (run.folder / ".obra" / "config.yaml").write_text(settings)
    health, words, _ = _findings(run)["embedder"]
    assert health == "fault"
    assert "http://127.0.0.1:9 cannot be reached" in words


@pytest.mark.parametrize(("free_bytes", "health"), [(10**7, "fault"), (10**8, "note"), (10**10, "sound")])
def test_doctor_tells_how_much_room_there_is(
    run: Any, monkeypatch: pytest.MonkeyPatch, free_bytes: int, health: str
) -> None:
    """A full disk is a fault in `doctor`, and an almost full one a note."""
    run("init")
    usage = shutil.disk_usage(run.folder)._replace(free=free_bytes)
    monkeypatch.setattr("orchestra_mem.doctor.memory.shutil.disk_usage", lambda _: usage)
    assert _findings(run, exit_code=int(health == "fault"))["disk"][0] == health


SECRET = "ghp_" + "R2x9mQ7vLk4TzW8sYb3NcD6fHj1PaE0uGi5B"


def test_secrets_are_told_by_place_and_taken_out_when_agreed_to(run: Any) -> None:
    """`redact scan` lists secrets by place and kind; `redact apply` removes them after a yes if nobody has it open."""
    with open_memory(run.folder, config={"redaction": {"mode": "off"}}) as memory:
        memory.record_operation("note", {"text": f"with {SECRET}"})
        run("redact", "apply", exit_code=4, stdin="yes\n")
        assert f"another program has the memory in {run.folder / '.obra'} open" in run.errors
    assert run("redact", "scan", exit_code=1) == "operations 1, data: github-token (1)\n"
    (found,) = run.json("redact", "scan", exit_code=1)["secrets"]
    assert found == {"place": "operations 1, data", "kinds": {"github-token": 1}}
    assert run("redact", "apply", exit_code=1, stdin="no\n") == "nothing was rewritten\n"
    assert run("redact", "apply", stdin="yes\n") == "rewritten: 1 text in the database and 0 files\n"
    assert run("redact", "scan") == "no secrets found\n"
    assert run("redact", "apply", "--yes") == "rewritten: 0 texts in the database and 0 files\n"


# Times


def test_facts_are_listed_from_a_time_on(run: Any) -> None:
    """`facts --since` lists the facts of operations from that time on, also with a kind, and for an agent."""
    old, now = "2025-01-15T12:00:00Z", datetime.now(UTC)
    run("record", "rule", "--text", "Never bake on Sundays.", "--timestamp", old, "--agent", "ann")
    run("record", "rule", "--text", "Never fry on Mondays.", "--agent", "ann")
    for since, texts in (("2025", 2), ("today", 1), ("2h", 1), ("9999-01-01", 0)):
        assert len(run.json("facts", "--since", since)) == texts, since
    found = run.json("facts", "--kind", "constraint", "--since", "1h")
    assert [fact["text"] for fact in found] == ["Never fry on Mondays."]
    run("facts", "--since", "soon", exit_code=2)
    assert "'soon' is not a time" in run.errors
    config = {"catalog": {"isolation": "strict"}}
    with open_memory(run.folder, config=config) as memory:
        views = {agent: memory.as_agent(agent) for agent in ("ann", "ben")}
        assert [len(views["ann"].facts(since=since)) for since in (None, now - timedelta(hours=1))] == [2, 1]
        assert views["ben"].facts(since=now - timedelta(hours=1)) == []


def test_times_are_iso_8601_spans_back_or_periods() -> None:
    """A time is ISO 8601, local if it has no zone, a span back from now, or a period in any language of the shell."""
    now = datetime(2025, 1, 15, 12, tzinfo=UTC)
    spans = {"30s": timedelta(seconds=30), "5m": timedelta(minutes=5), "2h": timedelta(hours=2),
             "7d": timedelta(days=7), "1w": timedelta(weeks=1)}  # fmt: skip
    for given, span in spans.items():
        assert filter_time(given, now) == now - span
    assert filter_time("2025-01-15T14:00:00+02:00") == filter_time("2025-01-15t12:00:00z") == now
    assert filter_time("2025-01-15T12:00:00") == datetime(2025, 1, 15, 12).astimezone(UTC)
    assert filter_time("2025-01-15T12:00", now, UTC) == now
    week = ("last Monday", "Monday", "since Monday", "letzten Montag", "lundi", "2025-01-13", "this week")
    assert {filter_time(given, now, UTC) for given in week} == {datetime(2025, 1, 13, tzinfo=UTC)}
    new_york = ZoneInfo("America/New_York")
    assert filter_time("Monday", now, new_york) == datetime(2025, 1, 13, tzinfo=new_york)
    for given in ("noon", "", "999999w", "31 June", "Mondays", "until Monday", "before May", "2025-13-01"):
        with pytest.raises(InvalidTimeError, match="is not a time; use ISO 8601 such as 2025-01-31T14:00"):
            filter_time(given, now)

"""What all commands have in common: options, help, exit codes, stdout and stderr, interruption and failing output."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer.main

from orchestra_mem.faces.cli import app
from orchestra_mem.faces.command import EPILOG
from tests.builders import cases
from tests.faces.conftest import start


def _commands(group: Any, prefix: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found |= _commands(command, (*prefix, name))
        else:
            found[(*prefix, name)] = command
    return found


COMMANDS = _commands(typer.main.get_command(app))
# Each command that only reads, with its arguments: without a memory none may create one.
READING = [
    ("context",), ("status",), ("ops",), ("sessions",), ("flush",), ("refresh",), ("expand", "S1"), ("losses",),
    ("facts",), ("search", "x"), ("index",),
    ("history", "project_state"), ("diff", "project_state"), ("restore", "project_state", "1"), ("doctor",),
    ("edit", "project_state"), ("blame", "work_plan"), ("check",),
    ("conflicts",), ("accept", "abcdef"), ("reject", "abcdef"), ("watch",), ("work",), ("work", "show", "1"),
    ("work", "set", "1", "done"), ("catalog", "list"), ("catalog", "show", "M1"), ("audit",), ("audit", "injections"),
]  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_every_command_has_the_common_options_and_an_example(name: tuple[str, ...], run: Any) -> None:
    """Every command has `--json`, `--project`, `-C`, `--debug`, an example and the exit codes in its help."""
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert {"--json", "--project", "-C", "--debug"} <= options
    shown = run(*name, "--help")
    assert f"Example: orchestra-mem {' '.join(name)}" in " ".join(shown.split())
    assert EPILOG in " ".join(shown.split())
    assert "range>" not in shown.partition("Options:")[2], "each option says in a word what it takes"


def test_the_help_tells_the_exit_codes_and_all_commands(run: Any) -> None:
    """The help has the exit codes and each command's first sentence uncut; `--version` prints name and version."""
    shown = " ".join(run("--help").split())
    assert EPILOG in shown
    assert run("--version").startswith("orchestra-mem ")
    assert "Look after: check Check documents and search index: each fault with file, line and current effect." in shown


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_without_a_memory_nothing_is_made(command: tuple[str, ...], run: Any) -> None:
    """Without a memory a reading command says where it looked and what to do, exits with 4 and creates nothing."""
    assert run(*command, exit_code=4) == ""
    told = f"orchestra-mem: no memory in {run.folder}; run `orchestra-mem init` there, or name a project with -C\n"
    assert run.errors == told
    assert list(run.folder.iterdir()) == []


@pytest.mark.parametrize(("arguments", "code", "kind"), cases("errors_are_words_on_stderr_and_a_document_with_json"))
def test_errors_are_words_on_stderr_and_a_document_with_json(
    run: Any, arguments: list[str], code: int, kind: str
) -> None:
    """An error is a message on stderr without traceback and, with `--json`, the same message as JSON on stdout."""
    run("init")
    assert run(*arguments, exit_code=code) == ""
    words = run.errors.removeprefix("orchestra-mem: ").removesuffix("\n")
    assert words
    assert "Traceback" not in run.errors
    assert run.json(*arguments, exit_code=code) == {"error": {"kind": kind, "message": words, "exit_code": code}}


@pytest.mark.parametrize(("arguments", "told"), cases("wrong_usage_exits_with_2_and_does_nothing"))
def test_wrong_usage_exits_with_2_and_does_nothing(run: Any, arguments: list[str], told: str) -> None:
    """Wrong usage, also a wrong value, exits with 2 in plain words, which `--json` prints too, and creates nothing."""
    if arguments:  # the program itself has no `--json`
        error = run.json(*arguments, exit_code=2)["error"]
        assert (error["kind"], error["exit_code"]) == ("UsageError", 2)
        assert error["message"] in run.errors
    assert run(*arguments, exit_code=2) == ""
    assert told in run.errors
    assert "Value error" not in run.errors
    assert "Input should" not in run.errors
    assert list(run.folder.iterdir()) == []


def test_a_wrong_configuration_exits_with_3_and_names_all_faults(run: Any) -> None:
    """A wrong configuration exits with 3 and names every fault with file and line."""
    run("init")
    config = run.folder / ".obra" / "config.yaml"
    config.write_text("storage:\n  durability: sturdy\nspeed: 9\n")
    run("record", "x", "1", exit_code=3)
    assert f"{config}:2: storage.durability" in run.errors
    assert f"{config}:3: speed" in run.errors
    faults = run.json("config", "check", exit_code=3)["faults"]
    assert [(fault["line"], fault["key"]) for fault in faults] == [(2, "storage.durability"), (3, "speed")]


@pytest.mark.parametrize("command", [("record", "x", "1"), ("work", "add", "epic", "x"), ("status",), ("context",)])
def test_a_file_in_the_place_of_the_memory_exits_with_4(run: Any, command: tuple[str, ...]) -> None:
    """A file in place of the memory's folder makes a command exit with 4 and an explanation."""
    home = run.folder / ".obra"
    home.touch()
    assert run(*command, exit_code=4) == ""
    told = f"{home} is not a folder: move it away, or name another project with -C"
    assert run.errors == f"orchestra-mem: {told}\n"


def test_debug_shows_where_an_error_came_from(run: Any) -> None:
    """`--debug` prints the traceback of an error."""
    run("init")
    with start("expand", "S99", "--debug", text=False, cwd=run.folder) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"Traceback" in errors
    assert b"NotFoundError: there is no summary S99" in errors


def test_the_nearest_memory_upwards_is_meant(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command uses the nearest memory upwards; `-C` names exactly one folder, and `init` uses the current one."""
    run("init")
    deep = run.folder / "src" / "deep"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    run("record", "note", "--text", "from below")
    assert run.json("ops", "-C", run.folder)[0]["data"] == {"text": "from below"}
    run("status", "-C", deep, exit_code=4)
    assert not (deep / ".obra").exists()
    run("init")
    assert run.json("status")["project"] == str(deep)


def test_no_colours_reach_a_pipe(filled: Any) -> None:
    """Output to a pipe contains no escape sequences, whatever TERM is."""
    commands = ("status", "doctor", "ops")
    running = [start(each, text=False, cwd=filled.folder, env={"TERM": "xterm-256color"}) for each in commands]
    for process in running:
        output, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert b"\x1b" not in output + errors


@pytest.mark.parametrize("columns", ["", "0", "wide", None])
def test_what_a_pipe_reads_is_whole(run: Any, monkeypatch: pytest.MonkeyPatch, columns: str | None) -> None:
    """A pipe gets each row, text and name on one line without padding; a terminal's rows are cut to fit.

    Some programs set a `COLUMNS` that names no width.
    """
    said, agent = f"We decided to keep the ledger in {'very ' * 18}small files.", "reviewer-of-the-frontend-team"
    run("record", "decision", "--text", said)
    run("record", "note", "--text", "short", "--agent", agent)
    assert said not in run("ops")
    assert agent not in run("ops")
    monkeypatch.delenv("COLUMNS") if columns is None else monkeypatch.setenv("COLUMNS", columns)
    assert agent in run("ops")
    for command in (("ops",), ("facts",), ("search", "ledger"), ("status",)):
        shown = run(*command)
        assert (said in shown) is (command != ("status",))
        assert max(map(len, shown.splitlines())) < len(said) + 80


def test_what_an_encoding_lacks_is_replaced(run: Any) -> None:
    """Characters that the output encoding lacks are replaced, and the rest is printed."""
    run("record", "note", "--text", "rye → 日本 bread")
    for command, told in ((("ops",), "rye"), (("--help",), "Usage")):
        with start(*command, text=False, cwd=run.folder, env={"PYTHONIOENCODING": "ascii"}) as process:
            output, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, b"")
        assert told in output.decode("ascii")


def test_a_closed_stdin_is_wrong_usage(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading from a closed stdin, as by `<&-`, exits with 2 and records nothing."""
    monkeypatch.setattr("orchestra_mem.faces.inputs.sys", SimpleNamespace(stdin=None))
    run("record", "note", "-", exit_code=2)
    assert "stdin is closed" in run.errors
    assert list(run.folder.iterdir()) == []


def test_a_reader_that_has_gone_is_no_failure(filled: Any) -> None:
    """A closed output pipe, as in `orchestra-mem ops | head -1`, ends the program silently with 0."""
    with start("ops", "--limit", "0", "--json", text=False, cwd=filled.folder) as process:
        assert process.stdout
        process.stdout.close()
        assert process.stderr
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
@pytest.mark.parametrize("arguments", [("--help",), ("sessions",)])
def test_an_answer_that_cannot_be_written_exits_with_4(run: Any, arguments: tuple[str, ...]) -> None:
    """Output that cannot be written, as to a full disk, exits with 4 and a message."""
    run("init")
    with open("/dev/full", "w") as full, start(*arguments, cwd=run.folder, stdout=full) as process:
        told = process.communicate(timeout=60)[1]
    assert process.returncode == 4
    assert told.startswith("orchestra-mem: the ")
    assert told.endswith("could not be written: [Errno 28] No space left on device\n")


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_an_error_of_the_system_before_the_answer_is_told_as_such(run: Any, debug: tuple[str, ...]) -> None:
    """An error of the operating system exits with 4 and a message, or with 1 and a traceback under `--debug`."""
    with start("status", "-C", "x" * 300, *debug, cwd=run.folder) as process:
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (1 if debug else 4, "")
    assert errors.splitlines()[-1].endswith(f"File name too long: '{'x' * 300}'")
    assert ("Traceback" in errors) == bool(debug)
    assert run.json("status", "-C", "x" * 300, exit_code=4)["error"]["kind"] == "OSError"


def test_the_project_may_be_named_before_the_command(run: Any, tmp_path: Path) -> None:
    """The project can be named before any command or group, and an option after the command takes precedence."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    run("-C", here, "init")
    run("--project", there, "record", "note", '"there"')
    assert not (run.folder / ".obra").exists()
    assert [op["data"] for op in run.json("-C", there, "ops")] == ["there"]
    assert run.json("-C", there, "ops", "-C", here) == []
    (here / "one.jsonl").write_text('{"text": "one"}')
    run("-C", here, "import", "jsonl", here / "one.jsonl")
    assert [op["data"] for op in run.json("ops", "-C", here)] == [{"text": "one"}]
    assert run("-C", here, "config", "check").startswith(f"valid: {here}")
    run("work", "-C", here, "add", "epic", "Bake")
    shown = run("work", "-C", here, "show", "1")
    assert shown == run("-C", here, "work", "show", "1") == run("work", "show", "1", "-C", here)
    run("-C", here / "nowhere", "status", exit_code=2)
    assert "is not a folder" in run.errors

"""Fixtures that run the command line in this process, each in a separate folder."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from orchestra_mem.faces.cli import app
from tests import processes

CHECKOUT = processes.CHECKOUT
# Without the cache the runner rebuilds all commands for each call, which takes longer than many of the calls.
pytest.MonkeyPatch().setattr("typer.testing._get_command", cache(get_command))


def start(*arguments: str | Path, cwd: Path, text: bool = True, **options: Any) -> subprocess.Popen[Any]:
    """Run the program in a separate process, with an empty stdin unless one is given."""
    return processes.start("-m", "orchestra_mem", *arguments, cwd=cwd, text=text, **options)


class Program:
    """Runs commands in a folder and keeps their stdout and stderr apart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.errors = ""
        self._runner = CliRunner()

    def __call__(self, *arguments: str | Path, exit_code: int = 0, stdin: str | bytes | None = None) -> str:
        """Run a command, check its exit code, and return its stdout."""
        done = self._runner.invoke(app, [str(each) for each in arguments], input=stdin)
        self.errors = done.stderr
        assert done.exit_code == exit_code, f"{arguments}: {done.exit_code}\n{done.output}\n{done.exception!r}"
        return done.stdout

    def json(self, *arguments: str | Path, exit_code: int = 0, stdin: str | None = None) -> Any:
        """Run a command with `--json` and parse its output."""
        return json.loads(self(*arguments, "--json", exit_code=exit_code, stdin=stdin))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program in an empty folder, in a terminal of 80 columns without colours."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    return Program(folder)


MadeBy = Callable[[Callable[[Program], None]], Program]


@pytest.fixture
def made_by(run: Program, tmp_path_factory: pytest.TempPathFactory) -> MadeBy:
    """Have commands make the project; they run once, and later tests get a copy of the result."""

    def made(make: Callable[[Program], None]) -> Program:
        kept = tmp_path_factory.getbasetemp() / "made" / f"{make.__module__}.{make.__name__}"
        if kept.exists():
            shutil.copytree(kept, run.folder, dirs_exist_ok=True)
        else:
            make(run)
            shutil.copytree(run.folder, kept)
        return run

    return made


def _fill(run: Program) -> None:
    run("init")
    config = "orchestrator:\n  context_window:\n    max_tokens: 2048\ncompaction:\n  verbatim_window_s: 0\n"
    (run.folder / ".obra" / "config.yaml").write_text(config + "  verbatim_floor_tokens: 0\n  segment_tokens: 300\n")
    lines = [
        json.dumps({"type": "note", "agent": "ann" if number % 2 else "bob", "tokens": 50,
                    "timestamp": f"2025-01-{1 + number // 24:02}T{number % 24:02}:00:00Z",
                    "text": f"Oven {number} was heated to {180 + number} degrees; loaf-{number} came out dark."})
        for number in range(60)
    ]  # fmt: skip
    (run.folder / "notes.jsonl").write_text("\n".join(lines))
    run("import", "jsonl", "notes.jsonl")


@pytest.fixture
def filled(made_by: MadeBy) -> Program:
    """The program in a project with a small window and so many operations that it has been compacted."""
    return made_by(_fill)

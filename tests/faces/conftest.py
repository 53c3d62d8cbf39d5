"""The command line, run in this process, each time in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestra_mem.faces.cli import app

CHECKOUT = Path(__file__).parents[2]


def start(*arguments: str | Path, cwd: Path, text: bool = True, **options: Any) -> subprocess.Popen[Any]:
    """Run the program in a process of its own, without anything to read unless it is given."""
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"} | options.pop("env", {})
    return subprocess.Popen(
        [sys.executable, "-m", "orchestra_mem", *map(str, arguments)], cwd=cwd, env=environment, text=text,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip


class Program:
    """Runs commands in a folder, and keeps what they print apart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.errors = ""
        self._runner = CliRunner()

    def __call__(self, *arguments: str | Path, exit_code: int = 0, stdin: str | bytes | None = None) -> str:
        """Run a command, expect an exit code, give what went to stdout."""
        done = self._runner.invoke(app, [str(each) for each in arguments], input=stdin)
        self.errors = done.stderr
        assert done.exit_code == exit_code, f"{arguments}: {done.exit_code}\n{done.output}\n{done.exception!r}"
        return done.stdout

    def json(self, *arguments: str | Path, exit_code: int = 0, stdin: str | None = None) -> Any:
        """Run a command with `--json`, and read what it prints."""
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


@pytest.fixture
def filled(run: Program) -> Program:
    """The program in a project with so much recorded for a small window that it has been compacted."""
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
    return run

"""`orchestra-mem shell` fed by files and pipes, as editors and other programs write them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faces.conftest import Program


def test_a_script_that_cannot_be_read_makes_no_memory(run: Program) -> None:
    """Neither a missing one nor a folder."""
    for script in ("missing.txt", "."):
        run("shell", "--script", script, exit_code=2)
        assert not (run.folder / ".obra").exists()


def test_a_script_may_come_from_any_editor(run: Program) -> None:
    """With a byte order mark, comments of all kinds, line ends of Windows; only line ends part lines."""
    lines = (
        "\ufeff# Setup\r\n#\r\n## Work\r\n  #comment\r\ncreate a task called Bake\x0cbread\u2028now\r\n\r\n#1 is done"
    )
    (run.folder / "script").write_bytes(lines.encode())
    replies = [json.loads(line) for line in run("shell", "--json", "--script", "script").splitlines()]
    assert [reply["outcome"] for reply in replies] == ["done", "done"]
    assert replies[1]["line"] == "#1 is done"


def test_a_script_that_ends_with_an_open_question_is_not_done(run: Program) -> None:
    """Nobody answers it, so what the last line asks for has not happened; the exit code says so."""
    (run.folder / "script").write_text("create a task called Bake\nundo\n")
    assert run("shell", "--script", "script", exit_code=1).endswith("(yes or no)\n")
    run("shell", "--script", "script", "--yes")


@pytest.mark.skipif(os.name != "posix", reason="pipes of bytes")
def test_bytes_that_are_no_text_end_no_session(tmp_path: Path) -> None:
    """For such a line nothing is done, and the next one is."""
    done = subprocess.run(
        [sys.executable, "-m", "orchestra_mem", "shell", "--json", "-C", str(tmp_path)],
        input=b"\xff\xfe thing\ncreate a task called Bake",
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        timeout=120,
        check=True,
    )
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert [reply["outcome"] == "done" for reply in replies] == [False, True]

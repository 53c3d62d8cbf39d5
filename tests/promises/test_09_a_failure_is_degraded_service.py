"""Promise 9: `status` and `doctor` say what is broken and how to fix it; everything else works."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestra_mem import open_memory
from orchestra_mem.faces.cli import app
from tests.faces.conftest import Program
from tests.memories import work


def _no_folder(home: Path) -> None:
    shutil.rmtree(home / "index", ignore_errors=True)
    (home / "index").write_text("no folder")


def _no_model(home: Path) -> None:
    (home / "config.yaml").write_text("llm:\n  model_path: models/gone.gguf\n")


def _no_server(home: Path) -> None:
    (home / "config.yaml").write_text("llm:\n  base_url: http://127.0.0.1:9\n")


def _damaged_document(home: Path) -> None:
    path = home / "memory" / "decision_log.md"
    path.write_text("---\nversion: [\n" + path.read_text(encoding="utf-8"), encoding="utf-8")


HARM: dict[str, tuple[Callable[[Path], None], str]] = {
    "the index is no folder": (_no_folder, "index"),
    "the model is gone": (_no_model, "gone.gguf"),
    "the server does not answer": (_no_server, "127.0.0.1:9"),
    "a document is damaged": (_damaged_document, "decision_log.md"),
}


@pytest.mark.parametrize("name", HARM)
def test_each_part_can_break_alone_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """One broken part leaves recording, contexts and (unless it is the index) search working; a command names it."""
    harm, named = HARM[name]
    with open_memory(tmp_path) as memory:
        work(memory, 20)
        memory.flush_session()
    harm(tmp_path / ".obra")
    monkeypatch.chdir(tmp_path)
    run = Program(tmp_path)
    run("record", "note", "--text", "Never deploy on Fridays.")
    assert "Traceback" not in run.errors
    assert "Never deploy on Fridays." in run("context")
    assert "Traceback" not in run.errors
    if name != "the index is no folder":
        assert "Fridays" in run("search", "deploy on Fridays")
    told = []
    for command in ("status", "doctor"):
        done = CliRunner().invoke(app, [command, "--json"])
        assert isinstance(json.loads(done.stdout), dict)
        assert isinstance(done.exception, SystemExit | None)
        assert "Traceback" not in done.stderr
        told.append(done.stdout)
    assert any(named in answer for answer in told), told

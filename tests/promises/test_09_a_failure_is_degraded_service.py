"""Promise 9: `status` and `doctor` say what is off and what to do; everything else works."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import open_memory
from tests.promises.conftest import work


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


def _run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "orchestra_mem", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "200"}
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("name", HARM)
def test_each_part_can_break_alone_and_is_told(tmp_path: Path, name: str) -> None:
    """Recording, contexts and words in search work; `status` and `doctor` name what is broken; no traceback."""
    harm, named = HARM[name]
    with open_memory(tmp_path) as memory:
        work(memory, 20)
        memory.flush_session()
    harm(tmp_path / ".obra")
    recorded = _run(tmp_path, "record", "note", "--text", "Never deploy on Fridays.")
    assert recorded.returncode == 0, recorded.stderr
    context = _run(tmp_path, "context")
    assert "Never deploy on Fridays." in context.stdout, context.stderr
    if name != "the index is no folder":
        assert "Fridays" in _run(tmp_path, "search", "deploy on Fridays").stdout
    told = [_run(tmp_path, "status", "--json"), _run(tmp_path, "doctor", "--json")]
    assert any(named in answer.stdout for answer in told), [answer.stdout for answer in told]
    for answer in [recorded, context, *told]:
        assert "Traceback" not in answer.stderr
    for answer in told:
        parsed: Any = json.loads(answer.stdout)
        assert isinstance(parsed, dict)

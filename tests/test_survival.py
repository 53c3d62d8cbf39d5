"""The checks of `benchmarks/crash.py` and `contention.py` find each planted fault and name it."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks._survival import NOTE, Violation, draft_for, examine
from orchestra_mem.build import open_memory
from orchestra_mem.memory.manager import OrchestratorContextManager
from tests.conftest import Clock
from tests.memories import SMALL

CONFIG = {**SMALL, "tokens": {"counter": "estimate"}}


def _open(project: Path) -> OrchestratorContextManager:
    return open_memory(project, config=CONFIG, clock=Clock(step_s=3))


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """A project with an ended session and a live one, and its acknowledged operations."""
    project = tmp_path_factory.mktemp("project")
    acknowledged: dict[str, int] = {}
    with _open(project) as memory:
        for number in range(90):
            kind, data = draft_for(f"m{number}")
            acknowledged[f"m{number}"] = memory.record_operation(kind, data).id
            if number == 70:
                memory.flush_session()
    return project, acknowledged


def _found(project: Path, acknowledged: dict[str, int], notes: tuple[str, ...] = ()) -> list[Violation]:
    with _open(project) as memory:
        return examine(project, memory, acknowledged=acknowledged, notes=notes)


def _archived(home: Path) -> Path:
    (path,) = (home / "sessions" / "archive").glob("*.md")
    return path


def _change(path: Path, pattern: str, replacement: str) -> None:
    """Replace the first match of a pattern, which must exist."""
    text, count = re.subn(pattern, replacement, path.read_bytes().decode(), count=1, flags=re.DOTALL | re.MULTILINE)
    assert count == 1, f"{path.name} has nothing like {pattern}"
    path.write_bytes(text.encode())


def _execute(home: Path, statement: str) -> None:
    with closing(sqlite3.connect(home / "obra.db", isolation_level=None)) as raw:
        assert raw.execute(statement).rowcount == 1
    raw.close()


ENTRY = r"^### \[[^\n]*\(op \d+\)\n.*?(?=^### \[|^## |\Z)"


def _record_again(home: Path) -> None:
    columns = "session, type, timestamp, tokens, entry_tokens, critical, data"
    _execute(home, f"INSERT INTO operations ({columns}) SELECT {columns} FROM operations WHERE id = 90")


def _in_archive(pattern: str, replacement: str) -> Callable[[Path], None]:
    return lambda home: _change(_archived(home), pattern, replacement)


def _in_version(pattern: str) -> Callable[[Path], None]:
    return lambda home: _change(max((home / "memory" / "versions").glob("project_state.*")), pattern, "")


def _in_database(statement: str) -> Callable[[Path], None]:
    return lambda home: _execute(home, statement)


FAULTS: list[tuple[Callable[[Path], object], str, str]] = [
    (_record_again, "duplicated", r"m89 is in the event log 2 times"),
    (_in_database("UPDATE operations SET data = '1' WHERE id = 90"), "lost", r"operation 90 .* is not as recorded"),
    (_in_database("DELETE FROM operations WHERE id = 90"), "lost", r"m89 was acknowledged, but is not in the event"),
    (_in_database("UPDATE summaries SET operation_count = 99 WHERE id = 1"), "document", r"S1 counts 99 operations"),
    (_in_archive(ENTRY, ""), "document", r"operation \d+ is in no place"),
    (_in_archive(f"({ENTRY})", r"\1\1"), "duplicated", r"is in the document and the document"),
    (_in_archive(r"\Z", "\n## Torn\n"), "document", r"a stray piece: '## Torn"),
    (lambda home: _archived(home).unlink(), "document", r"\(archived\) has no document"),
    # Next to documents, the next start would remove it.
    (lambda home: (home / ".x.md.tmp~").mkdir(), "document", r"\.x\.md\.tmp~ was left behind in \.obra/"),
    (_in_version(r"\n\Z"), "document", r"does not end with a line break"),
    (lambda home: _change(home / "memory" / "decision_log.md", r"^## Decisions$.*", "## Decisions\n"), "document",
     r"decision K\d+ is not in the decision log"),
]  # fmt: skip


@pytest.mark.parametrize(("plant", "kind", "text"), FAULTS, ids=[text for _, _, text in FAULTS])
def test_planted_fault_is_found(
    lived_in: tuple[Path, dict[str, int]], tmp_path: Path, plant: Callable[[Path], object], kind: str, text: str
) -> None:
    """Each planted fault is reported with its kind and a text that names it."""
    project, acknowledged = lived_in
    shutil.copytree(project, tmp_path / "project")
    plant(tmp_path / "project" / ".obra")
    found = _found(tmp_path / "project", acknowledged)
    assert any(violation.kind == kind and re.search(text, violation.text) for violation in found), found


def test_sound_memory_has_no_faults(lived_in: tuple[Path, dict[str, int]]) -> None:
    """A sound memory has no faults; a person's line that is missing is reported."""
    project, acknowledged = lived_in
    assert _found(project, acknowledged) == []
    (missed,) = _found(project, acknowledged, (f"{NOTE} 1.1",))
    assert (missed.kind, missed.text) == ("edit", f"{NOTE} 1.1 is missing from all documents and versions")

"""Memories without the right to write: they are read as they are, and every change is refused with a message.

Disks that really are read-only are in `tests/test_storage_failures.py`.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from orchestra_mem import open_memory
from orchestra_mem.adapters.database import Database
from orchestra_mem.doctor.memory import Health, diagnose
from orchestra_mem.errors import StorageReadOnlyError
from orchestra_mem.stores import EventLog
from orchestra_mem.types import OperationFilter
from tests.memories import closed_to_writing, problems_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a recorded decision, a note and a kept version."""
    with open_memory(tmp_path) as memory:
        memory.record_operation("decision", {"text": "We decided to bake rye bread on Tuesdays."})
        memory.refresh()
        memory.record_operation("note", {"text": "The oven is hot."})
    return tmp_path


@pytest.fixture
def closed(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same project without the right to write."""
    closed_to_writing(project / ".obra", monkeypatch)
    return project


def _files(folder: Path) -> dict[Path, bytes]:
    """Return all files' bytes except `-shm` and `-wal`, which SQLite may create on this file system."""
    beside = ("-shm", "-wal")
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.name.endswith(beside)}


def test_memory_that_may_only_be_read_is_read_and_left_as_it_is(closed: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A read-only memory answers every read, refuses every write, reports one problem and changes no file."""
    before = _files(closed)
    with open_memory(closed) as memory:
        assert memory.get_orchestrator_context("x").render().count("rye bread") >= 1
        assert [op.id for op in memory.operations(OperationFilter())] == [1, 2]
        assert "rye bread" in memory.episodic_memory.diff("project_state", 1)
        for call in (lambda: memory.record_operation("note", 1), memory.refresh, memory.flush_session):
            with pytest.raises(StorageReadOnlyError, match="this memory is read-only"):
                call()
        problems = problems_of(memory)
        (problem,) = problems
        assert isinstance(problem, dict)
        assert problem["subject"] == "read-only"
        assert problem["problem"] == (
            f"the memory can be read, but nothing can be recorded: {closed / '.obra'} cannot be written to; give "
            "this user the right to write there, then open the memory again"
        )
        assert caplog.messages == [problem["problem"]]
    assert _files(closed) == before


def test_what_waited_for_its_document_is_read_and_left_waiting(closed: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Operations that cannot be spilled stay in working memory, with one problem reported and no file changed."""
    config = {"orchestrator": {"working_memory": {"max_operations": 2}}}
    with closing(sqlite3.connect(closed / ".obra" / "obra.db", isolation_level=None)) as database:
        database.execute(
            "INSERT INTO operations SELECT id + 1, session, type, timestamp, tokens, entry_tokens, agent, "
            "critical, NULL, data FROM operations ORDER BY id DESC LIMIT 1"
        )
    before = _files(closed)
    with open_memory(closed, config=config) as memory:
        for _ in range(2):
            assert memory.get_orchestrator_context("x").render().count("The oven is hot.") == 2
            problems = problems_of(memory)
            assert len(problems) == 1
        assert len(caplog.messages) == 1
    assert _files(closed) == before


def test_doctor_tells_that_a_memory_may_only_be_read(closed: Path) -> None:
    """The doctor reports that a memory is read-only and checks everything else."""
    findings = {finding.part: finding for finding in diagnose(closed)}
    assert findings["folder"].health is Health.FAULT
    assert findings["folder"].words.endswith(".obra cannot be written to: the memory can be read, but nothing can be "
                                             "recorded")  # fmt: skip
    assert findings["lock"].health is Health.NOTE
    assert {findings[part].health for part in ("database", "documents", "versions", "sessions")} == {Health.SOUND}


@pytest.mark.parametrize("kind", ["missing", "empty", "without tables"])
def test_without_a_database_an_empty_one_elsewhere_takes_its_place(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A missing, empty or table-less database is read as an empty memory, from a temporary database that is removed."""
    elsewhere, path = tmp_path_factory.mktemp("elsewhere"), tmp_path / "obra.db"
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    if kind == "empty":
        path.touch()
    elif kind == "without tables":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
    before = _files(tmp_path)
    database = Database(path, read_only=True)
    assert EventLog(database).last_operation() == 0
    assert len([*elsewhere.iterdir()]) == 1
    database.close()
    assert _files(tmp_path) == before
    assert [*elsewhere.iterdir()] == []


def test_log_that_sqlite_cannot_read_in_its_place_is_read_from_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write-ahead log that SQLite cannot read in place is read from a copy, including the last operation."""
    path = tmp_path / "obra.db"
    with open_memory(tmp_path) as memory:
        memory.record_operation("note", 1)
        for name in ("obra.db", "obra.db-wal"):
            shutil.copyfile(tmp_path / ".obra" / name, tmp_path / name)
    monkeypatch.setattr("orchestra_mem.adapters.database.files._has_tables", lambda address: False)
    before = _files(tmp_path)
    database = Database(path, read_only=True)
    assert EventLog(database).last_operation() == 1
    database.close()
    assert _files(tmp_path) == before


def test_database_of_an_older_program_is_refused_in_words(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database with an older schema is refused, since reading would require a migration."""
    path = project / ".obra" / "obra.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 0")
    connection.close()
    with pytest.raises(
        StorageReadOnlyError, match=r"has schema version 0, but this program needs version \d+; open it once with"
    ):
        Database(path, read_only=True)

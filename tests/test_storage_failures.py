"""Full disks, missing rights, damaged files and clock jumps: nothing acknowledged is lost, and work goes on.

Full and read-only disks are real: a small tmpfs, mounted in a separate namespace by `unshare`, which ends with the
process. Machines that do not allow it skip these scenarios; a limit on file sizes and removed permissions are tested
everywhere. Each scenario of `tests/storage_scenarios.py` runs in a separate process.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem.doctor.memory import Health, diagnose
from orchestra_mem.errors import StorageError
from orchestra_mem.types import DocumentName
from tests import storage_scenarios
from tests.conftest import Clock
from tests.memories import everywhere, flushed, live, problems_of
from tests.processes import CHECKOUT, bound, python
from tests.storage_scenarios import SCENARIOS, open_small, record, recorded, told_problems


@functools.cache
def _namespace() -> list[str] | None:
    """The command that runs a process with private mounts, None if this machine does not allow it."""
    unshare = shutil.which("unshare")
    if unshare is None or shutil.which("mount") is None:
        return None
    command = [unshare, "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.run(
            [*command, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False
        )
    return command if tried.returncode == 0 else None


def play(scenario: str, folder: Path, *, mounted: bool = False, **options: Any) -> None:
    """Run a scenario in a separate process, if `mounted` with private mounts, and fail with what it printed.

    If the machine allows no private mounts, the test is skipped.
    """
    namespace = _namespace() if mounted else []
    if namespace is None:
        pytest.skip("no file system may be mounted here")
    played = subprocess.run(
        [*namespace, sys.executable, storage_scenarios.__file__, scenario, str(folder)],
        capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT), "MOUNT": str(int(mounted))}, **options,
    )  # fmt: skip
    assert played.returncode == 0, played.stdout + played.stderr


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if "disk" in name or "limit" in name])
def test_full_disk_loses_nothing_and_work_goes_on(tmp_path: Path, scenario: str) -> None:
    """On a full disk, opening and recording are refused with path and advice; what was acknowledged is kept.

    Work goes on once there is room. The disk is a mounted file system of 32 MB, or files have a size limit, as under a
    quota.
    """
    play(scenario, tmp_path, mounted="disk" in scenario)


@pytest.mark.parametrize(
    "scenario", "read_only_mount read_only_documents full_index read_only_index full_home read_only_home".split()
)
def test_a_part_on_a_full_or_read_only_disk_can_be_read_and_work_goes_on(tmp_path: Path, scenario: str) -> None:
    """A read-only disk can be read after a kill, within a flush or without a database; no byte of it changes.

    An index on such a disk answers with a note and later finds everything; with such a user home, a project records.
    """
    play(scenario, tmp_path, mounted=True)


def test_rights_that_are_taken_away_are_told_and_work_goes_on(tmp_path: Path) -> None:
    """Without the right to write documents recording goes on, and documents catch up once it is restored."""
    play("read_only_folders", tmp_path, preexec_fn=bound)


# The database


def test_deleted_database_leaves_the_documents_as_the_memory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without its database a memory serves its documents, keeps every person's edit, and starts a new event log.

    The loss of the history is reported at the first opening, and as a problem until a session is flushed.
    """
    home = tmp_path / ".obra"
    state = home / "memory" / "project_state.md"
    with open_small(tmp_path) as memory:
        memory.record_operation("decision", {"marker": "d", "decision": "We decided to use Postgres for the ledger."})
        for number in range(20):
            record(memory, f"m{number}")
        memory.refresh()
        old_document = memory.session_memory.path
        assert problems_of(memory) == []
    assert old_document is not None
    state.write_text(state.read_text().replace("## Blockers\n\n", "## Blockers\n\n- The porcupine is loose.\n", 1))
    old_text = old_document.read_text()
    old_documents = {path.stem: path.read_text() for path in (home / "memory").glob("*.md")}
    for path in home.glob("obra.db*"):
        path.unlink()
    caplog.clear()
    told = "the database is new, and documents are older than it: project_state.md, "
    with open_small(tmp_path) as memory:
        assert told in caplog.text
        assert "1 session document. They are still used" in caplog.text
        assert memory.operations() == []
        assert "porcupine" in memory.get_orchestrator_context("test").render()
        assert {path.stem: path.read_text() for path in (home / "memory").glob("*.md")} == old_documents
    caplog.clear()
    with open_small(tmp_path) as memory:
        assert told not in caplog.text
        assert told_problems(memory).count(told) == 1
        assert [finding.health for finding in diagnose(tmp_path) if told in finding.words] == [Health.FAULT]
        assert record(memory, "first again") == 1
        memory.refresh()
        context = memory.get_orchestrator_context("test").render()
        assert "porcupine" in context
        assert "Postgres" in context
        assert told in told_problems(memory)
        assert memory.flush_session() is not None
        for name, text in old_documents.items():
            kept = [Path(version.path).read_text() for version in memory.episodic_memory.history(name)]
            assert text in [*kept, memory.episodic_memory.path(DocumentName(name)).read_text()]
    assert "- The porcupine is loose. (K" in state.read_text()
    assert old_document.read_text() == old_text
    with open_small(tmp_path) as memory:
        assert problems_of(memory) == []


def test_documents_that_say_nothing_yet_miss_no_database(tmp_path: Path) -> None:
    """A project that was cloned without its database and has empty documents reports no problem."""
    open_small(tmp_path).close()
    for path in (tmp_path / ".obra").glob("obra.db*"):
        path.unlink()
    with open_small(tmp_path) as memory:
        assert problems_of(memory) == []


def test_entries_that_an_older_database_does_not_know_stay_and_flushing_goes_on(tmp_path: Path) -> None:
    """If an older copy of the database is put back, entries that only documents have are kept.

    They stay through compaction and flush, no new operation is mistaken for one of them, an archived document is not
    overwritten, and the loss is reported until the next session has ended.
    """
    home = tmp_path / ".obra"
    with open_small(tmp_path) as memory:
        for number in range(12):
            record(memory, f"known{number}")
    copy = shutil.copy(home / "obra.db", tmp_path / "copy.db")
    with open_small(tmp_path) as memory:
        for number in range(30):
            record(memory, f"later{number}")
        document = live(memory)
    lost = set(re.findall(r"later\d+", document.read_text()))
    assert len(lost) > 5
    shutil.copy(copy, home / "obra.db")
    with open_small(tmp_path) as memory:
        assert f"{document} is newer than the database" in told_problems(memory)
        told = {f"new{number}": record(memory, f"new{number}") for number in range(40)}
        memory.refresh()
        assert lost <= set(re.findall(r"later\d+", document.read_text()))
        assert set(told.values()) <= set(everywhere(memory))
        archived = flushed(memory)
        before = archived.read_text()
        assert lost <= set(re.findall(r"later\d+", before))
    with open_small(tmp_path) as memory:
        assert problems_of(memory) == []
    shutil.copy(copy, home / "obra.db")
    with open_small(tmp_path) as memory:
        record(memory, "again")
        second = memory.flush_session()
        assert second == archived.with_stem(f"{archived.stem}_2")
        assert "again" in second.read_text()
        assert archived.read_text() == before
        assert memory.sessions()[0].archive == f"archive/{second.name}"
        record(memory, "next")
        assert memory.flush_session() is not None


@pytest.mark.parametrize("moved", [".", ".obra", ".obra/obra.db"])
def test_database_that_is_taken_away_while_open_acknowledges_nothing(tmp_path: Path, moved: str) -> None:
    """If the open database is moved, deleted or replaced, the next record is refused.

    Earlier operations are in the old file; once it is back in its place, recording goes on.
    """
    project = tmp_path / "project"
    project.mkdir()
    with open_small(project) as memory:
        record(memory, "before")
        old, away = project / moved, tmp_path / "away"
        database = project / ".obra" / "obra.db"
        old.rename(away)
        words = f"record: {re.escape(str(database))} was moved, deleted or replaced while it was open"
        with pytest.raises(StorageError, match=words):
            record(memory, "gone")
        if moved.endswith("db"):
            shutil.copy(away, database)
            with pytest.raises(StorageError, match=words):
                record(memory, "replaced")
        away.rename(old)
        record(memory, "after")
    with open_small(project) as memory:
        assert list(recorded(memory)) == ["before", "after"]


@pytest.mark.parametrize("deleted", ["obra.db-wal", "obra.db-shm"])
def test_a_log_that_is_deleted_beside_a_running_process_costs_no_record(tmp_path: Path, deleted: str) -> None:
    """If SQLite's log is deleted during use, a problem is reported, and no acknowledged record is lost."""
    child = f"""
import os, pathlib
from orchestra_mem import open_memory
memory = open_memory({str(tmp_path)!r})
for number in range(50):
    if number == 30:
        pathlib.Path({str(tmp_path)!r}, ".obra", {deleted!r}).unlink()
    memory.record_operation("note", {{"marker": f"m{{number}}"}})
(problem,) = memory.get_stats()["problems"]
print(problem["subject"], problem["problem"], flush=True)
os._exit(9)
"""
    assert python(child, status=9).stdout.startswith(
        f"database {tmp_path}/.obra/{deleted} was deleted while it was in use"
    )
    with open_small(tmp_path) as memory:
        assert list(recorded(memory)) == [f"m{number}" for number in range(50)]
        assert problems_of(memory) == []


def test_a_log_that_another_program_began_anew_is_not_written_beside(tmp_path: Path) -> None:
    """If another program has created a new log, further records to the old one are refused, and none is lost."""
    with open_small(tmp_path) as memory:
        record(memory, "before")
        (tmp_path / ".obra" / "obra.db-wal").unlink()
        record(memory, "between")
        with open_small(tmp_path) as other:
            record(other, "elsewhere")
            with pytest.raises(StorageError, match=r"obra\.db-wal was moved, deleted or replaced while it was open"):
                record(memory, "beside")
    with open_small(tmp_path) as memory:
        assert list(recorded(memory)) == ["before", "between", "elsewhere"]


# Clocks


def test_clock_that_jumps_back_changes_no_order(tmp_path: Path) -> None:
    """If the clock jumps back, operations and versions keep their order of recording."""
    clock = Clock(step_s=1)
    with open_small(tmp_path, clock) as memory:
        for number in range(60):
            if number % 7 == 3:
                clock.now -= timedelta(days=2, hours=number)
            record(memory, f"m{number}")
        memory.refresh()
        operations = memory.operations()
        assert [op.data["marker"] for op in operations] == [f"m{n}" for n in range(60)]  # type: ignore[index,call-overload]
        assert operations[3].timestamp < operations[2].timestamp
        assert everywhere(memory) == [op.id for op in operations]
        stamps = [version.sequence for version in memory.episodic_memory.history("project_state")]
        assert stamps == sorted(stamps)
        assert len(stamps) > 1
        current = memory.session_memory.get_current_state()
        assert isinstance(current["duration_seconds"], float)
        assert current["duration_seconds"] >= 0
        assert memory.flush_session() is not None
        assert record(memory, "next") == 61

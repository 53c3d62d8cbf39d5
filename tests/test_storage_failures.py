"""Full disks, missing rights, damaged files and clock jumps: nothing acknowledged is lost, and work goes on.

Full and read-only disks are real: a small tmpfs, mounted in a separate namespace by `unshare`, which ends with the
process. Machines that do not allow it skip these scenarios; a limit on file sizes and removed permissions are tested
everywhere. Each scenario runs in a separate process: this file, called as a program.
"""

from __future__ import annotations

import functools
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem.build import open_memory
from orchestra_mem.catalog_types import AuditFilter, ItemFilter
from orchestra_mem.doctor.memory import Health, diagnose
from orchestra_mem.errors import StorageError, StorageFullError, StorageReadOnlyError
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.types import DocumentName, SessionStatus
from tests.conftest import Clock
from tests.faces.conftest import Program
from tests.memories import SMALL, everywhere, flushed, killing, live, problems_of, session_of
from tests.processes import CHECKOUT, bound, python

EARLY = "The reactor pump was repaired by hand."
LATE = "The quokka enclosure needs a new fence."
FullDisk = Callable[[Path, int], AbstractContextManager[None]]
# Limits at which dozens of operations cause spills, refreshes and compactions.
CONFIG: dict[str, object] = {
    **SMALL, "storage": {"lock_timeout_s": 5, "busy_timeout_s": 5}, "tokens": {"counter": "estimate"},
}  # fmt: skip


_KILLED = """
import os, sys
from orchestra_mem import open_memory
memory = open_memory(sys.argv[1])
memory.record_operation("note", {"marker": "last"})
with memory._parts.store.lock():
    os.kill(os.getpid(), 9)
"""


def _open(project: Path, clock: Clock | None = None) -> OrchestratorContextManager:
    return open_memory(project, config=CONFIG, clock=clock or Clock(step_s=1))


def _record(memory: OrchestratorContextManager, marker: str, size: int = 60) -> int:
    text = f"Looked at {marker} and wrote down what there was to see. " * (size // 50)
    return memory.record_operation("note", {"marker": marker, "text": text}).id


def _recorded(memory: OrchestratorContextManager) -> dict[str, int]:
    found = {}
    for operation in memory.operations():
        assert isinstance(operation.data, dict)
        marker = str(operation.data["marker"])
        assert marker not in found, f"{marker} is recorded twice"
        found[marker] = operation.id
    return found


def _problems(memory: OrchestratorContextManager) -> str:
    return "\n".join(map(str, problems_of(memory)))


# Scenarios that run in a separate process


def _fill(folder: Path, spare_bytes: int = 0) -> Path:
    """Use up the file system except for `spare_bytes`, and return the file that does."""
    ballast = folder / "ballast"
    (folder / "spare").write_bytes(b"x" * spare_bytes)
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            while True:
                try:
                    file.write(b"x" * size)
                except OSError:
                    break
    (folder / "spare").unlink()
    return ballast


@contextmanager
def _real_full_disk(folder: Path, spare_bytes: int) -> Iterator[None]:
    ballast = _fill(folder, spare_bytes)
    yield
    ballast.unlink()


@contextmanager
def _limited_files(folder: Path, spare_bytes: int) -> Iterator[None]:
    """Limit files to the size of the largest one plus `spare_bytes`; the system then reports "file too large"."""
    largest = max(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest + spare_bytes, resource.RLIM_INFINITY))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def full_disk(folder: Path, full: FullDisk, room: int) -> None:
    """Fill the disk during work, except for `room` bytes, then free it again."""
    project = folder / "project"
    project.mkdir()
    told: dict[str, int] = {}
    refused: list[str] = []
    with _open(project) as memory:
        for number in range(12):
            told[f"before-{number}"] = _record(memory, f"before-{number}")
        with full(folder, room):
            for number in range(400):
                marker = f"full-{number}"
                try:
                    told[marker] = _record(memory, marker, 3_000)
                except StorageError as error:
                    refused.append(marker)
                    assert str(project) in str(error), error
                    assert "free some space" in str(error), error
                    assert full is not _real_full_disk or isinstance(error, StorageFullError), error
                    if len(refused) == 3:
                        break
            assert len(refused) == 3, f"the disk took everything: {len(told)}"
            assert memory.get_orchestrator_context("test").tokens > 0
            for call in (memory.refresh, memory.flush_session):
                try:
                    call()
                except StorageError as error:
                    assert str(project) in str(error), error
            assert _recorded(memory) == told
        for number in range(60):
            told[f"after-{number}"] = _record(memory, f"after-{number}")
        memory.refresh()
        assert problems_of(memory) == []
        assert _recorded(memory) == told
    with _open(project) as memory:
        assert _recorded(memory) == told
        live = session_of(memory)
        own = [op.id for op in memory.operations() if op.session == live.id]
        assert everywhere(memory) == own
        assert all(session.status is not SessionStatus.FLUSHING for session in memory.sessions())
    assert not list(project.rglob("*tmp~*"))


def full_disk_in_the_catalog(folder: Path) -> None:
    """Fill the disk while agents store items and their documents are written, then free it again."""
    project = folder / "project"
    project.mkdir()
    kept: list[str] = []

    def learn(memory: OrchestratorContextManager, what: str) -> None:
        kept.append(memory.catalog.store({"content": f"{what} {'was said at length. ' * 100}"}, agent="ada").id)

    with _open(project) as memory:
        for number in range(5):
            learn(memory, f"Thing {number} before")
        memory.learn("", "We decided to use Redux for state management.", agent="bob")
        memory.write_catalog()
        document = memory.documents.path("catalog/ada")
        text = document.read_text()
        document.write_text(f"{text}\n## Mine\n\nThe key is under the mat.\n")
        with _real_full_disk(folder, 200_000):
            refused = 0
            for number in range(4_000):
                try:
                    learn(memory, f"Thing {number} meanwhile")
                except StorageError as error:
                    refused += 1
                    assert "free some space" in str(error), error
                    if refused == 3:
                        break
                if number % 20 == 0:
                    memory.write_catalog()  # a failed write is repeated later
            assert refused == 3, f"the disk took everything: {len(kept)}"
            memory.write_catalog()
            assert memory.inject("Redux", agent="bob").context_loaded
            assert "The key is under the mat." in document.read_text()
            found = {item.id for item in memory.catalog.items(ItemFilter(agents=["ada"]))}
            assert found == set(kept)
        learn(memory, "Thing last")
        memory.write_catalog()
        assert problems_of(memory) == []
    with _open(project) as memory:
        assert {item.id for item in memory.catalog.items(ItemFilter(agents=["ada"]))} == set(kept)
        assert {entry.items[0] for entry in memory.audit(AuditFilter(call="store", agent="ada"))} == set(kept)
        assert "Redux" in memory.inject("state", agent="bob")
        memory.write_catalog()
        text = document.read_text()
        assert "Thing last was said" in text
        assert "The key is under the mat." in text
    assert not list(project.rglob("*tmp~*"))


def full_disk_at_start(folder: Path) -> None:
    """Open a memory, and begin another, while the disk is full, and again when it is not."""
    project, fresh = folder / "project", folder / "fresh"
    project.mkdir()
    fresh.mkdir()
    with _open(project) as memory:
        told = {f"m{number}": _record(memory, f"m{number}") for number in range(20)}
    with _real_full_disk(folder, 0):
        for place in (project, fresh):
            with pytest.raises(StorageError, match=rf"{re.escape(str(place))}/.*; free some space"):
                _open(place)
    with _open(project) as memory:
        assert _recorded(memory) == told
        told["more"] = _record(memory, "more")
        assert _recorded(memory) == told
    with _open(fresh) as memory:
        assert _record(memory, "first") == 1


def read_only_mount(folder: Path) -> None:
    """Read memories on a file system remounted as read-only, and record again after it is writable."""
    told = {}
    for project in (folder / "closed", folder / "killed", folder / "flushing"):
        project.mkdir()
        with _open(project) as memory:
            told[project] = {f"m{number}": _record(memory, f"m{number}") for number in range(20)}
    python(_KILLED, folder / "killed", status=-signal.SIGKILL)
    told[folder / "killed"]["last"] = 21
    _stop_flushing(folder / "flushing")
    copied = folder / "copied"
    shutil.copytree(folder / "killed", copied)
    (copied / ".obra" / "obra.db-shm").unlink()
    told[copied] = told[folder / "killed"]
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    for project, operations in told.items():
        _read_only(project, operations)
    subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == files
    for project, operations in told.items():
        with _open(project) as memory:
            operations["more"] = _record(memory, "more")
            memory.refresh()
            assert _recorded(memory) == operations
            assert problems_of(memory) == []
            assert all(session.status is not SessionStatus.FLUSHING for session in memory.sessions())


def read_only_documents(folder: Path) -> None:
    """Read documents without their database, on a read-only file system."""
    project = folder / "project"
    project.mkdir()
    with _open(project) as memory:
        memory.record_operation("decision", {"marker": "d", "decision": "We decided to use Postgres for the ledger."})
        memory.refresh()
    for path in (project / ".obra").glob("obra.*"):
        path.unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    with _open(project) as memory:
        assert "Postgres" in memory.get_orchestrator_context("test").render()
        assert memory.operations() == []
        assert "the database is new, and documents are older than it: " in _problems(memory)
        assert f"{project / '.obra'} cannot be written to" in _problems(memory)


def _stop_flushing(project: Path) -> None:
    """Begin to flush, and stop before the document is archived, as a kill would."""
    stop = killing(["archive.rename.before"])
    with (
        suppress(KeyboardInterrupt),
        open_memory(project, config=CONFIG, clock=Clock(step_s=1), write_point=stop) as memory,
    ):
        memory.flush_session()


def _read_only(project: Path, told: dict[str, int]) -> None:
    """Check that all reads work, all writes raise `StorageReadOnlyError`, and the problem is reported once."""
    with _open(project) as memory:
        assert _recorded(memory) == told
        memory.get_orchestrator_context("test")
        assert memory.query_recent_operations()
        assert len(memory.sessions()) == 1
        assert memory.losses()
        assert memory.episodic_memory.faults() == []
        memory.episodic_memory.history("project_state")
        assert memory.search_memory("Looked")
        refused: list[Callable[[], object]] = [lambda: _record(memory, "refused")]
        if memory.session_memory.session is not None:
            refused += [memory.refresh, memory.flush_session]
        for call in refused:
            why = r"this memory is read-only(?:; `orchestra-mem status` shows why|: .*; give this user the right)"
            with pytest.raises(StorageReadOnlyError, match=why) as error:
                call()
            assert str(project / ".obra") in str(error.value), error.value
        assert _recorded(memory) == told
        assert _problems(memory).count("can be read, but nothing can be recorded") == 1, _problems(memory)


def read_only_folders(folder: Path) -> None:
    """Remove write permission from the documents of an open memory, then from its home, and restore it each time."""
    project = folder / "project"
    project.mkdir()
    home = project / ".obra"
    with _open(project) as memory:
        told = {f"m{number}": _record(memory, f"m{number}") for number in range(20)}
        locked = [home / "sessions", home / "memory", *home.rglob("*.md")]
        for path in locked:
            path.chmod(path.stat().st_mode & ~0o222)
        # Recording needs only the database.
        told |= {f"locked{number}": _record(memory, f"locked{number}") for number in range(40)}
        assert "give this user the right to write there" in _problems(memory), _problems(memory)
        memory.get_orchestrator_context("test")
        with pytest.raises(StorageReadOnlyError, match=re.escape(str(home))):
            memory.flush_session()
        for path in locked:
            path.chmod(path.stat().st_mode | 0o200)
        told |= {f"free{number}": _record(memory, f"free{number}") for number in range(40)}
        memory.refresh()
        assert problems_of(memory) == []
        assert _recorded(memory) == told
        live = session_of(memory)
        assert everywhere(memory) == [op.id for op in memory.operations() if op.session == live.id]
    closed = [path for path in (home, *home.iterdir()) if path.name != ".gitignore"]
    for path in closed:
        path.chmod(path.stat().st_mode & ~0o222)
    _read_only(project, told)
    for path in closed:
        path.chmod(path.stat().st_mode | 0o200)
    with _open(project) as memory:
        assert _recorded(memory) == told


def _index_of_its_own(folder: Path) -> tuple[Path, Path]:
    """Mount a disk of 3 MB for a project's search index, and return both folders."""
    project = folder / "project"
    index = project / ".obra" / "index"
    index.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(index)], check=True)
    return project, index


def _found(memory: OrchestratorContextManager, query: str) -> tuple[list[str], str]:
    answer = memory.search(query, limit=1)
    return [hit.chunk.text for hit in answer.hits], "; ".join(answer.notes)


def full_index(folder: Path) -> None:
    """Fill the index's disk while the index grows, then enlarge it."""
    project, index = _index_of_its_own(folder)
    with open_memory(project) as memory:
        memory.record_operation("note", {"text": EARLY})
        assert _found(memory, "reactor pump") == ([EARLY], "")
        (index / "ballast").write_bytes(b"x" * (shutil.disk_usage(index).free - 200_000))
        for number in range(300):
            memory.record_operation("note", {"text": " ".join(f"w{number * 31 + word}x" for word in range(30))})
        memory.record_operation("note", {"text": LATE})
        while "is full" not in _found(memory, "reactor pump")[1]:
            pass
        assert _found(memory, "reactor pump")[0] == [EARLY]
    run = Program(project)
    assert EARLY in run("search", "reactor pump", "-C", project, "--limit", "1")
    assert "the newest content may be missing because the index could not be updated: " in run.errors
    assert "is full; free some space and try again" in run.errors
    run("index", "-C", project, exit_code=4)
    assert "is full" in run.errors
    subprocess.run(["mount", "-o", "remount,size=64m", str(index)], check=True)
    with open_memory(project) as memory:
        memory.update_index()
        assert _found(memory, "quokka enclosure") == ([LATE], "")
        assert _found(memory, "reactor pump") == ([EARLY], "")


def read_only_index(folder: Path) -> None:
    """Make only the index read-only, then writable again."""
    project, index = _index_of_its_own(folder)
    with open_memory(project) as memory:
        memory.record_operation("note", {"text": EARLY})
        memory.update_index()
    subprocess.run(["mount", "-o", "remount,ro", str(index)], check=True)
    with open_memory(project) as memory:
        memory.record_operation("note", {"text": LATE})
        texts, notes = _found(memory, "quokka enclosure")
        assert texts == [LATE]
        assert notes.startswith(f"{index} is not writable")
        assert _found(memory, "reactor pump")[0] == [EARLY]
    subprocess.run(["mount", "-o", "remount,rw", str(index)], check=True)
    with open_memory(project) as memory:
        assert _found(memory, "quokka enclosure") == ([LATE], "")


def closed_home(folder: Path, options: str) -> None:
    """Use a project whose user home, where projects are listed, is full or read-only."""
    project, home = folder / "project", folder / "home"
    project.mkdir()
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(home)], check=True)
    with suppress(OSError):
        _fill(home)
    os.environ["ORCHESTRA_MEM_HOME"] = str(home)
    with _open(project) as memory:
        assert _record(memory, "first") == 1
    assert not [*home.rglob("*.json")]


SCENARIOS: dict[str, Callable[[Path], None]] = {
    "full_disk": lambda folder: full_disk(folder, _real_full_disk, 0),
    "nearly_full_disk": lambda folder: full_disk(folder, _real_full_disk, 150_000),
    "full_disk_catalog": full_disk_in_the_catalog, "full_disk_at_start": full_disk_at_start,
    "file_limit": lambda folder: full_disk(folder, _limited_files, 0),
    "wide_file_limit": lambda folder: full_disk(folder, _limited_files, 50_000), "read_only_mount": read_only_mount,
    "read_only_documents": read_only_documents, "read_only_folders": read_only_folders,
    "full_home": lambda folder: closed_home(folder, "size=8k"),
    "read_only_home": lambda folder: closed_home(folder, "ro"), "full_index": full_index,
    "read_only_index": read_only_index,
}  # fmt: skip


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
        [*namespace, sys.executable, __file__, scenario, str(folder)],
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
    with _open(tmp_path) as memory:
        memory.record_operation("decision", {"marker": "d", "decision": "We decided to use Postgres for the ledger."})
        for number in range(20):
            _record(memory, f"m{number}")
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
    with _open(tmp_path) as memory:
        assert told in caplog.text
        assert "1 session document. They are still used" in caplog.text
        assert memory.operations() == []
        assert "porcupine" in memory.get_orchestrator_context("test").render()
        assert {path.stem: path.read_text() for path in (home / "memory").glob("*.md")} == old_documents
    caplog.clear()
    with _open(tmp_path) as memory:
        assert told not in caplog.text
        assert _problems(memory).count(told) == 1
        assert [finding.health for finding in diagnose(tmp_path) if told in finding.words] == [Health.FAULT]
        assert _record(memory, "first again") == 1
        memory.refresh()
        context = memory.get_orchestrator_context("test").render()
        assert "porcupine" in context
        assert "Postgres" in context
        assert told in _problems(memory)
        assert memory.flush_session() is not None
        for name, text in old_documents.items():
            kept = [Path(version.path).read_text() for version in memory.episodic_memory.history(name)]
            assert text in [*kept, memory.episodic_memory.path(DocumentName(name)).read_text()]
    assert "- The porcupine is loose. (K" in state.read_text()
    assert old_document.read_text() == old_text
    with _open(tmp_path) as memory:
        assert problems_of(memory) == []


def test_documents_that_say_nothing_yet_miss_no_database(tmp_path: Path) -> None:
    """A project that was cloned without its database and has empty documents reports no problem."""
    _open(tmp_path).close()
    for path in (tmp_path / ".obra").glob("obra.db*"):
        path.unlink()
    with _open(tmp_path) as memory:
        assert problems_of(memory) == []


def test_entries_that_an_older_database_does_not_know_stay_and_flushing_goes_on(tmp_path: Path) -> None:
    """If an older copy of the database is put back, entries that only documents have are kept.

    They stay through compaction and flush, no new operation is mistaken for one of them, an archived document is not
    overwritten, and the loss is reported until the next session has ended.
    """
    home = tmp_path / ".obra"
    with _open(tmp_path) as memory:
        for number in range(12):
            _record(memory, f"known{number}")
    copy = shutil.copy(home / "obra.db", tmp_path / "copy.db")
    with _open(tmp_path) as memory:
        for number in range(30):
            _record(memory, f"later{number}")
        document = live(memory)
    lost = set(re.findall(r"later\d+", document.read_text()))
    assert len(lost) > 5
    shutil.copy(copy, home / "obra.db")
    with _open(tmp_path) as memory:
        assert f"{document} is newer than the database" in _problems(memory)
        told = {f"new{number}": _record(memory, f"new{number}") for number in range(40)}
        memory.refresh()
        assert lost <= set(re.findall(r"later\d+", document.read_text()))
        assert set(told.values()) <= set(everywhere(memory))
        archived = flushed(memory)
        before = archived.read_text()
        assert lost <= set(re.findall(r"later\d+", before))
    with _open(tmp_path) as memory:
        assert problems_of(memory) == []
    shutil.copy(copy, home / "obra.db")
    with _open(tmp_path) as memory:
        _record(memory, "again")
        second = memory.flush_session()
        assert second == archived.with_stem(f"{archived.stem}_2")
        assert "again" in second.read_text()
        assert archived.read_text() == before
        assert memory.sessions()[0].archive == f"archive/{second.name}"
        _record(memory, "next")
        assert memory.flush_session() is not None


@pytest.mark.parametrize("moved", [".", ".obra", ".obra/obra.db"])
def test_database_that_is_taken_away_while_open_acknowledges_nothing(tmp_path: Path, moved: str) -> None:
    """If the open database is moved, deleted or replaced, the next record is refused.

    Earlier operations are in the old file; once it is back in its place, recording goes on.
    """
    project = tmp_path / "project"
    project.mkdir()
    with _open(project) as memory:
        _record(memory, "before")
        old, away = project / moved, tmp_path / "away"
        database = project / ".obra" / "obra.db"
        old.rename(away)
        words = f"record: {re.escape(str(database))} was moved, deleted or replaced while it was open"
        with pytest.raises(StorageError, match=words):
            _record(memory, "gone")
        if moved.endswith("db"):
            shutil.copy(away, database)
            with pytest.raises(StorageError, match=words):
                _record(memory, "replaced")
        away.rename(old)
        _record(memory, "after")
    with _open(project) as memory:
        assert list(_recorded(memory)) == ["before", "after"]


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
    with _open(tmp_path) as memory:
        assert list(_recorded(memory)) == [f"m{number}" for number in range(50)]
        assert problems_of(memory) == []


def test_a_log_that_another_program_began_anew_is_not_written_beside(tmp_path: Path) -> None:
    """If another program has created a new log, further records to the old one are refused, and none is lost."""
    with _open(tmp_path) as memory:
        _record(memory, "before")
        (tmp_path / ".obra" / "obra.db-wal").unlink()
        _record(memory, "between")
        with _open(tmp_path) as other:
            _record(other, "elsewhere")
            with pytest.raises(StorageError, match=r"obra\.db-wal was moved, deleted or replaced while it was open"):
                _record(memory, "beside")
    with _open(tmp_path) as memory:
        assert list(_recorded(memory)) == ["before", "between", "elsewhere"]


# Clocks


def test_clock_that_jumps_back_changes_no_order(tmp_path: Path) -> None:
    """If the clock jumps back, operations and versions keep their order of recording."""
    clock = Clock(step_s=1)
    with _open(tmp_path, clock) as memory:
        for number in range(60):
            if number % 7 == 3:
                clock.now -= timedelta(days=2, hours=number)
            _record(memory, f"m{number}")
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
        assert _record(memory, "next") == 61


if __name__ == "__main__":
    if os.environ["MOUNT"] == "1":
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=700", "tmpfs", sys.argv[2]], check=True)
    SCENARIOS[sys.argv[1]](Path(sys.argv[2]))

"""Scenarios of full and read-only disks, each run in a process of its own: this file, called as a program."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from orchestra_mem.build import open_memory
from orchestra_mem.catalog_types import AuditFilter, ItemFilter
from orchestra_mem.errors import StorageError, StorageFullError, StorageReadOnlyError
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.types import SessionStatus
from tests.memories import SMALL, Clock, everywhere, killing, problems_of, session_of
from tests.processes import python

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


def open_small(project: Path, clock: Clock | None = None) -> OrchestratorContextManager:
    """Open a memory with small limits, by default with a clock that advances by a second at each reading."""
    return open_memory(project, config=CONFIG, clock=clock or Clock(step_s=1))


def record(memory: OrchestratorContextManager, marker: str, size: int = 60) -> int:
    """Record an operation with a marker and about so many characters, and return its number."""
    text = f"Looked at {marker} and wrote down what there was to see. " * (size // 50)
    return memory.record_operation("note", {"marker": marker, "text": text}).id


def recorded(memory: OrchestratorContextManager) -> dict[str, int]:
    """Return the numbers of all operations by their markers, each of which must occur once."""
    found = {}
    for operation in memory.operations():
        assert isinstance(operation.data, dict)
        marker = str(operation.data["marker"])
        assert marker not in found, f"{marker} is recorded twice"
        found[marker] = operation.id
    return found


def told_problems(memory: OrchestratorContextManager) -> str:
    """Return the reported problems as text."""
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
    with open_small(project) as memory:
        for number in range(12):
            told[f"before-{number}"] = record(memory, f"before-{number}")
        with full(folder, room):
            for number in range(400):
                marker = f"full-{number}"
                try:
                    told[marker] = record(memory, marker, 3_000)
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
            assert recorded(memory) == told
        for number in range(60):
            told[f"after-{number}"] = record(memory, f"after-{number}")
        memory.refresh()
        assert problems_of(memory) == []
        assert recorded(memory) == told
    with open_small(project) as memory:
        assert recorded(memory) == told
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

    with open_small(project) as memory:
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
    with open_small(project) as memory:
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
    with open_small(project) as memory:
        told = {f"m{number}": record(memory, f"m{number}") for number in range(20)}
    with _real_full_disk(folder, 0):
        for place in (project, fresh):
            with pytest.raises(StorageError, match=rf"{re.escape(str(place))}/.*; free some space"):
                open_small(place)
    with open_small(project) as memory:
        assert recorded(memory) == told
        told["more"] = record(memory, "more")
        assert recorded(memory) == told
    with open_small(fresh) as memory:
        assert record(memory, "first") == 1


def read_only_mount(folder: Path) -> None:
    """Read memories on a file system remounted as read-only, and record again after it is writable."""
    told = {}
    for project in (folder / "closed", folder / "killed", folder / "flushing"):
        project.mkdir()
        with open_small(project) as memory:
            told[project] = {f"m{number}": record(memory, f"m{number}") for number in range(20)}
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
        with open_small(project) as memory:
            operations["more"] = record(memory, "more")
            memory.refresh()
            assert recorded(memory) == operations
            assert problems_of(memory) == []
            assert all(session.status is not SessionStatus.FLUSHING for session in memory.sessions())


def read_only_documents(folder: Path) -> None:
    """Read documents without their database, on a read-only file system."""
    project = folder / "project"
    project.mkdir()
    with open_small(project) as memory:
        memory.record_operation("decision", {"marker": "d", "decision": "We decided to use Postgres for the ledger."})
        memory.refresh()
    for path in (project / ".obra").glob("obra.*"):
        path.unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    with open_small(project) as memory:
        assert "Postgres" in memory.get_orchestrator_context("test").render()
        assert memory.operations() == []
        assert "the database is new, and documents are older than it: " in told_problems(memory)
        assert f"{project / '.obra'} cannot be written to" in told_problems(memory)


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
    with open_small(project) as memory:
        assert recorded(memory) == told
        memory.get_orchestrator_context("test")
        assert memory.query_recent_operations()
        assert len(memory.sessions()) == 1
        assert memory.losses()
        assert memory.episodic_memory.faults() == []
        memory.episodic_memory.history("project_state")
        assert memory.search_memory("Looked")
        refused: list[Callable[[], object]] = [lambda: record(memory, "refused")]
        if memory.session_memory.session is not None:
            refused += [memory.refresh, memory.flush_session]
        for call in refused:
            why = r"this memory is read-only(?:; `orchestra-mem status` shows why|: .*; give this user the right)"
            with pytest.raises(StorageReadOnlyError, match=why) as error:
                call()
            assert str(project / ".obra") in str(error.value), error.value
        assert recorded(memory) == told
        assert told_problems(memory).count("can be read, but nothing can be recorded") == 1, told_problems(memory)


def read_only_folders(folder: Path) -> None:
    """Remove write permission from the documents of an open memory, then from its home, and restore it each time."""
    project = folder / "project"
    project.mkdir()
    home = project / ".obra"
    with open_small(project) as memory:
        told = {f"m{number}": record(memory, f"m{number}") for number in range(20)}
        locked = [home / "sessions", home / "memory", *home.rglob("*.md")]
        for path in locked:
            path.chmod(path.stat().st_mode & ~0o222)
        # Recording needs only the database.
        told |= {f"locked{number}": record(memory, f"locked{number}") for number in range(40)}
        assert "give this user the right to write there" in told_problems(memory), told_problems(memory)
        memory.get_orchestrator_context("test")
        with pytest.raises(StorageReadOnlyError, match=re.escape(str(home))):
            memory.flush_session()
        for path in locked:
            path.chmod(path.stat().st_mode | 0o200)
        told |= {f"free{number}": record(memory, f"free{number}") for number in range(40)}
        memory.refresh()
        assert problems_of(memory) == []
        assert recorded(memory) == told
        live = session_of(memory)
        assert everywhere(memory) == [op.id for op in memory.operations() if op.session == live.id]
    closed = [path for path in (home, *home.iterdir()) if path.name != ".gitignore"]
    for path in closed:
        path.chmod(path.stat().st_mode & ~0o222)
    _read_only(project, told)
    for path in closed:
        path.chmod(path.stat().st_mode | 0o200)
    with open_small(project) as memory:
        assert recorded(memory) == told


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
    from tests.faces.conftest import Program  # the only scenario that needs it, and it takes long to load

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
    with open_small(project) as memory:
        assert record(memory, "first") == 1
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


if __name__ == "__main__":
    if os.environ["MOUNT"] == "1":
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=700", "tmpfs", sys.argv[2]], check=True)
    SCENARIOS[sys.argv[1]](Path(sys.argv[2]))

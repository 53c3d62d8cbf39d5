"""Documents on disk: whole or not at all, never over someone else's text, every version readable."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.adapters.files import FileDocumentStore
from orchestra_mem.errors import DocumentConflictError, LockTimeoutError, StorageFullError
from orchestra_mem.ports import WritePoint
from orchestra_mem.types import Author, Version, VersionReason
from tests.processes import python

NOON = datetime(2025, 1, 15, 12, 0, 0, 123456, tzinfo=UTC)
# Bytes as a file may hold them: what is no UTF-8 becomes lone surrogates, line ends stay.
TEXTS = st.binary(max_size=300).map(lambda data: data.decode("utf-8", "surrogateescape"))


def _store(folder: Path, **options: object) -> FileDocumentStore:
    return FileDocumentStore(versions=folder / "versions", lock_file=folder / "lock", **options)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> FileDocumentStore:
    """A store in a folder of its own."""
    return _store(tmp_path)


def _keep(
    store: FileDocumentStore, document: str, text: str, author: Author = Author.MACHINE, time: datetime = NOON
) -> Version:
    return store.keep_version(document, text, time=time, author=author, reason=VersionReason.REFRESH)


def _temporaries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*tmp~*"))


class _Stop(Exception):
    """Ends an operation at a write point, as a crash does."""


def _stop_at(point: str) -> WritePoint:
    def stop(reached: str) -> None:
        if reached == point:
            raise _Stop

    return stop


# Whole documents


@given(text=TEXTS, then=TEXTS)
def test_document_holds_what_was_written(tmp_path_factory: pytest.TempPathFactory, text: str, then: str) -> None:
    """Any text, what is no UTF-8 included, is read as it was written, the first time and over another."""
    folder = tmp_path_factory.mktemp("documents")
    store, path = _store(folder), folder / "a.md"
    store.replace(path, text, expected=None, name="x")
    assert store.read(path) == text
    store.replace(path, then, expected=text, name="x")
    assert store.read(path) == then
    assert _temporaries(folder) == []


@pytest.mark.parametrize("point", ["write.before", "write.after", "fsync.after", "rename.before"])
def test_write_that_stops_leaves_the_old_text(tmp_path: Path, point: str) -> None:
    """All or nothing: up to the renaming the document is as before, and nothing is left beside it."""
    path = tmp_path / "a.md"
    path.write_text("old")
    store = _store(tmp_path, write_point=_stop_at(f"x.{point}"))
    with pytest.raises(_Stop):
        store.replace(path, "new", expected="old", name="x")
    assert path.read_text() == "old"
    assert _temporaries(tmp_path) == []


@pytest.mark.parametrize(("present", "expected"), [("theirs", "ours"), ("theirs", None), (None, "ours")])
def test_document_changed_by_others_is_not_overwritten(
    store: FileDocumentStore, tmp_path: Path, present: str | None, expected: str | None
) -> None:
    """A write that expects something else than stands there is refused, and changes nothing."""
    path = tmp_path / "a.md"
    if present is not None:
        path.write_text(present)
    with pytest.raises(DocumentConflictError, match=r"a\.md was changed by someone else while it was being written"):
        store.replace(path, "new", expected=expected, name="x")
    assert store.read(path) == present
    assert _temporaries(tmp_path) == []


# Appends


def _failing_write(monkeypatch: pytest.MonkeyPatch, after_bytes: int) -> None:
    """Let the disk be full after so many bytes."""
    write, left = os.write, after_bytes

    def full(descriptor: int, data: bytes) -> int:
        nonlocal left
        if left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(descriptor, bytes(data[:left]))
        left -= written
        return written

    monkeypatch.setattr(os, "write", full)


def test_append_that_fails_half_way_leaves_the_document_as_before(
    store: FileDocumentStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that becomes full in the middle takes nothing; once there is room the same append succeeds."""
    path = tmp_path / "a.md"
    path.write_text("one\n")
    with monkeypatch.context() as patch:
        _failing_write(patch, 3)
        with pytest.raises(StorageFullError) as error:
            store.append(path, "two, which is longer\n", name="x")
    assert str(error.value) == (
        f"appending to {path}: No space left on device; free some space, then go on: nothing recorded is lost"
    )
    assert path.read_text() == "one\n"
    store.append(path, "two\n", name="x")
    assert path.read_text() == "one\ntwo\n"


# Versions


@given(
    document=st.from_regex(r"[a-z_0-9.\-]{1,30}", fullmatch=True).filter(lambda name: not name.startswith(".")),
    moment=st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1)),
    hours=st.integers(-12, 12),
    author=st.sampled_from(Author),
    reason=st.sampled_from(VersionReason),
    text=TEXTS,
)
def test_version_is_listed_as_it_was_kept(
    tmp_path_factory: pytest.TempPathFactory,
    document: str, moment: datetime, hours: int, author: Author, reason: VersionReason, text: str,
) -> None:  # fmt: skip
    """Name, time to the microsecond, author, reason and size come back from the file's name, the text byte for byte."""
    store = _store(tmp_path_factory.mktemp("versions"))
    time = (moment.replace(tzinfo=UTC) + timedelta(hours=hours)).astimezone(UTC)
    kept = store.keep_version(document, text, time=time, author=author, reason=reason)
    assert (kept.document, kept.time, kept.author, kept.reason) == (document, time, author, reason)
    assert kept.size_bytes == len(text.encode("utf-8", "surrogateescape"))
    assert store.versions(document) == [kept]
    assert store.read_version(kept) == text


# What a killed process leaves


def test_sweep_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    """Temporary files of documents and versions go; everything else stays, hidden files too."""
    code = (
        "import os, sys; from pathlib import Path; from datetime import datetime, UTC\n"
        "from orchestra_mem.adapters.files import FileDocumentStore\n"
        "from orchestra_mem.types import Author, VersionReason\n"
        "folder, point = Path(sys.argv[1]), sys.argv[2]\n"
        "def die(reached):\n"
        "    if reached == point: os.kill(os.getpid(), 9)\n"
        "store = FileDocumentStore(versions=folder / 'versions', lock_file=folder / 'lock', write_point=die)\n"
        "store.keep_version('a', 'old', time=datetime.now(UTC), author=Author.MACHINE, reason=VersionReason.EDIT)\n"
        "store.replace(folder / 'a.md', 'text', expected=None, name='x')\n"
    )
    for point in ("version.fsync.after", "x.fsync.after"):
        python(code, tmp_path, point, status=-signal.SIGKILL)
    (tmp_path / ".hidden.md").write_text("mine")
    assert len(_temporaries(tmp_path)) == 2
    assert _store(tmp_path).sweep((tmp_path, tmp_path / "missing")) == 2
    assert sorted(path.name for path in tmp_path.rglob("*.md*")) == [".hidden.md", _only_version(tmp_path)]


def _only_version(folder: Path) -> str:
    (version,) = (folder / "versions").iterdir()
    return version.name


# Locks

_HOLDER = (
    "import sys, time; from pathlib import Path; from orchestra_mem.adapters.files import FileDocumentStore\n"
    "folder = Path(sys.argv[1])\n"
    "store = FileDocumentStore(versions=folder / 'versions', lock_file=folder / 'lock')\n"
    "with store.lock():\n"
    "    print('held', flush=True); time.sleep(60)\n"
)


def test_lock_of_another_process_is_waited_for_and_told(tmp_path: Path) -> None:
    """After the time-out it is an error of ours that says which setting; once the holder is dead the lock is free."""
    store = _store(tmp_path, lock_timeout_s=0.2)
    with subprocess.Popen([sys.executable, "-c", _HOLDER, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        start = time.monotonic()
        with pytest.raises(LockTimeoutError) as error, store.lock():
            pass
        assert 0.2 <= time.monotonic() - start < 5
        holder.kill()
        holder.wait()
    assert str(error.value) == (
        f"another process has held {tmp_path / 'lock'} for 0.2 s; see storage.lock_timeout_s, or end that process"
    )
    assert (tmp_path / "lock").exists()
    with store.lock():
        pass


@pytest.mark.parametrize("point", ["write.after", "fsync.after", "rename.before"])
def test_version_that_stops_half_way_is_none(tmp_path: Path, point: str) -> None:
    """There is no version until it is whole."""
    store = _store(tmp_path, write_point=_stop_at(f"version.{point}"))
    with pytest.raises(_Stop):
        _keep(store, "a", "text")
    assert store.versions("a") == []
    assert _temporaries(tmp_path) == []

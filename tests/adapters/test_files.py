"""Documents on disk: writes are atomic, never overwrite another program's text, and keep readable versions.

Invalid places of a document are in `tests/test_bad_documents.py`.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.adapters.files import FileDocumentStore
from orchestra_mem.errors import DocumentError, LockTimeoutError, StorageFullError
from orchestra_mem.types import Author, VersionReason
from tests.memories import killing
from tests.processes import python, start

NOON = datetime(2025, 1, 15, 12, 0, 0, 123456, tzinfo=UTC)
# Any bytes that a file may hold: invalid UTF-8 becomes lone surrogates, line ends stay.
TEXTS = st.binary(max_size=300).map(lambda data: data.decode("utf-8", "surrogateescape"))


# Head of a child program with a store: it is killed at its second argument and saves the third just before a rename.
STORE = """
import os, sys, time; from pathlib import Path; from datetime import datetime, UTC
from orchestra_mem.adapters.files import FileDocumentStore
from orchestra_mem.types import Author, VersionReason
folder, point, saved = Path(sys.argv[1]), *(*sys.argv[2:], "", "")[:2]
def reach(at):
    if saved and at == "x.rename.before": (folder / "a.md").write_text(saved)
    if at == point: os.kill(os.getpid(), 9)
store = FileDocumentStore(versions=folder / "versions", lock_file=folder / "lock", write_point=reach)
"""


def store_in(folder: Path, **options: object) -> FileDocumentStore:
    """Return a store with its versions and its lock in a folder."""
    return FileDocumentStore(versions=folder / "versions", lock_file=folder / "lock", **options)  # type: ignore[arg-type]


def temporaries(folder: Path) -> list[str]:
    """List leftover temporary files of documents and versions."""
    return sorted(path.name for path in folder.rglob("*tmp~*"))


@pytest.fixture
def store(tmp_path: Path) -> FileDocumentStore:
    """A store in an empty folder."""
    return store_in(tmp_path)


# Replacing


@given(text=TEXTS, then=TEXTS)
def test_document_holds_what_was_written(tmp_path_factory: pytest.TempPathFactory, text: str, then: str) -> None:
    """Any text, including invalid UTF-8, is read back as written, in a new document and over an old one.

    A mixture of encodings is refused, and the old text stays.
    """
    folder = tmp_path_factory.mktemp("documents")
    store, path = store_in(folder), folder / "a.md"
    store.replace(path, text, expected=None, name="x")
    assert store.read(path) == text
    try:
        store.replace(path, then, expected=text, name="x")
    except DocumentError:
        assert not then.isascii()
        then = text
    assert store.read(path) == then
    assert temporaries(folder) == []


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_a_replaced_document_keeps_its_access_rights(store: FileDocumentStore, tmp_path: Path, mode: int) -> None:
    """Replacing a document keeps its access rights, which its versions have as well."""
    path = tmp_path / "a.md"
    path.write_text("old")
    path.chmod(mode)
    store.replace(path, "new", expected="old", name="x")
    assert path.stat().st_mode & 0o777 == mode
    for rights, kept_rights in ((mode, mode), (0o440, 0o640)):
        path.chmod(rights)
        kept = store.keep_version("a", "old", time=NOON, author=Author.PERSON, reason=VersionReason.EDIT, like=path)
        assert Path(kept.path).stat().st_mode & 0o777 == kept_rights


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_what_is_written_for_a_missing_document_is_as_private(
    store: FileDocumentStore, tmp_path: Path, mode: int
) -> None:
    """A document that is written anew, its versions and other new documents have no right that its versions lacked."""
    path = tmp_path / "a.md"
    path.write_text("old")
    path.chmod(mode)
    for _ in range(2):
        store.keep_version("a", "old", time=NOON, author=Author.MACHINE, reason=VersionReason.EDIT, like=path)
        path.unlink(missing_ok=True)
    for name in ("a.md", "b.md"):
        store.replace(tmp_path / name, "new", expected=None, name="x")
    files = [path, tmp_path / "b.md", *(tmp_path / "versions").iterdir()]
    assert [each.stat().st_mode & 0o777 for each in files] == [mode] * 4


@pytest.mark.parametrize("point", ["x.write.after", "x.rename.before", "version.write.after", "version.rename.before"])
def test_write_that_stops_leaves_what_was_there(tmp_path: Path, point: str) -> None:
    """A write interrupted before its rename leaves the old document, no version and no temporary file."""
    path, store = tmp_path / "a.md", store_in(tmp_path, write_point=killing([point]))
    path.write_text("old")
    writes: dict[str, Callable[[], object]] = {
        "x": lambda: store.replace(path, "new", expected="old", name="x"),
        "version": lambda: store.keep_version(
            "a", "old", time=NOON, author=Author.MACHINE, reason=VersionReason.REFRESH, like=path
        ),
    }
    with pytest.raises(KeyboardInterrupt):
        writes[point.partition(".")[0]]()
    assert (path.read_text(), store.versions("a")) == ("old", [])
    assert temporaries(tmp_path) == []


# Appends


def _failing_write(monkeypatch: pytest.MonkeyPatch, after_bytes: int) -> None:
    """Make `os.write` fail with a full disk after so many bytes."""
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
    """An append that fills the disk half-way is undone; once there is room, the next append succeeds."""
    path = tmp_path / "a.md"
    path.write_text("one\n")
    with monkeypatch.context() as patch:
        _failing_write(patch, 3)
        with pytest.raises(StorageFullError) as error:
            store.append(path, "two, which is longer\n", name="x")
    assert str(error.value) == (
        f"appending to {path}: No space left on device; free some space and try again; nothing recorded is lost"
    )
    assert path.read_text() == "one\n"
    store.append(path, "two\n", name="x")
    assert path.read_text() == "one\ntwo\n"


def test_nothing_appended_mixes_encodings(store: FileDocumentStore, tmp_path: Path) -> None:
    """To a document in Windows-1252 only ASCII is appended; a stray byte in UTF-8 refuses nothing."""
    path = tmp_path / "a.md"
    path.write_bytes("Öl und Käse\n".encode("cp1252"))
    with pytest.raises(DocumentError, match=r"a\.md is not UTF-8; save it as UTF-8; until then it is read"):
        store.append(path, "süß\n", name="x")
    store.append(path, "more\n", name="x")
    assert path.read_bytes() == "Öl und Käse\nmore\n".encode("cp1252")
    path.write_bytes("Öl und Käse\n".encode() + b"\xe9\n")
    store.append(path, "süß\n", name="x")
    assert path.read_bytes() == "Öl und Käse\n".encode() + b"\xe9\n" + "süß\n".encode()


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
    """A listed version has its document, time to the microsecond, author, reason, size and text as kept."""
    store = store_in(tmp_path_factory.mktemp("versions"))
    time = (moment.replace(tzinfo=UTC) + timedelta(hours=hours)).astimezone(UTC)
    kept = store.keep_version(document, text, time=time, author=author, reason=reason, like=Path(document))
    Path(kept.path).with_name(f"{document}.20251315T000000.000000Z.000009.person.edit.md").touch()  # no such month
    assert (kept.document, kept.time, kept.author, kept.reason) == (document, time, author, reason)
    assert kept.size_bytes == len(text.encode("utf-8", "surrogateescape"))
    assert store.versions(document) == [kept]
    assert store.read_version(kept) == text


# After a kill


def test_sweep_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    """Sweeping removes temporary files of documents and versions and nothing else, not even hidden files."""
    code = (
        "store.keep_version('a', 'old', time=datetime.now(UTC), author=Author.MACHINE, reason=VersionReason.EDIT,"
        " like=folder / 'a.md')\n"
        "store.replace(folder / 'a.md', 'text', expected=None, name='x')\n"
    )
    for point in ("version.fsync.after", "x.fsync.after"):
        python(STORE + code, tmp_path, point, status=-signal.SIGKILL)
    (tmp_path / ".hidden.md").write_text("mine")
    assert len(temporaries(tmp_path)) == 2
    store_in(tmp_path).sweep((tmp_path, tmp_path / "missing"))
    (version,) = (tmp_path / "versions").iterdir()
    assert sorted(path.name for path in tmp_path.rglob("*.md*")) == [".hidden.md", version.name]


# Locks


def test_lock_of_another_process_is_waited_for_and_told(tmp_path: Path) -> None:
    """Waiting too long for another process's lock raises an error; the lock is free once its holder dies."""
    store = store_in(tmp_path, lock_timeout_s=0.2)
    holding = "with store.lock():\n    print('held', flush=True); time.sleep(60)\n"
    with start("-c", STORE + holding, tmp_path) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        begun = time.monotonic()
        with pytest.raises(LockTimeoutError) as error, store.lock():
            pass
        assert 0.2 <= time.monotonic() - begun < 5
        holder.kill()
        holder.wait()
    assert str(error.value) == (
        f"process {holder.pid} has locked {tmp_path / 'lock'} for 0.2 s; end that process if it hangs, or see "
        "storage.lock_timeout_s"
    )
    assert (tmp_path / "lock").exists()
    with store.lock():
        pass


# Places: files and links

TEXT = "---\nformat: 1\n---\n\n# Plan\n\n- a line\n"


@pytest.fixture
def placed(tmp_path: Path) -> FileDocumentStore:
    """The store of a memory whose documents are in `home/memory`."""
    memory = tmp_path / "home" / "memory"
    memory.mkdir(parents=True)
    return FileDocumentStore(versions=memory / "versions", lock_file=tmp_path / "home" / "lock")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a document in that memory."""
    return tmp_path / "home" / "memory" / "plan.md"


def test_what_goes_this_instant_is_not_there(
    placed: FileDocumentStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file moved away while it is being read counts as missing: it is no fault and has no text."""
    read = Path.read_bytes

    def read_and_move_away(file: Path) -> bytes:
        data = read(file)
        file.rename(file.with_name("plan.md~"))
        return data

    monkeypatch.setattr(Path, "read_bytes", read_and_move_away)
    for look in (placed.read_to_change, placed.faults):
        path.write_text(TEXT)
        assert not look(path)


def test_only_where_nothing_stands_in_the_way_is_a_document_for_gone(
    placed: FileDocumentStore, path: Path, tmp_path: Path
) -> None:
    """A dangling link counts as a missing document only if its target is inside the memory's home and not itself.

    Such a link is followed: its target is read and written, and the link stays.
    """
    assert placed.state(path) is None
    for target in ("inside.txt", path.parents[1] / "inside.md"):
        path.unlink(missing_ok=True)
        path.symlink_to(target)
        assert placed.state(path) is None
        placed.replace(path, TEXT, expected=None, name="x")
        assert placed.read_to_change(path) == TEXT
        placed.replace(path, "new\n", expected=TEXT, name="x")
        placed.append(path, "more\n", name="x")
        assert path.is_symlink()
        assert path.read_text() == "new\nmore\n"
    for target in (tmp_path / "outside.md", path.name):
        path.unlink()
        path.symlink_to(target)
        state = placed.state(path)
        assert state is not None
        assert state == placed.state(path)

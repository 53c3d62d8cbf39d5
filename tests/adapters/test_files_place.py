"""What may stand in a document's place: what is not to be read or written there is left as it is, and told in words."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestra_mem.adapters.files import FileDocumentStore
from orchestra_mem.core.documents.damage import MOST_BYTES
from orchestra_mem.errors import DocumentError, StorageError, StorageReadOnlyError
from orchestra_mem.types import Author, VersionReason

TEXT = "---\nformat: 1\n---\n\n# Plan\n\n- a line\n"


@pytest.fixture
def store(tmp_path: Path) -> FileDocumentStore:
    """The store of a memory whose documents lie in `home/memory`."""
    memory = tmp_path / "home" / "memory"
    memory.mkdir(parents=True)
    return FileDocumentStore(versions=memory / "versions", lock_file=tmp_path / "home" / "lock")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a document is meant to lie."""
    return tmp_path / "home" / "memory" / "plan.md"


def _told(store: FileDocumentStore, path: Path) -> list[str]:
    return [f"{fault}: {fault.meanwhile}" for fault in store.faults(path)]


def _changes(store: FileDocumentStore, path: Path, expected: str | None) -> list[Callable[[], object]]:
    return [
        lambda: store.replace(path, "new", expected=expected, name="x"),
        lambda: store.append(path, "more", name="x"),
        lambda: store.read_to_change(path),
    ]


@pytest.mark.parametrize("there", [True, False])
def test_link_that_leads_out_is_neither_read_nor_written_through(
    store: FileDocumentStore, path: Path, tmp_path: Path, there: bool
) -> None:
    """Also where nothing is at its end yet; link and target stay as they are."""
    outside = tmp_path / "outside.md"
    if there:
        outside.write_text(TEXT)
    path.symlink_to(outside)
    words = (
        f"{path} is a symbolic link that leads out of the memory, to {outside}: nothing is read or written there; put "
        "the document itself in its place"
    )
    reads = [lambda: store.read(path), lambda: store.read_shown(path)]
    for call in [*reads, *_changes(store, path, TEXT if there else None)]:
        with pytest.raises(DocumentError) as refused:
            call()
        assert str(refused.value) == words
    assert store.read_settled(path) is None
    assert _told(store, path) == [words]
    assert path.is_symlink()
    assert (outside.read_text() if there else None, outside.exists()) == (TEXT if there else None, there)


def test_link_within_the_memory_is_followed_and_stays(store: FileDocumentStore, path: Path) -> None:
    """To the folder beside too; what it leads to is read and written."""
    sessions = path.parents[1] / "sessions"
    sessions.mkdir()
    for target in (path.with_name("kept.txt"), sessions / "kept.md"):
        target.write_text(TEXT)
        path.unlink(missing_ok=True)
        path.symlink_to(os.path.relpath(target, path.parent))
        assert store.read_to_change(path) == TEXT
        store.replace(path, "new\n", expected=TEXT, name="x")
        store.append(path, "more\n", name="x")
        assert target.read_text() == "new\nmore\n"
        assert path.is_symlink()


def test_document_marked_as_read_only_is_read_and_not_written(store: FileDocumentStore, path: Path) -> None:
    """The mark counts, not what this user may do; once it is gone the document is written again."""
    path.write_text(TEXT)
    path.chmod(0o444)
    words = (
        f"{path} is marked as read-only: it is served, and left as it is; for the machine to go on with it, give this "
        "user the right to write there (chmod u+w)"
    )
    for call in _changes(store, path, TEXT):
        with pytest.raises(StorageReadOnlyError) as refused:
            call()
        assert str(refused.value) == words
    assert _told(store, path) == [words]
    assert (store.read(path), store.read_shown(path), store.read_settled(path)) == (TEXT,) * 3
    assert (path.read_text(), path.stat().st_mode & 0o777) == (TEXT, 0o444)
    path.chmod(0o644)
    store.replace(path, "new", expected=store.read_to_change(path), name="x")
    assert path.read_text() == "new"


def test_a_version_may_be_of_any_size(store: FileDocumentStore) -> None:
    """A document over the limit is not read, what is kept of it is."""
    text, now = "A line that somebody has pasted.\n" * 150_000, datetime(2025, 1, 1, tzinfo=UTC)
    assert len(text) > MOST_BYTES
    version = store.keep_version("plan", text, time=now, author=Author.PERSON, reason=VersionReason.EDIT)
    assert store.read_version(version) == text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            TEXT.encode("utf-16"),
            "{} is UTF-16, not UTF-8; save it as UTF-8; until then it is served, and left as it is",
        ),
        (b"a\n\0\n", "{}:2: a NUL byte; delete it; until then it is served, and left as it is"),
    ],
)
def test_what_is_no_text_is_not_changed_by_the_machine(
    store: FileDocumentStore, path: Path, data: bytes, words: str
) -> None:
    """A person's own command may still put another text in its place."""
    path.write_bytes(data)
    with pytest.raises(DocumentError) as refused:
        store.read_to_change(path)
    assert str(refused.value) == words.format(path)
    assert store.read_settled(path) is None
    store.replace(path, TEXT, expected=store.read(path), name="x")
    assert store.read_to_change(path) == store.read_settled(path) == TEXT


@pytest.mark.parametrize(("make", "what"), [(os.mkfifo, "is no file"), (os.mkdir, "is a folder")])
def test_what_is_no_file_is_left_alone_and_not_waited_for(
    store: FileDocumentStore, path: Path, make: Callable[[Path], None], what: str
) -> None:
    """A pipe would hold up who opens it; a folder stays as well."""
    make(path)
    words = f"{path} {what}: nothing is read or written there; move it away"
    for call in (lambda: store.read(path), lambda: store.read_shown(path), *_changes(store, path, None)):
        with pytest.raises(StorageError) as refused:
            call()
        assert str(refused.value) == words
    assert store.read_settled(path) is None
    assert path.exists()
    assert not path.is_file()


def test_what_is_not_there_has_no_fault(store: FileDocumentStore, path: Path) -> None:
    """It reads as none in each way."""
    assert (store.read(path), store.read_shown(path), store.read_to_change(path), store.read_settled(path)) == (
        None,
    ) * 4
    assert store.faults(path) == []


def test_what_goes_this_instant_is_not_there(
    store: FileDocumentStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor moves its file away between two looks at it: no fault, and nothing to change."""
    read = Path.read_bytes

    def read_and_move_away(file: Path) -> bytes:
        data = read(file)
        file.rename(file.with_name("plan.md~"))
        return data

    monkeypatch.setattr(Path, "read_bytes", read_and_move_away)
    for look in (store.read_to_change, store.faults):
        path.write_text(TEXT)
        assert not look(path)


@pytest.mark.parametrize("target", ["plan.md", "file.md/plan.md"])
def test_link_that_cannot_be_followed_is_left_as_it_is(store: FileDocumentStore, path: Path, target: str) -> None:
    """One that leads back to itself, say: that is told like any other that leads to no document."""
    path.with_name("file.md").write_text(TEXT)
    path.symlink_to(target)
    (words,) = _told(store, path)
    assert words.startswith(f"{path} is a symbolic link that leads nowhere (")
    assert words.endswith("): nothing is read or written there; put the document itself in its place")
    for call in [lambda: store.read(path), lambda: store.read_shown(path), *_changes(store, path, None)]:
        with pytest.raises(DocumentError) as refused:
            call()
        assert str(refused.value) == words
    assert store.read_settled(path) is None
    assert os.readlink(path) == target


def test_only_where_nothing_stands_in_the_way_is_a_document_for_gone(
    store: FileDocumentStore, path: Path, tmp_path: Path
) -> None:
    """A link that nothing may be written through stands in the way, though it leads to nothing; others are followed."""
    assert store.state(path) is None
    for target in ("inside.txt", path.parents[1] / "inside.md"):
        path.unlink(missing_ok=True)
        path.symlink_to(target)
        assert store.state(path) is None
        store.replace(path, TEXT, expected=None, name="x")
        assert path.is_symlink()
        assert store.read(path) == TEXT
    for target in (tmp_path / "outside.md", path.name):
        path.unlink()
        path.symlink_to(target)
        state = store.state(path)
        assert state is not None
        assert state == store.state(path)

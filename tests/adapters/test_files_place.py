"""Valid places of a document: files and links; invalid ones are in `tests/test_bad_documents.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestra_mem.adapters.files import FileDocumentStore

TEXT = "---\nformat: 1\n---\n\n# Plan\n\n- a line\n"


@pytest.fixture
def store(tmp_path: Path) -> FileDocumentStore:
    """The store of a memory whose documents are in `home/memory`."""
    memory = tmp_path / "home" / "memory"
    memory.mkdir(parents=True)
    return FileDocumentStore(versions=memory / "versions", lock_file=tmp_path / "home" / "lock")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a document in that memory."""
    return tmp_path / "home" / "memory" / "plan.md"


def test_what_goes_this_instant_is_not_there(
    store: FileDocumentStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file moved away while it is being read counts as missing: it is no fault and has no text."""
    read = Path.read_bytes

    def read_and_move_away(file: Path) -> bytes:
        data = read(file)
        file.rename(file.with_name("plan.md~"))
        return data

    monkeypatch.setattr(Path, "read_bytes", read_and_move_away)
    for look in (store.read_to_change, store.faults):
        path.write_text(TEXT)
        assert not look(path)


def test_only_where_nothing_stands_in_the_way_is_a_document_for_gone(
    store: FileDocumentStore, path: Path, tmp_path: Path
) -> None:
    """A dangling link counts as a missing document only if its target is inside the memory's home and not itself.

    Such a link is followed: its target is read and written, and the link stays.
    """
    assert store.state(path) is None
    for target in ("inside.txt", path.parents[1] / "inside.md"):
        path.unlink(missing_ok=True)
        path.symlink_to(target)
        assert store.state(path) is None
        store.replace(path, TEXT, expected=None, name="x")
        assert store.read_to_change(path) == TEXT
        store.replace(path, "new\n", expected=TEXT, name="x")
        store.append(path, "more\n", name="x")
        assert path.is_symlink()
        assert path.read_text() == "new\nmore\n"
    for target in (tmp_path / "outside.md", path.name):
        path.unlink()
        path.symlink_to(target)
        state = store.state(path)
        assert state is not None
        assert state == store.state(path)

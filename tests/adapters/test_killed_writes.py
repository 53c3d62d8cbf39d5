"""A process killed while it replaces a document: what somebody saved at that instant stands at the next start."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestra_mem.adapters.files import FileDocumentStore
from orchestra_mem.ports import WritePoint
from orchestra_mem.types import VersionReason


class KilledError(BaseException):
    """In place of SIGKILL: nothing in the store handles it."""


def _store(folder: Path, write_point: WritePoint | None = None) -> FileDocumentStore:
    return FileDocumentStore(versions=folder / "versions", lock_file=folder / "lock", write_point=write_point)


def _killed_while_taking_back(folder: Path, when: str) -> Path:
    """Replace a document that an editor saves at the last instant, and be killed before or after that is put back."""
    path = folder / "plan.md"
    path.write_text("the machine's first\n", encoding="utf-8")

    def point(name: str) -> None:
        if name == "document.rename.before":
            path.write_text("a person's\n", encoding="utf-8")
        elif name == f"document.back.{when}":
            raise KilledError

    store = _store(folder, point)
    with store.lock(), pytest.raises(KilledError):
        store.replace(path, "the machine's second\n", expected="the machine's first\n", name="document")
    return path


def _swept(folder: Path) -> FileDocumentStore:
    store = _store(folder)
    with store.lock():
        assert store.sweep((folder,)) == 1
    assert not list(folder.rglob("*tmp~*"))
    return store


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_was_saved_over_goes_back_into_its_place(tmp_path: Path, when: str) -> None:
    """Whether or not the killed process has put it back itself; it is no version, as it is the document."""
    path = _killed_while_taking_back(tmp_path, when)
    store = _swept(tmp_path)
    assert path.read_text(encoding="utf-8") == "a person's\n"
    assert store.versions("plan") == []


def test_what_was_saved_since_stands_and_what_was_saved_over_is_a_version(tmp_path: Path) -> None:
    """Nothing that a person saved after the kill is replaced by what they saved before it."""
    path = _killed_while_taking_back(tmp_path, "before")
    path.write_text("a person's later\n", encoding="utf-8")
    store = _swept(tmp_path)
    assert path.read_text(encoding="utf-8") == "a person's later\n"
    (version,) = store.versions("plan")
    assert version.reason is VersionReason.CONFLICT
    assert store.read_version(version) == "a person's\n"

"""What has changed in documents while they are watched: the texts as last seen, and the lines that differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from orchestra_mem.core.documents.alignment import matched_lines, split_lines
from orchestra_mem.types import FileState

# Larger documents are said to have changed, and no more.
_MOST_BYTES = 50_000_000


class Event(StrEnum):
    """What has become of a document."""

    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChange:
    """The lines that differ, each behind `+` or `-`, in their order."""

    lines: tuple[str, ...] = ()

    @property
    def added(self) -> int:
        """How many lines came."""
        return sum(line.startswith("+") for line in self.lines)

    @property
    def removed(self) -> int:
        """How many lines went."""
        return sum(line.startswith("-") for line in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChange:
    """What has become of a document since it was last seen."""

    path: Path
    event: Event
    change: TextChange


def text_change(before: str, after: str) -> TextChange:
    """Compare two texts line by line, whatever ends the lines."""
    return TextChange(lines=tuple(_differing(split_lines(before), split_lines(after))))


def _differing(old: list[str], new: list[str]) -> Iterator[str]:
    at = to = 0
    for one, other in [*matched_lines(old, new), (len(old), len(new))]:
        yield from (f"-{line}" for line in old[at:one])
        yield from (f"+{line}" for line in new[to:other])
        at, to = one + 1, other + 1


class SeenTexts:
    """The texts of the documents in some folders, as they were when they were last looked at."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._texts: dict[Path, str | None] = {}
        self.states: dict[Path, FileState] = {}
        for folder in folders:
            for path in folder.glob("[!.~]*.md"):
                self._begin(path)

    def _begin(self, path: Path) -> None:
        try:
            # Before it is read: whoever saves meanwhile is seen, if need be twice.
            status = path.stat()
        except OSError:
            return
        self.states[path] = FileState(status.st_ino, status.st_size, status.st_mtime_ns)
        self._texts[path] = _read(path)

    def look(self, path: Path) -> DocumentChange | None:
        """Look at a document again; None where it says what it said."""
        known, before = path in self._texts, self._texts.get(path)
        try:
            after = _read(path)
        except FileNotFoundError:
            if not known:
                return None
            del self._texts[path]
            return DocumentChange(path=path, event=Event.GONE, change=text_change(before or "", ""))
        self._texts[path] = after
        if after is None:
            return DocumentChange(path=path, event=Event.UNREADABLE, change=TextChange())
        if known and after == before:
            return None
        event = Event.CHANGED if known else Event.NEW
        return DocumentChange(path=path, event=event, change=text_change(before or "", after))


def _read(path: Path) -> str | None:
    """A document's text; None where it cannot be read, or is too much to be.

    Raises:
        FileNotFoundError: it is not there.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        raise
    except OSError:
        return None

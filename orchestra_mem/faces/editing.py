"""Documents that a person edits: run the editor, and detect changed documents by polling."""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.errors import ConfigError, ConfigFault
from orchestra_mem.memory.epochs import changed_lines

_STDERR = 2
# Larger documents are not read; their changes are reported as `UNREADABLE`, without lines.
_MOST_BYTES = 10_000_000
_UNREADABLE = object()


def run_editor(environ: Mapping[str, str], path: Path, *, aside: bool = False) -> int:
    """Run the editor named by `VISUAL` or `EDITOR` on a file, and wait for its end.

    Args:
        environ: Environment variables.
        path: File to edit.
        aside: Send the editor's output to stderr, because stdout is reserved for the result.

    Returns:
        Exit code of the editor, or the negative number of the signal that ended it.

    Raises:
        ConfigError: No editor is named, or it cannot be started.
    """
    variable = next((name for name in ("VISUAL", "EDITOR") if environ.get(name, "").strip()), None)
    if variable is None:
        advice = f"set one, for example EDITOR=vi, or open {path} in any editor: saved changes are read automatically"
        raise _fault("environment", f"neither VISUAL nor EDITOR names an editor; {advice}")
    named = environ[variable].strip()
    try:
        command = shlex.split(named)
    except ValueError as error:
        raise _fault(f"environment variable {variable}", f"{named!r} is not a command: {error}") from None
    # Ignore Ctrl-C here, but not by SIG_IGN: the editor would inherit that handler and ignore Ctrl-C as well.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.run([*command, str(path)], stdout=_STDERR if aside else None, check=False).returncode
    except OSError as error:
        problem = f"{command[0]!r} cannot be started: {error.strerror or error}"
        raise _fault(f"environment variable {variable}", problem) from error
    finally:
        signal.signal(signal.SIGINT, before)


def _fault(source: str, problem: str) -> ConfigError:
    return ConfigError((ConfigFault(source=source, key="", problem=problem),))


class DocumentEvent(StrEnum):
    """Kinds of changes to a document."""

    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChange:
    """Change of a document since it was last reported; each of `lines` begins with `+` or `-`."""

    path: Path
    event: DocumentEvent
    lines: list[str]

    @property
    def added(self) -> int:
        """Number of lines added."""
        return sum(line.startswith("+") for line in self.lines)

    @property
    def removed(self) -> int:
        """Number of lines removed."""
        return len(self.lines) - self.added


def differing_lines(before: str, after: str) -> list[str]:
    """Return the lines that differ, each prefixed with `-` or `+`; differences in line endings are ignored."""
    return list(changed_lines(split_lines(before), split_lines(after)))


class SeenTexts:
    """Detects changes of documents by polling their folders, which may be created, deleted or replaced meanwhile."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = tuple(folders)
        self._looked: dict[Path, object] = {}  # texts, or `_UNREADABLE`, as found by the latest poll
        self._looked = self._read()
        self._told = dict(self._looked)  # as last reported
        self._texts = {path: text for path, text in self._told.items() if isinstance(text, str)}  # the last readable

    def look(self) -> list[DocumentChange]:
        """Read the documents. Return a change when two polls in a row find the same text."""
        before, self._looked = self._looked, self._read()
        found = []
        for path in sorted(self._told.keys() | self._looked):
            now = self._looked.get(path)
            if now != self._told.get(path) and now == before.get(path):
                self._told[path] = now
                if now != self._texts.get(path):
                    found.append(self._change(path, now))
        return found

    def _read(self) -> dict[Path, object]:
        found: dict[Path, object] = {}
        for folder in self._folders:
            try:
                paths = [*folder.iterdir()]
            except OSError:
                paths = [path for path in self._looked if path.parent == folder]
            for path in paths:
                if path.suffix == ".md" and not path.name.startswith((".", "~$")):  # skip lock files of office programs
                    with suppress(FileNotFoundError, NotADirectoryError):
                        found[path] = _text(path)
        return found

    def _change(self, path: Path, now: object) -> DocumentChange:
        if now is _UNREADABLE:  # the last text that could be read is kept for the next comparison
            return DocumentChange(path=path, event=DocumentEvent.UNREADABLE, lines=[])
        before = self._texts.pop(path, None)
        if isinstance(now, str):
            self._texts[path] = now
        event = DocumentEvent.NEW if before is None else DocumentEvent.GONE if now is None else DocumentEvent.CHANGED
        return DocumentChange(path=path, event=event, lines=differing_lines(before or "", self._texts.get(path, "")))


def _text(path: Path) -> object:
    """Read a document's text; `_UNREADABLE` if it cannot be read or is too large.

    Raises:
        FileNotFoundError, NotADirectoryError: The document does not exist.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            return _UNREADABLE
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError:
        return _UNREADABLE

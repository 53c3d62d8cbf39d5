"""Documents that a person edits: run the editor, and detect changed documents by polling."""

from __future__ import annotations

import errno
import os
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
from orchestra_mem.types import FileState

_STDERR = 2
# Larger documents are not read; their changes are reported as `UNREADABLE`, without lines.
_MOST_BYTES = 50_000_000
# A document that keeps changing is reported after this number of polls.
_MOST_LOOKS = 3
# Errors that mean that the file does not exist; after any other error it may exist.
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


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
        command = shlex.split(named, posix=os.name != "nt")
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
        self._texts: dict[Path, str | None] = {}
        # States at the latest poll, and as last reported (None: deleted). Read before the texts, so no save is missed.
        self._looked: dict[Path, FileState] = {}
        self._looked = self._states()
        self._told: dict[Path, FileState | None] = {**self._looked}
        self._waits: dict[Path, int] = {}
        for path in self._looked:
            with suppress(FileNotFoundError):
                self._texts[path] = _read(path)

    def look(self) -> list[DocumentChange]:
        """Poll the files. Return a change when two polls in a row find the same state, or after `_MOST_LOOKS` polls."""
        before, now = self._looked, self._states()
        self._looked = now
        changed = sorted(path for path in self._told.keys() | now if self._told.get(path) != now.get(path))
        self._waits = {path: self._waits.get(path, 0) + 1 for path in changed}
        found = []
        for path in changed:
            if now.get(path) == before.get(path) or self._waits[path] >= _MOST_LOOKS:
                self._told[path] = now.get(path)
                del self._waits[path]
                found.append(self._change(path))
        return [change for change in found if change]

    def _states(self) -> dict[Path, FileState]:
        """Return the state of each document; a document that cannot be examined now keeps its previous state."""
        found = {}
        for folder in self._folders:
            try:
                paths = [folder / name for name in os.listdir(folder)]
            except OSError:
                paths = [path for path in self._looked if path.parent == folder]
            for path in paths:
                if path.suffix == ".md" and not path.name.startswith((".", "~$")):  # skip lock files of office programs
                    try:
                        status = path.stat()
                        found[path] = FileState(status.st_ino, status.st_size, status.st_mtime_ns)
                    except OSError as error:
                        if error.errno not in _ABSENT and path in self._looked:
                            found[path] = self._looked[path]
        return found

    def _change(self, path: Path) -> DocumentChange | None:
        """Reread a document and return its change; None if its text is the same."""
        is_known, before = path in self._texts, self._texts.get(path)
        try:
            after = _read(path)
        except FileNotFoundError:
            if not is_known:
                return None
            del self._texts[path]
            return DocumentChange(path=path, event=DocumentEvent.GONE, lines=differing_lines(before or "", ""))
        if after is None:  # the last text that could be read is kept for the next comparison
            self._texts.setdefault(path, None)
            return DocumentChange(path=path, event=DocumentEvent.UNREADABLE, lines=[])
        if is_known and after == before:
            return None
        self._texts[path] = after
        event = DocumentEvent.CHANGED if is_known else DocumentEvent.NEW
        return DocumentChange(path=path, event=event, lines=differing_lines(before or "", after))


def _read(path: Path) -> str | None:
    """Read a document's text; None if it cannot be read or is too large.

    Raises:
        FileNotFoundError: The document does not exist.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        raise
    except OSError:
        return None

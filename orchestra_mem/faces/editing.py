"""Documents that a person edits: running the editor, and which documents have changed."""

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
# Larger documents are said to have changed, and no more.
_MOST_BYTES = 50_000_000
# A document that is saved over and over is told of at this look, still or not.
_MOST_LOOKS = 3
# What says that a file is not there. Any other error says nothing of it.
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


def run_editor(environ: Mapping[str, str], path: Path, *, aside: bool = False) -> int:
    """Run the editor that a person has named on a file until it ends.

    Args:
        environ: where it is named.
        path: the file.
        aside: what it prints goes to stderr, as stdout is for something else.

    Returns:
        Its exit code, or the negative number of the signal that ended it.

    Raises:
        ConfigError: none is named, or it cannot be started.
    """
    variable = next((name for name in ("VISUAL", "EDITOR") if environ.get(name, "").strip()), None)
    if variable is None:
        advice = f"name one, as in EDITOR=vi, or open {path} in any editor: what you save there is read by itself"
        raise _fault("environment", f"neither VISUAL nor EDITOR names an editor; {advice}")
    named = environ[variable].strip()
    try:
        command = shlex.split(named, posix=os.name != "nt")
    except ValueError as error:
        raise _fault(f"environment variable {variable}", f"{named!r} is not a command: {error}") from None
    # Ctrl-C is left to the editor. A handler, not SIG_IGN: what is ignored would be ignored by the editor as well.
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
    """What has happened to a document."""

    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChange:
    """What has happened to a document since it was last seen; each differing line begins with `+` or `-`."""

    path: Path
    event: DocumentEvent
    lines: list[str]

    @property
    def added(self) -> int:
        """How many lines came."""
        return sum(line.startswith("+") for line in self.lines)

    @property
    def removed(self) -> int:
        """How many lines went."""
        return len(self.lines) - self.added


def differing_lines(before: str, after: str) -> list[str]:
    """Compare two texts line by line, whatever ends the lines."""
    return list(changed_lines(split_lines(before), split_lines(after)))


class SeenTexts:
    """The documents in some folders as they were last told of. The folders may come, go and be replaced meanwhile."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = tuple(folders)
        self._texts: dict[Path, str | None] = {}
        # Of the latest look, and as last told of (None: gone); before the texts are read, so that no save is missed.
        self._looked: dict[Path, FileState] = {}
        self._looked = self._states()
        self._told: dict[Path, FileState | None] = {**self._looked}
        self._waits: dict[Path, int] = {}
        for path in self._looked:
            with suppress(FileNotFoundError):
                self._texts[path] = _read(path)

    def look(self) -> list[DocumentChange]:
        """Look at the files, and tell of those that have changed once two looks in a row find the same."""
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
        """Find the documents and their states; what cannot be seen now counts as it was at the look before."""
        found = {}
        for folder in self._folders:
            try:
                paths = [folder / name for name in os.listdir(folder)]
            except OSError:
                paths = [path for path in self._looked if path.parent == folder]
            for path in paths:
                if path.suffix == ".md" and not path.name.startswith((".", "~$")):  # no lock file of an office program
                    try:
                        status = path.stat()
                        found[path] = FileState(status.st_ino, status.st_size, status.st_mtime_ns)
                    except OSError as error:
                        if error.errno not in _ABSENT and path in self._looked:
                            found[path] = self._looked[path]
        return found

    def _change(self, path: Path) -> DocumentChange | None:
        """Read a document again; None where it has not changed."""
        is_known, before = path in self._texts, self._texts.get(path)
        try:
            after = self._texts[path] = _read(path)
        except FileNotFoundError:
            if not is_known:
                return None
            del self._texts[path]
            return DocumentChange(path=path, event=DocumentEvent.GONE, lines=differing_lines(before or "", ""))
        if after is None:
            return DocumentChange(path=path, event=DocumentEvent.UNREADABLE, lines=[])
        if is_known and after == before:
            return None
        event = DocumentEvent.CHANGED if is_known else DocumentEvent.NEW
        return DocumentChange(path=path, event=event, lines=differing_lines(before or "", after))


def _read(path: Path) -> str | None:
    """Read a document's text; None where it cannot be read, or is too large.

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

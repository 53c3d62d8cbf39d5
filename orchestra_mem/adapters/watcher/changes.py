"""Which documents are not as they were last told of, and which of those are still enough to be read. No threads here.

Only equality of states counts: a clock that is set back, or an older file put in a newer one's place, changes nothing.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from orchestra_mem.types import FileState

# Seconds between two looks while something is changing: a part of the debounce time that a person does not notice.
STEP_S = 0.05
# A document that is saved over and over is told of at the first instant of stillness after the first, and as it is
# after the second; all in under a second, the last look included. Whoever reads it sees whether it is still open.
_LATEST_S = 0.5
_LAST_S = 0.7
# What says that a file is not there. Any other error says nothing of it: it counts as unchanged until it can be seen.
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


def is_document_name(name: str) -> bool:
    """Whether a file may be a document by its name; hidden files and lock files of editors and office programs are not.

    Backup, swap and temporary files that end otherwise (`x.md~`, `.x.md.swp`, `#x.md#`, `4913`) are none anyway.
    """
    return name.endswith(".md") and not name.startswith((".", "~$"))


@dataclass(slots=True)
class Change:
    """A document that is not as it was last told of. Times are of the monotonic clock."""

    state: FileState | None
    first: float
    since: float

    def is_ready(self, now: float, debounce_s: float) -> bool:
        """Return whether it is still enough to be read, or must be as it is."""
        age, still = now - self.first, now - self.since
        return still >= debounce_s or age >= _LAST_S or (age >= _LATEST_S and still >= STEP_S)


class Changes:
    """What was last told of each document, and which have changed since."""

    def __init__(
        self, folders: Iterable[str], *, debounce_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._debounce_s = debounce_s
        self._clock = clock
        self._lock = threading.Lock()
        # By folder and name. None: the document is known to be gone.
        self._known: dict[str, dict[str, FileState | None]] = {folder: {} for folder in folders}
        self._waiting: dict[str, dict[str, Change]] = {folder: {} for folder in self._known}

    @property
    def waiting(self) -> bool:
        """Whether some have changed and are not still enough to be told of."""
        return any(self._waiting.values())

    def expect(self, path: Path, state: FileState | None) -> None:
        """Take a document as known in a state."""
        folder = os.path.abspath(path.parent)
        if folder not in self._known or not is_document_name(path.name):
            return
        with self._lock:
            self._known[folder][path.name] = state
            # Who says this has seen what was there before; a look that is under way may have seen it as well.
            self._waiting[folder].pop(path.name, None)

    def begin(self) -> None:
        """Take the documents as known that nothing was told of yet."""
        for folder, known in self._known.items():
            found = self._scan(folder) or {}
            with self._lock:
                for name, state in found.items():
                    known.setdefault(name, state)

    def look(self) -> frozenset[Path]:
        """Compare all documents with what is known, and give those that can be told of; they count as told then."""
        began = self._clock()
        scans = {folder: self._scan(folder) for folder in self._known}
        now = self._clock()
        with self._lock:
            for folder, found in scans.items():
                if found is not None:
                    for name in self._known[folder].keys() | found.keys() | self._waiting[folder].keys():
                        self._compare(folder, name, found.get(name), now)
            return self._take(began)

    def _compare(self, folder: str, name: str, state: FileState | None, now: float) -> None:
        known, waiting = self._known[folder], self._waiting[folder]
        if state == known.get(name):
            waiting.pop(name, None)
            if state is None:
                known.pop(name, None)
        elif name not in waiting:
            waiting[name] = Change(state, now, now)
        elif state != waiting[name].state:
            waiting[name].state, waiting[name].since = state, now

    def _take(self, now: float) -> frozenset[Path]:
        """Give what is ready, all at once: what was changed together is told of together. The lock must be held."""
        every = [(folder, name, change) for folder in self._known for name, change in self._waiting[folder].items()]
        ready = [waiting for waiting in every if waiting[2].is_ready(now, self._debounce_s)]
        late = any(now - change.first >= _LATEST_S for _, _, change in ready)
        if not late and len(ready) < len(every):
            return frozenset()
        for folder, name, change in ready:
            self._known[folder][name] = change.state
            del self._waiting[folder][name]
        return frozenset(Path(folder, name) for folder, name, _ in ready)

    def _scan(self, folder: str) -> dict[str, FileState | None] | None:
        """The documents that are there, by name; None where that cannot be seen."""
        found: dict[str, FileState | None] = {}
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if is_document_name(entry.name):
                        found[entry.name] = self._state(folder, entry.name, entry.path)
        except OSError as error:
            return {} if error.errno in _ABSENT else None
        return found

    def _state(self, folder: str, name: str, path: str) -> FileState | None:
        try:
            status = os.stat(path)
        except OSError as error:
            return None if error.errno in _ABSENT else self._known[folder].get(name)
        return FileState(status.st_ino, status.st_size, status.st_mtime_ns)

"""The exceptions of this package.

    OrchestraMemError
    ├── ConfigError              settings are invalid; carries all faults
    ├── InvalidOperationError    an operation cannot be recorded; carries the path to the bad value
    ├── InvalidTimeError         a text is not a time, or a time has no time zone
    ├── InvalidItemError         a catalog item cannot be stored; carries all faults
    ├── AccessDeniedError        an agent lacks a permission
    ├── NotFoundError            an operation, summary, session, version or item does not exist
    ├── ClosedError              a memory was used after `close()`
    ├── TokenizerError           the requested token counter is not available
    ├── HistoryError             a history to import (git, JSON lines) cannot be read
    ├── SearchError              search is not available
    ├── EmbedderError            the embedding model is not available or failed
    ├── ModelError               the language model is not available or failed
    ├── ServerError              the HTTP server cannot start
    ├── InvalidChangeError       a change of a work item is not allowed
    │   └── CircularDependencyError  a work item would depend on itself
    └── StorageError             reading or writing failed
        ├── StorageFullError         no disk space, or over a quota
        ├── StorageReadOnlyError     no permission to write
        ├── DatabaseDamagedError     obra.db is not a database, or is corrupt
        ├── SchemaTooNewError        obra.db was written by a newer version
        ├── LockTimeoutError         another process or thread held a lock too long
        ├── ServerAwayError          the database server cannot be reached
        └── DocumentError            a markdown document cannot be used
            └── DocumentConflictError    another writer changed the document meanwhile

Each message names the failed action, its place and the values involved, and suggests the next step.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_LONG_QUOTE = re.compile(r"""(['"])((?:(?!\1).){60})(?:(?!\1).)+\1""")


class OrchestraMemError(Exception):
    """Base class of all errors of this package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFault:
    """One fault in a configuration. `line` counts from 1; 0 means a source without lines (environment, mapping)."""

    source: str
    key: str
    problem: str
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        return f"{place}: {self.key}: {self.problem}" if self.key else f"{place}: {self.problem}"


class ConfigError(OrchestraMemError):
    """The settings are invalid. `faults` holds all faults, not only the first."""

    def __init__(self, faults: tuple[ConfigFault, ...]) -> None:
        self.faults = faults
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        super().__init__(f"configuration has {count}:\n" + "\n".join(f"  {f}" for f in faults))


class InvalidOperationError(OrchestraMemError, ValueError):
    """An operation cannot be recorded. `path` locates the bad value, as in `data.files[3].size`."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")


class InvalidTimeError(OrchestraMemError, ValueError):
    """A text is not a time, or a time has no time zone."""


class InvalidItemError(OrchestraMemError, ValueError):
    """A catalog item cannot be stored. `faults` holds one message for each fault, with its field."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))


class AccessDeniedError(OrchestraMemError):
    """An agent may not read or change something. The message names the missing permission."""


class NotFoundError(OrchestraMemError, LookupError):
    """An operation, summary, session, version or item does not exist. Quoted names are cut to 60 characters."""

    def __init__(self, message: str) -> None:
        super().__init__(_LONG_QUOTE.sub(r"\1\2…\1", message))


class ClosedError(OrchestraMemError):
    """A memory was used after `close()`."""


class TokenizerError(OrchestraMemError):
    """The requested token counter is not available."""


class HistoryError(OrchestraMemError):
    """A history to import cannot be read."""


class SearchError(OrchestraMemError):
    """Search is not available: one of its libraries cannot be loaded."""


class EmbedderError(OrchestraMemError):
    """The embedding model is not available, or failed."""


class ModelError(OrchestraMemError):
    """The language model is not available, or failed to answer."""


class ServerError(OrchestraMemError):
    """The HTTP server cannot start."""


class InvalidChangeError(OrchestraMemError):
    """A change of a work item is not allowed: a forbidden transition, or a parent of the wrong kind."""


class CircularDependencyError(InvalidChangeError):
    """A work item would depend on itself. `path` holds the ids along the cycle; the last repeats the first."""

    def __init__(self, message: str, *, path: tuple[int, ...]) -> None:
        super().__init__(message)
        self.path = path


class StorageError(OrchestraMemError):
    """Reading or writing stored data failed."""


class StorageFullError(StorageError):
    """The disk is full, or a quota is used up."""


class StorageReadOnlyError(StorageError):
    """There is no permission to write."""


class DatabaseDamagedError(StorageError):
    """The database file is not a database of this program, or is corrupt."""


class SchemaTooNewError(StorageError):
    """The database was written by a newer version of this program."""


class LockTimeoutError(StorageError):
    """Another process or thread held a lock for too long."""


class ServerAwayError(StorageError):
    """The database server cannot be reached at the moment."""


class DocumentError(StorageError):
    """A markdown document cannot be used in its present form."""


class DocumentConflictError(DocumentError):
    """Another writer changed a document between reading and writing it."""


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


def storage_error(error: OSError, doing: str, path: Path) -> StorageError:
    """Translate an `OSError` raised while `doing` something (such as "reading") to `path`."""
    cause = error.strerror or str(error)
    if error.errno in _FULL:
        return StorageFullError(f"{doing} {path}: {cause}; free some space and try again; nothing recorded is lost")
    if error.errno in _READ_ONLY:
        right = "read" if doing in ("reading", "listing") else "write"
        return StorageReadOnlyError(f"{doing} {path}: {cause}; give this user the right to {right} there")
    return StorageError(f"{doing} {path}: {cause}")


@contextmanager
def telling(doing: str, path: Path) -> Iterator[None]:
    """Translate an `OSError` in the block by `storage_error`.

    Raises:
        StorageError: Instead of the `OSError`.
    """
    try:
        yield
    except OSError as error:
        raise storage_error(error, doing, path) from error


def lock_holder(file: Path, first_byte: int = 0) -> str:
    """Name the process that has locked a file, from its `first_byte`, for writing, as far as the system tells."""
    with suppress(OSError):
        inode = os.stat(file).st_ino
        # Reading the list: opening and closing the file itself would release this process's own locks on it.
        for *_, kind, pid, place, first, _ in map(str.split, Path("/proc/locks").read_text("ascii").splitlines()):
            if (kind, first) == ("WRITE", str(first_byte)) and place.endswith(f":{inode}") and int(pid) > 0:
                return "another part of this process" if int(pid) == os.getpid() else f"process {pid}"
    return "another process"


def database_error(error: Exception, text: str, *, kept: str) -> StorageError | None:
    """Translate the SQLite errors "full", "locked" and "read-only"; return None for all others.

    Args:
        error: The exception that SQLite raised.
        text: Start of the message: the action, the file and SQLite's own words.
        kept: Reassurance for the case of a full disk, such as "nothing recorded is lost".
    """
    code = getattr(error, "sqlite_errorname", "") or ""
    if code.startswith("SQLITE_FULL"):
        return StorageFullError(f"{text}; free some space and try again; {kept}")
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LockTimeoutError(f"{text}; another process has locked it for too long; see storage.busy_timeout_s")
    if code.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return StorageReadOnlyError(f"{text}; give this user the right to write there")
    return None

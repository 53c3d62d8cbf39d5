"""Every error that this package raises on purpose, and nothing else.

    OrchestraMemError
    ├── ConfigError              settings that cannot be used; carries every fault found
    ├── InvalidOperationError    an operation that cannot be recorded; carries the path to the value
    ├── InvalidItemError         an item of the catalog that cannot be stored; carries every fault found
    ├── AccessDeniedError        an agent asks for what it may not see or change
    ├── NotFoundError            an operation, summary, session or version that does not exist
    ├── ClosedError              a memory used after `close()`
    ├── TokenizerError           a token counter that was asked for cannot be had
    ├── HistoryError             a history to import (git, JSON lines) that cannot be read
    ├── SearchError              search cannot be had here
    ├── EmbedderError            a model that turns texts into vectors cannot be had
    ├── ServerError              the HTTP server cannot be started
    └── StorageError             something on disk
        ├── StorageFullError         no room, or over a quota
        ├── StorageReadOnlyError     no permission to write
        ├── DatabaseDamagedError     obra.db is not a database, or is corrupt
        ├── SchemaTooNewError        obra.db was written by a newer program
        ├── LockTimeoutError         another process held a lock too long
        ├── ServerAwayError          the database's server cannot be reached
        └── DocumentError            a markdown document that cannot be used as it stands
            └── DocumentConflictError    it was changed by someone else meanwhile

A message says what failed, both values, where, and what to do next.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_LONG_QUOTE = re.compile(r"""(['"])((?:(?!\1).){60})(?:(?!\1).)+\1""")


class OrchestraMemError(Exception):
    """Root of all errors of this package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFault:
    """One fault in a configuration: what is wrong, and where it stands.

    `line` counts from 1 and is 0 where the source has no lines (environment, a Python mapping).
    """

    source: str
    key: str
    problem: str
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        return f"{place}: {self.key}: {self.problem}" if self.key else f"{place}: {self.problem}"


class ConfigError(OrchestraMemError):
    """Settings that cannot be used. `faults` holds all of them, not only the first."""

    def __init__(self, faults: tuple[ConfigFault, ...]) -> None:
        self.faults = faults
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        super().__init__(f"configuration has {count}:\n" + "\n".join(f"  {f}" for f in faults))


class InvalidOperationError(OrchestraMemError, ValueError):
    """An operation that cannot be recorded. `path` leads to the value, as in `data.files[3].size`."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")


class InvalidItemError(OrchestraMemError, ValueError):
    """An item of the catalog that cannot be stored. `faults` holds all that is wrong, each with its field."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))


class AccessDeniedError(OrchestraMemError):
    """An agent asks for what it may not see or change; the missing permission is named."""


class NotFoundError(OrchestraMemError, LookupError):
    """An operation, summary, session or version that does not exist; quoted up to 60 characters."""

    def __init__(self, message: str) -> None:
        super().__init__(_LONG_QUOTE.sub(r"\1\2…\1", message))


class ClosedError(OrchestraMemError):
    """A memory was used after it had been closed."""


class TokenizerError(OrchestraMemError):
    """A token counter that was asked for cannot be had."""


class HistoryError(OrchestraMemError):
    """A history to import that cannot be read."""


class SearchError(OrchestraMemError):
    """Search cannot be had here: what it is made of cannot be loaded."""


class EmbedderError(OrchestraMemError):
    """A model that turns texts into vectors cannot be had, or does not work."""


class ModelError(OrchestraMemError):
    """A language model cannot be had, or does not answer."""


class ServerError(OrchestraMemError):
    """The HTTP server cannot be started."""


class InvalidChangeError(OrchestraMemError):
    """A change of a work item that may not be: a forbidden transition, a parent of the wrong kind."""


class CircularDependencyError(InvalidChangeError):
    """A work item would wait for itself. `path` are the ids along the circle, the first again at the end."""

    def __init__(self, message: str, *, path: tuple[int, ...]) -> None:
        super().__init__(message)
        self.path = path


class StorageError(OrchestraMemError):
    """Something on disk failed."""


class StorageFullError(StorageError):
    """There is no room on the disk, or a quota is used up."""


class StorageReadOnlyError(StorageError):
    """The place may not be written to."""


class DatabaseDamagedError(StorageError):
    """The database file is not one, or is corrupt."""


class SchemaTooNewError(StorageError):
    """The database was written by a newer version of the program."""


class LockTimeoutError(StorageError):
    """Another process held a lock for too long."""


class ServerAwayError(StorageError):
    """The database's server cannot be reached now."""


class DocumentError(StorageError):
    """A markdown document that cannot be used as it stands."""


class DocumentConflictError(DocumentError):
    """A document was changed by someone else between reading and writing."""


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


def storage_error(error: OSError, doing: str, path: Path) -> StorageError:
    """Translate an `OSError` that came up while `doing` something to `path`."""
    cause = error.strerror or str(error)
    if error.errno in _FULL:
        return StorageFullError(f"{doing} {path}: {cause}; free some space, then go on: nothing recorded is lost")
    if error.errno in _READ_ONLY:
        right = "read" if doing == "reading" else "write"
        return StorageReadOnlyError(f"{doing} {path}: {cause}; give this user the right to {right} there")
    return StorageError(f"{doing} {path}: {cause}")


def database_error(error: Exception, text: str, *, kept: str) -> StorageError | None:
    """Translate an error of SQLite's that means the same for every database; None for all others.

    Args:
        error: what was raised.
        text: what was done to which file, and what SQLite said.
        kept: what the reader may be sure of where there is no room.
    """
    code = getattr(error, "sqlite_errorname", "") or ""
    if code.startswith("SQLITE_FULL"):
        return StorageFullError(f"{text}; free some space, then go on: {kept}")
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LockTimeoutError(f"{text}; another process has held it for too long, see storage.busy_timeout_s")
    if code.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return StorageReadOnlyError(f"{text}; give this user the right to write there")
    return None

"""Files of an SQLite database: detect deleted or replaced files, and open a database that is read-only."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.errors import StorageError, storage_error

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory


class HeldFiles:
    """The database file, its write-ahead log and the log's index, as this process has opened them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: dict[Path, tuple[int, int]] = {}
        self.problem: str | None = None

    def hold(self) -> None:
        """Record the device and inode of each file."""
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):  # a read-only database is read from a copy or has no log
                path = self._path.with_name(self._path.name + suffix)
                self._held[path] = _identity(path)

    def check(self, doing: str) -> bool:
        """Check whether the log or its index was deleted, for example by a clean-up tool, and set `problem` if so.

        Returns True only once. The caller must then run a checkpoint, as later processes cannot read the deleted log.

        Raises:
            StorageError: A file was replaced, or the database is gone, so that new records could be lost.
        """
        for path, held in self._held.items():
            try:
                if _identity(path) == held:
                    continue
            except (FileNotFoundError, NotADirectoryError):
                if path != self._path and self.problem:
                    continue
                if path != self._path:
                    self.problem = (
                        f"{path} was deleted while it was in use: records are now written directly to "
                        f"{self._path.name}, which is slower; close this memory in all programs, then open it again"
                    )
                    return True
            except OSError:  # not accessible: SQLite reports the reason
                return False
            raise StorageError(
                f"{doing}: {path} was moved, deleted or replaced while it was open; recording has stopped, because new "
                "records could be lost with the old file; restore the old file or keep what is there now, then close "
                "this memory and open it again"
            )
        return False


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def readable(path: Path) -> tuple[str, TemporaryDirectory[str] | None]:
    """Return a URI under which SQLite can read a database, and the temporary folder to remove afterwards, if any.

    If SQLite cannot read the file in place, or the file has no tables, the URI names a copy in the temporary folder.
    """
    in_place = f"{path.absolute().as_uri()}?mode=ro"
    # If the log is empty or missing, nobody is writing: the file can be opened as immutable, which needs no log.
    for how in ("",) if _has_content(_log_of(path)) else ("", "&immutable=1"):
        if _has_tables(f"{in_place}{how}"):
            return f"{in_place}{how}", None
    from tempfile import TemporaryDirectory  # imported late: rarely needed

    folder = TemporaryDirectory(prefix="orchestra-mem-")
    copy = Path(folder.name) / path.name
    try:
        for source, target in ((path, copy), (_log_of(path), _log_of(copy))):
            if _has_content(source):
                shutil.copyfile(source, target)
    except OSError as error:
        folder.cleanup()
        raise storage_error(error, "copying", path) from error
    return copy.as_uri(), folder


def _has_tables(address: str) -> bool:
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            return connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is not None
    except sqlite3.Error as error:
        # Any other error is reported later, when the database is opened.
        return not error.sqlite_errorname.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY"))


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def is_in_use(path: Path) -> bool:
    """Check whether a program has a database file open, by ending its log, as only a sole connection can."""
    try:
        address = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=0)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        return error.sqlite_errorname.startswith("SQLITE_BUSY")
    return False

"""The files of a database: whether those that are open still stand in their places, and where it can be read."""

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
    """The database's file, its write-ahead log and the log's index, as this process holds them open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: dict[Path, tuple[int, int]] = {}
        self.problem: str | None = None

    def hold(self) -> None:
        """Remember which files these are."""
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):  # where it is read from a copy, or as it stands
                path = self._path.with_name(self._path.name + suffix)
                self._held[path] = _identity(path)

    def check(self, doing: str) -> bool:
        """Tell whether the log or its index is found to be deleted, as cleaners do; `problem` says so from then on.

        This process has both still, and nobody after it: what the log holds is to be copied into the database.

        Raises:
            StorageError: a file was replaced, or the database is gone: what is written to it may go with it.
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
                        f"{path} was deleted while it was in use: each record is written into {self._path.name} at "
                        "once instead, which takes longer; close this memory in every program, then open it again"
                    )
                    return True
            except OSError:  # it cannot be seen, so it is for SQLite to say what is wrong
                return False
            raise StorageError(
                f"{doing}: {path} was moved, deleted or replaced while it was open: nothing is recorded any more, as "
                "it might be lost with the old file; put that back or leave it as it is now, then close this memory "
                "and open it again"
            )
        return False


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def readable(path: Path) -> tuple[str, TemporaryDirectory[str] | None]:
    """Give the address that SQLite can read a database by.

    Where SQLite cannot read it in its place, or there is none, that is of a copy in a temporary folder.
    """
    in_place = f"{path.absolute().as_uri()}?mode=ro"
    if _has_content(path):
        if _is_readable(in_place):
            return in_place, None
        if not _has_content(_log_of(path)):
            # Nobody is writing the file: SQLite need not make a log of its own to read it.
            return f"{in_place}&immutable=1", None
    from tempfile import TemporaryDirectory  # here, as few projects ever need it

    folder = TemporaryDirectory(prefix="orchestra-mem-")
    copy = Path(folder.name) / path.name
    try:
        for source, target in ((path, copy), (_log_of(path), _log_of(copy))):
            if _has_content(source):
                shutil.copyfile(source, target)
    except OSError as error:
        folder.cleanup()
        raise storage_error(error, "copying to read it", path) from error
    return copy.as_uri(), folder


def _is_readable(address: str) -> bool:
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_schema")
    except sqlite3.Error as error:
        # Any other fault is told in words when the file is opened.
        return not error.sqlite_errorname.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY"))
    return True


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False

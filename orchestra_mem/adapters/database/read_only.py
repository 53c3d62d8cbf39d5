"""Reading obra.db where nothing may be written: without a lock or a log file of one's own."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.errors import storage_error

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory


def find_readable(path: Path) -> tuple[str, TemporaryDirectory[str] | None]:
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

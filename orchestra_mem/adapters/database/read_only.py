"""obra.db where nothing may be written: the same records, read without a lock or a log file of one's own."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.adapters.database.event_log import SqliteEventLog
from orchestra_mem.adapters.database.migrations import MIGRATIONS
from orchestra_mem.errors import StorageReadOnlyError, storage_error
from orchestra_mem.types import Session

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory


class ReadOnlyDatabase(Database):
    """A database that is read as it stands, and refuses to be written to.

    Where SQLite cannot read it in its place, or there is none, it is read from a copy in a temporary folder.

    Raises:
        StorageReadOnlyError: an older program has written it, so that it would have to be changed first.
    """

    def __init__(self, path: Path, *, busy_timeout_s: float = 30.0) -> None:
        self._copy: TemporaryDirectory[str] | None = None
        self._address = self._find(path)
        try:
            super().__init__(path, busy_timeout_s=busy_timeout_s)
        except BaseException:
            self._remove_copy()
            raise

    def _find(self, path: Path) -> str:
        """The address that SQLite can read the file by."""
        if not _has_content(path):
            return self._copied(path)
        in_place = f"{path.absolute().as_uri()}?mode=ro"
        if _readable(in_place):
            return in_place
        # Without a log beside it nobody is writing the file: SQLite need not make one of its own to read it.
        return self._copied(path) if _has_content(_log_of(path)) else f"{in_place}&immutable=1"

    def _copied(self, path: Path) -> str:
        from tempfile import TemporaryDirectory  # here, as few projects ever need it

        try:
            self._copy = TemporaryDirectory(prefix="orchestra-mem-")
            copy = Path(self._copy.name) / path.name
            for source, target in ((path, copy), (_log_of(path), _log_of(copy))):
                if _has_content(source):
                    shutil.copyfile(source, target)
            if not copy.exists():
                Database(copy).close()
        except OSError as error:
            self._remove_copy()
            raise storage_error(error, "copying to read it", path) from error
        return copy.as_uri()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self._address, uri=True, timeout=self._timeout_s, isolation_level=None, check_same_thread=False,
            cached_statements=64,
        )  # fmt: skip

    def _prepare(self) -> None:
        """Leave the journal's mode as it is."""

    def _migrate(self) -> None:
        version = self._check_ours(self._writer)
        if version < len(MIGRATIONS):
            raise StorageReadOnlyError(
                f"{self.path} has schema {version}, this program reads schema {len(MIGRATIONS)}; open it once where it "
                "may be written to"
            )

    def transaction(self, name: str) -> NoReturn:
        """Refuse.

        Raises:
            StorageReadOnlyError: always.
        """
        raise StorageReadOnlyError(
            f"{name}: {self.path}: this memory may be read and not be written; give this user the right to write "
            "there, then open it again"
        )

    def checkpoint(self) -> None:
        """Do nothing: there is nothing of ours to copy back."""

    def close(self) -> None:
        """Close all connections; safe to call twice."""
        super().close()
        self._remove_copy()

    def _remove_copy(self) -> None:
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None


class ReadOnlyEventLog(SqliteEventLog):
    """An event log in which nothing is begun or ended."""

    def flushing(self) -> list[tuple[Session, str]]:
        """None, as none can be brought to its end here; they stay as they are until somebody may write."""
        return []


def _readable(address: str) -> bool:
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

"""SQLite in WAL mode: the connection, transactions, migrations, and the translation of its errors.

What the tables mean lives in `event_log.py` and `ledger.py`. One connection writes, guarded by a lock; readers come
from a pool, so that a long listing never holds up a record.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestra_mem.adapters.database.migrations import APPLICATION_ID, MIGRATIONS
from orchestra_mem.errors import (
    ClosedError,
    DatabaseDamagedError,
    SchemaTooNewError,
    StorageError,
    database_error,
)
from orchestra_mem.ports import WritePoint

# A checkpoint copies the log back and waits for the disk. Refreshes make one; a record meets one only where 4,000 pages
# (16 MB) come together without a refresh. SQLite's default of 1,000 would put it near the 99th percentile.
_CHECKPOINT_PAGES = 4_000


class Database:
    """One SQLite file. Safe to share between threads; several processes may open the same file.

    Raises:
        DatabaseDamagedError: the file is no database of this program.
        SchemaTooNewError: a newer program has written it.
    """

    def __init__(
        self,
        path: Path,
        *,
        full_sync: bool = False,
        busy_timeout_s: float = 30.0,
        write_point: WritePoint | None = None,
    ) -> None:
        self.path = path
        self._timeout_s = busy_timeout_s
        self._full_sync = full_sync
        self._write_point = write_point
        self._lock = threading.RLock()
        self._depth = 0
        # A lock of its own: who reads does not wait for who writes.
        self._pool_lock = threading.Lock()
        self._readers: list[sqlite3.Connection] = []
        self._closed = False
        self._file: tuple[int, int] | None = None
        with self._translated("opening"):
            self._writer = self._connect()
            try:
                # Before anything is changed: another program's file stays as it is, its journal mode too.
                self._check_ours(self._writer)
                self._prepare()
                self._migrate()
                with suppress(FileNotFoundError):  # where it is read from a copy
                    self._file = _identity(path)
            except BaseException:
                self._writer.close()
                raise

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path, timeout=self._timeout_s, isolation_level=None, check_same_thread=False, cached_statements=64
        )

    def _check_ours(self, connection: sqlite3.Connection) -> int:
        """Give the schema's number, 0 for an empty file."""
        version = _pragma(connection, "user_version")
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if (version or tables) and _pragma(connection, "application_id") != APPLICATION_ID:
            raise DatabaseDamagedError(
                f"{self.path} is an SQLite database of another program; move it away or choose another folder"
            )
        if version > len(MIGRATIONS):
            raise SchemaTooNewError(
                f"{self.path} has schema {version}, this program knows schemas up to {len(MIGRATIONS)}; "
                "install the newer orchestra-mem that wrote it"
            )
        return version

    def _prepare(self) -> None:
        self._writer.execute("PRAGMA journal_mode = WAL")
        self._writer.execute(f"PRAGMA synchronous = {'FULL' if self._full_sync else 'NORMAL'}")
        self._writer.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")

    def _migrate(self) -> None:
        if self._check_ours(self._writer) == len(MIGRATIONS):
            return
        with self.transaction("migrate") as connection:
            # Asked again: another process may have done it meanwhile.
            version = self._check_ours(connection)
            for step in MIGRATIONS[version:]:
                for statement in step.split(";"):
                    connection.execute(statement)
            if version < len(MIGRATIONS):
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    @property
    def schema_version(self) -> int:
        """The number of the last migration that this file has seen."""
        with self.reading("reading the schema") as connection:
            return _pragma(connection, "user_version")

    @contextmanager
    def transaction(self, name: str) -> Iterator[sqlite3.Connection]:
        """Write within one transaction, all or nothing. May be nested: the outermost one commits."""
        with self._lock:
            connection = self._open_writer()
            try:
                if self._depth:
                    yield connection
                    return
                if connection.in_transaction:
                    # An earlier one could not even be rolled back. What it began must not swallow what comes now.
                    connection.execute("ROLLBACK")
                self._check_in_place(name)
                connection.execute("BEGIN IMMEDIATE")
                self._depth = 1
                try:
                    yield connection
                    self._tell(f"{name}.commit.before")
                    connection.execute("COMMIT")
                except BaseException:
                    _roll_back(connection)
                    raise
                finally:
                    self._depth = 0
            except sqlite3.Error as error:
                raise _translate(error, name, self.path) from error
            self._tell(f"{name}.commit.after")

    @contextmanager
    def reading(self, name: str) -> Iterator[sqlite3.Connection]:
        """Read what is committed; within this thread's own transaction, also what that has written."""
        with self._translated(name):
            connection = self._own_transaction()
            if connection is not None:
                yield connection
                return
            reader = self._take_reader()
            try:
                yield reader
            finally:
                self._give_back(reader)

    def in_transaction(self) -> bool:
        """Whether this thread is within a transaction of its own."""
        return self._own_transaction() is not None

    def _own_transaction(self) -> sqlite3.Connection | None:
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._writer if self._depth and not self._closed else None
        finally:
            self._lock.release()

    def _take_reader(self) -> sqlite3.Connection:
        with self._pool_lock:
            self._open_writer()
            if self._readers:
                return self._readers.pop()
        self._check_in_place("reading")  # a connection would make a new file
        reader = self._connect()
        reader.execute("PRAGMA query_only = ON")
        return reader

    def _give_back(self, reader: sqlite3.Connection) -> None:
        with self._pool_lock:
            if not self._closed:
                self._readers.append(reader)
                return
        reader.close()

    def change_count(self) -> int:
        """A number that differs whenever another connection has committed since. Microseconds."""
        with self._lock, self._translated("reading"):
            return _pragma(self._open_writer(), "data_version")

    def commit_count(self) -> tuple[int, int]:
        """What differs after every commit, by this connection or another. Microseconds."""
        with self._lock, self._translated("reading"):
            writer = self._open_writer()
            return _pragma(writer, "data_version"), writer.total_changes

    def check(self) -> str | None:
        """Look through the whole file; None where it is sound, else SQLite's words for the fault."""
        with self.reading("checking") as connection:
            result = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        return None if result == "ok" else result

    def checkpoint(self) -> None:
        """Copy the write-ahead log back into the file now, as far as readers let it, so that no record has to wait.

        Where the disk refuses, the next one does it: nothing depends on when.
        """
        with self._lock, suppress(sqlite3.Error):
            self._open_writer().execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Close all connections; safe to call twice."""
        with self._lock, self._pool_lock:
            if self._closed:
                return
            self._closed = True
            for connection in [*self._readers, self._writer]:
                connection.close()
            self._readers.clear()

    def _open_writer(self) -> sqlite3.Connection:
        if self._closed:
            raise ClosedError(f"the memory in {self.path.parent} has been closed")
        return self._writer

    def _check_in_place(self, doing: str) -> None:
        """Refuse where the file that is open no longer stands at its path: what is written to it may go with it."""
        try:
            if self._file is None or _identity(self.path) == self._file:
                return
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:  # it cannot be seen, so it is for SQLite to say what is wrong
            return
        raise StorageError(
            f"{doing}: {self.path} was moved, deleted or replaced while it was open: nothing is recorded any more, as "
            "it might be lost with the old file; put that back or leave it as it is now, then close this memory and "
            "open it again"
        )

    def _tell(self, point: str) -> None:
        if self._write_point is not None:
            self._write_point(point)

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _translate(error, doing, self.path) from error


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _roll_back(connection: sqlite3.Connection) -> None:
    """Undo a transaction. SQLite itself has done so after some errors (a full disk is one)."""
    if connection.in_transaction:
        # Where even this fails, the next transaction does it; the error that led here is the one to tell.
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


def _translate(error: sqlite3.Error, doing: str, path: Path) -> StorageError:
    code = getattr(error, "sqlite_errorname", "") or ""
    text = f"{doing}: {path}: {error}"
    if known := database_error(error, text, kept="nothing recorded is lost"):
        return known
    if code.startswith("SQLITE_CANTOPEN"):
        return StorageError(f"{text}; the folder must exist, and the file must not be a folder")
    if code.startswith("SQLITE_IOERR"):
        # SQLite does not pass on what the system said: a quota and a limit on file sizes look like a failing disk.
        return StorageError(f"{text}; free some space or lift the limit on it, else see whether the disk is failing")
    if code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return DatabaseDamagedError(
            f"{text}; move the file away and put back a copy: the documents beside it are whole"
        )
    return StorageError(text)

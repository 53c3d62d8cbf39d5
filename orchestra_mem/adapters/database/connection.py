"""The SQLite database, in WAL mode: connections, transactions, migrations and error translation.

One connection writes, guarded by a lock. Readers come from a pool, so that a long listing never delays a write.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from itertools import product
from pathlib import Path

from orchestra_mem.adapters.database.files import HeldFiles, readable
from orchestra_mem.adapters.database.migrations import APPLICATION_ID, MIGRATIONS
from orchestra_mem.adapters.database.project_key import moved_words
from orchestra_mem.errors import (
    DatabaseDamagedError,
    LockTimeoutError,
    SchemaTooNewError,
    StorageError,
    StorageReadOnlyError,
    database_error,
    lock_holder,
)
from orchestra_mem.ports import WritePoint
from orchestra_mem.stores.statements import SqlDatabase

# A checkpoint waits for the disk. Every refresh runs a checkpoint, so that recording an operation runs one only after
# 4,000 pages (16 MB) without a refresh. SQLite's default of 1,000 pages would show in the 99th percentile of latency.
_CHECKPOINT_PAGES = 4_000
REFUSALS = "SELECT name FROM sqlite_schema WHERE name GLOB 'moved_*'"  # the triggers of `Database.refuse_writes`
_AT_ONCE_MS = 50  # longer than other processes hold the write lock to record an operation


class Database(SqlDatabase):
    """An SQLite database file. Safe to share between threads; several processes may open the same file.

    With `read_only`, the file is read in place, or from a copy if that is impossible, and every write is refused.

    Raises:
        DatabaseDamagedError: The file is not a database of this program.
        SchemaTooNewError: A newer version of this program wrote the file.
        StorageReadOnlyError: `read_only` is set, and the file has an older schema, which needs a migration.
    """

    errors = sqlite3.Error
    columns_query = (
        "SELECT m.name, c.name, c.type = 'TEXT' FROM sqlite_schema m, pragma_table_info(m.name) c "
        "WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid"
    )
    schema_version = len(MIGRATIONS)

    def __init__(
        self,
        path: Path,
        *,
        full_sync: bool = False,
        busy_timeout_s: float = 30.0,
        write_point: WritePoint | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(str(path), write_point=write_point, read_only=read_only)
        self.path = path
        self._timeout_s = busy_timeout_s
        self._full_sync = full_sync
        # Separate from the write lock, so that readers do not wait for writers.
        self._pool_lock = threading.Lock()
        self._readers: list[sqlite3.Connection] = []
        self._files = HeldFiles(path)
        if os.path.exists(path) and not path.is_file():  # SQLite would report a disk error, or wait for the pipe
            what = "a folder" if path.is_dir() else "a pipe" if path.is_fifo() else "no regular file"
            raise StorageError(f"opening: {path} is {what}, not a database; move it away")
        with ExitStack() as opened, self._translated("opening"):
            self._address, copy = readable(path) if read_only else (path.absolute().as_uri(), None)
            if copy is not None:
                opened.callback(copy.cleanup)
            self._writer = self._connect()
            opened.callback(self._writer.close)
            self._prepare()
            self._opened = opened.pop_all()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._address, uri=True, timeout=self._timeout_s, isolation_level=None, check_same_thread=False,
            cached_statements=64,
        )  # fmt: skip
        connection.create_function("casefold", 1, str.casefold, deterministic=True)  # lower() handles ASCII only
        return connection

    def _prepare(self) -> None:
        # Check before any change: another program's file is left untouched, including its journal mode.
        version = self._check_ours()
        if not self.read_only:
            self._writer.execute("PRAGMA journal_mode = WAL")
            self._writer.execute(f"PRAGMA synchronous = {'FULL' if self._full_sync else 'NORMAL'}")
            self._writer.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        elif _has_tables(self._writer) and version < len(MIGRATIONS):
            raise StorageReadOnlyError(
                f"{self.path} has schema version {version}, but this program needs version {len(MIGRATIONS)}; open it "
                "once with write access to migrate it, or, if it is a backup, restore it into an empty folder"
            )
        if version < len(MIGRATIONS):
            # If read-only, this is the temporary copy of an empty database, which no other process has open.
            with nullcontext() if self.read_only else self.transaction("migrate"):
                # The database of a moved memory refuses writes, which a migration needs.
                marked = self._writer.execute(REFUSALS).fetchone()
                if words := moved_words(self) if marked else "":
                    self.refuse_writes("")
                # Check again: another process may have migrated the file in the meantime.
                for step in MIGRATIONS[self._check_ours() :]:
                    for statement in step.split(";"):
                        self._writer.execute(statement)
                self._writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._writer.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
                if words:
                    self.refuse_writes(words)
        self._files.hold()

    def _check_ours(self) -> int:
        """Return the schema version, 0 for an empty file; raise if the file belongs to another program."""
        version = _pragma(self._writer, "user_version")
        if (version or _has_tables(self._writer)) and _pragma(self._writer, "application_id") != APPLICATION_ID:
            raise DatabaseDamagedError(
                f"{self.path} is an SQLite database of another program; move it away or choose another folder"
            )
        if version > len(MIGRATIONS):
            raise SchemaTooNewError(
                f"{self.path} has schema version {version}, but this program supports versions up to "
                f"{len(MIGRATIONS)}; install the newer orchestra-mem that wrote it"
            )
        return version

    @contextmanager
    def _begun(self, name: str) -> Iterator[sqlite3.Connection]:
        writer = self._writer
        if writer.in_transaction:
            # An earlier transaction is still open, since its rollback failed: the new transaction must not join it.
            writer.execute("ROLLBACK")
        self._check_in_place(name)
        writer.execute("BEGIN IMMEDIATE")
        try:
            yield writer
            self._tell(f"{name}.commit.before")
            writer.execute("COMMIT")
            if self._files.problem:
                self.checkpoint()
        except BaseException:
            # SQLite rolls back by itself after some errors, such as a full disk. If this rollback fails, the next
            # transaction repeats the rollback, and the caller gets the original error.
            if writer.in_transaction:
                with suppress(sqlite3.Error):
                    writer.execute("ROLLBACK")
            raise

    @contextmanager
    def _snapshot_connection(self) -> Iterator[sqlite3.Connection]:
        self._writer.execute("BEGIN")
        try:
            self._writer.execute("SELECT 1 FROM sqlite_schema LIMIT 1")  # the snapshot starts at the first read
            yield self._writer
        finally:
            self._writer.execute("ROLLBACK")

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        with self._pool_lock:
            self._check_open()
            reader = self._readers.pop() if self._readers else None
        if reader is None:
            self._check_in_place("reading")  # connecting would create a new file
            reader = self._connect()
            reader.execute("PRAGMA query_only = ON")
        try:
            yield reader
        finally:
            with self._pool_lock:
                if self._closed:
                    reader.close()
                else:
                    self._readers.append(reader)

    def commit_count(self) -> tuple[int, int]:
        """Return two counters: commits by other connections, and rows changed by this one. Takes microseconds."""
        with self._lock, self._translated("reading"):
            self._check_open()
            return _pragma(self._writer, "data_version"), self._writer.total_changes

    def can_write_now(self) -> bool:
        """See `SqlDatabase.can_write_now`. Errors other than a lock also give True: the write itself reports them."""
        with self._lock:
            self._check_open()
            if self.read_only or self._current is not None:
                return True
            writer = self._writer
            writer.execute(f"PRAGMA busy_timeout = {_AT_ONCE_MS}")
            try:
                writer.execute("BEGIN IMMEDIATE")
                writer.execute("ROLLBACK")
            except sqlite3.Error as error:
                return not error.sqlite_errorname.startswith("SQLITE_BUSY")
            finally:
                writer.execute(f"PRAGMA busy_timeout = {int(self._timeout_s * 1000)}")
            return True

    def who_writes(self) -> str:
        """See `SqlDatabase.who_writes`."""
        return lock_holder(Path(f"{self.path}-shm"), first_byte=120)

    def check(self) -> str | None:
        """Check the integrity of the file; return None if it is sound, else SQLite's error message."""
        result = str(self.value("PRAGMA quick_check(1)"))
        return None if result == "ok" else result

    def checkpoint(self) -> None:
        """Copy the write-ahead log into the database now, as far as readers allow, so that no later write has to.

        A disk error is ignored: the next checkpoint copies the same pages.
        """
        with self._lock, suppress(sqlite3.Error):
            self._check_open()
            self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def compact(self) -> None:
        """Rewrite the file, so that no deleted or replaced data remain in it. Needs free disk space of the file's size.

        Raises:
            StorageError: The disk is too full, or refuses the write.
        """
        with self._lock, self._translated("compacting"):
            self._check_open()
            self._writer.execute("VACUUM")
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def refuse_writes(self, words: str) -> None:
        """See `SqlDatabase.refuse_writes`."""
        escaped = words.replace("'", "''")
        with self.transaction("copy") as connection:
            for table, event in product(self.tables(), ("INSERT", "UPDATE", "DELETE")):
                connection.execute(f"DROP TRIGGER IF EXISTS moved_{table}_{event}")
                if words:
                    connection.execute(
                        f"CREATE TRIGGER moved_{table}_{event} BEFORE {event} ON {table} "
                        f"BEGIN SELECT RAISE(ABORT, '{escaped}'); END"
                    )

    def close(self) -> None:
        """Close all connections; safe to call twice."""
        with self._lock, self._pool_lock:
            if self._closed:
                return
            self._closed, self._current = True, None
            # The connection closed last copies its log into the database. If the log was deleted while in use, a new
            # connection is closed last: only a new connection has opened the log that is now on disk.
            last = [self._connect()] if self._files.problem else []
            with suppress(sqlite3.Error):
                for connection in last:
                    connection.execute("SELECT 1 FROM sqlite_schema")
            for connection in [*self._readers, self._writer, *last]:
                connection.close()
            self._readers.clear()
            self._opened.close()

    def _check_in_place(self, doing: str) -> None:
        """Raise if an open file was replaced; run a checkpoint if only the log was deleted, to save the log's data."""
        if self._files.check(doing):
            self.checkpoint()

    @property
    def problem(self) -> str | None:
        """Message about a file that was deleted while in use; None if all files are in place."""
        return self._files.problem

    def _told(self, error: sqlite3.Error, doing: str) -> StorageError:
        code = getattr(error, "sqlite_errorname", "") or ""
        text = f"{doing}: {self.path}: {error}"
        if code.startswith("SQLITE_BUSY"):
            todo = "end that process if it hangs, or see storage.busy_timeout_s"
            return LockTimeoutError(f"{text}; locked by {self.who_writes()}: {todo}")
        if known := database_error(error, text, kept="nothing recorded is lost"):
            return known
        if code.startswith("SQLITE_IOERR"):
            # SQLite hides the system's error code, so an exceeded quota or file size limit looks like a failing disk.
            return StorageError(
                f"{text}; free some space, raise the quota or file size limit, or check whether the disk is failing"
            )
        if code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            return DatabaseDamagedError(
                f"{text}; move the file away and restore it from a backup; the documents next to it are intact"
            )
        return StorageError(f"{text}; its folder must exist" if code.startswith("SQLITE_CANTOPEN") else text)


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is not None


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])

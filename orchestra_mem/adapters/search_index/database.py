"""search.db: its schema, its connections and transactions, and what its errors mean.

One connection writes, one reads; SQLite keeps processes apart. What the tables hold is told beside the schema.
"""

from __future__ import annotations

import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from orchestra_mem.errors import (
    ClosedError,
    DatabaseDamagedError,
    StorageError,
    database_error,
)
from orchestra_mem.ports import WritePoint

APPLICATION_ID = 0x6F6D7369
FORMAT = 3

_SCHEMA = (
    # One row. `sequence` counts what was committed; `next_id` is the id of the next new chunk.
    "CREATE TABLE state (fingerprint TEXT NOT NULL, identity TEXT NOT NULL, sequence INTEGER NOT NULL,"
    " next_id INTEGER NOT NULL)",
    # Strings that many chunks share: kinds, agents, sessions, groups, words. UTF-8 that may hold lone surrogates.
    "CREATE TABLE name (id INTEGER PRIMARY KEY, text BLOB NOT NULL UNIQUE)",
    # For ranking: `importance`, `traits` (bits, see chunks.py), `words` (numbers of names, uint32). `record` is JSON of
    # what is only shown.
    "CREATE TABLE chunk (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, grp INTEGER NOT NULL,"
    " position INTEGER NOT NULL, importance REAL NOT NULL, traits INTEGER NOT NULL, words BLOB NOT NULL,"
    " record BLOB NOT NULL)",
    "CREATE INDEX chunk_place ON chunk (grp, position, id)",
    # How far whoever adds chunks has come.
    "CREATE TABLE mark (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # What filters and scores need of each chunk, packed; `changed` is the sequence of the last change.
    "CREATE TABLE page (number INTEGER PRIMARY KEY, changed INTEGER NOT NULL, data BLOB NOT NULL)",
    "CREATE INDEX page_changed ON page (changed)",
    # Runs of chunks whose postings stand together; segments do not overlap.
    "CREATE TABLE segment (id INTEGER PRIMARY KEY, first_id INTEGER NOT NULL, last_id INTEGER NOT NULL,"
    " chunks INTEGER NOT NULL)",
    # `docs` are chunk ids in ascending order (uint32), `weights` how much of the term each holds (uint8).
    "CREATE TABLE posting (segment INTEGER NOT NULL, term BLOB NOT NULL, docs BLOB NOT NULL, weights BLOB NOT NULL,"
    " PRIMARY KEY (segment, term)) WITHOUT ROWID",
    # `slot` is the bit that stands for the model in the pages. The files stand beside search.db: `file` holds the
    # vectors, `codes` the same in short, empty where there are none, trained on `trained_on` vectors.
    "CREATE TABLE model (slot INTEGER PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL,"
    " dimensions INTEGER NOT NULL, file TEXT NOT NULL, codes TEXT NOT NULL DEFAULT '',"
    " codes_crc INTEGER NOT NULL DEFAULT 0, trained_on INTEGER NOT NULL DEFAULT 0, UNIQUE (name, version, dimensions))",
    # What a model's tokenizer cuts names into, from the name `first` on: how many tokens each (uint16), all of them
    # (uint32), and how long the sums of their vectors are (float32).
    "CREATE TABLE word (first INTEGER PRIMARY KEY, model TEXT NOT NULL, counts BLOB NOT NULL, tokens BLOB NOT NULL,"
    " lengths BLOB NOT NULL)",
)

# A checkpoint waits for the disk; adding 10,000 chunks writes some 30 MB.
_CHECKPOINT_PAGES = 4_000
# Up to this size the whole file is looked through when it is opened: about 100 ms.
_CHECKED_BYTES = 32 << 20


class IndexDatabase:
    """One search.db. Safe to share between threads; several processes may open the same file.

    Args:
        path: the file; it is made where there is none.
        fingerprint: of everything that makes what is stored what it is; another one means another index.
        busy_timeout_s: how long to wait for another writer.
        write_point: is told of each commit.

    Raises:
        DatabaseDamagedError: the file cannot be used and has to be built anew.
    """

    def __init__(
        self, path: Path, *, fingerprint: str, busy_timeout_s: float = 30.0, write_point: WritePoint | None = None
    ) -> None:
        self.path = path
        self._timeout_s = busy_timeout_s
        self._write_point = write_point
        self._lock = threading.RLock()
        self._closed = False
        with self._translated("opening"):
            self._writer = self._connect()
            try:
                self._open(fingerprint)
                self._reader = self._connect()
                self._reader.execute("PRAGMA query_only = ON")
            except BaseException:
                self._writer.close()
                raise

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path, timeout=self._timeout_s, isolation_level=None, check_same_thread=False, cached_statements=64
        )

    def _open(self, fingerprint: str) -> None:
        self._writer.execute("PRAGMA journal_mode = WAL")
        self._writer.execute("PRAGMA synchronous = NORMAL")
        self._writer.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        if not _table_count(self._writer):
            with self.writing("create") as connection:
                if not _table_count(connection):  # no other process was quicker
                    _create(connection, fingerprint)
        if _pragma(self._writer, "application_id") != APPLICATION_ID:
            raise DatabaseDamagedError(f"{self.path} is no search index of this program")
        if _pragma(self._writer, "user_version") != FORMAT:
            raise DatabaseDamagedError(
                f"{self.path} has format {_pragma(self._writer, 'user_version')}, this program has {FORMAT}"
            )
        tables = {row[0] for row in self._writer.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}
        if tables != set(_SCHEMA):
            raise DatabaseDamagedError(f"{self.path} has other tables than this program makes")
        row = self._writer.execute("SELECT fingerprint FROM state").fetchone()
        if row is None or row[0] != fingerprint:
            raise DatabaseDamagedError(f"{self.path} was made by another version of the analysis of texts")
        if self.path.stat().st_size <= _CHECKED_BYTES and (fault := self._fault(self._writer)):
            raise DatabaseDamagedError(f"{self.path} is damaged: {fault}")

    def check(self) -> str | None:
        """Look through the whole file; None where it is sound, else SQLite's words for the fault."""
        with self._translated("checking"), closing(self._connect()) as connection:
            return self._fault(connection)

    @staticmethod
    def _fault(connection: sqlite3.Connection) -> str | None:
        result = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        return None if result == "ok" else " ".join(result.split())

    @contextmanager
    def writing(self, name: str) -> Iterator[sqlite3.Connection]:
        """Write within one transaction, all or nothing, alone among all processes."""
        with self._lock, self._translated(name):
            if self._closed:
                raise ClosedError(f"the search index {self.path} has been closed")
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self.tell(f"index.{name}.commit.before")
                self._writer.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                raise
            self.tell(f"index.{name}.commit.after")

    @contextmanager
    def reading(self, name: str) -> Iterator[sqlite3.Connection]:
        """Read one state of the file; the caller sees to it that there is one reader at a time."""
        with self._translated(name):
            if self._closed:
                raise ClosedError(f"the search index {self.path} has been closed")
            self._reader.execute("BEGIN")
            try:
                yield self._reader
            finally:
                with suppress(sqlite3.Error):
                    self._reader.execute("COMMIT")

    def close(self) -> None:
        """Close the connections; safe to call twice. No reading may be under way."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._reader.close()
                self._writer.close()

    def tell(self, point: str) -> None:
        """Tell the name of a step that changes the disk."""
        if self._write_point is not None:
            self._write_point(point)

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _translate(error, doing, self.path) from error
        except UnicodeDecodeError as error:  # SQLite's own message quotes what it has found
            raise damaged(f"{doing}: {self.path} holds unreadable names") from error


def damaged(text: str) -> DatabaseDamagedError:
    """Say what was found damaged, and what to do about it."""
    return DatabaseDamagedError(f"{text}; `orchestra-mem index --anew` makes it anew: it is derived, nothing is lost")


def bump(connection: sqlite3.Connection) -> int:
    """Give the number of the change that this transaction makes."""
    row = connection.execute("UPDATE state SET sequence = sequence + 1 RETURNING sequence").fetchall()
    return int(row[0][0])


def fits(connection: sqlite3.Connection, identity: str | None) -> bool:
    """Tell whether this is still the index of that identity; None is any."""
    return identity is None or connection.execute("SELECT identity FROM state").fetchone()[0] == identity


def _create(connection: sqlite3.Connection, fingerprint: str) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.execute("INSERT INTO state VALUES (?, ?, 0, 1)", (fingerprint, uuid.uuid4().hex))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def _table_count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _translate(error: sqlite3.Error, doing: str, path: Path) -> StorageError:
    code = getattr(error, "sqlite_errorname", "") or ""
    # Without a code: a text of the file's is no UTF-8.
    unreadable = isinstance(error, sqlite3.OperationalError) and not code
    text = f"{doing}: {path}: {error}"
    if known := database_error(error, text, kept="the index is derived, nothing is lost"):
        return known
    if unreadable or code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_ERROR", "SQLITE_SCHEMA")):
        # SQLITE_ERROR: a table is missing, as our statements themselves are sound.
        return damaged(text)
    return StorageError(text)

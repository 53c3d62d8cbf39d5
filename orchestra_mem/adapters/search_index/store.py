"""Open the files of the search index together: search.db, its columns in memory, and the vectors.

One connection writes, another reads, and SQLite isolates processes. Every read sees one consistent snapshot of all
files, whichever process wrote it. Damaged files are reported, deleted and recreated.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestra_mem.adapters.search_index import keyword
from orchestra_mem.adapters.search_index.chunks import Columns, clear_vectors, damaged
from orchestra_mem.adapters.search_index.inspection import APPLICATION_ID, FORMAT, format_fault, in_the_way, quick_check
from orchestra_mem.adapters.search_index.vectors import ModelRow, ModelVectors
from orchestra_mem.errors import (
    ClosedError,
    DatabaseDamagedError,
    LockTimeoutError,
    StorageError,
    database_error,
    telling,
)
from orchestra_mem.ports import WritePoint
from orchestra_mem.search_types import EmbeddingModel

logger = logging.getLogger(__name__)

_SCHEMA = (
    # One row. `sequence` counts committed changes; `next_id` is the id of the next new chunk.
    "CREATE TABLE state (fingerprint TEXT NOT NULL, identity TEXT NOT NULL, sequence INTEGER NOT NULL,"
    " next_id INTEGER NOT NULL)",
    # `key`, `agent`, `session` are UTF-8 that may hold lone surrogates. For ranking: `grp` (the group's
    # `string_number`), `importance`, `traits` (bits, see chunks.py), the number of `words`, and their `tokens`, NULL
    # until upkeep: the number of tokens of each word (uint16), the length of each word's vector (float32), and all
    # tokens (uint32). `record` is JSON of the fields that are only shown.
    "CREATE TABLE chunk (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, grp INTEGER NOT NULL,"
    " position INTEGER NOT NULL, importance REAL NOT NULL, agent BLOB, session BLOB, record BLOB NOT NULL,"
    " traits INTEGER NOT NULL, words INTEGER NOT NULL, tokens BLOB)",
    "CREATE INDEX chunk_place ON chunk (grp, position, id)",
    "CREATE INDEX chunk_uncut ON chunk (id) WHERE tokens IS NULL",
    # The terms of the chunks; neither texts nor positions are stored, see keyword.py.
    "CREATE VIRTUAL TABLE words USING fts5(tokens, content='', columnsize=0, detail=none, tokenize='ascii')",
    # Progress of the indexer.
    "CREATE TABLE mark (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # Packed fields of the chunks for filters and scores; `changed` is the `sequence` of the last change.
    "CREATE TABLE page (number INTEGER PRIMARY KEY, changed INTEGER NOT NULL, data BLOB NOT NULL)",
    "CREATE INDEX page_changed ON page (changed)",
    # `slot` is the model's bit in the pages; `file` is the file of its vectors in the folder of search.db.
    "CREATE TABLE model (slot INTEGER PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL,"
    " dimensions INTEGER NOT NULL, file TEXT NOT NULL, UNIQUE (name, version, dimensions))",
    # Answers of a model, see response_store.py. Texts are JSON, which can escape lone surrogates; times are seconds
    # since 1970; `vector` is float32.
    "CREATE TABLE response (id INTEGER PRIMARY KEY, facts TEXT NOT NULL, system TEXT NOT NULL,"
    " question TEXT NOT NULL, answer TEXT NOT NULL, kind TEXT NOT NULL, created REAL NOT NULL, expires REAL NOT NULL,"
    " used REAL NOT NULL, model TEXT, version TEXT, vector BLOB, UNIQUE (facts, system, question))",
)
_MADE = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'words!_%' ESCAPE '!'"

# A checkpoint waits for the disk, so it should be rare; adding 10,000 chunks writes about 20 MB.
_CHECKPOINT_PAGES = 4_000
# Up to this size the entire database is checked when it is opened: about 100 ms.
_CHECKED_BYTES = 32 << 20
_MODELS = 8  # each model has one bit of a byte
_TRIES = 3


class IndexStore:
    """The open files of an index folder. Safe to share between threads. See `DiskSearchIndex` for the arguments.

    `columns`, `models` and `identity` may be read only within `reading`. `problems` lists messages about deleted data.

    Raises:
        StorageError: The folder cannot be used.
    """

    def __init__(
        self, folder: Path, *, fingerprint: str, threads: int, busy_timeout_s: float, write_point: WritePoint | None
    ) -> None:
        self.folder = folder
        self.path = folder / "search.db"
        self.problems: list[str] = []
        self._fingerprint, self._threads, self._timeout_s = fingerprint, threads, busy_timeout_s
        # Called with the name of each step that changes the disk.
        self.tell: WritePoint = write_point or (lambda point: None)
        # Code that needs both locks must acquire them in this order.
        self._write_lock, self._lock = threading.RLock(), threading.RLock()
        self._closed = False
        self._open()

    # Opening and reopening

    def _open(self, *, anew: bool = False) -> None:
        for more in reversed(range(_TRIES)):
            try:
                with telling("opening", self.folder):
                    return self._open_once(anew=anew)
            except StorageError as error:
                # Retry only if the database was deleted meanwhile.
                if not more or self.path.exists() or in_the_way(self.folder) or isinstance(error, LockTimeoutError):
                    raise
        return None

    def _open_once(self, *, anew: bool) -> None:
        """Open the index; recreate it if `anew`, or if it is damaged and no other process has recreated it."""
        if found := in_the_way(self.folder):
            raise StorageError(f"{found[0]} {found[1]}; the search index is then rebuilt from the memory")
        self.folder.mkdir(parents=True, exist_ok=True)
        if not anew:
            with suppress(DatabaseDamagedError):
                return self._start()
        with self._file_lock():
            if not anew:
                try:
                    return self._start()
                except DatabaseDamagedError as error:
                    self._tell_problem(f"{error}; the search index is rebuilt")
            # Delete the log first: SQLite discards a log that has no database. An older format had files of codes.
            for pattern in ("search.db-*", "search.db", "vectors-*", "codes-*"):
                for path in self.folder.glob(pattern):
                    _discard(path)
            return self._start()

    def _start(self) -> None:
        """Open search.db and load the data kept in memory."""
        self._damage = ""
        self._sequence = -1
        self.columns = Columns()
        self.models: dict[EmbeddingModel, ModelVectors] = {}
        with self._translated("opening"):
            self._writer, self._reader = self._connect(), self._connect()
            try:
                self._prepare()
                self._inode = self.path.stat().st_ino
                self._reader.execute("PRAGMA query_only = ON")
                with self._snapshot() as connection:
                    self.identity = str(connection.execute("SELECT identity FROM state").fetchone()[0])
            except BaseException:
                self._disconnect()
                raise
        for model, kept in list(self.models.items()):
            if fault := kept.fault():
                self._tell_problem(f"{fault}; the vectors of {model.name} are rebuilt")
                self.drop_model(kept.row)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path, timeout=self._timeout_s, isolation_level=None, check_same_thread=False, cached_statements=64
        )

    def _prepare(self) -> None:
        writer = self._writer
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA synchronous = NORMAL")
        writer.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        if not writer.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            with self._transaction("create"):
                if not writer.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:  # no other process has
                    for statement in _SCHEMA:
                        writer.execute(statement)
                    writer.execute("INSERT INTO state VALUES (?, ?, 0, 1)", (self._fingerprint, uuid.uuid4().hex))
                    writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    writer.execute(f"PRAGMA user_version = {FORMAT}")
        fault = format_fault(writer)
        if fault is None and {row[0] for row in writer.execute(_MADE)} != set(_SCHEMA):
            fault = "has different tables than this program creates"
        if fault is None:
            row = writer.execute("SELECT fingerprint FROM state").fetchone()
            if row is None or row[0] != self._fingerprint:
                fault = "was made by another version of the text analysis"
        if fault is None and self.path.stat().st_size <= _CHECKED_BYTES and (verdict := quick_check(writer)):
            fault = f"is damaged: {verdict}"
        if fault is not None:
            raise DatabaseDamagedError(f"{self.path} {fault}")

    def _disconnect(self) -> None:
        self._reader.close()
        self._writer.close()

    @contextmanager
    def _file_lock(self) -> Iterator[None]:
        """Keep other processes from recreating the index."""
        from filelock import FileLock, Timeout  # slow to load and rarely needed

        path = self.folder / "index.lock"
        try:
            with FileLock(str(path), timeout=self._timeout_s):
                yield
        except Timeout:
            raise LockTimeoutError(f"another process has locked {path} for {self._timeout_s:g} s") from None

    def recreate(self) -> None:
        """Delete everything, for all processes."""
        with self._write_lock, self._lock:
            self._disconnect()
            self._open(anew=True)

    def close(self) -> None:
        """Close the files; safe to call twice."""
        self._closed = True
        with self._write_lock, self._lock:
            self._disconnect()
            self.models.clear()

    def _tell_problem(self, text: str) -> None:
        logger.warning("%s", text)
        self.problems.append(text)

    def _mend(self) -> None:
        """Reopen the index if another process has deleted or recreated it; recreate it if it was found damaged."""
        if self._closed:
            raise ClosedError(f"the search index in {self.folder} has been closed")
        if self._damage or not self._is_there():
            with self._write_lock, self._lock:
                if not self._is_there():
                    self._tell_problem(f"{self.folder} was deleted or recreated by another process")
                    self._disconnect()
                    self._open()
                elif self._damage:
                    self._tell_problem(f"{self._damage}; the search index is rebuilt")
                    self.recreate()

    def _is_there(self) -> bool:
        try:
            return os.stat(self.path).st_ino == self._inode
        except OSError:
            return False

    # Reading and writing

    @contextmanager
    def reading(self, name: str) -> Iterator[sqlite3.Connection]:
        """Read from one snapshot of all files; one thread at a time."""
        self._mend()
        with self._lock, self._translated(name), self._snapshot() as connection:
            yield connection

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        self._reader.execute("BEGIN")
        try:
            self._catch_up(self._reader)
            yield self._reader
        finally:
            with suppress(sqlite3.Error):
                self._reader.execute("COMMIT")

    @contextmanager
    def writing(self, name: str) -> Iterator[sqlite3.Connection]:
        """Write in one transaction, excluding all other writers in this and other processes."""
        self._mend()
        with self._write_lock, self._translated(name), self._transaction(name):
            yield self._writer

    @contextmanager
    def _transaction(self, name: str) -> Iterator[None]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.tell(f"index.{name}.commit.before")
            self._writer.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._writer.execute("ROLLBACK")
            raise
        self.tell(f"index.{name}.commit.after")

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        """Translate SQLite's errors, and remember damage, so that the next access recreates the index."""
        try:
            try:
                yield
            except sqlite3.Error as error:
                if self._closed:
                    raise ClosedError(f"the search index in {self.folder} has been closed") from error
                raise _translate(error, f"{doing}: {self.path}: {error}") from error
            except UnicodeDecodeError as error:  # an error message quotes a name that is not UTF-8
                raise damaged(f"{doing}: {self.path} contains unreadable names") from error
        except DatabaseDamagedError as error:
            self._damage = str(error)
            raise

    def _catch_up(self, connection: sqlite3.Connection) -> None:
        """Load what this or another process has committed since the last call."""
        sequence = int(connection.execute("SELECT sequence FROM state").fetchone()[0])
        if sequence == self._sequence:
            return
        self.columns.load(connection.execute("SELECT number, data FROM page WHERE changed > ?", (self._sequence,)))
        keyword.verify(connection, self.columns)
        found = {row.model: row for row in model_rows(connection)}
        for model, row in found.items():
            kept = self.models.get(model)
            if kept is None or kept.row.file != row.file:
                kept = self.models[model] = ModelVectors(self.folder, row, self._threads)
            kept.update(self.columns.having(row.slot), self.columns.embedded(row.slot))
        for model in set(self.models) - set(found):
            del self.models[model]
        self._sequence = sequence

    # Models

    def model_for(self, connection: sqlite3.Connection, model: EmbeddingModel) -> ModelVectors:
        """Return a model's vectors for writing; insert the model into the table if it is new."""
        found = model_rows(connection)
        row = next((each for each in found if each.model == model), None)
        if row is None:
            free = sorted(set(range(_MODELS)) - {each.slot for each in found})
            if not free:
                names = ", ".join(each.model.name for each in found)
                raise StorageError(
                    f"the search index has vectors of {_MODELS} models ({names}), so {model.name} cannot be "
                    "added; `orchestra-mem index --anew` rebuilds it"
                )
            row = ModelRow(slot=free[0], model=model, file=f"vectors-{uuid.uuid4().hex[:8]}.f32")
            connection.execute(
                "INSERT INTO model VALUES (?, ?, ?, ?, ?)",
                (row.slot, model.name, model.version, model.dimensions, row.file),
            )
        return ModelVectors(self.folder, row, self._threads)

    def drop_model(self, row: ModelRow) -> None:
        """Delete a model's vectors unless they have been replaced meanwhile; the file is removed last."""
        with self.writing("drop") as connection:
            if connection.execute("DELETE FROM model WHERE slot = ? AND file = ?", (row.slot, row.file)).rowcount:
                clear_vectors(connection, row.slot)
        _discard(self.folder / row.file)

    def remove_orphans(self) -> None:
        """Delete vector files that a killed process has left and no model refers to."""
        with self.writing("orphans") as connection:
            known = {row.file for row in model_rows(connection)}
            for path in self.folder.glob("vectors-*"):
                if path.name not in known:
                    _discard(path)


def fits(connection: sqlite3.Connection, identity: str | None) -> bool:
    """Check whether the index still has this identity; always true for None."""
    return identity is None or connection.execute("SELECT identity FROM state").fetchone()[0] == identity


def model_rows(connection: sqlite3.Connection) -> list[ModelRow]:
    """Return the rows of the models that have vectors in this index."""
    rows = connection.execute("SELECT slot, name, version, dimensions, file FROM model")
    return [
        ModelRow(slot=slot, model=EmbeddingModel(name=name, version=version, dimensions=dimensions), file=file)
        for slot, name, version, dimensions, file in rows
    ]


def _discard(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("could not delete %s, which is no longer used: %s", path, error.strerror)


def _translate(error: sqlite3.Error, text: str) -> StorageError:
    code = getattr(error, "sqlite_errorname", "") or ""
    # An error without a code means that a stored text is not UTF-8.
    unreadable = isinstance(error, sqlite3.OperationalError) and not code
    if known := database_error(error, text, kept="the index can be rebuilt, nothing is lost"):
        return known
    if unreadable or code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_ERROR", "SQLITE_SCHEMA")):
        # SQLITE_ERROR means that a table is missing, as the statements themselves are valid.
        return damaged(text)
    return StorageError(text)

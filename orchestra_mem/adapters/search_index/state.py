"""The index's files as one thing that is open: database, columns, models; what is damaged is mended here.

Every reading sees one state of all of them, whichever process made it. Whoever holds both locks takes them in the order
in which `IndexState` names them.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestra_mem.adapters.search_index.columns import Columns, Pages
from orchestra_mem.adapters.search_index.database import IndexDatabase, bump
from orchestra_mem.adapters.search_index.inspection import in_the_way
from orchestra_mem.adapters.search_index.models import ModelRow, ModelVectors
from orchestra_mem.adapters.search_index.vectors import load_faiss
from orchestra_mem.errors import ClosedError, DatabaseDamagedError, LockTimeoutError, StorageError, storage_error
from orchestra_mem.ports import WritePoint
from orchestra_mem.search_types import EmbeddingModel

logger = logging.getLogger(__name__)

_MODELS = 8  # as many as a byte has bits
_TRIES = 3


class IndexState:
    """What is open of a folder. Safe to share between threads.

    `write_lock` keeps other writing threads off, `lock` keeps `columns` and `models` to one thread. `problems` tells in
    words what was found damaged and thrown away. Arguments are those of `DiskSearchIndex`.

    Raises:
        StorageError: the folder cannot be used.
    """

    def __init__(
        self, folder: Path, *, fingerprint: str, threads: int, busy_timeout_s: float, write_point: WritePoint | None
    ) -> None:
        self.folder = folder
        self.write_lock = threading.RLock()
        self.lock = threading.RLock()
        self.problems: list[str] = []
        self.closed = False
        self._fingerprint = fingerprint
        self._threads = threads
        self._timeout_s = busy_timeout_s
        self._write_point = write_point
        self._open()

    def _open(self) -> None:
        for more in reversed(range(_TRIES)):
            try:
                return self._open_folder()
            except StorageError:  # again only where somebody has deleted it meanwhile
                if not more or (self.folder / "search.db").exists():
                    raise
            except OSError as error:
                if not more:
                    raise storage_error(error, "opening", self.folder) from error
        return None

    def _open_folder(self) -> None:
        if found := in_the_way(self.folder):
            raise StorageError(f"{found[0]} {found[1]}: the search index is derived, and made anew after that")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, "making", self.folder) from error
        try:
            self._start()
        except DatabaseDamagedError:
            with self.file_lock("index.lock", self._timeout_s):
                try:
                    self._start()  # another process may have mended it meanwhile
                except DatabaseDamagedError as error:
                    self._tell_problem(f"{error}; the search index is made anew")
                    self._remove_files()
                    self._start()
        self._drop_damaged_vectors()

    def _start(self) -> None:
        """Open search.db and load what is kept in memory."""
        path = self.folder / "search.db"
        self._damage = ""
        self.database = IndexDatabase(
            path, fingerprint=self._fingerprint, busy_timeout_s=self._timeout_s, write_point=self._write_point
        )
        try:
            self._inode = path.stat().st_ino
            self.columns = Columns()
            self.models: dict[EmbeddingModel, ModelVectors] = {}
            self._sequence = -1
            with self.database.reading("opening") as connection:
                self._catch_up(connection)
                self.identity = str(connection.execute("SELECT identity FROM state").fetchone()[0])
        except BaseException:
            self.database.close()
            raise

    def _drop_damaged_vectors(self) -> None:
        for model, kept in list(self.models.items()):
            if fault := kept.file.check(kept.having):
                self._tell_problem(f"{fault}; the vectors of {model.name} are made anew")
                self.drop_model(kept.row)

    def _tell_problem(self, text: str) -> None:
        logger.warning("%s", text)
        self.problems.append(text)

    def _remove_files(self) -> None:
        """Take away the whole index, the log first: a log without its database is thrown away by SQLite."""
        for pattern in ("search.db-*", "search.db", "vectors-*", "codes-*"):
            for path in self.folder.glob(pattern):
                discard(path)

    @contextmanager
    def file_lock(self, name: str, timeout_s: float) -> Iterator[None]:
        """Keep other processes from what this lock stands for.

        Raises:
            LockTimeoutError: one has held it for so long.
        """
        from filelock import FileLock, Timeout  # slow to load, and seldom needed

        try:
            lock = FileLock(str(self.folder / name))
            lock.acquire(timeout=timeout_s)
        except Timeout:
            raise LockTimeoutError(f"another process has held {self.folder / name} for {timeout_s:g} s") from None
        except OSError as error:
            raise storage_error(error, "locking", self.folder / name) from error
        try:
            yield
        finally:
            lock.release()

    def close(self) -> None:
        """Close the files; safe to call twice."""
        self.closed = True
        with self.write_lock, self.lock:
            self.database.close()
            self.models.clear()

    def begin_anew(self) -> None:
        """Throw everything away, in all processes."""
        with self.write_lock, self.lock, self.file_lock("index.lock", self._timeout_s):
            self.database.close()
            self._remove_files()
            self._start()

    def _mend(self) -> None:
        """Open what is there now, where somebody has deleted the folder or begun it anew, or it was found damaged."""
        if self.closed:
            raise ClosedError(f"the search index in {self.folder} has been closed")
        if self._damage or not self._is_there():
            with self.write_lock, self.lock:
                damage = self._damage
                if not self._is_there():
                    self._tell_problem(f"{self.folder} was deleted or begun anew by another process")
                    self.database.close()
                    self._open()
                elif damage:
                    self._tell_problem(f"{damage}; the search index is made anew")
                    self.begin_anew()

    def _is_there(self) -> bool:
        try:
            return os.stat(self.database.path).st_ino == self._inode
        except OSError:
            return False

    @contextmanager
    def reading(self, name: str) -> Iterator[sqlite3.Connection]:
        """Read one state of everything, alone among the threads."""
        self._mend()
        with self.lock, self._noting_damage(), self.database.reading(name) as connection:
            self._catch_up(connection)
            yield connection

    @contextmanager
    def writing(self, name: str) -> Iterator[sqlite3.Connection]:
        """Write within one transaction, alone among all threads and processes."""
        self._mend()
        with self.write_lock, self._noting_damage(), self.database.writing(name) as connection:
            yield connection

    @contextmanager
    def _noting_damage(self) -> Iterator[None]:
        """Note damage that was found, so that whoever asks next finds the index begun anew."""
        try:
            yield
        except DatabaseDamagedError as error:
            self._damage = str(error)
            raise

    def _catch_up(self, connection: sqlite3.Connection) -> None:
        """Take notice of what has been committed, by whichever process."""
        sequence = int(connection.execute("SELECT sequence FROM state").fetchone()[0])
        if sequence == self._sequence:
            return
        self.columns.load(connection.execute("SELECT number, data FROM page WHERE changed > ?", (self._sequence,)))
        found = {row.model: row for row in _model_rows(connection)}
        for model, row in found.items():
            kept = self.models.get(model)
            if kept is None or kept.row.file != row.file:
                kept = self.models[model] = ModelVectors(self.folder, row, self.load_faiss, self.problems)
            kept.update(row, self.columns.having(row.slot), self.columns.embedded(row.slot))
        for model in set(self.models) - set(found):
            del self.models[model]
        self._sequence = sequence

    def load_faiss(self) -> Any:
        """FAISS; None where it cannot be imported."""
        return load_faiss(self._threads)

    def row_of(self, connection: sqlite3.Connection, model: EmbeddingModel) -> ModelRow:
        """The row of a model, a new one where it has none."""
        found = _model_rows(connection)
        for row in found:
            if row.model == model:
                return row
        free = sorted(set(range(_MODELS)) - {row.slot for row in found})
        if not free:
            names = ", ".join(row.model.name for row in found)
            raise StorageError(
                f"the search index has vectors of {_MODELS} models ({names}) and no room for {model.name}; "
                "`orchestra-mem index --anew` begins it anew"
            )
        row = ModelRow(
            slot=free[0], model=model, file=f"vectors-{uuid.uuid4().hex[:8]}.f32", codes="", codes_crc=0, trained_on=0
        )
        connection.execute(
            "INSERT INTO model (slot, name, version, dimensions, file) VALUES (?, ?, ?, ?, ?)",
            (row.slot, model.name, model.version, model.dimensions, row.file),
        )
        return row

    def drop_model(self, row: ModelRow) -> None:
        """Forget a model's vectors, if these are still the ones; the files go last."""
        with self.writing("drop") as connection:
            gone = connection.execute("DELETE FROM model WHERE slot = ? AND file = ?", (row.slot, row.file)).rowcount
            if gone:
                pages = Pages(connection)
                pages.clear_vectors(row.slot)
                pages.write(bump(connection))
        for name in filter(None, (row.file, row.codes)):
            discard(self.folder / name)


def discard(path: Path) -> None:
    """Take away a file that nobody needs any more; where that cannot be it stays, and the log tells."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("%s stays there, and nobody needs it: %s", path, error.strerror)


def _model_rows(connection: sqlite3.Connection) -> list[ModelRow]:
    rows = connection.execute("SELECT slot, name, version, dimensions, file, codes, codes_crc, trained_on FROM model")
    return [
        ModelRow(
            slot=row[0], model=EmbeddingModel(name=row[1], version=row[2], dimensions=row[3]), file=row[4],
            codes=row[5], codes_crc=row[6], trained_on=row[7],
        )
        for row in rows
    ]  # fmt: skip

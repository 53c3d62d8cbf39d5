"""Store cached answers in a small SQLite file below the index. Derived: a damaged or missing file is begun anew.

Each call opens a connection of its own: a model's answer takes seconds, and so the file may be deleted at any time.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from orchestra_mem.core.search.responses import ResponseKind, StoredResponse
from orchestra_mem.errors import StorageError, database_error, storage_error
from orchestra_mem.search_types import EmbeddingModel

logger = logging.getLogger(__name__)

# Texts are JSON, which has an escape for lone surrogates; times are seconds since 1970; `vector` is float32.
_TABLE = (
    "CREATE TABLE IF NOT EXISTS response (id INTEGER PRIMARY KEY, facts TEXT NOT NULL, system TEXT NOT NULL,"
    " question TEXT NOT NULL, answer TEXT NOT NULL, kind TEXT NOT NULL, created REAL NOT NULL, expires REAL NOT NULL,"
    " used REAL NOT NULL, model TEXT, version TEXT, vector BLOB, UNIQUE (facts, system, question))"
)
_BUSY_S = 5.0  # as long another process may write
_FIELDS = "facts, system, question, answer, kind, created, expires, model, version, vector"


class SqliteResponseStore:
    """Keeps answers in one file; fulfils `retrieval.response_cache.ResponseStore`.

    Safe to share between threads and processes.

    Args:
        path: the file; made with its folder where there is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def candidates(self, facts: str, system: str, now: float) -> list[StoredResponse]:
        """Return the answers made from these facts by this system that hold at `now`, newest first."""
        with self._connected("looking for an answer") as connection:
            rows = connection.execute(
                f"SELECT id, {_FIELDS} FROM response WHERE facts = ? AND system = ? AND expires > ? AND created <= ?"
                " ORDER BY created DESC, id DESC",
                (facts, system, now, now),
            ).fetchall()
        return [_response(row) for row in rows]

    def add(self, response: StoredResponse, *, keep: int) -> None:
        """Keep an answer in the place of one to the same words; of more than `keep` those not used for longest go."""
        model, vector = response.model, response.vector
        created = response.created.timestamp()
        row = (
            response.facts, response.system, json.dumps(response.question), json.dumps(response.answer),
            response.kind.value, created, response.expires.timestamp(), model.name if model else None,
            model.version if model else None, None if vector is None else np.asarray(vector, np.float32).tobytes(),
            created,
        )  # fmt: skip
        with self._connected("keeping an answer") as connection:
            connection.execute("DELETE FROM response WHERE expires <= ?", (created,))
            connection.execute(
                f"INSERT OR REPLACE INTO response ({_FIELDS}, used) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row
            )
            connection.execute(
                "DELETE FROM response WHERE id NOT IN (SELECT id FROM response ORDER BY used DESC, id DESC LIMIT ?)",
                (keep,),
            )

    def used(self, number: int, now: float) -> None:
        """Take note that an answer was given again; where the disk refuses it goes the sooner, no more."""
        try:
            with self._connected("noting a use") as connection:
                connection.execute("UPDATE response SET used = ? WHERE id = ?", (now, number))
        except StorageError as error:
            logger.debug("%s", error)

    def count(self) -> int:
        """Return how many answers there are, those that hold no more among them."""
        with self._connected("counting") as connection:
            return int(connection.execute("SELECT count(*) FROM response").fetchone()[0])

    def clear(self) -> None:
        """Forget all answers."""
        with self._connected("clearing") as connection:
            connection.execute("DELETE FROM response")

    @contextmanager
    def _connected(self, doing: str) -> Iterator[sqlite3.Connection]:
        """A connection within one transaction.

        Raises:
            StorageError: the file cannot be used.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, "making", self.path.parent) from error
        try:
            try:
                connection = self._opened()
            except sqlite3.DatabaseError as error:
                # SQLITE_ERROR: it has another table than ours. What else is operational concerns no content.
                if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorname != "SQLITE_ERROR":
                    raise
                logger.warning("%s is damaged and begun anew, nothing is lost: %s", self.path, error)
                # The log first: without its database SQLite throws it away.
                for suffix in ("-wal", "-shm", ""):
                    with suppress(OSError):
                        self.path.with_name(f"{self.path.name}{suffix}").unlink()
                connection = self._opened()
            with closing(connection), connection:
                yield connection
        except sqlite3.Error as error:
            text = f"{doing}: {self.path}: {error}"
            known = database_error(error, text, kept="what is there is derived, nothing is lost")
            raise known or StorageError(f"{text}; it may be deleted, it is derived") from error

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_BUSY_S)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(_TABLE)
            connection.execute(f"SELECT id, {_FIELDS}, used FROM response LIMIT 1")
        except BaseException:
            connection.close()
            raise
        return connection


def _response(row: tuple[Any, ...]) -> StoredResponse:
    number, facts, system, question, answer, kind, created, expires, model, version, vector = row
    values = None if vector is None else np.frombuffer(vector, np.float32)
    return StoredResponse(
        id=number,
        question=json.loads(question),
        answer=json.loads(answer),
        kind=ResponseKind(kind),
        facts=facts,
        system=system,
        created=datetime.fromtimestamp(created, UTC),
        expires=datetime.fromtimestamp(expires, UTC),
        model=None if values is None else EmbeddingModel(name=model, version=version, dimensions=len(values)),
        vector=values,
    )

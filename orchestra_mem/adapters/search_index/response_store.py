"""Store a model's cached answers in search.db: they are derived data like the index, and deleted with it."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

import numpy as np

from orchestra_mem.adapters.search_index.store import IndexStore
from orchestra_mem.core.search.responses import ResponseKind, StoredResponse
from orchestra_mem.errors import StorageError
from orchestra_mem.search_types import EmbeddingModel

logger = logging.getLogger(__name__)

_FIELDS = "facts, system, question, answer, kind, created, expires, model, version, vector"


class SqliteResponseStore:
    """Implements `retrieval.search.ResponseStore`. Safe to share between threads and processes."""

    def __init__(self, store: IndexStore) -> None:
        self._store = store

    def candidates(self, facts: str, system: str, now: float) -> list[StoredResponse]:
        """Return answers for these facts and this system that are valid at `now` (seconds since 1970), newest first."""
        with self._store.reading("looking for an answer") as connection:
            rows = connection.execute(
                f"SELECT id, {_FIELDS} FROM response WHERE facts = ? AND system = ? AND expires > ? AND created <= ?"
                " ORDER BY created DESC, id DESC",
                (facts, system, now, now),
            ).fetchall()
        return [_response(row) for row in rows]

    def add(self, response: StoredResponse, *, keep: int) -> None:
        """Store an answer, replacing one to the same question, and keep only the `keep` most recently used answers."""
        model, vector = response.model, response.vector
        created = response.created.timestamp()
        row = (
            response.facts, response.system, json.dumps(response.question), json.dumps(response.answer),
            response.kind.value, created, response.expires.timestamp(), model.name if model else None,
            model.version if model else None, None if vector is None else np.asarray(vector, np.float32).tobytes(),
            created,
        )  # fmt: skip
        with self._store.writing("response") as connection:
            connection.execute("DELETE FROM response WHERE expires <= ?", (created,))
            connection.execute(
                f"INSERT OR REPLACE INTO response ({_FIELDS}, used) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row
            )
            connection.execute(
                "DELETE FROM response WHERE id NOT IN (SELECT id FROM response ORDER BY used DESC, id DESC LIMIT ?)",
                (keep,),
            )

    def used(self, number: int, now: float) -> None:
        """Record that an answer was returned again. A failed write is only logged: the answer is evicted earlier."""
        try:
            with self._store.writing("response") as connection:
                connection.execute("UPDATE response SET used = ? WHERE id = ?", (now, number))
        except StorageError as error:
            logger.debug("%s", error)

    def count(self) -> int:
        """Return the number of answers, including expired ones."""
        with self._store.reading("counting") as connection:
            return int(connection.execute("SELECT count(*) FROM response").fetchone()[0])

    def clear(self) -> None:
        """Delete all answers."""
        with self._store.writing("response") as connection:
            connection.execute("DELETE FROM response")


def _response(row: tuple[Any, ...]) -> StoredResponse:
    number, facts, system, question, answer, kind, created, expires, model, version, vector = row
    values = None if vector is None else np.frombuffer(vector, np.float32)
    return StoredResponse(
        id=number, question=json.loads(question), answer=json.loads(answer), kind=ResponseKind(kind), facts=facts,
        system=system, created=datetime.fromtimestamp(created, UTC), expires=datetime.fromtimestamp(expires, UTC),
        model=None if values is None else EmbeddingModel(name=model, version=version, dimensions=len(values)),
        vector=values,
    )  # fmt: skip

"""Implement `search_types.SearchIndex` with search.db and vector files in one folder.

All data are derived: damaged files are reported, deleted, and rebuilt from the memory. The folder holds search.db, one
file `vectors-….f32` per model, and `index.lock`.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.adapters.search_index import chunks as stored
from orchestra_mem.adapters.search_index import keyword
from orchestra_mem.adapters.search_index.chunks import (
    NO_ITEM,
    RECORD,
    TIER_NUMBERS,
    read_records,
    string_number,
    write_records,
)
from orchestra_mem.adapters.search_index.keyword import KeywordSearch
from orchestra_mem.adapters.search_index.response_store import SqliteResponseStore
from orchestra_mem.adapters.search_index.store import IndexStore, fits
from orchestra_mem.errors import EmbedderError, StorageError
from orchestra_mem.ports import WritePoint
from orchestra_mem.search_types import (
    Chunk,
    EmbeddingModel,
    Ids,
    IndexedText,
    Outlines,
    Ranking,
    SearchFilter,
    Terms,
    Vector,
    Vectors,
    WordEmbedder,
)

logger = logging.getLogger(__name__)

# Number of vectors at which exact search takes 2 ms and quantised codes become faster; see benchmarks/search_speed.py.
# From there on, `DiskSearchIndex.maintain` quantises vectors.
APPROXIMATE_FROM = 50_000
_CUT_AT_ONCE = 500


class DiskSearchIndex:
    """Stores chunks and searches them by keyword and by vector.

    Safe to share between threads; several processes may open the same folder. Changes that one process has committed
    are visible to the next call in any other.

    Args:
        folder: Created if it does not exist.
        analyse: Turns a chunk into its terms; chunks with equal keys must have equal terms.
        analysis_version: Version of `analyse`. If it differs from that of the index, the index is recreated.
        threads: Number of threads for FAISS; 1 by default, to leave the cores to the language model.
        words: Tokenizes the texts' words for late interaction; None leaves them without tokens.
        problems: Messages to report to searchers, such as why the index is in another folder.

    Raises:
        StorageError: The folder cannot be used. Damage raises no error, see `problems`.
    """

    approximate_from = APPROXIMATE_FROM

    def __init__(
        self,
        folder: Path,
        analyse: Callable[[Chunk], IndexedText],
        *,
        analysis_version: str = "1",
        threads: int = 1,
        words: WordEmbedder | None = None,
        busy_timeout_s: float = 30.0,
        write_point: WritePoint | None = None,
        problems: Sequence[str] = (),
    ) -> None:
        self._analyse = analyse
        self._words = words
        self._keyword = KeywordSearch()
        self._store = IndexStore(
            folder,
            fingerprint=f"{analysis_version} {keyword.COLUMN_WEIGHTS} {keyword.FREQUENCY_STEPS}",
            threads=threads,
            busy_timeout_s=busy_timeout_s,
            write_point=write_point,
        )
        self._store.problems[:0] = problems
        self.responses = SqliteResponseStore(self._store)

    def close(self) -> None:
        """Close the files; safe to call twice. A `maintain` running in another thread soon fails."""
        self._store.close()

    def rebuild(self) -> None:
        """Delete everything, for all processes; all chunks have to be added again."""
        self._store.recreate()
        self._store.problems.clear()

    @property
    def problems(self) -> tuple[str, ...]:
        """The messages passed to the constructor, and one for each damage found since. Add damaged data again."""
        return tuple(self._store.problems)

    @property
    def identity(self) -> str:
        """An id that changes when the index is recreated: then all chunks have to be added again."""
        with self._store.reading("reading"):
            return self._store.identity

    def maintain(self) -> None:
        """Do the upkeep that is due, in a few milliseconds plus 50 ms per 100,000 vectors to quantise.

        Searches and additions may go on meanwhile.
        """
        self._store.remove_orphans()
        try:
            while self._words is not None and self._cut_some(self._words):
                pass
        except EmbedderError as error:
            logger.debug("words of texts are not tokenized: %s", error)
        with self._store.reading("coding"):
            due = [kept for kept in self._store.models.values() if kept.codes_due(self.approximate_from)]
        for kept in due:
            codes = kept.make_codes()
            with self._store.reading("coding"):
                kept.use_codes(*codes)

    def _cut_some(self, words: WordEmbedder) -> bool:
        """Tokenize some texts that were added without tokens; return False if there are none."""
        with self._store.reading("words") as connection:
            rows = connection.execute("SELECT id FROM chunk WHERE tokens IS NULL LIMIT ?", (_CUT_AT_ONCE,)).fetchall()
            ids = [row[0] for row in rows]
            waiting = stored.read(connection, np.array(ids, np.int64))
        if waiting:
            cut = stored.cut_words([self._analyse(chunk) for chunk in waiting if chunk], words)
            with self._store.writing("words") as connection:
                connection.executemany("UPDATE chunk SET tokens = ? WHERE id = ?", zip(cut, ids, strict=True))
        return bool(waiting)

    def add(self, chunks: Sequence[Chunk]) -> Ids:
        """Add or update chunks and return their ids, int64, shape (n,), in order; see `SearchIndex.add`."""
        if not chunks:  # a write without a change would empty the caches of every process
            return np.zeros(0, np.int64)
        by_key = {chunk.key: chunk for chunk in chunks}
        with self._store.writing("add") as connection:
            known = stored.ids_of(connection, by_key)
            new = [chunk for key, chunk in by_key.items() if key not in known]
            (next_id,) = connection.execute("SELECT next_id FROM state").fetchone()
            ids = known | {chunk.key: next_id + at for at, chunk in enumerate(new)}
            texts = [self._analyse(chunk) for chunk in new]
            tokens = [keyword.tokens_of(text) for text in texts]
            new_ids = range(next_id, next_id + len(new))
            rows = zip(new_ids, (text for text, _ in tokens), strict=True)
            connection.executemany("INSERT INTO words (rowid, tokens) VALUES (?, ?)", rows)
            stored.insert(connection, zip(new_ids, new, texts, self._cut(texts), strict=True))
            stored.replace(connection, ((ids[key], by_key[key]) for key in known))
            lengths = {chunk.key: length for chunk, (_, length) in zip(new, tokens, strict=True)}
            _write_records(connection, [(ids[key], chunk, lengths.get(key)) for key, chunk in by_key.items()])
            connection.execute("UPDATE state SET next_id = ?", (next_id + len(new),))
        return np.array([ids[chunk.key] for chunk in chunks], np.int64)

    def _cut(self, texts: Sequence[IndexedText]) -> Sequence[bytes | None]:
        if self._words is not None:
            try:
                return stored.cut_words(texts, self._words)
            except EmbedderError as error:  # `maintain` does it later
                logger.debug("words of texts are not tokenized: %s", error)
        return [None] * len(texts)

    def remove(self, keys: Sequence[str]) -> int:
        """Remove chunks with their vectors; return how many existed."""
        with self._store.writing("remove") as connection:
            ids = np.array([*stored.ids_of(connection, dict.fromkeys(keys)).values()], np.int64)
            if not len(ids):
                return 0
            gone = zip(ids.tolist(), stored.read(connection, ids), strict=True)
            # FTS5 needs the tokens that were inserted.
            tokens = ((number, keyword.tokens_of(self._analyse(chunk))[0]) for number, chunk in gone if chunk)
            connection.executemany("INSERT INTO words (words, rowid, tokens) VALUES ('delete', ?, ?)", tokens)
            connection.executemany("DELETE FROM chunk WHERE id = ?", [(number,) for number in ids.tolist()])
            write_records(connection, ids, np.zeros(len(ids), RECORD))
        return len(ids)

    def keys(self, group: str) -> dict[str, int]:
        """Return the keys of a group's chunks with the chunks' ids, in the group's order."""
        query, number = "SELECT key, id FROM chunk WHERE grp = ? ORDER BY position, id", string_number(group)
        with self._store.reading("listing") as connection:
            return {stored.decode(key): chunk_id for key, chunk_id in connection.execute(query, (number,))}

    def chunks(self, ids: Ids) -> list[Chunk | None]:
        """Return the chunks of `ids` in this order; None for id 0 and for removed chunks."""
        with self._store.reading("reading") as connection:
            return stored.read(connection, ids)

    def outlines(self, ids: Ids, where: SearchFilter) -> Outlines:
        """Return the data for ranking the chunks in `ids` that exist, by ascending id."""
        with self._store.reading("reading") as connection:
            columns = self._store.columns
            return stored.outlines(connection, ids, columns, columns.passing(where))

    def neighbours(self, ids: Ids, distance: int) -> Ids:
        """Return the ids of the neighbours of each chunk in its group; see `SearchIndex.neighbours`."""
        with self._store.reading("reading") as connection:
            return stored.neighbours(connection, ids, distance)

    def count(self) -> int:
        """Return the number of chunks."""
        with self._store.reading("counting"):
            return self._store.columns.count

    def marks(self) -> dict[str, str]:
        """Return the values stored by `set_mark`, by name."""
        with self._store.reading("reading") as connection:
            return dict(connection.execute("SELECT name, value FROM mark"))

    def set_mark(self, name: str, value: str, *, identity: str | None = None) -> bool:
        """Store a progress mark; see `SearchIndex.set_mark`."""
        with self._store.writing("mark") as connection:
            if not fits(connection, identity):
                return False
            connection.execute("INSERT OR REPLACE INTO mark VALUES (?, ?)", (name, value))
        return True

    def keyword(self, terms: Terms, where: SearchFilter, limit: int) -> Ranking:
        """Return the chunks with any of the terms, by BM25 with weighted columns, ties by id."""
        with self._store.reading("searching") as connection:
            columns = self._store.columns
            return self._keyword.search(connection, terms.terms, columns, columns.passing(where), limit)

    def document_frequency(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """Return how many chunks have each term in any column, int64, shape (terms,)."""
        with self._store.reading("counting") as connection:
            found = (self._keyword.matches(connection, term, self._store.columns)[0] for term in terms)
            return np.array([len(docs) for docs in found], np.int64)

    def holding(self, terms: Sequence[str], ids: Ids) -> NDArray[np.bool_]:
        """Return for each term a mask of the chunks that have it in any column, bool, shape (terms, ids)."""
        with self._store.reading("searching") as connection:
            # Ids from before the index was recreated may be too large: they are mapped to an extra column, all False.
            found = np.zeros((len(terms), self._store.columns.size + 1), np.bool_)
            for row, term in zip(found, terms, strict=True):
                row[self._keyword.matches(connection, term, self._store.columns)[0]] = True
            return found[:, np.minimum(ids, self._store.columns.size)]

    def add_vectors(self, model: EmbeddingModel, ids: Ids, vectors: Vectors, *, identity: str | None = None) -> None:
        """Store the vectors of chunks, float32, shape (n, dim); see `SearchIndex.add_vectors`."""
        _check_dimensions(model, vectors)
        lengths = np.linalg.norm(vectors, axis=1)
        if faults := np.count_nonzero(~np.isfinite(lengths)):
            raise StorageError(f"{model.name} returned {faults} of {len(ids)} vectors with values that are not numbers")
        with self._store.writing("vectors") as connection:
            if not fits(connection, identity):
                return
            kept = self._store.model_for(connection, model)
            rows = read_records(connection, ids)
            there = rows["alive"] == 1
            ids, vectors, lengths, rows = ids[there], vectors[there], lengths[there], rows[there]
            blank, bit = lengths == 0, np.uint8(1 << kept.row.slot)
            self._store.tell("index.vectors.write.before")
            kept.write(ids[~blank], vectors[~blank] / lengths[~blank, None])
            self._store.tell("index.vectors.write.after")
            rows["embedded"] |= bit
            rows["blank"] = np.where(blank, rows["blank"] | bit, rows["blank"] & ~bit)
            write_records(connection, ids, rows)

    def without_vectors(self, model: EmbeddingModel, limit: int) -> Ids:
        """Return the ids of up to `limit` chunks that the model has not embedded yet, newest first."""
        with self._store.reading("listing"):
            kept, columns = self._store.models.get(model), self._store.columns
            missing = columns["alive"] == 1 if kept is None else columns.missing(kept.row.slot)
            return np.flatnonzero(missing)[::-1][: max(0, limit)]

    def dense(self, model: EmbeddingModel, vector: Vector, where: SearchFilter, limit: int) -> Ranking:
        """Return the chunks nearest to a vector of the model, ties by id; none for a vector of zeros."""
        _check_dimensions(model, vector[None])
        with self._store.reading("searching"):
            kept = self._store.models.get(model)
            if kept is None or not vector.any():
                return Ranking(ids=np.zeros(0, np.int64), scores=np.zeros(0, np.float32))
            return kept.search(np.asarray(vector, np.float32), self._store.columns.passing(where), limit)

    def vectors(self, model: EmbeddingModel, ids: Ids) -> Vectors:
        """Return the model's vectors in the order of `ids`, float32, shape (n, dim); zeros for a missing vector."""
        with self._store.reading("reading"):
            kept = self._store.models.get(model)
            return np.zeros((len(ids), model.dimensions), np.float32) if kept is None else kept.vectors(ids)

    def models(self) -> dict[EmbeddingModel, int]:
        """Return the models that have embedded chunks, each with the number of chunks."""
        with self._store.reading("counting"):
            return {model: kept.embedded for model, kept in self._store.models.items()}

    def drop_model(self, model: EmbeddingModel) -> None:
        """Delete a model's vectors, for example after another model has embedded everything."""
        with self._store.reading("reading"):
            kept = self._store.models.get(model)
        if kept is not None:
            self._store.drop_model(kept.row)


def _write_records(connection: sqlite3.Connection, chunks: Sequence[tuple[int, Chunk, int | None]]) -> None:
    """Write the records of chunks. Keep the bits for vectors, and the stored length where the new length is None."""
    ids = np.array([number for number, _, _ in chunks], np.int64)
    rows = read_records(connection, ids)
    for at, (_, chunk, length) in enumerate(chunks):
        old = rows[at]
        rows[at] = (
            1, TIER_NUMBERS[chunk.tier], old["embedded"], old["blank"], old["length"] if length is None else length,
            string_number(chunk.kind), string_number(chunk.agent), string_number(chunk.session),
            string_number(chunk.pattern),
            NO_ITEM if chunk.item is None else chunk.item, chunk.time.timestamp() if chunk.time else np.nan,
        )  # fmt: skip
    write_records(connection, ids, rows)


def _check_dimensions(model: EmbeddingModel, vectors: Vectors) -> None:
    if vectors.shape[1] != model.dimensions:
        raise StorageError(
            f"{model.name} {model.version} has vectors of {model.dimensions} dimensions, but these have "
            f"{vectors.shape[1]}; `orchestra-mem index --anew` rebuilds all vectors with the current model"
        )

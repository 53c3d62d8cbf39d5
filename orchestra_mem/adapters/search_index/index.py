"""The search index on disk: fulfils `search_types.SearchIndex` with search.db and files of vectors in one folder.

Everything here is derived: what is damaged is told in words, thrown away, and made anew from the memory itself. What is
in the folder: search.db; for each model `vectors-….f32` and, where there are many, `codes-….faiss`; `index.lock`.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.adapters.search_index import chunks as rows
from orchestra_mem.adapters.search_index import keyword
from orchestra_mem.adapters.search_index.columns import Pages
from orchestra_mem.adapters.search_index.database import bump, fits
from orchestra_mem.adapters.search_index.keyword import KeywordWeights, PostingReader, Scorer
from orchestra_mem.adapters.search_index.lexicon import WordTokens, keep
from orchestra_mem.adapters.search_index.state import IndexState
from orchestra_mem.adapters.search_index.upkeep import keep_codes, remove_orphans, tidy_segments
from orchestra_mem.adapters.search_index.vectors import VectorFile
from orchestra_mem.core.search.late_interaction import no_tokens
from orchestra_mem.errors import EmbedderError, LockTimeoutError, StorageError
from orchestra_mem.ports import WritePoint
from orchestra_mem.search_types import (
    EVERYTHING,
    Chunk,
    EmbeddingModel,
    Ids,
    IndexedText,
    Outlines,
    Ranking,
    SearchFilter,
    Terms,
    Tokens,
    Vector,
    Vectors,
    WordEmbedder,
)

logger = logging.getLogger(__name__)

# Up to there an exact search by FAISS takes 2 ms, and from there on codes are quicker: measured by
# benchmarks/search_speed.py.
APPROXIMATE_FROM = 50_000
# Segments of fewer chunks are joined while chunks are added, which takes milliseconds, or by `maintain`, which takes
# seconds. Larger ones stay: other writers would wait too long, and a query does not mind some dozens.
_JOINED_AT_ONCE = 4_096
_JOINED_BY_UPKEEP = 32_768
_NO_RANKING = Ranking(ids=np.zeros(0, np.int64), scores=np.zeros(0, np.float32))


class DiskSearchIndex:
    """Keeps chunks and answers which have given words or lie near a vector.

    Safe to share between threads; several processes may open the same folder. What one has committed, the others see
    with their next question.

    Args:
        folder: made where there is none.
        analyse: turns a chunk into its terms; equal keys, equal terms.
        analysis_version: another one means that `analyse` gives other terms, and the index is begun anew.
        weights: of the keyword columns.
        threads: how many FAISS may use; the cores belong to the language model.
        approximate_from: from so many vectors on `maintain` makes codes of them, which are searched more quickly.
        words: whose tokens of the texts' words are kept; None keeps none, and they are cut when a search meets them.
        busy_timeout_s: how long to wait for another process that writes.
        write_point: is told of each step that changes the disk.

    Raises:
        StorageError: the folder cannot be used. Damage is none: see `problems`.
    """

    def __init__(
        self,
        folder: Path,
        analyse: Callable[[Chunk], IndexedText],
        *,
        analysis_version: str = "1",
        weights: KeywordWeights | None = None,
        threads: int = 1,
        approximate_from: int = APPROXIMATE_FROM,
        words: WordEmbedder | None = None,
        busy_timeout_s: float = 30.0,
        write_point: WritePoint | None = None,
    ) -> None:
        self._analyse = analyse
        self._weights = weights or KeywordWeights()
        self._approximate_from = approximate_from
        self._postings = PostingReader()
        self._scorer = Scorer(self._weights, self._postings)
        self._words = words
        self._tokens = WordTokens()
        self._state = IndexState(
            folder,
            fingerprint=f"{analysis_version} {self._weights.stored}",
            threads=threads,
            busy_timeout_s=busy_timeout_s,
            write_point=write_point,
        )

    def close(self) -> None:
        """Close the files; safe to call twice. `maintain` in another thread fails soon after."""
        self._state.close()

    def rebuild(self) -> None:
        """Throw everything away, in all processes; what there is to search has to be added anew."""
        self._state.begin_anew()
        self._state.problems.clear()

    @property
    def problems(self) -> tuple[str, ...]:
        """What was found damaged since this was opened, in words; it is thrown away and has to be added anew."""
        return tuple(self._state.problems)

    @property
    def identity(self) -> str:
        """Another one than before means that the index was begun anew, and all chunks have to be added."""
        with self._state.reading("reading"):
            return self._state.identity

    def check(self) -> list[str]:
        """Look through all files, seconds for large ones; what is wrong with them, in words."""
        faults = [self._state.database.check()]
        with self._state.reading("checking"):
            for kept in self._state.models.values():
                faults += [kept.file.check(kept.having, thorough=True), kept.codes_fault()]
        return [fault for fault in faults if fault]

    def maintain(self) -> bool:
        """Do the upkeep that is due, in the background: milliseconds, seconds where codes are to be made.

        Searching and adding go on meanwhile. False where another process is at it.
        """
        try:
            with self._state.file_lock("maintain.lock", 0):
                tidy_segments(self._state, _JOINED_BY_UPKEEP, purge=True)
                keep_codes(self._state, self._approximate_from)
                remove_orphans(self._state)
                if self._words is not None:
                    keep(self._state, self._tokens, self._words)
        except LockTimeoutError:
            return False
        except EmbedderError as error:
            logger.debug("the words of texts were not cut ahead: %s", error)
        return True

    def add(self, chunks: Sequence[Chunk]) -> Ids:
        """Take in chunks and give their ids, in order; see `SearchIndex.add`."""
        by_key = {chunk.key: chunk for chunk in chunks}
        with self._state.writing("add") as connection:
            ids = rows.ids_of(connection, list(by_key))
            new = [chunk for key, chunk in by_key.items() if key not in ids]
            first_id = int(connection.execute("SELECT next_id FROM state").fetchone()[0])
            ids.update((chunk.key, first_id + number) for number, chunk in enumerate(new))
            texts = {chunk.key: self._analyse(chunk) for chunk in new}
            lengths = keyword.add_segment(connection, first_id, list(texts.values()), self._weights)
            length_of = {chunk.key: length for chunk, length in zip(new, lengths, strict=True)}
            names = rows.name_all(connection, by_key.values(), texts.values())
            pages = Pages(connection)
            for key, chunk in by_key.items():
                pages.set_chunk(ids[key], chunk, names, length_of.get(key))
            rows.write(connection, ((ids[key], chunk) for key, chunk in by_key.items()), texts, names)
            pages.write(bump(connection))
            connection.execute("UPDATE state SET next_id = ?", (first_id + len(new),))
        tidy_segments(self._state, _JOINED_AT_ONCE)
        return np.array([ids[chunk.key] for chunk in chunks], np.int64)

    def remove(self, keys: Sequence[str]) -> int:
        """Take out chunks with their vectors; how many there were."""
        with self._state.writing("remove") as connection:
            ids = list(rows.ids_of(connection, list(dict.fromkeys(keys))).values())
            if ids:
                pages = Pages(connection)
                pages.remove(ids)
                rows.delete(connection, ids)
                pages.write(bump(connection))
        return len(ids)

    def keys(self, group: str) -> dict[str, int]:
        """The keys of a group's chunks with their ids, in their order."""
        with self._state.reading("listing") as connection:
            return rows.ids_in_group(connection, group)

    def chunks(self, ids: Ids) -> list[Chunk | None]:
        """Chunks in the order asked for; None where an id is 0 or gone."""
        with self._state.reading("reading") as connection:
            return rows.read(connection, ids)

    def outlines(self, ids: Ids, where: SearchFilter) -> Outlines:
        """What ranking needs of those of the chunks that are there, by ascending id."""
        with self._state.reading("reading") as connection:
            passing = self._passing(connection, where)
            return rows.outlines(connection, ids, self._state.columns, passing, self._state.identity)

    def spell(self, lexicon: str, numbers: NDArray[np.int64]) -> list[str]:
        """The words behind numbers of `Outlines.words`; empty strings where the index was begun anew since."""
        with self._state.reading("reading") as connection:
            return rows.spell(connection, numbers) if lexicon == self._state.identity else [""] * len(numbers)

    def tokens(self, model: EmbeddingModel, lexicon: str, numbers: NDArray[np.int64]) -> Tokens:
        """What a model's tokenizer cuts these words into, as far as that is kept."""
        with self._state.reading("reading") as connection:
            if lexicon != self._state.identity:
                return no_tokens(len(numbers))
            return self._tokens.read(connection, lexicon, model, numbers)

    def neighbours(self, ids: Ids, distance: int) -> Ids:
        """The chunks before and behind each in its group; see `SearchIndex.neighbours`."""
        with self._state.reading("reading") as connection:
            return rows.neighbours(connection, ids, distance)

    def count(self) -> int:
        """How many chunks there are."""
        with self._state.reading("counting"):
            return self._state.columns.count

    def marks(self) -> dict[str, str]:
        """What `set_mark` noted, by name."""
        with self._state.reading("reading") as connection:
            return dict(connection.execute("SELECT name, value FROM mark"))

    def set_mark(self, name: str, value: str, *, identity: str | None = None) -> bool:
        """Note how far something has come; see `SearchIndex.set_mark`."""
        with self._state.writing("mark") as connection:
            if not fits(connection, identity):
                return False
            connection.execute("INSERT OR REPLACE INTO mark VALUES (?, ?)", (name, value))
        return True

    def keyword(self, terms: Terms, where: SearchFilter, limit: int) -> Ranking:
        """The chunks that hold any of the terms, by BM25 with weighted columns, ties by id."""
        with self._state.reading("searching") as connection:
            passing = self._passing(connection, where)
            return self._scorer.rank(connection, terms.terms, self._state.columns, passing, limit)

    def document_frequency(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """How many chunks hold each term, in any column."""
        with self._state.reading("counting") as connection:
            found = (self._postings.lookup(connection, term, self._state.columns)[0] for term in terms)
            return np.array([len(docs) for docs in found], np.int64)

    def _passing(self, connection: sqlite3.Connection, where: SearchFilter) -> NDArray[np.bool_]:
        return self._state.columns.passing(where, {} if where == EVERYTHING else rows.names_in(connection, where))

    def add_vectors(self, model: EmbeddingModel, ids: Ids, vectors: Vectors, *, identity: str | None = None) -> None:
        """Keep the vectors of chunks; see `SearchIndex.add_vectors`."""
        _check_dimensions(model, vectors)
        lengths = np.linalg.norm(vectors, axis=1)
        if faults := np.count_nonzero(~np.isfinite(lengths)):
            raise StorageError(f"{model.name} gave {faults} of {len(ids)} vectors that are no numbers")
        with self._state.writing("vectors") as connection:
            if not fits(connection, identity):
                return
            row = self._state.row_of(connection, model)
            pages = Pages(connection)
            there = pages.alive(ids)
            ids, vectors, lengths = ids[there], vectors[there], lengths[there]
            blank = lengths == 0
            unit = vectors[~blank] / lengths[~blank, None]
            self._state.database.tell("index.vectors.write.before")
            if len(unit):
                VectorFile(self._state.folder / row.file, model.dimensions).write(ids[~blank], unit)
            self._state.database.tell("index.vectors.write.after")
            pages.set_vectors(ids, blank, row.slot)
            pages.write(bump(connection))

    def without_vectors(self, model: EmbeddingModel, limit: int) -> Ids:
        """The chunks that this model has not embedded yet, newest first."""
        with self._state.reading("listing"):
            kept = self._state.models.get(model)
            columns = self._state.columns
            missing = columns["alive"] == 1 if kept is None else columns.missing(kept.row.slot)
            return np.flatnonzero(missing)[::-1][: max(0, limit)]

    def dense(self, model: EmbeddingModel, vector: Vector, where: SearchFilter, limit: int) -> Ranking:
        """The chunks nearest to a vector of this model, ties by id; none for a vector of zeros."""
        _check_dimensions(model, vector[None])
        with self._state.reading("searching") as connection:
            kept = self._state.models.get(model)
            if kept is None or not vector.any():
                return _NO_RANKING
            return kept.search(np.asarray(vector, np.float32), self._passing(connection, where), limit)

    def vectors(self, model: EmbeddingModel, ids: Ids) -> Vectors:
        """Vectors of this model in the order asked for; a row of zeros where there is none."""
        with self._state.reading("reading"):
            kept = self._state.models.get(model)
            return np.zeros((len(ids), model.dimensions), np.float32) if kept is None else kept.vectors(ids)

    def models(self) -> dict[EmbeddingModel, int]:
        """The models that have embedded chunks, and how many."""
        with self._state.reading("counting"):
            return {model: kept.embedded for model, kept in self._state.models.items()}

    def drop_model(self, model: EmbeddingModel) -> None:
        """Forget a model's vectors, as when another has embedded everything."""
        with self._state.reading("reading"):
            kept = self._state.models.get(model)
        if kept is not None:
            self._state.drop_model(kept.row)


def _check_dimensions(model: EmbeddingModel, vectors: Vectors) -> None:
    if vectors.shape[1] != model.dimensions:
        raise StorageError(
            f"{model.name} {model.version} has vectors of {model.dimensions} dimensions, these have "
            f"{vectors.shape[1]}; `orchestra-mem index --anew` makes all vectors with the model that is set now"
        )

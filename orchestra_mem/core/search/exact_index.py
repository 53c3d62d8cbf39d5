"""A search index in memory that leaves nothing out: what every index on disk is held against, and enough for thousands.

BM25 in its form that is never negative, as in Lucene, with a term's frequency summed over the columns by their weights.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.core.search.late_interaction import no_tokens
from orchestra_mem.core.search.terms import index_text
from orchestra_mem.errors import EmbedderError
from orchestra_mem.search_types import (
    Chunk,
    EmbeddingModel,
    Ids,
    Outlines,
    Ranking,
    SearchFilter,
    Terms,
    Tokens,
    Vector,
    Vectors,
    WordLists,
)

COLUMN_WEIGHTS: Mapping[str, int] = MappingProxyType({"title": 3, "heading": 2, "identifiers": 2, "body": 1})
K1, B = 0.9, 0.4
_MAX_FREQUENCY = 255


@dataclass(slots=True)
class _Entry:
    chunk: Chunk
    terms: tuple[str, ...]
    length: int
    words: tuple[int, ...]
    is_statement: bool
    tells_time: bool


_LEXICONS = count(1)


class ExactIndex:
    """Keeps chunks and vectors in memory and compares a query with each of them. Safe to share between threads.

    Args:
        problems: what those who search are to be told, such as why there is no index on disk.
    """

    def __init__(self, *, problems: Sequence[str] = ()) -> None:
        self.problems = tuple(problems)
        self._entries: dict[int, _Entry] = {}
        self._ids: dict[str, int] = {}
        self._postings: dict[str, dict[int, int]] = {}  # of each term the chunks with its weighted frequency
        self._total_length = 0
        self._vectors: dict[EmbeddingModel, dict[int, Vector]] = {}
        self._marks: dict[str, str] = {}
        self._lexicon = f"in memory {next(_LEXICONS)}"
        self._numbers: dict[str, int] = {}  # of all words so far
        self._next_id = 1
        self._lock = threading.RLock()

    def add(self, chunks: Sequence[Chunk]) -> Ids:
        """Take in chunks and give their ids; see `SearchIndex.add`."""
        with self._lock:
            return np.array([self._add(chunk) for chunk in chunks], np.int64)

    def _add(self, chunk: Chunk) -> int:
        number = self._ids.get(chunk.key)
        if number is not None:
            self._entries[number].chunk = chunk
            return number
        text = index_text(chunk)
        frequencies: Counter[str] = Counter()
        length = 0
        for column, weight in COLUMN_WEIGHTS.items():
            terms = [term for term in getattr(text, column).split(" ") if term]
            length += len(terms)
            for term in terms:
                frequencies[term] += weight
        number = self._ids[chunk.key] = self._next_id
        self._next_id += 1
        self._entries[number] = _Entry(
            chunk, tuple(frequencies), length,
            tuple(self._numbers.setdefault(word, len(self._numbers)) for word in text.words),
            text.is_statement, text.tells_time,
        )  # fmt: skip
        self._total_length += length
        for term, frequency in frequencies.items():
            self._postings.setdefault(term, {})[number] = min(frequency, _MAX_FREQUENCY)
        return number

    def remove(self, keys: Sequence[str]) -> int:
        """Take out chunks with their vectors; how many there were."""
        with self._lock:
            gone = [self._ids.pop(key) for key in dict.fromkeys(keys) if key in self._ids]
            for number in gone:
                entry = self._entries.pop(number)
                self._total_length -= entry.length
                for term in entry.terms:
                    del self._postings[term][number]
                for vectors in self._vectors.values():
                    vectors.pop(number, None)
            return len(gone)

    def keys(self, group: str) -> dict[str, int]:
        """The keys of a group's chunks with their ids."""
        with self._lock:
            return {key: number for key, number in self._ids.items() if self._entries[number].chunk.group == group}

    @property
    def identity(self) -> str:
        """Another one than before means that the index was begun anew."""
        return self._lexicon

    def add_vectors(self, model: EmbeddingModel, ids: Ids, vectors: Vectors, *, identity: str | None = None) -> None:
        """Keep the vectors of chunks; see `SearchIndex.add_vectors`.

        Raises:
            EmbedderError: the vectors do not have the model's dimensions.
        """
        if vectors.shape != (len(ids), model.dimensions):
            raise EmbedderError(
                f"vectors of shape {vectors.shape} do not fit {len(ids)} chunks of {model.dimensions} dimensions "
                f"({model.name})"
            )
        with self._lock:
            if identity not in (None, self._lexicon):
                return
            kept = self._vectors.setdefault(model, {})
            kept.update(
                (number, row) for number, row in zip(ids.tolist(), vectors, strict=True) if number in self._entries
            )

    def without_vectors(self, model: EmbeddingModel, limit: int) -> Ids:
        """The chunks that this model has not embedded yet, newest first."""
        with self._lock:
            there = self._vectors.get(model, {})
            return np.array(
                [number for number in sorted(self._entries, reverse=True) if number not in there][:limit], np.int64
            )

    def rebuild(self) -> None:
        """Forget everything."""
        with self._lock:
            for kept in (self._entries, self._ids, self._postings, self._vectors, self._marks):
                kept.clear()
            self._total_length = 0
            self._lexicon = f"in memory {next(_LEXICONS)}"

    def models(self) -> dict[EmbeddingModel, int]:
        """The models that have embedded chunks, and how many."""
        return {model: len(vectors) for model, vectors in self._vectors.items()}

    def drop_model(self, model: EmbeddingModel) -> None:
        """Forget a model's vectors."""
        self._vectors.pop(model, None)

    def maintain(self) -> bool:
        """Do nothing: there is nothing to look after."""
        return True

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def marks(self) -> dict[str, str]:
        """What `set_mark` noted, by name."""
        return dict(self._marks)

    def set_mark(self, name: str, value: str, *, identity: str | None = None) -> bool:
        """Note how far something has come; see `SearchIndex.set_mark`."""
        with self._lock:
            fits = identity in (None, self._lexicon)
            if fits:
                self._marks[name] = value
            return fits

    def keyword(self, terms: Terms, where: SearchFilter, limit: int) -> Ranking:
        """The chunks that hold any of the terms, by BM25 with weighted columns."""
        with self._lock:
            count = len(self._entries)
            scores: dict[int, float] = {}
            for term in terms.terms:
                having = self._postings.get(term, {})
                rarity = math.log1p((count - len(having) + 0.5) / (len(having) + 0.5))
                for number, held in having.items():
                    relative_length = self._entries[number].length * count / self._total_length
                    bound = held + K1 * (1 - B + B * relative_length)
                    scores[number] = scores.get(number, 0.0) + rarity * held * (K1 + 1) / bound
            return self._best(scores, where, limit)

    def dense(self, model: EmbeddingModel, vector: Vector, where: SearchFilter, limit: int) -> Ranking:
        """The chunks nearest to a vector of this model."""
        with self._lock:
            vectors = self._vectors.get(model, {})
            if not vectors:
                return self._best({}, where, limit)
            cosines = np.vecdot(np.stack(list(vectors.values())), vector)
            return self._best(dict(zip(vectors, cosines.tolist(), strict=True)), where, limit)

    def _best(self, scores: Mapping[int, float], where: SearchFilter, limit: int) -> Ranking:
        passing = [number for number in scores if where.passes(self._entries[number].chunk)]
        best = sorted(passing, key=lambda number: (-scores[number], number))[:limit]
        return Ranking(ids=np.array(best, np.int64), scores=np.array([scores[number] for number in best], np.float32))

    def chunks(self, ids: Ids) -> list[Chunk | None]:
        """Chunks in the order asked for; None where an id is 0 or gone."""
        with self._lock:
            entries = [self._entries.get(number) for number in ids.tolist()]
            return [entry.chunk if entry else None for entry in entries]

    def outlines(self, ids: Ids, where: SearchFilter) -> Outlines:
        """What ranking needs of those of the chunks that are there, by ascending id."""
        with self._lock:
            there = sorted({number for number in ids.tolist() if number in self._entries})
            entries = [self._entries[number] for number in there]
        chunks = [entry.chunk for entry in entries]
        groups: dict[str, int] = {}
        return Outlines(
            ids=np.array(there, np.int64),
            passing=np.array([where.passes(chunk) for chunk in chunks], np.bool_),
            groups=np.array([groups.setdefault(chunk.group, len(groups)) for chunk in chunks], np.int64),
            agents=tuple(chunk.agent for chunk in chunks),
            sessions=tuple(chunk.session for chunk in chunks),
            times=np.array([chunk.time.timestamp() if chunk.time else np.nan for chunk in chunks], np.float64),
            importance=np.array([chunk.importance for chunk in chunks], np.float32),
            statements=np.array([entry.is_statement for entry in entries], np.bool_),
            tell_time=np.array([entry.tells_time for entry in entries], np.bool_),
            words=WordLists(
                lexicon=self._lexicon,
                numbers=np.array([*chain.from_iterable(entry.words for entry in entries)], np.int64),
                counts=np.array([len(entry.words) for entry in entries], np.int64),
            ),
        )

    def spell(self, lexicon: str, numbers: NDArray[np.int64]) -> list[str]:
        """The words behind numbers of `Outlines.words`."""
        with self._lock:
            words = list(self._numbers) if lexicon == self._lexicon else []
        return [words[number] if number < len(words) else "" for number in numbers.tolist()]

    def tokens(self, model: EmbeddingModel, lexicon: str, numbers: NDArray[np.int64]) -> Tokens:
        """None are kept: it is gone with its process."""
        return no_tokens(len(numbers))

    def vectors(self, model: EmbeddingModel, ids: Ids) -> Vectors:
        """Vectors of this model in the order asked for; a row of zeros where there is none."""
        with self._lock:
            kept = self._vectors.get(model, {})
            nothing = np.zeros(model.dimensions, np.float32)
            found = [kept.get(number, nothing) for number in ids.tolist()]
            return np.stack(found) if found else np.zeros((0, model.dimensions), np.float32)

    def neighbours(self, ids: Ids, distance: int) -> Ids:
        """The chunks before and behind each in its group, shape (n, 2 * distance), 0 where there is none."""
        with self._lock:
            groups: dict[str, list[int]] = {}
            wanted = {entry.chunk.group for number in ids.tolist() if (entry := self._entries.get(number))}
            for number, entry in self._entries.items():
                if entry.chunk.group in wanted:
                    groups.setdefault(entry.chunk.group, []).append(number)
            places = {}
            for group in groups.values():
                group.sort(key=lambda number: (self._entries[number].chunk.position, number))
                places.update({number: (group, at) for at, number in enumerate(group)})
            return np.array([_around(places.get(number), distance) for number in ids.tolist()], np.int64).reshape(
                len(ids), 2 * distance
            )

    def document_frequency(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """How many chunks hold each term, in any column."""
        with self._lock:
            return np.array([len(self._postings.get(term, ())) for term in terms], np.int64)

    def count(self) -> int:
        """How many chunks there are."""
        with self._lock:
            return len(self._entries)


def _around(place: tuple[list[int], int] | None, distance: int) -> list[int]:
    if place is None:
        return [0] * (2 * distance)
    group, at = place
    offsets = [*range(-distance, 0), *range(1, distance + 1)]
    return [group[at + offset] if 0 <= at + offset < len(group) else 0 for offset in offsets]

"""Late interaction: how well each word of a query is met by the best word of a text.

After ColBERT (Khattab and Zaharia, 2020), with the vectors of single words from a static table instead of a model's.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.core.text import stem
from orchestra_mem.search_types import WordEmbedder

Floats = NDArray[np.float32]

_LEAST_SIMILARITY = 0.3
"""Cosine up to which two words have nothing to do with each other; measured with WordLlama, as good from 0.2 to 0.4."""


class WordTable:
    """The vectors of the words met so far, so that each is embedded once. Safe to share between threads.

    Args:
        embedder: gives the vectors.
        max_words: how many are kept, at four bytes a dimension; when more come, the table begins anew.
    """

    def __init__(self, embedder: WordEmbedder, *, max_words: int = 65_536) -> None:
        self.embedder = embedder
        self._max_words = max_words
        self._places_of: dict[str, int] = {}
        self._vectors: Floats = np.zeros((0, embedder.model.dimensions), np.float32)  # of unit length
        self._lengths: Floats = np.zeros(0, np.float32)
        self._lock = threading.Lock()

    def vectors(self, words: Sequence[str]) -> Floats:
        """Give the words' vectors as the model weighs them, shape (n, dimensions); see `WordEmbedder.embed_words`."""
        with self._lock:
            places = self._places(words)
            return self._vectors[places] * self._lengths[places, None]

    def matches(self, asked: Sequence[str], texts: Sequence[Sequence[str]]) -> Floats:
        """How well each word asked for is met by the best word of each text, shape (asked, texts), 0 to 1."""
        counts = np.array([len(text) for text in texts], np.int64)
        found = np.zeros((len(asked), len(texts)), np.float32)
        if not len(asked) or not counts.sum():
            return found
        with self._lock:
            places = self._places([*asked, *chain.from_iterable(texts)])
            distinct, rows = _distinct(places)
            vectors = self._vectors[distinct]
        similarities = _products(vectors, vectors[rows[: len(asked)]])
        for column, word in enumerate(asked):
            if word.isdecimal():  # 2023 is near 2024 for the table, and is another year
                similarities[:, column] = np.arange(len(distinct)) == rows[column]
        starts = np.concatenate(([0], np.cumsum(counts)[:-1]))[counts > 0]
        best = np.maximum.reduceat(similarities[rows[len(asked) :]], starts, axis=0)
        found[:, counts > 0] = np.clip((best.T - _LEAST_SIMILARITY) / (1 - _LEAST_SIMILARITY), 0, 1)
        return found

    def _places(self, words: Sequence[str]) -> NDArray[np.int64]:
        known = self._places_of
        new = [word for word in dict.fromkeys(words) if word not in known]
        if len(known) + len(new) > self._max_words:
            known.clear()
            new = list(dict.fromkeys(words))
        if new:
            start = len(known)
            self._grow(start + len(new))
            vectors = self.embedder.embed_words(new)
            self._lengths[start : start + len(new)] = np.linalg.norm(vectors, axis=1)
            self._vectors[start : start + len(new)] = unit(vectors)
            known.update(zip(new, range(start, start + len(new)), strict=True))
        return np.fromiter(map(known.__getitem__, words), np.int64, len(words))

    def _grow(self, count: int) -> None:
        if count > len(self._vectors):
            size = max(1_024, 2 * count)
            for name in ("_vectors", "_lengths"):
                smaller = getattr(self, name)
                larger = np.zeros((size, *smaller.shape[1:]), smaller.dtype)
                larger[: len(smaller)] = smaller
                setattr(self, name, larger)


def _distinct(places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct places, ascending, and for each place its number among them; `np.unique` sorts for it."""
    there = np.zeros(int(places.max()) + 1, bool)
    there[places] = True
    distinct = np.flatnonzero(there)
    numbers = np.empty(len(there), np.int64)
    numbers[distinct] = np.arange(len(distinct))
    return distinct, numbers[places]


_ONE_THREAD_PRODUCTS = 1 << 18
"""Up to so many multiplications OpenBLAS stays on one thread. On a busy machine waiting for a second costs 8 ms."""


def _products(rows: Floats, columns: Floats) -> Floats:
    """Multiply each row with each column (also given as a row), on one thread."""
    step = max(1, _ONE_THREAD_PRODUCTS // columns.size)
    turned = np.ascontiguousarray(columns.T)
    result = np.empty((len(rows), len(columns)), np.float32)
    for start in range(0, len(rows), step):
        np.matmul(rows[start : start + step], turned, out=result[start : start + step])
    return result


def equal_matches(asked: Sequence[str], texts: Sequence[Sequence[str]]) -> Floats:
    """Tell which words asked for a text has by stem, shape (asked, texts), 0 or 1: the same without any vectors."""
    stems = [{stem(word) for word in text} for text in texts]
    return np.array([[stem(word) in text for text in stems] for word in asked], np.float32).reshape(
        len(asked), len(texts)
    )


def unit(vectors: Floats) -> Floats:
    """Bring vectors to unit length; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    result: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return result

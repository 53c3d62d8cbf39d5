"""Late interaction: how well each word of a query is met by the best word of a text.

After ColBERT (Khattab and Zaharia, 2020), with the vectors of single words from a static table instead of a model's.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.core.text import stem
from orchestra_mem.search_types import WordEmbedder, WordLists

Floats = NDArray[np.float32]
Places = NDArray[np.int64]

Spell: TypeAlias = Callable[[str, NDArray[np.int64]], list[str]]
"""Gives the words behind numbers of a lexicon, as `SearchIndex.spell` does."""

MAX_WORDS = 65_536

_LEAST_SIMILARITY = 0.3
"""Cosine up to which two words have nothing to do with each other; measured with WordLlama, as good from 0.2 to 0.4."""


class _Table(ABC):
    """Gives each word a place, and each number of a lexicon that of its word: a word is looked up but once.

    When more than `max_words` come it begins anew.
    """

    def __init__(self, max_words: int) -> None:
        self._max_words = max_words
        self._places_of: dict[str, int] = {}
        self._lexicon = ""
        self._places_of_numbers: Places = np.zeros(0, np.int64)  # -1 where the word has not been met
        self._lock = threading.Lock()

    @abstractmethod
    def matches(self, asked: Sequence[str], texts: WordLists, spell: Spell) -> Floats:
        """How well each word asked for is met by the best word of each text, shape (asked, texts), 0 to 1."""

    def _key(self, word: str) -> str:
        """What stands for a word."""
        return word

    @abstractmethod
    def _take_in(self, keys: Sequence[str], start: int) -> None:
        """Keep what there is to keep of new words; the first gets the place `start`."""

    def _located(self, asked: Sequence[str], texts: WordLists, spell: Spell) -> tuple[Places, Places]:
        """The places of the words asked for, and of all words of the texts."""
        keys = [self._key(word) for word in asked]
        new, spelt = self._unmet(texts, spell)
        if self._is_too_much([*keys, *spelt]):
            self._begin_anew()
            new, spelt = self._unmet(texts, spell)
        self._places_of_numbers[new] = self._places(spelt)
        return self._places(keys), self._places_of_numbers[texts.numbers]

    def _unmet(self, texts: WordLists, spell: Spell) -> tuple[Places, list[str]]:
        """The numbers in texts whose words have not been met, and what stands for those words."""
        if texts.lexicon != self._lexicon:
            self._lexicon, self._places_of_numbers = texts.lexicon, np.zeros(0, np.int64)
        highest = int(texts.numbers.max(initial=-1))
        if highest >= len(self._places_of_numbers):
            more = np.full(2 * highest + 1_024 - len(self._places_of_numbers), -1, np.int64)
            self._places_of_numbers = np.concatenate([self._places_of_numbers, more])
        new = texts.numbers[self._places_of_numbers[texts.numbers] < 0]
        if not len(new):
            return new, []
        new = np.unique(new)
        return new, [self._key(word) for word in spell(texts.lexicon, new)]

    def _is_too_much(self, keys: Iterable[str]) -> bool:
        known = self._places_of
        return len(known) + len({key for key in keys if key not in known}) > self._max_words

    def _begin_anew(self) -> None:
        self._places_of.clear()
        self._places_of_numbers[:] = -1

    def _places(self, keys: Sequence[str]) -> Places:
        known = self._places_of
        new = [key for key in dict.fromkeys(keys) if key not in known]
        if new:
            self._take_in(new, len(known))
            known.update(zip(new, range(len(known), len(known) + len(new)), strict=True))
        return np.fromiter(map(known.__getitem__, keys), np.int64, len(keys))


class WordTable(_Table):
    """Compares words by their vectors, and embeds each but once. Safe to share between threads.

    Args:
        embedder: gives the vectors.
        max_words: how many are kept, at four bytes a dimension.
    """

    def __init__(self, embedder: WordEmbedder, *, max_words: int = MAX_WORDS) -> None:
        super().__init__(max_words)
        self.embedder = embedder
        # All there may be: the system gives memory for what is written alone, and growing would copy megabytes.
        self._vectors: Floats = np.zeros((max_words, embedder.model.dimensions), np.float32)  # of unit length
        self._lengths: Floats = np.zeros(max_words, np.float32)

    def vectors(self, words: Sequence[str]) -> Floats:
        """Give the words' vectors as the model weighs them, shape (n, dimensions); see `WordEmbedder.embed_words`."""
        with self._lock:
            if self._is_too_much(words):
                self._begin_anew()
            places = self._places(words)
            return self._vectors[places] * self._lengths[places, None]

    def matches(self, asked: Sequence[str], texts: WordLists, spell: Spell) -> Floats:
        """How well each word asked for is met by the nearest word of each text, shape (asked, texts), 0 to 1."""
        if not len(asked) or not len(texts.numbers):
            return np.zeros((len(asked), len(texts.counts)), np.float32)
        with self._lock:
            asked_places, places = self._located(asked, texts, spell)
            distinct, rows = _distinct(places)
            vectors, wanted = self._vectors[distinct], self._vectors[asked_places]
        similarities = _products(vectors, wanted)
        for column, word in enumerate(asked):
            if word.isdecimal():  # 2023 is near 2024 for the table, and is another year
                similarities[:, column] = distinct == asked_places[column]
        best = _best_of_text(similarities[rows], texts.counts)
        best -= _LEAST_SIMILARITY
        best /= 1 - _LEAST_SIMILARITY
        return best.clip(0, 1)

    def _take_in(self, keys: Sequence[str], start: int) -> None:
        end = start + len(keys)
        if end > len(self._vectors):  # one question alone has met more
            self._vectors, self._lengths = _grown(self._vectors, end), _grown(self._lengths, end)
        vectors = self.embedder.embed_words(keys)
        lengths = np.sqrt(np.vecdot(vectors, vectors))
        self._lengths[start:end] = lengths
        self._vectors[start:end] = vectors / np.where(lengths > 0, lengths, 1)[:, None]


class StemTable(_Table):
    """Compares words by their stems: met wholly or not at all. Safe to share between threads."""

    def __init__(self, *, max_words: int = MAX_WORDS) -> None:
        super().__init__(max_words)

    def matches(self, asked: Sequence[str], texts: WordLists, spell: Spell) -> Floats:
        """Tell which words asked for a text has by stem, shape (asked, texts), 0 or 1."""
        if not len(asked) or not len(texts.numbers):
            return np.zeros((len(asked), len(texts.counts)), np.float32)
        with self._lock:
            asked_places, places = self._located(asked, texts, spell)
        return _best_of_text((places[:, None] == asked_places).astype(np.float32), texts.counts)

    def _key(self, word: str) -> str:
        return stem(word)

    def _take_in(self, keys: Sequence[str], start: int) -> None:
        """Do nothing: its place is all that is kept of a stem."""


def _best_of_text(similarities: Floats, counts: NDArray[np.int64]) -> Floats:
    """The best of each text's rows, turned: shape (columns, texts); 0 for a text without any."""
    best = np.zeros((similarities.shape[1], len(counts)), np.float32)
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))[counts > 0]
    best[:, counts > 0] = np.maximum.reduceat(similarities, starts, axis=0).T
    return best


def _grown(values: Floats, size: int) -> Floats:
    larger = np.zeros((size, *values.shape[1:]), values.dtype)
    larger[: len(values)] = values
    return larger


def _distinct(places: Places) -> tuple[Places, Places]:
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


def unit(vectors: Floats) -> Floats:
    """Bring vectors to unit length; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    result: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return result

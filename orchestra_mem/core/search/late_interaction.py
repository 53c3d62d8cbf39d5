"""Late interaction: how well each word of a query is met by the best word of a text.

After ColBERT (Khattab and Zaharia, 2020), with the vectors of single words from a static table instead of a model's.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.core.text import stem
from orchestra_mem.search_types import Lexicon, Tokens, WordEmbedder, WordLists

Floats = NDArray[np.float32]
Places = NDArray[np.int64]

MAX_WORDS = 262_144

_LEAST_SIMILARITY = 0.3
"""Cosine up to which two words have nothing to do with each other; measured with WordLlama, as good from 0.2 to 0.4."""

_DIGIT = re.compile(r"\d")
_SAME = 0.999  # as near as a word is to itself, whatever the rounding


class _Table(ABC):
    """Gives each word asked for a place, and each number of a lexicon one: a word is looked up but once.

    When more than `max_words` come it begins anew.
    """

    def __init__(self, max_words: int) -> None:
        self._max_words = max_words
        self._used = 0
        self._places_of: dict[str, int] = {}
        self._lexicon = ""
        self._places_of_numbers: Places = np.zeros(0, np.int64)  # -1 where the word has not been met
        self._lock = threading.Lock()

    @abstractmethod
    def matches(self, asked: Sequence[str], texts: WordLists, lexicon: Lexicon) -> Floats:
        """How well each word asked for is met by the best word of each text, shape (asked, texts), 0 to 1."""

    @abstractmethod
    def _take_in(self, keys: Sequence[str]) -> None:
        """Keep what there is to keep of new words; the first gets the place `_used`."""

    @abstractmethod
    def _place_numbers(self, numbers: Places, lexicon: Lexicon) -> Places:
        """Give the words behind numbers of the lexicon their places."""

    def _located(self, keys: Sequence[str], texts: WordLists, lexicon: Lexicon) -> tuple[Places, Places, Places]:
        """The places of the words asked for; the distinct numbers in texts, and the places of their words."""
        if texts.lexicon != self._lexicon:
            self._lexicon, self._places_of_numbers = texts.lexicon, np.zeros(0, np.int64)
        numbers = _distinct(texts.numbers)
        more = int(numbers[-1]) + 1 - len(self._places_of_numbers)
        if more > 0:
            self._places_of_numbers = np.append(self._places_of_numbers, np.full(more + 1_024, -1))
        new = numbers[self._places_of_numbers[numbers] < 0]
        if self._used + len(new) + len(keys) > self._max_words:
            self._begin_anew()
            new = numbers
        if len(new):
            self._places_of_numbers[new] = self._place_numbers(new, lexicon)
        return self._places(keys), numbers, self._places_of_numbers[numbers]

    def _begin_anew(self) -> None:
        self._used = 0
        self._places_of.clear()
        self._places_of_numbers[:] = -1

    def _places(self, keys: Sequence[str]) -> Places:
        known = self._places_of
        new = [key for key in dict.fromkeys(keys) if key not in known]
        if new:
            self._take_in(new)
            known.update(zip(new, range(self._used, self._used + len(new)), strict=True))
            self._used += len(new)
        return np.fromiter(map(known.__getitem__, keys), np.int64, len(keys))


class WordTable(_Table):
    """Compares words by their vectors, which are the sums of their tokens'. Safe to share between threads.

    Kept are the tokens alone, some thirty bytes a word, and how long the vectors are: a text's words have many tokens
    in common, and each is compared but once.

    Args:
        embedder: gives tokens and vectors.
        max_words: how many are kept.
    """

    def __init__(self, embedder: WordEmbedder, *, max_words: int = MAX_WORDS) -> None:
        super().__init__(max_words)
        self.embedder = embedder
        self._tokens = np.zeros(0, np.int32)
        self._starts, self._counts = np.zeros(0, np.int64), np.zeros(0, np.int64)  # a word's run of tokens, by place
        self._lengths: Floats = np.zeros(0, np.float32)

    def vectors(self, words: Sequence[str]) -> Floats:
        """Give the words' vectors as the model weighs them, shape (n, dimensions); see `WordEmbedder.embed_words`."""
        with self._lock:
            if self._used + len(words) > self._max_words:
                self._begin_anew()
            tokens, starts, _ = self._cut(self._places(words))
        return _sums(self.embedder.token_vectors(tokens), starts)

    def matches(self, asked: Sequence[str], texts: WordLists, lexicon: Lexicon) -> Floats:
        """How well each word asked for is met by the nearest word of each text, shape (asked, texts), 0 to 1."""
        if not len(asked) or not len(texts.numbers):
            return np.zeros((len(asked), len(texts.counts)), np.float32)
        with self._lock:
            asked_places, numbers, places = self._located(asked, texts, lexicon)
            asked_tokens, asked_starts, _ = self._cut(asked_places)
            tokens, starts, lengths = self._cut(places)
        wanted = unit(_sums(self.embedder.token_vectors(asked_tokens), asked_starts))
        distinct = _distinct(tokens)
        products = _products(self.embedder.token_vectors(distinct), wanted)
        similarities = _sums(products[_rows_of(distinct)[tokens]], starts)
        similarities /= np.where(lengths > 0, lengths, 1)[:, None]
        for column, word in enumerate(asked):
            if _DIGIT.search(word):  # for the table 2023 is near 2024, and utf8 near utf16, which are other things
                near = np.flatnonzero(similarities[:, column] > _SAME)
                spelt = lexicon.spell(texts.lexicon, numbers[near])
                similarities[:, column] = 0
                similarities[near, column] = [each == word for each in spelt]
        best = _best_of_text(similarities[_rows_of(numbers)[texts.numbers]], texts.counts)
        best -= _LEAST_SIMILARITY
        best /= 1 - _LEAST_SIMILARITY
        return best.clip(0, 1)

    def _cut(self, places: Places) -> tuple[Places, Places, Floats]:
        """The tokens of the words at these places; where those of each begin, and where all end; the lengths."""
        counts = self._counts[places]
        starts = np.append(0, np.cumsum(counts))
        at = np.repeat(self._starts[places] - starts[:-1], counts) + np.arange(starts[-1])
        return self._tokens[at].astype(np.int64), starts, self._lengths[places]

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._tokens = self._tokens[:0]

    def _take_in(self, keys: Sequence[str]) -> None:
        self._keep(self.embedder.cut(keys))

    def _place_numbers(self, numbers: Places, lexicon: Lexicon) -> Places:
        tokens = lexicon.tokens(self.embedder.model, self._lexicon, numbers)
        cut = tokens.counts >= 0
        places = np.empty(len(numbers), np.int64)
        if not cut.all():
            places[~cut] = self._places(lexicon.spell(self._lexicon, numbers[~cut]))
        self._keep(Tokens(numbers=tokens.numbers, counts=tokens.counts[cut], lengths=tokens.lengths[cut]))
        count = int(np.count_nonzero(cut))
        places[cut] = np.arange(self._used, self._used + count)
        self._used += count
        return places

    def _keep(self, tokens: Tokens) -> None:
        """Put words behind those that are there."""
        start, end = self._used, self._used + len(tokens.counts)
        if end > len(self._counts):
            self._starts, self._counts = _grown(self._starts, end), _grown(self._counts, end)
            self._lengths = _grown(self._lengths, end)
        self._starts[start:end] = len(self._tokens) + np.cumsum(tokens.counts) - tokens.counts
        self._counts[start:end] = tokens.counts
        self._lengths[start:end] = tokens.lengths
        self._tokens = np.concatenate([self._tokens, tokens.numbers], dtype=np.int32, casting="same_kind")


def no_tokens(count: int) -> Tokens:
    """Say of so many words that nothing is kept of them."""
    return Tokens(numbers=np.zeros(0, np.int64), counts=np.full(count, -1), lengths=np.zeros(count, np.float32))


class StemTable(_Table):
    """Compares words by their stems: met wholly or not at all. Safe to share between threads."""

    def __init__(self, *, max_words: int = MAX_WORDS) -> None:
        super().__init__(max_words)

    def matches(self, asked: Sequence[str], texts: WordLists, lexicon: Lexicon) -> Floats:
        """Tell which words asked for a text has by stem, shape (asked, texts), 0 or 1."""
        if not len(asked) or not len(texts.numbers):
            return np.zeros((len(asked), len(texts.counts)), np.float32)
        with self._lock:
            asked_places, _, _ = self._located([stem(word) for word in asked], texts, lexicon)
            places = self._places_of_numbers[texts.numbers]
        return _best_of_text((places[:, None] == asked_places).astype(np.float32), texts.counts)

    def _take_in(self, keys: Sequence[str]) -> None:
        """Do nothing: its place is all that is kept of a stem."""

    def _place_numbers(self, numbers: Places, lexicon: Lexicon) -> Places:
        return self._places([stem(word) for word in lexicon.spell(self._lexicon, numbers)])


def _best_of_text(similarities: Floats, counts: NDArray[np.int64]) -> Floats:
    """The best of each text's rows, turned: shape (columns, texts); 0 for a text without any."""
    best = np.zeros((similarities.shape[1], len(counts)), np.float32)
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))[counts > 0]
    best[:, counts > 0] = np.maximum.reduceat(similarities, starts, axis=0).T
    return best


def _grown(values: NDArray[Any], least: int) -> NDArray[Any]:
    larger = np.zeros(2 * least, values.dtype)
    larger[: len(values)] = values
    return larger


def _sums(values: Floats, starts: Places) -> Floats:
    """Add up runs of rows; `starts` are where they begin, and at last where they end. An empty one gives zeros."""
    sums = np.zeros((len(starts) - 1, values.shape[1]), np.float32)
    having = starts[1:] > starts[:-1]
    if having.any():
        sums[having] = np.add.reduceat(values, starts[:-1][having])
    return sums


def _distinct(numbers: Places) -> Places:
    """The distinct numbers, ascending; `np.unique` sorts for it."""
    there = np.zeros(int(numbers.max(initial=-1)) + 1, bool)
    there[numbers] = True
    return np.flatnonzero(there)


def _rows_of(distinct: Places) -> Places:
    """By each of ascending numbers, its row among them."""
    rows = np.empty(int(distinct[-1]) + 1 if len(distinct) else 0, np.int64)
    rows[distinct] = np.arange(len(distinct))
    return rows


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

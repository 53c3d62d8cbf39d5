"""Late interaction: compare each word of a query with the best-matching word of a text.

As in ColBERT (Khattab and Zaharia, 2020), but with word vectors from a static table instead of a model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.search_types import Tokens, WordEmbedder

Floats: TypeAlias = "NDArray[np.float32]"
Places: TypeAlias = "NDArray[np.int64]"

_LEAST_SIMILARITY = 0.3
"""Cosine up to which two words count as unrelated. Measured with WordLlama: 0.2 to 0.4 are equally good."""

_DIGIT = re.compile(r"\d")
_SAME = 0.999  # cosine of a word with itself, less rounding errors
_ONE_THREAD_PRODUCTS = 1 << 18
"""Up to this many products OpenBLAS uses one thread. Waiting for a second thread costs 8 ms on a busy machine."""


def word_matches(asked: Sequence[str], texts: Tokens, word_counts: Places, embedder: WordEmbedder) -> Floats:
    """Return how well the nearest word of each text matches each query word: float32, shape (asked, texts), 0 to 1.

    A word's vector is the sum of its tokens' vectors, so each distinct token is compared only once.

    Args:
        asked: Content words of a query.
        texts: Tokens of the words of all texts, one text after the other.
        word_counts: Number of words of each text, int64, shape (texts,).
        embedder: Provides the vectors.
    """
    if not len(asked) or not len(texts.numbers):
        return np.zeros((len(asked), len(word_counts)), np.float32)
    wanted = unit(embedder.embed_words(asked))
    distinct = np.flatnonzero(np.bincount(texts.numbers))
    row_of = np.empty(int(distinct[-1]) + 1, np.int64)
    row_of[distinct] = np.arange(len(distinct))
    products = _products(embedder.token_vectors(distinct), wanted)
    ends = np.cumsum(texts.counts)
    similarities = _reduced(np.add, products[row_of[texts.numbers]], texts.counts)
    similarities /= np.where(texts.lengths > 0, texts.lengths, 1)[:, None]
    for column, word in enumerate(asked):
        if _DIGIT.search(word):  # exact match only: the table has 2023 near 2024, and utf8 near utf16
            own = embedder.cut([word]).numbers.tolist()
            near = np.flatnonzero(similarities[:, column] > _SAME)
            similarities[:, column] = 0
            similarities[near, column] = [
                texts.numbers[ends[row] - texts.counts[row] : ends[row]].tolist() == own for row in near.tolist()
            ]
    best = _reduced(np.maximum, similarities, word_counts).T
    best -= _LEAST_SIMILARITY
    best /= 1 - _LEAST_SIMILARITY
    return best.clip(0, 1)


def _reduced(operation: np.ufunc, values: Floats, counts: Places) -> Floats:
    """Reduce consecutive runs of `counts` rows to a row each; an empty run yields zeros."""
    reduced = np.zeros((len(counts), values.shape[1]), np.float32)
    having = counts > 0
    reduced[having] = operation.reduceat(values, (np.cumsum(counts) - counts)[having])
    return reduced


def _products(rows: Floats, columns: Floats) -> Floats:
    """Return the dot product of each row with each row of `columns`, in steps small enough for a single thread."""
    step = max(1, _ONE_THREAD_PRODUCTS // columns.size)
    turned = np.ascontiguousarray(columns.T)
    result = np.empty((len(rows), len(columns)), np.float32)
    for start in range(0, len(rows), step):
        np.matmul(rows[start : start + step], turned, out=result[start : start + step])
    return result


def unit(vectors: Floats) -> Floats:
    """Scale vectors to unit length; zero vectors stay zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    result: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return result

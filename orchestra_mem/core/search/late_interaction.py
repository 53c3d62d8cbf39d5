"""Compare each word of a query with the best matching word of a text (late interaction).

After ColBERT (Khattab and Zaharia, 2020), with the vectors of single words from a static table instead of a model's.
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
"""Cosine up to which two words have nothing to do with each other; measured with WordLlama, as good from 0.2 to 0.4."""

_DIGIT = re.compile(r"\d")
_SAME = 0.999  # as near as a word is to itself, whatever the rounding
_ONE_THREAD_PRODUCTS = 1 << 18
"""Up to so many multiplications OpenBLAS stays on one thread. On a busy machine waiting for a second costs 8 ms."""


def word_matches(asked: Sequence[str], texts: Tokens, word_counts: Places, embedder: WordEmbedder) -> Floats:
    """Return how well each word asked for is met by the nearest word of each text, shape (asked, texts), 0 to 1.

    A word's vector is the sum of its tokens': the tokens that texts share are compared but once.

    Args:
        asked: content words of a query.
        texts: the tokens of all texts' words, one text after the other.
        word_counts: how many words each text has, shape (texts,).
        embedder: gives the vectors.
    """
    if not len(asked) or not len(texts.numbers):
        return np.zeros((len(asked), len(word_counts)), np.float32)
    wanted = unit(embedder.embed_words(asked))
    distinct = np.flatnonzero(np.bincount(texts.numbers))
    row_of = np.empty(int(distinct[-1]) + 1, np.int64)
    row_of[distinct] = np.arange(len(distinct))
    products = _products(embedder.token_vectors(distinct), wanted)
    ends = np.cumsum(texts.counts)
    similarities = _sums(products[row_of[texts.numbers]], texts.counts)
    similarities /= np.where(texts.lengths > 0, texts.lengths, 1)[:, None]
    for column, word in enumerate(asked):
        if _DIGIT.search(word):  # for the table 2023 is near 2024, and utf8 near utf16, which are other things
            own = embedder.cut([word]).numbers.tolist()
            near = np.flatnonzero(similarities[:, column] > _SAME)
            similarities[:, column] = 0
            similarities[near, column] = [
                texts.numbers[ends[row] - texts.counts[row] : ends[row]].tolist() == own for row in near.tolist()
            ]
    best = np.zeros((len(asked), len(word_counts)), np.float32)
    having = word_counts > 0
    starts = (np.cumsum(word_counts) - word_counts)[having]
    best[:, having] = np.maximum.reduceat(similarities, starts, axis=0).T
    best -= _LEAST_SIMILARITY
    best /= 1 - _LEAST_SIMILARITY
    return best.clip(0, 1)


def _sums(values: Floats, counts: Places) -> Floats:
    """Add up runs of rows; an empty run gives zeros."""
    sums = np.zeros((len(counts), values.shape[1]), np.float32)
    having = counts > 0
    sums[having] = np.add.reduceat(values, (np.cumsum(counts) - counts)[having])
    return sums


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

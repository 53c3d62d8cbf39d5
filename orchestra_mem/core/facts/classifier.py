"""Classify sentences by kind of fact, with linear models over hashed n-grams, trained by `tools/train_facts.py`.

The table `facts.npz` holds `weights` (int8, shape (COLUMNS, classes + 3)), `scales` and `bias` (float32, one per column
of `weights`), and `classes` (`none`, then the kinds). Column 0 scores whether a sentence is not a fact; the columns of
the kinds choose the kind of a fact. The last three columns score whether a sentence takes something back, whether it
reports a repair, and whether it only proposes, wishes, asks or denies what it says. `rarity` (float16, shape
(COLUMNS,)) is the logarithm of the inverse document frequency of each word stem; `pairs` and `pair_bias` weigh the
features of two facts, in a row for earlier facts that hold and one for unfinished ones, see `pairs`; `values` and
`value_bias` weigh those of their differing places, for which `value_rarity` (like `rarity`) tells common words, see
`values`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.types import MustKeepKind

BITS = 18
COLUMNS = 1 << BITS
SIGNS, OPEN = 3, 2  # number of signs, and the column of the sign that a sentence leaves open what it says
_CHARACTERS = (2, 3, 4)
_MAX_CHARS = 400
_BEGIN, _END = "\x02", "\x03"
_BLANKS = re.compile(r"\s+")
_DIGITS = re.compile(r"\d+")
_MASKED = re.compile("x{2,}")  # a masked code span or quotation (see `prose.masked`), whatever its length

# Odd, so that it has an inverse modulo 2**64, which makes the hash of a word independent of its position.
_BASE = 0x9E3779B97F4A7C15
_BASE_INVERSE = pow(_BASE, -1, 1 << 64)
_MIX = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence to classify.

    `circumstances`: Labels of its context, such as `voice=commit`. `heading`: Heading above the sentence, may be empty.
    """

    text: str
    circumstances: tuple[str, ...] = ()
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Features:
    """Sparse matrix of `count` rows; the arrays have equal lengths.

    Entry `i` is `values[i]`, at row `rows[i]` and column `columns[i]`. `rows` ascend within each family of features.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float32]
    count: int


def column_of(word: str) -> int:
    """Return the index of a word stem in `rarity`."""
    return crc32(word.encode("utf-8", "replace")) & (COLUMNS - 1)


@lru_cache(maxsize=8_192)
def rarity_of(word: str) -> float:
    """Return the rarity of a word stem: the logarithm of its inverse document frequency."""
    return float(load_table().rarity[column_of(word)])


def features_of(sentences: Sequence[Sentence]) -> Features:
    """Hash sentences into columns 0 to `COLUMNS` - 1. In each row, the entries of one family have Euclidean norm 1."""
    texts = [_plain(sentence.text) for sentence in sentences]
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "replace"), dtype="<u4").astype(np.uint64)
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    row_of = np.repeat(np.arange(len(texts)), lengths)
    families = (_words(codes, row_of), _characters(codes, row_of), _circumstances(sentences))
    parts = []
    for rows, hashes in families:
        per_row = np.bincount(rows, minlength=len(texts))
        parts.append((rows, hashes, (1.0 / np.sqrt(np.maximum(per_row, 1)))[rows]))
    rows, hashes, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    columns = ((hashes * _MIX) >> np.uint64(64 - BITS)).astype(np.int64)
    return Features(rows, columns, values.astype(np.float32), len(texts))


def _plain(text: str) -> str:
    flat = _DIGITS.sub("0", _MASKED.sub("x", " ".join(text.replace("’", "'").split()).lower()))
    return f"{_BEGIN}{flat[:_MAX_CHARS]}{_END}"


def _characters(codes: NDArray[np.uint64], row_of: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the row and hash of each character n-gram; no n-gram spans two texts."""
    rows, hashes = [], []
    base = np.uint64(_BASE)
    for size in _CHARACTERS:
        if len(codes) < size:
            continue
        end = len(codes) - size + 1
        found = np.full(end, size, dtype=np.uint64)
        for offset in range(size):
            found = found * base + codes[offset : offset + end]
        inside = row_of[:end] == row_of[size - 1 :]
        rows.append(row_of[:end][inside])
        hashes.append(found[inside])
    return np.concatenate(rows), np.concatenate(hashes)


def _words(codes: NDArray[np.uint64], row_of: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the row and hash of each word and pair of adjacent words; a text's begin and end marks count as words."""
    # Each character of a script without spaces between words counts as one word.
    alone = ((codes >= 0x3040) & (codes < 0xA000)) | ((codes >= 0xF900) & (codes < 0xFB00))
    letters = _is_letter(codes) & ~alone
    edges = np.flatnonzero(np.diff(np.concatenate(([0], letters.view(np.int8), [0]))))
    starts, ends = edges[::2], edges[1::2]
    marks = np.flatnonzero((codes == ord(_BEGIN)) | (codes == ord(_END)) | alone)
    starts, ends = np.concatenate((starts, marks)), np.concatenate((ends, marks + 1))
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    powers = _powers(_BASE, len(codes))
    sums = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(codes * powers, dtype=np.uint64)))
    words = (sums[ends] - sums[starts]) * _powers(_BASE_INVERSE, len(codes) + 1)[starts]
    rows = row_of[starts]
    pairs = words[:-1] * np.uint64(_BASE) + words[1:]
    beside = rows[:-1] == rows[1:]
    return np.concatenate((rows, rows[:-1][beside])), np.concatenate((words, pairs[beside] + np.uint64(1)))


def _circumstances(sentences: Sequence[Sentence]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    rows, hashes = [], []
    for number, sentence in enumerate(sentences):
        headings = _BLANKS.split(sentence.heading.lower().strip(" #:*_-")) if sentence.heading else ()
        for label in (*sentence.circumstances, *(f"heading={word.strip(':,.')}" for word in headings)):
            rows.append(number)
            hashes.append(crc32(label.encode("utf-8", "replace")) + (1 << 40))
    return np.array(rows, dtype=np.int64), np.array(hashes, dtype=np.uint64)


def _is_letter(codes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    table = np.zeros(0xC0, dtype=bool)
    for letter in "abcdefghijklmnopqrstuvwxyz0123456789'_":
        table[ord(letter)] = True
    # From U+00C0 on, everything is a letter except general, CJK and full-width punctuation (and full-width digits).
    high = (codes >= 0xC0) & ~((codes >= 0x2000) & (codes < 0x2070)) & ~((codes >= 0x3000) & (codes < 0x3040))
    high &= ~((codes >= 0xFF00) & (codes < 0xFF21))
    return table[np.minimum(codes, 0xBF).astype(np.int64)] & (codes < 0xC0) | high


def _powers(base: int, count: int) -> NDArray[np.uint64]:
    powers = np.full(count, base, dtype=np.uint64)
    powers[:1] = 1
    return np.multiply.accumulate(powers)


_BATCH = 64  # sentences; limits memory, as each of their n-grams takes a few hundred bytes


class Table(NamedTuple):
    """Weights of the linear models; see the module docstring."""

    weights: NDArray[np.int8]
    scales: NDArray[np.float32]
    bias: NDArray[np.float32]
    kinds: tuple[MustKeepKind, ...]
    rarity: NDArray[np.float16]
    pairs: NDArray[np.float32]
    pair_bias: NDArray[np.float32]
    values: NDArray[np.float32]
    value_bias: float
    value_rarity: NDArray[np.float16]


def probabilities(sentences: Sequence[Sentence]) -> NDArray[np.float32]:
    """Return the probabilities of no fact (column 0) and of each kind: float32, shape (n, 1 + kinds), rows sum to 1."""
    table = load_table()
    rows = np.empty((len(sentences), len(table.bias) - SIGNS), dtype=np.float32)
    for first in range(0, len(sentences), _BATCH):
        batch = slice(first, first + _BATCH)
        logits = logits_of(features_of(sentences[batch]), table, slice(-SIGNS))
        none = 1.0 / (1.0 + np.exp(-logits[:, :1]))
        shares = np.exp(logits[:, 1:] - logits[:, 1:].max(axis=1, keepdims=True))
        rows[batch] = np.hstack((none, (1.0 - none) * shares / shares.sum(axis=1, keepdims=True)))
    return rows


def signs_of(texts: Sequence[str]) -> NDArray[np.float32]:
    """Score how likely each text takes something back, reports a repair, and leaves open what it says.

    Returns: Logits, float32, shape (n, 3).
    """
    if not texts:
        return np.empty((0, SIGNS), dtype=np.float32)
    return logits_of(features_of([Sentence(text=text) for text in texts]), load_table(), slice(-SIGNS, None))


def logits_of(features: Features, table: Table, classes: slice = slice(None)) -> NDArray[np.float32]:
    """Sum the weights of each row's features for the selected classes: float32, shape (rows, classes)."""
    scales, bias = table.scales[classes], table.bias[classes]
    added = np.empty((features.count, len(bias)), dtype=np.float32)
    # Contiguous per class, because `bincount` sums one class at a time.
    weighted = np.ascontiguousarray(table.weights.take(features.columns, axis=0)[:, classes].T) * features.values
    for number, of_class in enumerate(weighted):
        added[:, number] = np.bincount(features.rows, weights=of_class, minlength=features.count)
    return added * scales + bias


@lru_cache(maxsize=1)
def load_table() -> Table:
    """Load the trained table, once per process."""
    with as_file(files(__package__) / "facts.npz") as path, np.load(path) as stored:
        return Table(
            weights=stored["weights"],
            scales=stored["scales"],
            bias=stored["bias"],
            kinds=tuple(MustKeepKind(name) for name in stored["classes"].tolist()[1:]),
            rarity=stored["rarity"],
            pairs=stored["pairs"],
            pair_bias=stored["pair_bias"],
            values=stored["values"],
            value_bias=float(stored["value_bias"]),
            value_rarity=stored["value_rarity"],
        )

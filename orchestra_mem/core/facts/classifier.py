"""Which kind of fact a sentence tells: a trained linear model over hashed n-grams. `tools/train_facts.py` made it.

The table `facts.npz` holds `weights` (int8, shape (COLUMNS, classes + 2)), `scales` and `bias` (float32, one a column
of `weights`), and `classes` (the kinds, `none` first). Column 0 tells whether a sentence is no fact, the columns of the
kinds which kind it is if it is one; the two behind the classes tell whether it takes something back, and whether it
says that something is mended. `rarity` (float16, shape (COLUMNS,)) is how telling a word is; `pairs` and `pair_bias`
weigh two facts, see `superseding`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import as_file, files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.core.facts.features import Features, Sentence, features_of
from orchestra_mem.types import MustKeepKind

_BATCH = 256  # sentences; a few hundred bytes for each of their n-grams are in memory at once


class Table(NamedTuple):
    """The weights of a linear model; see the module."""

    weights: NDArray[np.int8]
    scales: NDArray[np.float32]
    bias: NDArray[np.float32]
    kinds: tuple[MustKeepKind, ...]
    rarity: NDArray[np.float16]
    pairs: NDArray[np.float32]
    pair_bias: float


def probabilities(sentences: Sequence[Sentence]) -> NDArray[np.float32]:
    """Estimate of what kind each sentence is: float32, shape (n, 1 + kinds), rows sum to 1, column 0 no fact."""
    table = load_table()
    rows = np.empty((len(sentences), len(table.bias) - 2), dtype=np.float32)
    for first in range(0, len(sentences), _BATCH):
        batch = slice(first, first + _BATCH)
        logits = logits_of(features_of(sentences[batch]), table, slice(-2))
        none = 1.0 / (1.0 + np.exp(-logits[:, :1]))
        shares = np.exp(logits[:, 1:] - logits[:, 1:].max(axis=1, keepdims=True))
        rows[batch] = np.hstack((none, (1.0 - none) * shares / shares.sum(axis=1, keepdims=True)))
    return rows


def signs_of(texts: Sequence[str]) -> NDArray[np.float32]:
    """Weigh for each text whether it takes something back, and whether it says that something is mended.

    Returns: float32, shape (n, 2), the higher the likelier.
    """
    if not texts:
        return np.empty((0, 2), dtype=np.float32)
    return logits_of(features_of([Sentence(text=text) for text in texts]), load_table(), slice(-2, None))


def logits_of(features: Features, table: Table, classes: slice = slice(None)) -> NDArray[np.float32]:
    """Add up the weights of each row's columns, for some classes or all: float32, shape (rows, classes)."""
    scales, bias = table.scales[classes], table.bias[classes]
    added = np.empty((features.count, len(bias)), dtype=np.float32)
    # Class by class in one piece, as they are added up.
    weighted = np.ascontiguousarray(table.weights.take(features.columns, axis=0)[:, classes].T) * features.values
    for number, of_class in enumerate(weighted):
        added[:, number] = np.bincount(features.rows, weights=of_class, minlength=features.count)
    return added * scales + bias


@lru_cache(maxsize=1)
def load_table() -> Table:
    """Load the trained table once."""
    with as_file(files(__package__) / "facts.npz") as path, np.load(path) as stored:
        return Table(
            weights=stored["weights"],
            scales=stored["scales"],
            bias=stored["bias"],
            kinds=tuple(MustKeepKind(name) for name in stored["classes"].tolist()[1:]),
            rarity=stored["rarity"],
            pairs=stored["pairs"],
            pair_bias=float(stored["pair_bias"]),
        )

"""Rank candidates: fuse their scores, add shares of their surroundings and traits, apply priors, diversify.

All of it is arithmetic over arrays with a row for each candidate, which `hybrid.py` makes. Every part is a named share
or a named prior, so that a hit can explain its rank.

How each part was chosen and what it is worth is measured by `benchmarks/retrieval.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.core.search.question import Period

LEAST_LIKELY = 0.04  # what is less likely to answer is a `perhaps`
Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How much each part counts. Zero takes a part away.

    `keyword`, `dense` and `late` mix a candidate's own score. The shares that follow are of values from 0
    to 1: its own score; the question's words in it or, worth less, around it (`coverage`; where no words are compared
    its own score again); the own scores of the one before, the second before, and the best in its group; and the
    traits. Priors multiply by at most 1 plus their weight; `half_life_days` is after what time the recency prior is
    halved. `diversity` is what the same again is lowered by, in best scores, 0 to 1.

    The shares' defaults lie where fits that leave one talk after the other out gather: a plateau, on which a change by
    a third costs less than 0.01 of recall (`benchmarks/retrieval.py`). Priors are too small to outweigh any of them.
    """

    keyword: float = 0.3
    dense: float = 0.4
    late: float = 0.3
    own: float = 0.4
    coverage: float = 0.6
    before: float = 0.2
    second_before: float = 0.15
    group: float = 0.4
    agent: float = 0.5
    statement: float = 0.15
    substance: float = 0.2
    tells_time: float = 0.35
    period: float = 0.6
    recency: float = 0.02
    half_life_days: float = 30.0
    importance: float = 0.1
    same_session: float = 0.02
    diversity: float = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Candidates to rank, a row each.

    Attributes:
        keyword: BM25, shape (n,); 0 where keyword search did not find it.
        dense: cosine, shape (n,); 0 where there is no vector.
        matches: how well each of the question's words is met, shape (words, n), 0 to 1.
        rarities: of the question's words, shape (words,), over 0.
        before: the row of the one before in its group, shape (n,); -1 where that is no candidate.
        behind: the row of the one behind, likewise.
        groups: numbers that are equal where the groups are, shape (n,).
        traits: by the name of their weight, shape (n,), 0 to 1.
        priors: by the name of their weight, shape (n,), -1 to 1.
    """

    keyword: Floats
    dense: Floats
    matches: Floats
    rarities: Floats
    before: Rows
    behind: Rows
    groups: Rows
    traits: Mapping[str, Floats]
    priors: Mapping[str, Floats]


# What a word counts that is not in the candidate but in the one before, the one behind, two off, or in its group.
_WORD_BEFORE, _WORD_BEHIND, _WORD_TWO_OFF, _WORD_IN_GROUP = 0.7, 0.5, 0.3, 0.2
_STATEMENT_KEEPS = 0.5  # of its words, which a question lends to its answer: a statement may be the answer itself

_AFTER_HALF_LIFE_DAYS, _AHEAD_HALF_LIFE_DAYS = 14.0, 3.0
"""How fast a time beside a period named counts less: what happened is told later more often than before."""

_OUTSIDE = 0.8
_SECONDS_A_DAY = 86_400.0
_NEAR_DUPLICATE = 0.9
_FULL_TEXT_WORDS = 30  # what says so many different things says enough


def shares_of(pool: Pool, weights: Weights) -> dict[str, Floats]:
    """Give each candidate's shares by name, in the order of `Weights`; what weighs nothing is left out."""
    late = _weighted_mean(pool.matches, pool.rarities)
    parts = ((weights.keyword, pool.keyword), (weights.dense, pool.dense), (weights.late, late))
    own: Floats = sum((np.float32(weight) * to_one(values) for weight, values in parts), np.zeros_like(late))
    if len(pool.matches):
        coverage = _weighted_mean(_with_surroundings(pool), pool.rarities)
    else:  # no words to compare, as where meaning alone is asked for: what is left has to outweigh the traits
        own = coverage = to_one(own)
    values = {
        "own": own,
        "coverage": coverage,
        "before": _taken(own, pool.before),
        "second_before": _taken(own, _chained(pool.before)),
        "group": _best_of_group(own, pool.groups),
        **pool.traits,
    }
    return {name: value * weight for name, value in values.items() if (weight := getattr(weights, name))}


def priors_of(pool: Pool, weights: Weights) -> dict[str, Floats]:
    """Give the factors by which each candidate's sum of shares is multiplied, by name."""
    return {name: 1 + value * weight for name, value in pool.priors.items() if (weight := getattr(weights, name))}


def likelihoods(pool: Pool, shares: Mapping[str, Floats], scores: Floats, count: int) -> Floats:
    """Say how likely each candidate is to answer the question, 0 to 1: unlike scores, comparable between answers.

    A logistic regression, fitted to hits of LoCoMo's questions in memories of 3 to 700 turns, with an answer there and
    without. The larger a memory, the more of it matches by chance; `count` is how many chunks there are. Cosines, whose
    scale is the model's, count only where there is nothing else.
    """
    size = math.log(min(max(count, 1), 1_000))
    by_all = 2.79 * scores + 6.48 * shares.get("coverage", 0) - 0.31 * size - 7.07
    by_meaning = 9.6 * pool.dense - 0.25 * size - 4.38
    likely: Floats = (1 / (1 + np.exp(-(by_all if len(pool.matches) else by_meaning)))).astype(np.float32)
    return likely


def nearness(seconds: NDArray[np.float64], periods: Sequence[Period]) -> Floats:
    """Return how near each time is to the nearest of the periods: 1 within, at most 0.8 outside; 0 for NaN.

    Args:
        seconds: since the epoch, NaN for no time.
        periods: at least one.
    """
    best = np.zeros(len(seconds), np.float32)
    for period in periods:
        late = np.maximum(0, seconds - period.end.timestamp()) / (_SECONDS_A_DAY * _AFTER_HALF_LIFE_DAYS)
        early = np.maximum(0, period.start.timestamp() - seconds) / (_SECONDS_A_DAY * _AHEAD_HALF_LIFE_DAYS)
        off = late + early
        best = np.fmax(best, np.where(off == 0, 1.0, _OUTSIDE * np.exp2(-off)).astype(np.float32))
    return best


def recency(seconds: NDArray[np.float64], now: datetime, half_life_days: float) -> Floats:
    """How recent each time (seconds since the epoch) is: 1 now and later, halved with each half-life; 0 for NaN."""
    ages = np.nan_to_num((now.timestamp() - seconds) / _SECONDS_A_DAY, nan=np.inf)
    recent: Floats = np.exp2(-np.maximum(0, ages) / half_life_days).astype(np.float32)
    return recent


def substance(word_counts: Rows) -> Floats:
    """Return how much texts say, 0 to 1, by how many different words they have: greetings and thanks answer nothing."""
    return np.minimum(1.0, np.log1p(word_counts) / math.log1p(_FULL_TEXT_WORDS)).astype(np.float32)


def to_one(values: Floats) -> Floats:
    """Scale so that the best is 1; what is negative counts as 0."""
    scaled: Floats = np.maximum(values, np.float32(0))
    best = scaled.max(initial=0.0)
    if best > 0:
        scaled /= best
    return scaled


def diversify(scores: Floats, vectors: Floats, limit: int, full_malus: float) -> list[int]:
    """Choose rows one after the other, the best first, each with a malus for the likeness to one chosen before it.

    Maximal marginal relevance (Carbonell and Goldstein, 1998), with likeness counted from a cosine of 0.9 up: turns of
    one talk are alike without repeating each other.

    Args:
        scores: shape (n,).
        vectors: shape (n, dimensions), unit length; zeros are like nothing.
        limit: how many rows to choose.
        full_malus: what the same again is lowered by.
    """
    left = scores.astype(np.float64)
    malus = np.zeros(len(scores))
    chosen: list[int] = []
    while len(chosen) < min(limit, len(scores)):
        row = int(np.argmax(left - malus))
        chosen.append(row)
        left[row] = -np.inf
        likeness = np.clip((np.vecdot(vectors, vectors[row]) - _NEAR_DUPLICATE) / (1 - _NEAR_DUPLICATE), 0, 1)
        malus = np.maximum(malus, full_malus * likeness)
    return chosen


def _with_surroundings(pool: Pool) -> Floats:
    """Count a word that is not met in a candidate, or less well, where it is met around it."""
    best: Floats = np.maximum(pool.matches, _WORD_IN_GROUP * _best_of_group(pool.matches, pool.groups))
    lent = pool.matches * (1 - _STATEMENT_KEEPS * pool.traits.get("statement", np.float32(0)))
    for near, rows in ((_WORD_BEFORE, pool.before), (_WORD_BEHIND, pool.behind)):
        np.maximum(best, near * _taken(lent, rows), out=best)
        np.maximum(best, _WORD_TWO_OFF * _taken(lent, _chained(rows)), out=best)
    return best


def _weighted_mean(matches: Floats, rarities: Floats) -> Floats:
    total = rarities.sum()
    mean: Floats = rarities @ matches / total if total else np.zeros(matches.shape[1], np.float32)
    return mean


def _taken(values: Floats, rows: Rows) -> Floats:
    """The values at other rows, 0 at row -1."""
    padded = np.concatenate([values, np.zeros((*values.shape[:-1], 1), np.float32)], axis=-1)
    taken: Floats = padded[..., rows]
    return taken


def _chained(rows: Rows) -> Rows:
    """The row of the row, -1 where the way breaks off."""
    chained: Rows = np.append(rows, -1)[rows]
    return chained


def _best_of_group(values: Floats, groups: Rows) -> Floats:
    if not len(groups):
        return values
    order = np.argsort(groups, kind="stable")
    first = np.flatnonzero(np.diff(groups[order], prepend=groups[order[0]] - 1))
    best = np.maximum.reduceat(values[..., order], first, axis=-1)
    _, group_of_row = np.unique(groups, return_inverse=True)
    taken: Floats = best[..., group_of_row]
    return taken

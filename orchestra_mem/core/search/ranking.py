"""Rank candidates: fuse their scores, add shares for neighbours and traits, apply priors, diversify.

All functions are arithmetic over arrays with one row per candidate, which `hybrid.py` builds. A score consists of named
shares and named priors, so that a hit can explain its rank. `benchmarks/retrieval.py` measures the gain of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.core.periods import Period

LEAST_LIKELY = 0.04  # a hit with a lower likelihood is marked `perhaps`
Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of the parts of a score; 0 turns a part off.

    `keyword`, `dense` and `late` combine three scores to a candidate's own score. The weights from `own` to `period`
    multiply values from 0 to 1. `own`: The own score. `coverage`: How well the candidate and, with less weight, its
    neighbours cover the query's words (the own score again if no words are compared). `before`, `second_before`,
    `group`: The own scores of the two previous chunks and of the group's best. Others: The traits. A prior multiplies
    the sum by at most 1 plus its weight; `half_life_days` is the half-life of the recency prior. `diversity` is the
    penalty for near-duplicate hits, as a share of the best score, 0 to 1.

    The defaults of the shares come from leave-one-conversation-out fits: on a plateau where changing a weight by a
    third costs less than 0.01 of recall (`benchmarks/retrieval.py`). Priors are too small to outweigh any share.
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
    """Candidates to rank, one row each.

    Attributes:
        keyword: BM25 score, float32, shape (n,); 0 if keyword search did not find the candidate.
        dense: Cosine, float32, shape (n,); 0 if there is no vector.
        matches: How well each query word is matched, float32, shape (words, n), 0 to 1.
        rarities: Rarity of each query word, float32, shape (words,), positive.
        before: Row of the previous chunk in the same group, int64, shape (n,); -1 if that is not a candidate.
        behind: Row of the next chunk in the same group, int64, shape (n,); -1 if that is not a candidate.
        groups: Number of the group from `split_at_pauses`, int64, shape (n,).
        traits: Values by the name of their weight, each float32, shape (n,), 0 to 1.
        priors: Values by the name of their weight, each float32, shape (n,), -1 to 1.
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


# Weight of a query word found only in a neighbour: the previous chunk, the next, two away, or any in the group.
_WORD_BEFORE, _WORD_BEHIND, _WORD_TWO_OFF, _WORD_IN_GROUP = 0.7, 0.5, 0.3, 0.2
# Share by which a statement's matches count less for its neighbours: unlike a question, it may be the answer itself.
_STATEMENT_KEEPS = 0.5

_AFTER_HALF_LIFE_DAYS, _AHEAD_HALF_LIFE_DAYS = 14.0, 3.0
"""Half-lives of `nearness` after and before a named period: events are recorded afterwards more often than before."""

_OUTSIDE = 0.8
_SECONDS_A_DAY = 86_400.0
_NEAR_DUPLICATE = 0.9
_PAUSE_S = 7_200  # a session may last for months; with LoCoMo as one session, ten minutes to a day are equally good
_FULL_TEXT_WORDS = 30  # with this many distinct words a text has full `substance`


def shares_of(pool: Pool, weights: Weights) -> dict[str, Floats]:
    """Return each candidate's shares by name; shares with weight 0 are left out."""
    late = _weighted_mean(pool.matches, pool.rarities)
    parts = ((weights.keyword, pool.keyword), (weights.dense, pool.dense), (weights.late, late))
    own: Floats = sum((np.float32(weight) * to_one(values) for weight, values in parts), np.zeros_like(late))
    if len(pool.matches):
        coverage = _weighted_mean(_with_surroundings(pool), pool.rarities)
    else:  # no words are compared, as in dense mode: scale the own score up against the traits
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
    """Return the factors, by name, that multiply each candidate's sum of shares."""
    return {name: 1 + value * weight for name, value in pool.priors.items() if (weight := getattr(weights, name))}


def likelihoods(pool: Pool, shares: Mapping[str, Floats], scores: Floats, count: int) -> Floats:
    """Return the probability that each candidate answers the query; unlike scores, it is comparable across queries.

    A logistic regression, fitted on hits for LoCoMo questions in memories of 3 to 700 turns, with and without the
    answer. `count` is the number of chunks: the larger a memory, the more of it matches by chance. Cosines are used
    only if no words are compared, as their scale depends on the model.
    """
    size = math.log(min(max(count, 1), 1_000))
    by_all = 2.79 * scores + 6.48 * shares.get("coverage", 0) - 0.31 * size - 7.07
    by_meaning = 9.6 * pool.dense - 0.25 * size - 4.38
    likely: Floats = (1 / (1 + np.exp(-(by_all if len(pool.matches) else by_meaning)))).astype(np.float32)
    return likely


def nearness(seconds: NDArray[np.float64], periods: Sequence[Period]) -> Floats:
    """Return how near each time is to the nearest period: 1 inside, at most 0.8 outside, 0 for NaN.

    Args:
        seconds: Seconds since the epoch, NaN for no time.
        periods: At least one.
    """
    best = np.zeros(len(seconds), np.float32)
    for period in periods:
        late = np.maximum(0, seconds - period.end.timestamp()) / (_SECONDS_A_DAY * _AFTER_HALF_LIFE_DAYS)
        early = np.maximum(0, period.start.timestamp() - seconds) / (_SECONDS_A_DAY * _AHEAD_HALF_LIFE_DAYS)
        off = late + early
        best = np.fmax(best, np.where(off == 0, 1.0, _OUTSIDE * np.exp2(-off)).astype(np.float32))
    return best


def recency(seconds: NDArray[np.float64], now: datetime, half_life_days: float) -> Floats:
    """Return how recent times (seconds since the epoch) are: 1 at `now` or later, halved per half-life, 0 for NaN."""
    ages = np.nan_to_num((now.timestamp() - seconds) / _SECONDS_A_DAY, nan=np.inf)
    recent: Floats = np.exp2(-np.maximum(0, ages) / half_life_days).astype(np.float32)
    return recent


def split_at_pauses(groups: Rows, seconds: NDArray[np.float64]) -> Rows:
    """Split groups where nothing was recorded for `_PAUSE_S`, and return the new group numbers, 0 or higher."""
    order = np.lexsort((seconds, groups))
    begins = (np.diff(groups[order], prepend=-1) != 0) | (np.diff(seconds[order], prepend=np.nan) > _PAUSE_S)
    numbers = np.empty_like(groups)
    numbers[order] = np.cumsum(begins)
    return numbers


def substance(word_counts: Rows) -> Floats:
    """Rate texts 0 to 1 by their number of distinct words: short ones, such as greetings and thanks, answer nothing."""
    return np.minimum(1.0, np.log1p(word_counts) / math.log1p(_FULL_TEXT_WORDS)).astype(np.float32)


def to_one(values: Floats) -> Floats:
    """Scale values so that the greatest is 1; negative values become 0."""
    scaled: Floats = np.maximum(values, np.float32(0))
    best = scaled.max(initial=0.0)
    if best > 0:
        scaled /= best
    return scaled


def diversify(scores: Floats, vectors: Floats, limit: int, duplicate_penalty: float) -> list[int]:
    """Choose rows one by one, best first, with a penalty for similarity to rows already chosen.

    Maximal marginal relevance (Carbonell and Goldstein, 1998). Similarity counts from a cosine of 0.9 up, because turns
    of one conversation are similar without repeating each other.

    Args:
        scores: float32, shape (n,).
        vectors: float32, shape (n, dimensions), unit length; a row of zeros is similar to nothing.
        limit: Maximum number of rows to choose.
        duplicate_penalty: Penalty for an exact duplicate.
    """
    left = scores.astype(np.float64)
    malus = np.zeros(len(scores))
    chosen: list[int] = []
    while len(chosen) < min(limit, len(scores)):
        row = int(np.argmax(left - malus))
        chosen.append(row)
        left[row] = -np.inf
        likeness = np.clip((np.vecdot(vectors, vectors[row]) - _NEAR_DUPLICATE) / (1 - _NEAR_DUPLICATE), 0, 1)
        malus = np.maximum(malus, duplicate_penalty * likeness)
    return chosen


def _with_surroundings(pool: Pool) -> Floats:
    """Return the word matches, each raised to the best weighted match of a neighbour if that is higher."""
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
    """Return the values at the given rows, 0 for row -1."""
    padded = np.concatenate([values, np.zeros((*values.shape[:-1], 1), np.float32)], axis=-1)
    return padded.take(rows, axis=-1)


def _chained(rows: Rows) -> Rows:
    """Follow the row numbers twice; -1 if either step is -1."""
    return np.append(rows, -1).take(rows)


def _best_of_group(values: Floats, groups: Rows) -> Floats:
    best = np.zeros((*values.shape[:-1], int(groups.max(initial=-1)) + 1), np.float32)
    np.maximum.at(best.T, groups, values.T)
    return best.take(groups, axis=-1)

"""Fits the weights of the shares on some talks and tests them on another, to show how far the weights generalise.

Fitting is coordinate ascent: one weight at a time changes by a step, until no step improves the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._retrieval import Talk
from orchestra_mem.core.search.hybrid import Searcher
from orchestra_mem.core.search.ranking import Weights
from orchestra_mem.search_types import Embedder, SearchIndex, WordEmbedder

SHARES = (
    "own", "coverage", "before", "second_before", "group", "agent", "statement", "substance", "tells_time",
    "period",
)  # fmt: skip
"""Names of the fitted weights; the others mix the parts of `own`, or are priors."""

_CANDIDATES = 150
_STEPS = (0.2, 0.1, 0.05)
_LEAST_GAIN = 2e-4

Fitted = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """Unweighted shares of the candidates for a talk's questions.

    `values`: float32, shape (questions, candidates, shares). `evidence`: Marks candidates that hold evidence. `wanted`:
    Number of turns with evidence for each question, found or not.
    """

    values: NDArray[np.float32]
    evidence: NDArray[np.bool_]
    wanted: NDArray[np.int64]


def changed(weights: Weights, values: Mapping[str, Any]) -> Weights:
    """Return the weights with some replaced, by name."""
    return replace(weights, **values)


def profiles_of(talk: Talk, index: SearchIndex, embedder: Embedder, words: WordEmbedder) -> Profiles:
    """Search for a talk's questions, and return the shares of all candidates."""
    ones = changed(Weights(), {**dict.fromkeys(SHARES, 1.0), "diversity": 0.0})
    searcher = Searcher(index, embedder, words, weights=ones)
    values = np.zeros((len(talk.questions), _CANDIDATES, len(SHARES)), np.float32)
    evidence = np.zeros(values.shape[:2], bool)
    for row, question in enumerate(talk.questions):
        hits = searcher.search(question.text, talk.ended, limit=_CANDIDATES)
        for column, hit in enumerate(hits):
            shares = dict(hit.reasons.shares)
            values[row, column] = [shares.get(name, 0.0) for name in SHARES]
            evidence[row, column] = hit.chunk.operation in question.evidence
    wanted = np.array([len(question.evidence) for question in talk.questions])
    return Profiles(values=values, evidence=evidence, wanted=wanted)


def recall(profiles: Profiles, weights: Fitted, depth: int) -> float:
    """Return the mean share of a question's evidence among the first `depth` hits."""
    return float(_recalls(profiles, _scores(profiles, weights), depth).mean())


def fit(talks: Sequence[Profiles], start: Fitted) -> dict[str, float]:
    """Fit the weights to talks, for recall at 10 plus half of recall at 5 and half of the reciprocal rank."""
    weights = dict(start)
    best = _goodness(talks, weights)
    for step in _STEPS:
        better = True
        while better:
            better = False
            for name in SHARES:
                for tried in (weights[name] - step, weights[name] + step):
                    goodness = _goodness(talks, {**weights, name: tried}) if tried >= 0 else -1.0
                    if goodness > best + _LEAST_GAIN:
                        best, weights[name], better = goodness, round(tried, 2), True
    return weights


def _goodness(talks: Sequence[Profiles], weights: Fitted) -> float:
    return float(np.mean([_goodness_of(profiles, _scores(profiles, weights)) for profiles in talks]))


def _goodness_of(profiles: Profiles, scores: NDArray[np.float32]) -> float:
    first = np.where(profiles.evidence, scores, -np.inf).max(axis=1, keepdims=True)
    found = np.isfinite(first[:, 0])
    ranks = (scores > first).sum(axis=1) + 1
    recalls = _recalls(profiles, scores, 10) + 0.5 * _recalls(profiles, scores, 5)
    return float((recalls + 0.5 * found / ranks).mean())


def _scores(profiles: Profiles, weights: Fitted) -> NDArray[np.float32]:
    scores: NDArray[np.float32] = profiles.values @ np.array([weights[name] for name in SHARES], np.float32)
    return scores


def _recalls(profiles: Profiles, scores: NDArray[np.float32], depth: int) -> NDArray[np.float64]:
    top = np.argpartition(-scores, depth, axis=1)[:, :depth]
    found = np.take_along_axis(profiles.evidence, top, axis=1).sum(axis=1)
    recalls: NDArray[np.float64] = found / profiles.wanted
    return recalls

"""Score how relevant items are to a message, by the four parts of the source design."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.catalog_types import MAX_PRIORITY, Relevance

_HOUR_US = 3_600 * 1_000_000
# By the design `exp(-age / 168)`: after a week an item has 37 % of what it had.
_DECAY_H = 168.0
_RECENCY, _TAGS, _AFFINITY, _PRIORITY = 0.3, 0.4, 0.2, 0.1


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one agent's items, column by column, each of shape (n,) and type int64; times in microseconds."""

    number: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    priority: NDArray[np.int64]
    tag_count: NDArray[np.int64]
    tokens: NDArray[np.int64]
    summary_tokens: NDArray[np.int64]
    expires: NDArray[np.int64]

    def at(self, places: NDArray[np.int64]) -> Figures:
        """Give those at some places, in their order."""
        return Figures(*(getattr(self, name)[places] for name in self.__slots__))

    @classmethod
    def joined(cls, parts: list[Figures]) -> Figures:
        """Join the figures of several agents."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))


def score(figures: Figures, matched: NDArray[np.int64], own: NDArray[np.bool_], now_us: int) -> NDArray[np.float64]:
    """Score items; `matched` is how many tags of each the message has, `own` whether it is the asking agent's.

    Returns:
        Shape (4, n): recency, tags, affinity, priority. Their sum, capped at 1, is the score.
    """
    age_h = np.maximum(now_us - figures.timestamp, 0) / _HOUR_US
    return np.stack(
        [
            _RECENCY * np.exp(-age_h / _DECAY_H),
            _TAGS * matched / np.maximum(figures.tag_count, 1),
            _AFFINITY * own,
            _PRIORITY * figures.priority / MAX_PRIORITY,
        ]
    )


def relevance_of(parts: NDArray[np.float64]) -> Relevance:
    """Give the four parts of one item's score by their names."""
    recency, tags, affinity, priority = (round(float(part), 6) for part in parts)
    return Relevance(recency=recency, tags=tags, affinity=affinity, priority=priority)


def microseconds(time: datetime) -> int:
    """Give a time as the figures have it."""
    return round(time.timestamp() * 1_000_000)

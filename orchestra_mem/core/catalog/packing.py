"""Score items by the source design's four components, pack them into a token budget, and format them for a prompt."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.catalog_types import MAX_PRIORITY, MemoryItem, Relevance, SelectedItem
from orchestra_mem.core.control_tokens import neutralise
from orchestra_mem.core.search.echoes import fenced
from orchestra_mem.core.text import squeeze, visible
from orchestra_mem.ports import TokenCounter

_HOUR_US = 3_600 * 1_000_000
# The source design's `exp(-age / 168)`: after a week, recency has decayed to 37 %.
_DECAY_H = 168.0
_RECENCY, _TAGS, _AFFINITY, _PRIORITY = 0.3, 0.4, 0.2, 0.1


@dataclass(frozen=True, slots=True)
class Figures:
    """Columns of numbers about one agent's items, each int64 of shape (n,); times in microseconds since 1970."""

    number: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    priority: NDArray[np.int64]
    tag_count: NDArray[np.int64]
    tokens: NDArray[np.int64]
    summary_tokens: NDArray[np.int64]
    expires: NDArray[np.int64]

    def at(self, places: NDArray[np.int64]) -> Figures:
        """Return the rows at the given indices, in that order."""
        return Figures(*(getattr(self, name)[places] for name in self.__slots__))

    @classmethod
    def joined(cls, parts: list[Figures]) -> Figures:
        """Concatenate the figures of several agents; at least one is required."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))


@dataclass(frozen=True, slots=True)
class TagTable:
    """The tags of an agent's items as pairs of a hashed tag key and an item number, sorted by hash."""

    hashes: NDArray[np.uint32]
    numbers: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, int]]) -> TagTable:
        """Build a table from pairs of tag key and item number in any order."""
        pairs = [(_hash(key), number) for key, number in rows]
        table = np.array(pairs, np.int64).reshape(-1, 2)
        return cls(table[:, 0].astype(np.uint32), table[:, 1])._sorted()

    def _sorted(self) -> TagTable:
        order = np.argsort(self.hashes, kind="stable")
        return TagTable(self.hashes[order], self.numbers[order])

    def changed(self, numbers: NDArray[np.int64], new: TagTable) -> TagTable:
        """Return a table without the tags of the items `numbers` but with all tags of `new`."""
        kept = ~np.isin(self.numbers, numbers)
        hashes = np.concatenate([self.hashes[kept], new.hashes])
        return TagTable(hashes, np.concatenate([self.numbers[kept], new.numbers]))._sorted()

    def matched(self, keys: Iterable[str], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count how many of the tags `keys` each item has; `numbers` are the items' numbers in ascending order."""
        wanted = np.unique(np.fromiter(map(_hash, keys), np.uint32))
        first, end = (np.searchsorted(self.hashes, wanted, side) for side in ("left", "right"))
        found = [self.numbers[begin:until] for begin, until in zip(first, end, strict=True) if begin < until]
        if not found:
            return np.zeros(len(numbers), np.int64)
        places = np.searchsorted(numbers, np.concatenate(found))
        return np.bincount(places, minlength=len(numbers))[: len(numbers)]


def _hash(key: str) -> int:
    return zlib.crc32(key.encode("utf-8", "surrogatepass"))


def score(figures: Figures, matched: NDArray[np.int64], own: NDArray[np.bool_], now_us: int) -> NDArray[np.float64]:
    """Score items. `matched`: number of tags shared with the message. `own`: whether the asking agent owns the item.

    Returns:
        float64, shape (4, n): recency, tags, affinity, priority. Their sum, capped at 1, is the score.
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
    """Return the four components of one item's score by name."""
    recency, tags, affinity, priority = (round(float(part), 6) for part in parts)
    return Relevance(recency=recency, tags=tags, affinity=affinity, priority=priority)


SOURCE = "catalog"
# Estimated tokens around an item (its number, type and age) and around all items (the fence). `lay_out` counts exactly.
_AROUND_ITEM, _AROUND_ALL = 12, 12
_HOUR_S, _DAY_S = 3_600, 86_400


def pack(costs: Iterable[tuple[int, int]], max_tokens: int) -> list[tuple[int, bool]]:
    """Choose items in order: each in full if that fits the remaining budget, else as its summary, else not at all.

    Args:
        costs: For each item, the tokens of its content and of its summary.
        max_tokens: Budget for all items together.

    Returns:
        The indices of the chosen items, each with whether it is shown in full.
    """
    left = max_tokens - _AROUND_ALL
    chosen = []
    for place, (whole, summary) in enumerate(costs):
        if left <= _AROUND_ITEM:
            break
        if (cost := min(whole, summary) if whole > left - _AROUND_ITEM else whole) <= left - _AROUND_ITEM:
            chosen.append((place, cost == whole))
            left -= cost + _AROUND_ITEM
    return chosen


def lay_out(
    selected: Sequence[SelectedItem], agent: str, now: datetime, max_tokens: int, counter: TokenCounter
) -> tuple[str, int, tuple[SelectedItem, ...]]:
    """Format items as fenced data of at most `max_tokens`, as counted by `counter`; the last items are dropped first.

    Returns:
        The text, empty if nothing fits; its tokens; the items in it.
    """
    shown = tuple(selected)
    while shown:
        text = format_injection(shown, agent, now)
        if (tokens := counter.count(text)) <= max_tokens:
            return text, tokens, shown
        # The last item is the least relevant. If the excess is large, several are dropped at once.
        shown = shown[: min(len(shown) - 1, len(shown) * max_tokens // tokens)]
    return "", 0, ()


def format_injection(selected: Sequence[SelectedItem], agent: str, now: datetime) -> str:
    """Format items for a prompt: fenced as data, one paragraph each, with number, type and age."""
    return fenced("\n".join(_line(each, agent, now) for each in selected), SOURCE)


def _line(selected: SelectedItem, agent: str, now: datetime) -> str:
    item = selected.item
    whose = "" if item.ci_source == agent else f", {squeeze(visible(item.ci_source))}"
    about = f"M{item.number} ({item.type}{whose}, {age_of(item, now)})"
    if selected.whole:
        return f"- {about}: {_quoted(item.content)}"
    return f"- {about}, in short: {_quoted(item.summary)} [all {item.tokens:,} tokens: expand M{item.number}]"


def _quoted(text: str) -> str:
    return neutralise(visible(text.strip())).replace("\n", "\n  ")


def age_of(item: MemoryItem, now: datetime) -> str:
    """Format the age of an item in hours or days; under an hour it is `now`."""
    seconds = max(0.0, (now - item.timestamp).total_seconds())
    if seconds < _HOUR_S:
        return "now"
    count, unit = (int(seconds // _DAY_S), "day") if seconds >= _DAY_S else (int(seconds // _HOUR_S), "hour")
    return f"{count} {unit}{'' if count == 1 else 's'} ago"

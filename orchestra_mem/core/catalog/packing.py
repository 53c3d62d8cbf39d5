"""Score items by the four parts of the source design, choose what fits a budget, and lay it out for a prompt."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.catalog_types import MAX_PRIORITY, MemoryItem, Relevance, SelectedItem
from orchestra_mem.core.context.items import neutralise
from orchestra_mem.core.search.echoes import fenced
from orchestra_mem.core.text import squeeze, visible
from orchestra_mem.ports import TokenCounter

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


@dataclass(frozen=True, slots=True)
class TagTable:
    """Which of an agent's items have which tags: hashes of the tags' keys in order, the items' numbers beside them."""

    hashes: NDArray[np.uint32]
    numbers: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, int]]) -> TagTable:
        """Make a table of keys and numbers, in any order."""
        pairs = [(_hash(key), number) for key, number in rows]
        table = np.array(pairs, np.int64).reshape(-1, 2)
        return cls(table[:, 0].astype(np.uint32), table[:, 1])._sorted()

    def _sorted(self) -> TagTable:
        order = np.argsort(self.hashes, kind="stable")
        return TagTable(self.hashes[order], self.numbers[order])

    def changed(self, numbers: NDArray[np.int64], new: TagTable) -> TagTable:
        """Give the table without the tags of some items, and with new ones."""
        kept = ~np.isin(self.numbers, numbers)
        hashes = np.concatenate([self.hashes[kept], new.hashes])
        return TagTable(hashes, np.concatenate([self.numbers[kept], new.numbers]))._sorted()

    def matched(self, keys: Iterable[str], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count for each of some items, in the order of their numbers, how many of these tags it has."""
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


SOURCE = "catalog"
# About what stands around an item: its number, type and age; around all of them a fence. What is counted decides.
_AROUND_ITEM, _AROUND_ALL = 12, 12
_HOUR_S, _DAY_S = 3_600, 86_400


def pack(costs: Iterable[tuple[int, int]], max_tokens: int) -> list[tuple[int, bool]]:
    """Choose items in their order: each whole where that fits what is left, else as its summary, else the next.

    Args:
        costs: of each item the tokens of the whole and of its summary.
        max_tokens: what all may take together.

    Returns:
        The places of the chosen ones, each with whether it is whole.
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
    """Lay out items as fenced data, at most so many tokens by the counter's own count; those that fit, in order.

    Returns:
        The text, "" where nothing fits; its tokens; what is in it.
    """
    shown = tuple(selected)
    while shown:
        text = format_injection(shown, agent, now)
        if (tokens := counter.count(text)) <= max_tokens:
            return text, tokens, shown
        # The last is the least relevant. Where much is over, several go at once.
        shown = shown[: min(len(shown) - 1, len(shown) * max_tokens // tokens)]
    return "", 0, ()


def format_injection(selected: Sequence[SelectedItem], agent: str, now: datetime) -> str:
    """Put items into a text for a prompt: fenced as data, each with its number, type and age, one paragraph each."""
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
    """Say how old an item is, in hours or days."""
    seconds = max(0.0, (now - item.timestamp).total_seconds())
    if seconds < _HOUR_S:
        return "now"
    count, unit = (int(seconds // _DAY_S), "day") if seconds >= _DAY_S else (int(seconds // _HOUR_S), "hour")
    return f"{count} {unit}{'' if count == 1 else 's'} ago"

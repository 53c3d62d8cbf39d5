"""Choose what fits a budget of tokens, and lay it out for a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from orchestra_mem.catalog_types import MemoryItem, SelectedItem
from orchestra_mem.core.context.items import neutralise
from orchestra_mem.core.search.echoes import fenced
from orchestra_mem.core.text import squeeze, visible
from orchestra_mem.ports import TokenCounter

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

"""Ranks: numbers that order items, so that moving one changes one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from orchestra_mem.core.documents.alignment import longest_ascending


def reordered(ranks: Sequence[float]) -> dict[int, float]:
    """New ranks for as few items as can be, so that all ascend in the order that they are wanted in.

    Args:
        ranks: those that the items have, in the wanted order.

    Returns:
        By position in `ranks` the new rank. Where no numbers are left between two that stay, all are given anew.
    """
    staying = longest_ascending(ranks)
    new: dict[int, float] = {}
    for low, high in zip([-1, *staying], [*staying, len(ranks)], strict=True):
        moved = range(low + 1, high)
        if not moved:
            continue
        floor = ranks[low] if low >= 0 else None
        ceiling = ranks[high] if high < len(ranks) else None
        placed = _spread(len(moved), floor, ceiling)
        if placed is None:
            return {position: float(position + 1) for position in range(len(ranks))}
        new.update(zip(moved, placed, strict=True))
    return new


def _spread(count: int, low: float | None, high: float | None) -> list[float] | None:
    """Ascending numbers between two bounds, None where they do not fit."""
    if high is None:
        first = 0.0 if low is None else low
        placed = [first + 1.0 + step for step in range(count)]
    elif low is None:
        placed = [high - float(count - step) for step in range(count)]
    else:
        placed = [low + (high - low) * (step + 1) / (count + 1) for step in range(count)]
    row = [*([] if low is None else [low]), *placed, *([] if high is None else [high])]
    return placed if all(a < b for a, b in pairwise(row)) else None

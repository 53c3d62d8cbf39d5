"""Align the lines of two texts: equal lines in order, and moved lines. Merging and blame depend on it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

# Nesting limit of ranges between matched lines. Only adversarial texts exceed it; deeper lines stay unmatched.
_MOST_DEPTH = 40


def split_lines(text: str) -> list[str]:
    """Split a text into lines without their ends, LF or CR LF."""
    lines = text.split("\n")
    last = lines.pop()
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    return [*lines, last] if last else lines


def look_changed(gone: Counter[str], new: Counter[str]) -> bool:
    """Check whether lines were reworded, rather than removed while unrelated lines were added nearby.

    True if `gone` and `new` have equally many lines, or if two lines share at least half of the longer one's words.
    """
    words = [set(line.casefold().split()) for line in new]
    return gone.total() == new.total() or any(
        2 * len(one & other) >= max(len(one), len(other), 1)
        for one in (set(line.casefold().split()) for line in gone)
        for other in words
    )


def moved_lines(old: Sequence[str], new: Sequence[str], kept: Mapping[int, int]) -> dict[int, int]:
    """Map the old place of each moved line to its new place. `kept`: The same for the lines that kept their order.

    Of the other lines, those that occur once on either side are paired first, then equal neighbours of paired lines,
    then remaining copies in order. As many copies of each line as possible are paired; blank lines only as neighbours.
    """
    used = set(kept.values())
    here = _places(old, (place for place, line in enumerate(old) if place not in kept and line.strip()))
    there = _places(new, (place for place, line in enumerate(new) if place not in used and line.strip()))
    pairs = {
        places[0]: there[line][0] for line, places in here.items() if len(places) == 1 and len(there.get(line, ())) == 1
    }
    used.update(pairs.values())
    for step in (1, -1):
        for one, other in list(pairs.items()):
            i, j = one + step, other + step
            while (
                0 <= i < len(old)
                and 0 <= j < len(new)
                and old[i] == new[j]
                and not (i in kept or i in pairs or j in used)
            ):
                pairs[i] = j
                used.add(j)
                i, j = i + step, j + step
    for line, places in here.items():
        free = (place for place in there.get(line, ()) if place not in used)
        pairs.update(zip([place for place in places if place not in pairs], free, strict=False))
    return pairs


def matched_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Pair the places of equal lines that have the same order in both texts.

    This is Bram Cohen's patience diff: lines that occur once on either side are anchors, and only the ranges between
    anchors are compared further, so repeated lines cost little. Where all lines repeat, copies are paired in order.
    """
    pairs: list[tuple[int, int]] = []
    waiting = [(0, len(old), 0, len(new), 0)]
    while waiting:
        a, a_end, b, b_end, depth = waiting.pop()
        while a < a_end and b < b_end and old[a] == new[b]:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        while a < a_end and b < b_end and old[a_end - 1] == new[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
            pairs.append((a_end, b_end))
        if depth > _MOST_DEPTH or set(old[a:a_end]).isdisjoint(new[b:b_end]):
            continue
        here, there = _places(old, range(a, a_end)), _places(new, range(b, b_end))
        both = [(places, there[line]) for line, places in here.items() if line in there]
        once = [(x[0], y[0]) for x, y in both if len(x) == len(y) == 1]
        once = once or sorted(pair for x, y in both for pair in zip(x, y, strict=False))
        for x, y in [*(once[number] for number in longest_ascending([y for _, y in once])), (a_end, b_end)]:
            waiting.append((a, x, b, y, depth + 1))
            if x < a_end:
                pairs.append((x, y))
            a, b = x + 1, y + 1
    pairs.sort()
    return pairs


def _places(lines: Sequence[str], among: Iterable[int]) -> dict[str, list[int]]:
    """Map each line to those of its places that are in `among`."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place in among:
        places[lines[place]].append(place)
    return places


def longest_ascending(values: Sequence[float]) -> list[int]:
    """Return the positions of a longest strictly ascending subsequence.

    Patience sorting: each value remembers the top of the previous pile.
    """
    tops: list[float] = []
    ends: list[int] = []
    before: list[int] = []
    for position, value in enumerate(values):
        pile = bisect_left(tops, value)
        before.append(ends[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [value]
        ends[pile : pile + 1] = [position]
    found: list[int] = []
    position = ends[-1] if ends else -1
    while position >= 0:
        found.append(position)
        position = before[position]
    return found[::-1]


def reordered(ranks: Sequence[float]) -> dict[int, float]:
    """Assign new ranks to as few items as possible, so that all ranks ascend in the wanted order.

    Args:
        ranks: Current ranks of the items, in the wanted order.

    Returns:
        New rank by position in `ranks`. If no float is left between two ranks that stay, all items get new ranks.
    """
    staying = longest_ascending(ranks)
    new: dict[int, float] = {}
    for low, high in pairwise([-1, *staying, len(ranks)]):
        count = high - low
        # Before the first rank that stays and after the last, new ranks are one apart.
        floor = ranks[low] if low >= 0 else (ranks[high] - count if high < len(ranks) else 0.0)
        ceiling = ranks[high] if high < len(ranks) else floor + count
        placed = [floor + (ceiling - floor) * step / count for step in range(1, count)]
        if not all(a < b for a, b in pairwise([floor, *placed, ceiling])):
            return {position: float(position + 1) for position in range(len(ranks))}
        new.update(enumerate(placed, low + 1))
    return new

"""Three-way merge of lines: what the machine last wrote, what it writes now, what a person made of it meanwhile.

The algorithm is diff3's: lines that all three have hold the others in place. Between them each line counts: what either
side added is there, what either took out is not. Only where both changed the very same line does the person's stand
alone, and the machine's is returned beside it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher

_LINE_FEED = re.compile(r"(?<!\r)\n")
# Lines of one side times lines of the other; beyond, a stretch without a single line of its own counts as rewritten.
_MOST_COMPARED = 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Lines that both sides changed. `line` counts from 1 in the merged text."""

    line: int
    base: str
    machine: str
    person: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The merged text, and what could not be merged."""

    text: str
    conflicts: tuple[Conflict, ...] = ()


def merge(base: str, machine: str, person: str) -> Merged:
    """Merge two texts that both come from `base`. A side that did not change takes the other's text whole."""
    if machine in (base, person):
        return Merged(text=person)
    if person == base:
        return Merged(text=machine)
    if "\r\n" in person and "\n" in base and "\r\n" not in base:
        # Saved by an editor that writes other line ends: that is no change of any line.
        return merge(_LINE_FEED.sub("\r\n", base), _LINE_FEED.sub("\r\n", machine), person)
    base_lines, machine_lines, person_lines = (t.splitlines(keepends=True) for t in (base, machine, person))
    result: list[str] = []
    conflicts: list[Conflict] = []
    b = m = p = 0
    for anchor_b, anchor_m, anchor_p, size in _anchors(base_lines, machine_lines, person_lines):
        old, new, own = base_lines[b:anchor_b], machine_lines[m:anchor_m], person_lines[p:anchor_p]
        if old == own:
            result += new
        else:
            both = own if new in (old, own) else _combined(old, new, own)
            if both is None:
                conflicts.append(
                    Conflict(line=len(result) + 1, base="".join(old), machine="".join(new), person="".join(own))
                )
            result += own if both is None else both
        result += base_lines[anchor_b : anchor_b + size]
        b, m, p = anchor_b + size, anchor_m + size, anchor_p + size
    return Merged(text="".join(result), conflicts=tuple(conflicts))


def _combined(old: list[str], new: list[str], own: list[str]) -> list[str] | None:
    """A person's lines with what the machine added and without what it took out; None where both changed one line."""
    taken = Counter(old) - Counter(new)
    if any(line.strip() for line in taken & (Counter(old) - Counter(own))):
        return None
    result: list[str] = []
    for line in own:
        if line.strip() and taken[line] > 0:
            taken[line] -= 1
        else:
            result.append(line)
    added = Counter(new) - Counter(old)
    at = 0
    for line in new:
        if line.strip() and added[line] > 0:
            added[line] -= 1
            result.insert(at, line)
            at += 1
        elif line in result[at:]:
            at = result.index(line, at) + 1
    return [
        f"{line}\n" if line.splitlines() == [line] and number + 1 < len(result) else line
        for number, line in enumerate(result)
    ]


def _anchors(base: list[str], machine: list[str], person: list[str]) -> list[tuple[int, int, int, int]]:
    """Runs of base lines that both sides kept: (in base, in machine, in person, length); the last is the end."""
    theirs = dict(_matches(base, person))
    anchors: list[tuple[int, int, int, int]] = []
    for in_base, in_machine in _matches(base, machine):
        in_person = theirs.get(in_base)
        if in_person is None:
            continue
        if anchors:
            b, m, p, size = anchors[-1]
            if (b + size, m + size, p + size) == (in_base, in_machine, in_person):
                anchors[-1] = (b, m, p, size + 1)
                continue
        anchors.append((in_base, in_machine, in_person, 1))
    anchors.append((len(base), len(machine), len(person), 0))
    return anchors


def _matches(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Pairs of places of the same line in the same order: patience first, so that lines that repeat cost nothing.

    Lines that stand once on either side hold the rest in place (Bram Cohen's patience diff); only what lies between
    them is compared line by line, and where that is large, not at all.
    """
    pairs: list[tuple[int, int]] = []
    waiting = [(0, len(old), 0, len(new))]
    while waiting:
        a, a_end, b, b_end = waiting.pop()
        while a < a_end and b < b_end and old[a] == new[b]:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        while a < a_end and b < b_end and old[a_end - 1] == new[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
            pairs.append((a_end, b_end))
        if a == a_end or b == b_end:
            continue
        unique = _unique_pairs(old, new, a, a_end, b, b_end)
        if unique:
            for x, y in [*unique, (a_end, b_end)]:
                waiting.append((a, x, b, y))
                if x < a_end:
                    pairs.append((x, y))
                a, b = x + 1, y + 1
        elif (a_end - a) * (b_end - b) <= _MOST_COMPARED:
            blocks = SequenceMatcher(None, old[a:a_end], new[b:b_end], autojunk=False).get_matching_blocks()
            pairs += [(a + block.a + i, b + block.b + i) for block in blocks for i in range(block.size)]
    return sorted(pairs)


def _unique_pairs(old: list[str], new: list[str], a: int, a_end: int, b: int, b_end: int) -> list[tuple[int, int]]:
    """The longest row, in order on both sides, of lines that stand once on each."""
    counts = Counter(old[a:a_end])
    others = Counter(new[b:b_end])
    places = {line: position for position, line in enumerate(new[b:b_end], b) if others[line] == 1}
    once = [(i, places[old[i]]) for i in range(a, a_end) if counts[old[i]] == 1 and old[i] in places]
    # Longest increasing row of places: piles as in the card game, each card remembering the top of the pile before.
    tops: list[int] = []
    row: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(once):
        pile = bisect_left(tops, place)
        before.append(row[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [place]
        row[pile : pile + 1] = [number]
    chosen: list[tuple[int, int]] = []
    number = row[-1] if row else -1
    while number >= 0:
        chosen.append(once[number])
        number = before[number]
    return chosen[::-1]

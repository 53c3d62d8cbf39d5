"""What of two texts is the same: lines in order, and sections wherever they stand. Merging and blame build on it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from orchestra_mem.core.documents.markdown import Block, split_blocks

# A stretch without a line of its own is compared cell by cell (one side's lines times the other's), in one call up to
# so many cells; about 20 ms. Beyond, the stretch counts as rewritten.
_MOST_CELLS = 20_000_000
# Stretches within stretches: texts made to need more of them than this are compared no further.
_MOST_DEPTH = 40


def split_lines(text: str) -> list[str]:
    """Lines without their ends, LF or CR LF."""
    lines = text.split("\n")
    last = lines.pop()
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    return [*lines, last] if last else lines


def line_ends(text: str) -> list[str]:
    """How each line ends; the last may not."""
    lines = text.split("\n")
    last = [""] if lines.pop() else []
    return [*("\r\n" if line.endswith("\r") else "\n" for line in lines), *last]


def count_said(lines: Sequence[str]) -> Counter[str]:
    """Lines that are not blank, each as often as it stands."""
    counts = Counter(lines)
    for blank in [line for line in counts if not line or line.isspace()]:
        del counts[blank]
    return counts


def look_changed(gone: Counter[str], new: Counter[str]) -> bool:
    """Whether lines were changed into others, and not taken out with others written nearby.

    So it is where as many came, or one that has half of a line's words.
    """
    words = [set(line.casefold().split()) for line in new]
    return gone.total() == new.total() or any(
        2 * len(one & other) >= max(len(one), len(other), 1)
        for one in (set(line.casefold().split()) for line in gone)
        for other in words
    )


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its own text (or what stands before the first): lines `start` to `stop`, counted from 0.

    `path` are the titles from the top down to this one.
    """

    start: int
    stop: int
    path: tuple[str, ...]
    block: Block

    @property
    def heading_lines(self) -> int:
        """How many of the lines are its heading."""
        return min(self.stop - self.start, max(1, self.block.heading.count("\n"))) if self.block.level else 0


def sections(text: str, line_count: int) -> list[Section]:
    """The sections of a text that has so many lines, in its order; they cover it without a gap."""
    blocks = split_blocks(text)
    starts = [block.line - 1 for block in blocks]
    above: list[tuple[int, str]] = []
    found: list[Section] = []
    for block, start, stop in zip(blocks, starts, [*starts[1:], line_count][: len(starts)], strict=True):
        if block.level:
            while above and above[-1][0] >= block.level:
                above.pop()
            above.append((block.level, block.title))
            path = tuple(title for _, title in above)
        else:
            path = ("---",) if block.front else ()
        found.append(Section(start, stop, path, block))
    return found


def matched_sections(old: Sequence[Section], new: Sequence[Section]) -> dict[int, int]:
    """Which section of `new` is which of `old`, by number; none twice.

    Of the same place and text first, then of the same place, of the same heading, and of much the same content. Several
    that are alike in one of these are told apart by the next, or else taken in their order if there are as many.
    """
    found: dict[int, int] = {}
    keys: tuple[Callable[[Section], Hashable], ...] = (
        lambda section: (section.block.level, section.path, section.block.text),
        lambda section: (section.block.level, section.path),
        lambda section: (section.block.level, section.path[-1:]),
    )
    for key in keys:
        _match_by(key, old, new, found, most=1)
    _match_by_content(old, new, found)
    _match_by(keys[1], old, new, found, most=len(old))
    return found


def _match_by(
    key: Callable[[Section], Hashable], old: Sequence[Section], new: Sequence[Section], found: dict[int, int], most: int
) -> None:
    taken = set(found.values())
    places: defaultdict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for number, section in enumerate(old):
        if number not in found:
            places[key(section)][0].append(number)
    for number, section in enumerate(new):
        if number not in taken:
            places[key(section)][1].append(number)
    for olds, news in places.values():
        if len(olds) == len(news) <= most:
            found.update(zip(olds, news, strict=True))


def _match_by_content(old: Sequence[Section], new: Sequence[Section], found: dict[int, int]) -> None:
    """Match what has more than half of its lines, not counting the heading, in one other section alone."""
    taken = set(found.values())
    left = {number: _content(section) for number, section in enumerate(old) if number not in found}
    if not left or len(taken) == len(new):
        return
    homes: dict[str, int] = {}
    for number, content in left.items():
        for line in content:
            homes[line] = -1 if line in homes else number
    votes: Counter[tuple[int, int]] = Counter()
    for number, section in enumerate(new):
        if number not in taken:
            votes.update((homes[line], number) for line in _content(section) if homes.get(line, -1) >= 0)
    for (one, other), count in votes.most_common():
        if one not in found and other not in taken and 2 * count > len(left[one]):
            found[one] = other
            taken.add(other)


def _content(section: Section) -> set[str]:
    lines = section.block.text.split("\n")[section.heading_lines :]
    return {stripped for line in lines if (stripped := line.strip())}


def matched_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of places of the same line in the same order: patience first, so that lines that repeat cost nothing.

    Lines that stand once on either side hold the rest in place (Bram Cohen's patience diff); only what lies between
    them is compared line by line, and where that is very large, not at all.
    """
    pairs: list[tuple[int, int]] = []
    waiting = [(0, len(old), 0, len(new), 0)]
    cells = _MOST_CELLS
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
        unique = _unique_pairs(old, new, a, a_end, b, b_end)
        if unique:
            for x, y in [*unique, (a_end, b_end)]:
                waiting.append((a, x, b, y, depth + 1))
                if x < a_end:
                    pairs.append((x, y))
                a, b = x + 1, y + 1
        elif (a_end - a) * (b_end - b) <= cells:
            cells -= (a_end - a) * (b_end - b)
            pairs += _longest_common(old, new, a, a_end, b, b_end)
    pairs.sort()
    return pairs


def _unique_pairs(
    old: Sequence[str], new: Sequence[str], a: int, a_end: int, b: int, b_end: int
) -> list[tuple[int, int]]:
    """The longest row, in order on both sides, of lines that stand once on each."""
    places: dict[str, int] = {}
    for place in range(b, b_end):
        places[new[place]] = -1 if new[place] in places else place
    first: dict[str, int] = {}
    for place in range(a, a_end):
        line = old[place]
        if places.get(line, -1) >= 0:
            first[line] = -1 if line in first else place
    once = [(place, places[line]) for line, place in first.items() if place >= 0]
    return [once[number] for number in longest_ascending([place for _, place in once])]


def longest_ascending(values: Sequence[float]) -> list[int]:
    """The positions of a longest strictly ascending part of a sequence.

    Piles as in the card game patience, each card remembering the top of the pile before.
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


def _longest_common(
    old: Sequence[str], new: Sequence[str], a: int, a_end: int, b: int, b_end: int
) -> list[tuple[int, int]]:
    """A longest common subsequence of two stretches.

    A row of the table is one integer (Hyyrö, "Bit-parallel LCS-length computation revisited", 2004): bit i is 0 where
    one line more of `old` makes the common part longer.
    """
    width = a_end - a
    full = (1 << width) - 1
    where: dict[str, int] = {}
    for i in range(a, a_end):
        where[old[i]] = where.get(old[i], 0) | 1 << (i - a)
    row, rows = full, [full]
    for j in range(b, b_end):
        if same := where.get(new[j], 0):
            hit = row & same
            row = ((row + hit) | (row - hit)) & full
        rows.append(row)
    pairs: list[tuple[int, int]] = []
    i, j = width, b_end - b
    while i and j:
        if rows[j] >> (i - 1) & 1:
            i -= 1
        elif not rows[j - 1] >> (i - 1) & 1:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((a + i, b + j))
    return pairs

"""Find, among a document's earlier texts, the one that an editor had open when it saved another. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.owned_lines import shared, undone

# Largest saved change, in lines, that an editor may have undone before its next save.
_MOST_TAKEN_BACK = 4


def ancestor(known: Sequence[str], text: str) -> str:
    """Return the newest of the texts `known`, in the order of saving, that `text` can come from; else the oldest.

    It can come from a save of which it shows a trace: an added line that it has, or a removed line that it lacks. A
    small change may have been undone without a trace; without a trace of a large one, the editor never had that save.
    Lines of `text` that the newest text lacks count as restored; see `undone`.
    """
    lines, *counts = (Counter(filter(str.strip, split_lines(each))) for each in (text, *known))
    for (was, now), saved in reversed(list(zip(pairwise(counts), known[1:], strict=True))):
        came, went = now - was, was - now
        if came & lines or went - lines or (came + went).total() <= _MOST_TAKEN_BACK:
            return undone(saved, known[-1], text)
    return undone(known[0], known[-1], text)


def nearest(known: Sequence[str], text: str) -> str:
    """Return the text in `known`, in the order of writing, that differs from `text` in the fewest lines.

    If that is the first of several, `text` may be older than all of them, so no line counts as deleted from it.
    """
    lines, *counts = (Counter(filter(str.strip, split_lines(each))) for each in (text, *known))
    distances = [((lines - count) + (count - lines)).total() for count in counts]
    place = distances.index(min(distances))
    return known[place] if place or known[0] == known[-1] else shared(known[-1], text)

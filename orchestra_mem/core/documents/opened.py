"""Find the earlier text of a document that an editor had open when it saved a new text. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.owned_lines import shared, undone

# Largest saved change, in lines, that an editor may have undone before its next save.
_MOST_TAKEN_BACK = 4


def ancestor(known: Sequence[str], text: str) -> str:
    """Reconstruct the text that was edited into `text`, from the texts `known`, in the order of saving.

    The editor last had the newest save that left a trace in `text`: a line that the save added is there, or a line that
    the save removed is missing. A small change may also have been undone without a trace. If no save qualifies, the
    editor had the oldest text. Lines of `text` that the newest text lacks count as restored; see `undone`.
    """
    lines, *counts = (Counter(filter(str.strip, split_lines(each))) for each in (text, *known))
    for (was, now), saved in reversed(list(zip(pairwise(counts), known[1:], strict=True))):
        came, went = now - was, was - now
        if came & lines or went - lines or (came + went).total() <= _MOST_TAKEN_BACK:
            return undone(saved, known[-1], text)
    return undone(known[0], known[-1], text)


def nearest(known: Sequence[str], text: str) -> str:
    """Return the text in `known` (in the order of writing) that differs from `text` in the fewest lines.

    If the first of several is nearest, `text` may be older than all. Then no line may count as deleted; see `shared`.
    """
    lines, *counts = (Counter(filter(str.strip, split_lines(each))) for each in (text, *known))
    distances = [((lines - count) + (count - lines)).total() for count in counts]
    place = distances.index(min(distances))
    return known[place] if place or known[0] == known[-1] else shared(known[-1], text)

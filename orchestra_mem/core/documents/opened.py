"""Find the text that an editor had open when it saved another: of texts that a document has had. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.owned_lines import shared, undone

# So many lines, changed and saved, may be changed back in the same editor before it saves again.
_MOST_TAKEN_BACK = 4


def ancestor(known: Sequence[str], text: str) -> str:
    """Return the newest of texts, saved one after the other, that another can come from, else the oldest.

    It comes from one of which it shows a trace: a line that came with that, or one that went. A change of few lines may
    also have been taken back; who saves without one of many has never had them. Lines that it has and the newest text
    has not were brought back.
    """
    lines, *counts = (Counter(filter(str.strip, split_lines(each))) for each in (text, *known))
    for (was, now), saved in reversed(list(zip(pairwise(counts), known[1:], strict=True))):
        came, went = now - was, was - now
        if came & lines or went - lines or (came + went).total() <= _MOST_TAKEN_BACK:
            return undone(saved, known[-1], text)
    return undone(known[0], known[-1], text)


def nearest(known: Sequence[str], text: str) -> str:
    """Return the text most alike to another, by the lines that only one has, of texts in the order of their writing.

    Where that is the first of several the text may be older than all: then nothing is known to be taken out of it.
    """
    lines, *counts = (Counter(filter(str.strip, split_lines(each))) for each in (text, *known))
    distances = [((lines - count) + (count - lines)).total() for count in counts]
    place = distances.index(min(distances))
    return known[place] if place or known[0] == known[-1] else shared(known[-1], text)

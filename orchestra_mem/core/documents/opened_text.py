"""Reconstruct the text that an editor had opened, from texts that the document is known to have had. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.owned_lines import owned_keys

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


def shared(text: str, said: str) -> str:
    """Reconstruct the unknown text that a person edited into `said`, given the machine's current `text`.

    The result has the rows of `said` that are about work or also in `text`, so that nothing counts as deleted.
    """
    rows, keys = {*split_lines(text)}, owned_keys(said)
    return "\n".join(
        row
        for place, row in enumerate(said.split("\n"))
        if row.removesuffix("\r") in rows or keys.get(place, "K")[0] not in "KM"
    )


def undone(opened: str, later: str, said: str) -> str:
    """Reconstruct the text that was edited into `said`, from the text that the editor had `opened` and a `later` one.

    The result is the later text without lines that neither `opened` nor `said` has: the editor may never have had them.
    Lines of `said` that the later text lacks were restored, for example by an undo, and count as new.
    """
    there = {*split_lines(opened), *split_lines(said)}
    if there.issuperset(split_lines(later)):
        return later
    keys, known = owned_keys(later), {*owned_keys(said).values()}
    return "\n".join(
        row
        for place, row in enumerate(later.split("\n"))
        if not row.strip() or row.removesuffix("\r") in there or keys.get(place) in known
    )

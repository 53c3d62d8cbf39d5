"""Ask a search for more where what was found has to pass a test that the search itself does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from orchestra_mem.search_types import Hit

Kept = TypeVar("Kept")

_WIDER = 4
_MOST = 10_000


def enough_of(
    ask: Callable[[int], Sequence[Hit]], keep: Callable[[Sequence[Hit]], Iterable[Kept]], limit: int
) -> list[Kept]:
    """Give what is kept of the hits, as much as is wanted; ask for ever more hits until it is, or all were looked at.

    Args:
        ask: gives up to so many hits, best first.
        keep: gives what passes of hits, in their order.
        limit: how much is wanted at most.
    """
    size = 2 * limit
    while True:
        hits = ask(size)
        kept = [*keep(hits)]
        if len(kept) >= limit or len(hits) < size or size >= _MOST:
            return kept[:limit]
        size *= _WIDER

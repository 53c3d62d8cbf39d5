"""Repeat a search with a growing limit until enough of its hits pass a test that the search cannot apply itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from orchestra_mem.search_types import Hit

Kept = TypeVar("Kept")

_WIDER = 4
_MOST = 10_000


def search_until(
    ask: Callable[[int], Sequence[Hit]], keep: Callable[[Sequence[Hit]], Iterable[Kept]], limit: int
) -> list[Kept]:
    """Return up to `limit` results, requesting more hits until enough pass, none are left, or 10,000 were requested.

    Args:
        ask: Returns at most the given number of hits, best first.
        keep: Returns the results for the hits that pass the test, in the order of the hits.
        limit: Maximum number of results.
    """
    size = 2 * limit
    while True:
        hits = ask(size)
        kept = [*keep(hits)]
        if len(kept) >= limit or len(hits) < size or size >= _MOST:
            return kept[:limit]
        size *= _WIDER

"""Circles of waiting, found with their path."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

Waiting = Callable[[Sequence[int]], Iterable[tuple[int, int]]]
"""Gives for some ids who waits for them, as pairs of who waits and whom for."""


def circle(waits: int, goals: Collection[int], waiting: Waiting) -> tuple[int, ...]:
    """The shortest circle that there is if `waits` also waits for `goals`; empty where there is none.

    Looks from `waits` towards those who wait for it, layer by layer: those are few, while what one waits for may be a
    whole tree.

    Returns:
        The ids along the circle, each waiting for the next: `waits`, a goal, …, `waits` again.
    """
    if waits in goals:
        return waits, waits
    came_from: dict[int, int] = {waits: 0}
    layer = [waits]
    while layer:
        further: list[int] = []
        for who, whom in waiting(layer):
            if who in came_from:
                continue
            came_from[who] = whom
            if who in goals:
                return waits, *_back(who, came_from)
            further.append(who)
        layer = further
    return ()


def _back(found: int, came_from: dict[int, int]) -> Iterable[int]:
    while found:
        yield found
        found = came_from[found]

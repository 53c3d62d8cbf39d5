"""Which status may follow which, and what is stamped on the way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from orchestra_mem.core.work.wording import either
from orchestra_mem.errors import InvalidChangeError
from orchestra_mem.work_types import WorkItem, WorkStatus

_PENDING, _IN_PROGRESS, _BLOCKED = WorkStatus.PENDING, WorkStatus.IN_PROGRESS, WorkStatus.BLOCKED
_DEFERRED, _FAILED = WorkStatus.DEFERRED, WorkStatus.FAILED
_DONE, _CANCELLED = WorkStatus.DONE, WorkStatus.CANCELLED

TRANSITIONS: Mapping[WorkStatus, Mapping[WorkStatus, str]] = {
    _PENDING: {
        _IN_PROGRESS: "started",
        _BLOCKED: "blocked",
        # Small things are done before anybody has said that they began: a tick in a list is enough.
        _DONE: "finished",
        _DEFERRED: "deferred",
        _CANCELLED: "cancelled",
    },
    _IN_PROGRESS: {
        _DONE: "finished",
        _FAILED: "marked as failed",
        _BLOCKED: "blocked",
        _PENDING: "put back",
        _DEFERRED: "deferred",
        _CANCELLED: "cancelled",
    },
    _BLOCKED: {_PENDING: "unblocked", _DEFERRED: "deferred", _CANCELLED: "cancelled"},
    _DEFERRED: {_PENDING: "taken up again", _IN_PROGRESS: "started", _CANCELLED: "cancelled"},
    _FAILED: {_IN_PROGRESS: "started again", _PENDING: "put back", _DEFERRED: "deferred", _CANCELLED: "cancelled"},
    _DONE: {_IN_PROGRESS: "reopened", _PENDING: "put back"},
    _CANCELLED: {_PENDING: "reopened"},
}
"""From each status to those that may follow it, each with what is then done to the item."""


_STARTED = frozenset({_IN_PROGRESS, _FAILED, _DONE})
_FINISHED = frozenset({_DONE, _CANCELLED})


def check_transition(item: WorkItem, status: WorkStatus) -> None:
    """Let a transition pass that the table has.

    Raises:
        InvalidChangeError: it has not; the message says what it has.
    """
    allowed = TRANSITIONS[item.status]
    if status not in allowed:
        raise InvalidChangeError(
            f"{item.name} is {item.status} and cannot become {status}; it can be {either(allowed.values())}"
        )


def with_status(item: WorkItem, status: WorkStatus, now: datetime) -> WorkItem:
    """Return the item in another status: `started` is stamped once and kept, `finished` stands while it is closed."""
    started = item.started or (now if status in _STARTED else None)
    return replace(item, status=status, started=started, finished=now if status in _FINISHED else None)


Waiting = Callable[[Sequence[int]], Iterable[tuple[int, int]]]
"""Gives for some ids who waits for them, as pairs of who waits and whom for."""


def circle(waits: int, goals: Collection[int], waiting: Waiting) -> tuple[int, ...]:
    """Return the shortest circle that there is if `waits` also waits for `goals`; empty where there is none.

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

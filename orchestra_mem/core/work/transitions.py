"""Which status may follow which, and what is stamped on the way; changes as text, and the way back from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from orchestra_mem.core.work.wording import either
from orchestra_mem.errors import InvalidChangeError
from orchestra_mem.work_types import WorkEvent, WorkItem, WorkStatus

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


CREATED, NOTE = "created", "note"
"""Events that are no change of a field."""


def _list_text(values: tuple[Any, ...]) -> str | None:
    return json.dumps(values, ensure_ascii=False) if values else None


def _list(text: str | None) -> tuple[Any, ...]:
    return tuple(json.loads(text)) if text else ()


def _if_any(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else change(value)


_TEXTS = (lambda value: value or None, lambda text: text or "")
_TIMES = (_if_any(datetime.isoformat), _if_any(datetime.fromisoformat))
_LISTS = (_list_text, _list)
# By field how a value becomes text, and how text becomes a value.
_FIELDS: Mapping[str, tuple[Callable[[Any], str | None], Callable[[Any], Any]]] = {
    "title": _TEXTS,
    "description": _TEXTS,
    "status": (str, WorkStatus),
    "priority": (str, int),
    "rank": (repr, float),
    "parent": (_if_any(str), _if_any(int)),
    "depends_on": _LISTS,
    "assignee": (_if_any(str), _if_any(str)),
    "acceptance": _LISTS,
    "started": _TIMES,
    "finished": _TIMES,
}


def field_text(item: WorkItem, field: str) -> str | None:
    """Return what an event tells of the value of a field: lists as JSON, times in ISO 8601, None for nothing."""
    return _FIELDS[field][0](getattr(item, field))


def with_field(item: WorkItem, field: str, text: str | None) -> WorkItem:
    """Return the item with a field as an event tells it."""
    return replace(item, **{field: _FIELDS[field][1](text)})


def changed_fields(before: WorkItem, after: WorkItem) -> Iterator[tuple[str, str | None, str | None]]:
    """Return each field that differs, with both values as text."""
    for field in _FIELDS:
        if getattr(before, field) != getattr(after, field):
            yield field, field_text(before, field), field_text(after, field)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetChange:
    """What several events have together made of one field."""

    item: int
    field: str
    before: str | None
    after: str | None


def net_changes(events: Iterable[WorkEvent]) -> list[NetChange]:
    """What events (oldest first) have made of each field, the latest begun first; what came to nothing is left out."""
    found: dict[tuple[int, str], NetChange] = {}
    for event in events:
        if event.field == NOTE:
            continue
        key = event.item, event.field
        first = found[key].before if key in found else event.before
        found[key] = NetChange(item=event.item, field=event.field, before=first, after=event.after)
    return [change for change in reversed(found.values()) if change.before != change.after]


def taken_back(item: WorkItem, changes: Sequence[NetChange], now: datetime) -> WorkItem:
    """Return the item without what an operation has made of it; cancelled where that has created it.

    Raises:
        InvalidChangeError: it has been changed again since.
    """
    if any(change.field == CREATED for change in changes):
        if item.status is WorkStatus.CANCELLED:
            return item
        check_transition(item, WorkStatus.CANCELLED)
        return with_status(item, WorkStatus.CANCELLED, now)
    for change in changes:
        if (present := field_text(item, change.field)) != change.after:
            raise InvalidChangeError(
                f"{item.name} has been changed again since: {change.field} was made {change.after!r} and is now "
                f"{present!r}; undo the later change first"
            )
        item = with_field(item, change.field, change.before)
    return item


_TOLD_AT_MOST = 30
_UNTOLD = frozenset({"rank", "started", "finished"})
"""Fields that follow from others, or that nobody speaks of."""


def told_changes(events: Iterable[WorkEvent], item: Callable[[int], WorkItem]) -> str:
    """Tell in words what events (oldest first) have made of items, as they came about; of many the first.

    Args:
        events: the changes.
        item: gives an item as it now is.
    """
    events = list(events)
    notes = [event for event in events if event.field == NOTE]
    changes = [change for change in reversed(net_changes(events)) if change.field not in _UNTOLD]
    created = {change.item for change in changes if change.field == CREATED}
    told: list[NetChange | WorkEvent] = [
        *(each for each in changes if each.field in (CREATED, "status") or each.item not in created),
        *notes,
    ]
    lines = [_line(each, item(each.item).name) for each in told[:_TOLD_AT_MOST]]
    more = len(told) - _TOLD_AT_MOST
    return "; ".join([*lines, *([f"and {more} changes more"] if more > 0 else [])])


def _line(change: NetChange | WorkEvent, name: str) -> str:
    if change.field == CREATED:
        return f"{name} was created"
    if change.field == NOTE:
        return f"noted with {name}: {change.after}"
    return f"{name}: {change.field.replace('_', ' ')} {_value(change.after)}, was {_value(change.before)}"


def _value(text: str | None) -> str:
    return text if text else "none"

"""Status transitions of work items, dependency cycles, and field changes as text, to describe and undo them."""

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

TRANSITIONS: Mapping[WorkStatus, tuple[WorkStatus, ...]] = {
    # Small items are ticked off in a list without ever having been marked as started.
    _PENDING: (_IN_PROGRESS, _BLOCKED, _DONE, _DEFERRED, _CANCELLED),
    _IN_PROGRESS: (_DONE, _FAILED, _BLOCKED, _PENDING, _DEFERRED, _CANCELLED),
    _BLOCKED: (_PENDING, _DEFERRED, _CANCELLED),
    _DEFERRED: (_PENDING, _IN_PROGRESS, _CANCELLED),
    _FAILED: (_IN_PROGRESS, _PENDING, _DEFERRED, _CANCELLED),
    _DONE: (_IN_PROGRESS, _PENDING),
    _CANCELLED: (_PENDING,),
}
"""The statuses that may follow each status."""

_STARTED = frozenset({_IN_PROGRESS, _FAILED, _DONE})
_FINISHED = frozenset({_DONE, _CANCELLED})


def check_transition(item: WorkItem, status: WorkStatus) -> None:
    """Check that `TRANSITIONS` allows an item to change to a status.

    Raises:
        InvalidChangeError: The transition is not allowed; the message lists the allowed ones.
    """
    allowed = TRANSITIONS[item.status]
    if status not in allowed:
        raise InvalidChangeError(
            f"{item.name} is {item.status} and cannot become {status}; it can become {either(allowed)}"
        )


def with_status(item: WorkItem, status: WorkStatus, now: datetime) -> WorkItem:
    """Return the item with another status: `started` is set once and kept, `finished` is None for open items."""
    started = item.started or (now if status in _STARTED else None)
    return replace(item, status=status, started=started, finished=now if status in _FINISHED else None)


Waiting = Callable[[Sequence[int]], Iterable[tuple[int, int]]]
"""Callback: takes item ids, returns pairs of ids (waiting item, awaited item) for all items that wait for them."""


def circle(waits: int, goals: Collection[int], waiting: Waiting) -> tuple[int, ...]:
    """Find the shortest cycle that arises if `waits` also waits for `goals`.

    Searches breadth-first from `waits` along the waiting items, as few items wait for `waits`, while `waits` itself may
    wait for a whole tree.

    Returns:
        The ids along the cycle, each waiting for the next: `waits`, a goal, …, `waits` again. Empty if no cycle arises.
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
"""Values of `WorkEvent.field` for events that do not change a field of the item."""


def _if_any(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else change(value)


_TEXTS = (lambda value: value or None, lambda text: text or "")
_TIMES = (_if_any(datetime.isoformat), _if_any(datetime.fromisoformat))
_LISTS = (
    lambda values: json.dumps(values, ensure_ascii=False) if values else None,
    lambda text: tuple(json.loads(text)) if text else (),
)
# By field name: a function that converts the field's value to text, and a function that converts the text back.
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
    """Return the value of a field as events store it: lists as JSON, times in ISO 8601, None for an empty value."""
    return _FIELDS[field][0](getattr(item, field))


def with_field(item: WorkItem, field: str, text: str | None) -> WorkItem:
    """Return the item with a field set from the text that an event stores."""
    return replace(item, **{field: _FIELDS[field][1](text)})


def changed_fields(before: WorkItem, after: WorkItem) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield each field that differs, with both values as text."""
    for field in _FIELDS:
        if getattr(before, field) != getattr(after, field):
            yield field, field_text(before, field), field_text(after, field)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetChange:
    """The combined effect of several events on one field."""

    item: int
    field: str
    before: str | None
    after: str | None


def net_changes(events: Iterable[WorkEvent]) -> list[NetChange]:
    """Merge events (oldest first) into one change per item and field, without fields that end up unchanged.

    The changes are sorted by their first event, newest first: the order in which to undo them.
    """
    found: dict[tuple[int, str], NetChange] = {}
    for event in events:
        if event.field == NOTE:
            continue
        key = event.item, event.field
        first = found[key].before if key in found else event.before
        found[key] = NetChange(item=event.item, field=event.field, before=first, after=event.after)
    return [change for change in reversed(found.values()) if change.before != change.after]


def taken_back(item: WorkItem, changes: Sequence[NetChange], now: datetime) -> WorkItem:
    """Undo an operation's changes of an item; cancel the item if the operation created it.

    Raises:
        InvalidChangeError: A field has been changed again since, or the item can no longer be cancelled.
    """
    if any(change.field == CREATED for change in changes):
        if item.status is WorkStatus.CANCELLED:
            return item
        check_transition(item, WorkStatus.CANCELLED)
        return with_status(item, WorkStatus.CANCELLED, now)
    for change in changes:
        if (present := field_text(item, change.field)) != change.after:
            raise InvalidChangeError(
                f"{item.name} has been changed again since: {change.field} was set to {change.after!r} and is now "
                f"{present!r}; undo the later change first"
            )
        item = with_field(item, change.field, change.before)
    return item


_MAX_DESCRIBED = 30
_TOLD_OF_NEW = frozenset({CREATED, "status", "assignee", "priority"})
"""Fields that the descriptions of a new item tell if they have changed; the others say what it is."""
_HIDDEN_FIELDS = frozenset({"rank", "started", "finished"})
"""Fields left out of descriptions: ranks mean nothing to people, and the times follow from the status."""


def describe_changes(events: Iterable[WorkEvent], item: Callable[[int], WorkItem]) -> str:
    """Describe the net changes of events (given oldest first), then their notes; only count those beyond the first 30.

    `item` is a callback that returns an item's present state by its id.
    """
    events = list(events)
    notes = [event for event in events if event.field == NOTE]
    changes = [change for change in reversed(net_changes(events)) if change.field not in _HIDDEN_FIELDS]
    created = {change.item for change in changes if change.field == CREATED}
    told: list[NetChange | WorkEvent] = [
        *(each for each in changes if each.field in _TOLD_OF_NEW or each.item not in created),
        *notes,
    ]
    lines = [_line(each, item(each.item).name) for each in told[:_MAX_DESCRIBED]]
    more = len(told) - _MAX_DESCRIBED
    return "; ".join([*lines, *([f"and {more} more"] if more > 0 else [])])


def _line(change: NetChange | WorkEvent, name: str) -> str:
    if change.field == CREATED:
        return f"{name} was created"
    if change.field == NOTE:
        return f"note on {name}: {change.after}"
    return f"{name}: {change.field.replace('_', ' ')} {change.after or 'none'}, was {change.before or 'none'}"

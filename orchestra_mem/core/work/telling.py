"""Changes of work told in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from orchestra_mem.core.work.changes import CREATED, NOTE, NetChange, net_changes
from orchestra_mem.work_types import WorkEvent, WorkItem

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
        *(each for each in changes if each.field == CREATED or each.item not in created),
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

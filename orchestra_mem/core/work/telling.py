"""Changes of work told in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from orchestra_mem.core.work.changes import CREATED, NOTE, net_changes
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
    notes = [f"noted with {item(event.item).name}: {event.after}" for event in events if event.field == NOTE]
    changes = [change for change in reversed(net_changes(events)) if change.field not in _UNTOLD]
    created = {change.item for change in changes if change.field == CREATED}
    lines = []
    for change in changes:
        name = item(change.item).name
        if change.field == CREATED:
            lines.append(f"{name} was created")
        elif change.item not in created:
            lines.append(
                f"{name}: {change.field.replace('_', ' ')} {_value(change.after)}, was {_value(change.before)}"
            )
    lines += notes
    more = len(lines) - _TOLD_AT_MOST
    return "; ".join([*lines[:_TOLD_AT_MOST], *([f"and {more} changes more"] if more > 0 else [])])


def _value(text: str | None) -> str:
    return text if text else "none"

"""What the documents show of work, gathered from the tracker with few and bounded questions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from orchestra_mem.core.documents.episodic import Mention, PlanRow, WorkView
from orchestra_mem.core.documents.plan_lines import item_line
from orchestra_mem.core.text import squeeze
from orchestra_mem.errors import NotFoundError
from orchestra_mem.work_types import WorkFilter, WorkItem, WorkKind, WorkStatus, WorkTracker

_KINDS = tuple(WorkKind)
_TO_DO = (WorkStatus.PENDING, WorkStatus.IN_PROGRESS, WorkStatus.BLOCKED, WorkStatus.FAILED)
# Of what stands alone so many lines; with all that hangs below the first of it so many; of what is deferred so many.
_MOST_TOP = 25
_MOST_ROWS = 80
_MOST_FUTURE = 15
# What stands in the plan and would not be shown stays until there are so many newer ones: a tick can be taken back, and
# what somebody has written below a list that goes on does not vanish.
_MOST_STANDING = 20
_MOST_MISSING = 2 * _MOST_STANDING
_MOST_ACTIVE = 10
_MOST_EPICS = 5
_MOST_BLOCKED = 8
_MOST_DONE = 8
_MOST_NEXT = 7
_LOOKED_BACK = 60
_REASON_CHARS = 160


class Overview:
    """Gathers one view. `shown` are the numbers in the plan as it stands, `remarks` what is to be said of items."""

    def __init__(self, tracker: WorkTracker, shown: Sequence[int], remarks: Mapping[int, tuple[str, ...]]) -> None:
        self._tracker = tracker
        self._shown = shown
        self._remarks = remarks
        self._counts = tracker.counts()
        self._below: defaultdict[int, list[WorkItem]] = defaultdict(list)
        self._unfolded: set[int] = set()
        self._blockers: dict[int, list[WorkItem]] = {}

    def view(self) -> WorkView:
        """What is known now."""
        active = self._tracker.items(WorkFilter(statuses=(WorkStatus.IN_PROGRESS,), limit=_MOST_ACTIVE))
        self._gather_tree()
        tree = [each for item in self._below[0] for each in self._tree(item)]
        deferred = self._tracker.items(WorkFilter(statuses=(WorkStatus.DEFERRED,), limit=_MOST_FUTURE))
        return WorkView(
            counts=self._counts,
            active=[Mention(item=item, words=self._how_far(item)) for item in [*self._epics(active), *active]],
            done=self._done(),
            blocked=self._blocked(active),
            next=self._next(active, [item for item, _ in tree]),
            backlog=[self._row(item, depth) for item, depth in tree],
            future=[self._row(item, 0) for item in deferred],
        )

    def _epics(self, active: Sequence[WorkItem]) -> list[WorkItem]:
        """The epics under way: those of what is active, and those of which nobody has taken anything up yet."""
        epics = self._tracker.items(WorkFilter(kinds=(WorkKind.EPIC,), statuses=_TO_DO, limit=_MOST_EPICS))
        return [epic for epic in epics if epic not in active]

    def _gather_tree(self) -> None:
        """The tree of what is to be done: all that stands alone first, then what hangs below the first of it."""
        tops = self._tracker.items(WorkFilter(parent=0, statuses=_TO_DO, limit=_MOST_TOP))
        self._below[0] = tops
        left = _MOST_ROWS - len(tops)
        for item in tops:
            left = self._unfold(item, left)
        self._add_standing({item.id for items in self._below.values() for item in items})

    def _unfold(self, item: WorkItem, left: int) -> int:
        """Find what hangs below an item, in so many lines at most; how many are left."""
        if left <= 0:
            return 0
        self._unfolded.add(item.id)
        below = self._below[item.id] = self._to_do_below(item, left)
        left -= len(below)
        for each in below:
            left = self._unfold(each, left)
        return left

    def _to_do_below(self, item: WorkItem, limit: int) -> list[WorkItem]:
        """What there is to do right below an item; nothing is asked where no narrower item is open."""
        if not any(self._counts[kind][status] for kind in _KINDS[_KINDS.index(item.kind) + 1 :] for status in _TO_DO):
            return []
        return self._tracker.items(WorkFilter(parent=item.id, statuses=_TO_DO, limit=limit))

    def _add_standing(self, there: set[int]) -> None:
        """Put what is closed, or was left out for want of room, and stands in the plan where it belongs."""
        found: list[WorkItem] = []
        for number in [number for number in self._shown if number not in there][:_MOST_MISSING]:
            with suppress(NotFoundError):
                item = self._tracker.item(number)
                left_out = item.status in _TO_DO and item.parent in (None, *there)
                found += [item] if left_out or not item.status.is_open else []
        newest = sorted(found, key=lambda item: (item.finished or item.changed, item.id))[-_MOST_STANDING:]
        there |= {item.id for item in newest}
        for item in newest:
            parent = item.parent if item.parent in there else 0
            self._below[parent or 0].append(item)
            self._below[parent or 0].sort(key=lambda each: (each.priority, each.rank, each.id))

    def _tree(self, item: WorkItem, depth: int = 0) -> Iterator[tuple[WorkItem, int]]:
        """What is shown of an item and below it, each with how deep it stands."""
        yield item, depth
        for each in self._below.get(item.id, ()):
            yield from self._tree(each, depth + 1)

    def _row(self, item: WorkItem, depth: int) -> PlanRow:
        waits = tuple(each.id for each in self._waits_for(item)) if item.status.is_open else ()
        progress = self._counted(item) if not depth and self._below.get(item.id) else ""
        line = item_line(item, waits_for=waits, progress=progress, depth=depth)
        return PlanRow(line=line, remarks=self._remarks.get(item.id, ()))

    def _counted(self, item: WorkItem) -> str:
        """How much of what is below an item is done; empty where there is nothing."""
        progress = self._tracker.progress(item.id)
        return f"{progress.done} of {progress.total} done" if progress.total else ""

    def _waits_for(self, item: WorkItem) -> list[WorkItem]:
        if item.id not in self._blockers:
            self._blockers[item.id] = self._tracker.blockers(item.id) if item.depends_on else []
        return self._blockers[item.id]

    def _how_far(self, item: WorkItem) -> str:
        return ", ".join(filter(None, [self._counted(item), f"@{item.assignee}" if item.assignee else ""]))

    def _done(self) -> list[Mention]:
        """What was finished last."""
        times = {
            event.item: event.time
            for event in self._tracker.events(limit=_LOOKED_BACK)
            if event.field == "status" and event.after == WorkStatus.DONE
        }
        items = [self._tracker.item(number) for number in [*times][-_MOST_DONE:]]
        return [
            Mention(item=item, words=f"done {times[item.id]:%Y-%m-%d}")
            for item in items
            if item.status is WorkStatus.DONE
        ]

    def _blocked(self, active: Sequence[WorkItem]) -> list[Mention]:
        stuck = self._tracker.items(WorkFilter(statuses=(WorkStatus.BLOCKED, WorkStatus.FAILED), limit=_MOST_BLOCKED))
        told = [Mention(item=item, words=f"{item.status}{self._why(item)}") for item in stuck]
        waiting = [(item, self._waits_for(item)) for item in active]
        return told + [Mention(item=item, words=f"waits for {_named(whom)}") for item, whom in waiting if whom]

    def _why(self, item: WorkItem) -> str:
        """What is said of why an item is blocked or has failed."""
        if whom := self._waits_for(item):
            return f", waits for {_named(whom)}"
        events = [event for event in self._tracker.events(item.id, limit=10) if event.field == "status"]
        reason = squeeze(events[-1].reason)[:_REASON_CHARS] if events else ""
        return f", {reason}" if reason else ""

    def _next(self, active: Sequence[WorkItem], backlog: Sequence[WorkItem]) -> list[Mention]:
        """What can be gone on with or begun: nothing that waits, nothing with open work below it."""
        urgent = self._tracker.items(WorkFilter(statuses=(WorkStatus.PENDING,), limit=_MOST_NEXT))
        pending = [item for item in backlog if item.status is WorkStatus.PENDING]
        ready = {item.id: item for item in active if self._is_ready(item)}
        # Sorting keeps the order of the tree within a priority.
        for item in sorted([item for item in urgent if item.priority < 3] + pending, key=lambda item: item.priority):
            if len(ready) >= _MOST_NEXT:
                break
            if item.id not in ready and self._is_ready(item):
                ready[item.id] = item
        return [Mention(item=item, words=self._where(item)) for item in [*ready.values()][:_MOST_NEXT]]

    def _is_ready(self, item: WorkItem) -> bool:
        if self._waits_for(item):
            return False
        if item.id in self._unfolded:
            return not any(each.status.is_open for each in self._below.get(item.id, ()))
        return not self._to_do_below(item, 1)

    def _where(self, item: WorkItem) -> str:
        words = [item.status.value] if item.status is not WorkStatus.PENDING else ["can be started"]
        if item.parent is not None:
            words.append(f"under #{item.parent}")
        return ", ".join(words)


def _named(items: Sequence[WorkItem]) -> str:
    names = [f"#{item.id}" for item in items[:5]]
    return ", ".join(names) + (f" and {len(items) - 5:,} more" if len(items) > 5 else "")

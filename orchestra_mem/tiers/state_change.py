"""Store a change of work items with its events, and check the change against related items.

The checks run within the change's transaction: otherwise concurrent changes, each valid alone, could break a rule.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from orchestra_mem.core.work.transitions import CREATED, changed_fields, circle
from orchestra_mem.core.work.wording import NAMED_AT_MOST, a, arrows, either, listed
from orchestra_mem.errors import CircularDependencyError, InvalidChangeError
from orchestra_mem.stores import WorkStore
from orchestra_mem.types import Author
from orchestra_mem.work_types import OPEN_STATUSES, PARENT_KINDS, WorkEvent, WorkFilter, WorkItem, WorkKind, WorkStatus


class StateChange:
    """The changes of one transaction: each is stored immediately, and all are checked together at the end."""

    def __init__(self, store: WorkStore, now: datetime, author: Author, operation: int, reason: str) -> None:
        self._store = store
        self._author = author
        self._operation = operation
        self._pairs: list[tuple[WorkItem | None, WorkItem]] = []
        self.now = now
        self.reason = reason

    def create(self, draft: WorkItem) -> WorkItem:
        """Store a new item."""
        self._check_links(None, draft)
        item = self._store.add(draft)
        self.tell(item.id, CREATED, None, item.title)
        self._pairs.append((None, item))
        return item

    def replace(self, before: WorkItem, after: WorkItem) -> WorkItem:
        """Store a changed item and an event for each changed field; do nothing if no field differs."""
        events = [self._event(after.id, *each) for each in changed_fields(before, after)]
        if not events:
            return before
        self._check_links(before, after)
        after = replace(after, changed=self.now)
        self._store.replace(before, after)
        self._store.add_events(events)
        self._pairs.append((before, after))
        return after

    def tell(self, item: int, field: str, before: str | None, after: str | None) -> None:
        """Store an event that changes no field of the item."""
        self._store.add_events([self._event(item, field, before, after)])

    def _event(self, item: int, field: str, before: str | None, after: str | None) -> WorkEvent:
        return WorkEvent(
            id=0, item=item, time=self.now, author=self._author, field=field, before=before, after=after,
            reason=self.reason, operation=self._operation,
        )  # fmt: skip

    def _check_links(self, before: WorkItem | None, after: WorkItem) -> None:
        """Check that new dependencies and a new parent exist, and that the parent's kind is allowed."""
        for each in sorted(set(after.depends_on) - set(before.depends_on if before else ())):
            self._store.item(each)
        if before is not None and before.parent == after.parent:
            return
        allowed = PARENT_KINDS[after.kind]
        if after.parent is None:
            if after.kind is WorkKind.SUBTASK:
                raise InvalidChangeError(f"{_said(before, after)} needs a task as its parent")
            return
        parent = self._store.item(after.parent)
        if parent.kind not in allowed:
            may = f"its parent must be {either(a(kind) for kind in allowed)}" if allowed else "it cannot have a parent"
            raise InvalidChangeError(f"{_said(before, after)} cannot be placed under {parent.name}; {may}")

    def check(self) -> None:
        """Check the rules between items: parents, closed items, cycles."""
        for before, after in self._pairs:
            self._check_parent(before, after)
            self._check_finished(before, after)
            self._check_circles(before, after)

    def _check_parent(self, before: WorkItem | None, after: WorkItem) -> None:
        """Check that the parent of an open item is open."""
        if after.parent is None or not after.status.is_open:
            return
        if before is not None and before.parent == after.parent and before.status.is_open:
            return
        parent = self._store.item(after.parent)
        if not parent.status.is_open:
            raise InvalidChangeError(
                f"{_said(before, after)} cannot be open under {parent.name}, which is {parent.status}; "
                "reopen that first"
            )

    def _check_finished(self, before: WorkItem | None, after: WorkItem) -> None:
        """Check that a closed item has no open items below it, and that a done item has no open dependencies."""
        if after.status.is_open or before is None or before.status is after.status:
            return
        finished = after.status is WorkStatus.DONE
        cannot = f"{after.name} cannot be {'finished' if finished else 'cancelled'}"
        wanted = WorkFilter(parent=after.id, statuses=OPEN_STATUSES, limit=NAMED_AT_MOST + 1)
        if before.status.is_open and (below := self._store.items(wanted)):
            raise InvalidChangeError(f"{cannot} before the items below it: {listed(below)}")
        if finished and (blockers := self._store.blockers(after.id)):
            raise InvalidChangeError(
                f"{cannot} before what it waits for: {listed(blockers)}; finish that first, or remove the dependency"
            )

    def _check_circles(self, before: WorkItem | None, after: WorkItem) -> None:
        new = set(after.depends_on) - set(before.depends_on if before else ())
        if new:
            self._check_circle(after.id, new, "wait for", before, after)
        if after.parent is not None and (before is None or before.parent != after.parent):
            self._check_circle(after.parent, {after.id}, "be placed under", before, after)

    def _check_circle(self, waits: int, goals: set[int], doing: str, before: WorkItem | None, after: WorkItem) -> None:
        path = circle(waits, goals, self._store.waiting)
        if not path:
            return
        other = self._store.item(path[1] if waits == after.id else waits)
        target = "itself" if other.id == after.id else other.name
        raise CircularDependencyError(
            f"{_said(before, after)} cannot {doing} {target}: that would be a circular dependency, "
            f"{arrows(path, new=0 if before else after.id)} (a parent waits for the items below it)",
            path=path,
        )


def _said(before: WorkItem | None, after: WorkItem) -> str:
    """Name an item in an error; a new item by kind and title, as the error rolls its number back."""
    return after.name if before else f'{a(after.kind)} "{after.title}"'

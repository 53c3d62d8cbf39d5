"""`StateManager`, beside the tiers: work items (milestones, epics, stories, tasks), their status and their history.

Rules for a single item live in `core/work`, rules between items in `state_change.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta

from orchestra_mem.core.work.transitions import NOTE, NetChange, check_transition, net_changes, taken_back, with_status
from orchestra_mem.core.work.wording import checked_priority, checked_rank, kept_name, kept_notes, kept_text, kept_title
from orchestra_mem.design_names import RejectsDesignArguments
from orchestra_mem.errors import InvalidChangeError, NotFoundError
from orchestra_mem.ports import Clock
from orchestra_mem.stores import WorkStore
from orchestra_mem.tiers.state_change import StateChange
from orchestra_mem.types import Author
from orchestra_mem.work_types import WorkEvent, WorkFilter, WorkItem, WorkKind, WorkProgress, WorkStatus

_NO_LOCK = nullcontext()
_FREE = "all its dependencies are closed"


@dataclass(kw_only=True, eq=False, repr=False)
class StateManager(RejectsDesignArguments, use="open_memory(project, config=config).state"):
    """Keeps the state of work; implements `WorkTracker`. Safe to share between threads.

    Each call stores its change and its events in one transaction before it returns. Nothing is ever deleted.

    Attributes:
        lock: Reentrant lock that `together` takes before its transaction; other code must take both in this order.
        redacted: Removes secrets from texts by the machine; a person's texts stay as they are.
    """

    store: WorkStore
    clock: Clock
    lock: AbstractContextManager[None] = _NO_LOCK
    redacted: Callable[[str], str] = str

    # Changing

    def create(
        self,
        kind: WorkKind,
        title: str,
        *,
        description: str = "",
        parent: int | None = None,
        priority: int = 3,
        depends_on: Sequence[int] = (),
        assignee: str | None = None,
        acceptance: Sequence[str] = (),
        author: Author = Author.MACHINE,
        operation: int = 0,
        number: int = 0,
    ) -> WorkItem:
        """Create a pending item, ranked last in its priority, with an unused `number` or the next one.

        A `parent` of 0 means none.

        Raises:
            InvalidChangeError: The title is empty or too long, the priority is not 1 to 5, or the parent is closed or
                of the wrong kind.
            NotFoundError: The parent or a dependency does not exist.
        """
        clean = self.redacted if author is Author.MACHINE else str
        with self._changing(author, operation) as change:
            draft = WorkItem(
                id=number,
                kind=WorkKind(kind),
                title=kept_title(clean(title)),
                description=kept_text(clean(description)),
                parent=parent or None,
                priority=checked_priority(priority),
                rank=self.store.last_rank(priority) + 1.0,
                depends_on=tuple(sorted(set(depends_on))),
                assignee=kept_name(assignee),
                acceptance=kept_notes([*map(clean, acceptance)]),
                created=change.now,
                changed=change.now,
            )
            return change.create(draft)

    def set_status(
        self, item_id: int, status: WorkStatus, *, reason: str = "", author: Author = Author.MACHINE, operation: int = 0
    ) -> WorkItem:
        """Move an item to another status; if it has that status already, only record the reason if one is given.

        Closing an item unblocks items that depend on it, were blocked without a reason, and wait for nothing else.

        Raises:
            InvalidChangeError: The transition is not allowed, a dependency or an item below is open, or the parent is
                closed.
            NotFoundError: There is no such item.
        """
        status = WorkStatus(status)
        with self._changing(author, operation, reason) as change:
            item = self.store.item(item_id)
            if item.status is status:
                if change.reason:
                    change.tell(item.id, "status", status.value, status.value)
                return item
            check_transition(item, status)
            after = change.replace(item, with_status(item, status, change.now))
            if not status.is_open:
                self._free(item_id, change)
            return after

    def _free(self, closed: int, change: StateChange) -> None:
        """Unblock items that depended on a closed item, have no open dependency, and were blocked without a reason."""
        change.reason = _FREE
        for item in self.store.items(WorkFilter(blocked_by=closed, statuses=(WorkStatus.BLOCKED,))):
            events = [each for each in self.store.events(item=item.id) if each.field == "status"]
            if not self.store.blockers(item.id) and not any(each.reason for each in events[-1:]):
                change.replace(item, with_status(item, WorkStatus.PENDING, change.now))

    def change(
        self,
        item_id: int,
        *,
        title: str | None = None,
        description: str | None = None,
        parent: int | None = None,
        priority: int | None = None,
        rank: float | None = None,
        depends_on: Sequence[int] | None = None,
        assignee: str | None = None,
        acceptance: Sequence[str] | None = None,
        author: Author = Author.MACHINE,
        operation: int = 0,
    ) -> WorkItem:
        """Change the given fields; None leaves a field as it is. An empty `assignee` or `parent` 0 clears the field.

        An item that gets another priority is ranked last in it, unless a rank is given.

        Raises:
            CircularDependencyError: The item would wait for itself, through dependencies or items below it.
            InvalidChangeError: A value is invalid, or the parent is closed or of the wrong kind.
            NotFoundError: The item, the parent or a dependency does not exist.
        """
        clean = self.redacted if author is Author.MACHINE else str
        with self._changing(author, operation) as change:
            item = self.store.item(item_id)
            if rank is None and priority is not None and priority != item.priority:
                rank = self.store.last_rank(checked_priority(priority)) + 1.0
            after = replace(
                item,
                title=item.title if title is None else kept_title(clean(title)),
                description=item.description if description is None else kept_text(clean(description)),
                parent=item.parent if parent is None else parent or None,
                priority=item.priority if priority is None else checked_priority(priority),
                rank=item.rank if rank is None else checked_rank(rank),
                depends_on=item.depends_on if depends_on is None else tuple(sorted(set(depends_on))),
                assignee=item.assignee if assignee is None else kept_name(assignee),
                acceptance=item.acceptance if acceptance is None else kept_notes([*map(clean, acceptance)]),
            )
            return change.replace(item, after)

    def note(self, item_id: int, text: str, *, author: Author = Author.MACHINE, operation: int = 0) -> WorkItem:
        """Add a note to an item's history.

        Raises:
            InvalidChangeError: The note is empty.
            NotFoundError: There is no such item.
        """
        kept = kept_text(self.redacted(text) if author is Author.MACHINE else text)
        if not kept:
            raise InvalidChangeError("the note is empty; give it at least one visible character")
        with self._changing(author, operation) as change:
            item = self.store.item(item_id)
            change.tell(item.id, NOTE, None, kept)
            return item

    def undo(self, operation: int, *, author: Author = Author.MACHINE) -> list[WorkItem]:
        """Undo all changes of an operation, as new events of that operation; cancel the items it created. Notes stay.

        Returns:
            The changed items, in reverse order of the operation's changes.

        Raises:
            InvalidChangeError: A field has been changed again since, or a related item forbids it; nothing is undone.
            NotFoundError: The operation changed nothing, or is undone already.
        """
        with self._changing(author, operation, f"undo of operation {operation}") as change:
            by_item: dict[int, list[NetChange]] = {}
            for each in net_changes(self.store.events(operation=operation)):
                by_item.setdefault(each.item, []).append(each)
            done = []
            for item_id, changes in by_item.items():
                before = self.store.item(item_id)
                after = taken_back(before, changes, change.now)
                if after != before:
                    done.append(change.replace(before, after))
            if not done:
                raise NotFoundError(f"operation {operation} has no changes to undo")
            return done

    @contextmanager
    def together(self) -> Iterator[list[WorkEvent]]:
        """Make all changes within the block in one transaction: all, or none if the block raises.

        A refused change may be caught within the block; only that change is then rolled back. Record operations after
        the block.

        Yields:
            A list that is filled with the events when the block ends.
        """
        made: list[WorkEvent] = []
        with self.lock, self.store.changing("work"):
            last = self.store.last_event()
            yield made
            made += self.store.events(after=last)

    def attribute(self, events: Sequence[int], operation: int, author: Author | None = None) -> None:
        """Record which operation caused the events with the given ids and, if given, who asked for it."""
        self.store.attribute(events, operation, author)

    def unattributed(self, older_than: timedelta = timedelta(0)) -> list[WorkEvent]:
        """Return events without an operation that are at least `older_than` old, oldest first."""
        return self.store.unattributed(self.clock() - older_than)

    @contextmanager
    def _changing(self, author: Author, operation: int, reason: str = "") -> Iterator[StateChange]:
        with self.store.changing("work"):
            reason = self.redacted(reason) if author is Author.MACHINE else reason
            change = StateChange(self.store, self.clock(), author, operation, kept_text(reason))
            yield change
            change.check()

    # Asking

    def item(self, item_id: int) -> WorkItem:
        """Return an item by its id.

        Raises:
            NotFoundError: There is no such item.
        """
        return self.store.item(item_id)

    def items(self, where: WorkFilter | None = None) -> list[WorkItem]:
        """Return the matching items in backlog order: priority, rank, id."""
        return self.store.items(where or WorkFilter())

    def events(self, item_id: int | None = None, *, after: int = 0, limit: int | None = None) -> list[WorkEvent]:
        """Return events, oldest first, optionally of one item: those with ids above `after`, only the newest `limit`.

        Raises:
            NotFoundError: There is no such item.
        """
        if item_id is not None:
            self.store.item(item_id)
        return self.store.events(item=item_id, after=after, limit=limit)

    def counts(self) -> dict[WorkKind, dict[WorkStatus, int]]:
        """Count items by kind and status; every kind and status is a key."""
        return self.store.counts()

    def progress(self, item_id: int) -> WorkProgress:
        """Return how much of the work below an item is done.

        Raises:
            NotFoundError: There is no such item.
        """
        self.store.item(item_id)
        return self.store.progress(item_id)

    def blockers(self, item_id: int) -> list[WorkItem]:
        """Return the dependencies of an item that are neither done nor cancelled, in backlog order.

        Raises:
            NotFoundError: There is no such item.
        """
        self.store.item(item_id)
        return self.store.blockers(item_id)

"""StateManager: the fourth tier. Milestones, epics, stories and tasks, how far they are, and how they came to be so.

The rules of single changes live in `core/work`, what must hold between items in `state_change.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta

from orchestra_mem.core.work.transitions import NOTE, NetChange, check_transition, net_changes, taken_back, with_status
from orchestra_mem.core.work.wording import (
    checked_priority,
    checked_rank,
    kept_name,
    kept_notes,
    kept_text,
    kept_title,
)
from orchestra_mem.design_names import MadeOtherwise
from orchestra_mem.errors import InvalidChangeError, NotFoundError
from orchestra_mem.ports import Clock
from orchestra_mem.tiers.state_change import StateChange
from orchestra_mem.types import Author
from orchestra_mem.work_types import (
    WorkEvent,
    WorkFilter,
    WorkItem,
    WorkKind,
    WorkProgress,
    WorkStatus,
    WorkStore,
)

_NO_LOCK = nullcontext()
_FREE = "what it waited for is closed"


class StateManager(MadeOtherwise, use="open_memory(project, config=config).state"):
    """Keeps the state of work; fulfils `WorkTracker`. Safe to share between threads.

    Each change is stored whole, with its events, before its method returns, or not at all. Nothing is ever deleted.

    Args:
        store: keeps it.
        clock: gives the present time.
        lock: taken before the store is held for longer, by whoever else takes it before the store; for any number of
            times.
        redacted: takes secrets out of what the machine says; what a person writes stays as it is.
    """

    def __init__(
        self,
        *,
        store: WorkStore,
        clock: Clock,
        lock: AbstractContextManager[None] = _NO_LOCK,
        redacted: Callable[[str], str] = str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._lock = lock
        self._redacted = redacted

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
    ) -> WorkItem:
        """Create an item, pending and last of its priority. A `parent` of 0 is none.

        Raises:
            InvalidChangeError: no title, a priority not from 1 to 5, or a parent of the wrong kind or that is closed.
            NotFoundError: there is no such parent, or nothing that it could depend on.
        """
        clean = self._redacted if author is Author.MACHINE else str
        with self._changing(author, operation) as change:
            draft = WorkItem(
                id=0,
                kind=WorkKind(kind),
                title=kept_title(clean(title)),
                description=kept_text(clean(description)),
                parent=parent or None,
                priority=checked_priority(priority),
                rank=self._store.last_rank(priority) + 1.0,
                depends_on=tuple(sorted(set(depends_on))),
                assignee=kept_name(assignee),
                acceptance=kept_notes([*map(clean, acceptance)]),
                created=change.now,
                changed=change.now,
            )
            return change.create(draft)

    def set_status(
        self,
        item_id: int,
        status: WorkStatus,
        *,
        reason: str = "",
        author: Author = Author.MACHINE,
        operation: int = 0,
    ) -> WorkItem:
        """Move an item to another status; where it has it already, only a new reason is kept.

        What was blocked for no other reason than what it depends on is pending again once the last of that is closed.

        Raises:
            InvalidChangeError: the table forbids it, something that it waits for or below it is open, or its parent is
                closed.
            NotFoundError: there is no such item.
        """
        status = WorkStatus(status)
        with self._changing(author, operation, reason) as change:
            item = self._store.item(item_id)
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
        """Unblock what waited for an item that is closed now, and waits for nothing else."""
        change.reason = _FREE
        for item in self._store.items(WorkFilter(blocked_by=closed, statuses=(WorkStatus.BLOCKED,))):
            told = [each for each in self._store.events(item=item.id) if each.after == WorkStatus.BLOCKED]
            if not self._store.blockers(item.id) and not any(each.reason for each in told[-1:]):
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
        """Change what is given; None leaves as it is. An empty `assignee` and a `parent` of 0 take theirs away.

        An item of another priority stands last there, unless it is given a rank.

        Raises:
            CircularDependencyError: it would wait for itself, over others or over what stands below.
            InvalidChangeError: a value that cannot be, or a parent of the wrong kind or that is closed.
            NotFoundError: there is no such item, no such parent, or nothing that it could depend on.
        """
        clean = self._redacted if author is Author.MACHINE else str
        with self._changing(author, operation) as change:
            item = self._store.item(item_id)
            if rank is None and priority is not None and priority != item.priority:
                rank = self._store.last_rank(checked_priority(priority)) + 1.0
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
        """Keep a note with an item.

        Raises:
            InvalidChangeError: it says nothing.
            NotFoundError: there is no such item.
        """
        kept = kept_text(self._redacted(text) if author is Author.MACHINE else text)
        if not kept:
            raise InvalidChangeError("the note says nothing; give it at least one visible character")
        with self._changing(author, operation) as change:
            item = self._store.item(item_id)
            change.tell(item.id, NOTE, None, kept)
            return item

    def undo(self, operation: int, *, author: Author = Author.MACHINE) -> list[WorkItem]:
        """Take back all that came from an operation, as new events of it; what it created is cancelled. Notes stay.

        Returns:
            The items as they then are, what was begun last first.

        Raises:
            InvalidChangeError: some of it has been changed again since, or what hangs on it forbids it; nothing is
                taken back then.
            NotFoundError: nothing came from it, or all has been taken back.
        """
        with self._changing(author, operation, f"undo of operation {operation}") as change:
            by_item: dict[int, list[NetChange]] = {}
            for each in net_changes(self._store.events(operation=operation)):
                by_item.setdefault(each.item, []).append(each)
            done = []
            for item_id, changes in by_item.items():
                before = self._store.item(item_id)
                after = taken_back(before, changes, change.now)
                if after != before:
                    done.append(change.replace(before, after))
            if not done:
                raise NotFoundError(f"there is nothing of operation {operation} to undo")
            return done

    @contextmanager
    def together(self) -> Iterator[list[WorkEvent]]:
        """Make all changes within one: all are kept or, where an error leaves it, none.

        A change that is refused within may be caught; it alone has then not been made. Operations are recorded after.

        Yields:
            A list that holds the events once all is kept.
        """
        made: list[WorkEvent] = []
        with self._lock, self._store.changing("work"):
            last = self._store.last_event()
            yield made
            made += self._store.events(after=last)

    def attribute(self, events: Sequence[int], operation: int) -> None:
        """Say from which operation changes came, by the ids of their events."""
        self._store.attribute(events, operation)

    def unattributed(self, older_than: timedelta = timedelta(0)) -> list[WorkEvent]:
        """Changes that came from no operation yet, oldest first; those made within `older_than` are left out."""
        return self._store.unattributed(self._clock() - older_than)

    @contextmanager
    def _changing(self, author: Author, operation: int, reason: str = "") -> Iterator[StateChange]:
        with self._store.changing("work"):
            reason = self._redacted(reason) if author is Author.MACHINE else reason
            change = StateChange(self._store, self._clock(), author, operation, kept_text(reason))
            yield change
            change.check()

    # Asking

    def item(self, item_id: int) -> WorkItem:
        """One item.

        Raises:
            NotFoundError: there is none with this id.
        """
        return self._store.item(item_id)

    def items(self, where: WorkFilter | None = None) -> list[WorkItem]:
        """Items in the order of the backlog: priority, rank, id."""
        return self._store.items(where or WorkFilter())

    def events(self, item_id: int | None = None, *, after: int = 0, limit: int | None = None) -> list[WorkEvent]:
        """Changes, oldest first; of one item if given, and only those with an id above `after`.

        Of more than `limit` the newest.

        Raises:
            NotFoundError: there is no such item.
        """
        if item_id is not None:
            self._store.item(item_id)
        return self._store.events(item=item_id, after=after, limit=limit)

    def counts(self) -> dict[WorkKind, dict[WorkStatus, int]]:
        """How many items there are of each kind and status; every kind and status is there."""
        return self._store.counts()

    def progress(self, item_id: int) -> WorkProgress:
        """How much of what stands below an item is done.

        Raises:
            NotFoundError: there is no such item.
        """
        self._store.item(item_id)
        return self._store.progress(item_id)

    def blockers(self, item_id: int) -> list[WorkItem]:
        """What an item depends on and that is neither done nor cancelled.

        Raises:
            NotFoundError: there is no such item.
        """
        self._store.item(item_id)
        return self._store.blockers(item_id)

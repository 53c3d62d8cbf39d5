"""Records and ports of work: milestones, epics, stories, tasks, their changes, and what keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from orchestra_mem.types import Author


class WorkKind(StrEnum):
    """What kind of work an item is, from the widest to the narrowest."""

    MILESTONE = "milestone"
    EPIC = "epic"
    STORY = "story"
    TASK = "task"
    SUBTASK = "subtask"

    @property
    def plural(self) -> str:
        """The word for several."""
        return "stories" if self is WorkKind.STORY else f"{self.value}s"


class WorkStatus(StrEnum):
    """The states that an item goes through."""

    PENDING = "pending"
    IN_PROGRESS = "in progress"
    BLOCKED = "blocked"
    DEFERRED = "deferred"
    FAILED = "failed"
    DONE = "done"
    CANCELLED = "cancelled"

    @property
    def is_open(self) -> bool:
        """Whether something is still to be done: neither done nor cancelled."""
        return self not in (WorkStatus.DONE, WorkStatus.CANCELLED)


OPEN_STATUSES = tuple(status for status in WorkStatus if status.is_open)

PARENT_KINDS: Mapping[WorkKind, tuple[WorkKind, ...]] = {
    WorkKind.MILESTONE: (),
    WorkKind.EPIC: (WorkKind.MILESTONE,),
    WorkKind.STORY: (WorkKind.EPIC, WorkKind.MILESTONE),
    WorkKind.TASK: (WorkKind.STORY, WorkKind.EPIC, WorkKind.MILESTONE),
    WorkKind.SUBTASK: (WorkKind.TASK,),
}
"""Of which kinds the parent of an item may be, the usual first. All but a subtask may also stand alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItem:
    """A piece of work.

    `id` counts up over all kinds and never repeats. `priority` is 1 (first) to 5 (last). `rank` orders the items of
    one priority in the backlog, smaller first. `depends_on` are the ids of items that must be done before this one can
    be finished. `started` and `finished` are None until then; times are aware and in UTC.
    """

    id: int
    kind: WorkKind
    title: str
    created: datetime
    changed: datetime
    description: str = ""
    status: WorkStatus = WorkStatus.PENDING
    priority: int = 3
    rank: float = 0.0
    parent: int | None = None
    depends_on: tuple[int, ...] = ()
    assignee: str | None = None
    acceptance: tuple[str, ...] = ()
    started: datetime | None = None
    finished: datetime | None = None

    @property
    def name(self) -> str:
        """How messages name it, as in `Epic #5 "User authentication"`."""
        return f'{self.kind.capitalize()} #{self.id} "{self.title}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEvent:
    """One change of an item. `before` and `after` are the values of `field` as text, None where it had none.

    `field` is one of `WorkItem` (lists as JSON, times in ISO 8601), or `created` (then `after` is the title), or `note`
    (then `after` is the note). `reason` says why, for example what blocks an item. `operation` is the id of the
    operation that caused the change, 0 if none did.
    """

    id: int
    item: int
    time: datetime
    author: Author
    field: str
    before: str | None
    after: str | None
    reason: str = ""
    operation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFilter:
    """A filter: items that meet every condition given. An empty tuple or None is no condition.

    `text` matches items with all of its words in title or description, also within longer words, ignoring case.
    `blocked_by` matches items that depend on this one. A `parent` of 0 matches items without a parent. Of more than
    `limit` items the first are given.
    """

    kinds: tuple[WorkKind, ...] = ()
    statuses: tuple[WorkStatus, ...] = ()
    parent: int | None = None
    text: str = ""
    blocked_by: int | None = None
    assignee: str | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkProgress:
    """How much of the work below an item is done: leaves of the tree, without cancelled ones."""

    done: int
    total: int

    @property
    def share(self) -> float:
        """Done over total, 0 to 1; 0 where there is nothing."""
        return self.done / self.total if self.total else 0.0


class WorkTracker(Protocol):
    """Keeps the state of work. `StateManager` implements it; a host may use a tracker of its own instead.

    Every method that changes something returns the changed item and records the change as events. All raise
    `NotFoundError` for an unknown id, `InvalidChangeError` for a forbidden transition or a parent of the wrong kind,
    and `CircularDependencyError` (an `InvalidChangeError` with the `path`) for a circle.
    """

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
    ) -> WorkItem: ...

    def item(self, item_id: int) -> WorkItem: ...

    def items(self, where: WorkFilter | None = None) -> list[WorkItem]:
        """List items in the order of the backlog: priority, rank, id."""

    def set_status(
        self,
        item_id: int,
        status: WorkStatus,
        *,
        reason: str = "",
        author: Author = Author.MACHINE,
        operation: int = 0,
    ) -> WorkItem: ...

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
        """Change what is given; None leaves as it is. An empty `assignee` and a `parent` of 0 take theirs away."""

    def note(self, item_id: int, text: str, *, author: Author = Author.MACHINE, operation: int = 0) -> WorkItem: ...

    def events(self, item_id: int | None = None, *, after: int = 0, limit: int | None = None) -> list[WorkEvent]:
        """List changes, oldest first; of one item if given, and only those with an id above `after`.

        Of more than `limit` the newest.
        """

    def undo(self, operation: int, *, author: Author = Author.MACHINE) -> list[WorkItem]:
        """Undo all changes that an operation caused, as new events; items that it created are cancelled."""

    def together(self) -> AbstractContextManager[list[WorkEvent]]:
        """Make all changes within the block or, if it raises, none. Gives the list that will hold them."""

    def attribute(self, events: Sequence[int], operation: int) -> None:
        """Note which operation caused changes, by the ids of their events."""

    def unattributed(self, older_than: timedelta = timedelta(0)) -> list[WorkEvent]:
        """List changes without an operation, oldest first, that were made at least `older_than` ago."""

    def counts(self) -> dict[WorkKind, dict[WorkStatus, int]]: ...

    def progress(self, item_id: int) -> WorkProgress: ...

    def blockers(self, item_id: int) -> list[WorkItem]:
        """List what an item depends on and that is neither done nor cancelled."""


class WorkStore(Protocol):
    """Stores items and events for `StateManager`, which knows the rules. Safe for several threads and processes."""

    def changing(self, name: str) -> AbstractContextManager[None]:
        """Run the block as one transaction: all or nothing, isolated from others."""

    def add(self, item: WorkItem) -> WorkItem:
        """Store a new item under the next id."""

    def replace(self, before: WorkItem, after: WorkItem) -> None: ...

    def add_events(self, events: Sequence[WorkEvent]) -> None:
        """Store events, each under the next id."""

    def item(self, item_id: int) -> WorkItem: ...

    def items(self, where: WorkFilter) -> list[WorkItem]: ...

    def events(
        self, *, item: int | None = None, operation: int | None = None, after: int = 0, limit: int | None = None
    ) -> list[WorkEvent]: ...

    def counts(self) -> dict[WorkKind, dict[WorkStatus, int]]: ...

    def progress(self, item_id: int) -> WorkProgress: ...

    def blockers(self, item_id: int) -> list[WorkItem]: ...

    def waiting(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """List pairs of a waiting item and what it waits for: items that depend on these, and their parents."""

    def last_rank(self, priority: int) -> float:
        """Give the highest rank of a priority, 0 where it has no items."""

    def last_event(self) -> int:
        """Give the id of the newest event, 0 where there is none."""

    def attribute(self, events: Sequence[int], operation: int) -> None:
        """Note on events which operation caused them."""

    def unattributed(self, until: datetime) -> list[WorkEvent]:
        """List events without an operation, no younger than `until`, oldest first."""

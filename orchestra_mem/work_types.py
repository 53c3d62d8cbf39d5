"""Records and the port of work items (milestones, epics, stories, tasks): items, changes and trackers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from orchestra_mem.types import Author


class WorkKind(StrEnum):
    """The kinds of work items, from the widest to the narrowest."""

    MILESTONE = "milestone"
    EPIC = "epic"
    STORY = "story"
    TASK = "task"
    SUBTASK = "subtask"

    @property
    def plural(self) -> str:
        """The plural form."""
        return "stories" if self is WorkKind.STORY else f"{self.value}s"


class WorkStatus(StrEnum):
    """The status of a work item; `in-progress` and `In_Progress` are accepted for `in progress`."""

    PENDING = "pending"
    IN_PROGRESS = "in progress"
    BLOCKED = "blocked"
    DEFERRED = "deferred"
    FAILED = "failed"
    DONE = "done"
    CANCELLED = "cancelled"

    @classmethod
    def _missing_(cls, value: object) -> WorkStatus | None:
        spelt = " ".join(str(value).lower().replace("-", " ").replace("_", " ").split())
        return next((status for status in cls if status == spelt), None)

    @property
    def is_open(self) -> bool:
        """Whether the item is neither done nor cancelled."""
        return self not in (WorkStatus.DONE, WorkStatus.CANCELLED)


OPEN_STATUSES = tuple(status for status in WorkStatus if status.is_open)

PARENT_KINDS: Mapping[WorkKind, tuple[WorkKind, ...]] = {
    WorkKind.MILESTONE: (),
    WorkKind.EPIC: (WorkKind.MILESTONE,),
    WorkKind.STORY: (WorkKind.EPIC, WorkKind.MILESTONE),
    WorkKind.TASK: (WorkKind.STORY, WorkKind.EPIC, WorkKind.MILESTONE),
    WorkKind.SUBTASK: (WorkKind.TASK,),
}
"""The kinds that an item's parent may have, the usual one first. Only a subtask needs a parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItem:
    """A work item.

    `id` counts up over all kinds and never repeats. `priority` is 1 (first) to 5 (last). `rank` orders items of equal
    priority in the backlog, smaller first. `depends_on` holds the ids of items that must be done or cancelled before
    this item can be finished. `started` and `finished` are None before the start and the end; times are aware, in UTC.
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
        """The item's name in messages, such as `Epic #5 "User authentication"`."""
        return f'{self.kind.capitalize()} #{self.id} "{self.title}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEvent:
    """One change of an item. `before` and `after` are the values of `field` as text, None for no value.

    `field` is a field of `WorkItem` (lists as JSON, times in ISO 8601), `created` (`after` is the title) or `note`
    (`after` is the note). `reason` explains the change, for example what blocks the item. `operation` is the id of the
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
    """A filter for items: all conditions must hold. An empty tuple or None is no condition.

    `text` matches items with all of its words in title or description, also within longer words, ignoring case.
    `blocked_by` matches items that depend on the given item. A `parent` of 0 matches items without a parent. `limit`
    keeps the first items of the backlog.
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
    """How much of the work below an item is done, counted in leaves of the tree; cancelled items do not count."""

    done: int
    total: int

    @property
    def words(self) -> str:
        """The numbers in words, as in `2 of 5 done`; empty if there is nothing below the item."""
        return f"{self.done} of {self.total} done" if self.total else ""

    @property
    def share(self) -> float:
        """`done` divided by `total`, 0 to 1; 0 if there are no leaves."""
        return self.done / self.total if self.total else 0.0


class WorkTracker(Protocol):
    """Keeps the state of work. `StateManager` implements it; a host may supply its own tracker instead.

    Every method that changes an item records the change as events and returns the changed item. Methods raise
    `NotFoundError` for an unknown id, `InvalidChangeError` for a forbidden transition or a parent of the wrong kind,
    and `CircularDependencyError` (an `InvalidChangeError` with the `path`) for a cycle.
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
        number: int = 0,
    ) -> WorkItem: ...

    def item(self, item_id: int) -> WorkItem: ...

    def items(self, where: WorkFilter | None = None) -> list[WorkItem]:
        """Return items in the order of the backlog: priority, rank, id."""

    def set_status(
        self, item_id: int, status: WorkStatus, *, reason: str = "", author: Author = Author.MACHINE, operation: int = 0
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
        """Change fields; None leaves a field as it is. An empty `assignee` or a `parent` of 0 clears that field."""

    def note(self, item_id: int, text: str, *, author: Author = Author.MACHINE, operation: int = 0) -> WorkItem: ...

    def events(self, item_id: int | None = None, *, after: int = 0, limit: int | None = None) -> list[WorkEvent]:
        """Return the newest `limit` changes with an id above `after`, oldest first: of one item, or of all items."""

    def undo(self, operation: int, *, author: Author = Author.MACHINE) -> list[WorkItem]:
        """Undo all changes that an operation caused, as new events; cancel the items that it created."""

    def together(self) -> AbstractContextManager[list[WorkEvent]]:
        """Apply all changes of the block, or none if it raises. Yields a list that holds their events afterwards."""

    def attribute(self, events: Sequence[int], operation: int, author: Author | None = None) -> None:
        """Record which operation caused the changes with these event ids and, if given, who asked for it."""

    def unattributed(self, older_than: timedelta = timedelta(0)) -> list[WorkEvent]:
        """Return changes without an operation that are at least `older_than` old, oldest first."""

    def counts(self) -> dict[WorkKind, dict[WorkStatus, int]]: ...

    def progress(self, item_id: int) -> WorkProgress: ...

    def blockers(self, item_id: int) -> list[WorkItem]:
        """Return the open items that an item depends on."""

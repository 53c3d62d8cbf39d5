"""What a talk was about lately, and what a command wants: what references are resolved against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from orchestra_mem.work_types import WorkFilter, WorkItem, WorkKind, WorkStatus

Similarity = Callable[[str, Sequence[str]], Sequence[float]]
"""How much a phrase means what each title means, -1 to 1, in the titles' order."""


class Happening(StrEnum):
    """What was done to the items that a mention speaks of."""

    CREATED = "created"
    CHANGED = "changed"
    STARTED = "started"
    FINISHED = "finished"
    FAILED = "failed"
    BLOCKED = "blocked"
    DEFERRED = "deferred"
    CANCELLED = "cancelled"
    ASSIGNED = "assigned"
    MENTIONED = "mentioned"
    LISTED = "listed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One thing said or done lately.

    `items` stand in the order in which they were named, created or shown. `operation` is the id of the operation that
    it was recorded as, 0 where it was not. `text` is the line that was said.
    """

    items: tuple[int, ...]
    happening: Happening
    text: str = ""
    operation: int = 0


class WorkLookup(Protocol):
    """Finds items; a `WorkTracker` is one. `item` raises `NotFoundError` for an id that there is not."""

    def item(self, item_id: int) -> WorkItem:
        """Give the item of an id."""
        ...

    def items(self, where: WorkFilter | None = None) -> list[WorkItem]:
        """List items in the order of the backlog."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """What references are resolved against: the mentions, newest first, and the items that there are."""

    mentions: Sequence[Mention]
    lookup: WorkLookup
    similarity: Similarity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a command wants of the items that it is told.

    Other kinds than `kinds` cannot be meant; empty allows all. Other statuses than `statuses` are unlikely; empty
    makes all alike. `many` is whether several may be meant where the words leave it open.
    """

    kinds: tuple[WorkKind, ...] = ()
    statuses: tuple[WorkStatus, ...] = ()
    many: bool = False


ANYTHING = Need()

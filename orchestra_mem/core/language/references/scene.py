"""What stands before the speakers' eyes after the newest lines: single items and groups, each with its weight."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from orchestra_mem.core.language.mentions import Happening, Mention, Talk
from orchestra_mem.core.language.references.titles import match
from orchestra_mem.core.language.references.words import STATUSES
from orchestra_mem.core.text import words
from orchestra_mem.errors import NotFoundError
from orchestra_mem.work_types import WorkFilter, WorkItem, WorkKind

DECAY = 0.7
"""How much of its weight a mention keeps with each newer one."""

MAX_MENTIONS = 40
MAX_CHILDREN = 200

_UNCHANGED = (Happening.LISTED, Happening.MENTIONED, Happening.CREATED)
_MEMBER = 0.6  # one of several done to together, where one is asked for
_LISTED_MEMBER = 0.35  # one of several that were merely shown
_LISTED = 0.95
_SECOND = 0.5  # what a line speaks of besides its subject
_PARENT_OF_NEW = 0.75  # "add 3 stories to it": what they were added to stays the one thing spoken of
_PARENT_OF_SEVERAL = 0.85
_PARENT_NAMED = 0.72
_PARENT = 0.45
_PARENT_OF_LISTED = 0.3
_RUN = 0.9
_LOOSE_PAIR = 0.3

_NUMBERS = re.compile(r"#(\d{1,18})|\b(?:milestone|epic|story|task|subtask) (\d{1,18})\b", re.IGNORECASE)
_TIES = re.compile(r"\b(?:blocked|depends?|wait(?:s|ing)?|needs?|behind|under|into|after|before)\b", re.IGNORECASE)
_DEPENDS = re.compile(r"\b(?:blocked|depends?|wait(?:s|ing)?)\b", re.IGNORECASE)
_PLURAL = re.compile(r"\b(?:they|them|both|these|those)\b", re.IGNORECASE)
_NAMED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A mention with its items. `subject` is the one that it is about, None where that is several alike."""

    items: tuple[WorkItem, ...]
    group: tuple[WorkItem, ...]
    subject: WorkItem | None
    happening: Happening
    text: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Items spoken of together, in their order. `at` is the place of the newest mention of them, 0 for the newest."""

    items: tuple[WorkItem, ...]
    weight: float
    at: int
    happening: Happening
    reason: str
    is_loose: bool = False


class Scene:
    """The newest mentions of a talk, with the items that there still are."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self._items: dict[int, WorkItem | None] = {}
        self.seen = list(self._read(talk.mentions))
        self._singles: dict[int, float] | None = None

    def item(self, item_id: int) -> WorkItem | None:
        """Look an item up, None where there is none."""
        if item_id not in self._items:
            try:
                self._items[item_id] = self.talk.lookup.item(item_id)
            except NotFoundError:
                self._items[item_id] = None
        return self._items[item_id]

    def find(self, where: WorkFilter) -> list[WorkItem]:
        """Look up what passes a filter."""
        found = self.talk.lookup.items(where)
        self._items.update((item.id, item) for item in found)
        return found

    def children(self, parents: Iterable[WorkItem], kind: WorkKind | None) -> list[WorkItem]:
        """List what stands below items, the next level first: all of it, or the nearest items of a kind."""
        found: dict[int, WorkItem] = {}
        level = list(parents)
        while level and len(found) < MAX_CHILDREN:
            below: list[WorkItem] = []
            for parent in level[:MAX_CHILDREN]:
                below += self.find(WorkFilter(parent=parent.id, limit=MAX_CHILDREN))
            below = [item for item in below if item.id not in found]
            found |= {item.id: item for item in below if kind is None or item.kind is kind}
            level = [item for item in below if item.kind is not kind]
        return list(found.values())[:MAX_CHILDREN]

    def ancestors(self, item: WorkItem) -> Iterator[WorkItem]:
        """Yield what an item stands under, the nearest first."""
        above = {item.id}
        while item.parent is not None and item.parent not in above:
            above.add(item.parent)
            parent = self.item(item.parent)
            if parent is None:
                return
            yield parent
            item = parent

    def _read(self, mentions: Sequence[Mention]) -> Iterator[Seen]:
        weight = 1.0
        for mention in mentions[:MAX_MENTIONS]:
            items = tuple(item for item in map(self.item, dict.fromkeys(mention.items)) if item)
            if items:
                subject = None if _is_queried(items, mention) else _subject(items, mention.text)
                is_parent = subject is not None and len(items) > 1 and items[1].parent == subject.id
                group = tuple(item for item in items if item is not subject) if is_parent else items
                yield Seen(
                    items=items, group=group, subject=subject, happening=mention.happening, text=mention.text,
                    weight=weight,
                )  # fmt: skip
                weight *= DECAY

    # Single items

    def singles(self) -> dict[int, float]:
        """Give how much each item is in focus as one thing, 0 to 1, the most first."""
        if self._singles is None:
            self._singles = self._weighed(self._shares)
        return self._singles

    def above(self) -> dict[int, float]:
        """Give how much what stands above the items is in focus, where its kind is named: "the epic"."""
        return self._weighed(self._shares_above)

    def _weighed(self, shares: Callable[[Seen], Iterator[tuple[WorkItem, float]]]) -> dict[int, float]:
        found: dict[int, float] = {}
        for seen in self.seen:
            for item, share in shares(seen):
                found[item.id] = max(found.get(item.id, 0.0), share * seen.weight)
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def _shares(self, seen: Seen) -> Iterator[tuple[WorkItem, float]]:
        is_listed = seen.happening is Happening.LISTED
        named = [self.item(int(a or b)) for a, b in _NUMBERS.findall(seen.text[:500])]
        for item in seen.items:
            if seen.subject is None:
                yield item, _LISTED_MEMBER if is_listed else _MEMBER
            elif item is seen.subject:
                yield item, (_LISTED if seen.weight == 1.0 else _SECOND) if is_listed else 1.0
            else:
                yield item, _SECOND
        yield from ((item, _MEMBER) for item in named if item and item not in seen.items)
        if holder := self.holder(seen):
            if seen.happening is Happening.CREATED:
                yield holder, _PARENT_OF_NEW if seen.subject else _PARENT_OF_SEVERAL
            else:
                yield holder, _PARENT_NAMED

    def holder(self, seen: Seen) -> WorkItem | None:
        """Give what new items were added to, or what a line named to show all below it."""
        parents = {item.parent for item in seen.items}
        parent = self.item(next(iter(parents)) or 0) if len(parents) == 1 else None
        if parent is None or seen.happening is Happening.CREATED:
            return parent
        return parent if seen.subject is None and _names(seen.text, parent) else None

    def _shares_above(self, seen: Seen) -> Iterator[tuple[WorkItem, float]]:
        for item in seen.items[:3]:
            for above in self.ancestors(item):
                yield above, _PARENT if seen.subject else _PARENT_OF_LISTED

    def focus(self) -> WorkItem | None:
        """Give the subject of the newest mention that has one."""
        return next((seen.subject for seen in self.seen if seen.subject), None)

    def in_shown_order(self, items: Sequence[WorkItem]) -> tuple[WorkItem, ...]:
        """Order items as they were last spoken of together, if they were."""
        wanted = {item.id for item in items}
        for seen in self.seen:
            if wanted <= {item.id for item in seen.items}:
                return tuple(item for item in seen.items if item.id in wanted)
        return tuple(items)

    def subjects(self) -> list[tuple[WorkItem, float]]:
        """List the subjects of the mentions, each once, the newest first, with their mentions' weights."""
        found: dict[int, tuple[WorkItem, float]] = {}
        for seen in self.seen:
            if seen.subject and seen.subject.id not in found:
                found[seen.subject.id] = (seen.subject, seen.weight)
        return list(found.values())

    def touched_since(self, at: int) -> dict[int, WorkItem]:
        """List the subjects of the mentions that are newer than the one at a place."""
        found: dict[int, WorkItem] = {}
        for seen in self.seen[:at]:
            found |= {item.id: item for item in (seen.subject, self.holder(seen)) if item and item.id not in found}
        return found

    def changed_since(self, at: int) -> dict[int, WorkItem]:
        """List what was changed together by the mentions that are newer than the one at a place."""
        return {
            item.id: item
            for seen in self.seen[:at]
            if seen.subject is None and seen.happening not in _UNCHANGED
            for item in seen.group
        }

    # Groups

    def groups(self) -> list[Group]:
        """List what was spoken of together, the likeliest first."""
        found = [*self._told_together(), *self._runs(), *self._newest_pair()]
        return sorted(found, key=lambda group: -group.weight)

    def _told_together(self) -> Iterator[Group]:
        for at, seen in enumerate(self.seen):
            if len(seen.group) > 1:
                items = (*seen.group, *self._added_since(at, seen.group))
                share = _LISTED if seen.happening is Happening.LISTED else 1.0
                yield Group(
                    items=items, weight=seen.weight * share, at=at, happening=seen.happening,
                    reason=f"{seen.happening} together {_ago(at)}",
                )  # fmt: skip

    def _added_since(self, at: int, group: Sequence[WorkItem]) -> list[WorkItem]:
        """List what was created later beside the items of a group, one at a time: "add a third one"."""
        last = group[-1]
        return [
            seen.subject
            for seen in reversed(self.seen[:at])
            if seen.happening is Happening.CREATED and seen.subject and seen.subject not in group
            and (seen.subject.kind, seen.subject.parent) == (last.kind, last.parent)
        ]  # fmt: skip

    def is_one_of_shown(self, item: WorkItem) -> bool:
        """Tell whether the newest line has shown an item among others."""
        newest = self.seen[0] if self.seen else None
        return bool(newest and newest.subject is None and newest.happening is Happening.LISTED and item in newest.items)

    def was_said(self, item: WorkItem) -> bool:
        """Tell whether an item was spoken of itself, or added to."""
        return any(
            item in seen.items or (seen.happening is Happening.CREATED and self.holder(seen) is item)
            for seen in self.seen
        )

    def _runs(self) -> Iterator[Group]:
        """Yield items of one kind to which the same was done one after the other."""
        at = 0
        while at < len(self.seen):
            run = [self.seen[at]]
            while at + len(run) < len(self.seen) and _goes_on(run, self.seen[at + len(run)]):
                run.append(self.seen[at + len(run)])
            items = tuple(seen.subject for seen in reversed(run) if seen.subject)
            if len(items) > 1:
                yield Group(
                    items=items, weight=run[0].weight * _RUN, at=at, happening=run[0].happening,
                    reason=f"{run[0].happening} one after the other {_ago(at)}",
                )  # fmt: skip
            at += len(run)

    def _newest_pair(self) -> Iterator[Group]:
        lately = [seen for seen in self.seen[:4] if seen.subject]
        first = lately[0] if lately else None
        second = next(
            (seen for seen in lately[1:] if first and seen.subject and seen.subject is not first.subject), None
        )
        if first and first.subject and second and second.subject:
            yield Group(
                items=(second.subject, first.subject), weight=first.weight * _LOOSE_PAIR, at=0,
                happening=Happening.MENTIONED, reason="the two spoken of last", is_loose=True,
            )  # fmt: skip


def _goes_on(run: list[Seen], older: Seen) -> bool:
    newer = run[-1]
    return bool(
        newer.subject
        and older.subject
        and len(newer.items) == len(older.items) == 1
        and newer.happening is older.happening
        and newer.subject.kind is older.subject.kind
        and all(seen.subject is not older.subject for seen in run)
    )


def _subject(items: tuple[WorkItem, ...], text: str) -> WorkItem | None:
    """Find what a line is about: its only item, what the others stand under, or what was said to depend on another."""
    if len(items) == 1:
        return items[0]
    for item in items:
        if all(other.parent == item.id for other in items if other is not item):
            return item
    if len(items) != 2 or _PLURAL.search(text):
        return None
    if _TIES.search(text) and (items[0].parent != items[1].parent or _DEPENDS.search(text)):
        return items[0]
    return None


def _is_queried(items: tuple[WorkItem, ...], mention: Mention) -> bool:
    """Tell whether a status was asked for, so that one of those listed is no more its subject than another."""
    is_asked = mention.happening is Happening.LISTED and len(items) > 1
    return is_asked and not _STATUSES.isdisjoint(words(mention.text[:500])) and not _names(mention.text, items[0])


_STATUSES = frozenset(STATUSES)


def _names(text: str, item: WorkItem) -> bool:
    """Tell whether a line names an item by its number or title."""
    said = text[:500]
    if any(int(a or b) == item.id for a, b in _NUMBERS.findall(said)):
        return True
    return any(match([word], item.title) >= _NAMED for word in words(said) if len(word) > 2 and word not in _COMMON)


_COMMON = frozenset(
    "add show list the what are stories tasks epic epics story task under for and with all open".split()
)


def _ago(at: int) -> str:
    return "just now" if at == 0 else "one line before" if at == 1 else f"{at} lines before"

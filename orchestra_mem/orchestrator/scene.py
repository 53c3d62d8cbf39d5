"""The scene of a talk: which items are in focus, which belong together, and how well words name a title."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

from rapidfuzz.distance import OSA

from orchestra_mem.core.text import STOP_WORDS, stem, words
from orchestra_mem.errors import NotFoundError
from orchestra_mem.orchestrator.intents.slots import KIND_WORDS, NUMBER_WORDS
from orchestra_mem.orchestrator.talk import Happening, Mention
from orchestra_mem.work_types import WorkFilter, WorkItem, WorkKind

DECAY = 0.7
"""What a mention weighs against the one after it."""
MOST_BELOW = 100

ABOVE = 0.85
_HIGHER = 0.6
_ONE_OF_MANY = 0.48
_OLDEST = 30
_RUN = 0.98
_PAIR = 0.45
_BY_PARENT = 0.55
_COVERAGE = 0.45
_FILLERS = KIND_WORDS.keys() | set("one ones thing things stuff part item items ticket issue problem work".split())


@dataclass(frozen=True, slots=True)
class Seen:
    """A mention with its items as they are now; `weight` is 1 for the newest, less for older ones."""

    items: tuple[WorkItem, ...]
    happening: Happening
    weight: float


@dataclass(frozen=True, slots=True)
class Group:
    """Items that belong together, in the order in which they were shown or made.

    `at` is how many mentions ago; `loose` is that only their nearness in the talk makes them a group.
    """

    items: tuple[WorkItem, ...]
    weight: float
    at: int
    loose: bool = False


class WorkLookup(Protocol):
    """Finds items; a `WorkTracker` is one. `item` raises `NotFoundError` for an unknown id."""

    def item(self, item_id: int) -> WorkItem:
        """Give the item of an id."""

    def items(self, where: WorkFilter | None = None) -> list[WorkItem]:
        """List items in the order of the backlog."""


class Talk:
    """What was said and done lately, with the items as they are now.

    Args:
        mentions: newest first.
        lookup: the items that there are.
    """

    def __init__(self, mentions: Sequence[Mention], lookup: WorkLookup) -> None:
        self.mentions = mentions
        self.lookup = lookup
        self._known: dict[int, WorkItem | None] = {}
        self._found: dict[WorkFilter, list[WorkItem]] = {}
        self.seen: list[Seen] = []
        for mention in mentions[:_OLDEST]:
            items = tuple(filter(None, map(self.item, dict.fromkeys(mention.items))))
            if items:
                self.seen.append(Seen(items, mention.happening, DECAY ** len(self.seen)))

    def listing(self, items: Sequence[int]) -> Talk:
        """Give the talk as it goes on where items have been listed."""
        return Talk([Mention(items=tuple(items), happening=Happening.LISTED), *self.mentions], self.lookup)

    def item(self, item_id: int) -> WorkItem | None:
        """Give the item of an id; None where there is none."""
        if item_id not in self._known:
            try:
                self._known[item_id] = self.lookup.item(item_id)
            except NotFoundError:
                self._known[item_id] = None
        return self._known[item_id]

    def find(self, where: WorkFilter) -> list[WorkItem]:
        """List items that pass a filter."""
        if where not in self._found:
            self._found[where] = self.lookup.items(where)
        return self._found[where]

    def above(self, item: WorkItem) -> Iterator[WorkItem]:
        """Yield what an item stands under, the nearest first."""
        while item.parent and (parent := self.item(item.parent)):
            yield parent
            item = parent

    def below(self, holders: Sequence[WorkItem], kind: WorkKind | None) -> tuple[WorkItem, ...]:
        """List what stands under items: of a kind at any depth, else right below; as shown last, else by number."""
        found: list[WorkItem] = []
        layer = list(holders)
        while layer:
            layer = [child for each in layer for child in self.find(WorkFilter(parent=each.id, limit=MOST_BELOW))]
            found += [item for item in layer if kind in (None, item.kind)]
            if kind is None:
                break
        return self.as_shown(found)

    def as_shown(self, items: Sequence[WorkItem]) -> tuple[WorkItem, ...]:
        """Order items as the newest mention that has them all did, else by number."""
        ids = {item.id for item in items}
        for seen in self.seen:
            shown = [item for item in seen.items if item.id in ids]
            if ids and len(shown) == len(ids):
                return tuple(shown)
        return tuple(sorted(items, key=lambda item: item.id))

    def of_person(self, name: str) -> tuple[WorkItem, ...]:
        """List somebody's items, the open ones where there are such: "Dana's interview"."""
        there = self.find(WorkFilter(limit=300))
        own = tuple(item for item in there if (item.assignee or "").casefold() == name.casefold())
        return tuple(item for item in own if item.status.is_open) or own

    @cached_property
    def focus(self) -> dict[int, float]:
        """How much each item is in focus, 0 to 1, by id: itself spoken of, or one of several."""
        found: dict[int, float] = {}
        for seen in self.seen:
            head = self.head(seen)
            above = {item.parent for item in seen.items}
            whole = above.pop() if head is None and seen.happening is Happening.CREATED and len(above) == 1 else None
            if whole:  # who has named the parts of something goes on with the whole
                found[whole] = max(found.get(whole, 0.0), ABOVE * seen.weight)
            for item in seen.items:
                is_part = head is not item and (head or whole or seen.happening is Happening.LISTED)
                found[item.id] = max(found.get(item.id, 0.0), seen.weight * (_ONE_OF_MANY if is_part else 1.0))
        return found

    @cached_property
    def spoken_of(self) -> dict[int, float]:
        """How lately each item was spoken of, alone or among others, 0 to 1, by id."""
        found: dict[int, float] = {}
        for seen in self.seen:
            for item in seen.items:
                found.setdefault(item.id, seen.weight)
        return found

    def above_focus(self, *, made_only: bool) -> dict[int, float]:
        """Tell how much what stands above the items in focus is in focus itself, by id.

        With `made_only` above those alone that were created: who adds a story speaks of its epic.
        """
        found: dict[int, float] = {}
        for seen in self.seen:
            if made_only and seen.happening is not Happening.CREATED:
                continue
            for item in seen.items:
                for height, parent in enumerate(self.above(item)):
                    weight = seen.weight * ABOVE * _HIGHER**height
                    if weight > max(found.get(parent.id, 0.0), self.focus.get(parent.id, 0.0)):
                        found[parent.id] = weight
        return found

    @staticmethod
    def head(seen: Seen) -> WorkItem | None:
        """Find what a mention is about: its only item, or what all others stand under."""
        first = seen.items[0]
        if len(seen.items) > 1 and seen.happening is Happening.LISTED:
            return None
        return first if all(item.parent == first.id for item in seen.items[1:]) else None

    def subjects(self) -> list[WorkItem]:
        """List the single items that mentions were about, the newest first, each once."""
        heads = [head for seen in self.seen if (head := self.head(seen))]
        return list({head.id: head for head in heads}.values())

    def dealt_with(self, items: Sequence[WorkItem], ago: int) -> set[int]:
        """List which of some items were dealt with in the last so many mentions; the newest where all were, or none."""
        ids = {item.id for item in items}
        since = [seen for seen in self.seen[:ago] if seen.happening is not Happening.LISTED]
        found = ids & {number for seen in since for item in seen.items for number in (item.id, item.parent)}
        newest = next((item.id for item in self.subjects() if item.id in ids), 0)
        return found if 0 < len(found) < len(ids) else {newest}

    @cached_property
    def groups(self) -> list[Group]:
        """What belongs together, the heaviest first: told together, made one after the other, the last two."""
        found: list[Group] = []
        for at, seen in enumerate(self.seen):
            if len(seen.items) > 1:
                found.append(Group(seen.items, seen.weight, at))
            run = self._run(at)
            if len(run) > 1 and run != seen.items:
                found.append(Group(run, seen.weight * _RUN, at))
        subjects = self.subjects()
        at = next((at for at, seen in enumerate(self.seen) if subjects and subjects[0] in seen.items), 0)
        rows = [tuple(subjects[count - 1 :: -1]) for count in {2, len(subjects)} if 1 < count <= len(subjects)]
        found += [Group(row, self.seen[at].weight * _PAIR, at, loose=True) for row in rows]
        return sorted(found, key=lambda group: (group.loose, -group.weight))

    def made(self) -> tuple[WorkItem, ...]:
        """List what mentions say was made, one by one, the oldest first."""
        heads = (self.head(seen) for seen in reversed(self.seen) if seen.happening is Happening.CREATED)
        return tuple(dict.fromkeys(filter(None, heads)))

    def _run(self, at: int) -> tuple[WorkItem, ...]:
        """List the items of one kind to which the same was done in mentions without a break, the oldest first."""
        first = self.seen[at]
        found: dict[int, WorkItem] = {}
        for seen in self.seen[at:]:
            if seen.happening is not first.happening or seen.happening is Happening.LISTED:
                break
            if seen.items[0].kind is not first.items[0].kind:
                break
            found |= {item.id: item for item in reversed(seen.items) if item.id not in found}
        return tuple(reversed(found.values()))

    def word_fit(self, item: WorkItem, said: Sequence[str], kind: WorkKind | None) -> float:
        """Tell how well words describe an item, by its title or by that and what it stands under, 0 to 1."""
        if not said:
            return 1.0
        if own := title_fit(tuple(said), item.title):
            return own
        for parent in self.above(item):
            if title_fit(tuple(said), parent.title):
                return _BY_PARENT if kind not in (None, parent.kind) else 0.0
            if len(said) > 1 and (both := title_fit(tuple(said), f"{parent.title} {item.title}")):
                own = max(title_fit((word,), item.title) for word in said)
                return _BY_PARENT + (1 - _BY_PARENT) * both * 0.6 if own else 0.0
        return 0.0


@lru_cache(maxsize=4_096)
def title_fit(said: tuple[str, ...], title: str) -> float:
    """Tell how well words name a title: 0 where one of them is nowhere in it, 1 where they name all of it."""
    whole = tuple(words(title))
    present = [word for word in whole if word not in STOP_WORDS] or whole
    told = [word for word in said if word not in STOP_WORDS and (word in whole or word not in _FILLERS)] or list(said)
    if len(said) > 1 and "".join(map(stem, said)) in map(stem, whole):  # "sign up" for "Signup"
        return 0.9
    initials = "".join(each[0] for each in whole)
    short = {word for word in told if 3 <= len(word) <= 6 and word in initials}
    scores = [max([0.9 * (word in short), *(_alike(word, each) for each in whole)]) for word in told]
    if not (present and scores and all(scores)):
        return 0.0
    covered = max([sum(any(_alike(word, each) for word in told) for each in present), *map(len, short)])
    share = min(1.0, covered / len(present))
    return sum(scores) / len(scores) * (1 - _COVERAGE + _COVERAGE * share)


@lru_cache(maxsize=16_384)
def _alike(word: str, other: str) -> float:
    """Tell how well a word stands for another: itself, its stem, its beginning, one letter off."""
    word, other = word.replace("-", ""), other.replace("-", "")
    if word == other or stem(word) == stem(other) or str(NUMBER_WORDS.get(word, "")) == other:
        return 1.0
    if not word.isalpha() or not other.isalpha():
        return 0.0
    short, long = sorted((word, other), key=len)
    if len(short) >= 3 and long.startswith(short):
        return 0.9
    return 0.85 if len(short) >= 4 and OSA.distance(word, other, score_cutoff=1) <= 1 else 0.0

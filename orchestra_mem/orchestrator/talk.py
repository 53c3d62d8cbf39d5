"""What is said and answered: mentions of items, what a command wants of its items, replies and their effects.

Also the scene of a talk: which items are in focus, which belong together, and how well words name a title.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Protocol

from rapidfuzz.distance import OSA

from orchestra_mem.catalog_types import Injection
from orchestra_mem.core.text import STOP_WORDS, stem, words
from orchestra_mem.errors import NotFoundError
from orchestra_mem.orchestrator.intents import Action, Intent
from orchestra_mem.types import Json
from orchestra_mem.work_types import OPEN_STATUSES, PARENT_KINDS, WorkFilter, WorkItem, WorkKind, WorkStatus


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
    """One thing said or done lately; `items` stand in the order in which they were named, created or shown."""

    items: tuple[int, ...]
    happening: Happening


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a command wants of its items.

    Other kinds than `kinds` cannot be meant; empty allows all. Other statuses than `statuses` are unlikely; empty
    makes all alike.
    """

    kinds: tuple[WorkKind, ...] = ()
    statuses: tuple[WorkStatus, ...] = ()


ANYTHING = Need()
_PENDING, _ACTIVE, _BLOCKED = WorkStatus.PENDING, WorkStatus.IN_PROGRESS, WorkStatus.BLOCKED
_DEFERRED, _FAILED = WorkStatus.DEFERRED, WorkStatus.FAILED
_STATUSES: Mapping[Action, tuple[WorkStatus, ...]] = {
    Action.START: (_PENDING, _DEFERRED, _FAILED, _BLOCKED),
    Action.FINISH: (_ACTIVE, _PENDING, _BLOCKED, _FAILED),
    Action.BLOCK: (_PENDING, _ACTIVE, _DEFERRED, _FAILED),
    Action.UNBLOCK: (_BLOCKED,),
    Action.DEFER: (_PENDING, _ACTIVE, _BLOCKED, _FAILED),
    Action.CANCEL: OPEN_STATUSES,
    Action.RESUME: (_DEFERRED, _BLOCKED, _ACTIVE, _PENDING, _FAILED),
}


def need_of(intent: Intent) -> Need:
    """Say what an intent wants of its target; of something new, what that can be put under."""
    if intent.action in (Action.CREATE, Action.ADD):
        return container_need(intent.kind)
    return Need(statuses=_STATUSES.get(intent.action, ()))


def container_need(kind: WorkKind | None) -> Need:
    """Say what something new of a kind can be put under."""
    return Need(kinds=PARENT_KINDS[kind] if kind else ())


class Outcome(StrEnum):
    """What became of a line."""

    DONE = "done"
    ANSWERED = "answered"
    ASKED = "asked"
    REFUSED = "refused"
    NOT_UNDERSTOOD = "not understood"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a line did to items, or which it spoke of, in their order. `text` says it in words."""

    happening: Happening
    items: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer to a line.

    `text` is for people. `operation` is the id of the operation that it was recorded as, 0 where it was not: an empty
    line is none. An outcome of `ASKED` waits for the next line: a choice, or a yes. `options` are then the readings
    that were offered, each a row of intents, the first for a yes. `injection` is what the catalog gave with the line;
    None where it was not asked.
    """

    line: str
    outcome: Outcome
    text: str
    intents: tuple[Intent, ...] = ()
    effects: tuple[Effect, ...] = ()
    operation: int = 0
    options: tuple[tuple[Intent, ...], ...] = ()
    injection: Injection | None = None

    @property
    def context_loaded(self) -> bool:
        """Whether the catalog was asked, and could be."""
        return self.injection is not None and self.injection.loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What came of an intent, in words; `kind` and `data` of its operation where that is not a line like any other."""

    text: str
    effects: tuple[Effect, ...] = ()
    kind: str = ""
    data: Mapping[str, Json] | None = None


def shown(items: Sequence[int]) -> tuple[Effect, ...]:
    """Give the effect of having spoken of items without changing them."""
    happening = Happening.MENTIONED if len(items) == 1 else Happening.LISTED
    return (Effect(happening=happening, items=tuple(items), text=""),) if items else ()


def reply_record(reply: Reply) -> dict[str, Json]:
    """Give a reply as JSON: what was read, what was done to which items, and the answer."""
    effects: list[Json] = [
        {"did": effect.happening.value, "items": list(effect.items), "text": effect.text} for effect in reply.effects
    ]
    return {
        "line": reply.line, "outcome": reply.outcome.value, "answer": reply.text,
        "intents": [*map(intent_record, reply.intents)], "effects": effects, "operation": reply.operation or None,
        "context_loaded": reply.context_loaded,
        "injected": [each.item.id for each in reply.injection.items] if reply.injection else [],
        "injected_tokens": reply.injection.tokens if reply.injection else 0,
    }  # fmt: skip


def intent_record(intent: Intent) -> dict[str, Json]:
    """Give an intent as JSON, without what it does not say."""
    said = ((name, getattr(intent, name)) for name in intent.__slots__)
    return {name: list(value) if name == "titles" else value for name, value in said if value}


ABOVE = 0.85
"""What the parent of an item in focus weighs against it."""
_DECAY = 0.7  # what a mention weighs against the one after it
_OLDEST = 30
_HIGHER, _ONE_OF_MANY, _RUN, _PAIR = 0.6, 0.48, 0.98, 0.45
_BY_PARENT, _COVERAGE = 0.55, 0.45

Items = tuple[WorkItem, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Items that belong together, in the order in which they were shown or made.

    `weight` is 1 where they were spoken of last, less before; `at` is how many mentions ago. `loose` is that only their
    nearness in the talk makes them a group.
    """

    items: Items
    weight: float
    at: int
    happening: Happening = Happening.MENTIONED
    loose: bool = False

    @property
    def is_shown(self) -> bool:
        """Whether they were only listed."""
        return self.happening is Happening.LISTED


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
        self.item = lru_cache(maxsize=None)(self._item)
        self.find = lru_cache(maxsize=None)(lookup.items)
        told = [(tuple(filter(None, map(self.item, dict.fromkeys(each.items)))), each) for each in mentions[:_OLDEST]]
        rows = [(items, each.happening) for items, each in told if items]
        self.seen = [Group(items, _DECAY**at, at, happening) for at, (items, happening) in enumerate(rows)]

    def listing(self, items: Sequence[int]) -> Talk:
        """Give the talk as it goes on where items have been listed."""
        return Talk([Mention(items=tuple(items), happening=Happening.LISTED), *self.mentions], self.lookup)

    def _item(self, item_id: int) -> WorkItem | None:
        try:
            return self.lookup.item(item_id)
        except NotFoundError:
            return None

    def above(self, item: WorkItem) -> Iterator[WorkItem]:
        """Yield what an item stands under, the nearest first."""
        while item.parent and (parent := self.item(item.parent)):
            yield parent
            item = parent

    def below(self, holders: Sequence[WorkItem], kind: WorkKind | None) -> Items:
        """List what stands under items, by number: of a kind at any depth, else right below."""
        found: list[WorkItem] = []
        layer = list(holders)
        while layer:
            layer = [child for each in layer for child in self.find(WorkFilter(parent=each.id, limit=100))]
            found += [item for item in layer if kind in (None, item.kind)]
            if kind is None:
                break
        return tuple(sorted(found, key=lambda item: item.id))

    @cached_property
    def focus(self) -> dict[int, float]:
        """How much each item is in focus, 0 to 1, by id: itself spoken of, or one of several."""
        found: dict[int, float] = {}
        for seen in self.seen:
            above = {item.parent for item in seen.items}
            is_made = len(seen.items) > 1 and seen.happening is Happening.CREATED and len(above) == 1
            whole = above.pop() if is_made else None  # who has named the parts of something goes on with the whole
            is_part = len(seen.items) > 1 and (whole or seen.is_shown)
            rows = [(item.id, seen.weight * (_ONE_OF_MANY if is_part else 1.0)) for item in seen.items]
            for item_id, weight in [(whole, ABOVE * seen.weight), *rows] if whole else rows:
                found[item_id] = max(found.get(item_id, 0.0), weight)
        return found

    @cached_property
    def spoken_of(self) -> dict[int, float]:
        """How lately each item was spoken of, alone or among others, 0 to 1, by id."""
        return {item.id: seen.weight for seen in reversed(self.seen) for item in seen.items}

    def above_focus(self, *, made_only: bool) -> dict[int, float]:
        """Tell how much what stands above the items in focus is in focus itself, by id.

        With `made_only` above those alone that were created: who adds a story speaks of its epic.
        """
        told = [seen for seen in self.seen if not made_only or seen.happening is Happening.CREATED]
        rows = [
            (parent.id, seen.weight * ABOVE * _HIGHER**height)
            for seen in told
            for item in seen.items
            for height, parent in enumerate(self.above(item))
        ]
        return dict(sorted(rows, key=lambda row: row[1]))

    @cached_property
    def subjects(self) -> Items:
        """The single items that mentions were about, the newest first, each once."""
        return tuple(dict.fromkeys(seen.items[0] for seen in self.seen if len(seen.items) == 1))

    def dealt_with(self, items: Items, ago: int) -> set[int]:
        """List which of some items were dealt with in the last so many mentions; the newest where all were, or none."""
        ids = {item.id for item in items}
        since = [seen for seen in self.seen[:ago] if not seen.is_shown]
        found = ids & {number for seen in since for item in seen.items for number in (item.id, item.parent)}
        newest = next((item.id for item in self.subjects if item.id in ids), 0)
        return found if 0 < len(found) < len(ids) else {newest}

    @cached_property
    def groups(self) -> list[Group]:
        """What belongs together: told together, made one after the other; loose, the last two, all."""
        found = [seen for seen in self.seen if len(seen.items) > 1]
        runs = ((self._run(seen.at), seen) for seen in self.seen)
        found += [Group(run, seen.weight * _RUN, seen.at) for run, seen in runs if len(run) > 1 and run != seen.items]
        at = next((seen.at for seen in self.seen if self.subjects[:1] == seen.items), 0)
        loose = {self.subjects[1::-1], self.subjects[::-1]}
        weight = _PAIR * _DECAY**at
        rows = [Group(row, weight, at, loose=True) for row in loose if len(row) > 1]
        return sorted(found, key=lambda group: -group.weight) + rows

    @cached_property
    def made(self) -> Items:
        """The items that were made one by one, the oldest first."""
        made = [seen.items[0] for seen in self.seen if seen.happening is Happening.CREATED and len(seen.items) == 1]
        return tuple(dict.fromkeys(made[::-1]))

    def _run(self, at: int) -> Items:
        """List the items of one kind to which the same was done in mentions without a break, the oldest first."""
        first = self.seen[at]
        like = (first.items[0].kind, first.happening)
        rows = list(takewhile(lambda seen: (seen.items[0].kind, seen.happening) == like, self.seen[at:]))
        return () if first.is_shown else tuple(dict.fromkeys(item for seen in rows[::-1] for item in seen.items))

    def word_fit(self, item: WorkItem, said: tuple[str, ...], kind: WorkKind | None) -> float:
        """Tell how well words describe an item, by its title or by that and what it stands under, 0 to 1."""
        if not said or (own := title_fit(said, item.title)):
            return own if said else 1.0
        for parent in self.above(item):
            if title_fit(said, parent.title):
                return _BY_PARENT if kind not in (None, parent.kind) else 0.0
            if title_fit(said, f"{parent.title} {item.title}"):
                return _BY_PARENT + 0.3 * max(title_fit((word,), item.title) for word in said)
        return 0.0


@lru_cache(maxsize=4_096)
def title_fit(said: tuple[str, ...], title: str) -> float:
    """Tell how well words name a title: 0 where one of them is nowhere in it, 1 where they name all of it."""
    whole = tuple(words(title))
    present = [word for word in whole if word not in STOP_WORDS] or whole
    told = [word for word in said if word not in STOP_WORDS] or said
    if len(said) > 1 and "".join(map(stem, said)) in map(stem, whole):  # "sign up" for "Signup"
        return 0.9
    initials = "".join(each[0] for each in whole)
    short = {word for word in told if 3 <= len(word) <= 6 and word in initials}
    scores = [max([0.9 * (word in short), *(_alike(word, each) for each in whole)]) for word in told]
    if not (present and scores and all(scores)):
        return 0.0
    covered = max([sum(any(_alike(word, each) for word in told) for each in present), *map(len, short)])
    return sum(scores) / len(scores) * (1 - _COVERAGE + _COVERAGE * min(1.0, covered / len(present)))


@lru_cache(maxsize=16_384)
def _alike(word: str, other: str) -> float:
    """Tell how well a word stands for another: itself, its stem, its beginning, one letter off."""
    word, other = word.replace("-", ""), other.replace("-", "")
    if word == other or stem(word) == stem(other):
        return 1.0
    short, long = sorted((word, other), key=len)
    if not (short + long).isalpha() or len(short) < 3:
        return 0.0
    return 0.9 if long.startswith(short) else 0.85 * (len(short) > 3 and OSA.distance(word, other) <= 1)

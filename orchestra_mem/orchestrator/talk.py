"""The state of a conversation: mentions of items, items in focus, groups of items, and how well words match a title.

Also replies and their effects, and the kinds and statuses that each command expects of its items.
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
    """What happened to the items of a mention."""

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
class Effect:
    """A change of items by a line, or a mention of items, with their ids in the order in which they were named or made.

    `text` describes the change or note; "" without either.
    """

    happening: Happening
    items: tuple[int, ...]
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The kinds and statuses that a command expects of its items. An empty field expects nothing.

    `kinds` is a requirement: items of other kinds are excluded. `statuses` is a preference: items with other statuses
    score less.
    """

    kinds: tuple[WorkKind, ...] = ()
    statuses: tuple[WorkStatus, ...] = ()


ANYTHING = Need()
# Commands that expect open items, except with one status.
_OPEN_BUT = {
    Action.START: WorkStatus.IN_PROGRESS, Action.FINISH: WorkStatus.DEFERRED, Action.BLOCK: WorkStatus.BLOCKED,
    Action.DEFER: WorkStatus.DEFERRED, Action.CANCEL: None, Action.RESUME: None,
}  # fmt: skip
_STATUSES = {Action.UNBLOCK: (WorkStatus.BLOCKED,), Action.STOP: (WorkStatus.IN_PROGRESS,)} | {
    action: tuple(each for each in OPEN_STATUSES if each is not status) for action, status in _OPEN_BUT.items()
}


def expected_target(intent: Intent) -> Need:
    """Return the kinds and statuses expected of an intent's target, or of the parent if the intent creates items."""
    if intent.action in (Action.CREATE, Action.ADD):
        return expected_parent(intent.kind)
    return Need(statuses=_STATUSES.get(intent.action, ()))


def expected_parent(kind: WorkKind | None) -> Need:
    """Return the kinds that the parent of a new item of `kind` may have; any kind if `kind` is None."""
    return Need(kinds=PARENT_KINDS[kind] if kind else ())


class Outcome(StrEnum):
    """How a line was handled."""

    DONE = "done"
    ANSWERED = "answered"
    ASKED = "asked"
    REFUSED = "refused"
    NOT_UNDERSTOOD = "not understood"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply to a line.

    `text` is for people. `operation` is the id of the recorded operation, 0 if the line was not recorded, because it
    was empty or ended the conversation. After the outcome `ASKED` the next line may choose or confirm. `options` holds
    the readings that were offered, each a sequence of intents; a yes chooses the first. `answers` is True if the line
    answered the question before it. `injection` holds the catalog items added to the line, None if the catalog was not
    queried.
    """

    line: str
    outcome: Outcome
    text: str
    intents: tuple[Intent, ...] = ()
    effects: tuple[Effect, ...] = ()
    operation: int = 0
    options: tuple[tuple[Intent, ...], ...] = ()
    answers: bool = False
    injection: Injection | None = None

    @property
    def context_loaded(self) -> bool:
        """Whether the catalog was queried, without an error."""
        return self.injection is not None and self.injection.loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentResult:
    """The result of an intent. If set, `kind` and `data` replace the type and data of its recorded operation."""

    text: str
    effects: tuple[Effect, ...] = ()
    kind: str = ""
    data: Mapping[str, Json] | None = None


def shown(items: Sequence[int]) -> tuple[Effect, ...]:
    """Return the effect of mentioning `items` without changing them, as a tuple; () if `items` is empty."""
    happening = Happening.MENTIONED if len(items) == 1 else Happening.LISTED
    return (Effect(happening=happening, items=tuple(items)),) if items else ()


def reply_record(reply: Reply) -> dict[str, Json]:
    """Convert a reply to JSON: its intents, without empty fields, its effects and its answer."""
    fields = [[(name, getattr(intent, name)) for name in intent.__slots__] for intent in reply.intents]
    intents: list[Json] = [
        {name: list(value) if name == "titles" else value for name, value in said if value} for said in fields
    ]
    effects: list[Json] = [
        {"did": effect.happening.value, "items": list(effect.items), "text": effect.text} for effect in reply.effects
    ]
    return {
        "line": reply.line, "outcome": reply.outcome.value, "answer": reply.text,
        "intents": intents, "effects": effects, "operation": reply.operation or None,
        "context_loaded": reply.context_loaded,
        "injected": [each.item.id for each in reply.injection.items] if reply.injection else [],
        "injected_tokens": reply.injection.tokens if reply.injection else 0,
    }  # fmt: skip


_ABOVE = 0.85  # weight of the parent of items created together, relative to the mention
_DECAY = 0.7  # weight of a mention relative to the next newer mention
_OLDEST = 30
_ONE_OF_MANY, _RUN, _PAIR = 0.48, 0.98, 0.45
_BY_PARENT, _COVERAGE = 0.55, 0.45

Items = tuple[WorkItem, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Items that belong together, in the order in which they were shown or created.

    `weight` is 1 for the newest mention and decays with age. `at` is the number of newer mentions. The items of a
    `loose` group were never mentioned together, only one after the other.
    """

    items: Items
    weight: float
    at: int
    happening: Happening = Happening.MENTIONED
    loose: bool = False

    @property
    def is_shown(self) -> bool:
        """Whether the items were only listed, not changed."""
        return self.happening is Happening.LISTED


class WorkLookup(Protocol):
    """Finds items; every `WorkTracker` qualifies."""

    def item(self, item_id: int) -> WorkItem:
        """Return an item by its id; raise `NotFoundError` for an unknown id."""

    def items(self, where: WorkFilter | None = None) -> list[WorkItem]:
        """Return the matching items in backlog order."""


class Talk:
    """The recent conversation. Items are cached when first looked up: create a new `Talk` after changing items.

    Args:
        mentions: Mentions of items, newest first.
        lookup: Finds items.
        goes_on: Whether the newest mention is so recent that the next line may go on with it without naming it.
    """

    def __init__(self, mentions: Sequence[Effect], lookup: WorkLookup, *, goes_on: bool = True) -> None:
        self.mentions, self.goes_on = mentions, goes_on
        self.lookup = lookup
        self.item = lru_cache(maxsize=None)(self._item)
        self.find = lru_cache(maxsize=None)(lookup.items)
        known = [(tuple(filter(None, map(self.item, dict.fromkeys(each.items)))), each) for each in mentions[:_OLDEST]]
        rows = [(items, each.happening) for items, each in known if items]
        self.seen = [Group(items, _DECAY**at, at, happening) for at, (items, happening) in enumerate(rows)]

    def listing(self, items: Sequence[int]) -> Talk:
        """Return the conversation as it is after listing items."""
        return Talk([Effect(items=tuple(items), happening=Happening.LISTED), *self.mentions], self.lookup)

    def _item(self, item_id: int) -> WorkItem | None:
        try:
            return self.lookup.item(item_id)
        except NotFoundError:
            return None

    def above(self, item: WorkItem) -> Iterator[WorkItem]:
        """Yield the ancestors of an item, nearest first."""
        while item.parent and (parent := self.item(item.parent)):
            yield parent
            item = parent

    def below(self, holders: Sequence[WorkItem], kind: WorkKind | None) -> Items:
        """Return all descendants of a kind, or only the children if `kind` is None, sorted by id."""
        found: list[WorkItem] = []
        layer = list(holders)
        while layer:
            layer = [child for each in layer for child in self.find(WorkFilter(parent=each.id))]
            found += [item for item in layer if kind in (None, item.kind)]
            if kind is None:
                break
        return tuple(sorted(found, key=lambda item: item.id))

    @cached_property
    def focus(self) -> dict[int, float]:
        """Focus of each mentioned item by id, 0 to 1; an item in a list has less focus than an item mentioned alone."""
        found: dict[int, float] = {}
        for seen in self.seen:
            above = {item.parent for item in seen.items}
            is_made = len(seen.items) > 1 and seen.happening is Happening.CREATED and len(above) == 1
            whole = above.pop() if is_made else None  # creating the parts of an item puts the item in focus
            is_part = len(seen.items) > 1 and (whole or seen.is_shown)
            rows = [(item.id, seen.weight * (_ONE_OF_MANY if is_part else 1.0)) for item in seen.items]
            for item_id, weight in [(whole, _ABOVE * seen.weight), *rows] if whole else rows:
                found[item_id] = max(found.get(item_id, 0.0), weight)
        return found

    @cached_property
    def spoken_of(self) -> dict[int, float]:
        """Recency of each item's last mention, alone or with others, by id; 1 is the newest mention."""
        return {item.id: seen.weight for seen in reversed(self.seen) for item in seen.items}

    @cached_property
    def subjects(self) -> Items:
        """The items mentioned alone, most recent first, each once."""
        return tuple(dict.fromkeys(seen.items[0] for seen in self.seen if len(seen.items) == 1))

    def dealt_with(self, items: Items, ago: int) -> set[int]:
        """Return ids of items in the last `ago` mentions except lists; if that is all or none, the newest subject's."""
        ids = {item.id for item in items}
        since = [seen for seen in self.seen[:ago] if not seen.is_shown]
        found = ids & {number for seen in since for item in seen.items for number in (item.id, item.parent)}
        newest = next((item.id for item in self.subjects if item.id in ids), 0)
        return found if 0 < len(found) < len(ids) else {newest}

    @cached_property
    def groups(self) -> list[Group]:
        """Items mentioned together or handled alike in succession, then loose groups: the last two and all subjects."""
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
        """The items that were created one at a time, oldest first."""
        made = [seen.items[0] for seen in self.seen if seen.happening is Happening.CREATED and len(seen.items) == 1]
        return tuple(dict.fromkeys(made[::-1]))

    def _run(self, at: int) -> Items:
        """Return the items of mention `at` and of the run of older mentions like it, oldest first; () for a list."""
        first = self.seen[at]
        like = (first.items[0].kind, first.happening)
        rows = list(takewhile(lambda seen: (seen.items[0].kind, seen.happening) == like, self.seen[at:]))
        return () if first.is_shown else tuple(dict.fromkeys(item for seen in rows[::-1] for item in seen.items))

    def word_fit(self, item: WorkItem, said: tuple[str, ...], kind: WorkKind | None) -> float:
        """Score how well words match an item's title, or the titles of the item and an ancestor together, 0 to 1."""
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
    """Score how well words match a title: 0 if the title lacks a word, 1 if the words cover the entire title."""
    whole = tuple(words(title))
    present = [word for word in whole if word not in STOP_WORDS] or whole
    telling = [word for word in said if word not in STOP_WORDS] or said
    if len(said) > 1 and "".join(map(stem, said)) in map(stem, whole):  # "sign up" for "Signup"
        return 0.9
    initials = "".join(each[0] for each in whole)
    short = {word for word in telling if 3 <= len(word) <= 6 and word in initials}
    scores = [max([0.9 * (word in short), *(_alike(word, each) for each in whole)]) for word in telling]
    if not (present and scores and all(scores)):
        return 0.0
    covered = max([sum(any(_alike(word, each) for word in telling) for each in present), *map(len, short)])
    return sum(scores) / len(scores) * (1 - _COVERAGE + _COVERAGE * min(1.0, covered / len(present)))


@lru_cache(maxsize=16_384)
def _alike(word: str, other: str) -> float:
    """Score the similarity of two words: 1 for the same stem, less for a prefix or a difference of one edit, else 0."""
    word, other = word.replace("-", ""), other.replace("-", "")
    if word == other or stem(word) == stem(other):
        return 1.0
    short, long = sorted((word, other), key=len)
    if not (short + long).isalpha() or len(short) < 3:
        return 0.0
    return 0.9 if long.startswith(short) else 0.85 * (len(short) > 3 and OSA.distance(word, other) <= 1)

"""From the words for something to the items that are meant, or to a question."""

from __future__ import annotations

import getpass
import re
from collections.abc import Iterator, Sequence

from orchestra_mem.core.language.grouping import means_one, owned
from orchestra_mem.core.language.mentions import ANYTHING, Happening, Mention, Need, Talk, WorkLookup
from orchestra_mem.core.language.naming import namings
from orchestra_mem.core.language.references.resolving import resolve_text
from orchestra_mem.errors import NotFoundError
from orchestra_mem.work_types import PARENT_KINDS, WorkFilter, WorkItem, WorkKind

AT_HAND = "it"
"""What a command without a target is about."""
_ASKED_FOR = 5
_NUMBER = re.compile(r"#?(\d{1,18})")
_LOOKED_AT = 300
_OWNS = re.compile(r"['\u2019]|\b(?:has|have|had|owns?|got)\b|^(?:the one|everything|what) \S+$", re.IGNORECASE)
_ALL = frozenset({"both", "all", "all of them", "them", "both of them"})


class Unclear(Exception):
    """The orchestrator has to ask back: `phrase` may mean any of `candidates`, or nothing that there is."""

    def __init__(self, question: str, *, phrase: str = "", candidates: Sequence[int] = ()) -> None:
        super().__init__(question)
        self.question = question
        self.phrase = phrase
        self.candidates = tuple(candidates)


class Resolver:
    """Finds what phrases mean in one talk.

    Args:
        talk: what they are resolved against.
        chosen: by phrase the items that the user has named when asked back.
    """

    def __init__(self, talk: Talk, chosen: dict[str, tuple[int, ...]] | None = None) -> None:
        self.talk = talk
        self._chosen = chosen or {}

    def many(self, phrase: str, need: Need = ANYTHING) -> list[WorkItem]:
        """The items that a phrase means; without words, what is at hand.

        Raises:
            Unclear: it may mean several things, or nothing.
        """
        phrase = phrase or AT_HAND
        if phrase in self._chosen:
            return [self.talk.lookup.item(each) for each in self._chosen[phrase]]
        if own := self._owned(phrase):
            return own
        found = resolve_text(phrase, need, self.talk)
        if found.ask:
            close = dict.fromkeys(item.id for candidate in found.candidates[:_ASKED_FOR] for item in candidate.items)
            raise Unclear(found.ask, phrase=phrase, candidates=tuple(close))
        return list(found.items)

    def _owned(self, phrase: str) -> list[WorkItem]:
        """The items that a phrase means as somebody's; none where it says no such thing.

        Raises:
            Unclear: one is meant, and there are several.
        """
        own = owned(phrase, self.talk.lookup.items(WorkFilter(limit=_LOOKED_AT))) if _OWNS.search(phrase) else None
        if own and len(own) > 1 and means_one(phrase):
            names = ", ".join(item.name for item in own[:_ASKED_FOR])
            raise Unclear(
                f"Which one do you mean: {names}?", phrase=phrase, candidates=[item.id for item in own[:_ASKED_FOR]]
            )
        return list(own or ())

    def named(self, phrase: str) -> tuple[int, ...]:
        """The items that a phrase means, none where that is unclear."""
        try:
            return tuple(item.id for item in self.many(phrase))
        except (Unclear, NotFoundError):
            return ()

    def container(self, kind: WorkKind) -> WorkItem | None:
        """What a new item of a kind goes under where nobody says: what was made just before, or that one's own parent.

        Stories that are named right after their epic are the epic's; an epic stands alone.
        """
        newest = next(iter(self.talk.mentions), None)
        if newest is None or kind in (WorkKind.MILESTONE, WorkKind.EPIC):
            return None
        items = [self.talk.lookup.item(each) for each in newest.items]
        if len(items) == 1 and items[0].kind in PARENT_KINDS[kind] and items[0].status.is_open:
            return items[0]
        if kind is WorkKind.STORY or (
            newest.happening is Happening.CREATED and all(each.kind is kind for each in items)
        ):
            fit = (
                next((each for each in self._above(item) if each.kind in PARENT_KINDS[kind]), None) for item in items
            )
            above = {each.id: each for each in fit if each}
            return next(iter(above.values())) if len(above) == 1 else None
        return None

    def _above(self, item: WorkItem) -> Iterator[WorkItem]:
        """What an item stands under, as far as it is open, the nearest first."""
        while item.parent:
            item = self.talk.lookup.item(item.parent)
            if item.status.is_open:
                yield item

    def kind_at_hand(self) -> WorkKind | None:
        """The kind of what was made just before, where all of it is of one: what "another one" is."""
        newest = next(iter(self.talk.mentions), None)
        made = newest.items if newest and newest.happening is Happening.CREATED else ()
        kinds = {self.talk.lookup.item(each).kind for each in made}
        return kinds.pop() if len(kinds) == 1 else None

    def one(self, phrase: str, need: Need = ANYTHING) -> WorkItem:
        """The one item that a phrase means.

        Raises:
            Unclear: it means several, may mean several things, or nothing.
        """
        items = self.many(phrase, need)
        if len(items) > 1:
            names = ", ".join(item.name for item in items)
            raise Unclear(
                f"Which one do you mean: {names}?", phrase=phrase or AT_HAND, candidates=[item.id for item in items]
            )
        return items[0]


def named_alone(line: str, lookup: WorkLookup) -> tuple[int, ...]:
    """The one item that a line plainly names by its title; none where it names several."""
    named = namings(line, lookup, least=1)
    return named[0].items if len(named) == 1 and len(named[0].items) == 1 else ()


def chosen_from(line: str, candidates: Sequence[int], talk: Talk) -> tuple[int, ...]:
    """The candidates that an answer names, by number or by a phrase; empty where it names none of them."""
    said = line.strip().rstrip(".!").lower()
    if said in _ALL:
        return tuple(candidates)
    numbers = tuple(int(number) for number in _NUMBER.findall(said))
    if numbers:
        return numbers if set(numbers) <= set(candidates) else ()
    asked = Mention(items=tuple(candidates), happening=Happening.LISTED)
    found = resolve_text(said, Need(many=True), Talk(mentions=[asked, *talk.mentions], lookup=talk.lookup))
    named = tuple(item.id for item in found.items)
    return named if set(named) <= set(candidates) else ()


def speaker() -> str:
    """The name of whoever speaks: the process's user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a process without a user's name
        return "me"

"""From the words for something to the items that are meant, or to a question."""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Mapping, Sequence

from orchestra_mem.errors import NotFoundError
from orchestra_mem.orchestrator.references import Resolution, resolve_text
from orchestra_mem.orchestrator.talk import ANYTHING, Happening, Mention, Need, Talk
from orchestra_mem.work_types import PARENT_KINDS, WorkItem, WorkKind

AT_HAND = "it"
"""What a command without a target is about."""
MOST_OFFERED = 5


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

    def __init__(self, talk: Talk, chosen: Mapping[str, Sequence[int]] | None = None) -> None:
        self.talk = talk
        self._chosen = chosen or {}

    def many(self, phrase: str, need: Need = ANYTHING) -> list[WorkItem]:
        """Find the items that a phrase means; without words, what is at hand.

        Raises:
            Unclear: it may mean several things, or nothing.
        """
        phrase = phrase or AT_HAND
        if phrase in self._chosen:
            return [self.talk.lookup.item(each) for each in self._chosen[phrase]]
        return _settled(resolve_text(phrase, need, self.talk), phrase)

    def one(self, phrase: str, need: Need = ANYTHING) -> WorkItem:
        """Find the one item that a phrase means.

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

    def named(self, phrase: str) -> tuple[int, ...]:
        """List the items that a phrase means, none where that is unclear."""
        try:
            return tuple(item.id for item in self.many(phrase))
        except (Unclear, NotFoundError):
            return ()

    def container(self, kind: WorkKind) -> WorkItem | None:
        """Find what a new item of a kind goes under where nobody says: what was made just before, or its parent.

        Stories that are named right after their epic are the epic's; an epic stands alone.
        """
        newest = next(iter(self.talk.mentions), None)
        if newest is None or kind in (WorkKind.MILESTONE, WorkKind.EPIC):
            return None
        items = [self.talk.lookup.item(each) for each in newest.items]
        if len(items) == 1 and items[0].kind in PARENT_KINDS[kind] and items[0].status.is_open:
            return items[0]
        made_alike = newest.happening is Happening.CREATED and all(each.kind is kind for each in items)
        if kind is not WorkKind.STORY and not made_alike:
            return None
        fit = (next((each for each in self._above(item) if each.kind in PARENT_KINDS[kind]), None) for item in items)
        above = {each.id: each for each in fit if each}
        return next(iter(above.values())) if len(above) == 1 else None

    def kind_at_hand(self) -> WorkKind | None:
        """Tell the kind of what was made just before, where all of it is of one: what "another one" is."""
        newest = next(iter(self.talk.mentions), None)
        made = newest.items if newest and newest.happening is Happening.CREATED else ()
        kinds = {self.talk.lookup.item(each).kind for each in made}
        return kinds.pop() if len(kinds) == 1 else None

    def _above(self, item: WorkItem) -> Iterator[WorkItem]:
        """Yield the open items that an item stands under, the nearest first."""
        while item.parent:
            item = self.talk.lookup.item(item.parent)
            if item.status.is_open:
                yield item


def _settled(found: Resolution, phrase: str) -> list[WorkItem]:
    if found.ask:
        raise Unclear(found.ask, phrase=phrase, candidates=[item.id for item in found.candidates[:MOST_OFFERED]])
    return list(found.items)


def chosen_from(line: str, candidates: Sequence[int], talk: Talk) -> tuple[int, ...]:
    """Find the candidates that an answer names, by number or by a phrase; empty where it names none of them."""
    said = line.strip().rstrip(".!").lower()
    if said in ("all", "all of them", "both", "both of them", "them"):
        return tuple(candidates)
    asked = Mention(items=tuple(candidates), happening=Happening.LISTED)
    found = resolve_text(said, ANYTHING, Talk(mentions=[asked, *talk.mentions], lookup=talk.lookup))
    named = tuple(item.id for item in found.items)
    return named if set(named) <= set(candidates) else ()


def speaker() -> str:
    """Give the name of whoever speaks: the process's user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a process without a user's name
        return "me"

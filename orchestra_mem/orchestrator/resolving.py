"""From the words for something to the items that are meant, or to a question."""

from __future__ import annotations

import getpass
import re
from collections.abc import Sequence

from orchestra_mem.core.language.mentions import ANYTHING, Happening, Mention, Need, Talk
from orchestra_mem.core.language.references.resolving import resolve_text
from orchestra_mem.work_types import WorkItem

AT_HAND = "it"
"""What a command without a target is about."""
_ASKED_FOR = 5
_NUMBER = re.compile(r"#?(\d{1,18})")
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
        found = resolve_text(phrase, need, self.talk)
        if found.ask:
            close = dict.fromkeys(item.id for candidate in found.candidates[:_ASKED_FOR] for item in candidate.items)
            raise Unclear(found.ask, phrase=phrase, candidates=tuple(close))
        return list(found.items)

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

"""From the words for something to the items that are meant, or to a question."""

from __future__ import annotations

import getpass
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestra_mem.core.text import words
from orchestra_mem.errors import NotFoundError
from orchestra_mem.orchestrator.intents import Action, Intent
from orchestra_mem.orchestrator.intents.reading import read_line
from orchestra_mem.orchestrator.phrases import Phrase, PhraseReader
from orchestra_mem.orchestrator.references import NOTHING_NAMED, Choice, Resolution, resolve_all
from orchestra_mem.orchestrator.scene import Talk, title_fit
from orchestra_mem.orchestrator.talk import ANYTHING, Happening, Need, need_of
from orchestra_mem.work_types import PARENT_KINDS, WorkItem, WorkKind

_AT_HAND = "it"  # what a command without a target is about
_MOST_OFFERED = 5
_SURELY_NAMED = 0.6
_UNDER = re.compile(r"(?i)\b(?:to|under|in|into|of|on|for|below) $")
_JOINS = re.compile(r"(?i),? (?:and|&) |, ?")


def resolve_text(text: str, talk: Talk, need: Need = ANYTHING) -> Resolution:
    """Resolve what a command was told as its target: "the second one", "login and signup", "#12", or nothing at all."""
    return resolve_all(_phrases_of(text or _AT_HAND, talk), need, talk)


def _phrases_of(text: str, talk: Talk) -> list[Phrase]:
    """Read a target as phrases that "and" or a comma joins; a title that has such words is one."""
    whole = tuple(words(text))
    title = Phrase(text=text, start=0, end=len(text), words=whole)
    if any(title_fit(whole, item.title) == 1.0 for item in Choice(title, ANYTHING, talk).named_items()):
        return [title]
    found = PhraseReader(text, _namer(talk)).phrases()
    if whole and all(phrase.bare and not phrase.ids for phrase in found) and len(found) != 1:
        return [title]
    return [replace(phrase, bare=False) for phrase in found]


def _namer(talk: Talk) -> Callable[[tuple[str, ...], bool], bool]:
    """Tell of words whether they name an item."""

    def names(said: tuple[str, ...], wide: bool) -> bool:
        phrase = Phrase(text=" ".join(said), start=0, end=0, words=said, bare=not wide)
        pool = Choice(phrase, ANYTHING, talk).named_items()
        return any(talk.word_fit(item, said, None) >= _SURELY_NAMED for item in pool)

    return names


def resolve_line(line: str, talk: Talk) -> Resolution:
    """Say what a whole line acts on or asks about; of a line that makes something new, what that is put under."""
    read = read_line(line).intents
    intent = read[0] if read else Intent(action=Action.STATUS)
    is_new = intent.action in (Action.CREATE, Action.ADD) and not intent.target
    phrases = PhraseReader(line, _namer(talk)).phrases()
    under = [phrase for phrase in phrases if is_new and _UNDER.search(line[: phrase.start])]
    meant = under or [phrase for phrase in phrases if not phrase.bare or phrase.ids] or phrases
    if not meant:
        return NOTHING_NAMED
    first = phrases.index(meant[0])
    while first and line[phrases[first - 1].end : phrases[first].start].strip(" ,") == "and":
        first -= 1  # "login and its tasks"
    run = [phrases[first]]
    for phrase in phrases[first + 1 :]:
        between = line[run[-1].end : phrase.start]
        is_pronoun = not (phrase.kind or phrase.ids or phrase.words) and phrase.position is None
        alike = "and" in between or bool(phrase.ids and run[-1].ids) or phrase.bare is run[-1].bare
        if is_pronoun or not alike or not _JOINS.fullmatch(between):
            break
        run.append(phrase)
    found = resolve_all(run, need_of(intent), talk)
    says_which = run[0].kind or run[0].select != "same"
    lost = is_new and not intent.other and not found.items and says_which  # perhaps nothing new is meant
    return resolve_all(run, ANYTHING, talk) if lost else found


class Unclear(Exception):
    """The orchestrator has to ask back: `phrase` may mean any of `candidates`, or nothing that there is."""

    def __init__(self, question: str, phrase: str = "", candidates: Sequence[WorkItem] = ()) -> None:
        super().__init__(question)
        self.question = question
        self.phrase = phrase
        self.candidates = tuple(item.id for item in candidates)


@dataclass(frozen=True, slots=True)
class Resolver:
    """Finds what phrases mean in one talk; `chosen` are by phrase the items that the user named when asked back."""

    talk: Talk
    chosen: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def many(self, phrase: str, need: Need = ANYTHING) -> list[WorkItem]:
        """Find the items that a phrase means; without words, what is at hand.

        Raises:
            Unclear: it may mean several things, or nothing.
        """
        if phrase in self.chosen:
            return [self.talk.lookup.item(each) for each in self.chosen[phrase]]
        found = resolve_text(phrase, self.talk, need)
        if found.ask:
            raise Unclear(found.ask, phrase, found.candidates[:_MOST_OFFERED])
        return list(found.items)

    def one(self, phrase: str, need: Need = ANYTHING) -> WorkItem:
        """Find the one item that a phrase means.

        Raises:
            Unclear: it means several, may mean several things, or nothing.
        """
        items = self.many(phrase, need)
        if len(items) > 1:
            names = ", ".join(item.name for item in items)
            raise Unclear(f"Which one do you mean: {names}?", phrase, items)
        return items[0]

    def named(self, phrase: str) -> tuple[int, ...]:
        """List the items that a phrase means, none where that is unclear."""
        try:
            return tuple(item.id for item in self.many(phrase))
        except (Unclear, NotFoundError):
            return ()

    def container(self, kind: WorkKind) -> WorkItem | None:
        """Find what a new item of a kind goes under where nobody says: what was spoken of just before, or its parent.

        Stories that are named right after their epic are the epic's; an epic stands alone.
        """
        newest = self.talk.mentions[0] if self.talk.mentions else None
        if newest is None or kind in (WorkKind.MILESTONE, WorkKind.EPIC):
            return None
        items = [self.talk.lookup.item(each) for each in newest.items]
        rows = [[*([item] if len(items) == 1 else []), *self.talk.above(item)] for item in items]
        fits = ([each for each in row if each.status.is_open and each.kind in PARENT_KINDS[kind]] for row in rows)
        nearest = [next(iter(row), None) for row in fits]
        made = kind is WorkKind.STORY or newest.happening is Happening.CREATED
        return nearest[0] if len(set(nearest)) == 1 and (nearest == items or made) else None


def chosen_from(line: str, candidates: Sequence[int], talk: Talk) -> tuple[int, ...]:
    """Find the candidates that an answer names, by number or by a phrase; empty where it names none of them."""
    said = line.strip().rstrip(".!").lower()
    found = resolve_text(said, talk.listing(candidates))
    named = tuple(item.id for item in found.items)
    return named if set(named) <= set(candidates) else ()


def speaker() -> str:
    """Give the name of whoever speaks: the process's user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a process without a user's name
        return "me"

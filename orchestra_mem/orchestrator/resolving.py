"""Resolve the phrases of commands to items or to a question, suggest commands, and parse the answers to questions.

Yes and no are matched against fixed word lists, not classified: a yes changes data, and a no must be respected.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice, product

from orchestra_mem.core.facts.candidates import HOLDING
from orchestra_mem.core.facts.classifier import OPEN, signs_of
from orchestra_mem.core.facts.extraction import find_in_text
from orchestra_mem.core.facts.safety import safety_kind
from orchestra_mem.core.periods import unread_period
from orchestra_mem.core.text import word_count, words
from orchestra_mem.errors import NotFoundError
from orchestra_mem.orchestrator.intents import ASKS, DESTRUCTIVE, NEW, TELLING, Action, Intent, Parsed
from orchestra_mem.orchestrator.intents.grammar import ITEM, as_command
from orchestra_mem.orchestrator.intents.languages import is_foreign, parse_foreign
from orchestra_mem.orchestrator.intents.reading import read_line
from orchestra_mem.orchestrator.phrases import Phrase, PhraseReader
from orchestra_mem.orchestrator.references import NOTHING_NAMED, Choice, Resolution, resolve_all
from orchestra_mem.orchestrator.talk import ANYTHING, Happening, Need, Talk, expected_parent, expected_target, title_fit
from orchestra_mem.types import MustKeepKind
from orchestra_mem.work_types import PARENT_KINDS, WorkFilter, WorkItem, WorkKind, WorkTracker

_AT_HAND = "it"  # the target if a command names none
_MOST_OFFERED = 5
MOST_SIFTED = 500
"""Number of items of the backlog, from the first on, that are filtered in memory."""
_SURELY_NAMED = 0.6
_QUOTES = ('"', "\u201d")  # behind one of these, a title has ended
_ASSIGNS = re.compile(r"(?i)\s*assign\b(?!.*\bto\b)")
_UNDER = re.compile(r"(?i)\b(?:to|under|in|into|of|on|for|below) $")
_JOINS = re.compile(r"(?i),? (?:and|&) |, ?")


def resolve_text(text: str, talk: Talk, need: Need = ANYTHING) -> Resolution:
    """Resolve the target of a command: "the second one", "login and signup", "#12"; an empty text means "it"."""
    return resolve_all(_phrases_of(text or _AT_HAND, talk), need, talk)


def _phrases_of(text: str, talk: Talk) -> list[Phrase]:
    """Split a target into phrases at "and" and commas; a target that equals a title remains one phrase."""
    whole = tuple(words(text))
    title = Phrase(text=text, start=0, end=len(text), words=whole)
    if any(title_fit(whole, item.title) == 1.0 for item in Choice(title, ANYTHING, talk).named_items()):
        return [title]
    found = PhraseReader(text, _namer(talk)).phrases()
    if whole and all(phrase.bare and not phrase.ids for phrase in found) and len(found) != 1:
        return [title]
    return [replace(phrase, bare=False) for phrase in found]


def _namer(talk: Talk) -> Callable[[tuple[str, ...], bool], bool]:
    def names(said: tuple[str, ...], wide: bool) -> bool:
        phrase = Phrase(text=" ".join(said), start=0, end=0, words=said, bare=not wide)
        pool = Choice(phrase, ANYTHING, talk).named_items()
        return any(talk.word_fit(item, said, None) >= _SURELY_NAMED for item in pool)

    return names


def resolve_line(line: str, talk: Talk) -> Resolution:
    """Resolve the target that a line names; for a line that creates items, the parent of the new items."""
    read = read_line(line).intents
    intent = read[0] if read else Intent(action=Action.STATUS)
    is_new = intent.action in (Action.CREATE, Action.ADD) and not intent.target
    reader = PhraseReader(line, _namer(talk))
    line, phrases = reader.line, reader.references()  # offsets refer to the mended line
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
    found = resolve_all(run, expected_target(intent), talk)
    says_which = run[0].kind or run[0].select != "same"
    lost = is_new and not intent.other and not found.items and says_which  # perhaps the line creates nothing
    return resolve_all(run, ANYTHING, talk) if lost else found


class Unclear(Exception):
    """The orchestrator must ask `question`: `phrase` may mean any of `candidates` (item ids), or matches no item."""

    def __init__(self, question: str, phrase: str = "", candidates: Sequence[WorkItem] = ()) -> None:
        super().__init__(question)
        self.question = question
        self.phrase = phrase
        self.candidates = tuple(item.id for item in candidates)


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves phrases in a conversation; `chosen` maps phrases that the user has already explained to item ids."""

    talk: Talk
    chosen: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def many(self, phrase: str, need: Need = ANYTHING) -> list[WorkItem]:
        """Return the items that a phrase means; an empty phrase means "it".

        Raises:
            Unclear: The phrase is ambiguous, or matches nothing.
        """
        if phrase in self.chosen:
            return [self.talk.lookup.item(each) for each in self.chosen[phrase]]
        found = resolve_text(phrase, self.talk, need)
        if found.ask:
            raise Unclear(found.ask, phrase, found.candidates[:_MOST_OFFERED])
        return list(found.items)

    def one(self, phrase: str, need: Need = ANYTHING) -> WorkItem:
        """Return the only item that a phrase means.

        Raises:
            Unclear: The phrase means several items, is ambiguous, or matches nothing.
        """
        items = self.many(phrase, need)[:_MOST_OFFERED]
        if len(items) > 1:
            names = ", ".join(item.name for item in items)
            raise Unclear(f"Which one do you mean: {names}?", phrase, items)
        return items[0]

    def named(self, phrase: str) -> tuple[int, ...]:
        """Return the ids of the items that a phrase means, () if the phrase is unclear."""
        try:
            return tuple(item.id for item in self.many(phrase))
        except (Unclear, NotFoundError):
            return ()

    def container(self, kind: WorkKind) -> WorkItem | None:
        """Return the default parent of a new item: the item created last if it was mentioned last, or its ancestor.

        A story created right after its epic belongs to the epic. Milestones and epics get no parent (None).
        """
        newest = self.talk.mentions[0] if self.talk.mentions and self.talk.goes_on else None
        if not newest or newest.happening is not Happening.CREATED or kind in (WorkKind.MILESTONE, WorkKind.EPIC):
            return None
        items = [self.talk.lookup.item(each) for each in newest.items]
        rows = [[*([item] if len(items) == 1 else []), *self.talk.above(item)] for item in items]
        fits = ([each for each in row if each.status.is_open and each.kind in PARENT_KINDS[kind]] for row in rows)
        nearest = [next(iter(row), None) for row in fits]
        return nearest[0] if len(set(nearest)) == 1 else None


def chosen_from(line: str, candidates: Sequence[int], talk: Talk) -> tuple[int, ...]:
    """Return the candidates that an answer names, by number or phrase; without any, an item by number or title."""
    said = line.strip().rstrip(".!").lower()
    found = resolve_text(said, talk.listing(candidates))
    named = tuple(item.id for item in found.items)
    if candidates:
        return named if set(named) <= set(candidates) else ()
    return named if ITEM.fullmatch(said) and re.search(r'[\d"]', said) else ()


def persons_in(line: str, tracker: WorkTracker) -> frozenset[str]:
    """Return the names in a line, in lower case, that are assignees of the first `MOST_SIFTED` items of the backlog."""
    known = {item.assignee.casefold() for item in tracker.items(WorkFilter(limit=MOST_SIFTED)) if item.assignee}
    longest_first = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    return frozenset(re.findall(rf"(?<!\w)(?:{longest_first})(?!\w)", line.casefold()) if known else ())


def speaker() -> str:
    """Return the speaker's name: the user of the process, or "me" if the user has no name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "me"


_YES = r"(?:y|yes|yep|yeah|yup|ja|s[ií]|oui|да|是的?|对|好的?|ok|okay|sure|confirm(?:ed)?|correct|right|exactly|agreed)"
_NO = r"""(?:n|no|nope|nah|nein|non|нет|不是?|不要|不用|don'?t|never\s?mind|nothing|none|stop|leave|keep|forget|oops
    |wait|sorry|hm+|actually)"""
_BESIDE = r"""(?:please|do|go|ahead|it|that|this|them|both|all|thanks?|you|of|course|i|am|is|was|as|now|just|then|the
    |one|everything|mind|changed|matter|joking|i'm|let's|not|alone|change|cancel|mean|meant|did)"""
_IS_YES = re.compile(rf"(?ix)\W*{_YES}(?:\W+(?:{_YES}|{_BESIDE}))*[\s,.!]*")
_IS_NO = re.compile(rf"(?ix)\W*{_NO}(?:\W+(?:{_NO}|{_BESIDE}))*\W*")
_AGREES = re.compile(
    r"(?i)\W*(?:yes|yep|yeah|yup)\b"
    r"(?!.*(?:\b(?:but|if|unless|except|wait|no|not|only|later|first|instead)\b|\?|n't)).{1,60}"
)
_LONGEST = 60  # characters of a yes or no
_MOST = 3
_SURE = 0.5  # minimum confidence of a destructive reading, and of a note that is not the whole line
_WH = r"(?:who|what|why|when|where|how|which)\b"
_STOPS = " .!;"
_ASKS = re.compile(rf"(?i)\W*{_WH}[^?!;]*\?*\s*")  # one question and no more
_TELLS = re.compile(rf"(?is)\W*(?!{_WH}).*[^\s?\uff1f]\s*")


def is_yes(line: str) -> bool:
    """Check whether a line is a plain yes."""
    return len(line) <= _LONGEST and _IS_YES.fullmatch(line) is not None


def is_no(line: str) -> bool:
    """Check whether a line is a plain no, or says to leave everything as it is."""
    return len(line) <= _LONGEST and _IS_NO.fullmatch(line.replace("\u2019", "'")) is not None


def is_statement(line: str) -> bool:
    """Check whether a line has at least four words and is no question: it may be a note if it is no command."""
    return word_count(line) >= 4 and _TELLS.fullmatch(line) is not None


def choice_in(line: str, options: int) -> int | None:
    """Return the index of the option that a line chooses, or None; a yes, with a reason or without, means the first."""
    said = line.strip().rstrip(".!)")
    if said.isdecimal() and len(said) < 3 and 1 <= int(said) <= options:
        return int(said) - 1
    return 0 if options and (is_yes(line) or _AGREES.fullmatch(line)) else None


# Suggestions

Suggestions = dict[str, tuple[Intent, ...]]
"""Maps the text of each suggestion to its intents, in which item numbers replace the phrases."""


def suggestions(line: str, parsed: Parsed, talk: Talk) -> Suggestions:
    """Return possible meanings of a line, likeliest first: the reading itself, then the nearest commands.

    A reading is dropped if its items do not exist, or offered once per candidate if its phrase is ambiguous. If nothing
    remains, a plain sentence is offered as a note.
    """
    readings = [parsed.intents]
    if parsed.intents or resolve_line(line, talk).items:  # without a reading, the line must at least name an item
        readings += [read for command in parsed.nearest if not _takes_away(read := read_line(command).intents)]
    found: Suggestions = {}
    for intents in readings:
        if intents and not any(intent.action in ASKS for intent in intents):
            for text, settled in _suggested(line, intents, talk):
                found.setdefault(text, settled)
    if not found and parsed.nearest and is_statement(line):
        noted = Intent(action=Action.NOTE, value=line.strip())
        found[as_command(noted)] = (noted,)
    return dict(islice(found.items(), _MOST))


def check_period(intent: Intent, line: str, now: datetime) -> None:
    """Check that the time that a question without a target asks for is known. Raises `Unclear`."""
    if intent.action not in (Action.RECENT, Action.LIST) or intent.target:
        return
    # Of a line in another language, the value is the period in English.
    if unread := unread_period(intent.value if is_foreign(line) or parse_foreign(line) else line, now):
        raise Unclear(f'I do not know the period "{unread}"; name it like "last week" or "14 September".')


def sensible(line: str, parsed: Parsed) -> Parsed:
    """Leave out what is near a doubtful destructive reading and, if the line is a question, what changes something.

    A destructive command that is only the nearest one to a line without a reading is doubtful, too.
    """
    if _ASSIGNS.match(line) and not any(intent.value for intent in parsed.intents):  # which would unassign
        return replace(parsed, intents=(), nearest=(f"{line.strip()} to me",))
    nearest = read_line(parsed.nearest[0]).intents if parsed.nearest and not parsed.intents else ()
    is_doubtful = bool(nearest) or min((intent.sure for intent in parsed.intents), default=1) < _SURE
    if _takes_away(parsed.intents or nearest) and is_doubtful:
        return replace(parsed, intents=(), nearest=parsed.nearest[:1])
    if not _ASKS.fullmatch(line):
        return parsed
    asks = (each for each in parsed.nearest if all(read.action in ASKS for read in read_line(each).intents))
    return replace(parsed, intents=(), nearest=tuple(asks))


def _takes_away(intents: Sequence[Intent]) -> bool:
    return any(intent.action in DESTRUCTIVE for intent in intents)


def _suggested(line: str, intents: Sequence[Intent], talk: Talk) -> Iterator[tuple[str, tuple[Intent, ...]]]:
    """Resolve the intents of one reading; yield several results if the phrase of the first intent is ambiguous."""
    ways: list[list[tuple[Intent, list[WorkItem]]]] = []
    for place, intent in enumerate(intents):
        if any(before.action in NEW for before in intents[:place]):
            ways.append([(intent, [])])  # it may be about items not yet created
        else:
            ways.append(list(islice(_settled(line, intent, talk), 1 if place else _MOST)))
    for row in product(*ways):
        named = [(as_command(intent), ", ".join(item.title for item in items)) for intent, items in row]
        if all(command for command, _ in named):
            text = "; ".join(command + (f" ({titles})" if titles else "") for command, titles in named)
            yield text, tuple(intent for intent, _ in row)


def states_what_holds(line: str, now: datetime) -> bool:
    """Check whether all of a line states a decision, rule, role or insight, as the classifiers of facts read it.

    To remember it changes no item, and a rule that is not remembered is worse than an extra note. A few words, such as
    "never again", and what is only proposed, wished or supposed, state nothing.
    """
    said = line.strip(_STOPS)
    if not is_statement(line) or signs_of([said])[0, OPEN] >= 0:
        return False
    facts = find_in_text(said, operation=0, timestamp=now, speaker=speaker())
    return [fact.text for fact in facts if fact.kind in (*HOLDING, MustKeepKind.INSIGHT)] == [said]


def only_tells(intents: Sequence[Intent]) -> bool:
    """Check whether intents only keep a text, and name no item."""
    return all(intent.action in TELLING and not intent.target for intent in intents)


def _settled(line: str, intent: Intent, talk: Talk) -> Iterator[tuple[Intent, list[WorkItem]]]:
    """Yield an intent with its phrases replaced by item numbers, once for each meaning."""
    is_new = intent.action in NEW and not intent.target
    other = _meant(intent.other, expected_parent(intent.kind) if is_new else ANYTHING, line if is_new else "", talk)
    loses_rule = intent.action in TELLING and safety_kind(line) and not safety_kind(intent.value)
    is_doubtful = intent.action is Action.NOTE and not intent.target and intent.sure < _SURE
    # "Store card numbers" is the opposite of what was said, and "the fire brigade" not what to do about it.
    if intent.action is Action.REPORT or loses_rule or is_doubtful:
        intent = replace(intent, value=line.strip())
    if other and (len(other[0]) == 1 or not is_new):
        intent = replace(intent, other=_numbers(other[0]))
    elif intent.other and intent.action is Action.DEPEND:
        return
    elif is_new:
        titles = _with_end(intent.titles, "" if other else intent.other, line)
        intent = replace(intent, action=Action.CREATE, other="", titles=titles)
    elif intent.other:
        intent = replace(intent, other="", value=intent.value or intent.other)
    if is_new:
        if intent.titles or intent.count:
            yield intent, other[0] if intent.other else []
    elif intent.action in (*TELLING, Action.UNDO) and not intent.target:
        if intent.value or intent.action is Action.UNDO:
            yield intent, []
    else:
        seen = {"", intent.other}
        for items in _meant(intent.target, expected_target(intent), line, talk):
            if (numbers := _numbers(items)) not in seen:
                seen.add(numbers)
                yield replace(intent, target=numbers), items


def _with_end(titles: tuple[str, ...], rest: str, line: str) -> tuple[str, ...]:
    """Return the titles of new items, the last one up to the end of `rest`: a phrase of the line that names no item."""
    behind = line.partition(titles[-1])[2] if titles else ""
    if not titles or rest not in behind or behind[:1] in _QUOTES or ITEM.fullmatch(rest):
        return titles
    return (*titles[:-1], titles[-1] + behind[: behind.index(rest) + len(rest)])


def _meant(phrase: str, need: Need, line: str, talk: Talk) -> list[list[WorkItem]]:
    """Return the possible meanings of a phrase, likeliest first, then the meanings of `line` if it is not empty."""
    found = [resolve_text(phrase, talk, need)] if phrase else []
    found += [resolve_line(line, talk)] if line else []
    rows = [row for each in found for row in ([[item] for item in each.candidates] if each.ask else [[*each.items]])]
    return [row for row in rows if row]


def _numbers(items: Sequence[WorkItem]) -> str:
    return ", ".join(f"#{item.id}" for item in items)

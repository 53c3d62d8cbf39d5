"""Lines that take another line: yes, no, a choice, a correction of the one before; and suggestions for the next.

The few words for yes and no are read by themselves and never guessed: a yes changes something, and a no must hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

from orchestra_mem.orchestrator.intents import ASKS, DESTRUCTIVE, NEW, Action, Intent, Parsed
from orchestra_mem.orchestrator.intents.grammar import as_command
from orchestra_mem.orchestrator.intents.reading import read_line
from orchestra_mem.orchestrator.references import NOTHING_NAMED
from orchestra_mem.orchestrator.resolving import Resolver, is_reference, items_named_in, resolve_line, resolve_text
from orchestra_mem.orchestrator.scene import Talk
from orchestra_mem.orchestrator.talk import ANYTHING, Need, container_need, need_of
from orchestra_mem.work_types import WorkItem

_YES = r"(?:y|yes|yep|yeah|yup|ja|si|oui|ok|okay|sure|confirm(?:ed)?|correct|right|exactly|agreed)"
_NO = r"(?:n|no|nope|nah|nein|non|don'?t|never\s?mind|nothing|none|stop|leave|keep|forget|oops|wait|sorry|hm+|actually)"
_BESIDE = r"""(?:please|do|go|ahead|it|that|this|them|both|all|thanks?|you|of|course|i|am|is|was|as|now|just|then|the
    |one|everything|mind|changed|matter|joking|i'm|let's|not|alone|change|cancel|mean|meant|did)"""
_IS_YES = re.compile(rf"(?ix)\W*{_YES}(?:\W+(?:{_YES}|{_BESIDE}))*[\s,.!]*")
_IS_NO = re.compile(rf"(?ix)\W*{_NO}(?:\W+(?:{_NO}|{_BESIDE}))*\W*")
_AGREES = re.compile(
    r"(?i)\W*(?:yes|yep|yeah|yup)\b"
    r"(?!.*(?:\b(?:but|if|unless|except|wait|no|not|only|later|first|instead)\b|\?|n't)).{1,60}"
)
_CORRECTS = re.compile(
    r"(?i)\W*(?:(?:no|nope|sorry|oops|wait|not that(?: one)?|actually)\b[\s,.!:;-]*)+(?:i (?:mean|meant)\b[\s,:]*)?"
    r"(?P<of>\S.*?)(?P<after>,? i meant?)?\W*|\W*i (?:mean|meant)\b[\s,:]*(?P<meant>\S.*?)\W*"
)
_SAME = re.compile(
    r"(?i)\W*(?:(?:and|also|ok|plus|so) )*(?:(?:do )?(?:the )?same (?:for|with|goes for) (?P<for>\S.*?)"
    r"|(?P<too>\S.*?),? (?:too|as well|also))[\s,.!]*(?:please)?\W*"
)
_BACK = re.compile(
    r"(?i)\W*(?:(?:no|hm+|sorry|oops|wait|actually|please|ok)\b[\s,.!]*)*(?:move|put|set|change|switch|turn) "
    r"(?:it|that|them|this) back(?: again)?\W*"
)
_PERSON = re.compile(r"(?:to |for )?(?P<name>[^\W\d_][\w-]*)")
_LONGEST = 60  # characters of such a line
_FRESH = 2  # so many lines later a correction may still come
_MOST = 3
_SURE = 0.5  # how likely a reading must be that would take something away
# What may be worth a note where it is no command: a sentence that asks nothing.
_TELLS = re.compile(r"(?i)\W*(?!(?:who|what|why|when|where|how|which)\b)(?:\S+\s+){3,}\S*[^\s?]\s*")
_CLAUSE_END = re.compile(r"(?i)[,;]\s+|\.\s+|\s+(?:and|then)\s+")
_PRONOUNS = frozenset(["", "it", "that", "this"])
_TEXTS = (Action.NOTE, Action.DECIDE, Action.REPORT, Action.UNDO)
# What was done to the wrong item can be done to another: nothing is made or taken away by it.
_CORRECTED = frozenset(
    {Action.START, Action.FINISH, Action.DEFER, Action.BLOCK, Action.ASSIGN, Action.PRIORITISE, Action.UNBLOCK}
)


def is_yes(line: str) -> bool:
    """Tell whether a line says yes to a question, and nothing else."""
    return len(line) <= _LONGEST and _IS_YES.fullmatch(line) is not None


def is_agreed(line: str) -> bool:
    """Tell whether a line says yes to a question and gives a reason: "yes, nobody asked for it"."""
    return is_yes(line) or _AGREES.fullmatch(line) is not None


def is_no(line: str) -> bool:
    """Tell whether a line says no to a question, or that all is to stay, and nothing else."""
    return len(line) <= _LONGEST and _IS_NO.fullmatch(line.replace("\u2019", "'")) is not None


def choice_in(line: str, options: int) -> int | None:
    """Tell which of so many options a line chooses, from 0; a yes is for the first."""
    said = line.strip().rstrip(".!)")
    if said.isdecimal() and len(said) < 3 and 1 <= int(said) <= options:
        return int(said) - 1
    return 0 if options and is_agreed(line) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """The last command that was done, the items that it changed, and how many lines ago that was."""

    intent: Intent
    items: tuple[int, ...]
    age: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """What a line asks for by what was done last: `intent` with the items it is for; both may be missing.

    `takes_back` is that what was done last is undone before. `sure` is that the line says it plainly.
    """

    intent: Intent | None = None
    items: tuple[int, ...] = ()
    takes_back: bool = False
    sure: bool = True


def following(line: str, last: Last, talk: Talk) -> Following | None:
    """Read a line by what was done last; None where it is a line of its own."""
    fresh, correctable = last.age <= _FRESH, last.intent.action in _CORRECTED
    if _BACK.fullmatch(line):
        return Following(takes_back=True) if fresh and correctable else Following(intent=Intent(action=Action.UNDO))
    if not correctable or len(line) > _LONGEST or line.rstrip().endswith("?"):
        return None
    same = _SAME.fullmatch(line)
    found = same or (_CORRECTS.fullmatch(line) if fresh else None)
    phrase = next(filter(None, found.groupdict().values())) if found else ""
    return _again(phrase, last, talk, takes_back=same is None) if phrase else None


def _again(phrase: str, last: Last, talk: Talk, *, takes_back: bool) -> Following | None:
    """Do what was done last to other items, or give the same items to another person."""
    plain = is_reference(phrase, talk)
    person = _PERSON.fullmatch(phrase) if last.intent.action is Action.ASSIGN and takes_back else None
    if person and person["name"][:1].isupper() and not plain:
        return Following(intent=replace(last.intent, value=person["name"]), items=last.items)
    intent = replace(last.intent, target=phrase)
    items = Resolver(talk).named(phrase, need_of(intent))
    is_other = bool(items) and not set(items) & set(last.items)
    return Following(intent=intent, items=items, takes_back=takes_back, sure=plain) if is_other else None


# Suggestions

Suggestions = dict[str, tuple[Intent, ...]]
"""By how to ask about them, intents whose phrases are replaced by the numbers of the items meant."""


def suggestions(line: str, parsed: Parsed, talk: Talk) -> Suggestions:
    """List what a line may ask for, the likeliest first: of what was read, then of the nearest commands.

    A line that seems to ask for nothing may be worth a note. A reading whose items are not there is none; one whose
    phrase may mean several is offered for each.
    """
    readings = [parsed.intents]
    if parsed.intents or resolve_line(line, talk).items:  # else it must at least name an item
        readings += [read for command in parsed.nearest if not _takes_away(read := read_line(command).intents)]
    if _takes_away(parsed.intents) and min(intent.sure for intent in parsed.intents) < _SURE:
        del readings[0]
    found: Suggestions = {}
    for intents in readings:
        if intents and not any(intent.action in ASKS for intent in intents):
            for text, settled in _suggested(line, intents, talk):
                found.setdefault(text, settled)
    if not found and parsed.nearest and _TELLS.fullmatch(line):
        noted = Intent(action=Action.NOTE, value=line.strip())
        found[as_command(noted)] = (noted,)
    return dict(islice(found.items(), _MOST))


def _takes_away(intents: Sequence[Intent]) -> bool:
    return any(intent.action in DESTRUCTIVE for intent in intents)


def _suggested(line: str, intents: Sequence[Intent], talk: Talk) -> Iterator[tuple[str, tuple[Intent, ...]]]:
    """Settle the intents of one reading; where the phrase of the first is unclear, for each that it may mean."""
    ways: list[list[tuple[Intent, list[WorkItem]]]] = []
    clauses = [part for part in _CLAUSE_END.split(line) if part.strip()]
    for place, intent in enumerate(intents):
        clause = clauses[place] if len(clauses) == len(intents) else line
        if any(before.action in NEW for before in intents[:place]):
            ways.append([(intent, [])])  # it may be about what is yet to be made
        else:
            ways.append(list(islice(_settled(clause, intent, talk), 1 if place else _MOST)))
    for row in product(*ways):
        named = ((intent, ", ".join(item.title for item in items)) for intent, items in row)
        text = "; ".join(as_command(intent) + (f" ({titles})" if titles else "") for intent, titles in named)
        yield text, tuple(intent for intent, _ in row)


def _settled(line: str, intent: Intent, talk: Talk) -> Iterator[tuple[Intent, list[WorkItem]]]:
    """Replace an intent's phrases by numbers, in each way that they may be meant."""
    is_new = intent.action in NEW and not intent.target
    other = _meant(intent.other, container_need(intent.kind) if is_new else ANYTHING, line if is_new else "", talk)
    if intent.action is Action.REPORT:
        intent = replace(intent, value=line.strip())
    if other and (len(other[0]) == 1 or not is_new):
        intent = replace(intent, other=_numbers(other[0]))
    elif intent.other and intent.action is Action.DEPEND:
        return
    elif intent.other:
        intent = replace(intent, other="", value=intent.value or ("" if is_new else intent.other))
    if is_new:
        if intent.titles or intent.count:
            yield intent, other[0] if intent.other else []
    elif intent.action in _TEXTS and not intent.target:
        if intent.value or intent.action is Action.UNDO:
            yield intent, []
    else:
        seen = {"", intent.other}
        for items in _meant(intent.target, need_of(intent), line, talk):
            if (numbers := _numbers(items)) not in seen:
                seen.add(numbers)
                yield replace(intent, target=numbers), items


def _meant(phrase: str, need: Need, line: str, talk: Talk) -> list[list[WorkItem]]:
    """List what a phrase may mean, the likeliest first; then what its line is about, if there is one."""
    found: list[list[WorkItem]] = []
    whole = resolve_line(line, talk) if line else NOTHING_NAMED
    if phrase or (line and whole is NOTHING_NAMED and not need.kinds):
        meant = resolve_text(phrase, talk, need)
        found = [[item] for item in meant.candidates] if meant.ask else [list(meant.items)]
    about, titled = list(whole.items), items_named_in(line, talk) if line else []
    found.insert(0 if phrase in _PRONOUNS else 1, titled)
    return [each for each in (*found[:2], about, *found[2:], *([item] for item in titled)) if each]


def _numbers(items: Sequence[WorkItem]) -> str:
    return ", ".join(f"#{item.id}" for item in items)

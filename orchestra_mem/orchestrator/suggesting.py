"""Suggestions: what a line that was not read whole may ask for, with the items that are meant, to be asked about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from orchestra_mem.errors import NotFoundError
from orchestra_mem.orchestrator.intents.reading import read_line
from orchestra_mem.orchestrator.intents.rendering import as_command
from orchestra_mem.orchestrator.intents.types import ASKS, DESTRUCTIVE, Action, Intent, Parsed
from orchestra_mem.orchestrator.references import is_reference, items_named_in, resolve_line
from orchestra_mem.orchestrator.resolving import AT_HAND, Resolver, Unclear
from orchestra_mem.orchestrator.talk import Need, Talk, container_need, need_of
from orchestra_mem.work_types import WorkItem

_MOST = 3
_SURE = 0.5
"""How likely a reading must be that would take something away."""
_TELLS = re.compile(r"\W*(?!(?:who|what|why|when|where|how|which)\b)(?:\S+\s+){3,}\S*[^\s?]\s*", re.IGNORECASE)
"""What may be worth a note where it is no command: a sentence that asks nothing."""
_CLAUSE_END = re.compile(r"[,;]\s+|\.\s+|\s+(?:and|then)\s+", re.IGNORECASE)
_NAME = re.compile(r"\s([A-Z][\w-]+?)(?:'s)?\b")
_LEVELS = frozenset("12345")
_PRONOUNS = frozenset(["", "it", "that", "this"])
_NEW = (Action.CREATE, Action.ADD)
_TEXTS = (Action.NOTE, Action.DECIDE, Action.REPORT, Action.UNDO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Intents whose phrases are replaced by the numbers of the items meant, and how to ask about them."""

    intents: tuple[Intent, ...]
    text: str


def suggestions(line: str, parsed: Parsed, talk: Talk) -> tuple[Suggestion, ...]:
    """List what a line may ask for, the likeliest first: of what was read, then of the nearest commands.

    A line that seems to ask for nothing may be worth a note. A reading whose items are not there is none; one whose
    phrase may mean several is offered for each.
    """
    found: dict[str, Suggestion] = {}
    nearest = [read_line(command).intents for command in parsed.nearest]
    if not parsed.intents and not resolve_line(line, talk).items:
        nearest = []  # it must at least name an item
    readings = [parsed.intents, *(each for each in nearest if not _takes_away(each))]
    if _takes_away(parsed.intents) and min(intent.sure for intent in parsed.intents) < _SURE:
        del readings[0]
    for intents in readings:
        if intents and not any(intent.action in ASKS for intent in intents):
            for suggestion in _suggested(line, intents, talk):
                found.setdefault(suggestion.text, suggestion)
    if not found and parsed.nearest and _TELLS.fullmatch(line):
        noted = Intent(action=Action.NOTE, value=line.strip())
        found[line] = Suggestion(intents=(noted,), text=as_command(noted))
    return tuple(found.values())[:_MOST]


def _takes_away(intents: Sequence[Intent]) -> bool:
    return any(intent.action in DESTRUCTIVE for intent in intents)


def _suggested(line: str, intents: Sequence[Intent], talk: Talk) -> Iterator[Suggestion]:
    """Settle the intents of one reading; where the phrase of the first is unclear, for each that it may mean."""
    rows: list[list[tuple[Intent, list[WorkItem]]]] = [[]]
    clauses = [part for part in _CLAUSE_END.split(line) if part.strip()]
    for place, intent in enumerate(intents):
        clause = clauses[place] if len(clauses) == len(intents) else line
        if any(before.action in _NEW for before in intents[:place]):
            settled = [(intent, list[WorkItem]())]  # it may be about what is yet to be made
        else:
            settled = list(islice(_settled(clause, _mended(clause, intent), talk), _MOST if place == 0 else 1))
        rows = [[*row, one] for row in rows for one in settled]
    for row in rows:
        if row:
            told = (f"{as_command(intent)}{_names(items)}" for intent, items in row)
            yield Suggestion(intents=tuple(intent for intent, _ in row), text="; ".join(told))


def _settled(line: str, intent: Intent, talk: Talk) -> Iterator[tuple[Intent, list[WorkItem]]]:
    """Replace an intent's phrases by numbers, in each way that they may be meant."""
    resolver = Resolver(talk)
    need = container_need(intent.kind) if intent.action in _NEW else Need()
    other = _items(intent.other, need, resolver, line if intent.action in _NEW and need.kinds else "")
    if intent.action is Action.ASSIGN and is_reference(intent.value, talk):
        return  # no person
    if len(other) == 1 and (len(other[0]) == 1 or intent.action not in _NEW):
        intent = replace(intent, other=_numbers(other[0]))
    elif intent.other and intent.action in _NEW:
        # What it is to stand under may be told by other words of the line.
        intent = replace(intent, other="")
    elif intent.action is Action.DEPEND and not other:
        return
    elif intent.other:
        intent = replace(intent, other="", value=intent.value or intent.other)
    if intent.action in _NEW and not intent.target:
        if intent.titles or intent.count:
            yield intent, other[0] if intent.other else []
    elif intent.action in _TEXTS and not intent.target:
        if intent.value or intent.action is Action.UNDO:
            yield intent, []
    else:
        meant = _items(intent.target, need_of(intent), resolver, line)
        titled = items_named_in(line, talk)
        meant.insert(0 if intent.target in _PRONOUNS else 1, titled)
        meant.insert(1, list(resolve_line(line, talk).items))
        meant += [[item] for item in titled]
        seen: set[str] = set()
        for items in meant:
            numbers = _numbers(items)
            if numbers and numbers not in seen and numbers != intent.other:
                seen.add(numbers)
                yield replace(intent, target=numbers), items


def _mended(line: str, intent: Intent) -> Intent:
    """Take out of an intent what its line does not say, and let its text go on to the end of the line."""
    if intent.target == "it" and not re.search(r"\bit\b", line, re.IGNORECASE):
        intent = replace(intent, target="")
    if intent.action is Action.PRIORITISE and intent.target in _LEVELS:  # "the login is priority 1"
        intent = replace(intent, target="", value=intent.target)
    if intent.action is Action.ASSIGN and not intent.value and (name := _NAME.search(line)):
        intent = replace(intent, value=name[1])
    if intent.action is Action.REPORT:
        return replace(intent, value=line.strip())
    if intent.action in (Action.NOTE, Action.DECIDE):
        at = line.find(intent.value) if intent.value else -1
        return replace(intent, value=line[at:].strip() if at > 0 else intent.value or line.strip())
    return intent


def _items(phrase: str, need: Need, resolver: Resolver, line: str) -> list[list[WorkItem]]:
    """List what a phrase may mean, the likeliest first; where it means nothing, what the whole line is about."""
    if not phrase:
        found = list(resolve_line(line, resolver.talk).items) if line else []
        if found or not line:
            return [found] if found else []
    try:
        return [resolver.many(phrase or AT_HAND, need)]
    except NotFoundError:
        return []
    except Unclear as unclear:
        if unclear.candidates:
            return [[resolver.talk.lookup.item(each)] for each in unclear.candidates]
    found = list(resolve_line(line, resolver.talk).items) if line else []
    return [found] if found else []


def _numbers(items: Sequence[WorkItem]) -> str:
    return ", ".join(f"#{item.id}" for item in items)


def _names(items: Sequence[WorkItem]) -> str:
    return f" ({', '.join(item.title for item in items)})" if items else ""

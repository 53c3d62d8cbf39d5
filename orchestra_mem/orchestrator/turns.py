"""Lines that take another line: yes, no, a choice; and suggestions for the next.

The few words for yes and no are read by themselves and never guessed: a yes changes something, and a no must hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

from orchestra_mem.orchestrator.intents import ASKS, DESTRUCTIVE, NEW, Action, Intent, Parsed
from orchestra_mem.orchestrator.intents.grammar import as_command
from orchestra_mem.orchestrator.intents.reading import read_line
from orchestra_mem.orchestrator.resolving import resolve_line, resolve_text
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
_LONGEST = 60  # characters of such a line
_MOST = 3
_SURE = 0.5  # how likely a reading must be that would take something away
# What may be worth a note where it is no command: a sentence that asks nothing.
_TELLS = re.compile(r"(?i)\W*(?!(?:who|what|why|when|where|how|which)\b)(?:\S+\s+){3,}\S*[^\s?]\s*")
_TEXTS = (Action.NOTE, Action.DECIDE, Action.REPORT, Action.UNDO)


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
    for place, intent in enumerate(intents):
        if any(before.action in NEW for before in intents[:place]):
            ways.append([(intent, [])])  # it may be about what is yet to be made
        else:
            ways.append(list(islice(_settled(line, intent, talk), 1 if place else _MOST)))
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
    found = [resolve_text(phrase, talk, need)] if phrase else []
    found += [resolve_line(line, talk)] if line else []
    rows = [row for each in found for row in ([[item] for item in each.candidates] if each.ask else [[*each.items]])]
    return [row for row in rows if row]


def _numbers(items: Sequence[WorkItem]) -> str:
    return ", ".join(f"#{item.id}" for item in items)

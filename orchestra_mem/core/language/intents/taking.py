"""How an intent is put to those read before it in a line: what only completes the last one goes into that."""

from __future__ import annotations

import re
from dataclasses import replace

from orchestra_mem.core.language.intents.normalising import Clause
from orchestra_mem.core.language.intents.phrases import clean_phrase, kind_of
from orchestra_mem.core.language.intents.types import Action, Intent
from orchestra_mem.core.language.intents.words import fill

_PRONOUNS = frozenset(("it", "that", "this"))
_DONE_ONCE = frozenset(
    {
        Action.START,
        Action.FINISH,
        Action.BLOCK,
        Action.UNBLOCK,
        Action.DEFER,
        Action.RESUME,
        Action.CANCEL,
        Action.PRIORITISE,
    }
)


def take(intent: Intent, intents: list[Intent]) -> None:
    """Add an intent; what only completes the last one is put into that: "Its name is …" behind a creation."""
    last = intents[-1] if intents else None
    if last is None:
        intents.append(intent)
    elif last.action is Action.QUIT or last == intent:  # "that's it, 12 is done" goes on
        intents[-1] = intent
    elif (whole := _whole_of(intent, last)) is not None:
        intents[-1] = replace(intent, target=whole, kind=kind_of(whole.lower()))
    elif _says_again(intent, last) or _says_less(intent, last):
        return
    elif _says_on_what(intent, last):
        intents[-1] = replace(intent, target=last.target or intent.target, kind=last.kind or intent.kind)
    elif last.value == "lower" and intent.action is Action.DEFER and intent.target.lower() in _PRONOUNS:
        intents[-1] = intent  # "no rush with that, defer it"
    elif intent.action is last.action is Action.REPORT and intent.target.lower() in (
        "",
        "it",
        "that",
        last.target.lower(),
    ):
        intents[-1] = replace(last, value=f"{last.value}, {intent.value}")
    elif intent.action is last.action is Action.FINISH and last.target.lower() in ("it", "that"):
        intents[-1] = intent  # "nailed it, 12 is done"
    elif _says_how(intent, last):
        intents[-1] = replace(last, value=intent.value)
    elif _names_new(intent, last):
        intents[-1] = replace(last, titles=(intent.value,))
    elif last.action is intent.action is Action.RESUME and not last.target:
        intents[-1] = intent
    else:
        intents.append(intent)


_UNITS = r"(?! ?(?:%|percent|[a-z]+s\b(?<!is)(?<!was)(?<!has)(?<!does)(?<!needs)|o'clock|euro|am\b|pm\b))"
_NAMED = re.compile(
    fill(
        r"(?:(?:the|our|this|that|my) (?:[a-z][a-z-]* ){0,3}?)?(?:~KIND) #?\d+|#\d+|"
        r"(?:the|our|this|that) (?:(?!(?:of|in|on|for|to|and|is|are)\b)[a-z][a-z-]* ){0,3}?(?:epic|story|task|"
        r"milestone|"
        r"subtask|ticket)(?= |$)|"
        rf"(?<!\S)(?<!at )(?<!until )(?<!till )(?<!by )(?<!than )(?<!only )(?<!just )(?<!least )(?<!most )"
        rf"(?<!from )(?<!version )(?<!room )(?<!page )\d{{1,6}}(?= |$){_UNITS}"
    )
)


def named_before(aside: Clause, intents: tuple[Intent, ...]) -> tuple[Intent, ...]:
    """Let "it" be the one piece of work that a lead-in names: "nobody cares about 54, make it lowest"."""
    if not intents or intents[0].target.lower() not in _PRONOUNS:
        return intents
    named = list(_NAMED.finditer(aside.text))
    if len(named) != 1:
        return intents
    target = clean_phrase(aside.part(named[0].start(), named[0].end()).said)
    return (replace(intents[0], target=target, kind=kind_of(named[0][0])), *intents[1:])


_PARTS = re.compile(
    fill(
        r"(?:everything|all|every|each|both|all the|all of the|the) (?:\S+ ){0,3}?(?:of|below|under|in|inside|for|from|"
        r"beneath|within) (?P<whole>(?:the )?(?:\S+ ){0,3}?(?:#?\d+|~KIND))"
    )
)


def _whole_of(intent: Intent, last: Intent) -> str | None:
    """Give what is finished where the last one only says that its parts are: "all under 12 is done, so 12 is done"."""
    if not intent.action is last.action is Action.FINISH or not (match := _PARTS.fullmatch(last.target.lower())):
        return None
    whole = last.target[match.start("whole") :]
    return whole if intent.target.lower() in ("it", whole.lower()) else None


def _says_again(intent: Intent, last: Intent) -> bool:
    """Tell whether the same is only asked for once more: "12 is done, close it"."""
    on_it = intent.target.lower() in ("it", "that", last.target.lower())
    if intent.action is not last.action or not last.target or not on_it:
        return False
    if intent.action is Action.STATUS:
        return True
    return intent.action in _DONE_ONCE and (not (intent.other or intent.value) or intent.value == last.value != "")


def _says_less(intent: Intent, last: Intent) -> bool:
    """Tell whether it is only made more or less urgent again: "12 is urgent, bump it up"."""
    again = intent.action is last.action is Action.PRIORITISE and intent.target.lower() in ("it", "that")
    return again and intent.value in ("higher", "lower")


def _says_how(intent: Intent, last: Intent) -> bool:
    """Tell whether a priority is only told more closely: "prioritise 12, critical"."""
    again = intent.action is last.action is Action.PRIORITISE and intent.target.lower() in ("it", "that")
    return again and last.value in ("higher", "lower")


def _says_on_what(intent: Intent, last: Intent) -> bool:
    """Tell whether a block only says what the last one left open: "12 is stuck, it waits for #9"."""
    if intent.action is last.action is Action.UNBLOCK and not last.target:
        return True
    if intent.action is not last.action or intent.target.lower() not in ("", "it", last.target.lower()):
        return False
    blocks = intent.action is Action.BLOCK and not last.other and not last.value
    return blocks or (intent.action is Action.DEPEND and intent.other == last.other)


def _names_new(intent: Intent, last: Intent) -> bool:
    named = intent.action is Action.RENAME and intent.target.lower() in ("", "it", "that")
    return (
        named and last.action in (Action.CREATE, Action.ADD) and not last.titles and last.count <= 1 and not last.target
    )

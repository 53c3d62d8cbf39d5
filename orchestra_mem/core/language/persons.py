"""Persons in a line: whoever has work already, and names by their capitals, put as marks while it is read."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from orchestra_mem.core.language.intents.common_words import COMMON_WORDS
from orchestra_mem.core.language.intents.frames import verb_forms
from orchestra_mem.core.language.intents.rules import vocabulary
from orchestra_mem.core.language.intents.types import Action, Intent
from orchestra_mem.core.language.mentions import WorkLookup
from orchestra_mem.core.text import STOP_WORDS
from orchestra_mem.work_types import WorkFilter

_MOST_PERSONS = 300
_CAPITALISED = re.compile(r"(?<![#@\w])[A-Z][a-z][\w-]*")
DATES = frozenset(
    """Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August
    September October November December Christmas Easter Halloween""".split()
)
_PLACE = re.compile(
    r"(?:(?:#\d+|\b(?:both|first|second|third|last|other|one|two|three|rest)) *(?:=|->|=>|\u2192|(?:is |are |"
    r"goes |go )?(?:to|by))|"
    r"\b(?:both|first|second|third|last|other|two|three|rest)) +(?P<name>[a-z]{3,})[\s.!]*$"
)
_STARTERS = frozenset("ok okay so and now then right well also actually yo hey the a an it that this yes no".split())


def persons_in(lookup: WorkLookup) -> frozenset[str]:
    """Who has work among the first of the backlog, in lower case."""
    return frozenset(item.assignee.lower() for item in lookup.items(WorkFilter(limit=_MOST_PERSONS)) if item.assignee)


def with_marks(text: str, known: Collection[str]) -> tuple[str, Mapping[str, str]]:
    """Put `@0`, `@1` … in the place of persons, and say what each stands for.

    Args:
        text: a clause.
        known: who has work, in lower case.
    """
    persons: dict[str, str] = {}

    def mark(found: re.Match[str]) -> str:
        word = found.group()
        begins = not text[: found.start()].strip()
        capital = _CAPITALISED.fullmatch(word) and word.lower() not in COMMON_WORDS and word not in DATES
        if word.lower() not in known and not (capital and (not begins or word.lower() not in _STARTERS)):
            return word
        persons[f"@{len(persons)}"] = word
        return f"@{len(persons) - 1}"

    marked = re.sub(r"(?<![#@\w])[^\W\d_][\w-]*", mark, text)
    # A name in lower case is known by its place: "parser -> priya", "the first two jonas".
    place = None if "?" in text else _PLACE.search(marked)
    if place and _may_be_name(place["name"]):
        persons[name := f"@{len(persons)}"] = place["name"]
        marked = f"{marked[: place.start('name')]}{name}{marked[place.end('name') :]}"
    return marked, persons


def _may_be_name(word: str) -> bool:
    if word in COMMON_WORDS or word in STOP_WORDS or word in _STARTERS or word.capitalize() in DATES:
        return False
    return not (word.endswith(("ed", "ing")) or word in vocabulary() or word in verb_forms())


def with_names(intent: Intent, persons: Mapping[str, str]) -> Intent:
    """The intent with names in the place of marks."""
    name = persons.get(intent.value)
    if name is None and intent.action is Action.ASSIGN:
        name = persons.get(intent.value.split(" ")[0])
    if name is None:
        return replace(
            intent, value=re.sub(r"@\d+", lambda found: persons.get(found.group(), found.group()), intent.value)
        )
    return replace(intent, value=name[:1].upper() + name[1:])

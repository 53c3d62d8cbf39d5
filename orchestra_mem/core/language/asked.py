"""Questions about items, persons and what is remembered, by what they name where no pattern tells what they ask.

A question is never left unanswered: what names an item is about that, what names a person about that one's work, and
any other is looked for in the memory.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from orchestra_mem.core.language.intents.types import ASKS, Action, Intent, Parsed
from orchestra_mem.core.language.listing import read_listing
from orchestra_mem.core.language.mentions import WorkLookup
from orchestra_mem.core.language.naming import namings

START, FINISH = "start", "finish"
"""What is asked for leave to do, as the value of a question for status."""
_ASKING = re.compile(
    r"\W*(?:(?:and|so|but|ok|well|hm+|hey|then) )*(?:who|whose|what|wh?at['\u2019]?s|why|when|where|how|which|"
    r"is|are|was|were|do|does|did|"
    r"has|have|can|could|will|should|any|anything|anyone|anybody)\b",
    re.IGNORECASE,
)
_MAY_I = re.compile(
    r"\W*(?:(?:and|so|ok|but) )*(?:can|could|may|am i able to|do) (?P<who>i|\w+)(?: (?:already|now|get to))* "
    r"(?:(?P<start>start|begin|do|work on|tackle)|(?P<finish>finish|close|complete|ship))\b",
    re.IGNORECASE,
)
_WHEN_OR_WHO = re.compile(r"\W*(?:and )?(?:who|when)\b", re.IGNORECASE)
_OF_PAST = re.compile(r"\b(?:we|you|i|last|just|recently|yesterday|today|did|was|were)\b", re.IGNORECASE)
_OF_PERSON = re.compile(
    r"\b(?:did|do|does|done|doing|finish\w*|have|has|busy|working|work|items?|up to|open|left)\b", re.I
)
_WHEN_IS = re.compile(r"\W*(?:and )?when (?:do|does)\b", re.IGNORECASE)
_WORK_DONE = re.compile(r"\b(?:start|finish|begin|complete|done|finished|started|blocked)\b", re.IGNORECASE)
_WHAT_BECAME = re.compile(
    r"\W*(?:and |so )?(?:what|how come) (?:went wrong|happened|was wrong|is wrong|was the (?:matter|problem))",
    re.IGNORECASE,
)
_REPORT = re.compile(
    r"\W*(?:(?:short|quick|full|a|the|please|ok) )*(?:report|update|overview|summary)(?: please)?\W*", re.I
)
_LEFT = re.compile(r"\b(?:left|remain(?:s|ing)?|still open|outstanding)\b", re.IGNORECASE)
_WHAT_ABOUT = re.compile(r"\W*(?:and )?(?:what|how) about\b", re.IGNORECASE)
_HOW_MANY = re.compile(
    r"\W*(?:and )?how many (?:of (?:them|these|those|it) )?(?:items? |things? |jobs? )?(?:are|is|do we have|"
    r"have we got|left|"
    r"remain)\b(?: (?:still|already|now|left|open|done|finished|blocked|deferred|failed|pending|in progress|"
    r"there|we))*\W*$",
    re.IGNORECASE,
)
_BLOCKED = re.compile(r"\b(?:block(?:ed|ing|s|ers?)|stuck|held up|holding)\b", re.IGNORECASE)
_LEAD = re.compile(
    r"^\W*(?:(?:and|so|but|ok|well|hm+|hey|then|what|who|which|when|where|how|why|is|are|was|were|do|does|did|"
    r"has|have|can|"
    r"could|it|there|with|about|of|the|a|an|our|we|to|for|again)\b\W*)+",
    re.IGNORECASE,
)
_NOTHING_SAID = frozenset({"", "up", "going on", "that", "this"})


def read_question(line: str, plain: Parsed, lookup: WorkLookup, persons: Collection[str]) -> Parsed:
    """Read what a question is about, where what it was read as so far does not say.

    Args:
        line: the line.
        plain: what it was read as so far.
        lookup: finds items.
        persons: who has work, in lower case.
    """
    if not plain.understood and _REPORT.fullmatch(line):
        return _one(Action.STATUS)
    if may := _leave_asked(line, plain, lookup, persons):
        return may
    asked = line.rstrip(" !.)").endswith("?") or _ASKING.match(line) is not None
    if not asked or (not line.rstrip().endswith("?") and any(each.action not in ASKS for each in plain.intents)):
        return plain
    action = plain.intents[0].action if plain.understood and len(plain.intents) == 1 else None
    listing = read_listing(line, persons)
    if action is Action.RECENT and (_WHEN_OR_WHO.match(line) or (listing.assignee and _OF_PERSON.search(line))):
        return (
            _of_item(line, lookup) or _of_person(line, persons) or (plain if _OF_PAST.search(line) else _sought(line))
        )
    if action is Action.RECENT and _WHAT_BECAME.match(line):
        return _of_item(line, lookup) or plain
    if _WHEN_IS.match(line) and action in (None, Action.RECENT, Action.STATUS) and not _WORK_DONE.search(line):
        return _sought(line)
    if action is Action.FIND and _WHAT_ABOUT.match(line):
        return _of_item(line, lookup) or plain
    if action is Action.NEXT and _LEFT.search(line):
        return _one(Action.LIST)
    if action is Action.HELP:
        return _of_item(line, lookup) or plain
    if plain.understood:
        return plain
    if listing.assignee is not None or _HOW_MANY.match(line):
        return _one(Action.LIST)
    if _BLOCKED.search(line) and not namings(line, lookup):
        return _one(Action.LIST)
    return _of_item(line, lookup) or _sought(line)


def _leave_asked(line: str, plain: Parsed, lookup: WorkLookup, persons: Collection[str]) -> Parsed | None:
    """Read whether something may be begun or ended: "can I start the changelog?"; of "you" it is a request."""
    found = _MAY_I.match(line)
    if found is None or found["who"].lower() not in {"i", *persons}:
        return None
    value = START if found["start"] else FINISH
    wanted = {Action.START, Action.FINISH, Action.STATUS}
    if plain.understood and len(plain.intents) == 1 and plain.intents[0].action in wanted and plain.intents[0].target:
        return _one(Action.STATUS, replace(plain.intents[0], action=Action.STATUS, value=value))
    of = _of_item(line, lookup)
    return _one(Action.STATUS, replace(of.intents[0], value=value)) if of else None


def _of_item(line: str, lookup: WorkLookup) -> Parsed | None:
    named = namings(line, lookup)
    if not named:
        return None
    best = max(named, key=lambda naming: (naming.whole, naming.end - naming.start))
    target = f"#{best.items[0]}" if len(best.items) == 1 else line[best.start : best.end]
    return _one(Action.STATUS, Intent(action=Action.STATUS, target=target, sure=0.7))


def _of_person(line: str, persons: Collection[str]) -> Parsed | None:
    return _one(Action.LIST) if read_listing(line, persons).assignee else None


def _sought(line: str) -> Parsed:
    words = _LEAD.sub("", line).strip(" ?!.")
    if words.lower() in _NOTHING_SAID:
        return Parsed(intents=(), understood=False, nearest=("what is next?", "help"), reason="it does not say of what")
    return _one(Action.FIND, Intent(action=Action.FIND, value=words, sure=0.7))


def _one(action: Action, intent: Intent | None = None) -> Parsed:
    return Parsed(intents=(intent or Intent(action=action, sure=0.7),), understood=True)

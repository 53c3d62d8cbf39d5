"""What people tell without saying that it is to be remembered: why something is done as it is."""

from __future__ import annotations

import re

from orchestra_mem.core.language.intents.types import Action, Intent, Parsed
from orchestra_mem.core.language.mentions import WorkLookup
from orchestra_mem.core.language.naming import namings
from orchestra_mem.errors import NotFoundError

_REMEMBER = re.compile(
    r"^(?P<told>\S.{8,}?)[.,;:!\-\s]+(?:please )?(?:remember|note|write|keep|mark) (?:that|this|it)(?: down|"
    r" in mind)?\W*$"
    r"|^(?P<fact>\S.{8,}?)[.,;:!\-\s]+(?:for the record|fyi|just so you know)\W*$",
    re.IGNORECASE | re.DOTALL,
)
_DECISION = re.compile(r"^(?:\w[\w-]* ){1,3}decision\s*[:-]\s*\S", re.IGNORECASE)
_REASON = re.compile(r"\b(?:because|since|so that|due to|in order to|that['\u2019]s why)\b", re.IGNORECASE)
_OURS = re.compile(
    r"^\W*(?:(?:ok|so|and|btw|by the way|fyi)\W+)*(?:we|i|the team|our|they|us)(?:\b|['\u2019])", re.IGNORECASE
)
_CLAUSE = re.compile(r"[,;:]\s+(?:\S+\s+){2,}\S+")
_DOUBT = re.compile(
    r"\?|\b(?:if|unless|maybe|perhaps|might|should|could|would|whether|please|suppose|imagine|undo|cancel|delete)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w#])(\d{1,9})\b")
_LEAST_WORDS = 5


def read_told(line: str, plain: Parsed, lookup: WorkLookup) -> Parsed:
    """Read what is told with its reason as a decision, and what is to be remembered as a note.

    Args:
        line: the line.
        plain: what it was read as so far; what was understood stays, unless it is of items that there are not.
        lookup: finds items.
    """
    if plain.understood and not (_OURS.match(line) and _of_nothing(plain, lookup)):
        return plain
    if found := _REMEMBER.match(line):
        return _told(Action.NOTE, found["told"] or found["fact"])
    if _DECISION.match(line):
        return _told(Action.DECIDE, line)
    if _DOUBT.search(line) or len(line.split()) < _LEAST_WORDS:
        return plain
    ours = _OURS.match(line) is not None and (_REASON.search(line) or _CLAUSE.search(line))
    because = _REASON.search(line) and not namings(line, lookup)
    return _told(Action.DECIDE, line) if ours or because else plain


def _of_nothing(plain: Parsed, lookup: WorkLookup) -> bool:
    """Whether a number in a sentence was taken for one of an item: "we return 429"."""
    for number in {
        int(each) for intent in plain.intents for each in _NUMBER.findall(f"{intent.target} {intent.other}")
    }:
        try:
            lookup.item(number)
        except NotFoundError:
            return True
    return False


def _told(action: Action, text: str) -> Parsed:
    return Parsed(intents=(Intent(action=action, value=text.strip(" ."), sure=0.7),), understood=True)

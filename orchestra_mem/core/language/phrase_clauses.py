"""What stands behind a noun phrase's head and says which ones: "that failed", "we just created", "about login"."""

from __future__ import annotations

from collections.abc import Sequence

from orchestra_mem.core.language.mentions import Happening
from orchestra_mem.core.language.phrase_words import is_head, is_plain, low
from orchestra_mem.core.language.phrases import Form, Parts
from orchestra_mem.core.language.reference_words import ADVERBS, HAPPENINGS, STATUSES, Token

_MAX_WORDS = 8
_NAMING = frozenset(
    "about regarding concerning called named titled labelled labeled entitled mentioning covering".split()
)
_ABOUT = frozenset("for on with about regarding concerning".split())
_COPULAS = frozenset("is are was were has have had been be got still not being yet already just that's".split())
_SPEAKERS = frozenset("we i you they he she".split())
_RELATIVES = frozenset("that which who where".split())


def read_clause(tokens: Sequence[Token], at: int, parts: Parts) -> int:
    """Take in what stands behind a head and says which ones: "that failed", "we just created", "about login"."""
    for _ in range(3):
        step = (
            _read_state_clause(tokens, at, parts)
            or _read_happening_clause(tokens, at, parts)
            or _read_list(tokens, at, parts)
            or _read_topic(tokens, at, parts)
            or _read_earlier(tokens, at, parts)
        )
        if not step:
            break
        at += step
    return at


def _read_state_clause(tokens: Sequence[Token], at: int, parts: Parts) -> int:
    place = at + (low(tokens, at) in _RELATIVES)
    led = place > at or low(tokens, at) in ADVERBS or low(tokens, at) == "not"
    negated = False
    while low(tokens, place) in _COPULAS:
        negated |= low(tokens, place) == "not"
        place += 1
    word = low(tokens, place)
    if word in ("left", "over", "remaining") and (parts.has_head or parts.count):
        parts.selectors.add(Form.REST)
        return place + 1 - at
    if word in STATUSES and not parts.statuses and (led or (place == at and word in _BEHIND)):
        statuses = STATUSES[word]
        parts.statuses = tuple(s for s in STATUSES["open"] if s not in statuses) if negated else statuses
        return place + 1 - at
    return 0


_BEHIND = frozenset("in-progress on-hold blocked failed pending open not-started not-done unfinished".split())


def _read_happening_clause(tokens: Sequence[Token], at: int, parts: Parts) -> int:
    place = at + (low(tokens, at) in _RELATIVES)
    has_speaker = low(tokens, place) in _SPEAKERS
    place += has_speaker
    while low(tokens, place) in ADVERBS or low(tokens, place) in (
        "was",
        "were",
        "have",
        "had",
        "has",
        "been",
        "first",
        "last",
        "'ve",
    ):
        place += 1
    word = low(tokens, place)
    if word in ("talked", "spoke", "looked", "worked"):
        has_speaker = has_speaker and low(tokens, place + 1) in ("about", "at", "on", "of")
        word, place = ("mentioned" if word != "worked" else "started"), place + 1
    is_told = (
        place == at
        and (parts.is_selective or parts.many)
        and word in ("created", "added")
        and not is_plain(tokens, at + 1)
    )
    if (
        not has_speaker
        and not is_told
        and (place == at or tokens[place - 1].low not in ADVERBS | {"was", "were", "last", "first"})
    ):
        return 0
    if word in HAPPENINGS:
        parts.happening = HAPPENINGS[word]
    elif word in STATUSES:
        parts.statuses = STATUSES[word]
    else:
        return 0
    place += 1
    while low(tokens, place) in ADVERBS or low(tokens, place) in ("now", "before", "ago", "last"):
        place += 1
    return place - at


def _read_topic(tokens: Sequence[Token], at: int, parts: Parts) -> int:
    word = low(tokens, at)
    place = at
    if word in _RELATIVES and not parts.words:
        place += 1
        parts.loose = True
        while low(tokens, place) in _COPULAS or low(tokens, place) in (
            "deals",
            "says",
            "mentions",
            "about",
            "with",
            "to",
        ):
            place += 1
    elif word in _NAMING:
        place += 1
    elif word in _ABOUT and parts.has_head and not parts.is_modified and parts.many is False:
        place += 1
        parts.loose = True
    elif word == "dealing" or (word == "to" and low(tokens, at + 1) == "do"):
        place += 2 + (word == "to")
    elif not parts.kind or parts.is_modified or parts.many or place >= len(tokens):
        return 0
    elif is_plain(tokens, place) and not is_head(tokens, place):
        parts.loose = True  # "story catering"
    elif not tokens[place].is_quoted:
        return 0
    return _read_topic_words(tokens, at, place, parts)


def _read_topic_words(tokens: Sequence[Token], at: int, place: int, parts: Parts) -> int:
    place += low(tokens, place) in ("the", "a", "an", "our")
    begin, found = place, list[str]()
    while place < len(tokens) and len(found) < _MAX_WORDS:
        if tokens[place].is_quoted:
            found += tokens[place].low.split()
        elif (is_plain(tokens, place) and not (is_head(tokens, place) and place == begin)) or (
            place > begin and low(tokens, place) in ("in", "up", "out", "off")
        ):
            found.append(low(tokens, place))
        else:
            break
        place += 1
    if not found or (is_head(tokens, place - 1) and low(tokens, at) in _ABOUT and low(tokens, at) != "about"):
        return 0  # "the tasks for the login story" tells an owner
    for each in found:
        parts.add_word(each)
    return place - at


def _read_list(tokens: Sequence[Token], at: int, parts: Parts) -> int:
    """Read "on that list", "from the list", "above": what was shown."""
    place = at + 1
    if low(tokens, at) not in ("in", "on", "from", "of"):
        return 0
    place += low(tokens, place) in ("the", "that", "this", "your")
    if low(tokens, place) not in ("list", "listing") or is_head(tokens, place + 1):
        return 0
    parts.happening = Happening.LISTED
    return place + 1 - at


def _read_earlier(tokens: Sequence[Token], at: int, parts: Parts) -> int:
    """Read "the one before", "the task from earlier": what was spoken of before the newest."""
    if not parts.has_head:
        return 0
    place = at + (low(tokens, at) == "from")
    if low(tokens, place) in ("before", "earlier"):
        after = low(tokens, place + 1)
        if not after or after in ("that", "this", "it", ".", ",", "?", "!", "please", "to", "as", "now", "and"):
            parts.selectors.add(Form.SAME if Form.SAME in parts.selectors else Form.PREVIOUS)
            return place + 1 + (after in ("that", "this", "it")) - at
    return 0


def read_as_before(tokens: Sequence[Token], at: int) -> int:
    """Give the end of "as before", "again", "like last time"; the place itself where none of it stands there."""
    at += low(tokens, at) in ("as", "like", "from")
    if low(tokens, at) == "the" and low(tokens, at + 1) in ("last", "previous"):
        at += 1
    if low(tokens, at) in ("before", "again", "earlier", "previously"):
        return at + 1
    if low(tokens, at) in ("last", "previous") and low(tokens, at + 1) in ("time", "one", "ones"):
        return at + 2
    return at

"""What stands behind a noun phrase's head and says which ones: "that failed", "we just created", "about login"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchestra_mem.core.language.mentions import Happening
from orchestra_mem.core.language.references.phrase_words import (
    QUALITIES,
    becomes,
    first_command,
    is_head,
    is_plain,
    low,
)
from orchestra_mem.core.language.references.phrases import Form, Parts
from orchestra_mem.core.language.references.words import ADVERBS, HAPPENINGS, HEADS, NUMBERS, STATUSES, Token
from orchestra_mem.core.text import stem

_MAX_WORDS = 8
_NAMING = frozenset(
    "about regarding concerning called named titled labelled labeled entitled mentioning covering".split()
)
_NAMING_HEADS = HEADS - {"one"}  # "the card layout"
_ABOUT = frozenset("for on in at from with about regarding concerning".split())
_COPULAS = frozenset(
    "is are was were has have had been be got still being yet already just that's keeps kept keep".split()
)
_NEGATIONS = frozenset("not isn't aren't wasn't weren't hasn't haven't isnt arent wasnt werent hasnt havent".split())
_SPEAKERS = frozenset("we i you they he she".split())
_ANYBODY = frozenset("nobody somebody someone everyone everybody anyone people customers users".split())
_TELLING = frozenset("note comment tell log record decide report write remember".split())
_SHOWING = _TELLING | frozenset("show list see check find explain describe print display view ask open".split())
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
            or _read_unknown(tokens, at, parts)
        )
        if not step:
            break
        at += step
    return at


def read_free_clause(tokens: Sequence[Token], at: int) -> tuple[Parts, int] | None:
    """Read "what failed" of "retry what failed"; None where it is asked for, or none that can be read begins."""
    verb = first_command(tokens)
    if low(tokens, at) not in ("what", "whatever", "whichever") or at - 1 != verb or low(tokens, verb) in _SHOWING:
        return None
    parts = Parts(determiner="the")
    end = read_clause([*tokens[:at], replace(tokens[at], low="that"), *tokens[at + 1 :]], at, parts)
    return (parts, end) if (parts.statuses or parts.happening) and not parts.words else None


def _read_state_clause(tokens: Sequence[Token], at: int, parts: Parts) -> int:
    place = at + (low(tokens, at) in _RELATIVES)
    led = place > at or low(tokens, at) in ADVERBS or low(tokens, at) in _NEGATIONS
    negated = False
    while low(tokens, place) in _COPULAS | _NEGATIONS:
        negated |= low(tokens, place) in _NEGATIONS
        place += 1
    word = low(tokens, place)
    if negated and f"not-{word}" in STATUSES:
        word, negated = f"not-{word}", False
    if word in ("left", "over", "remaining") and (parts.has_head or parts.count):
        parts.selectors.add(Form.REST)
        return place + 1 - at
    if (
        word in STATUSES
        and not parts.statuses
        and (led or (place == at and word in _BEHIND and not _is_predicate(tokens, at)))
    ):
        statuses = STATUSES[word]
        parts.statuses = tuple(s for s in STATUSES["open"] if s not in statuses) if negated else statuses
        return place + 1 - at
    return 0


def _is_predicate(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a status is what is asked or made of the item: "is this story blocked?", "put it on hold"."""
    return becomes(tokens, at) or any(token.low in ("is", "are", "was", "were") for token in tokens[:at])


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
    if stem(word) in ("talk", "speak", "spoke", "look", "work"):
        has_speaker = has_speaker and low(tokens, place + 1) in ("about", "at", "on", "of")
        word, place = ("mentioned" if stem(word) != "work" else "started"), place + 1
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
    if low(tokens, place) == "first" and parts.position is None and first_command(tokens) < 0:
        parts.position = 1  # "the epic we made first", but not "do the one we added first"
        place += 1
    return place - at


def _read_topic(tokens: Sequence[Token], at: int, parts: Parts) -> int:
    word = low(tokens, at)
    place = at
    if word in _RELATIVES and not parts.words:
        place += 1
        while low(tokens, place) in _COPULAS or low(tokens, place) in (
            "deals",
            "says",
            "mentions",
            "about",
            "with",
            "to",
        ):
            place += 1
        place += is_plain(tokens, place) and is_plain(tokens, place + 1)  # the clause's verb: "that handles login"
    elif word in _NAMING:
        place += 1
    elif word in _ABOUT and parts.has_head and not (parts.words or parts.is_selective) and parts.many is False:
        place += 1
        parts.loose = parts.kind is not None or parts.is_modified
    elif word == "dealing" or (word == "to" and low(tokens, at + 1) == "do"):
        place += 2 + (word == "to")
    elif (
        not (parts.kind or low(tokens, at - 1) in _NAMING_HEADS)
        or parts.is_modified
        or parts.many
        or place >= len(tokens)
    ):
        return 0
    elif is_plain(tokens, place) and not is_head(tokens, place):
        parts.loose = not (parts.determiner == "the" and _is_clause(tokens, place))  # "story catering"
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


def _read_unknown(tokens: Sequence[Token], at: int, parts: Parts) -> int:
    """Take in a clause that says which one is meant in words that name nothing: "the one Kim wanted".

    Read as a description it fits no title, so that a question comes.
    """
    is_relative = low(tokens, at) in _RELATIVES and low(tokens, first_command(tokens)) not in _TELLING
    if (
        parts.words
        or parts.happening
        or parts.statuses
        or not (is_relative or (parts.determiner == "the" and _is_clause(tokens, at)))
    ):
        return 0
    end = at + 1
    while end < len(tokens) and tokens[end].is_word and low(tokens, end) not in ("and", "but", "to", "please"):
        end += 1
    parts.words = [[token.low for token in tokens[at:end]]]
    return end - at


def _is_clause(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a subject and its verb begin at a place: "Kim wanted", "we need"."""
    if at + 1 >= len(tokens) or not tokens[at + 1].is_word or low(tokens, at + 1) in ("mean", "meant", "think"):
        return False
    is_name = tokens[at].is_word and tokens[at].text[0].isupper()
    is_verb = is_plain(tokens, at + 1) or low(tokens, at + 1) in ("is", "was", "has", "had", "does", "did")
    return low(tokens, at) in _SPEAKERS | _ANYBODY or (is_name and is_verb)


def read_same(tokens: Sequence[Token], at: int) -> tuple[bool, int] | None:
    """Read "same as before", "the same again", "as before": whether it refers, and its end; None where none begins.

    What is done in the same way, or by the same person, does not.
    """
    begin = at
    at += low(tokens, at) == "the"
    if low(tokens, at) == "same" and low(tokens, at + 1) == "thing":
        return False, at + 2
    if low(tokens, at) == "same" and not is_head(tokens, at + 1):
        at += 1
        if low(tokens, at) in NUMBERS and low(tokens, at) != "one":
            return None
        if low(tokens, at) in ("for", "with", "to", "on") or is_plain(tokens, at):
            return False, at + (low(tokens, at) in QUALITIES)
    elif begin != at or low(tokens, at) not in ("as", "like") or low(tokens, at + 1) not in ("before", "last"):
        return None
    end = read_as_before(tokens, at)
    return low(tokens, end) not in ("for", "with", "to"), end


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

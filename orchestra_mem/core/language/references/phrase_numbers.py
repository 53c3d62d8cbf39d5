"""Numbers in a line: items named by theirs ("stories 10, 11 and 12", "#10-#12"), and how many are new ("3 stories")."""

from __future__ import annotations

from collections.abc import Sequence

from orchestra_mem.core.language.references.phrase_words import is_head, is_plain, low
from orchestra_mem.core.language.references.words import (
    ALL_KINDS,
    DETERMINERS,
    INDEFINITE,
    NUMBERS,
    SINGULAR_PRONOUNS,
    Token,
)

_RANGES = frozenset("- – — … through thru till until".split())
_AUXILIARIES = frozenset("do does did has have".split())
_MAX_RANGE = 100
_MIN_SPELT = 13  # smaller ones in letters are amounts: "start two"


def number_at(tokens: Sequence[Token], at: int, *, verb: int, named: bool, begin: int) -> int | None:
    """Give the number at a place, if it is one of an item: `#12`, behind a kind, or right behind the verb."""
    if at >= len(tokens):
        return None
    token = tokens[at]
    if token.number is not None:
        return token.number
    if named:
        if token.low == "one" and begin < at - 1:
            return None  # "the epic one"
        return token.digits if token.digits is not None else NUMBERS.get(token.low)
    value = token.digits if token.digits is not None else NUMBERS.get(token.low, 0)
    behind_verb = at == begin and at - 1 == verb >= 0
    is_amount = token.digits is None and value < _MIN_SPELT
    is_alone = low(tokens, at + 1) in _RANGES or not (is_plain(tokens, at + 1) or is_head(tokens, at + 1))
    if is_amount or not behind_verb or not is_alone:
        return None
    return value


def more_numbers(tokens: Sequence[Token], at: int, ids: list[int], *, verb: int, plain: bool) -> tuple[list[int], int]:
    """Take in "and 12", ", #13", "-#15"."""
    end = at
    while at < len(tokens):
        ranges = tokens[at].low in _RANGES
        joined = 0
        while low(tokens, at) in (",", "and", "&", "+", "plus") or (ranges and not joined):
            at += 1
            joined += 1
            if joined > 2:
                break
        if low(tokens, at) in ALL_KINDS and joined and at + 1 < len(tokens) and not ranges:
            if tokens[at + 1].number is None and tokens[at + 1].digits is None:
                break
            at += 1
            plain = True
        if not joined or at >= len(tokens):
            break
        token = tokens[at]
        plain_ok = plain or verb >= 0
        value = token.number if token.number is not None else token.digits if plain_ok else None
        if value is None and plain:
            value = NUMBERS.get(token.low)
        if value is None or (token.number is None and (is_plain(tokens, at + 1) and not tokens[at + 1].digits)):
            break
        ids += range(ids[-1] + 1, value + 1)[:_MAX_RANGE] if ranges else [value]
        at += 1
        end = at
    return list(dict.fromkeys(ids)), end


def _is_asked_of(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether what is asked for is of something else: "which tasks does it have", "what story is that in"."""
    copula = low(tokens, at) in ("is", "are", "was", "were")
    return low(tokens, at) in _AUXILIARIES or (copula and low(tokens, at + 1) in DETERMINERS | SINGULAR_PRONOUNS)


def read_indefinite(tokens: Sequence[Token], at: int, *, verb: int) -> int:
    """Give the end of what is new or any: "a story", "3 stories", "two more tasks"."""
    word = low(tokens, at)
    counted = tokens[at].digits is not None or (word in NUMBERS and word != "one")
    if verb == at - 1 and low(tokens, at - 1) in ("create", "add") and word in ALL_KINDS:
        return at + 1 + (at + 1 < len(tokens) and tokens[at + 1].is_quoted)
    if word in ("which", "what") and low(tokens, at + 1) in ALL_KINDS and _is_asked_of(tokens, at + 2):
        return at + 2
    if word not in INDEFINITE and not counted:
        return at
    for place in range(at + 1, at + 5):
        if is_head(tokens, place):
            return place + 1
        if not (is_plain(tokens, place) or low(tokens, place) in INDEFINITE):
            break
    return at + (word in INDEFINITE)

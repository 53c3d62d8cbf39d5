"""How well the words of a phrase name a title: stems, abbreviations, initials, joined words, one wrong letter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from orchestra_mem.core.language.references.words import NTH, NUMBERS, is_one_off, is_swapped
from orchestra_mem.core.text import STOP_WORDS, stem, words

EXACT = 1.0
_ABBREVIATED = 0.9
_MISSPELT = 0.85
_CONTRACTED = 0.7
_LACKING = 0.8  # "sign up" of "Sign the contract"
_MIN_PREFIX = 3
_MIN_CONTRACTED = 3
_MIN_MISSPELT = 4
_MAX_DIGITS = 10
_TITLE_SHARE = 0.45  # of the score is for how much of the title the phrase names
_ADVERBS = frozenset("up in out off on".split())  # "sign up", "log in"
_FILLERS = frozenset(
    "epic story task subtask milestone one ones thing things stuff part item items ticket issue problem work".split()
)


@lru_cache(maxsize=4_096)
def title_words(title: str) -> tuple[str, ...]:
    """List the words of a title in lower case, without function words unless it has nothing else."""
    found = _whole(title)
    return tuple(word for word in found if word not in STOP_WORDS) or found


@lru_cache(maxsize=4_096)
def _whole(title: str) -> tuple[str, ...]:
    return tuple(words(title))


def match(phrase: Sequence[str], title: str) -> float:
    """Tell how well a phrase names a title, 0 to 1: 0 where a word of it is nowhere in the title.

    A phrase that names all of the title scores higher than one that names a part.
    """
    named: Sequence[str] = _content(tuple(phrase))
    present = title_words(title)
    if not named or not present:
        return 0.0
    whole = _whole(title)
    initials = _initials(title)
    joined = _joined_score(named, whole)
    lacking = 0
    if not joined:
        plain = [word for word in named if word not in _ADVERBS or word in whole] or named
        lacking, named = len(named) - len(plain), plain
    scores = [_word_score(word, present, whole, initials) for word in named]
    if not all(scores) and not joined:
        return 0.0
    said = max(sum(scores) / len(scores) if all(scores) else 0.0, joined)
    share = min(1.0, _covered(named, present, initials) / len(present))
    return said * (1 - _TITLE_SHARE + _TITLE_SHARE * share) * (_LACKING if lacking else 1.0)


@lru_cache(maxsize=4_096)
def _content(phrase: tuple[str, ...]) -> tuple[str, ...]:
    split = [word.replace("-", "") if "-" in word else (words(word) or [word])[0] for word in phrase]
    found = [word for word in split if word not in STOP_WORDS or word in _ADVERBS]
    kept = [word for word in found if word not in _FILLERS]
    return tuple(kept or found or split)


def _word_score(word: str, present: Sequence[str], whole: Sequence[str], initials: str) -> float:
    best = max((_alike(word, other) for other in (present if word not in _ADVERBS else whole)), default=0.0)
    if best < _ABBREVIATED and (_is_initials(word, initials) or any(a + b == word for a, b in pairwise(whole))):
        return _ABBREVIATED
    return best


@lru_cache(maxsize=16_384)
def _alike(word: str, other: str) -> float:
    if word == other or stem(word) == stem(other) or (numeral(word) or "") == numeral(other):
        return EXACT
    short, long = sorted((word, other), key=len)
    if len(short) >= _MIN_PREFIX and long.startswith(short) and short.isalpha() and _is_abbreviation(short, long):
        return _ABBREVIATED
    if len(short) >= _MIN_MISSPELT and word.isalpha() and other.isalpha() and is_one_off(word, other):
        return _MISSPELT
    if (
        len(word) >= _MIN_MISSPELT
        and len(other) > len(word)
        and word.isalpha()
        and is_swapped(word, other[: len(word)])
    ):
        return _MISSPELT
    is_contracted = len(word) >= _MIN_CONTRACTED - (word[-1:] == "b" or word[-1:] == "i") and _is_contraction(
        word, other
    )
    return _CONTRACTED if is_contracted else 0.0


def numeral(word: str) -> int | None:
    """Give the number that a word writes: "13", "13th", "thirteen", "thirteenth"."""
    digits = word.rstrip("stndrh")
    return int(digits) if digits.isdecimal() and len(digits) < _MAX_DIGITS else NUMBERS.get(word) or NTH.get(word)


def _is_abbreviation(short: str, long: str) -> bool:
    """Tell whether a beginning is a shortening and not a word that only begins alike: "auth", not "log" of "logout"."""
    return len(long) - len(short) >= 2 or long.endswith("s")


_VOWELS = frozenset("aeiouy")


def _is_contraction(word: str, other: str) -> bool:
    """Tell whether a word is another one with letters left out, mostly vowels: "pwd", "mgmt", "db"; or "i18n"."""
    if len(word) >= len(other) - 1 or word[0] != other[0]:
        return False
    if word[1:-1].isdigit():
        return word[-1] == other[-1] and int(word[1:-1]) == len(other) - 2
    letters = iter(other)
    return not set(word[1:]) & _VOWELS and all(letter in letters for letter in word)


@lru_cache(maxsize=4_096)
def _initials(title: str) -> str:
    return "".join(word[0] for word in words(title.replace("-", " ").replace("/", " ")))


def _is_initials(word: str, initials: str) -> bool:
    return 2 <= len(word) <= 6 and word in initials and not (len(word) == 2 and len(initials) > 3)


def _joined_score(named: Sequence[str], whole: Sequence[str]) -> float:
    """Score a phrase whose words, written as one, are a word of the title: "sign up", "log-in"."""
    if len(named) < 2:
        return 0.0
    together = {"".join(named), "".join(map(stem, named))}
    return _ABBREVIATED if together & {*whole, *map(stem, whole)} else 0.0


def _covered(named: Sequence[str], present: Sequence[str], initials: str) -> int:
    by_initials = max((len(word) for word in named if _is_initials(word, initials)), default=0)
    together = {"".join(named), "".join(map(stem, named))}
    return max(by_initials, sum(any(_alike(word, other) for word in named) or other in together for other in present))

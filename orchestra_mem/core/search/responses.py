"""Decide whether a question means the same as an earlier one, so that the earlier answer may be returned.

Vectors alone cannot decide this: with a table of word vectors, "who deployed the shop" and "when was the shop deployed"
have a cosine of 0.93, "task 12" and "task 13" as well. So the words that change the answer are compared as well.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from difflib import SequenceMatcher
from enum import StrEnum

from orchestra_mem.core.search.echoes import plain_words
from orchestra_mem.core.search.terms import exact_names
from orchestra_mem.core.text import content_stems
from orchestra_mem.search_types import EmbeddingModel, Vector


class ResponseKind(StrEnum):
    """The source of an answer, which determines its lifetime in the cache."""

    FACTUAL = "factual"
    TOOL = "tool"
    GREETING = "greeting"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResponse:
    """A cached answer; `facts` and `system` are hashes. `vector` is None if the question could not be embedded."""

    question: str
    answer: str
    kind: ResponseKind
    facts: str
    system: str
    created: datetime
    expires: datetime
    model: EmbeddingModel | None = None
    vector: Vector | None = field(default=None, compare=False)
    id: int = 0


# Words that change a question's answer, in classes of words with the same effect.
_TURNING = {
    word: name
    for name, words in {
        "who": "who whom whose",
        "when": "when",
        "where": "where",
        "why": "why",
        "how": "how",
        "not": "not never no none nobody nothing cannot without neither nor except unless un",
        "before": "before until earlier previously",
        "after": "after since later afterwards",
        "all": "all every always each",
        "first": "first oldest",
        "last": "last latest newest",
        "more": "more most larger largest higher highest",
        "less": "less least fewer smaller smallest lower lowest",
        "on": "on enable enabled",
        "off": "off disable disabled",
    }.items()
    for word in words.split()
}
# Stems of politeness and filler words, which do not change a question.
_ASIDE = frozenset(content_stems("tell explain remind say please know want ask help again just really actually"))
_NUMBER = re.compile(r"\d[\d.,:/-]*")
_SIGNS = frozenset("#%&*/\\@")
_FLAG = re.compile(r"(?<!\S)-+\w+")
_LIKE_FORMS = 0.75
_OF = re.compile(r"\bthe (\w+) (?:of|for) (?:(?:the|an?) )?(\w+)")
_NOT = re.compile(r"n['’]t\b", re.IGNORECASE)
_NAME = re.compile(r"(?<=[\w,;:)] )[^\W\d_][\w'’-]*")


def difference(one: str, other: str) -> str:
    """Name a difference between two questions that may change the answer, such as `numbers`; empty if none is found.

    Strict on purpose: asking the model again costs seconds, the answer to a different question costs trust.
    """
    for name, found in (("numbers", _numbers), ("signs", _signs)):
        if found(one) != found(other):
            return name
    if plain_words(one) == plain_words(other):
        return ""
    if set(exact_names(one)) != set(exact_names(other)):
        return "names"
    if _turns(one) != _turns(other):
        return "words such as who, not, before"
    first, second = ([stem for stem in content_stems(text) if stem not in _ASIDE] for text in (one, other))
    ours, theirs = set(first) - set(second), set(second) - set(first)
    # Vectors cannot distinguish left from right, or build from nightly build: only the form of one word may differ.
    are_forms = len(ours) == len(theirs) == 1 and _are_forms(*ours, *theirs)
    if not first or ((ours or theirs) and not are_forms):
        return "words"
    names = [word for text in (one, other) for word in _NAME.findall(text) if word[0].isupper()]
    if (ours | theirs) & {stem for word in names for stem in content_stems(word)}:
        return "names"
    before, after = _in_order(one, {}), _in_order(other, dict(zip(theirs, ours, strict=True)))
    is_same = [word for word in before if word in after] == [word for word in after if word in before]
    return "" if is_same else "the order of words"


def _in_order(text: str, forms: Mapping[str, str]) -> dict[str, None]:
    """Return the stems and stop words of a question in order, with `the deadline for a task` as `task deadline`."""
    words = _OF.sub(r"the \2 \1", plain_words(text)).split()
    return dict.fromkeys(forms.get(stem, stem) for word in words for stem in content_stems(word) or [word])


def _are_forms(one: str, other: str) -> bool:
    """Check whether two stems look like forms of the same word, such as choose and chose."""
    return one[:2] == other[:2] and SequenceMatcher(None, one, other, autojunk=False).ratio() >= _LIKE_FORMS


def _numbers(text: str) -> list[str]:
    return sorted(number.rstrip(".,:/-") for number in _NUMBER.findall(text))


def _signs(text: str) -> list[str]:
    """Return the symbols and flags of a text, as in C# and C++, < and >, -5, --force."""
    signs = [char for char in text if char in _SIGNS or unicodedata.category(char) in ("Sm", "Sc", "So")]
    return [*signs, *_FLAG.findall(text)]


def _turns(text: str) -> frozenset[str]:
    turns = {_TURNING[word] for word in plain_words(text).split() if word in _TURNING}
    return frozenset(turns | ({"not"} if _NOT.search(text) else set()))

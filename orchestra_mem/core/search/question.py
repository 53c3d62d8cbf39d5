"""Parse a query beyond its words: detect whether it asks for a time, and find the agents and periods that it names.

A period affects ranking but never excludes anything: an event of May may have been recorded in June. Periods are found
in English only; of queries in other languages, words without content are only searched for, not compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from orchestra_mem.core.periods import Period, periods_in
from orchestra_mem.core.search.terms import MAX_QUERY_CHARS, content_words, distinct_words, fold, read_query
from orchestra_mem.search_types import Terms

MAX_QUESTION_WORDS = 32

_ASKS_WHEN = re.compile(
    r"^\W*when\b|\b(?:when (?:did|do|does|was|were|is|are|will|has|have|had|should|can|could)|since when|how long"
    r"|how (?:recently|soon)|(?:what|which) (?:date|day|week|month|year|time))\b",
    re.IGNORECASE,
)
_LEAST, _LEAST_SHARE = 2, 0.3  # how many of a query's content words, and which share, must be stop words
_SCRIPTS_WITHOUT_SPACES = frozenset({"chinese", "japanese", "korean"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A parsed query.

    `terms` are for the keyword index, `words` the distinct content words for late interaction, at most 32. `periods`
    are the periods that the query names. `asks_when` is true if the answer is a time.
    """

    text: str
    terms: Terms
    words: tuple[str, ...]
    periods: tuple[Period, ...]
    asks_when: bool


def read_question(query: str, now: datetime) -> Question:
    """Parse a query, which may be any string; "last week" and the like are relative to `now`."""
    query = query[:MAX_QUERY_CHARS]
    return Question(
        text=query,
        terms=read_query(query),
        words=tuple(_telling_words(query)[:MAX_QUESTION_WORDS]),
        periods=periods_in(query, now),
        asks_when=_ASKS_WHEN.search(query) is not None,
    )


def _telling_words(query: str) -> list[str]:
    """Return the distinct content words of a query, without stop words of its language, the one with most of them."""
    every, words = distinct_words(query), content_words(query)
    stops = max((stops.intersection(every) for stops in _languages()), key=len)
    telling = [word for word in words if word not in stops]
    is_english = len(stops) <= len(every) - len(words)
    few = len(words) - len(telling) < max(_LEAST, _LEAST_SHARE * len(words))
    return words if is_english or few or not telling else telling


@cache
def _languages() -> tuple[frozenset[str], ...]:
    """Return the stop words of each language but English."""
    from stop_words import AVAILABLE_LANGUAGES, get_stop_words  # reads files

    others = [each for each in AVAILABLE_LANGUAGES if each not in {"english", *_SCRIPTS_WITHOUT_SPACES}]
    return tuple(frozenset(fold(" ".join(get_stop_words(each, cache=False))).split()) for each in others)

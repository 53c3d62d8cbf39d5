"""Find the words of a query that carry no content in its language, for languages other than English."""

from __future__ import annotations

from functools import cache

from orchestra_mem.core.search.terms import content_words, distinct_words, fold

_LEAST, _LEAST_SHARE = 2, 0.3  # how many of a query's content words, and which share, must be stop words
_SCRIPTS_WITHOUT_SPACES = frozenset({"chinese", "japanese", "korean"})


def telling_words(query: str) -> list[str]:
    """Return the distinct content words of a query, without stop words of its language, the one with most of them."""
    every, words = distinct_words(query), content_words(query)
    stops = max((stops.intersection(every) for stops in _languages()), key=len)
    telling = [word for word in words if word not in stops]
    is_english = len(stops) <= len(every) - len(words)
    few = len(words) - len(telling) < max(_LEAST, _LEAST_SHARE * len(words))
    return words if is_english or few or not telling else telling


@cache
def _languages() -> tuple[frozenset[str], ...]:
    from stop_words import AVAILABLE_LANGUAGES, get_stop_words  # reads files

    others = [each for each in AVAILABLE_LANGUAGES if each not in {"english", *_SCRIPTS_WITHOUT_SPACES}]
    return tuple(frozenset(fold(" ".join(get_stop_words(each, cache=False))).split()) for each in others)

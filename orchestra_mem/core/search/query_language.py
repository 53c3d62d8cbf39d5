"""Find the words of a query that carry no content in its language, for languages other than English."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from orchestra_mem.core.search.terms import fold

_LEAST, _LEAST_SHARE = 2, 0.3  # how many words of a query, and which share, must be stop words of its language
_SCRIPTS_WITHOUT_SPACES = frozenset({"chinese", "japanese", "korean"})


def stop_words_of(words: Sequence[str]) -> frozenset[str]:
    """Return the words of a query that are stop words of its language, the one with most of them.

    Args:
        words: The query's content words, folded; English stop words may be missing.
    """
    found = max((stops.intersection(words) for stops in _languages()), key=len)
    return found if len(found) >= max(_LEAST, _LEAST_SHARE * len(words)) else frozenset()


@cache
def _languages() -> tuple[frozenset[str], ...]:
    from stop_words import AVAILABLE_LANGUAGES, get_stop_words  # reads files

    others = [each for each in AVAILABLE_LANGUAGES if each not in {"english", *_SCRIPTS_WITHOUT_SPACES}]
    return tuple(frozenset(fold(" ".join(get_stop_words(each, cache=False))).split()) for each in others)

"""Tell whether two facts are in the same words, wherever a repetition matters."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from orchestra_mem.core.fact_labels import without_label
from orchestra_mem.core.text import squeeze


@lru_cache(maxsize=4_096)
def as_said(text: str) -> str:
    """Return what all texts in the same words have in common: not case, white space, final stop or a label of the kind.

    Such a label is `Decision:` or `TODO:`. Full-width signs, and letters with accents apart, are the same as others.
    """
    return without_label(unicodedata.normalize("NFKC", squeeze(text)).casefold()).rstrip(".!。 ")


def in_same_words(text: str, other: str) -> bool:
    """Check whether one text repeats the other."""
    return as_said(text) == as_said(other)

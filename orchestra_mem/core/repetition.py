"""Tell whether two facts are in the same words, wherever a repetition matters."""

from __future__ import annotations

import re
from functools import lru_cache

from orchestra_mem.core.text import squeeze
from orchestra_mem.types import MustKeepKind

_LABEL = re.compile(rf"(?:{'|'.join(MustKeepKind)}|rule|todo|next step)s?: +(?=\S)", re.IGNORECASE)


@lru_cache(maxsize=4_096)
def as_said(text: str) -> str:
    """Return what all texts in the same words have in common: not case, white space, final stop or a label of the kind.

    Such a label is `Decision:` or `TODO:`.
    """
    plain = squeeze(text)
    label = _LABEL.match(plain)
    return plain[label.end() if label else 0 :].rstrip(".!。 ").casefold()


def in_same_words(text: str, other: str) -> bool:
    """Check whether one text repeats the other."""
    return as_said(text) == as_said(other)

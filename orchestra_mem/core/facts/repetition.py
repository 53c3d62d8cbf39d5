"""Tell whether two facts are in the same words, wherever a repetition matters."""

from __future__ import annotations

import re
from functools import lru_cache

from orchestra_mem.core.documents.markdown import as_typed
from orchestra_mem.core.summaries.kept import KIND_LABELS
from orchestra_mem.core.text import squeeze

_LABEL = re.compile(rf"(?:{KIND_LABELS}|rule|todo|next step)s?: +(?=\S)", re.IGNORECASE)


@lru_cache(maxsize=4_096)
def as_said(text: str) -> str:
    """Return what all texts in the same words have in common.

    Case, white space, an editor's typography, a final stop, and a label such as `Decision:` do not count.
    """
    plain = squeeze(as_typed(text))
    label = _LABEL.match(plain)
    return plain[label.end() if label else 0 :].rstrip(".!。 ").casefold()


def in_same_words(text: str, other: str) -> bool:
    """Check whether one text repeats the other."""
    return as_said(text) == as_said(other)

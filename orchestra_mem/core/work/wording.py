"""Titles and texts as they may be kept, and lists as they are said."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence

from orchestra_mem.errors import InvalidChangeError
from orchestra_mem.work_types import WorkItem

MAX_TITLE_CHARS = 500
PRIORITIES = range(1, 6)
NAMED_AT_MOST = 5
# Control characters but tab and line feed, and lone surrogates: no document and no terminal can hold them.
_UNKEEPABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

_UNSEEN = ("Cf", "Mn", "Zs")  # format characters, marks on nothing, spaces


def kept_text(text: str) -> str:
    """Return a text without control characters, its lines ending in line feeds, without white space around it."""
    return _UNKEEPABLE.sub("", re.sub("\r\n?|[\x0b\x0c\x85\u2028\u2029]", "\n", text)).strip()


def kept_title(title: str) -> str:
    """Return a title in one line.

    Raises:
        InvalidChangeError: nothing is left of it, or it is too long.
    """
    kept = " ".join(kept_text(title).split())
    if all(unicodedata.category(each) in _UNSEEN for each in kept):
        raise InvalidChangeError(f"{title[:40]!r} is no title; give it at least one visible character")
    if len(kept) > MAX_TITLE_CHARS:
        raise InvalidChangeError(
            f"a title of {len(kept):,} characters is too long, {MAX_TITLE_CHARS} are allowed; "
            "put the rest into the description"
        )
    return kept


def folded(text: str) -> str:
    """Return what a text is compared by: upper and lower case alike, however its accents are written."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def search_text(title: str, description: str) -> str:
    """Return what the words of a search are looked for in."""
    return folded(f"{title}\n{description}")


def search_words(text: str) -> tuple[str, ...]:
    """Return the words of a search, each once, as `search_text` has them."""
    return tuple(dict.fromkeys(folded(kept_text(text)).split()))


def either(words: Iterable[str], last: str = "or") -> str:
    """Join words as in `a, b or c`."""
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end


def listed(items: Sequence[WorkItem]) -> str:
    """Name items with their status; of many the first."""
    names = [f"{item.name} ({item.status})" for item in items[:NAMED_AT_MOST]]
    return either([*names, "others"] if len(items) > len(names) else names, "and")


def a(noun: str) -> str:
    """Return a noun behind its article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def arrows(path: Iterable[int], *, new: int = 0) -> str:
    """Return ids along a path, as in `#3 → #5 → #3`; one that is not to be is called `the new one`."""
    return " → ".join("the new one" if each == new else f"#{each}" for each in path)


def kept_name(name: str | None) -> str | None:
    """Return an assignee's name in one line, None where nothing is left of it."""
    return " ".join(kept_text(name or "").split()) or None


def kept_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Acceptance notes, the empty ones left out."""
    return tuple(kept for kept in map(kept_text, notes) if kept)


def checked_priority(priority: int) -> int:
    """Let a priority pass.

    Raises:
        InvalidChangeError: it is not one of 1 to 5.
    """
    if priority not in PRIORITIES:
        raise InvalidChangeError(f"{priority!r} is no priority; it goes from 1 (first) to 5 (last)")
    return int(priority)


def checked_rank(rank: float) -> float:
    """Let a rank pass.

    Raises:
        InvalidChangeError: it is no finite number.
    """
    if not math.isfinite(rank):
        raise InvalidChangeError(f"{rank} is no rank; it is any finite number")
    return float(rank)

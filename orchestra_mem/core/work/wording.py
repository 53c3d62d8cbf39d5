"""Clean and check the fields of work items before they are stored, and format items for messages."""

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
# Control characters except tab and line feed, and lone surrogates: documents and terminals cannot hold them.
_UNKEEPABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

_UNSEEN = ("Cf", "Mn", "Zs")  # Unicode categories: format characters, combining marks, spaces


def kept_text(text: str) -> str:
    """Return a text without control characters and surrounding white space, with line feeds as line breaks."""
    return _UNKEEPABLE.sub("", re.sub("\r\n?|[\x0b\x0c\x85\u2028\u2029]", "\n", text)).strip()


def kept_title(title: str) -> str:
    """Return a title cleaned and joined into one line.

    Raises:
        InvalidChangeError: The title has no visible character, or is longer than `MAX_TITLE_CHARS`.
    """
    kept = " ".join(kept_text(title).split())
    if all(unicodedata.category(each) in _UNSEEN for each in kept):
        raise InvalidChangeError(f"{title[:40]!r} is not a title; give it at least one visible character")
    if len(kept) > MAX_TITLE_CHARS:
        raise InvalidChangeError(
            f"the title has {len(kept):,} characters, at most {MAX_TITLE_CHARS} are allowed; "
            "put the rest into the description"
        )
    return kept


def folded(text: str) -> str:
    """Fold a text for comparisons that ignore case and the encoding of accents."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def search_text(title: str, description: str) -> str:
    """Return an item's folded title and description, as the store searches them."""
    return folded(f"{title}\n{description}")


def search_words(text: str) -> tuple[str, ...]:
    """Return the distinct words of a query, folded like `search_text`."""
    return tuple(dict.fromkeys(folded(kept_text(text)).split()))


def either(words: Iterable[str], last: str = "or") -> str:
    """Join words as in `a, b or c`."""
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end


def listed(items: Sequence[WorkItem]) -> str:
    """Join the names and statuses of items; those beyond the first `NAMED_AT_MOST` become `others`."""
    names = [f"{item.name} ({item.status})" for item in items[:NAMED_AT_MOST]]
    return either([*names, "others"] if len(items) > len(names) else names, "and")


def a(noun: str) -> str:
    """Return a noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def arrows(path: Iterable[int], *, new: int = 0) -> str:
    """Format ids along a path, as in `#3 → #5 → #3`; the id `new` is written as `the new one`."""
    return " → ".join("the new one" if each == new else f"#{each}" for each in path)


def kept_name(name: str | None) -> str | None:
    """Return an assignee's name cleaned and joined into one line, None if nothing remains."""
    return " ".join(kept_text(name or "").split()) or None


def kept_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Return acceptance notes cleaned, without empty ones."""
    return tuple(kept for kept in map(kept_text, notes) if kept)


def checked_priority(priority: int) -> int:
    """Return a priority after checking it.

    Raises:
        InvalidChangeError: The priority is not 1 to 5.
    """
    if priority not in PRIORITIES:
        raise InvalidChangeError(f"priority is {priority!r}: must be 1 (first) to 5 (last)")
    return int(priority)


def checked_rank(rank: float) -> float:
    """Return a rank as a float after checking it.

    Raises:
        InvalidChangeError: The rank is not a finite number.
    """
    if not math.isfinite(rank):
        raise InvalidChangeError(f"rank is {rank}: must be a finite number")
    return float(rank)

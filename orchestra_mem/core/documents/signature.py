"""Read and write, in the front matter of documents, when, by which ledger and in which revision they were written.

Only the copies of documents on several machines have the number of their revision. It shows which text an edit in an
editor that was opened long ago started from. It exists only in the file: reading a document removes it.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from orchestra_mem.core.documents.markdown import FRONT, with_field, without_front_matter

# `written` comes first: editors put their own times into `updated`, but texts of earlier releases have only `updated`.
_WRITTEN = re.compile(r"^(?:written|updated):[ \t]+[\"']?(?P<time>[^\r\n\"'#]*[^\s\"'#])", re.MULTILINE)
NEVER = "never"
"""Time of writing of a document before the first operation."""
_HEAD_CHARS = 2_000
_LEDGER = re.compile(r"^(ledger|writer):[ \t]*[\"']?(\w+)", re.MULTILINE)
# Resolution of the dates in documents.
_MOMENT = timedelta(milliseconds=1)
_STAMP = re.compile(r"^revision: (?P<number>\d{1,18})[ \t]*\r?\n", re.MULTILINE)


class Copy(NamedTuple):
    """Text of one copy of a document. `stamp`: Revision number in its front matter, None if there is none."""

    stamp: int | None
    text: str


def digest(text: str) -> str:
    """Return the SHA-256 of a document's bytes in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def written_at(text: str) -> str:
    """Return the time of writing from a document's front matter; empty if there is none.

    A program that rewrites YAML may quote the time or write it in another form, which is the same time.
    """
    found = _WRITTEN.search(text, 0, _HEAD_CHARS)
    if found is None:
        return ""
    try:
        time = datetime.fromisoformat(found["time"])
    except ValueError:
        return found["time"]
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="milliseconds")


def is_later(text: str, left: str) -> bool:
    """Check whether a text was written later than the last one that the ledger knows.

    An older database has then been put back beside it: what the text says has been changed since.
    """
    time, known = written_at(text), written_at(left)
    return time[:1].isdigit() and (known == NEVER or (known[:1].isdigit() and time > known))


def with_time_of(text: str, other: str) -> str:
    """Return a text with the time of writing of another, if both have one; all other bytes stay."""
    time, front = written_at(other), FRONT.match(text)
    found = _WRITTEN.search(text, 0, min(front.end(), _HEAD_CHARS)) if time and front else None
    return f"{text[: found.start('time')]}{time}{text[found.end('time') :]}" if found else text


def signed(text: str, key: str) -> str:
    """Name a ledger in the front matter of a machine's text; with an empty key, the text stays the same.

    The key stands twice: on top, where git merges it like the lines below, and beside the time of writing, where git
    takes both from one side. So a text that git has merged names two ledgers.
    """
    if not key:
        return text
    return with_field(text.replace("\nupdated: ", f"\nwriter: {key}\nupdated: ", 1), "ledger", key)


def signers(text: str) -> set[str]:
    """Return the keys of the ledgers that a text's front matter names, several if git has merged their texts.

    Among them is "" if the text of an earlier release names its ledger once: it may have been merged.
    """
    front = FRONT.match(text)
    named = _LEDGER.findall(front.group()) if front else []
    keys = {key for _, key in named}
    return keys | {""} if named and all(name == "ledger" for name, _ in named) else keys


def with_front_of(text: str, other: str) -> str:
    """Return a text with the front matter of another."""
    front = FRONT.match(other)
    return f"{front.group() if front else ''}\n{without_front_matter(text)}"


def timeless(text: str) -> list[str]:
    """Return the lines of a text without those that state when it was written."""
    return [line for line in text.splitlines() if not line.startswith(("written: ", "updated: ", "**Last Updated**: "))]


def is_same(text: str, other: str) -> bool:
    """Check whether two texts differ at most in when and by which ledger they were written."""
    return timeless(_LEDGER.sub("", text)) == timeless(_LEDGER.sub("", other))


def with_later_time(text: str, before: str) -> str:
    """Date a new text of the machine later than the text `before`, because the machine recognises its texts by date.

    If the clock stood still or was set back, the new date is one millisecond after the old.
    """
    now = written_at(text)
    try:
        earliest = datetime.fromisoformat(written_at(before)) + _MOMENT
        if datetime.fromisoformat(now) >= earliest:
            return text
    except (ValueError, OverflowError):  # one of the texts has no valid date
        return text
    later = earliest.isoformat(timespec="milliseconds")
    head, _, body = text.partition(f"updated: {now}")
    return f"{head.replace(now, later)}updated: {later}{body}"


def stamped(text: str, number: int) -> str:
    """Insert a revision number as the first field of the front matter; a text without front matter stays the same."""
    return with_field(text, "revision", str(number))


def unstamped(text: str) -> tuple[str, int | None]:
    """Return a text without its revision number, and the number, None if there is none."""
    front = FRONT.match(text)
    found = _STAMP.search(front.group()) if front else None
    if found is None:
        return text, None
    return text[: found.start()] + text[found.end() :], int(found["number"])

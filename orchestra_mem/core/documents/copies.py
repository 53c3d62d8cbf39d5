"""Keep the copies of a document on several machines in step. No I/O.

The front matter of each copy holds the number of its revision. When an editor that was opened long ago saves, this
number shows which text the edit started from. The number exists only in the file: reading a document removes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orchestra_mem.core.documents.conflicts import mark
from orchestra_mem.core.documents.document_merge import ancestor, merge_people, nearest, shared
from orchestra_mem.core.documents.markdown import FRONT, with_field

_STAMP = re.compile(r"^revision: (?P<number>\d{1,18})[ \t]*\r?\n", re.MULTILINE)
_TIME = re.compile(r"^(?P<key>written|updated|\*\*Last Updated\*\*): [^\r\n]*", re.MULTILINE)
_NUMBER = re.compile(r" \([KM]\d+\)|(?<=\] )#\d+ ")


class Copy(NamedTuple):
    """Text of one copy of a document. `stamp`: Revision number in its front matter, None if there is none."""

    stamp: int | None
    text: str


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


def merge_copy(
    held: Sequence[Copy], theirs: str, mine: Copy, *, machines: tuple[str, str], is_later: bool = True
) -> str:
    """Apply an edit that was saved on this machine to the text of another machine.

    If both changed the same lines, those saved later stay and the other's follow in a conflict block.

    Args:
        held: Earlier texts of this machine's copy, oldest first.
        theirs, mine: Current text of the document, and the copy that was saved on this machine.
        machines: Names of this machine and of the other.
        is_later: Whether the copy was saved after the last person's save of the current text.
    """
    known = [copy.text for copy in held if mine.stamp in (copy.stamp, None)]
    said, *texts = _as_in(theirs, mine.text, *known)
    if not texts:
        opened = shared(theirs, said)  # older than all known texts: no line counts as deleted
    else:
        opened = nearest(texts, said) if mine.stamp is None else ancestor(texts, said)
    earlier, later = (theirs, said) if is_later else (said, theirs)
    return mark(merge_people(opened, earlier, later), machines if is_later else machines[::-1])


def _as_in(theirs: str, *texts: str) -> Iterator[str]:
    """Yield texts with times of writing and numbers of facts and items (`K12`, `M4`, `#5`) taken from `theirs`."""
    times = {found["key"]: found[0] for found in _TIME.finditer(theirs)}
    numbered = {_NUMBER.sub("", row): row for row in theirs.split("\n") if _NUMBER.search(row)}
    known = {*_NUMBER.findall(theirs)}
    for text in texts:
        text = _TIME.sub(lambda found: times.get(found["key"], found[0]), text)
        # A number that `theirs` lacks is that of a deleted line, which came back under another.
        yield "\n".join(
            row if known.intersection(_NUMBER.findall(row)) else numbered.get(_NUMBER.sub("", row), row)
            for row in text.split("\n")
        )

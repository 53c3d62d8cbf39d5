"""Keep a document's copies on several machines alike. Pure.

Each copy bears in its front matter the number of the revision that it was brought to: an editor that was opened long
ago saves a text that tells by that number what it was made of. The number is the copy's own: nobody else sees it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orchestra_mem.core.documents.agreement import rebased
from orchestra_mem.core.documents.conflicts import find_conflicts, mark, reject, without_conflicts
from orchestra_mem.core.documents.markdown import FRONT
from orchestra_mem.core.documents.opened import ancestor, nearest
from orchestra_mem.core.documents.owned_lines import shared

_STAMP = re.compile(r"^revision: (?P<number>\d{1,18})[ \t]*\r?\n", re.MULTILINE)
_TIME = re.compile(r"^(?P<key>written|updated|\*\*Last Updated\*\*): [^\r\n]*", re.MULTILINE)
_NUMBER = re.compile(r" \([KM]\d+\)|(?<=\] )#\d+ ")


class Copy(NamedTuple):
    """A document's text as a copy holds it, and the revision in its front matter, None where it bears none."""

    stamp: int | None
    text: str


def stamped(text: str, number: int) -> str:
    """Write a revision's number into a text, above a line like it of a person's; one without front matter stays."""
    front = FRONT.match(text)
    if front is None:
        return text
    line_end, start = "\r\n" if front.group().endswith("\r\n") else "\n", front.start("body")
    return f"{text[:start]}revision: {number}{line_end}{text[start:]}"


def unstamped(text: str) -> tuple[str, int | None]:
    """Take the revision's number out of a text: the text, and the number, None where it has none."""
    front = FRONT.match(text)
    found = _STAMP.search(front.group()) if front else None
    if found is None:
        return text, None
    return text[: found.start()] + text[found.end() :], int(found["number"])


def brought_together(held: Sequence[Copy], theirs: str, mine: Copy, *, machines: tuple[str, str]) -> str:
    """Do to another machine's text what somebody has done to a copy here.

    Where both changed the same lines, this machine's stand and the other's are shown below them in a conflict.

    Args:
        held: what the copy here has held, oldest first.
        theirs: the document as it is by now.
        mine: what was saved here.
        machines: the names of this machine and of the other.
    """
    known = [copy.text for copy in held if mine.stamp in (copy.stamp, None)]
    said, *texts = _as_in(theirs, mine.text, *known)
    if not texts:
        opened = shared(theirs, said)  # of what is older than all that is known nothing is known to be taken out
    else:
        opened = nearest(texts, said) if mine.stamp is None else ancestor(texts, said)
    decided = {block.id for block in find_conflicts(opened)} - {block.id for block in find_conflicts(said)}
    waiting = theirs
    for block in find_conflicts(theirs):
        if block.id in decided:
            waiting = reject(waiting, block.id).text
    merged = rebased(*map(without_conflicts, (opened, theirs, said)))
    return mark(merged, waiting, machines)


def _as_in(theirs: str, *texts: str) -> Iterator[str]:
    """Yield texts with what is the machine's in another: when it was written, and the numbers that lines have got."""
    times = {found["key"]: found[0] for found in _TIME.finditer(theirs)}
    numbered = {_NUMBER.sub("", row): row for row in theirs.split("\n") if _NUMBER.search(row)}
    for text in texts:
        text = _TIME.sub(lambda found: times.get(found["key"], found[0]), text)
        yield "\n".join(numbered.get(row, row) for row in text.split("\n"))

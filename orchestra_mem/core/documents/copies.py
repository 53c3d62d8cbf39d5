"""Keep a document's copies on several machines alike. Pure.

Each copy bears in its front matter the number of the revision that it was brought to: an editor that was opened long
ago saves a text that tells by that number what it was made of. The number is the copy's own: nobody else sees it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestra_mem.core.documents.agreement import rebased
from orchestra_mem.core.documents.conflicts import mark
from orchestra_mem.core.documents.markdown import FRONT
from orchestra_mem.core.documents.opened import ancestor, nearest

_STAMP = re.compile(r"^revision: (?P<number>\d{1,18})[ \t]*\r?\n", re.MULTILINE)
_END = re.compile(r"^---[ \t]*\r?\n?\Z", re.MULTILINE)


def stamped(text: str, number: int) -> str:
    """Write a revision's number into a text; one without front matter stays as it is."""
    text, _ = unstamped(text)
    front = FRONT.match(text)
    if front is None or (end := _END.search(front.group())) is None:
        return text
    line_end = "\r\n" if front.group().endswith("\r\n") else "\n"
    return f"{text[: end.start()]}revision: {number}{line_end}{text[end.start() :]}"


def unstamped(text: str) -> tuple[str, int | None]:
    """Take the revision's number out of a text: the text, and the number, None where it has none."""
    front = FRONT.match(text)
    found = _STAMP.search(front.group()) if front else None
    if found is None:
        return text, None
    return text[: found.start()] + text[found.end() :], int(found["number"])


def brought_together(
    seen: Sequence[tuple[int | None, str]], theirs: str, mine: str, stamp: int | None, *, machines: tuple[str, str]
) -> str:
    """Do to another machine's text what somebody has done to a copy here.

    Where both changed the same lines, this machine's stand and the other's are shown below them in a conflict.

    Args:
        seen: what the copy here has held, oldest first, each with the revision that its file bore; at least one.
        theirs: the document as it is by now.
        mine: what was saved here.
        stamp: the revision in the front matter of that.
        machines: the names of this machine and of the other.
    """
    same = [text for number, text in seen if number == stamp and stamp is not None]
    opened = ancestor(same, mine) if same else nearest([text for _, text in seen], mine)
    return mark(rebased(opened, theirs, mine), machines=machines)

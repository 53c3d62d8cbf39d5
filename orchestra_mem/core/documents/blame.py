"""Track the author and the source operations of each line through the successive texts of a document.

A line has one origin: the author of its current wording. A changed line is a new line. A line that was removed and
comes back belongs to the author who restored it, since a text does not show the lines that it had earlier.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from orchestra_mem.core.documents.alignment import matched_lines, moved_lines, split_lines
from orchestra_mem.core.documents.markdown import split_blocks
from orchestra_mem.core.documents.signature import written_at
from orchestra_mem.types import Author

_NAMES = re.compile(r"(?:\((?!S)|\bSummary (?=S))(?P<kind>op|K|M|S) ?(?P<number>\d{1,18})(?=[),;: ])")


class Writer(StrEnum):
    """Author of a line."""

    PERSON = "person"
    AGENT = "agent"
    COMPACTOR = "compactor"
    MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a line. `operations`: Ranges of operation ids, both ends included, ascending and not adjacent."""

    writer: Writer
    operations: tuple[tuple[int, int], ...] = ()
    time: datetime | None = None


@dataclass(frozen=True, slots=True)
class AddedLine:
    """How a line came into a document: who added it, the text's time of writing ("" if none), the heading above it."""

    author: Author
    time: str
    title: str


def names_in(text: str) -> dict[str, list[int]]:
    """Find the numbers in the machine's lines, ascending, by kind: `(op 7)`, `(K12)`, `(M4)`, `Summary S3`."""
    named = {(found["kind"], int(found["number"])) for found in _NAMES.finditer(text)}
    return {kind: sorted(number for each, number in named if each == kind) for kind in ("op", "K", "M", "S")}


def ranges(operations: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Group operation ids into ranges; see `Origin.operations`."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(operations)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def carry(blame: Sequence[AddedLine], old_text: str, new_text: str, author: Author) -> list[AddedLine]:
    """Return how each line of `author`'s new text came into it; lines that stay or move keep their old `blame`."""
    old, new, time = split_lines(old_text), split_lines(new_text), written_at(new_text)
    kept = dict(matched_lines(old, new))
    came_from = {place: before for before, place in (kept | moved_lines(old, new, kept)).items()}
    return [
        blame[came_from[place]] if place in came_from else AddedLine(author, time, block.title)
        for block in split_blocks(new_text)
        for place in block.rows
    ]

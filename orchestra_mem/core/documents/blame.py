"""Who wrote each line of a document, and from which operations; carried from text to text.

A line has one origin: who wrote it as it stands now. A line that is changed is a new line. One that was taken out and
comes back is written by who brought it back, since a text does not tell what stood in it before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias, TypeVar

from orchestra_mem.core.documents.alignment import matched_lines, moved_lines, split_lines
from orchestra_mem.core.documents.markdown import split_blocks

_NAMES = re.compile(
    r"\((?:op (?P<operation>\d{1,18})|K(?P<fact>\d{1,18})|M(?P<item>\d{1,18}))(?=[),; ])"
    r"|\bSummary S(?P<summary>\d{1,18})\b"
)


class Writer(StrEnum):
    """Who wrote a line."""

    PERSON = "person"
    AGENT = "agent"
    COMPACTOR = "compactor"
    MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a line comes from. `operations` are ranges of operation ids, both ends included, rising and apart."""

    writer: Writer
    operations: tuple[tuple[int, int], ...] = ()
    time: datetime | None = None


Blame: TypeAlias = tuple[Origin, ...]
"""The origin of each line of a text."""
OriginOf: TypeAlias = Callable[[str, str], Origin]
"""Gives the origin of a new line, from its text and the title of the heading above it."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Names:
    """What a text names: operations, must-keeps, summaries and items of the catalog by their numbers, rising."""

    operations: tuple[int, ...] = ()
    facts: tuple[int, ...] = ()
    summaries: tuple[int, ...] = ()
    items: tuple[int, ...] = ()


def names_in(text: str) -> Names:
    """Find the numbers that the machine's lines bear: `(op 7)`, `(K12)`, `Summary S3`, `(M4)`."""
    found: dict[str, set[int]] = {"operation": set(), "fact": set(), "summary": set(), "item": set()}
    for match in _NAMES.finditer(text):
        if match.lastgroup:
            found[match.lastgroup].add(int(match[match.lastgroup]))
    return Names(*(tuple(sorted(numbers)) for numbers in found.values()))


def ranges(operations: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Operation ids as an origin holds them."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(operations)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def carry(blame: tuple[_T, ...], old_text: str, new_text: str, new_origin: Callable[[str, str], _T]) -> tuple[_T, ...]:
    """The blame of a new text: lines that stay keep their origin, also where they moved.

    Line ends do not count.

    Raises:
        ValueError: `blame` is not of `old_text`; it has another number of lines.
    """
    old, new = split_lines(old_text), split_lines(new_text)
    if len(blame) != len(old):
        raise ValueError(f"the blame is of {len(blame):,} lines, the text has {len(old):,}")
    if old == new:
        return blame
    kept = dict(matched_lines(old, new))
    came_from = {place: before for before, place in (kept | moved_lines(old, new, kept)).items()}
    return tuple(
        blame[came_from[place]] if place in came_from else new_origin(new[place], block.title)
        for block in split_blocks(new_text)
        for place in block.rows
    )

"""Tell the machine's own lines of a document from a person's. Pure text.

A line is owned when it bears an identity (the number of a fact, `K12`, of a work item, `#5`, or of an operation),
counts something, or is one of the few texts that the machine writes around these. All else is free: a person's.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from orchestra_mem.core.documents.blame import names_in
from orchestra_mem.core.documents.hand_edits import SECTIONS, number_of
from orchestra_mem.core.documents.markdown import split_blocks
from orchestra_mem.core.work.plan_lines import is_reference, parse_row, remark_number

_TITLES = {"project state", "work plan", "active work", "statistics"}.union(*SECTIONS.values())
_TEXTS = re.compile(
    r"- None|- … and [\d,]+ more: .*|[\d,]+ more decisions? (?:are|is) kept in the ledger: .*"
    r"|\*\*(?:Last Updated|Session)\*\*: .*|- \*\*[A-Z][A-Za-z ]+\*\*: [\d,]+|\*(?:Perhaps s|S)uperseded.*\*"
)


def row_key(row: str) -> str:
    """The identity of a fact's line or of a work item's: `K12` or `#5`; empty where a row has none."""
    if number := number_of(row):
        return f"K{number}"
    line = parse_row(row.strip()) if "#" in row else None
    return f"#{line.number}" if line and line.number else ""


def free_rows(text: str, own: Container[int] = ()) -> Iterator[str]:
    """Yield the rows that are not blank and not the machine's, without their ends; `own` are a person's facts."""
    for block in split_blocks(text):
        rows = [row.rstrip("\r") for row in block.text.split("\n")]
        quoted = bool(block.level and number_of(rows[0]))
        first = bool(block.level and (quoted or block.title.strip().lower() in _TITLES))
        for row in rows[first:]:
            quoted = quoted and (not row.strip() or row.startswith((">", "*")))
            if not (block.front or not row.strip() or quoted or _is_machines(row)) or number_of(row) in own:
                yield row


def _is_machines(row: str) -> bool:
    return bool(
        _TEXTS.fullmatch(row.strip()) or row_key(row) or is_reference(row) or remark_number(row)
        or names_in(row).operations
    )  # fmt: skip


def undone(opened: str, later: str, said: str) -> str:
    """The text that a person's is a change of, where they had `opened` one, saved a `later` and go on from either.

    It is the later text without what came in it and `said` lacks: who saves without it may never have had it. What went
    in it and stands in `said` was brought back, as by an undo, and counts as new.
    """
    own = said.split("\n")
    there = {*opened.split("\n"), *own}
    keys = {key for row in own if (key := row_key(row))}
    return "\n".join(row for row in later.split("\n") if not row.strip() or row in there or row_key(row) in keys)


def without_standing(base: str, left: str, said: str, own: Container[int]) -> str:
    """A base without the free lines that a person's text has and the machine's file lost.

    The machine takes none of these back, so each that the person saved stands: where the file was gone for a moment, a
    new one was begun without them.
    """
    there, free = set(left.replace("\r", "").split("\n")), set(free_rows(said, own))
    return "\n".join(row for row in base.split("\n") if row.rstrip("\r") in there or row.rstrip("\r") not in free)

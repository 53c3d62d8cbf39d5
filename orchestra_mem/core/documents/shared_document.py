"""The shared log's document as projects read it: decisions and rules with where each comes from. Pure.

    ## Rules
    ### [2025-01-15 10:00:00] Never log card numbers. (K3)

    *Shared by shop (ID: 7), K12; for payments, web.*

The last line is the machine's, and a person may change it: what stands behind "for" are the tags of those projects that
it is meant for; without that it is for all. Where that can no longer be read, or the line is gone from an entry which
the machine has written, it is for nobody.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from orchestra_mem.core.documents.conflicts import without_conflicts
from orchestra_mem.core.documents.markdown import PIN
from orchestra_mem.core.documents.owned_lines import SECTIONS, SHARED_LINE, owned_lines
from orchestra_mem.core.text import squeeze
from orchestra_mem.types import DocumentName, Json, MustKeepKind

_LINE = re.compile(r"\s*\*Shared(?: by (?P<by>[^;]+?)(?:, (?P<origin>K\d+))?)?(?:; for (?P<tags>[^;]+?))?\.?\*\s*")
# Of who shared it, where no number could be read: it may have swallowed for whom it is.
_SWALLOWED = re.compile(r", K\d|\bfor\b", re.IGNORECASE)
# An entry that the machine has written; a person's bears no time.
_WRITTEN = re.compile(r"#+[^\w\[]*\[\d{4}-\d\d-\d\d")
_SUPERSEDED = re.compile(r"\s*\*Superseded.*\*\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDecision:
    """A decision or rule in the shared log.

    `number` is the one that it has there (`K3`), empty for a line of a person's that has not got one yet. `project` is
    who shared it and `origin` its number there; both are empty where a person wrote it into the log. `tags` name the
    projects that it is for, none all of them. `unclear` is the line that should say so and cannot be read, or the entry
    that has lost this line; then it is for nobody. `line` counts from 1.
    """

    number: str
    kind: MustKeepKind
    text: str
    project: str = ""
    origin: str = ""
    tags: tuple[str, ...] = ()
    unclear: str = ""
    pinned: bool = False
    line: int = 0

    def is_for(self, tags: Collection[str]) -> bool:
        """Tell whether it is meant for a project with these tags."""
        if self.unclear:
            return False
        return not self.tags or not {tag.casefold() for tag in self.tags}.isdisjoint(map(str.casefold, tags))


def told_name(project: str) -> str:
    """Write a project's name as it can be read again."""
    return re.sub(r"[;*]", ",", project)


def told_origin(data: Json) -> str:
    """Say below an entry who shared it, and for whom, by the data of the operation that did; "" where these lack it."""
    known = data.get("from") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(known, dict):
        return ""
    project, tags = told_name(str(known.get("name"))), data.get("tags")
    meant = f"; for {', '.join(map(str, tags))}" if isinstance(tags, list) and tags else ""
    return f"*Shared by {project}, {known.get('fact')}{meant}.*\n\n"


def read_shared(text: str) -> tuple[SharedDecision, ...]:
    """Read the decisions and rules that hold, in the order of the document, whoever wrote them."""
    text = without_conflicts(text)
    rows, kinds = text.split("\n"), SECTIONS[DocumentName.DECISION_LOG]
    said = [line for line in owned_lines(text) if line.fact]
    ends = [*(line.place for line in said), len(rows)][1:]
    found: list[SharedDecision] = []
    section = ""
    above: tuple[str, tuple[str, ...]] = ("", ())
    for line, end in zip(said, ends, strict=True):
        fact, kind, below = line.fact, kinds.get(line.section), rows[line.place + 1 : end]
        told = next(filter(None, map(_LINE.fullmatch, below)), None)
        meant = next((row.strip() for row in below if _is_unclear(row)), ""), _tags(told["tags"]) if told else ()
        if told is None and not meant[0] and fact and fact.number and _WRITTEN.match(line.row):
            meant = line.row.strip(), ()
        if line.section != section:
            section, above = line.section, ("", ())
        if line.row.startswith("#"):
            above = meant
        elif not any(meant):  # below an entry a line is for those whom that is for
            meant = above
        gone = line.fact and line.fact.state.startswith(" (superseded")
        if not (fact and kind and fact.text) or gone or any(map(_SUPERSEDED.fullmatch, below)):
            continue
        found.append(
            SharedDecision(
                number=fact.number, kind=kind, text=squeeze(fact.text), line=line.place + 1,
                project=(told["by"] or "") if told else "", origin=(told["origin"] or "") if told else "",
                unclear=meant[0], tags=meant[1], pinned=PIN in line.row,
            )
        )  # fmt: skip
    return tuple(found)


def _tags(said: str | None) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, (said or "").split(","))))


def _is_unclear(row: str) -> bool:
    """Whether a row is meant to say who shared a decision, and cannot be read or names no tag after "for"."""
    if not SHARED_LINE.fullmatch(row):
        return False
    told = _LINE.fullmatch(row)
    if told is None or (told["tags"] is not None and not _tags(told["tags"].strip(". "))):
        return True
    return bool(not told["origin"] and _SWALLOWED.search(told["by"] or ""))

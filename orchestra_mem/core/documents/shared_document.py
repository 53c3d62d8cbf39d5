"""Parse the document of the shared log: decisions and rules that projects share, with their origins. No I/O.

    ## Rules
    ### [2025-01-15 10:00:00] Never log card numbers. (K3)

    *Shared by shop (ID: 7), K12; for payments, web.*

The machine writes the last line, and a person may change it. The tags after "for" select the projects that the entry is
for; an entry without tags is for all projects. If the line cannot be parsed, or is missing from an entry that the
machine wrote, the entry is for no project.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import takewhile

from orchestra_mem.core.documents.conflicts import without_conflicts
from orchestra_mem.core.documents.markdown import PIN
from orchestra_mem.core.documents.owned_lines import SECTIONS, SHARED_LINE, STRUCK, owned_lines
from orchestra_mem.core.text import squeeze
from orchestra_mem.types import DocumentName, Json, MustKeepKind

_LINE = re.compile(r"\s*\*Shared(?: by (?P<by>[^;]+?)(?:, (?P<origin>K\d+))?)?(?:; for (?P<tags>[^;]+?))?\.?\*\s*")
# If no number was parsed: signs that the parsed project name has swallowed the number or the tags.
_SWALLOWED = re.compile(r", K\d|\bfor\b", re.IGNORECASE)
# Heading of an entry that the machine wrote; a person's heading has no time.
_WRITTEN = re.compile(r"#+[^\w\[]*\[\d{4}-\d\d-\d\d")
_SUPERSEDED = re.compile(r"\s*\*Superseded.*\*\s*")
_PERHAPS = re.compile(r"\s*[*(]perhaps superseded by (K\d+)\.?[*)]\s*", re.IGNORECASE)
_MACHINES = (_LINE, _PERHAPS, _SUPERSEDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDecision:
    """A decision or rule in the shared log.

    `number`: Number in the log (`K3`), empty for a person's line that has none yet. `project`, `origin`: Project that
    shared the decision, and its number there; empty if a person wrote it into the log. `tags`: Tags of the projects
    that see the decision; empty for all projects. `unclear`: The faulty "Shared by" line, or the heading of an entry
    that lost this line; if not empty, no project sees the decision. `line`: Counted from 1. `perhaps_superseded_by`:
    Number of a later decision in the log that seems to contradict it.
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
    perhaps_superseded_by: str = ""

    def is_for(self, tags: Collection[str]) -> bool:
        """Check whether the decision is for a project with these tags; case is ignored."""
        if self.unclear:
            return False
        return not self.tags or not {tag.casefold() for tag in self.tags}.isdisjoint(map(str.casefold, tags))


def told_name(project: str) -> str:
    """Return a project's name without the characters that would prevent parsing its "Shared by" line."""
    return re.sub(r"[;*]", ",", project)


def told_origin(data: Json) -> str:
    """Render the "Shared by" line of an entry from its operation's data; "" if the data does not name a project."""
    known = data.get("from") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(known, dict):
        return ""
    project, tags = told_name(str(known.get("name"))), data.get("tags")
    meant = f"; for {', '.join(map(str, tags))}" if isinstance(tags, list) and tags else ""
    return f"*Shared by {project}, {known.get('fact')}{meant}.*\n\n"


def with_tags(text: str, number: str, tags: Collection[str] | None) -> str:
    """Return the document with other tags for an entry, or without the entry if `tags` is None.

    Nothing changes without a "Shared by" line, or if a deletion would take people's lines along, or change for whom or
    below which entry they are.
    """
    rows, said = text.split("\n"), [line for line in owned_lines(text) if line.fact]
    for line, behind in zip(said, [*said[1:], None], strict=True):
        found = range(line.place, behind.place if behind else len(rows))
        last = next((row for row in found if _LINE.fullmatch(rows[row])), None)
        if last is None or line.fact is None or line.fact.number != number:
            continue
        if tags is not None:
            head = re.sub(r"(; for [^;]+)?\.?\*\s*$", "", rows[last])
            rows[last] = f"{head}; for {', '.join(tags)}.*" + "\r" * rows[last].endswith("\r")
            break
        below = [rows[row] for row in takewhile(lambda row: not rows[row].startswith("#"), found[1:])]
        if not all(not row.strip() or any(each.fullmatch(row) for each in _MACHINES) for row in below):
            break
        if behind is None or behind.row.startswith("#") or behind.section != line.section:
            del rows[line.place : last + 1 + (not "".join(rows[last + 1 : last + 2]).strip())]
        break
    return "\n".join(rows)


def read_shared(text: str) -> tuple[SharedDecision, ...]:
    """Parse the active decisions and rules, the machine's and people's, in document order."""
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
        elif not any(meant):  # a list item below an entry is for the same projects
            meant = above
        gone = line.fact and line.fact.state.startswith((" (superseded", STRUCK))
        if not (fact and kind and fact.text) or gone or any(map(_SUPERSEDED.fullmatch, below)):
            continue
        later = next((said_so[1] for row in (fact.state, *below) if (said_so := _PERHAPS.fullmatch(row))), "")
        found.append(
            SharedDecision(
                number=fact.number, kind=kind, text=squeeze(fact.text), line=line.place + 1,
                project=(told["by"] or "") if told else "", origin=(told["origin"] or "") if told else "",
                unclear=meant[0], tags=meant[1], pinned=PIN in line.row, perhaps_superseded_by=later,
            )
        )  # fmt: skip
    known = {each.number: each.number for each in found}  # without those that a person has deleted
    return tuple(replace(each, perhaps_superseded_by=known.get(each.perhaps_superseded_by, "")) for each in found)


def _tags(said: str | None) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, (said or "").split(","))))


def _is_unclear(row: str) -> bool:
    """Check whether a row is a "Shared by" line that cannot be parsed, or that names no tag after "for"."""
    if not SHARED_LINE.fullmatch(row):
        return False
    told = _LINE.fullmatch(row)
    if told is None or (told["tags"] is not None and not _tags(told["tags"].strip(". "))):
        return True
    return bool(not told["origin"] and _SWALLOWED.search(told["by"] or ""))

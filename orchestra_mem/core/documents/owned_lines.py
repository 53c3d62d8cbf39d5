"""Distinguish the machine's lines of a document from a person's, and compare them between two texts. No I/O.

The machine owns lines with an identity: the number of a fact (`K12`) or work item (`#5`), what a line repeats (`@`: the
item of a next step, or another item or operation), the label of a counter (`=`), or the section that a line marks as
empty (`-`). It also owns a few texts
around these. All other lines are free (a person's). `difference` finds lines that were removed, changed or added;
`fact_edits` interprets these changes for facts, `plan_edits` for work items.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from orchestra_mem.catalog_types import ItemType
from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.conflicts import without_conflicts
from orchestra_mem.core.documents.markdown import (
    PIN,
    Block,
    fenced_rows,
    item_end,
    legible,
    may_continue,
    split_blocks,
)
from orchestra_mem.core.documents.plan_lines import (
    NEXT,
    PlanLine,
    has_work,
    is_mention,
    next_step,
    plan_lines,
    remark_number,
)
from orchestra_mem.core.fact_kinds import KIND_ROWS
from orchestra_mem.core.text import squeeze
from orchestra_mem.types import CUT, DocumentName, MustKeepKind

T = TypeVar("T")

# Sections that the machine maintains, by title in lower case, each with the kind of a fact that a person adds there.
SECTIONS: Mapping[str, Mapping[str, MustKeepKind]] = {
    name: {title.lower(): kind for kind, row in KIND_ROWS.items() for title in row.headings.get(name, ())}
    for name in DocumentName
}
CATALOG_SECTIONS: Mapping[str, ItemType] = {f"{kind}s": kind for kind in ItemType}
MARK = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+")
_ITEM = re.compile(rf"{MARK.pattern}(?:\[[ xX]\] )?(?P<text>\S.*)", re.DOTALL)
_ENTRY = re.compile(r"#{3,6}[ \t]+(?P<text>\S.*)")
BLANKS = r"[ \t\xa0\u200b-\u200d\u2060\ufeff]*"
"""Spaces as editors and web pages put them around a number, also invisible ones."""
_NUMBER = re.compile(
    rf"{BLANKS}\((?P<letter>[KM])(?P<number>\d{{1,18}})\)"
    rf"(?P<state> \((?:perhaps )?superseded(?: by K\d+)?\))?{BLANKS}\Z"
)
_STATE = re.compile(r"\s*\((?:perhaps )?superseded(?: by K\d+)?\)\s*")
_STRUCK = re.compile(r"~~(?P<said>(?:(?!~~).)+)~~(?P<behind>.*)")
STRUCK = " (struck out)"
"""State of a row that a person has struck out."""
_SUPERSEDED = re.compile(r"^\*Superseded(?P<by> by K\d+)?\.?\*[ \t]*\r?$", re.MULTILINE)
_STAMP = re.compile(r"\[\d{4}-\d\d-\d\d[^\]]*\][ \t]*")
_OPERATION = re.compile(r"[-*+][ \t]+\[[\d: -]+\] .*\(op (?P<id>\d+)\)")
SHARED_LINE = re.compile(r"\s*[*_]+Shared(?: by|;| for)\b.*", re.IGNORECASE)
"""The "Shared by" line that ends an entry of the shared log, well-formed or not."""
_QUOTE = re.compile(r">[ \t]?(?P<text>.*)")
_EMPTY = re.compile(r"[-*+][ \t]+None\s*")
# The machine's list items that are not facts.
_OURS = re.compile(r"None|… and [\d,]+ more: .*")
# Titles of documents in which a heading below a section only structures its list.
_WITHOUT_ENTRIES = re.compile(r"project state|work plan|catalog of .*")
# Titles and rows that only the machine writes.
MACHINE_TITLES = {"project state", "work plan", "active work", "statistics"}.union(*SECTIONS.values(), CATALOG_SECTIONS)
_TEXTS = re.compile(
    r"[-*+][ \t]+None|[-*+][ \t]+… and [\d,]+ more: .*|[\d,]+ more decisions? (?:are|is) kept in the ledger: .*"
    r"|\*\*(?:Last Updated|Session)\*\*: .*|[-*+][ \t]+\*\*[A-Z][A-Za-z ]+\*\*: [\d,]+|\*(?:Perhaps s|S)uperseded.*\*"
    r"|\*Shared by .*\*"
)
# Rows that count what a list leaves out for want of room.
_MORE = re.compile(r"(?:[-*+][ \t]+… and )?[\d,]+ more(?: decisions? (?:are|is) kept in the ledger)?: .*")
_LONG_LIST = 10  # lists of this length may have dropped their oldest lines
# Header and statistics lines that the machine rewrites each time: times, session, counts. With another kind of value a
# line is a person's, except for `written` and `updated`, by which the machine recognises its own texts.
_COUNTER = re.compile(
    r"(?P<key>(?:written|updated): (?=\S)|writer: (?=L[\da-f]{8}\b)"
    r"|(?:\*\*(?:Last Updated|Session)\*\*|[-*+][ \t]+\*\*[A-Z][A-Za-z ]+\*\*): "
    r"(?=(?:Never|[\d: -]+UTC|none|[\da-f]{8}(?:-[\da-f]{4,12}){4}|[\d,]+)[ \t]*$))"
)


@dataclass(frozen=True, slots=True)
class FactRow:
    """Content of a list item or an entry's heading, without bullet, time stamp and pin.

    `number`: Number of a fact (`K12`) or a catalog item (`M12`), "" if there is none. `state`: As the row or its entry
    says: superseded, perhaps superseded, `STRUCK`, or "".
    """

    number: str
    text: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedLine:
    """A line with an identity (`key`), or a possible new fact, whose `key` is "".

    `place`: Line index from 0. `row`: Its text; the rows that continue a list item follow after line feeds. `section`:
    Title of the section, in lower case. A line with a box has both `fact` and `plan`: it is a work item if the memory
    has work items, else a fact.
    """

    place: int
    row: str
    key: str
    section: str
    fact: FactRow | None = None
    plan: PlanLine | None = None

    @property
    def places(self) -> range:
        """Indexes of all its rows."""
        return range(self.place, self.place + self.row.count("\n") + 1)


@dataclass(frozen=True, slots=True)
class Difference(Generic[T]):
    """Changes between two texts. `gone`: Removed lines by identity. `added`: New lines without identity.

    `said`: Changed lines by identity, as (before, now); before is None if the identity is new.
    """

    gone: Mapping[str, T]
    said: Mapping[str, tuple[T | None, T]]
    added: tuple[T, ...]


# Reading and writing a document parses the same few texts several times.
@lru_cache(maxsize=16)
def owned_lines(text: str, but: frozenset[str] = frozenset()) -> tuple[OwnedLine, ...]:
    """Return the lines of a document that have an identity or may be facts, in order.

    Rows in `but` are skipped, except work, next steps, front matter and `- None`. Facts are never indented or quoted.
    An unnumbered line below an entry belongs to the entry, which in the shared log ends with its "Shared by" line.
    """
    work = has_work(text)
    plans = {line.place: line for line in plan_lines(text)}
    found: list[OwnedLine] = []
    section, has_entries = "", True
    for block in split_blocks(text):
        if block.level in (1, 2):
            section = block.title.strip().lower()
        if block.level == 1:
            has_entries = not _WITHOUT_ENTRIES.fullmatch(section)
        in_entry = has_entries and block.level >= 3
        for place, row in _rows(block, plans if work else {}):
            plan, in_entry = plans.get(place), in_entry and not SHARED_LINE.fullmatch(row)
            is_empty = block.level == 2 and _EMPTY.fullmatch(row) is not None
            if row in but and not (plan or is_empty or section == NEXT or block.front):
                continue
            is_entry = has_entries and block.level >= 3 and place == block.line - 1
            fact = None if block.front else _fact(row, block, is_entry=is_entry, is_below=in_entry and not is_entry)
            if work and plan and plan.number:
                key = f"#{plan.number}"
            elif work and section == NEXT and (step := next_step(squeeze(row))[0]):
                key = f"@{step}"
            elif fact and fact.number:
                key = fact.number
            elif repeated := _repeated(row, section):
                key, fact = repeated, None
            elif is_empty:
                key = f"-{section}"
            elif count := _COUNTER.match(row):
                key = "=" + count["key"].lstrip("-*+ \t")
            elif fact:
                key = ""
            else:
                continue
            found.append(OwnedLine(place=place, row=row, key=key, section=section, fact=fact, plan=plan))
    return tuple(found)


def _repeated(row: str, section: str) -> str:
    """Return the identity of a row of the machine's that repeats an operation or item, or counts others; else ""."""
    if found := _OPERATION.match(row):
        return f"@op {found['id']}"
    if is_mention(row):
        return f"@{section} {row.partition('#')[2].partition(' ')[0]}"
    return f"@{section} more" if _MORE.fullmatch(row.strip()) else ""


def _rows(block: Block, plans: Mapping[int, PlanLine]) -> Iterator[tuple[int, str]]:
    """Yield the place and text of a block's rows, without fenced code; a list item's with the rows that continue it."""
    rows, fenced, first = split_lines(block.text), fenced_rows(block.text), block.line - 1
    if block.front or not (fenced or may_continue(block.text)):  # nearly all blocks, so be quick
        yield from enumerate(rows, first)
        return
    at = 0
    while at < len(rows):
        start, at = at, at + 1
        if start in fenced and not _NUMBER.search(rows[start]):  # a fence that is open by mistake hides no known fact
            continue
        if plan := plans.get(first + start):
            at = start + plan.rows
        elif MARK.match(rows[start]):
            at = item_end(rows, start, _is_whole)
            at += at < len(rows) and _STATE.fullmatch(rows[at]) is not None
        yield first + start, "\n".join(rows[start:at])


def _is_whole(item: str) -> bool:
    """Check whether an item has its number, or is another line of the machine's: rows below it are notes."""
    return bool(_NUMBER.search(item.replace(PIN, "").rstrip()) or _TEXTS.fullmatch(item.strip()) or is_mention(item))


def _fact(row: str, block: Block, *, is_entry: bool, is_below: bool) -> FactRow | None:
    """Parse a row or list item of a block as a fact; None if it cannot be one."""
    said = _ENTRY.match(row) if is_entry else _ITEM.match(row)
    if said is None or _OPERATION.match(row):  # what an operation says may end with a fact's number
        return None
    fact = _said(said["text"], without_conflicts(block.text) if is_entry else "")
    is_new = fact.text and not (is_below or fact.state == STRUCK or _OURS.fullmatch(fact.text))
    return fact if fact.number or is_new else None


def _said(text: str, entry: str) -> FactRow:
    """Split a row into number, content and state. The full text of cut content is quoted in its `entry`."""
    text, entry = legible(text), legible(entry)
    bare = _STAMP.sub("", squeeze(text.replace(PIN, "")), count=1)
    struck = _STRUCK.fullmatch(bare)
    if struck and (not struck["behind"] or _NUMBER.fullmatch(struck["behind"])):
        bare, state = struck["said"] + struck["behind"], STRUCK
    else:
        by = _SUPERSEDED.search(entry)
        state = f" (superseded{by['by'] or ''})" if by else ""
    found = _NUMBER.search(bare)
    said = bare[: found.start()] if found else bare
    if entry and said.endswith(CUT.strip()):
        said = " ".join(match["text"] for row in entry.split("\n") if (match := _QUOTE.match(row))) or said
    number = f"{found['letter']}{int(found['number'])}" if found else ""
    return FactRow(number, squeeze(said), (found and found["state"]) or state)


def difference(before: Iterable[tuple[str, T]], now: Iterable[tuple[str, T]]) -> Difference[T]:
    """Compare lines, each paired with its identity ("" for none). Of several copies, the first new wording counts."""
    old, new = by_identity(before), by_identity(now)
    known = Counter(old.pop("", ()))
    added: list[T] = []
    for line in new.pop("", ()):
        known[line] -= 1
        if known[line] < 0:
            added.append(line)
    said: dict[str, tuple[T | None, T]] = {}
    for key, lines in new.items():
        was = old.get(key, ())
        if fresh := next((line for line in lines if line not in was), None):
            said[key] = (was[0] if was else None), fresh
    return Difference({key: lines[0] for key, lines in old.items() if key not in new}, said, tuple(added))


def by_identity(lines: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """Group lines by their identities."""
    found: defaultdict[str, list[T]] = defaultdict(list)
    for key, line in lines:
        found[key].append(line)
    return dict(found)


def owned_keys(text: str) -> dict[int, str]:
    """Return the identities of a text's rows by place."""
    return {place: line.key for line in owned_lines(text) if line.key for place in line.places}


def free_rows(text: str, own: Container[str] = ()) -> Iterator[str]:
    """Yield non-blank rows that are not the machine's, without line ends; lines with a key in `own` are a person's."""
    lines = {place: line for line in owned_lines(text) if line.key for place in line.places}
    seen: dict[str, int] = {}
    for block in split_blocks(text):
        fenced = fenced_rows(block.text)
        head = lines.get(block.line - 1)
        quoted = bool(block.level and head and head.fact)
        titled = block.level and (quoted or block.title.strip().lower() in MACHINE_TITLES)
        for place, row in enumerate(split_lines(block.text) if not block.front else (), block.line - 1):
            line = lines.get(place)
            is_own = bool(line and line.key in own)
            if not row.strip() or (titled and place == block.line - 1 and not is_own):
                continue
            quoted = quoted and row.startswith((">", "*"))
            # The machine writes each number once: a copy is a person's.
            of_machine = (quoted and row.startswith(">")) or is_machines(row)
            if line:
                of_machine = seen.setdefault(line.key, line.place) == line.place or of_machine
            if is_own or not of_machine or place - block.line + 1 in fenced:
                yield row


def is_machines(row: str) -> bool:
    """Check whether an unnumbered row has a form that only the machine writes."""
    return bool(_TEXTS.fullmatch(row.strip()) or is_mention(row) or remark_number(row) or _OPERATION.match(row))


def with_removed_items(before: str, opened: str, person: str) -> str:
    """Append to `before` the facts and work items that a person removed from the `opened` text, under its headings.

    Facts that the person reworded are appended as well, in their old words. Items in `before` are not appended: a
    comparison of `before` with `person` already shows what has become of them.
    """
    known, own = {*owned_keys(before).values()}, {line.key: line.row for line in owned_lines(person)}
    gone = {
        place
        for line in owned_lines(opened)
        if line.key and line.key[0] in "KM#" and line.key not in known
        if line.key not in own or (line.key[0] != "#" and own[line.key] != line.row)
        for place in line.places
    }
    if not gone:
        return before
    gone |= {block.line - 1 for block in split_blocks(opened) if block.level in (1, 2)}
    return "\n".join([before, *(row for place, row in enumerate(opened.split("\n")) if place in gone)])


def without_unlisted(before: str, later: str) -> str:
    """Return a text without the facts and work items that a `later` one may have left out for want of room.

    A list of the later text leaves out lines if it says so, or if it is long and its numbers begin further on.
    """
    cut, title = set[str](), ""
    for block in split_blocks(later):
        title = block.title.strip().lower() if block.level in (1, 2) else title
        if any(_MORE.fullmatch(row.strip()) for row in split_lines(block.text)):
            cut |= {title, *(SECTIONS[DocumentName.DECISION_LOG] if title == "decision log" else ())}
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    there = {line.key for line in owned_lines(later)}
    for line in owned_lines(later):
        if line.key[:1] == "K":
            numbers[line.section].append(int(line.key[1:]))
    gone = {
        place
        for line in owned_lines(before)
        if line.key[:1] in ("K", "M", "#") and line.key not in there
        if line.section in cut
        or (line.key[0] == "K" and len(own := numbers[line.section]) >= _LONG_LIST and int(line.key[1:]) < min(own))
        for place in line.places
    }
    return "\n".join(row for place, row in enumerate(before.split("\n")) if place not in gone)


def at_line(line: OwnedLine, row: str | None) -> dict[int, str | None]:
    """Map the place of a line to a new row, and its other rows to None; see `with_rows`."""
    return {**dict.fromkeys(line.places), line.place: row}


def with_rows(text: str, changed: Mapping[int, str | None]) -> str:
    """Replace rows by place, or remove those that map to None; line ends stay."""
    if not changed:
        return text
    rows: list[str] = []
    for place, row in enumerate(text.split("\n")):
        new = changed.get(place, row)
        if new is not None:
            rows.append(new.replace("\n", "\r\n") + "\r" if place in changed and row.endswith("\r") else new)
    return "\n".join(rows)

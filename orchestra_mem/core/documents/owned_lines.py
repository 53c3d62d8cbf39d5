"""Tell the machine's own lines of a document from a person's, and what a person said by editing either. Pure text.

A line is owned when it bears an identity (the number of a fact, `K12`, of a work item, `#5`, or of an operation),
counts something, or is one of the few texts that the machine writes around these. All else is free: a person's.
An owned line that is gone was taken out, one that says something else was reworded, and a new list item or entry in one
of the machine's sections is a fact of that section's kind.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.episodic import CUT
from orchestra_mem.core.documents.markdown import PIN, Block, split_blocks
from orchestra_mem.core.documents.plan_lines import (
    NEXT,
    has_work,
    is_mention,
    is_reference,
    next_step_number,
    plan_lines,
    remark_number,
    work_sections,
)
from orchestra_mem.core.text import squeeze
from orchestra_mem.types import DocumentName, MustKeep, MustKeepKind

# The sections that the machine keeps, and of which kind a fact is that a person writes there.
SECTIONS: Mapping[DocumentName, Mapping[str, MustKeepKind]] = {
    DocumentName.PROJECT_STATE: {
        "rules": MustKeepKind.CONSTRAINT,
        "people and roles": MustKeepKind.ROLE,
        "insights": MustKeepKind.INSIGHT,
        "recent progress": MustKeepKind.COMPLETION,
        "blockers": MustKeepKind.FAILURE,
    },
    DocumentName.WORK_PLAN: {
        "immediate next steps": MustKeepKind.OPEN_ITEM,
        "backlog": MustKeepKind.OPEN_ITEM,
        "prioritized backlog": MustKeepKind.OPEN_ITEM,
        "future work": MustKeepKind.OPEN_ITEM,
    },
    DocumentName.DECISION_LOG: {
        "decisions": MustKeepKind.DECISION,
        "older decisions": MustKeepKind.DECISION,
        "decision log": MustKeepKind.DECISION,
    },
}
_ITEM = re.compile(r"[-*+] (?:\[[ xX]\] )?(?P<text>\S.*)")
_ENTRY = re.compile(r"#{3,6}[ \t]+(?P<text>\S.*)")
_NUMBER = re.compile(r"[ \t]*\(K(?P<number>\d{1,18})\)(?P<state> \((?:perhaps )?superseded(?: by K\d+)?\))?[ \t]*\Z")
_STAMP = re.compile(r"\[\d{4}-\d\d-\d\d[^\]]*\][ \t]*")
_OPERATION = re.compile(r"- \[[\d: -]+\] .*\(op \d+\)")
_QUOTE = re.compile(r">[ \t]?(?P<text>.*)")
# The machine's own lines that are no facts.
_OURS = re.compile(r"None|… and [\d,]+ more: .*")
# The titles and the rows that only the machine writes.
_TITLES = {"project state", "work plan", "active work", "statistics"}.union(*SECTIONS.values())
_TEXTS = re.compile(
    r"- None|- … and [\d,]+ more: .*|[\d,]+ more decisions? (?:are|is) kept in the ledger: .*"
    r"|\*\*(?:Last Updated|Session)\*\*: .*|- \*\*[A-Z][A-Za-z ]+\*\*: [\d,]+|\*(?:Perhaps s|S)uperseded.*\*"
)
# Lines that the machine writes anew each time, in its header and statistics: when, which session, how many. One that
# says something else there is a person's. By `updated` the machine knows its own texts again.
_COUNTER = re.compile(
    r"(?P<key>updated: (?=\S)|(?:\*\*(?:Last Updated|Session)\*\*|- \*\*[A-Z][A-Za-z ]+\*\*): "
    r"(?=(?:Never|[\d: -]+UTC|none|[\da-f]{8}(?:-[\da-f]{4,12}){4}|[\d,]+)$))"
)
_TICKED = re.compile(r"[-*+] \[[xX]\] ")


@dataclass(frozen=True, slots=True)
class FactRow:
    """What a row with the number of a fact says, without bullet, stamp and pin: equal for rows that say the same."""

    number: int
    text: str
    state: str


@dataclass(frozen=True, slots=True)
class Line:
    """A list item or an entry's heading. `number` is 0 where it bears none, `kind` None outside of the sections.

    `place` counts lines from 0. `text` is what it says: no stamp, no number, no mark.
    """

    place: int
    text: str
    number: int
    kind: MustKeepKind | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandEdits:
    """What a person has said: numbers taken out, texts by number (before, now), and new facts by kind and text.

    A number that did not stand there before is told with an empty text before.
    """

    removed: frozenset[int]
    said: Mapping[int, tuple[str, str]]
    added: tuple[tuple[MustKeepKind, str], ...]


def hand_edits(texts: Mapping[DocumentName, tuple[str, str]], *, work: bool) -> HandEdits:
    """Compare documents as they were last read with what stands there.

    Args:
        texts: of each document both. A fact that a person moved to another document is still there.
        work: whether boxes in the work plan are work, and no facts.
    """
    before: defaultdict[int, list[str]] = defaultdict(list)
    now: defaultdict[int, list[str]] = defaultdict(list)
    added: list[tuple[MustKeepKind, str]] = []
    for name, (read, current) in texts.items():
        old = list(lines_of(name, read, work=work))
        known = Counter(line.text for line in old)
        for line in old:
            before[line.number].append(line.text)
        for line in lines_of(name, current, work=work):
            if line.number:
                now[line.number].append(line.text)
            elif known[line.text] > 0:
                known[line.text] -= 1
            elif line.kind is not None:
                added.append((line.kind, line.text))
    said: dict[int, tuple[str, str]] = {}
    for number, texts_now in now.items():
        fresh = [text for text in texts_now if text not in before[number]]
        # A line that a person has copied says the old and the new.
        if fresh and len(texts_now) <= max(1, len(before[number])):
            said[number] = before[number][0] if before[number] else "", fresh[0]
    removed = {number for number, old in before.items() if old and number} - now.keys()
    return HandEdits(removed=frozenset(removed), said=said, added=tuple(dict.fromkeys(added)))


def lines_of(name: DocumentName, text: str, *, work: bool = False) -> Iterator[Line]:
    """The list items and entries of a document that say something, in order.

    What is indented, quoted or stands below an entry belongs to the line above it. With `work` the lines of a plan's
    work items are passed over.
    """
    work = work and name is DocumentName.WORK_PLAN
    sections = SECTIONS[name]
    items = {line.place for line in plan_lines(text)} if work else ()
    kind: MustKeepKind | None = None
    for block in split_blocks(text):
        if block.front:
            continue
        if block.level in (1, 2):
            kind = sections.get(block.title.strip().lower())
        rows = block.text.split("\n")
        start = block.line - 1
        if block.level >= 3:
            entry = _ENTRY.match(rows[0])
            if entry and (line := _line(start, _whole(entry["text"], block), kind)):
                yield line
        for place, row in enumerate(rows, start):
            item = _ITEM.match(row) if not work or (place not in items and not is_reference(row)) else None
            line = _line(place, item["text"], kind) if item and not _TICKED.match(row) else None
            # Below an entry stands what explains it, unless it bears a number.
            if line and (block.level < 3 or line.number):
                yield line


def fact_in(row: str) -> FactRow | None:
    """What a list item or an entry's heading says of a fact; None where it bears no number."""
    if "(K" not in row:
        return None
    said = _ITEM.match(row) or _ENTRY.match(row)
    text, found = _said(said["text"]) if said else ("", None)
    return FactRow(int(found["number"]), text, found["state"] or "") if found else None


def number_of(row: str) -> int:
    """The number of the fact that a row tells, 0 where it bears none."""
    fact = fact_in(row)
    return fact.number if fact else 0


def _said(text: str) -> tuple[str, re.Match[str] | None]:
    """What a row's text says without stamp, number and pin; and its number."""
    bare = _STAMP.sub("", text.replace(PIN, "").strip(), count=1)
    found = _NUMBER.search(bare)
    return squeeze(bare[: found.start()] if found else bare), found


def _line(place: int, said: str, kind: MustKeepKind | None) -> Line | None:
    text, found = _said(said)
    if not text or (found is None and _OURS.fullmatch(text)):
        return None
    return Line(place, text, int(found["number"]) if found else 0, kind)


def _whole(heading: str, block: Block) -> str:
    """An entry's heading, with the whole of what it says where that is quoted below it."""
    found = _NUMBER.search(heading.replace(PIN, "").strip())
    bare = heading.replace(PIN, "").strip()
    said = bare[: found.start()] if found else bare
    if not said.endswith(CUT.strip()):
        return heading
    quoted = [match["text"] for row in block.text.split("\n")[1:] if (match := _QUOTE.match(row))]
    return f"{' '.join(quoted)}{found.group() if found else ''}" if quoted else heading


def reworded(text: str, before: str, now: str) -> str:
    """A fact's new text, where a document showed `before` of it and shows `now`: what was cut off stays behind it."""
    cut = CUT.strip()
    if before.endswith(cut) and now.endswith(cut) and text.startswith(before.removesuffix(cut).rstrip()):
        return squeeze(now.removesuffix(cut) + text[len(before.removesuffix(cut).rstrip()) :])
    return now.removesuffix(cut).rstrip()


def shows(shown: str, text: str) -> bool:
    """Whether what a document shows of a fact is this text, the whole of it or as far as its line goes."""
    cut = CUT.strip()
    if shown.endswith(cut) and squeeze(text).startswith(shown.removesuffix(cut).rstrip()):
        return True
    return squeeze(shown) == squeeze(text)


def with_numbers(name: DocumentName, text: str, facts: Sequence[MustKeep]) -> str:
    """A document in which the facts that a person has written bear their numbers; all else stays byte for byte."""
    wanted = {squeeze(fact.text): fact.id for fact in facts}
    if not wanted:
        return text
    rows = text.split("\n")
    for line in lines_of(name, text, work=name is DocumentName.WORK_PLAN and has_work(text)):
        number = wanted.get(line.text)
        if number and not line.number:
            row = rows[line.place]
            end = len(row.replace(PIN, "").rstrip()) if row.rstrip().endswith(PIN) else len(row.rstrip())
            rows[line.place] = f"{row[:end]} (K{number}){row[end:]}"
    return "\n".join(rows)


def owned_keys(text: str, but: Container[str] = ()) -> dict[int, str]:
    """The identities of a text's rows by their places.

    `K12` for a fact, `#5` for a work item, `@5` for a next step that names one, `=` and its name for a counter. In the
    rows of `but` no facts and counters are looked for.
    """
    rows = text.split("\n")
    keys: dict[int, str] = {}
    if has_work(text):
        keys = {line.place: f"#{line.number}" for line in plan_lines(text) if line.number}
        steps = [range(start, stop) for name, start, stop in work_sections(text) if name == NEXT]
        keys |= {place: f"@{number}" for each in steps for place in each if (number := next_step_number(rows[place]))}
    for place, row in enumerate(rows):
        if place in keys or row in but:
            continue
        if "(K" in row and (number := number_of(row)):
            keys[place] = f"K{number}"
        elif count := _COUNTER.match(row.removesuffix("\r")):
            keys[place] = f"={count['key']}"
    return keys


def free_rows(text: str, own: Container[int] = ()) -> Iterator[str]:
    """Yield the rows that are not blank and not the machine's, without their ends; `own` are a person's facts."""
    rows = text.split("\n")
    keys = owned_keys(text)
    seen: set[str] = set()
    for block in split_blocks(text):
        start = block.line - 1
        quoted = bool(block.level and number_of(rows[start].rstrip("\r")))
        titled = block.level and (quoted or block.title.strip().lower() in _TITLES)
        for place in range(start + bool(titled), start + len(split_lines(block.text))):
            row = rows[place].rstrip("\r") if not block.front else ""
            quoted = quoted and (not row.strip() or row.startswith((">", "*")))
            key = keys.get(place, "")
            # The machine writes each number once: a copy is a person's.
            is_owned = bool(key) and key not in seen
            seen.add(key)
            is_machines = is_owned or (quoted and row.startswith(">")) or _is_machines(row)
            if row.strip() and (not is_machines or number_of(row) in own):
                yield row


def _is_machines(row: str) -> bool:
    """Whether a row without a number of its own is as the machine writes it."""
    return bool(
        _TEXTS.fullmatch(row.strip()) or is_mention(row) or remark_number(row)
        or _OPERATION.match(row)
    )  # fmt: skip


def undone(opened: str, later: str, said: str) -> str:
    """The text that a person's is a change of, where they had `opened` one, saved a `later` and go on from either.

    It is the later text without what came in it and `said` lacks: who saves without it may never have had it. What went
    in it and stands in `said` was brought back, as by an undo, and counts as new.
    """
    there, keys, known = {*split_lines(opened), *split_lines(said)}, owned_keys(later), {*owned_keys(said).values()}
    return "\n".join(
        row
        for place, row in enumerate(later.split("\n"))
        if not row.strip() or row.removesuffix("\r") in there or keys.get(place) in known
    )


def with_taken_out(before: str, opened: str, person: str) -> str:
    """A text with the facts and work items below it that a person took out of one they had `opened`, by sections.

    Those that the text shows itself are left out: that they went is seen from it.
    """
    keys, known = owned_keys(opened), {*owned_keys(before).values(), *owned_keys(person).values()}
    gone = {place for place, key in keys.items() if key[0] in "K#" and key not in known}
    if not gone:
        return before
    gone |= {block.line - 1 for block in split_blocks(opened) if block.level in (1, 2)}
    return "\n".join([before, *(row for place, row in enumerate(opened.split("\n")) if place in gone)])


def with_free_rows(text: str, said: str, own: Container[int] = ()) -> str:
    """A text with the free lines of a person's that it lacks, each behind the line that it follows there.

    The machine takes none of these back, so each that a person saved last stands: where two editors were open, or the
    file was gone for a moment and a new one was begun without them.
    """
    rows = text.split("\n")
    there = [row.rstrip("\r") for row in rows]
    missing = set(free_rows(said, own)).difference(there)
    at, above = 0, ""
    for row in said.split("\n") if missing else ():
        bare = row.rstrip("\r")
        if bare in missing:
            new = [row] if above.strip() or not at or not there[at - 1].strip() else [row.removeprefix(bare), row]
            rows[at:at] = new
            there[at:at] = [each.rstrip("\r") for each in new]
            at += len(new)
        elif bare.strip():
            with suppress(ValueError):
                at = there.index(bare, at) + 1
        above = row
    return "\n".join(rows)

"""The session document's shape: header, summaries of what is older, the log of operations, and at the end the totals.

A person may edit all of it. The machine knows its own blocks by the frame of their headings and leaves every other
byte alone: `[10:15:00] … (op 12)` is an operation's entry, `Summary S3: … (level 1)` a summary, whatever a person
writes between, behind, or in place of the time. A heading without the frame is a person's own, whatever number it
names, also where a person took the frame away. Blocks with one number are taken for one, so that what a person says in
a copy counts as an edit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from orchestra_mem.core.documents.entries import Entry
from orchestra_mem.core.documents.markdown import Block, front_matter, join_blocks, split_blocks
from orchestra_mem.core.text import squeeze, visible
from orchestra_mem.types import Session, Summary

FORMAT = "1"
EARLIER = "Earlier Operations (Summarized)"
LOG = "Operations Log"
# The last number counts, as the title of an operation may name others. Where something is written behind it, the time
# must stand as the machine writes it: a person's own "[10:15] Call about (op 3): ..." is no entry.
_ENTRY = re.compile(
    r"\[(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\] .*\(op (\d{1,18})\)(?!.*\(op \d)"
    r"|\[[\d -]*\d:\d[\d:]*\] .*\(op (\d{1,18})\)$"
)
_SUMMARY = re.compile(r"Summary S(\d{1,18}): .*\(level \d+\)")
# The same in a document's lines.
_OWN_ENTRY = re.compile(r"(### \[[\d :-]+\] [^\n]*\(op \d+)(\)\s*)")
_OWN_SUMMARY = re.compile(r"### (Summary S\d+)(: )")
UNKNOWN = "not in the database"


@dataclass(frozen=True, slots=True)
class Part:
    """A block, and the number of the operation or summary that it shows (0 where it shows none)."""

    block: Block
    operation: int = 0
    summary: int = 0


@dataclass(frozen=True, slots=True)
class SessionDocument:
    """A parsed session document; `text()` gives it back unchanged."""

    parts: tuple[Part, ...]

    @staticmethod
    @lru_cache(maxsize=2)  # a refresh looks at the same text from several sides
    def parse(text: str) -> SessionDocument:
        """Find the operations and summaries in a document. Any text is one, if need be without either."""
        return SessionDocument(tuple(map(_part, split_blocks(text))))

    def text(self) -> str:
        """The document as a text."""
        return join_blocks(part.block for part in self.parts)

    def entries(self) -> dict[int, Block]:
        """The blocks of operations by operation id, in the document's order; several of one id as one."""
        return _by_number((part.operation, part.block) for part in self.parts)

    def summaries(self) -> dict[int, Block]:
        """The blocks of summaries by summary id, in the document's order; several of one id as one."""
        return _by_number((part.summary, part.block) for part in self.parts)


def _by_number(numbered: Iterable[tuple[int, Block]]) -> dict[int, Block]:
    found: dict[int, Block] = {}
    for number, block in numbered:
        if number:
            same = found.get(number)
            found[number] = replace(same, text=same.text + block.text) if same else block
    return found


def _part(block: Block) -> Part:
    if block.level == 3:
        if entry := _ENTRY.match(block.title):
            return Part(block, operation=int(entry[1] or entry[2]))
        if summary := _SUMMARY.match(block.title):
            return Part(block, summary=int(summary[1]))
    return Part(block)


def with_unknown_told(text: str, last_operation: int, last_summary: int) -> str:
    """A document in which entries and summaries behind these numbers say in their headings that they are not known.

    They come from a database that was newer. As text like any other they stay, when others get their numbers.
    """
    told: list[str] = []
    for part in SessionDocument.parse(text).parts:
        heading, end, rest = part.block.text.partition("\n")
        if part.operation > last_operation:
            heading = _OWN_ENTRY.sub(rf"\1, {UNKNOWN}\2", heading)
        elif part.summary > last_summary:
            heading = _OWN_SUMMARY.sub(rf"### Earlier \1 ({UNKNOWN})\2", heading)
        told.append(f"{heading}{end}{rest}")
    return "".join(told)


def standing_through(text: str, spilled_through: int, unspilled: Sequence[Entry]) -> int:
    """The last operation that stands in a document: entries count by their own heading, in order, without a gap."""
    headings = {part.block.text.partition("\n")[0].rstrip() for part in SessionDocument.parse(text).parts}
    through = spilled_through
    for entry in unspilled:
        if entry.text.partition("\n")[0].rstrip() not in headings:
            break
        through = entry.operation.id
    return through


def new_document(session: Session, project: str) -> str:
    """The text of a session document before its first operation."""
    started = session.started.strftime("%Y-%m-%d %H:%M:%S")
    # The name of a folder may be anything: no UTF-8, several lines.
    shown = squeeze(visible(project))
    front = front_matter(
        {
            "format": FORMAT,
            "session": session.id,
            "project": project,
            "started": session.started.isoformat(),
            "status": session.status.value,
        }
    )
    return (
        f"{front}\n# Orchestrator Session: {started}\n\n**Session ID**: {session.id}\n**Project**: {shown}\n"
        f"**Started**: {started} UTC\n**Status**: Active\n\n---\n\n## {LOG}\n\n"
    )


def summary_block(summary: Summary) -> str:
    """A summary as the document shows it."""
    first, last = summary.since, summary.until
    until = f"{last:%H:%M}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M}"
    count = f"{summary.operation_count:,} operation{'s' if summary.operation_count != 1 else ''}"
    heading = f"### Summary S{summary.id}: {count}, {first:%Y-%m-%d %H:%M} to {until}"
    return f"{heading} (level {summary.level})\n\n{summary.text.rstrip()}\n\n"


def apply_summaries(text: str, standing: Sequence[Summary], owners: Mapping[int, int]) -> str:
    """Let the summaries that stand take the place of what they cover.

    Applying the same again changes nothing: a summary is put in only where something that it covers goes out, so one
    that a person deleted does not come back. Pinned blocks stay.

    Args:
        text: the document.
        standing: the session's summaries that no other covers, in the order of what they cover.
        owners: for summaries that others cover, the one of `standing` that they went into.
    """
    document = SessionDocument.parse(text)
    kept: list[Part] = []
    wanted: set[int] = set()
    for part in document.parts:
        owner = _owner(part, standing, owners)
        if owner:
            wanted.add(owner)
        else:
            kept.append(part)
    if not wanted:
        return text
    shown = {part.summary for part in kept}
    firsts = {summary.id: summary.first_operation for summary in standing}
    kept = _with_section(kept)
    for summary in standing:
        if summary.id in wanted and summary.id not in shown:
            _place(kept, summary, firsts)
    return SessionDocument(tuple(kept)).text()


def _owner(part: Part, standing: Sequence[Summary], owners: Mapping[int, int]) -> int:
    """The summary that covers what a part shows, 0 where none does or the part is pinned."""
    if part.block.pinned:
        return 0
    if part.summary:
        return owners.get(part.summary, 0)
    if not part.operation:
        return 0
    return next((s.id for s in standing if s.first_operation <= part.operation <= s.last_operation), 0)


def _with_section(parts: list[Part]) -> list[Part]:
    """The parts with a section for summaries in front of the log."""
    if any(part.block.title == EARLIER for part in parts):
        return parts
    at = next((i for i, part in enumerate(parts) if part.block.title == LOG or part.operation), len(parts))
    section = Block(text=f"{_line_end(parts, at)}## {EARLIER}\n\n", level=2, title=EARLIER)
    return [*parts[:at], Part(section), *parts[at:]]


def _line_end(parts: Sequence[Part], at: int) -> str:
    """What ends the line before a place, where a person has left it without an end."""
    before = next((part.block.text for part in reversed(parts[:at]) if part.block.text), "\n")
    return "" if before.endswith("\n") else "\n\n"


def _place(parts: list[Part], new: Summary, firsts: Mapping[int, int]) -> None:
    """Insert a summary in the order of what the summaries cover."""
    at = next(i for i, part in enumerate(parts) if part.block.title == EARLIER) + 1
    for i, part in enumerate(parts):
        if part.summary and firsts.get(part.summary, 0) < firsts[new.id]:
            at = i + 1
    block = Block(text=_line_end(parts, at) + summary_block(new), level=3)
    parts.insert(at, Part(block, summary=new.id))


def finished(text: str, closing: str) -> str:
    """The document of an ended session: its status told, and the closing sections at the end, once."""
    if closing.strip() in text:
        return text
    body = ""
    for block in split_blocks(text):
        new = block.text
        if block.front or block.level == 1:
            new = re.sub(r"^status: active(?=\r?$)", "status: archived", new, count=1, flags=re.MULTILINE)
            new = re.sub(r"^\*\*Status\*\*: Active(?=\r?$)", "**Status**: Ended", new, count=1, flags=re.MULTILINE)
        body += new
    return f"{body.rstrip()}\n\n{closing}" if body.strip() else closing

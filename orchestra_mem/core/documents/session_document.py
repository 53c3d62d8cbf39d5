"""Parse and update the session document: header, summaries of older operations, operations log, and closing totals.

A person may edit all of it. The machine recognises its own blocks by the pattern of their headings and leaves every
other byte unchanged: `[10:15:00] … (op 12)` is the entry of an operation, `Summary S3: … (level 1)` a summary. People
may change the time, or the text inside or after the pattern. A heading without the pattern is a person's own, whatever
number it names, even if it was the machine's before. Blocks with the same number are joined, so that an edit of a copy
counts as an edit.
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
# The last number counts, as the title of an operation may name others. If text follows the number, the time must be in
# the machine's format: a person's own "[10:15] Call about (op 3): ..." is not an entry.
_ENTRY = re.compile(
    r"\[(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\] .*\(op (\d{1,18})\)(?!.*\(op \d)"
    r"|\[[\d -]*\d:\d[\d:]*\] .*\(op (\d{1,18})\)$"
)
_SUMMARY = re.compile(r"Summary S(\d{1,18}): .*\(level \d+\)")
UNKNOWN = "not in the database"


@dataclass(frozen=True, slots=True)
class Part:
    """A block, with the number of the operation or summary that it shows (0 if none)."""

    block: Block
    operation: int = 0
    summary: int = 0


@dataclass(frozen=True, slots=True)
class SessionDocument:
    """A parsed session document; `text()` returns the original text."""

    parts: tuple[Part, ...]

    @staticmethod
    @lru_cache(maxsize=2)  # a refresh parses the same text several times
    def parse(text: str) -> SessionDocument:
        """Find the operations and summaries in a document. Any text is valid, even without either."""
        return SessionDocument(tuple(map(_part, split_blocks(text))))

    def text(self) -> str:
        """Return the text of the document."""
        return join_blocks(part.block for part in self.parts)

    def entries(self) -> dict[int, Block]:
        """Return the blocks of operations by operation id, in document order; blocks with the same id are joined."""
        return _by_number((part.operation, part.block) for part in self.parts)

    def summaries(self) -> dict[int, Block]:
        """Return the blocks of summaries by summary id, in document order; blocks with the same id are joined."""
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


def mark_unknown_blocks(text: str, last_operation: int, last_summary: int) -> str:
    """Mark the headings of entries above `last_operation` and of summaries above `last_summary` as unknown.

    Such blocks come from a newer database. The mark makes them plain text, which stays when their numbers are reused.
    """
    told: list[str] = []
    for part in SessionDocument.parse(text).parts:
        block = part.block.text
        if part.operation > last_operation:
            block = re.sub(r"\((op \d+)\)(?!.*\(op \d)", rf"(\1, {UNKNOWN})", block, count=1)
        elif part.summary > last_summary:
            block = re.sub(r"(Summary S\d+): ", rf"Earlier \1 ({UNKNOWN}): ", block, count=1)
        told.append(block)
    return "".join(told)


def last_appended_operation(text: str, spilled_through: int, unspilled: Sequence[Entry]) -> int:
    """Return the last operation in a document: the `unspilled` entry before the first missing heading, if any."""
    headings = {part.block.text.partition("\n")[0].rstrip() for part in SessionDocument.parse(text).parts}
    through = spilled_through
    for entry in unspilled:
        if entry.text.partition("\n")[0].rstrip() not in headings:
            break
        through = entry.operation.id
    return through


def new_document(session: Session, project: str) -> str:
    """Render a session document without operations."""
    started = session.started.strftime("%Y-%m-%d %H:%M:%S")
    # A project is named after its folder, whose name may contain anything: invalid UTF-8, line feeds.
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
    """Render a summary as a block of the document."""
    first, last = summary.since, summary.until
    until = f"{last:%H:%M}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M}"
    count = f"{summary.operation_count:,} operation{'s' if summary.operation_count != 1 else ''}"
    heading = f"### Summary S{summary.id}: {count}, {first:%Y-%m-%d %H:%M} to {until}"
    return f"{heading} (level {summary.level})\n\n{summary.text.rstrip()}\n\n"


def apply_summaries(text: str, standing: Sequence[Summary], merged: Mapping[int, int]) -> str:
    """Replace entries and summaries by the summaries in `standing` that cover them. Idempotent.

    A summary is inserted only if it replaces something, so one that a person deleted does not come back. Pinned blocks
    stay.

    Args:
        standing: Summaries of the session that no other summary covers, in the order of their operations.
        merged: The first operation of each summary that has been merged into others.
    """
    document = SessionDocument.parse(text)
    kept: list[Part] = []
    wanted: set[int] = set()
    for part in document.parts:
        operation = part.operation or merged.get(part.summary, 0)
        owner = next((s.id for s in standing if s.first_operation <= operation <= s.last_operation), 0)
        if owner and not part.block.pinned:
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


def _with_section(parts: list[Part]) -> list[Part]:
    """Return the parts with a section for summaries before the log, added if missing."""
    if any(part.block.title == EARLIER for part in parts):
        return parts
    at = next((i for i, part in enumerate(parts) if part.block.title == LOG or part.operation), len(parts))
    section = Block(text=f"{_line_end(parts, at)}## {EARLIER}\n\n", level=2, title=EARLIER)
    return [*parts[:at], Part(section), *parts[at:]]


def _line_end(parts: Sequence[Part], at: int) -> str:
    """Return the line ends to insert before `parts[at]`; empty if the text above ends with one."""
    before = next((part.block.text for part in reversed(parts[:at]) if part.block.text), "\n")
    return "" if before.endswith("\n") else "\n\n"


def _place(parts: list[Part], new: Summary, firsts: Mapping[int, int]) -> None:
    """Insert a summary in the order of the operations that the summaries cover."""
    at = next(i for i, part in enumerate(parts) if part.block.title == EARLIER) + 1
    for i, part in enumerate(parts):
        if part.summary and firsts.get(part.summary, 0) < firsts[new.id]:
            at = i + 1
    block = Block(text=_line_end(parts, at) + summary_block(new), level=3)
    parts.insert(at, Part(block, summary=new.id))


def finished(text: str, closing: str) -> str:
    """Return the document of an ended session, with its status updated and the closing sections appended once."""
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

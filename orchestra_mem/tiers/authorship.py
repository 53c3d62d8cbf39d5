"""Blame: for each line of a document, whether a person or the machine wrote it, and from which operations.

Authors of lines are not recorded but computed: a document's versions are replayed, oldest first, each with its author.
The live session document is compared with the text that the event log and the ledger produce. A line belongs to the
author of its current wording. One that was removed and comes back belongs to the author who restored it, since a text
does not show the lines that it had earlier.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from orchestra_mem.catalog_types import MemoryItem
from orchestra_mem.core.documents.alignment import matched_lines, moved_lines, split_lines
from orchestra_mem.core.documents.markdown import split_blocks
from orchestra_mem.core.documents.plan_lines import parse_row
from orchestra_mem.core.documents.signature import digest, written_at
from orchestra_mem.errors import NotFoundError
from orchestra_mem.tiers.edited_documents import EditedDocuments
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.types import Author, DocumentName, VersionReason
from orchestra_mem.work_types import WorkTracker

SESSION = "session"
# Number of a work item's newest events that are searched for a change of a field that the item's line shows.
_EVENTS = 50
_TOLD_FIELDS = frozenset({"created", "title", "status", "priority", "parent", "depends_on", "assignee"})
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamedLine:
    """A line of a document and its origin. `line` counts from 1."""

    line: int
    text: str
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Authorship:
    """Finds the author of each line of a document."""

    documents: EditedDocuments
    session: SessionMemoryManager
    work: WorkTracker
    items: Callable[[Sequence[int]], Sequence[MemoryItem]]

    def blame(self, document: str) -> list[BlamedLine]:
        """Return the origin of each line of a document. The name `session` means the running session's document.

        Lines older than the oldest kept version are attributed to that version's author.

        Raises:
            NotFoundError: there is no such document, or no session is running.
        """
        stem = document.removesuffix(".md")
        text = ""
        blame: list[AddedLine] = []
        seen: dict[str, list[AddedLine]] = {}
        for state, author in self._of_session() if stem == SESSION else self._of_document(document):
            # A restored text gets its former authors back.
            blame = seen[state] = seen[state] if state in seen else carry(blame, text, state, author)
            text = state
        is_plan = stem == DocumentName.WORK_PLAN
        return [
            BlamedLine(line=number, text=line, origin=self._origin(line, added, is_plan=is_plan))
            for number, (line, added) in enumerate(zip(split_lines(text), blame, strict=True), 1)
        ]

    def _of_document(self, document: str) -> Iterator[tuple[str, Author]]:
        """Yield the texts that a document had, oldest first, each with its author."""
        writer, name = self.documents.find(document, others=(SESSION,))
        for version in writer.store.versions(name):
            if version.reason is not VersionReason.CONFLICT:  # texts that lost to a simultaneous save
                yield writer.store.read_version(version), version.author
        text = writer.store.read(writer.path(name)) or ""
        last = writer.last_written(name, text)
        if last.left is not None:
            yield last.left, Author.MACHINE
        if last.digest != digest(text):
            yield text, Author.PERSON

    def _of_session(self) -> Iterator[tuple[str, Author]]:
        session = self.session.session
        if session is None:
            raise NotFoundError("no session is running; `session` is the document of the running session")
        yield self.session.machine_text(session), Author.MACHINE
        yield self.session.readable_text(session), Author.PERSON

    def _origin(self, line: str, added: AddedLine, *, is_plan: bool) -> Origin:
        if added.author is Author.PERSON:
            return Origin(Writer.PERSON)
        time: datetime | None = None
        with suppress(ValueError):
            time = datetime.fromisoformat(added.time.strip("\"' "))
        item = parse_row(line.lstrip(" \t")) if is_plan else None
        named = names_in(line)
        if not any(named.values()):
            named = names_in(added.title)
        return (item and self._work_origin(item.number)) or self._machine_origin(named, time)

    def _work_origin(self, number: int) -> Origin | None:
        """Return the author and operation of the last change to a field that the item's line shows; None if unknown."""
        try:
            events = [event for event in self.work.events(number, limit=_EVENTS) if event.field in _TOLD_FIELDS]
        except NotFoundError:
            return None
        if not events:
            return None
        last = events[-1]
        operations = ranges([last.operation] if last.operation else [])
        if last.author is Author.PERSON:
            return Origin(Writer.PERSON, operations, last.time)
        return Origin(Writer.AGENT if operations else Writer.MACHINE, operations, last.time)

    def _machine_origin(self, named: Mapping[str, Sequence[int]], time: datetime | None) -> Origin:
        for item in self.items(named["M"][:1]) if named["M"] else ():
            writer = Writer.PERSON if item.author is Author.PERSON else Writer.AGENT
            return Origin(writer, ranges(item.operations), item.timestamp)
        facts = self.session.ledger.must_keeps_by_id(named["K"]) if named["K"] else []
        if any(fact.author is Author.PERSON for fact in facts):
            # The words are the person's, even if the machine added the number.
            return Origin(Writer.PERSON, ranges(fact.operation for fact in facts if fact.operation), time)
        operations = ranges([*named["op"], *(fact.operation for fact in facts)])
        if named["S"]:
            summary = self.session.ledger.summary(named["S"][0])
            return Origin(Writer.COMPACTOR, ((summary.first_operation, summary.last_operation),), summary.created)
        return Origin(Writer.AGENT if named["op"] else Writer.MACHINE, operations, time)


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
    """Return how each line of a new text came into it; lines that stay or move keep theirs. Line ends are ignored.

    Args:
        blame: The same for the lines of `old_text`.
        old_text, new_text: Two successive texts of a document.
        author: Author of the new text.
    """
    old, new, time = split_lines(old_text), split_lines(new_text), written_at(new_text)
    kept = dict(matched_lines(old, new))
    came_from = {place: before for before, place in (kept | moved_lines(old, new, kept)).items()}
    return [
        blame[came_from[place]] if place in came_from else AddedLine(author, time, block.title)
        for block in split_blocks(new_text)
        for place in block.rows
    ]

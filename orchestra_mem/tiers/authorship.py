"""Who wrote each line of a document: a person, or the machine and from which operations.

Nothing is kept for this while documents are written. An episodic document's versions are replayed from the oldest on,
each with its author; the live session document is compared with what the event log and the ledger make of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.blame import (
    Blame,
    Names,
    Origin,
    OriginOf,
    Writer,
    carry,
    line_origins,
    names_in,
    new_blame,
    ranges,
)
from orchestra_mem.core.documents.episodic import digest, updated_at
from orchestra_mem.core.work.plan_lines import parse_row
from orchestra_mem.errors import NotFoundError
from orchestra_mem.ports import DocumentStore, Ledger
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.types import Author, DocumentName, VersionReason
from orchestra_mem.work_types import WorkTracker

SESSION = "session"
# Of so many newest changes of a work item the last that its line tells of counts.
_EVENTS = 50
_TOLD_FIELDS = frozenset({"created", "title", "status", "priority", "parent", "depends_on", "assignee"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamedLine:
    """A line, from 1, and where it comes from; see `core.documents.blame.Origin`."""

    line: int
    text: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class _State:
    """A text that a document had; `time` is None where nobody noted it."""

    text: str
    author: Author
    time: datetime | None
    plan: bool = False


class Authorship:
    """Tells who wrote what."""

    def __init__(
        self,
        *,
        episodic: EpisodicMemoryManager,
        session: SessionMemoryManager,
        ledger: Ledger,
        store: DocumentStore,
        work: WorkTracker | None = None,
    ) -> None:
        self._work = work
        self._episodic = episodic
        self._session = session
        self._ledger = ledger
        self._store = store

    def blame(self, document: str) -> list[BlamedLine]:
        """Say for each line of a document who wrote it. `session` is the live session's.

        What is older than the oldest kept version counts as that version's author's.

        Raises:
            NotFoundError: there is no such document, or no session is under way.
        """
        stem = document.removesuffix(".md")
        if stem == SESSION:
            text, blame = self._of_session()
        else:
            try:
                text, blame = self._of_episodic(DocumentName(stem))
            except ValueError:
                known = ", ".join([*(name.value for name in DocumentName), SESSION])
                raise NotFoundError(f"there is no document {document!r}; there are: {known}") from None
        lines = zip(split_lines(text), line_origins(blame), strict=True)
        return [BlamedLine(line=number, text=line, origin=origin) for number, (line, origin) in enumerate(lines, 1)]

    def _of_episodic(self, name: DocumentName) -> tuple[str, Blame]:
        text, blame = "", new_blame("", self._origin(_State("", Author.MACHINE, None)))
        seen: dict[str, Blame] = {}
        for state in self._states(name):
            # An earlier text that was put back whole has its authors again.
            blame = seen.get(state.text) or carry(blame, text, state.text, self._origin(state))
            text = state.text
            seen[text] = blame
        return text, blame

    def _states(self, name: DocumentName) -> Iterator[_State]:
        """The texts that a document had, oldest first; what never stood in it is left out."""
        plan = name is DocumentName.WORK_PLAN
        for version in self._episodic.history(name.value):
            if version.reason is not VersionReason.CONFLICT:
                text = self._store.read_version(version)
                machine = version.author is Author.MACHINE
                yield _State(text, version.author, _written_at(text) if machine else None, plan)
        text = self._episodic.text(name)
        last = self._episodic.texts.last_written(name, text)
        if last.left is not None:
            yield _State(last.left, Author.MACHINE, _written_at(last.left), plan)
        if last.digest != digest(text):
            yield _State(text, Author.PERSON, None)

    def _of_session(self) -> tuple[str, Blame]:
        session = self._session.session
        if session is None:
            raise NotFoundError("no session is under way; its document is blamed while it is")
        own, text = self._session.machine_text(session), self._session.readable_text(session)
        blame = new_blame(own, self._origin(_State(own, Author.MACHINE, None)))
        return text, carry(blame, own, text, self._origin(_State(text, Author.PERSON, None)))

    def _origin(self, state: _State) -> OriginOf:
        if state.author is Author.PERSON:
            written = Origin(Writer.PERSON, time=state.time)
            return lambda line, path: written

        def origin(line: str, path: tuple[str, ...]) -> Origin:
            item = parse_row(line.lstrip(" \t")) if self._work and state.plan else None
            if item is not None and (found := self._work_origin(item.number)):
                return found
            named = names_in(line)
            if named == Names() and path:
                named = names_in(path[-1])
            return self._machine_origin(named, state.time)

        return origin

    def _work_origin(self, number: int) -> Origin | None:
        """Where the line of a work item comes from: who last changed what it says, and from which operation."""
        assert self._work is not None
        try:
            events = [event for event in self._work.events(number, limit=_EVENTS) if event.field in _TOLD_FIELDS]
        except NotFoundError:
            return None
        if not events:
            return None
        operations = ranges(event.operation for event in events[-1:] if event.operation)
        if events[-1].author is Author.PERSON:
            return Origin(Writer.PERSON, operations, events[-1].time)
        return Origin(Writer.AGENT if operations else Writer.MACHINE, operations, events[-1].time)

    def _machine_origin(self, named: Names, time: datetime | None) -> Origin:
        facts = self._ledger.must_keeps_by_id(named.facts)
        if any(fact.author is Author.PERSON for fact in facts):
            # In a person's words, whoever put the number behind them.
            return Origin(Writer.PERSON, ranges(fact.operation for fact in facts if fact.operation), time)
        operations = ranges([*named.operations, *(fact.operation for fact in facts)])
        if named.summaries:
            summary = self._ledger.summary(named.summaries[0])
            return Origin(Writer.COMPACTOR, ((summary.first_operation, summary.last_operation),), summary.created)
        return Origin(Writer.AGENT if named.operations else Writer.MACHINE, operations, time)


def _written_at(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(updated_at(text).strip("\"' "))
    except ValueError:
        return None

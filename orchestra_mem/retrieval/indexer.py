"""Keep the search index up to date: chunk, add and embed new content, remove deleted content.

Recording never waits for indexing. Progress is stored in the index after each step, so a killed process repeats at most
one step; adding a chunk twice has no effect.
"""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path

from orchestra_mem.catalog_types import ItemStatus
from orchestra_mem.core.documents.conflicts import without_conflicts
from orchestra_mem.core.documents.entries import plain_text
from orchestra_mem.core.documents.markdown import join_blocks
from orchestra_mem.core.documents.session_document import SessionDocument
from orchestra_mem.core.search.chunking import (
    chunk_document,
    chunk_fact,
    chunk_item,
    chunk_operation,
    chunk_stored,
    chunk_summary,
    chunk_work_item,
)
from orchestra_mem.core.search.echoes import Echoes, without_recalled
from orchestra_mem.core.text import squeeze
from orchestra_mem.errors import EmbedderError, OrchestraMemError
from orchestra_mem.ports import DocumentStore
from orchestra_mem.search_types import Chunk, Embedder, SearchIndex, Tier
from orchestra_mem.stores import CatalogStore, EventLog, Ledger
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.session_ending import SessionPaths
from orchestra_mem.types import AS_GIVEN, STORED_ITEM, DocumentName, Operation, OperationFilter, Session, SessionStatus
from orchestra_mem.work_types import WorkEvent, WorkFilter, WorkItem, WorkTracker

logger = logging.getLogger(__name__)

_AT_ONCE = 100
_STORED_AT_ONCE = 1_000
_VECTORS_AT_ONCE = 256
_ARCHIVES_EVERY_S = 10.0  # asking for the states of a thousand archives takes about ten milliseconds
# Boilerplate that the program writes into documents and search leaves out: times, counts, lists of operations.
_FRAME = re.compile(
    r"(?:(?:- None|- \*\*[A-Z][A-Za-z ]+\*\*: [\d,]+|\*\*[A-Z][A-Za-z ]+\*\*: .*|- .*\(op \d+\).*|---)\s*)+"
)
_EMPTY_LIST = re.compile(r"^\*\*[A-Z][A-Za-z ]+\*\*:\n(?:- None\n)?(?!- )", re.MULTILINE)
_RECALLED = "recalled"
_NOTE = "note"  # value of `WorkEvent.field` for notes
_IMPORTANCE: dict[str, float] = {DocumentName.DECISION_LOG: 0.7}


class _IndexRecreatedError(Exception):
    """The index was recreated, perhaps by another process: everything has to be added again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Remaining work: the number of operations not yet indexed and of chunks without a vector."""

    operations: int
    vectors: int

    def __bool__(self) -> bool:
        return bool(self.operations or self.vectors)


@dataclass(eq=False)
class Indexer:
    """Updates one index from the memory's stores. Safe to share between threads.

    Attributes:
        index: The index to update.
        embedder: Makes the vectors; None leaves them out.
        log, ledger, store, episodic, sessions, state, catalog: The stores to read.
    """

    index: SearchIndex
    embedder: Embedder | None
    _: KW_ONLY
    log: EventLog
    ledger: Ledger
    store: DocumentStore
    episodic: EpisodicMemoryManager
    sessions: SessionPaths
    state: WorkTracker
    catalog: CatalogStore

    def __post_init__(self) -> None:
        """Begin without knowledge of the index's marks."""
        self._lock, self._embedding = threading.Lock(), threading.Lock()
        self._ahead = 0  # newest operation that was indexed ahead of older ones
        self._archives_due = 0.0
        self._marks: dict[str, str] = {}
        self._identity = ""
        self._echoes = Echoes()

    def note_recalled(self, passages: Sequence[str]) -> None:
        """Record passages that a model receives now, so that operations repeating their text are indexed without it."""
        self._echoes.note(passages, after=self.log.last_operation())

    def keep_recalled(self) -> None:
        """Store the recorded passages in the index for other processes; a failure is only logged."""
        try:
            if self._echoes.changed:
                self.index.set_mark(_RECALLED, self._echoes.dump())
        except OrchestraMemError as error:
            logger.debug("the recalled passages could not be stored: %s", error)

    def catch_up(self, within_s: float | None = None, *, embeds: bool = True) -> Backlog:
        """Index everything new since the last call and return what remains.

        Args:
            within_s: Approximate time limit in seconds; None for no limit.
            embeds: Whether to make vectors as well. A batch of texts is not interrupted by the time limit.

        Raises:
            StorageError: The index or the memory cannot be read or written.
            EmbedderError: The texts are indexed, but the embedder fails.
        """
        end = math.inf if within_s is None else time.monotonic() + within_s
        with self._lock:
            self._begin()
            steps = self._steps()
            while True:
                try:
                    next(steps)
                except StopIteration:
                    break
                except _IndexRecreatedError:
                    self._begin()
                    steps = self._steps()
                if time.monotonic() >= end:
                    break
        if embeds and time.monotonic() < end:
            with self._embedding:
                next((None for _ in self._vectors() if time.monotonic() >= end), None)
        return self.backlog()

    def _begin(self) -> None:
        # Read the identity before the marks: if the index is recreated in between, `set_mark` refuses the old identity.
        if self._identity != self.index.identity:
            self._identity, self._ahead = self.index.identity, 0
        self._marks = self.index.marks()
        self._echoes.load(self._marks.get(_RECALLED, ""))
        self.keep_recalled()

    def _steps(self) -> Iterator[None]:
        """Index in steps of about ten milliseconds, the newest operations first; yield after each that set a mark."""
        self._newest()
        sessions = {session.id: session for session in self.log.sessions()}
        yield from self._documents(sessions)
        yield from self._stored()
        yield from self._operations()
        yield from self._since("summaries", self.ledger.next_summary_id() - 1, 1, self._add_summaries)
        yield from self._since("facts", self.ledger.next_must_keep_id() - 1, _AT_ONCE, self._add_facts)
        yield from self._work()
        yield from self._catalog()

    def _mark(self, name: str, value: object) -> None:
        if self._marks.get(name) != str(value):
            self._marks[name] = str(value)
            if not self.index.set_mark(name, str(value), identity=self._identity):
                raise _IndexRecreatedError

    def _number(self, name: str) -> int:
        return int(self._marks.get(name, "0"))

    def _newest(self) -> None:
        """Index the newest operations before everything else: queries are most likely about them."""
        indexed, last = self._number("operations"), self.log.last_operation()
        first = max(indexed, self._ahead, last - _AT_ONCE)
        if first < last:
            self._add_operations(first, last, self._border(last))
            self._ahead = last
            if first == indexed:
                self._mark("operations", last)

    def _border(self, last: int) -> int:
        """Return the id of the first operation in working memory; older operations are in a session document."""
        if (live := self.log.live_session()) is None:
            return last + 1
        # A new session has spilled nothing yet: the operations of earlier sessions stay where they are.
        return max(live.spilled_through + 1, self.log.first_operation(live.id) or last + 1)

    def _operations(self) -> Iterator[None]:
        last = self.log.last_operation()
        border = self._border(last)
        indexed = self._number("operations")
        for first in range(self._number("working"), min(border, indexed + 1), _AT_ONCE):
            end = min(first + _AT_ONCE, border, indexed + 1)
            self._add_operations(first - 1, end - 1, border)
            self._mark("working", end)  # after each step, as a caller with little time begins anew each time
            yield
        self._mark("working", border)
        yield from self._since("operations", last, _AT_ONCE, partial(self._add_operations, border=border))

    def _add_operations(self, after: int, through: int, border: int) -> None:
        operations = self.log.operations(OperationFilter(after=after, through=through))
        self.index.add(
            [
                chunk
                for operation in operations
                if (own := self._own(operation)) is not None
                for chunk in chunk_operation(own, Tier.WORKING if operation.id >= border else Tier.SESSION)
            ]
        )

    def _own(self, operation: Operation) -> Operation | None:
        """Return an operation without text repeated from the memory.

        None if no text is left, for stored items, and for questions that were not understood.
        """
        is_given = isinstance(operation.data, dict) and operation.data.keys() == {AS_GIVEN}
        if operation.is_stored or is_given:
            return None
        if operation.leaves_nothing:
            return None
        data = self._echoes.without(without_recalled(operation.data), operation.id)
        if data == operation.data:
            return operation
        own = replace(operation, data=data)
        return own if plain_text(own).strip() else None

    def _stored(self) -> Iterator[None]:
        """Index the latest item that programs have stored under each name; remove replaced and deleted items."""
        last = self.log.last_operation()
        for after in range(self._number("stored"), last, _STORED_AT_ONCE):
            through = min(after + _STORED_AT_ONCE, last)
            where = OperationFilter(type=STORED_ITEM, after=after, through=through)
            stored = [each for each in self.log.operations(where) if each.is_stored]
            # The idempotency key without its unique last word is the item's name.
            groups = {f"{each.agent or ''} {(each.idempotency_key or '').rpartition(' ')[0]}": each for each in stored}
            chunks = [chunk for group, operation in groups.items() for chunk in chunk_stored(operation, group)]
            self._replace(groups, chunks)
            if groups or through == after + _STORED_AT_ONCE:  # scanning again is cheaper than a write for each scan
                self._mark("stored", through)
                yield

    def _since(self, name: str, last: int, size: int, index: Callable[[int, int], None]) -> Iterator[None]:
        """Index what has come since a mark, up to number `last`, in steps of `size`. Set the mark after each step.

        `index` is called with the number before the first one of a step, and with the last one.
        """
        for after in range(self._number(name), last, size):
            through = min(after + size, last)
            index(after, through)
            self._mark(name, through)
            yield

    def _add_summaries(self, after: int, through: int) -> None:
        for summary in map(self.ledger.summary, range(after + 1, through + 1)):
            for child in summary.children:
                # The children stay findable through this summary and through their operations.
                self.index.remove(list(self.index.keys(f"S{child}")))
            # Summaries of level 0, of whole sessions and of sections, are indexed as part of their documents.
            if summary.level and not summary.parent:
                self.index.add(chunk_summary(summary))

    def _add_facts(self, after: int, through: int) -> None:
        facts = self.ledger.must_keeps_by_id(list(range(after + 1, through + 1)))
        self.index.add(list(map(chunk_fact, facts)))

    def _work(self) -> Iterator[None]:
        """Index the work items that have changed."""
        events = self.state.events(after=self._number("work"))
        for start in range(0, len(events), _AT_ONCE):
            some = events[start : start + _AT_ONCE]
            chunks = [chunk_work_item(*each) for each in _changed_items(self.state, some)]
            self._replace({chunk.group for chunk in chunks}, chunks)
            self._mark("work", some[-1].id)
            yield

    def _catalog(self) -> Iterator[None]:
        """Index the catalog items that have changed; remove those that are no longer live."""
        while items := self.catalog.changed_after(self._number("catalog"), _AT_ONCE):
            live = [chunk_item(item) for item in items if item.status is ItemStatus.LIVE]
            self._replace([f"M{item.number}" for item in items], live)
            self._mark("catalog", items[-1].changed)
            yield

    def _documents(self, sessions: dict[str, Session]) -> Iterator[None]:
        for path in map(self.episodic.path, self.episodic.names()):
            self._document(path)
        ended = [session for session in sessions.values() if session.status is SessionStatus.ARCHIVED]
        for session in ended[self._number("sessions") :]:
            self._replace([self.sessions.document(session).name], ())
        if len(ended) != self._number("sessions") or time.monotonic() >= self._archives_due:
            for session in reversed(ended):
                if session.archive:  # also of long ago: a person may have written into it since
                    self._document(self.sessions.archive(session), session)
                    yield
            self._archives_due = time.monotonic() + _ARCHIVES_EVERY_S
        self._mark("sessions", len(ended))
        gone = [session for session in ended if not session.archive]
        if len(gone) != self._number("archives gone"):
            for session in gone:  # the archived document is deleted: index the session's summary instead
                self._replace([self.sessions.archive(session).name], ())
                for summary in self.ledger.level_zero_summaries(session.id):
                    text = self._without_facts(summary.text, session.id)
                    self.index.add(chunk_summary(replace(summary, text=text)))
            self._mark("archives gone", len(gone))
        for session in sessions.values():
            if session.status is not SessionStatus.ARCHIVED:
                self._document(self.sessions.document(session), session)

    def _document(self, path: Path, session: Session | None = None) -> None:
        """Index a document, of a session or another. If it is missing, being written or not text, its chunks stay."""
        name, state = path.name, str(self.store.state(path))
        if self._marks.get(f"document {name}") == state or (text := self.store.read_settled(path)) is None:
            return
        if session is None:
            importance = _IMPORTANCE.get(path.stem, 0.5)
            chunks = chunk_document(
                without_conflicts(text), name, tier=Tier.EPISODIC, kind=path.stem, importance=importance
            )
        else:
            is_ended, when = session.status is SessionStatus.ARCHIVED, session.ended or session.started
            own = self._without_facts(_own_words(text), session.id) if is_ended else _own_words(text)
            chunks = chunk_document(own, name, tier=Tier.SESSION, kind="session", session=session.id, time=when)
        self._replace([name], [chunk for chunk in chunks if not _FRAME.fullmatch(chunk.text)])
        self._mark(f"document {name}", state)

    def _without_facts(self, text: str, session: str) -> str:
        """Return an ended session's lists without its facts, which are indexed separately and may have changed."""
        newest = self.log.operations(OperationFilter(session=session, limit=1))
        first, last = self.log.first_operation(session), newest[-1].id if newest else 0
        facts = self.ledger.must_keeps(first_operation=first, last_operation=last)
        known = {f"- {squeeze(said)}" for fact in facts for said in (fact.text, fact.found)}
        lines = (line for line in text.splitlines(keepends=True) if line.rstrip() not in known)
        return _EMPTY_LIST.sub("", "".join(lines))

    def _replace(self, groups: Iterable[str], chunks: Sequence[Chunk]) -> None:
        """Add chunks of some groups, and remove all others of these groups."""
        self.index.add(chunks)
        kept = {chunk.key for chunk in chunks}
        if gone := [key for group in groups for key in self.index.keys(group) if key not in kept]:
            self.index.remove(gone)

    def _vectors(self) -> Iterator[None]:
        if (embedder := self.embedder) is None:
            return
        embedder.embed(())  # makes a server that was never called report its model
        while True:
            identity = self.index.identity
            ids = self.index.without_vectors(embedder.model, _VECTORS_AT_ONCE)
            if not len(ids):
                return
            texts = [chunk.embedded_text if chunk else "" for chunk in self.index.chunks(ids)]
            self.index.add_vectors(embedder.model, ids, embedder.embed(texts), identity=identity)
            yield

    def backlog(self) -> Backlog:
        """Return the remaining work."""
        operations = self.log.last_operation() - self._number("operations")
        vectors = count = self.index.count() if self.embedder is not None else 0
        with suppress(EmbedderError):  # raised until a server's first answer: assume that no chunk has a vector
            vectors = len(self.index.without_vectors(self.embedder.model, count)) if self.embedder else 0
        return Backlog(operations=max(0, operations), vectors=vectors)


def _changed_items(
    state: WorkTracker, events: Sequence[WorkEvent]
) -> Iterator[tuple[WorkItem, WorkItem | None, list[str]]]:
    """Yield the items that events changed and the children of renamed items, each with its parent and its notes."""
    changed = dict.fromkeys(event.item for event in events)
    for renamed in {event.item for event in events if event.field == "title"}:
        changed.update((child.id, None) for child in state.items(WorkFilter(parent=renamed)))
    for number in changed:
        item = state.item(number)
        notes = [event.after for event in state.events(number) if event.field == _NOTE and event.after]
        yield item, state.item(item.parent) if item.parent else None, notes


def _own_words(text: str) -> str:
    """Return a session document without its operations and summaries, which are indexed separately."""
    parts = SessionDocument.parse(without_conflicts(text)).parts
    blocks = [part.block for part in parts if not part.operation and not part.summary and part.block.level > 1]
    return join_blocks(block for block in blocks if block.text[len(block.heading) :].strip())

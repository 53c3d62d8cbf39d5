"""Session memory: the markdown document of the running session. Operations are appended to it, and people edit it.

The machine's blocks can be rebuilt from the event log and the ledger. A person's text cannot, so no write touches a
block that the machine did not write. `session_compaction.py` turns old entries into summaries.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from itertools import accumulate, product
from pathlib import Path

from orchestra_mem.core.context.items import as_form
from orchestra_mem.core.documents.entries import Entry
from orchestra_mem.core.documents.session_document import (
    EARLIER,
    LOG,
    SessionDocument,
    finished,
    last_appended_operation,
    mark_unknown_blocks,
    new_document,
    summary_block,
)
from orchestra_mem.design_names import SessionCalls
from orchestra_mem.errors import DocumentConflictError, OrchestraMemError, StorageError
from orchestra_mem.ports import Clock, DocumentStore, TokenCounter
from orchestra_mem.stores import EventLog, Ledger
from orchestra_mem.tiers.document_writer import WRITE_TRIES
from orchestra_mem.tiers.session_ending import SessionPaths, note_closing, summarise_session
from orchestra_mem.types import (
    DocumentFault,
    FileState,
    Json,
    Operation,
    OperationFilter,
    Session,
    SessionStatus,
)

logger = logging.getLogger(__name__)

# Subject of the notice that the database is older than the documents.
HISTORY = "history"
# Maximum number of cached entries. A document of 40,000 tokens (the default threshold) has about 400 entries.
_REMEMBERED = 512
# A torn entry must show at least this much of its heading: a person's last line may well end with a "#".
_TORN_CHARS = len("### [2")


@dataclass(kw_only=True, eq=False, repr=False)
class SessionMemoryManager(SessionCalls, use="open_memory(project, config=config).session_memory"):
    """The second tier, session memory. Safe to share between threads and processes: writes lock the documents."""

    log: EventLog
    ledger: Ledger
    store: DocumentStore
    counter: TokenCounter
    clock: Clock
    place: SessionPaths
    _seen: tuple[str, FileState | None] | None = field(default=None, init=False)
    _foreign_writes: int = field(default=0, init=False)
    _entries: OrderedDict[int, Entry] = field(default_factory=OrderedDict, init=False)
    _appended_through: int = field(default=0, init=False)
    _tokens: tuple[FileState | None, int] | None = field(default=None, init=False)

    @property
    def session(self) -> Session | None:
        """The running session. None before its first operation."""
        return self.log.live_session()

    @property
    def path(self) -> Path | None:
        """Path of the running session's document. None if no session is running."""
        session = self.session
        return self.place.document(session) if session else None

    def entry(self, operation: Operation, started: date) -> Entry:
        """Return an operation's document entry, cached if possible. `started` is the session's first day (UTC)."""
        known = self._entries.get(operation.id)
        if known is not None:
            return known
        entry = Entry(operation=operation, started=started, max_chars=self.place.entry_chars)
        self._entries[operation.id] = entry
        while len(self._entries) > _REMEMBERED:
            self._entries.popitem(last=False)
        return entry

    def entries(self, session: Session, numbers: Sequence[int]) -> list[Entry]:
        """Return the entries of a session's operations. `numbers` are operation ids in ascending order."""
        # Read the cache first: rendering the missing entries below may evict the cached ones.
        found = {number: self._entries[number] for number in numbers if number in self._entries}
        missing = [number for number in numbers if number not in found]
        if missing:
            wanted = OperationFilter(session=session.id, after=missing[0] - 1, through=missing[-1])
            started = session.started.date()
            for operation in self.log.operations(wanted):
                if operation.id not in found:
                    found[operation.id] = self.entry(operation, started)
        return [found[number] for number in numbers]

    def append_operations(self, session: Session, entries: Sequence[Entry]) -> int:
        """Append operations to the document; skip those that are already in it.

        `entries` are the session's operations in order, without a gap after the last appended one.

        Returns:
            Id of the last operation that is now in the document.
        """
        with self.store.lock():
            session = self.log.session(session.id)
            if session.status is not SessionStatus.ACTIVE or entries[-1].operation.id <= session.spilled_through:
                return session.spilled_through  # another process has flushed the session, or spilled these entries

            def append() -> None:
                self._look(session)
                self._append(session, [entry for entry in entries if entry.operation.id > self._appended_through])

            self._retried(append)
            if self._appended_through > session.spilled_through:
                self.log.set_spilled(session.id, self._appended_through)
            return max(self._appended_through, session.spilled_through)

    def is_unchanged(self, session: Session | None) -> bool:
        """Check whether the document is unchanged since this process last read or wrote it."""
        return session is not None and self._seen == (session.id, self.store.state(self.place.document(session)))

    def _append(self, session: Session, new: Sequence[Entry]) -> None:
        if not new:
            return
        path = self.place.document(session)
        if self._tokens is not None and self._seen != (session.id, self._tokens[0]):
            self._tokens = None  # the document has changed since its tokens were counted
        self.store.append(path, "".join(entry.text for entry in new), name="spill")
        self._appended_through = new[-1].operation.id
        self._seen = (session.id, state := self.store.state(path))
        if self._tokens is not None:
            self._tokens = (state, self._tokens[1] + sum(entry.operation.entry_tokens for entry in new))

    def resume(self, session: Session) -> None:
        """Reconcile the document of an unfinished session with the event log."""
        with self.store.lock():
            session = self.log.session(session.id)
            if session.status is SessionStatus.ARCHIVED:
                return
            self._seen = None
            self._look(session, after_kill=True)
            if self._appended_through > session.spilled_through:
                self.log.set_spilled(session.id, self._appended_through)

    def _look(self, session: Session, *, after_kill: bool = False) -> None:
        """Create or repair the document if needed, and find the last operation in it. The lock must be held."""
        path = self.place.document(session)
        state = self.store.state(path)
        if state is not None and self._seen == (session.id, state):
            return
        if self._seen is not None:
            self._foreign_writes += 1
        text = self.store.read_to_change(path)
        if text is None and session.spilled_through:
            logger.warning("%s is missing: it is rebuilt from the database", path)
        waiting = self.log.operations(OperationFilter(session=session.id, after=session.spilled_through))
        unspilled = [self.entry(operation, session.started.date()) for operation in waiting if not operation.is_stored]
        known = self._with_unknown_marked(session, text) if after_kill and text is not None else text
        # After a kill, even one character of an entry counts as torn. At other times, a person may have typed it.
        least = 1 if after_kill else _TORN_CHARS
        mended = self.machine_text(session) if known is None else self._mended(session, known, unspilled, least)
        if mended != text:
            self.store.replace(path, mended, expected=text, name="resume")
        self._appended_through = last_appended_operation(mended, session.spilled_through, unspilled)
        self._seen = (session.id, self.store.state(path))

    def _with_unknown_marked(self, session: Session, text: str) -> str:
        """Mark entries and summaries that the database lacks, so that they count as plain text; notify people once."""
        told = mark_unknown_blocks(text, self.log.last_operation(), self.ledger.next_summary_id() - 1)
        if told != text:
            problem = (
                f"{self.place.document(session)} is newer than the database: entries and summaries that the database "
                "does not know are marked in their headings and kept as text. If an older obra.db was restored, or the "
                "machine lost power, what was recorded in between is only in the documents"
            )
            if self.ledger.add_notice(HISTORY, problem, self.clock()):
                logger.warning("%s", problem)
        return told

    def machine_text(self, session: Session) -> str:
        """Build the session's document from the event log and the ledger alone."""
        standing = self.ledger.summaries(session.id, standing=True)
        spans = [(summary.first_operation, summary.last_operation) for summary in standing]
        text = new_document(session, self.place.project)
        if standing:
            log = f"## {LOG}\n\n"
            text = f"{text.removesuffix(log)}## {EARLIER}\n\n{''.join(map(summary_block, standing))}{log}"
        started = session.started.date()
        for number, _, _ in self.log.outline(session.id, 0):
            if number > session.spilled_through:
                break
            if not any(first <= number <= last for first, last in spans):
                text += self.entry(self.log.operation(number), started).text
        return self.with_present_states(text)

    def with_present_states(self, text: str) -> str:
        """Update each fact in the document's summaries to its present state, and delete facts that people removed."""
        parts = SessionDocument.parse(text).parts
        now = iter(self.ledger.with_states([part.block.text for part in parts if part.summary]))
        return "".join(next(now) if part.summary else part.block.text for part in parts)

    def _mended(self, session: Session, text: str, unspilled: Sequence[Entry], least_chars: int) -> str:
        """Remove a torn entry from the end of the text, and make the end fit for appending entries."""
        if session.status is not SessionStatus.ACTIVE:
            return text
        # A torn entry begins at the last heading, or at the last line if its heading is incomplete.
        starts = [start for mark in ("\n### [", "\n") if (start := text.rfind(mark) + 1) <= len(text) - least_chars]
        for entry, start in product(unspilled, starts):
            if text[start:] != entry.text and entry.text.startswith(text[start:]):
                logger.info("removed an incomplete entry of operation %s from the session document", entry.operation.id)
                text = text[:start]
                break
        blocks = SessionDocument.parse(text).parts
        sections = [part.block.title for part in blocks if part.block.level == 2]
        if sections and not sections[-1].startswith((LOG, EARLIER)):
            # A person has begun a section at the end: appended entries need a log section after it.
            return f"{text.rstrip()}\n\n## {LOG} (continued)\n\n"
        return text if text.endswith("\n") else f"{text}\n\n"

    def rewrite(self, session: Session, change: Callable[[str], str], *, name: str) -> None:
        """Replace the text of the live or archived document with `change(text)`."""

        def replace() -> None:
            if is_live:
                self._look(session)
            text = self.store.read_to_change(path)
            if text is not None and (new := change(text)) != text:
                self.store.replace(path, new, expected=text, name=name)
                if is_live:
                    self._seen = (session.id, self.store.state(path))
                    self._tokens = None

        with self.store.lock():
            session = self.log.session(session.id)  # another process may have archived it
            path, is_live = self.place.present(session), session.status is not SessionStatus.ARCHIVED
            self._retried(replace)

    @staticmethod
    def _retried(write: Callable[[], None]) -> None:
        """Repeat a write that is lost, because someone else saved the document at the same moment."""
        for _ in range(WRITE_TRIES - 1):
            with suppress(DocumentConflictError):
                write()
                return
        write()

    def change_token(self, session: Session) -> tuple[int, FileState | None]:
        """Return a value that stays equal until someone other than this process writes the document."""
        state = self.store.state(self.place.document(session))
        return self._foreign_writes, None if self._seen == (session.id, state) else state

    def text(self, session: Session) -> str:
        """Return the document's text, empty if there is no document.

        Raises:
            DocumentError: the path is not a regular file, the file is too large, or a link leads outside.
        """
        return self.store.read(self.place.present(session)) or ""

    def readable_text(self, session: Session | None) -> str:
        """Return the document's text for display. Empty if there is no document or it cannot be read."""
        try:
            return (self.store.read_shown(self.place.present(session)) or "") if session else ""
        except StorageError as error:  # `faults` reports it
            logger.debug("%s", error)
            return ""

    def faults(self) -> list[DocumentFault]:
        """List the faults of the live document on disk. A faulty document is still served as far as possible."""
        return self.store.faults(self.path) if self.path else []

    def token_count(self) -> int:
        """Count the tokens of the live document. 0 if there is none."""
        if (session := self.session) is None:
            return 0
        state = self.store.state(self.place.document(session))
        if self._tokens is None or self._tokens[0] != state:
            parts = SessionDocument.parse(self.readable_text(session)).parts
            # The blocks are counted as contexts show them, so that the counter's cache serves both.
            self._tokens = (state, sum(self.counter.count(as_form(part.block.text)) for part in parts))
        return self._tokens[1]

    def finish(self, session: Session, closing: str) -> Path:
        """Append the closing sections to a flushed session's document and move it to the archive.

        Can be repeated after a crash at any step.
        """
        path = self.place.document(session)
        with self.store.lock():
            target, taken = self.place.in_archive(session, self.store)
            if not taken:
                self.rewrite(session, lambda text: finished(text, closing), name="flush")
                self.store.move(path, target, name="archive")
            note_closing(self.log, self.ledger, self.counter, session, closing, self.clock())
            archive = target.relative_to(self.place.folder).as_posix()
            self.log.end_session(session.id, ended=self.clock(), archive=archive)
        self._seen = self._tokens = None
        return target

    def get_summary(self, max_tokens: int) -> str:
        """Return the live document if it fits, else its newest summaries and entries that fit; nothing is made anew."""
        text = self.readable_text(self.session)
        if self.counter.count(text) <= max_tokens:
            return text
        parts = [part for part in SessionDocument.parse(text).parts if part.summary or part.operation]
        texts = [as_form(part.block.text) for part in parts]
        sizes = accumulate(self.counter.count(text) for text in reversed(texts))
        chosen = texts[len(texts) - sum(size <= max_tokens for size in sizes) :]
        # With a counter that is not additive, the joined text may have more tokens than the sum of its parts.
        while chosen and self.counter.count("".join(chosen)) > max_tokens:
            del chosen[0]
        return "".join(chosen)

    def generate_summary(self) -> dict[str, Json]:
        """Summarise the running session by extraction; see `summarise_session`. Empty if no session is running."""
        self.memory.extract_facts()
        return summarise_session(self.log, self.ledger, session) if (session := self.session) else {}

    def search(self, query: str, max_results: int = 5) -> list[str]:
        """Return the lines of the live document that contain the query, ignoring case, newest first."""
        wanted = query.casefold()
        lines = reversed(self.readable_text(self.session).splitlines())
        return [line for line in lines if wanted in line.casefold()][: max(0, max_results)]

    def get_current_state(self) -> dict[str, Json]:
        """Return the running session's id, number of operations, document tokens, start, and age in seconds."""
        session = self.session
        return {
            "session_id": session.id if session else None,
            "operation_count": self.log.count(OperationFilter(session=session.id)) if session else 0,
            "tokens_used": self.token_count(),
            "started_at": session.started.isoformat() if session else None,
            "duration_seconds": max(0.0, (self.clock() - session.started).total_seconds()) if session else 0.0,
        }

    def get_stats(self) -> dict[str, Json]:
        """Return the session's id, number of operations, document tokens, and age in seconds, or the error."""
        try:
            state = self.get_current_state()
        except OrchestraMemError as error:
            return {"session_id": None, "error": str(error)}
        return {
            "session_id": state["session_id"],
            "operation_count": state["operation_count"],
            "current_tokens": state["tokens_used"],
            "session_age_seconds": state["duration_seconds"],
        }

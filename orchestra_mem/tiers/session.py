"""Session memory: the document of the running session, which operations are appended to and people edit.

What the document shows can be made again from the event log and the ledger; what a person wrote into it cannot, so
no write here touches a block that is not the machine's. How old entries become summaries lives in
`session_compaction.py`.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import date
from itertools import accumulate, product
from pathlib import Path

from orchestra_mem.core.context.items import as_form
from orchestra_mem.core.documents.entries import Entry, make_entry
from orchestra_mem.core.documents.session_document import (
    EARLIER,
    LOG,
    SessionDocument,
    finished,
    new_document,
    standing_through,
    summary_block,
    with_unknown_told,
)
from orchestra_mem.core.summaries.kept import kept_numbers, squeeze, with_states
from orchestra_mem.design_names import SessionCalls
from orchestra_mem.errors import DocumentConflictError, OrchestraMemError, StorageError
from orchestra_mem.ports import Clock, DocumentStore, EventLog, Ledger, TokenCounter
from orchestra_mem.tiers.document_writer import WRITE_TRIES
from orchestra_mem.tiers.session_ending import SessionPlace, note_closing, summarise_session
from orchestra_mem.types import (
    DocumentFault,
    FileState,
    Json,
    MustKeepKind,
    MustKeepStatus,
    Operation,
    OperationFilter,
    Session,
    SessionStatus,
)

logger = logging.getLogger(__name__)

# What a notice is about that tells of a database older than the documents.
HISTORY = "history"
# Entries kept in memory: those of a document of 40,000 tokens, of a hundred tokens or less each.
_REMEMBERED = 512
# A torn entry is known by at least this much of its heading; a person's line may well end with a "#".
_TORN_CHARS = len("### [2")


class SessionMemoryManager(SessionCalls, use="open_memory(project, config=config).session_memory"):
    """The second tier. All its methods may be called by several threads and processes; documents are locked."""

    def __init__(
        self,
        *,
        log: EventLog,
        ledger: Ledger,
        store: DocumentStore,
        counter: TokenCounter,
        clock: Clock,
        place: SessionPlace,
    ) -> None:
        self._log = log
        self._ledger = ledger
        self._store = store
        self._counter = counter
        self._clock = clock
        self.place = place
        self._seen: tuple[str, FileState | None] | None = None
        self._foreign_writes = 0
        self._entries: OrderedDict[int, Entry] = OrderedDict()
        self._appended_through = 0
        self._tokens: tuple[FileState | None, int] | None = None

    @property
    def session(self) -> Session | None:
        """The session under way, None before its first operation."""
        return self._log.live_session()

    @property
    def path(self) -> Path | None:
        """The live document, None where no session is under way."""
        session = self.session
        return self.place.document(session) if session else None

    def entry(self, operation: Operation, started: date) -> Entry:
        """An operation as this document shows it. The newest are remembered until they are compacted."""
        known = self._entries.get(operation.id)
        if known is not None:
            return known
        entry = make_entry(operation, started=started, max_chars=self.place.entry_chars)
        self.remember(entry)
        return entry

    def remember(self, entry: Entry) -> None:
        """Keep an entry that has been made already."""
        self._entries[entry.operation.id] = entry
        while len(self._entries) > _REMEMBERED:
            self._entries.popitem(last=False)

    def entries(self, session: Session, numbers: Sequence[int]) -> list[Entry]:
        """The entries of operations of a session, ascending, from memory where they are there."""
        # Taken out of the cache first: what is made below may push them out of it.
        found = {number: self._entries[number] for number in numbers if number in self._entries}
        missing = [number for number in numbers if number not in found]
        if missing:
            wanted = OperationFilter(session=session.id, after=missing[0] - 1, through=missing[-1])
            started = session.started.date()
            for operation in self._log.operations(wanted):
                if operation.id not in found:
                    found[operation.id] = self.entry(operation, started)
        return [found[number] for number in numbers]

    def append_operations(self, session: Session, entries: Sequence[Entry]) -> int:
        """Let operations stand in the document; those that stand there already are passed over.

        The entries are the session's operations in their order, without a gap behind those that have been appended.

        Returns:
            The id of the last operation that stands in the document now.
        """
        with self._store.lock():
            session = self._log.session(session.id)
            if session.status is not SessionStatus.ACTIVE or entries[-1].operation.id <= session.spilled_through:
                return session.spilled_through  # another process has flushed it meanwhile, or spilled these
            for attempt in range(WRITE_TRIES):
                self._look(session)
                new = [entry for entry in entries if entry.operation.id > self._appended_through]
                try:
                    self._append(session, new)
                    break
                except DocumentConflictError:
                    # An editor has saved at this moment: what was added went with the file that it replaced.
                    self._seen = None
                    if attempt + 1 == WRITE_TRIES:
                        raise
            if self._appended_through > session.spilled_through:
                self._log.set_spilled(session.id, self._appended_through)
            return max(self._appended_through, session.spilled_through)

    def is_as_left(self, session: Session | None) -> bool:
        """Whether the document is as this process has left it, and need not be read again for a spill."""
        return session is not None and self._seen == (session.id, self._store.state(self.place.document(session)))

    def _append(self, session: Session, new: Sequence[Entry]) -> None:
        if not new:
            return
        path = self.place.document(session)
        if self._tokens is not None and self._seen != (session.id, self._tokens[0]):
            self._tokens = None  # somebody has changed it since it was counted
        self._store.append(path, "".join(entry.text for entry in new), name="spill")
        self._appended_through = new[-1].operation.id
        self._seen = (session.id, state := self._store.state(path))
        if self._tokens is not None:
            self._tokens = (state, self._tokens[1] + sum(entry.operation.entry_tokens for entry in new))

    def resume(self, session: Session) -> None:
        """Bring the document of an unfinished session together with the event log."""
        with self._store.lock():
            session = self._log.session(session.id)
            if session.status is SessionStatus.ARCHIVED:
                return
            self._seen = None
            self._look(session, after_kill=True)
            if self._appended_through > session.spilled_through:
                self._log.set_spilled(session.id, self._appended_through)

    def _look(self, session: Session, *, after_kill: bool = False) -> None:
        """Know what stands in the document, whoever wrote it; mend what a killed process left. The lock is held."""
        path = self.place.document(session)
        state = self._store.state(path)
        if state is not None and self._seen == (session.id, state):
            return
        if self._seen is not None:
            self._foreign_writes += 1
        text = self._store.read_to_change(path)
        if text is None and session.spilled_through:
            logger.warning("%s is gone: it is made again from what was recorded", path)
        waiting = self._log.operations(OperationFilter(session=session.id, after=session.spilled_through))
        unspilled = [self.entry(operation, session.started.date()) for operation in waiting if not operation.is_stored]
        known = self._only_known(session, text) if after_kill and text is not None else text
        # After a kill even the first mark of an entry is a torn one; else a person may be about to write a heading.
        least = 1 if after_kill else _TORN_CHARS
        mended = self.machine_text(session) if known is None else self._mended(session, known, unspilled, least)
        if mended != text:
            self._store.replace(path, mended, expected=text, name="resume")
        self._appended_through = standing_through(mended, session.spilled_through, unspilled)
        self._seen = (session.id, self._store.state(path))

    def _only_known(self, session: Session, text: str) -> str:
        """The text in which what the database does not know is text like any other: then it is older than the text."""
        told = with_unknown_told(text, self._log.last_operation(), self._ledger.next_summary_id() - 1)
        if told != text:
            problem = (
                f"{self.place.document(session)} is newer than the database: what that does not know says so in its "
                "heading, and stays there as text. If an older obra.db was put back, or the machine lost power, what "
                "was recorded in between is in the documents alone"
            )
            if self._ledger.add_notice(HISTORY, problem, self._clock()):
                logger.warning("%s", problem)
        return told

    def machine_text(self, session: Session) -> str:
        """The document as the event log and the ledger have it."""
        standing = self._ledger.summaries(session.id, standing=True)
        spans = [(summary.first_operation, summary.last_operation) for summary in standing]
        text = new_document(session, self.place.project)
        if standing:
            log = f"## {LOG}\n\n"
            text = f"{text.removesuffix(log)}## {EARLIER}\n\n{''.join(map(summary_block, standing))}{log}"
        started = session.started.date()
        for number, _, _ in self._log.outline(session.id, 0):
            if number > session.spilled_through:
                break
            if not any(first <= number <= last for first, last in spans):
                text += self.entry(self._log.operation(number), started).text
        return self.with_present_states(text)

    def with_present_states(self, text: str) -> str:
        """A document whose summaries say of each fact how it stands now, and of what a person took out nothing."""
        document = SessionDocument.parse(text)
        numbers = [number for block in document.summaries().values() for number in kept_numbers(block.text)]
        facts = {fact.id: fact for fact in self._ledger.must_keeps_by_id(numbers)} if numbers else {}
        # By kind, as the index has them: else all facts are looked through.
        gone = MustKeepStatus.REMOVED
        removed = self._ledger.must_keeps(kinds=[*MustKeepKind], status=gone) if document.summaries() else []

        def now(block: str) -> str:
            block = with_states(block, facts)
            for fact in removed:
                block = block.replace(squeeze(fact.found or fact.text), "")
            return block

        return "".join(now(part.block.text) if part.summary else part.block.text for part in document.parts)

    def _mended(self, session: Session, text: str, unspilled: Sequence[Entry], least_chars: int) -> str:
        """The text without a torn entry at its end, and with an end that entries can be appended to."""
        if session.status is not SessionStatus.ACTIVE:
            return text
        # From the last heading on, or from the last line, which may be the beginning of a heading.
        starts = [start for mark in ("\n### [", "\n") if (start := text.rfind(mark) + 1) <= len(text) - least_chars]
        for entry, start in product(unspilled, starts):
            if text[start:] != entry.text and entry.text.startswith(text[start:]):
                logger.info("removed a torn entry of operation %s from the session document", entry.operation.id)
                text = text[:start]
                break
        blocks = SessionDocument.parse(text).parts
        sections = [part.block.title for part in blocks if part.block.level == 2]
        if sections and not sections[-1].startswith((LOG, EARLIER)):
            # A person has begun a section at the end; what is appended belongs to the log.
            return f"{text.rstrip()}\n\n## {LOG} (continued)\n\n"
        return text if text.endswith("\n") else f"{text}\n\n"

    def rewrite(self, session: Session, change: Callable[[str], str], *, name: str) -> bool:
        """Replace the document by `change` of its text, made again when someone else saves at the same moment.

        Returns:
            Whether there was anything to change.
        """
        path = self.place.document(session)
        with self._store.lock():
            session = self._log.session(session.id)
            if session.status is SessionStatus.ARCHIVED:
                # Another process has flushed it: its document lies in the archive and is not made again here.
                return False
            for attempt in range(WRITE_TRIES):
                self._look(session)
                text = self._store.read_to_change(path)
                if text is None:
                    continue
                new = change(text)
                if new == text:
                    return False
                try:
                    self._store.replace(path, new, expected=text, name=name)
                except DocumentConflictError:
                    if attempt + 1 == WRITE_TRIES:
                        raise
                    continue
                self._seen = (session.id, self._store.state(path))
                self._tokens = None
                return True
        return False

    def foreign_state(self, session: Session) -> tuple[int, FileState | None]:
        """What tells whether someone else has written the document: equal as long as only this process has."""
        state = self._store.state(self.place.document(session))
        return self._foreign_writes, None if self._seen == (session.id, state) else state

    def text(self, session: Session) -> str:
        """The document's text, empty where there is none.

        Raises:
            DocumentError: something else than a file stands there.
        """
        return self._store.read(self.place.present(session)) or ""

    def readable_text(self, session: Session | None) -> str:
        """The document's text for showing; empty where nothing can be shown."""
        try:
            return (self._store.read_shown(self.place.present(session)) or "") if session else ""
        except StorageError as error:  # told as the document's fault
            logger.debug("%s", error)
            return ""

    def faults(self) -> list[DocumentFault]:
        """What is wrong with the live document on disk; it is served as far as it can be meanwhile."""
        return self._store.faults(self.path) if self.path else []

    def token_count(self) -> int:
        """Tokens of the live document, 0 where there is none."""
        if (session := self.session) is None:
            return 0
        state = self._store.state(self.place.document(session))
        if self._tokens is None or self._tokens[0] != state:
            parts = SessionDocument.parse(self.readable_text(session)).parts
            # Counted in the form that contexts show, so that each block is counted once.
            self._tokens = (state, sum(self._counter.count(as_form(part.block.text)) for part in parts))
        return self._tokens[1]

    def finish(self, session: Session, closing: str) -> Path:
        """Put the closing sections into a flushed session's document and move it to the archive.

        May be called again after a crash at any step of it.
        """
        path = self.place.document(session)
        with self._store.lock():
            target, taken = self.place.in_archive(session, self._store)
            if not taken:
                self.rewrite(session, lambda text: finished(text, closing), name="flush")
                self._store.move(path, target, name="archive")
            note_closing(self._log, self._ledger, self._counter, session, closing, self._clock())
            archive = target.relative_to(self.place.folder).as_posix()
            self._log.end_session(session.id, ended=self._clock(), archive=archive)
        self._seen = self._tokens = None
        return target

    def get_summary(self, max_tokens: int) -> str:
        """The live document if it fits, else its summaries and newest entries that do; empty where none fits."""
        text = self.readable_text(self.session)
        if self._counter.count(text) <= max_tokens:
            return text
        parts = [part for part in SessionDocument.parse(text).parts if part.summary or part.operation]
        texts = [as_form(part.block.text) for part in parts]
        sizes = accumulate(self._counter.count(text) for text in reversed(texts))
        chosen = texts[len(texts) - sum(size <= max_tokens for size in sizes) :]
        # With a counter whose pieces do not add up the whole may be more than its parts.
        while chosen and self._counter.count("".join(chosen)) > max_tokens:
            del chosen[0]
        return "".join(chosen)

    def generate_summary(self) -> dict[str, Json]:
        """The running session's structured summary, by extraction; see `summarise_session`. Empty where none runs."""
        self.memory.facts(limit=0)  # looks through the newest operations
        return summarise_session(self._log, self._ledger, session) if (session := self.session) else {}

    def search(self, query: str, max_results: int = 5) -> list[str]:
        """Lines of the live document that hold the query, upper and lower case alike, newest first."""
        wanted = query.casefold()
        lines = reversed(self.readable_text(self.session).splitlines())
        return [line for line in lines if wanted in line.casefold()][: max(0, max_results)]

    def get_current_state(self) -> dict[str, Json]:
        """The session's id, operations, tokens, start and age in seconds."""
        session = self.session
        if session is None:
            nothing: dict[str, Json] = {"session_id": None, "operation_count": 0, "tokens_used": 0, "started_at": None}
            return {**nothing, "duration_seconds": 0.0}
        return {
            "session_id": session.id,
            "operation_count": self._log.count(OperationFilter(session=session.id)),
            "tokens_used": self.token_count(),
            "started_at": session.started.isoformat(),
            "duration_seconds": max(0.0, (self._clock() - session.started).total_seconds()),
        }

    def get_stats(self) -> dict[str, Json]:
        """The session's id, operations, tokens of its document, and age in seconds."""
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

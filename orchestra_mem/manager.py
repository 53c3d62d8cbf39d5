"""OrchestratorContextManager: where the tiers meet.

It records, keeps the tiers within their sizes, and gives contexts. Everything it holds can be made again from disk; the
event log is the truth of what happened, the documents are the truth of what is remembered of it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.core.context.window import Threshold
from orchestra_mem.core.documents.conflicts import ConflictBlock, Resolved
from orchestra_mem.errors import ClosedError, SearchError, StorageError
from orchestra_mem.search_types import EVERYTHING, SearchFilter, SearchMode
from orchestra_mem.services.flow import Flow, MemoryParts, Refreshed
from orchestra_mem.services.recall import Expansion, Recall
from orchestra_mem.services.recording import make_draft
from orchestra_mem.tiers.authorship import BlamedLine
from orchestra_mem.types import (
    DocumentName,
    Json,
    MustKeep,
    MustKeepKind,
    MustKeepStatus,
    Operation,
    OperationFilter,
    Session,
    Summary,
)

if TYPE_CHECKING:
    from orchestra_mem.services.indexing import Backlog
    from orchestra_mem.services.searching import Answer, MemorySearch

logger = logging.getLogger(__name__)


class OrchestratorContextManager:
    """The memory of one project. Safe to share between threads; several processes may open the same project.

    `open_memory` makes one. Used as a context manager it is closed at the end; the session goes on until
    `flush_session`.
    """

    def __init__(self, parts: MemoryParts) -> None:
        from orchestra_mem.signals import MemoryEvents

        self._parts = parts
        self.events = MemoryEvents()
        self.working_memory = parts.working
        self.session_memory = parts.session
        self.episodic_memory = parts.episodic
        self.context_tracker = parts.tracker
        self._recall = Recall(parts.log, parts.ledger)
        self._lock = threading.RLock()
        self._flow = Flow(parts, partial(self.events.send, self))
        self._search: MemorySearch | None = None
        self._closed = False
        self._process = os.getpid()
        for threshold in Threshold:
            self.context_tracker.on(
                threshold, lambda crossing: self.events.send(self, "window_filled", crossing=crossing)
            )
        self._flow.resume()

    # Recording

    def record_operation(
        self,
        operation_type: str,
        operation_data: object,
        tokens_used: int | None = None,
        *,
        agent: str | None = None,
        critical: bool | None = None,
        timestamp: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> Operation:
        """Record what the orchestrator did. When this returns, the operation is in the event log for good.

        Args:
            operation_type: what kind of thing was done, as in `nl_command`, `task_execution`, `decision`.
            operation_data: any JSON value, of any size.
            tokens_used: tokens that it took of the window; counted over its entry where not given.
            agent: who did it.
            critical: whether it must not be summarised away lightly; judged by type and status where not given.
            timestamp: when, aware of its time zone; now where not given.
            idempotency_key: the same key twice records once, and returns what was recorded first.

        Raises:
            InvalidOperationError: something is no JSON or out of range; nothing was recorded.
            StorageError: it could not be stored; nothing was recorded.
        """
        draft = make_draft(
            operation_type,
            operation_data,
            tokens_used,
            agent=agent,
            critical=critical,
            timestamp=timestamp,
            idempotency_key=idempotency_key,
            clock=self._parts.clock,
            counter=self._parts.counter,
            entry_chars=self.session_memory.place.entry_chars,
            number=self._flow.last_id + 1,
            started=self._flow.started,
        )
        with self._lock:
            self._check_open()
            return self._flow.record(draft)

    # Keeping within limits

    def refresh(self) -> Refreshed | None:
        """Spill, compact, bring the documents up to date and start a new epoch; None where no session is under way.

        Happens by itself when the window is 80 % full or the session document over its threshold.

        Raises:
            StorageError: the disk refused; what was recorded is safe, and the documents are as they were.
        """
        with self._lock:
            self._check_open()
            self._flow.sync()
            return self._flow.refresh()

    # Context

    def get_orchestrator_context(self, for_operation: str, max_tokens: int | None = None) -> OrchestratorContext:
        """Build what the model is given before an operation.

        Args:
            for_operation: the kind of operation that it is for.
            max_tokens: the budget; by default what the window holds up to its refresh threshold.

        Raises:
            ValueError: the budget is negative.
        """
        budget = self._flow.default_budget if max_tokens is None else max_tokens
        if budget < 0:
            raise ValueError(f"max_tokens is {budget}: a budget cannot be negative")
        with self._lock:
            self._check_open()
            self._flow.sync()
            return self._flow.context(for_operation, budget)

    def explain(self, for_operation: str = "explain", max_tokens: int | None = None) -> str:
        """Say for each item why it is in the context, was shortened, or stayed out."""
        return self.get_orchestrator_context(for_operation, max_tokens).explain()

    # Ending a session

    def flush_session(self) -> Path | None:
        """End the session: sum it up, archive its document, bring the episodic documents up to date.

        Returns:
            Where the session's document lies now; None where no session was under way.

        Raises:
            StorageError: the disk refused; the next start goes on where this stopped.
        """
        with self._lock:
            self._check_open()
            self._flow.sync()
            return self._flow.flush()

    # Asking

    def query_recent_operations(self, operation_type: str | None = None, limit: int = 10) -> list[Operation]:
        """The newest operations, newest first, of one type if given; from older sessions too where these are few."""
        with self._lock:
            self._check_open()
            self._flow.sync()
        found = self.working_memory.get_operations(operation_type, limit)
        if len(found) >= limit:
            return found
        return self._parts.log.operations(OperationFilter(type=operation_type, limit=max(0, limit)))[::-1]

    def operations(self, where: OperationFilter | None = None) -> list[Operation]:
        """Operations of all sessions from the event log, oldest first."""
        self._check_open()
        return self._parts.log.operations(where or OperationFilter())

    def sessions(self) -> list[Session]:
        """All sessions, oldest first."""
        self._check_open()
        return self._parts.log.sessions()

    def search(
        self, query: str, *, where: SearchFilter = EVERYTHING, mode: SearchMode = SearchMode.HYBRID, limit: int = 10
    ) -> Answer:
        """Find what answers a query in all tiers and archives, by words and by meaning, best first.

        What was recorded or saved before the call is found. Any string is a query; `expand` follows a hit's source.

        Raises:
            SearchError: what search is made of cannot be loaded.
            StorageError: the index cannot be used.
            EmbedderError: `mode` is dense, and no vectors can be had.
        """
        with self._lock:
            self._check_open()
            self._flow.sync()
            session = self._flow.session.id if self._flow.session else None
            search = self._opened_search()
        return search.search(query, where=where, mode=mode, limit=limit, session=session)

    def search_memory(self, query: str, max_results: int = 5) -> list[str]:
        """Passages that answer a query, each in one line with its source in front; see `search`.

        Where the index cannot be used, the lines of the live tiers that hold most words of the query.
        """
        if max_results <= 0:
            return []
        try:
            hits = self.search(query, limit=max_results).hits
        except (StorageError, SearchError):
            logger.warning("search cannot be used; looking through the live tiers", exc_info=True)
            return self._lines_with(query, max_results)
        return [f"[{hit.chunk.source}] {' '.join(hit.chunk.text.split())}" for hit in hits]

    def _lines_with(self, query: str, max_results: int) -> list[str]:
        with self._lock:
            lines = [entry.short.strip() for entry in reversed(self.working_memory.entries())]
            lines += self.session_memory.search("", 100_000)
            lines += self.episodic_memory.search("", 100_000)
        return self._recall.best_lines(query, lines, max_results)

    def update_index(self, told: Callable[[Backlog], None] | None = None, *, anew: bool = False) -> None:
        """Bring the search index up to the memory now, instead of with the next searches.

        Args:
            told: hears again and again what is left.
            anew: throw away what is there first.

        Raises:
            StorageError: the index or the memory cannot be used.
            EmbedderError: no vectors can be had; the words are in the index.
        """
        with self._lock:
            self._check_open()
            self._flow.sync()
            search = self._opened_search()
        if anew:
            search.rebuild()
        search.catch_up(told)

    def _opened_search(self) -> MemorySearch:
        if self._search is None:
            try:
                self._search = self._parts.open_search()
            except ImportError as error:
                raise SearchError(f"search cannot be loaded, numpy and faiss-cpu belong to it: {error}") from error
        return self._search

    def expand(self, reference: str | int) -> Expansion:
        """Give the originals behind a summary (`S12`), a kept fact (`K7`) or an operation (`op 104`), word for word.

        Raises:
            NotFoundError: there is no such thing.
        """
        self._check_open()
        return self._recall.expand(reference)

    def facts(
        self, kind: MustKeepKind | None = None, *, standing: bool = True, limit: int | None = None
    ) -> list[MustKeep]:
        """What may not be lost and was found so far, oldest first: by kind, and those alone that hold now."""
        with self._lock:
            self._check_open()
            self._flow.sync()
        kinds = () if kind is None else (kind,)
        status = MustKeepStatus.STANDING if standing else None
        return self._parts.ledger.must_keeps(kinds=kinds, status=status, limit=limit)

    def blame(self, document: str) -> list[BlamedLine]:
        """Say for each line of a document (`session` for the live one) who wrote it, and from which operations.

        Raises:
            NotFoundError: there is no such document.
        """
        with self._lock:
            self._check_open()
            self._flow.sync()
            return self._parts.authorship.blame(document)

    def conflicts(self) -> list[tuple[DocumentName, ConflictBlock]]:
        """Lines that a person and the machine have both changed, and that wait for the person's word."""
        self._check_open()
        return self._parts.hand_edits.conflicts()

    def resolve_conflict(self, conflict: str, *, accept: bool) -> tuple[DocumentName, Resolved]:
        """Let the machine's lines take the place of the person's (`accept`), or take the machine's out.

        Raises:
            NotFoundError: no document has a conflict with this id.
        """
        with self._lock:
            self._check_open()
            return self._parts.hand_edits.resolve(conflict, accept=accept)

    def losses(self, session: str | None = None, *, limit: int | None = None) -> list[Summary]:
        """The ledger: each summary with what it covers, its ratio, and the identifiers that it dropped."""
        self._check_open()
        return self._recall.losses(session, limit)

    def get_stats(self) -> dict[str, Json]:
        """Figures of the window and of each tier."""
        with self._lock:
            self._check_open()
            self._flow.sync()
            return {
                "context_window": {
                    **self.context_tracker.get_stats(),
                    "counter": self._parts.counter.name,
                    "exact": self._parts.counter.exact,
                    "epochs": self._parts.epochs.epoch_count,
                },
                "working_memory": self.working_memory.get_stats(),
                "session_memory": self.session_memory.get_stats(),
                "episodic_memory": self.episodic_memory.get_stats(),
                "problems": [*self._parts.reporter.problems(), *self._conflict_problems(), *self.events.problems()],
            }

    def _conflict_problems(self) -> list[Json]:
        try:
            waiting = self._parts.hand_edits.conflicts()
        except StorageError:  # told as the document's own problem
            return []
        return [
            {
                "subject": name.value,
                "since": None,
                "problem": f"conflict {block.id} in line {block.line} waits for you: `orchestra-mem conflicts`",
            }
            for name, block in waiting
        ]

    # Opening and closing

    def close(self) -> None:
        """Let go of files and connections. The session goes on with the next start; safe to call twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._search is not None:
                self._search.close()
            self._parts.close()

    def __enter__(self) -> OrchestratorContextManager:
        """Return itself."""
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this memory has been closed; open it again with open_memory()")
        if os.getpid() != self._process:
            raise ClosedError("this memory was opened before a fork; a child process opens its own with open_memory()")

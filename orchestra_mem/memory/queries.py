"""The calls of a memory that read its history, and those that use search, the retriever and the response cache.

Search is opened on first use. Recording and contexts work without it: its data are derived, and it may fail to load.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from orchestra_mem.core.context.window import MAX_POINTS, UsageEvent, UsagePoint, past_usage
from orchestra_mem.errors import NotFoundError, SearchError, StorageError
from orchestra_mem.memory.recording import RecordingCalls
from orchestra_mem.search_types import EVERYTHING, SearchFilter, SearchMode
from orchestra_mem.types import (
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
    from orchestra_mem.core.search.disclosure import Recalled
    from orchestra_mem.retrieval.indexer import Backlog
    from orchestra_mem.retrieval.response_cache import ResponseCache
    from orchestra_mem.retrieval.retriever import ContextRetriever
    from orchestra_mem.retrieval.search import Answer


class HistoryCalls(RecordingCalls):
    """Mixin for `OrchestratorContextManager`: the calls that read its history."""

    def query_recent_operations(self, operation_type: str | None = None, limit: int = 10) -> list[Operation]:
        """Return the newest operations, newest first, of all types or of one, going back over sessions if necessary."""
        with self._life.settled():
            found = self._parts.working.get_operations(operation_type, limit)
        if len(found) >= limit:
            return found
        return self._parts.log.operations(OperationFilter(type=operation_type, limit=limit))[::-1]

    def operations(self, where: OperationFilter | None = None) -> list[Operation]:
        """Return operations of all sessions from the event log, oldest first."""
        return self._parts.checked().log.operations(where or OperationFilter())

    def count_operations(self, where: OperationFilter | None = None) -> int:
        """Count the operations that pass a filter, ignoring its limit."""
        return self._parts.checked().log.count(where)

    def window_history(self, limit: int = MAX_POINTS) -> list[UsagePoint]:
        """Return the window's usage after each of the newest operations and refreshes, oldest first, and its usage now.

        The history covers all processes and survives restarts.
        """
        parts = self._parts.checked()
        points = past_usage(*parts.log.window_usage(limit))
        used, last = parts.tracker.used_tokens(), points[-1].used_tokens if points else 0
        if used != last:  # the usage was reported by the model, or set by this process's first context
            now = UsagePoint(
                sequence=len(points) + 1, time=parts.clock(), before_tokens=last, used_tokens=used,
                event=UsageEvent.REPORTED,
            )  # fmt: skip
            points.append(now)
        return points

    def sessions(self) -> list[Session]:
        """Return all sessions, oldest first."""
        return self._parts.checked().log.sessions()

    def find_session(self, session_id: str) -> Session:
        """Return a session.

        Raises:
            NotFoundError: There is no session with this id.
        """
        if found := next((each for each in self.sessions() if each.id == session_id), None):
            return found
        raise NotFoundError(f"there is no session {session_id!r}")

    def session_agents(self, session: str) -> list[str]:
        """Return the sorted names of the agents that recorded operations in a session."""
        return self._parts.checked().log.agents(session)

    def session_document(self, session: str) -> str:
        """Return the document of a running or ended session, as text for display; empty if it has been removed.

        Raises:
            NotFoundError: There is no such session.
        """
        return self._parts.checked().session.readable_text(self._parts.log.session(session))

    def summaries(self, session: str) -> list[Summary]:
        """Return a session's summaries of levels 1 and up, in the order of the operations that they cover."""
        return self._parts.checked().ledger.summaries(session)

    def session_summary(self, session: str) -> Summary | None:
        """Return the summary of an ended session; None if the session still runs or was shorter than its summary."""
        found = [each for each in self._parts.checked().ledger.level_zero_summaries(session) if not each.document]
        return found[-1] if found else None


logger = logging.getLogger(__name__)

# Memories to recall for a context: its budget over _TOKENS_RECALLED (about the shortest memory), within the bounds.
_TOKENS_RECALLED, _LEAST_RECALLED, _MOST_RECALLED = 50, 20, 100
# Facts are extracted in batches of _READ_AT_ONCE operations. In the pauses, other threads may take the lock.
_READ_AT_ONCE, _BETWEEN_S = 100, 0.005
_MOST_BATCHES = 3  # extracted before the index is updated


class QueryCalls(HistoryCalls):
    """Mixin for `OrchestratorContextManager`: the calls that search, retrieve and list facts."""

    _retriever: ContextRetriever | None = None
    _responses: ResponseCache | None = None

    def search(
        self, query: str, *, where: SearchFilter = EVERYTHING, mode: SearchMode = SearchMode.HYBRID, limit: int = 10
    ) -> Answer:
        """Search all tiers and archives by keywords and by meaning. Return hits best first.

        Everything recorded or saved before the call is found. Any string is a query. Pass a hit's source to `expand`,
        also a name such as `K7`: search finds what has these words, and a note says so.

        Raises:
            ValueError: The query is not a string, or the limit is no number or negative.
            SearchError: A library that search needs cannot be loaded.
            StorageError: The index cannot be used.
            EmbedderError: `mode` is dense, and no vectors are available.
        """
        from orchestra_mem.memory.recall import Recall  # imported here, because `status` does not need it

        session = self._life.snapshot().session_id
        answer = self._parts.search.open().search(query, where=where, mode=mode, limit=limit, session=session)
        return replace(answer, notes=(*answer.notes, *Recall(self._parts).hint(query)))

    def search_memory(self, query: str, max_results: int = 5) -> list[str]:
        """Return passages that answer a query, each in one line with its source in front; see `search`.

        If search is unavailable, return the lines of the live tiers that contain the most words of the query.
        """
        if max_results <= 0:
            return []
        parts = self._parts
        try:
            hits = self.search(query, limit=max_results).hits
            parts.search.open().indexer.note_recalled([hit.chunk.text for hit in hits])
        except (StorageError, SearchError):
            logger.warning("search cannot be used; looking for the words in the live tiers instead", exc_info=True)
            lines = [entry.short.strip() for entry in reversed(self._life.snapshot().entries)]
            lines += [*parts.session.search("", 100_000), *parts.episodic.search("", 100_000)]
            return _best_lines(query, lines)[:max_results]
        return [f"[{hit.chunk.source}{hit.doubt}] {' '.join(hit.chunk.text.split())}" for hit in hits]

    def facts(
        self, kind: MustKeepKind | None = None, *, standing: bool = True, since: datetime | None = None,
        limit: int | None = None,
    ) -> list[MustKeep]:  # fmt: skip
        """Return the newest `limit` facts (None: all), oldest first: of one `kind` or all, if `standing` only active.

        With `since`, only those of operations and edits from that time on.

        Raises:
            ValueError: There is no such kind, or the limit is negative.
        """
        if limit is not None and limit < 0:
            raise ValueError(f"limit is {limit}: must be at least 0")
        kinds = () if kind is None else (MustKeepKind(kind),)
        status = MustKeepStatus.STANDING if standing else None
        with self._all_extracted():
            return self._parts.ledger.must_keeps(kinds=kinds, status=status, since=since, limit=limit)

    def extract_facts(self) -> None:
        """Extract the facts of all new operations, and read people's edits of facts; `facts` does so by itself."""
        with self._all_extracted():
            pass

    @contextmanager
    def _all_extracted(self) -> Iterator[None]:
        """Hold the memory once the facts of all operations are extracted; in between, others may use it."""
        while True:
            with self._life.settled():
                unread = self._life.unread
                self._life.extract_facts(_READ_AT_ONCE)
                if not 0 < self._life.unread < unread:  # all are scanned, or the disk refuses
                    yield
                    return
            self._note_call()  # keeps the idle worker from extracting facts, too, and so from holding the lock
            time.sleep(_BETWEEN_S)

    def update_index(
        self, told: Callable[[Backlog], None] | None = None, *, anew: bool = False, facts: bool = False
    ) -> None:
        """Update the search index completely now, instead of with the next searches.

        Args:
            told: Progress callback, called repeatedly with the remaining backlog.
            anew: Delete the index first and rebuild it.
            facts: Extract the facts of a few hundred waiting operations first, unless others hold the documents.

        Raises:
            StorageError: The index or the memory cannot be used.
            EmbedderError: No vectors are available; only the keywords have been indexed.
        """
        self._life.snapshot()
        for _ in range(_MOST_BATCHES if facts else 0):
            with self._life.settled(), self._life.documents.held(timeout_s=0) as free:
                if free:
                    self._life.extract_facts(_READ_AT_ONCE)
        search = self._parts.search.open()
        if anew:
            search.rebuild()
        search.catch_up(told)

    @property
    def retriever(self) -> ContextRetriever:
        """The retriever of past work for a task: `retrieve_context`, `get_recommendations`."""
        parts = self._parts.checked()
        if self._retriever is None:
            from orchestra_mem.retrieval.retriever import ContextRetriever

            self._retriever = ContextRetriever(
                parts.search, parts.log, parts.ledger, parts.counter, parts.settings.retrieval,
                access=parts.agents.catalog.access, now=self._version_and_session,
            )  # fmt: skip
        return self._retriever

    def _version_and_session(self) -> tuple[Hashable, str | None]:
        now, search = self._life.snapshot(), self._parts.search
        # The answering model is part of the version. Without search, no answer is cached.
        with suppress(SearchError, StorageError):
            search.open()
        version = None if now.version is None else (now.version, search.opened and search.opened.answering_model)
        return version, now.session_id

    @property
    def response_cache(self) -> ResponseCache:
        """A cache of a model's answers, valid until something that they depend on changes: `get`, `put`."""
        parts = self._parts.checked()
        if self._responses is None:
            from orchestra_mem.retrieval.response_cache import ResponseCache

            self._responses = ResponseCache(
                parts.search,
                clock=parts.clock,
                settings=parts.settings.responses,
                has_secrets=lambda text: bool(parts.redactor.places(text)),
            )
        return self._responses

    def _recalled(self, query: str, budget_tokens: int, where: SearchFilter) -> Recalled:
        """Return the memories that a query recalls for a context; only a note if search is unavailable."""
        from orchestra_mem.retrieval.passages import recall

        session = self._life.snapshot().session_id
        most = max(_LEAST_RECALLED, min(_MOST_RECALLED, int(budget_tokens) // _TOKENS_RECALLED))
        return recall(self._parts.search, query, session=session, where=where, limit=most)

    def _search_stats(self) -> dict[str, Json]:
        """Return statistics of opened components; `problem` says what disables search by meaning, if anything."""
        return {
            "opened": self._parts.search.opened is not None,
            "problem": self._parts.search.problem,
            "retrieval": self._retriever.get_stats() if self._retriever else None,
            "responses": self._responses.get_stats() if self._responses else None,
        }


def _best_lines(query: str, lines: Sequence[str]) -> list[str]:
    """Return the lines that contain words of a query, ignoring case; lines with the most words come first."""
    words = set(query.casefold().split())
    scores = {line: sum(map(line.casefold().__contains__, words)) for line in lines}
    return sorted(filter(scores.get, scores), key=lambda line: -scores[line])

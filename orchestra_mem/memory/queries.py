"""The calls of a memory that ask: of its history, and questions that search, retriever and response cache answer.

Search is derived or can be missing: it is opened at its first use, and recording and contexts go on without.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from orchestra_mem.core.context.window import MAX_POINTS, UsageEvent, UsagePoint, past_usage
from orchestra_mem.errors import SearchError, StorageError
from orchestra_mem.memory.lifecycle import Lifecycle
from orchestra_mem.memory.parts import MemoryLock, MemoryParts
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
    from orchestra_mem.retrieval.retriever import ContextRetriever, Moment
    from orchestra_mem.retrieval.search import Answer


class HistoryCalls:
    """The calls of a memory that concern its history; `OrchestratorContextManager` has them."""

    _parts: MemoryParts
    _lock: MemoryLock
    _life: Lifecycle

    def query_recent_operations(self, operation_type: str | None = None, limit: int = 10) -> list[Operation]:
        """The newest operations, newest first, of one type if given; from older sessions too where these are few."""
        with self._life.settled():
            found = self._parts.working.get_operations(operation_type, limit)
        if len(found) >= limit:
            return found
        return self._parts.log.operations(OperationFilter(type=operation_type, limit=max(0, limit)))[::-1]

    def operations(self, where: OperationFilter | None = None) -> list[Operation]:
        """Return operations of all sessions from the event log, oldest first."""
        self._lock.check()
        return self._parts.log.operations(where or OperationFilter())

    def count_operations(self, where: OperationFilter | None = None) -> int:
        """Count the operations that pass a filter, whatever its limit."""
        self._lock.check()
        return self._parts.log.count(where)

    def window_history(self, limit: int = MAX_POINTS) -> list[UsagePoint]:
        """Return how full the window was after the newest operations and refreshes, oldest first, and is now.

        Of whatever process recorded, and after any restart.
        """
        self._lock.check()
        points = past_usage(*self._parts.log.window_usage(limit))
        used, last = self._parts.tracker.used_tokens(), points[-1].used_tokens if points else 0
        if used != last:  # as the model's server told, or as this process counts what it has begun with
            now = UsagePoint(
                sequence=len(points) + 1, time=self._parts.clock(), before_tokens=last, used_tokens=used,
                event=UsageEvent.REPORTED,
            )  # fmt: skip
            points.append(now)
        return points

    def sessions(self) -> list[Session]:
        """Return all sessions, oldest first."""
        self._lock.check()
        return self._parts.log.sessions()

    def session_agents(self, session: str) -> list[str]:
        """Return the agents that did something in a session, by their names."""
        self._lock.check()
        return self._parts.log.agents(session)

    def session_document(self, session: str) -> str:
        """Return the document of a session, under way or ended, as it can be shown; empty where it has been removed.

        Raises:
            NotFoundError: there is no such session.
        """
        self._lock.check()
        return self._parts.session.readable_text(self._parts.log.session(session))

    def summaries(self, session: str) -> list[Summary]:
        """Return the summaries of a session's operations, and those of summaries, in the order of what they cover."""
        self._lock.check()
        return self._parts.ledger.summaries(session)

    def session_summary(self, session: str) -> Summary | None:
        """Return what an ended session came to; None where it goes on, or was shorter than its summary."""
        self._lock.check()
        found = [each for each in self._parts.ledger.whole_summaries(session) if not each.document]
        return found[-1] if found else None


logger = logging.getLogger(__name__)

# So many memories are looked for: as many as a budget could hold of the shortest, within bounds.
_TOKENS_RECALLED, _LEAST_RECALLED, _MOST_RECALLED = 50, 20, 100
# Operations are read for facts so many at once, and other threads come in between.
_READ_AT_ONCE, _BETWEEN_S = 100, 0.005


class SearchCalls:
    """The calls of a memory that answer questions; `OrchestratorContextManager` has them."""

    _parts: MemoryParts
    _lock: MemoryLock
    _life: Lifecycle
    _note_call: Callable[..., None]
    _retriever: ContextRetriever | None = None
    _responses: ResponseCache | None = None

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
        session = self._life.snapshot().session_id
        return self._parts.search.open().search(query, where=where, mode=mode, limit=limit, session=session)

    def search_memory(self, query: str, max_results: int = 5) -> list[str]:
        """Return passages that answer a query, each in one line with its source in front; see `search`.

        Where the index cannot be used, the lines of the live tiers that hold most words of the query.
        """
        if max_results <= 0:
            return []
        parts = self._parts
        try:
            hits = self.search(query, limit=max_results).hits
            parts.search.open().note_recalled([hit.chunk.text for hit in hits])
        except (StorageError, SearchError):
            logger.warning("search cannot be used; looking through the live tiers", exc_info=True)
            lines = [entry.short.strip() for entry in reversed(self._life.snapshot().entries)]
            lines += [*parts.session.search("", 100_000), *parts.episodic.search("", 100_000)]
            return _best_lines(query, lines)[:max_results]
        return [f"[{hit.chunk.source}{', perhaps' * hit.perhaps}] {' '.join(hit.chunk.text.split())}" for hit in hits]

    def facts(
        self, kind: MustKeepKind | None = None, *, standing: bool = True, limit: int | None = None
    ) -> list[MustKeep]:
        """Return what may not be lost, oldest first: by kind, and those alone that hold now."""
        status = MustKeepStatus.STANDING if standing else None
        while True:
            with self._life.settled():
                unread = self._life.unread
                self._life.extract_facts(_READ_AT_ONCE)
                if not 0 < self._life.unread < unread:  # all are read, or the disk refuses
                    return self._parts.ledger.must_keeps(kinds=(kind,) if kind else (), status=status, limit=limit)
            self._note_call()  # what is done in pauses would read them too, and let no other thread in between
            time.sleep(_BETWEEN_S)

    def update_index(self, told: Callable[[Backlog], None] | None = None, *, anew: bool = False) -> None:
        """Bring the search index up to the memory now, instead of with the next searches.

        Args:
            told: hears again and again what is left.
            anew: throw away what is there first.

        Raises:
            StorageError: the index or the memory cannot be used.
            EmbedderError: no vectors can be had; the words are in the index.
        """
        self._life.snapshot()
        search = self._parts.search.open()
        if anew:
            search.rebuild()
        search.catch_up(told)

    @property
    def retriever(self) -> ContextRetriever:
        """Retrieves what past work says for a task: `retrieve_context`, `get_recommendations`."""
        self._lock.check()
        if self._retriever is None:
            from orchestra_mem.retrieval.retriever import ContextRetriever

            parts = self._parts
            self._retriever = ContextRetriever(
                parts.search, parts.log, parts.ledger, parts.counter, parts.settings.retrieval,
                access=parts.agents.access, now=self._moment,
            )  # fmt: skip
        return self._retriever

    def _moment(self) -> Moment:
        from orchestra_mem.retrieval.retriever import Moment

        now, search = self._life.snapshot(), self._parts.search
        # What it answers by is a part of the moment; where it cannot be had, nothing is kept.
        with suppress(SearchError, StorageError):
            search.open()
        version = None if now.version is None else (now.version, search.opened and search.opened.answering_model)
        return Moment(version=version, session=now.session_id)

    @property
    def response_cache(self) -> ResponseCache:
        """Earlier answers of a model, for as long as nothing that they depend on changes: `get`, `put`."""
        self._lock.check()
        if self._responses is None:
            from orchestra_mem.retrieval.response_cache import ResponseCache

            parts = self._parts
            self._responses = ResponseCache(
                parts.search,
                clock=parts.clock,
                settings=parts.settings.responses,
                has_secrets=lambda text: bool(parts.redactor.places(text)),
            )
        return self._responses

    def _recalled(self, query: str, budget_tokens: int, where: SearchFilter) -> Recalled:
        """What a query recalls for a context; where search cannot be used, nothing, and a note says why."""
        session = self._life.snapshot().session_id
        try:
            from orchestra_mem.retrieval.passages import PassageRetriever

            most = max(_LEAST_RECALLED, min(_MOST_RECALLED, budget_tokens // _TOKENS_RECALLED))
            passages = PassageRetriever(self._parts.search, self._parts.log)
            return passages.recall(query, session=session, where=where, limit=most)
        except ImportError as error:
            from orchestra_mem.core.search.disclosure import Recalled

            return Recalled(recollections=(), notes=(f"nothing is recalled, search cannot be loaded: {error}",))

    def _search_stats(self) -> dict[str, Json]:
        """Figures of what has been opened, and what keeps search by meaning off, None where nothing does."""
        return {
            "opened": self._parts.search.opened is not None,
            "problem": self._parts.search.problem,
            "retrieval": self._retriever.get_stats() if self._retriever else None,
            "responses": self._responses.get_stats() if self._responses else None,
        }


def _best_lines(query: str, lines: Sequence[str]) -> list[str]:
    """The lines that hold words of a query, upper and lower case alike, those with most of them first."""
    words = set(query.casefold().split())
    scores = {line: sum(map(line.casefold().__contains__, words)) for line in lines}
    return sorted(filter(scores.get, scores), key=lambda line: -scores[line])

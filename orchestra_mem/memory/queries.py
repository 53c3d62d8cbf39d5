"""What a memory answers questions with: search, the retriever, the response cache, each opened at its first use.

All of it is derived or can be missing: recording and contexts go on without.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from orchestra_mem.core.search.disclosure import Recalled
from orchestra_mem.errors import SearchError, StorageError
from orchestra_mem.memory.lifecycle import Lifecycle
from orchestra_mem.memory.parts import MemoryParts
from orchestra_mem.memory.recall import Recall
from orchestra_mem.search_types import EVERYTHING, SearchFilter, SearchMode
from orchestra_mem.types import Json

if TYPE_CHECKING:
    from orchestra_mem.retrieval.indexer import Backlog
    from orchestra_mem.retrieval.response_cache import ResponseCache
    from orchestra_mem.retrieval.retriever import ContextRetriever, Moment
    from orchestra_mem.retrieval.search import Answer

logger = logging.getLogger(__name__)

# So many memories are looked for: as many as a budget could hold of the shortest, within bounds.
_TOKENS_RECALLED, _LEAST_RECALLED, _MOST_RECALLED = 50, 20, 100


class QueryService:
    """Opens and holds what questions are answered with. Safe to share between threads."""

    def __init__(self, parts: MemoryParts, life: Lifecycle) -> None:
        self._parts = parts
        self._life = life
        self._search = parts.search
        self._retriever: ContextRetriever | None = None
        self._responses: ResponseCache | None = None

    def search(self, query: str, where: SearchFilter, mode: SearchMode, limit: int) -> Answer:
        """See `OrchestratorContextManager.search`."""
        session = self._life.snapshot().session_id
        return self._search.open().search(query, where=where, mode=mode, limit=limit, session=session)

    def update_index(self, told: Callable[[Backlog], None] | None, *, anew: bool) -> None:
        """See `OrchestratorContextManager.update_index`."""
        self._life.snapshot()
        search = self._search.open()
        if anew:
            search.rebuild()
        search.catch_up(told)

    def passages(self, query: str, max_results: int) -> list[str]:
        """See `OrchestratorContextManager.search_memory`."""
        if max_results <= 0:
            return []
        try:
            hits = self.search(query, EVERYTHING, SearchMode.HYBRID, max_results).hits
            self._search.open().note_recalled([hit.chunk.text for hit in hits])
        except (StorageError, SearchError):
            logger.warning("search cannot be used; looking through the live tiers", exc_info=True)
            parts = self._parts
            lines = [entry.short.strip() for entry in reversed(self._life.snapshot().entries)]
            lines += [*parts.session.search("", 100_000), *parts.episodic.search("", 100_000)]
            return Recall.best_lines(query, lines, max_results)
        return [f"[{hit.chunk.source}{', perhaps' * hit.perhaps}] {' '.join(hit.chunk.text.split())}" for hit in hits]

    def recalled(self, query: str, budget_tokens: int, where: SearchFilter) -> Recalled:
        """Return what a query recalls for a context; where search cannot be used, nothing, and a note says why."""
        session = self._life.snapshot().session_id
        try:
            from orchestra_mem.retrieval.passages import PassageRetriever

            most = max(_LEAST_RECALLED, min(_MOST_RECALLED, budget_tokens // _TOKENS_RECALLED))
            passages = PassageRetriever(self._search, self._parts.log)
            return passages.recall(query, session=session, where=where, limit=most)
        except ImportError as error:
            return Recalled(recollections=(), notes=(f"nothing is recalled, search cannot be loaded: {error}",))

    @property
    def retriever(self) -> ContextRetriever:
        """See `OrchestratorContextManager.retriever`."""
        if self._retriever is None:
            from orchestra_mem.retrieval.retriever import ContextRetriever

            parts = self._parts
            self._retriever = ContextRetriever(
                parts.search, parts.log, parts.ledger, parts.counter, parts.settings.retrieval,
                access=parts.agents.access, now=self._now,
            )  # fmt: skip
        return self._retriever

    def _now(self) -> Moment:
        from orchestra_mem.retrieval.retriever import Moment

        now = self._life.snapshot()
        # What it answers by is a part of the moment; where it cannot be had, nothing is kept.
        with suppress(SearchError, StorageError):
            self._search.open()
        search = self._search.opened
        version = None if now.version is None else (now.version, search.answering_model if search else None)
        return Moment(version=version, session=now.session_id)

    @property
    def responses(self) -> ResponseCache:
        """See `OrchestratorContextManager.response_cache`."""
        if self._responses is None:
            from orchestra_mem.retrieval.response_cache import ResponseCache

            parts = self._parts
            self._responses = ResponseCache(
                parts.open_responses,
                parts.search,
                clock=parts.clock,
                settings=parts.settings.responses,
                has_secrets=lambda text: bool(parts.redactor.places(text)),
            )
        return self._responses

    def stats(self) -> dict[str, Json]:
        """Return figures of what has been opened, and what keeps search by meaning off, None where nothing does."""
        return {
            "opened": self._search.opened is not None,
            "problem": self._search.problem,
            "retrieval": self._retriever.get_stats() if self._retriever else None,
            "responses": self._responses.get_stats() if self._responses else None,
        }

    def problems(self) -> list[Json]:
        """Return what is off, in the words of `status`."""
        problem = self._search.problem
        return [{"subject": "search", "since": None, "problem": problem}] if problem else []

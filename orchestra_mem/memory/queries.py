"""What a memory answers questions with: search, the retriever, the response cache, each opened at its first use.

All of it is derived or can be missing: recording and contexts go on without.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from orchestra_mem.core.search.disclosure import Recalled
from orchestra_mem.errors import SearchError, StorageError
from orchestra_mem.memory.lifecycle import Lifecycle
from orchestra_mem.memory.parts import MemoryParts
from orchestra_mem.memory.recall import Recall
from orchestra_mem.search_types import EVERYTHING, SearchFilter, SearchMode
from orchestra_mem.types import Json

if TYPE_CHECKING:
    from orchestra_mem.retrieval.passages import PassageRetriever
    from orchestra_mem.retrieval.response_cache import ResponseCache
    from orchestra_mem.retrieval.retriever import ContextRetriever, Moment
    from orchestra_mem.retrieval.search import Answer

logger = logging.getLogger(__name__)

# What a question's answer is made from, as far as the response cache goes by it.
_FACTS = 5
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
        return [f"[{hit.chunk.source}] {' '.join(hit.chunk.text.split())}" for hit in hits]

    def recalled(self, query: str, budget_tokens: int) -> Recalled:
        """What a query recalls for a context; where search cannot be used, nothing, and a note says why."""
        session = self._life.snapshot().session_id
        try:
            most = max(_LEAST_RECALLED, min(_MOST_RECALLED, budget_tokens // _TOKENS_RECALLED))
            return self._passages().recall(query, session=session, limit=most)
        except ImportError as error:
            return Recalled(recollections=(), notes=(f"nothing is recalled, search cannot be loaded: {error}",))

    def _passages(self) -> PassageRetriever:
        from orchestra_mem.retrieval.passages import PassageRetriever

        return PassageRetriever(self._search.open, self._parts.log, self._parts.ledger)

    @property
    def retriever(self) -> ContextRetriever:
        """See `OrchestratorContextManager.retriever`."""
        if self._retriever is None:
            from orchestra_mem.retrieval.retriever import ContextRetriever, RetrieverParts

            settings = self._parts.settings.retrieval
            self._retriever = ContextRetriever(
                RetrieverParts(
                    recollector=self._passages(), log=self._parts.log, ledger=self._parts.ledger,
                    counter=self._parts.counter, now=self._now, glance=self._glance, behind=self._behind,
                    cache_entries=settings.cache_entries, cache_ttl_s=settings.cache_ttl_s,
                    prefetch_tasks=settings.prefetch_tasks,
                )
            )  # fmt: skip
        return self._retriever

    def _now(self) -> Moment:
        self._life.snapshot()
        # What it answers by is a part of the moment; where it cannot be had, nothing is kept.
        with suppress(SearchError, StorageError):
            self._search.open()
        return self._glance()

    def _glance(self) -> Moment:
        from orchestra_mem.retrieval.retriever import Moment

        now, search = self._life.glance(), self._search.opened
        version = None if now.version is None else (now.version, search.answering_model if search else None)
        return Moment(version=version, session=now.session_id)

    def _behind(self, job: Callable[[], object]) -> None:
        if self._search.opened is not None:
            self._search.opened.behind(job)

    @property
    def responses(self) -> ResponseCache:
        """See `OrchestratorContextManager.response_cache`."""
        if self._responses is None:
            from orchestra_mem.core.search.responses import ResponseKind
            from orchestra_mem.retrieval.response_cache import ResponseCache, ResponseLimits

            settings = self._parts.settings.responses
            self._responses = ResponseCache(
                self._parts.open_responses,
                lambda question: self._search.open().embed(question),
                self._facts_for,
                clock=self._parts.clock,
                limits=ResponseLimits(
                    similarity=settings.similarity,
                    max_entries=settings.max_entries,
                    ttl={
                        ResponseKind.FACTUAL: timedelta(seconds=settings.factual_ttl_s),
                        ResponseKind.TOOL: timedelta(seconds=settings.tool_ttl_s),
                        ResponseKind.GREETING: timedelta(seconds=settings.greeting_ttl_s),
                    },
                ),
            )
        return self._responses

    def _facts_for(self, question: str) -> list[str]:
        return [hit.chunk.key for hit in self.search(question, EVERYTHING, SearchMode.HYBRID, _FACTS).hits]

    def stats(self) -> dict[str, Json]:
        """Figures of what has been opened, and what keeps search by meaning off, None where nothing does."""
        return {
            "opened": self._search.opened is not None,
            "problem": self._search.problem,
            "retrieval": self._retriever.get_stats() if self._retriever else None,
            "responses": self._responses.get_stats() if self._responses else None,
        }

    def problems(self) -> list[Json]:
        """What is off, in the words of `status`."""
        problem = self._search.problem
        return [{"subject": "search", "since": None, "problem": problem}] if problem else []

"""What a memory answers questions with: search, the retriever, the response cache, each opened at its first use.

All of it is derived or can be missing: recording and contexts go on without.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from orchestra_mem.core.catalog.access import Access
from orchestra_mem.errors import SearchError, StorageError
from orchestra_mem.memory.lifecycle import Lifecycle
from orchestra_mem.memory.parts import MemoryParts
from orchestra_mem.search_types import EVERYTHING, SearchFilter, SearchMode
from orchestra_mem.types import Json, MustKeep, MustKeepKind, MustKeepStatus

if TYPE_CHECKING:
    from orchestra_mem.core.search.disclosure import DisclosedEntry, Recalled
    from orchestra_mem.retrieval.indexer import Backlog
    from orchestra_mem.retrieval.lazy_search import LazySearch
    from orchestra_mem.retrieval.recommendations import Recommendations
    from orchestra_mem.retrieval.response_cache import ResponseCache
    from orchestra_mem.retrieval.retriever import ContextRetriever, Moment, RetrievedContext
    from orchestra_mem.retrieval.search import Answer

logger = logging.getLogger(__name__)

# So many memories are looked for: as many as a budget could hold of the shortest, within bounds.
_TOKENS_RECALLED, _LEAST_RECALLED, _MOST_RECALLED = 50, 20, 100
# Operations are read for facts so many at once, and other threads come in between.
_READ_AT_ONCE, _BETWEEN_S = 100, 0.005


class QueryService:
    """Opens and holds what questions are answered with. Safe to share between threads."""

    def __init__(self, parts: MemoryParts, life: Lifecycle) -> None:
        self._parts = parts
        self._life = life
        self._search = parts.search
        self._retriever: MemoryRetriever | None = None
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

    def facts(self, kind: MustKeepKind | None, status: MustKeepStatus | None, limit: int | None) -> list[MustKeep]:
        """See `OrchestratorContextManager.facts`."""
        while True:
            with self._life.settled():
                unread = self._life.unread
                self._life.extract_facts(_READ_AT_ONCE)
                if not 0 < self._life.unread < unread:  # all are read, or the disk refuses
                    kinds = (kind,) if kind else ()
                    return self._parts.ledger.must_keeps(kinds=kinds, status=status, limit=limit)
            time.sleep(_BETWEEN_S)

    def passages(self, query: str, max_results: int) -> list[str]:
        """See `OrchestratorContextManager.search_memory`."""
        if max_results <= 0:
            return []
        try:
            hits = self.search(query, EVERYTHING, SearchMode.HYBRID, max_results).hits
            self._search.open().note_recalled([hit.chunk.text for hit in hits])
        except (StorageError, SearchError):
            logger.warning("search cannot be used; looking through the live tiers", exc_info=True)
            from orchestra_mem.memory.recall import Recall

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
            from orchestra_mem.core.search.disclosure import Recalled

            return Recalled(recollections=(), notes=(f"nothing is recalled, search cannot be loaded: {error}",))

    @property
    def retriever(self) -> MemoryRetriever:
        """See `OrchestratorContextManager.retriever`."""
        if self._retriever is None:
            from orchestra_mem.retrieval.retriever import ContextRetriever

            parts = self._parts
            retriever = ContextRetriever(parts.search, parts.log, parts.ledger, parts.counter, parts.settings.retrieval)
            self._retriever = MemoryRetriever(retriever, self._life, self._search, parts.agents.access)
        return self._retriever

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


@dataclass(frozen=True, slots=True, eq=False)
class MemoryRetriever:
    """Retrieves what past work says for a task, from the memory as it is now. Safe to share between threads."""

    _retriever: ContextRetriever
    _life: Lifecycle
    _search: LazySearch
    _access: Access

    def _now(self) -> Moment:
        from orchestra_mem.retrieval.retriever import Moment

        now = self._life.snapshot()
        # What it answers by is a part of the moment; where it cannot be had, nothing is kept.
        with suppress(SearchError, StorageError):
            self._search.open()
        search = self._search.opened
        version = None if now.version is None else (now.version, search.answering_model if search else None)
        return Moment(version=version, session=now.session_id)

    def retrieve_context(
        self, task: str, *, agents: Sequence[str] = (), pattern: str | None = None, max_tokens: int = 2_000,
        where: SearchFilter = EVERYTHING,
    ) -> RetrievedContext:  # fmt: skip
        """Retrieve what the memory has for a task: an index with costs, then the best entries themselves.

        Args:
            task: what is to be done; any string.
            agents: who will do it; what not all of them may see is left out, and their own goes a little before.
            pattern: how they work together, as in `parallel`; what was done so goes a little before.
            max_tokens: the budget.

        Raises:
            ValueError: the budget is negative.
            ClosedError: the memory has been closed.
        """
        where = self._access.within(where, *agents)
        return self._retriever.retrieve_context(
            task, self._now(), agents=agents, pattern=pattern, max_tokens=max_tokens, where=where
        )

    def get_recommendations(
        self, task: str, *, agents: Sequence[str] = (), limit: int = 3, where: SearchFilter = EVERYTHING
    ) -> Recommendations:
        """Say what past decisions, rules, failures and similar tasks mean for a task, each with its source.

        Args:
            task: what is to be done; any string.
            agents: who will do it; what not all of them may see is left out, and their own goes a little before.
            limit: how many of each at most.

        Raises:
            ValueError: the limit is negative.
            ClosedError: the memory has been closed.
        """
        where = self._access.within(where, *agents)
        return self._retriever.get_recommendations(task, self._now(), agents=agents, limit=limit, where=where)

    def load_layer1(
        self, query: str, *, agents: Sequence[str] = (), pattern: str | None = None, limit: int = 3
    ) -> list[DisclosedEntry]:
        """Give the best entries that `retrieve_context` finds, each with its source, title and what it costs."""
        return [*self.retrieve_context(query, agents=agents, pattern=pattern).entries[: max(0, limit)]]

    def load_layer2(self, entries: Sequence[DisclosedEntry], token_budget: int) -> list[DisclosedEntry]:
        """Give those entries of `load_layer1`, in their order, whose texts fit a budget together."""
        if any(isinstance(entry, str) for entry in entries):
            raise TypeError("load_layer2 takes entries of load_layer1, not their names; use memory.expand for a name")
        sizes = accumulate(entry.tokens for entry in entries)
        return [entry for entry, size in zip(entries, sizes, strict=True) if size <= token_budget and entry.text]

    def clear_cache(self, pattern: str = "") -> None:
        """Forget what was retrieved; of one pattern, task or agent where it is named."""
        self._retriever.clear_cache(pattern)

    def get_stats(self) -> dict[str, Json]:
        """Return figures of the cache: `hits` and `misses` since the start."""
        return self._retriever.get_stats()

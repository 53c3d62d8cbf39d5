"""What a memory answers questions with: search, the retriever, the response cache, each opened at its first use.

All of it is derived or can be missing: recording and contexts go on without.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from orchestra_mem.core.context.continuity import TurnWindow, turn_window
from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.core.context.turns import NO_EMBEDDER
from orchestra_mem.core.search.disclosure import Recalled
from orchestra_mem.errors import SearchError, StorageError
from orchestra_mem.memory.lifecycle import Lifecycle
from orchestra_mem.memory.parts import MemoryParts
from orchestra_mem.memory.recall import Recall
from orchestra_mem.search_types import SearchFilter, SearchMode
from orchestra_mem.types import FileState, Json

if TYPE_CHECKING:
    from orchestra_mem.retrieval.indexer import Backlog
    from orchestra_mem.retrieval.passages import PassageRetriever
    from orchestra_mem.retrieval.response_cache import ResponseCache
    from orchestra_mem.retrieval.retriever import ContextRetriever, Moment
    from orchestra_mem.retrieval.search import Answer, MemorySearch

logger = logging.getLogger(__name__)

# What a question's answer is made from, as far as the response cache goes by it.
_FACTS = 5
# File systems tell times by the kernel's tick, 10 ms at most.
_TICK_NS = 50_000_000


class QueryService:
    """Opens and holds what questions are answered with. Safe to share between threads.

    Args:
        parts: the memory's.
        flow: tells the session under way.
        settled: brings the tiers up to date and keeps other threads from them while it is held; refuses where closed.
    """

    def __init__(
        self, parts: MemoryParts, flow: Lifecycle, settled: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._parts = parts
        self._flow = flow
        self._settled = settled
        self._search: MemorySearch | None = None
        self._recollector: PassageRetriever | None = None
        self._retriever: ContextRetriever | None = None
        self._responses: ResponseCache | None = None

    def search(self, query: str, where: SearchFilter, mode: SearchMode, limit: int) -> Answer:
        """See `OrchestratorContextManager.search`."""
        with self._settled():
            search, session = self.opened_search(), self._session
        return search.search(query, where=where, mode=mode, limit=limit, session=session)

    @property
    def _session(self) -> str | None:
        session = self._flow.session
        return session.id if session else None

    def passages(self, query: str, max_results: int) -> list[str]:
        """See `OrchestratorContextManager.search_memory`."""
        if max_results <= 0:
            return []
        try:
            hits = self.search(query, SearchFilter(), SearchMode.HYBRID, max_results).hits
            self._known_search().note_recalled([hit.chunk.text for hit in hits])
        except (StorageError, SearchError):
            logger.warning("search cannot be used; looking through the live tiers", exc_info=True)
            return self._lines_with(query, max_results)
        return [f"[{hit.chunk.source}] {' '.join(hit.chunk.text.split())}" for hit in hits]

    def _lines_with(self, query: str, max_results: int) -> list[str]:
        parts = self._parts
        with self._settled():
            lines = [entry.short.strip() for entry in reversed(parts.working.entries())]
            lines += parts.session.search("", 100_000)
            lines += parts.episodic.search("", 100_000)
        return Recall.best_lines(query, lines, max_results)

    def opened_search(self) -> MemorySearch:
        """The search, opened now if it has not been; the caller holds `settled`."""
        if self._search is None:
            try:
                self._search = self._parts.open_search()
            except ImportError as error:
                raise SearchError(f"search cannot be loaded, numpy and faiss-cpu belong to it: {error}") from error
        return self._search

    def update_index(self, told: Callable[[Backlog], None] | None, *, anew: bool) -> None:
        """See `OrchestratorContextManager.update_index`."""
        with self._settled():
            search = self.opened_search()
        if anew:
            search.rebuild()
        search.catch_up(told)

    def _known_search(self) -> MemorySearch:
        """The search, opened if need be. Once it is, no lock is waited for: who closes waits for what runs behind."""
        if self._search is not None:
            return self._search
        with self._settled():
            return self.opened_search()

    def context(self, for_operation: str, max_tokens: int | None, query: str | None) -> OrchestratorContext:
        """See `OrchestratorContextManager.get_orchestrator_context`; whoever counts may have it built again."""
        budget_tokens = self._flow.default_budget if max_tokens is None else max_tokens
        if budget_tokens < 0:
            raise ValueError(f"max_tokens is {budget_tokens}: a budget cannot be negative")
        recalled = None if query is None else self.recalled(query)

        def build(doubted: int) -> OrchestratorContext:
            with self._settled():
                if doubted:
                    self._parts.epochs.count_again(doubted)
                return self._flow.context(for_operation, budget_tokens, recalled)

        return self._parts.assemble(build)

    def turn_window(self, messages: Sequence[str]) -> TurnWindow:
        """How many turns stand in full, by how far the last of the user's messages is from those before it.

        Nothing is loaded for that, and no server asked: where nobody has searched yet there is no embedder.
        """
        if self._search is None:
            return NO_EMBEDDER
        from orchestra_mem.settings import EmbedderChoice  # heavy, and loaded by now

        if self._parts.settings.search.embedder is EmbedderChoice.HTTP:
            return NO_EMBEDDER
        found = [self._search.embed(message) for message in messages]
        vectors = [each[1] for each in found if each is not None]
        if not vectors or len(vectors) < len(found):
            return NO_EMBEDDER
        return turn_window(vectors[-1], vectors[:-1])

    def recalled(self, query: str) -> Recalled:
        """What a query recalls; where search cannot be used, nothing, and a note says why."""
        with self._settled():
            session = self._session
        try:
            return self._opened_recollector().recall(query, session=session)
        except ImportError as error:
            return Recalled(recollections=(), notes=(f"nothing is recalled, search cannot be loaded: {error}",))

    def _opened_recollector(self) -> PassageRetriever:
        if self._recollector is None:
            from orchestra_mem.retrieval.passages import PassageRetriever

            self._recollector = PassageRetriever(self._known_search, self._parts.log, self._parts.ledger)
        return self._recollector

    @property
    def retriever(self) -> ContextRetriever:
        """See `OrchestratorContextManager.retriever`."""
        if self._retriever is None:
            from orchestra_mem.retrieval.retriever import ContextRetriever, RetrieverParts

            settings = self._parts.settings.retrieval
            self._retriever = ContextRetriever(
                RetrieverParts(
                    recollector=self._opened_recollector(), log=self._parts.log, ledger=self._parts.ledger,
                    counter=self._parts.counter, now=self._now, glance=self._glance, behind=self._behind,
                    cache_entries=settings.cache_entries, cache_ttl_s=settings.cache_ttl_s,
                    prefetch_tasks=settings.prefetch_tasks,
                )
            )  # fmt: skip
        return self._retriever

    def _now(self) -> Moment:
        with self._settled():
            # What it answers by is a part of the moment; where it cannot be had, nothing is kept.
            with suppress(SearchError, StorageError):
                self.opened_search()
            return self._glance()

    def _glance(self) -> Moment:
        from orchestra_mem.retrieval.retriever import Moment

        version = self._version()
        model = self._search.answering_model if self._search else None
        return Moment(version=None if version is None else (version, model), session=self._session)

    def _version(self) -> Hashable:
        """What differs after every change of the memory; None where a document was saved so lately that it is not sure.

        A second save within the same tick of the file system's clock leaves no trace in a document's state.
        """
        parts, session = self._parts, self._flow.session
        states = [*parts.episodic.states().values()]
        if session is not None:
            states += parts.session.foreign_state(session)
        latest = max((state.modified_ns for state in states if isinstance(state, FileState)), default=0)
        if abs(time.time_ns() - latest) < _TICK_NS:
            return None
        return parts.commit_count(), tuple(states), parts.clock().date()

    def _behind(self, job: Callable[[], object]) -> None:
        if self._search is not None:
            self._search.behind(job)

    @property
    def responses(self) -> ResponseCache:
        """See `OrchestratorContextManager.response_cache`."""
        if self._responses is None:
            from orchestra_mem.core.search.responses import ResponseKind
            from orchestra_mem.retrieval.response_cache import ResponseCache, ResponseLimits

            settings = self._parts.settings.responses
            self._responses = ResponseCache(
                self._parts.open_responses,
                lambda question: self._known_search().embed(question),
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
        hits = self.search(question, SearchFilter(), SearchMode.HYBRID, _FACTS).hits
        return [hit.chunk.key for hit in hits]

    def stats(self) -> dict[str, Json]:
        """Figures of what has been opened, and what keeps search by meaning off, None where nothing does."""
        return {
            "opened": self._search is not None,
            "problem": self._search.problem if self._search else None,
            "retrieval": self._retriever.get_stats() if self._retriever else None,
            "responses": self._responses.get_stats() if self._responses else None,
        }

    def problems(self) -> list[Json]:
        """What is off, in the words of `status`."""
        problem = self._search.problem if self._search else None
        return [{"subject": "search", "since": None, "problem": problem}] if problem else []

    def close(self) -> None:
        """Close what was opened."""
        if self._search is not None:
            self._search.close()

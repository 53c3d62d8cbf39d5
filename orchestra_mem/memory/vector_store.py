"""VectorStore: search for similar past work, with the names of the source design (`intelligence-layer`).

A thin adapter of `OrchestratorContextManager`: it records additions as operations and uses the memory's search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestra_mem.catalog_types import ItemFilter, ItemType, MemoryItem
from orchestra_mem.core.search.hybrid import search_until
from orchestra_mem.design_names import RejectsDesignArguments
from orchestra_mem.errors import EmbedderError, InvalidOperationError, SearchError, StorageError
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.retrieval.passages import Recommendations, find_operation
from orchestra_mem.search_types import Hit, SearchFilter, SearchMode, Tier
from orchestra_mem.tiers.catalog_learning import ORCHESTRATION, reference
from orchestra_mem.types import Json, MustKeep, Operation

# The source design's names for search modes, in addition to those of `SearchMode`.
_MODES = {"vector": SearchMode.DENSE, "fts": SearchMode.KEYWORD}
_OPERATIONS = SearchFilter(tiers=(Tier.WORKING, Tier.SESSION))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarOperation:
    """An operation that is similar to a query.

    `similarity` is the cosine, 0 to 1, or 0 if only keywords matched. `score`, `likelihood` and `perhaps` are as in
    `Hit`. `observations` are the active facts of the operation, such as decisions and failures. `categorized` are the
    catalog items that `memory.categorization` made from it.
    """

    operation: Operation
    passage: str
    similarity: float
    score: float
    likelihood: float
    perhaps: bool
    observations: tuple[MustKeep, ...] = ()
    categorized: tuple[MemoryItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """The numbers of orchestrations that were recorded and that failed, and the error of each failure by id."""

    successful: int
    failed: int
    errors: Mapping[str, str]


class VectorStore(RejectsDesignArguments, use="VectorStore(open_memory(project, config=config))"):
    """Finds past work by meaning and words. Safe to share between threads.

    Args:
        memory: The memory to search. Its owner closes it.
    """

    def __init__(self, memory: OrchestratorContextManager) -> None:
        self._memory = memory

    def initialize(self) -> bool:
        """Update the search index. Return whether search by meaning is available."""
        try:
            self._memory.update_index()
        except (EmbedderError, SearchError, StorageError):
            return False
        return self.is_available()

    def is_available(self) -> bool:
        """Check whether search by meaning works. If not, searches still answer by keywords."""
        try:
            self._memory.search("", mode=SearchMode.DENSE, limit=1)
        except (EmbedderError, SearchError, StorageError):
            return False
        return True

    def add_orchestration(self, orchestration_id: str, data: Mapping[str, Json]) -> bool:
        """Record an orchestration: `task`, `result_summary`, `concepts`, `metadata`. Return False if its id is known.

        Raises:
            InvalidOperationError: The data are not JSON.
            StorageError: The write failed.
        """
        known = self._memory.query_recent_operations(limit=1)
        agent = data.get("agent")
        added = self._memory.record_operation(
            ORCHESTRATION, dict(data), agent=agent if isinstance(agent, str) else None, idempotency_key=orchestration_id
        )
        return not known or added.id > known[0].id

    def add_orchestrations_batch(self, orchestrations: Iterable[tuple[str, Mapping[str, Json]]]) -> BatchResult:
        """Record several orchestrations, each an id with its data. A failure does not stop the others."""
        successful = 0
        errors: dict[str, str] = {}
        for orchestration_id, data in orchestrations:
            try:
                self.add_orchestration(orchestration_id, data)
                successful += 1
            except (InvalidOperationError, StorageError) as error:
                errors[orchestration_id] = str(error)
        return BatchResult(successful=successful, failed=len(errors), errors=errors)

    def search_similar(
        self,
        query: str,
        *,
        limit: int = 5,
        min_similarity: float = 0.0,
        pattern: str | None = None,
        include_observations: bool = True,
        search_mode: str = "hybrid",
    ) -> list[SimilarOperation]:
        """Return the operations most similar to a query, best first.

        Args:
            query: A task, a question or names; any string is allowed.
            limit: Maximum number of operations.
            min_similarity: Least cosine of an operation that contains no word of the query. Similar texts reach 0.3
                with the bundled model, 0.6 with many others.
            pattern: Only operations with this `pattern` in their data.
            include_observations: Whether to add the facts and catalog items of each operation.
            search_mode: `hybrid`, `vector` (or `dense`), `fts` (or `keyword`).

        Raises:
            ValueError: There is no such mode.
            EmbedderError: The mode is `vector`, and no vectors are available.
        """
        mode = _MODES.get(search_mode) or SearchMode(search_mode)
        where = replace(_OPERATIONS, pattern=pattern)
        observations: dict[int, list[MustKeep]] = {}
        for fact in self._memory.facts() if include_observations else ():
            observations.setdefault(fact.operation, []).append(fact)

        def similar(hits: Sequence[Hit]) -> list[SimilarOperation]:
            best: dict[int, Hit] = {}
            for hit in hits:  # an operation may have several passages
                if hit.chunk.operation and (hit.reasons.keyword_rank or hit.reasons.dense_score >= min_similarity):
                    best.setdefault(hit.chunk.operation, hit)
            # The index may be newer than a restored database.
            found = [(find_operation(self._memory._parts.log, number), hit) for number, hit in best.items()]
            learnt = self._learnt(best) if include_observations else {}
            return [
                SimilarOperation(
                    operation=operation, passage=hit.chunk.text, similarity=max(0.0, hit.reasons.dense_score),
                    score=hit.score, likelihood=hit.likelihood, perhaps=hit.perhaps,
                    observations=tuple(observations.get(operation.id, ())),
                    categorized=tuple(learnt.get(operation.id, ())),
                )
                for operation, hit in found if operation
            ]  # fmt: skip

        def ask(size: int) -> Sequence[Hit]:
            return self._memory.search(query, where=where, mode=mode, limit=size).hits

        return search_until(ask, similar, max(0, limit))

    def _learnt(self, operations: Iterable[int]) -> dict[int, list[MemoryItem]]:
        """Return the catalog items learnt from operations, by operation id."""
        wanted = {reference(number): number for number in operations}
        where = ItemFilter(references=[*wanted], types=[ItemType.OBSERVATION])
        found: dict[int, list[MemoryItem]] = {}
        for item in self._memory.catalog.items(where) if wanted else ():
            for name in wanted.keys() & {*item.references}:
                found.setdefault(wanted[name], []).append(item)
        return found

    def get_recommendations(self, task: str, *, agents: Sequence[str] = (), limit: int = 3) -> Recommendations:
        """Return recommendations from past work for a task; see `ContextRetriever.get_recommendations`."""
        return self._memory.retriever.get_recommendations(task, agents=agents, limit=limit)

    def close(self) -> None:
        """Do nothing: the owner of the memory closes it."""

    def get_stats(self) -> dict[str, Json]:
        """Return `available` and, under `search`, the statistics of the memory's search."""
        return {"available": self.is_available(), "search": self._memory.get_stats().get("search")}

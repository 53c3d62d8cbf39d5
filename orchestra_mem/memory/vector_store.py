"""VectorStore: similar work of the past, by the names of the source design (`intelligence-layer`).

A thin face of `OrchestratorContextManager`: what it adds is recorded as operations, what it finds search finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestra_mem.catalog_types import ItemFilter, ItemType, MemoryItem
from orchestra_mem.core.search.widening import enough_of
from orchestra_mem.design_names import MadeOtherwise
from orchestra_mem.errors import EmbedderError, InvalidOperationError, NotFoundError, SearchError, StorageError
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.retrieval.passages import Recommendations
from orchestra_mem.search_types import Hit, SearchFilter, SearchMode, Tier
from orchestra_mem.tiers.catalog_learning import ORCHESTRATION, reference
from orchestra_mem.types import Json, MustKeep, Operation

# The design's names for the modes, beside ours.
_MODES = {"vector": SearchMode.DENSE, "fts": SearchMode.KEYWORD}
_OPERATIONS = SearchFilter(tiers=(Tier.WORKING, Tier.SESSION))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarOperation:
    """An operation that is like what was asked for.

    `similarity` is the cosine, 0 to 1, 0 where words alone found it; `score`, `likelihood`, `perhaps` are as in `Hit`.
    `observations` are the decisions, rules, failures and so on that were found in it and hold now; `categorized` is
    what `memory.categorization` learnt from it.
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
    """How many orchestrations were added, how many were not, and why, by id."""

    successful: int
    failed: int
    errors: Mapping[str, str]


class VectorStore(MadeOtherwise, use="VectorStore(open_memory(project, config=config))"):
    """Finds past work by meaning and words. Safe to share between threads.

    Args:
        memory: what is searched; closing it is its owner's business.
    """

    def __init__(self, memory: OrchestratorContextManager) -> None:
        self._memory = memory

    def initialize(self) -> bool:
        """Bring the index up to the memory; whether search by meaning can be had."""
        try:
            self._memory.update_index()
        except (EmbedderError, SearchError, StorageError):
            return False
        return self.is_available()

    def is_available(self) -> bool:
        """Tell whether search by meaning works; words answer all the same where it does not."""
        try:
            self._memory.search("", mode=SearchMode.DENSE, limit=1)
        except (EmbedderError, SearchError, StorageError):
            return False
        return True

    def add_orchestration(self, orchestration_id: str, data: Mapping[str, Json]) -> bool:
        """Record what an orchestration did: `task`, `result_summary`, `concepts`, `metadata`. False where it was known.

        Raises:
            InvalidOperationError: the data are no JSON.
            StorageError: it could not be stored.
        """
        known = self._memory.query_recent_operations(limit=1)
        agent = data.get("agent")
        added = self._memory.record_operation(
            ORCHESTRATION, dict(data), agent=agent if isinstance(agent, str) else None, idempotency_key=orchestration_id
        )
        return not known or added.id > known[0].id

    def add_orchestrations_batch(self, orchestrations: Iterable[tuple[str, Mapping[str, Json]]]) -> BatchResult:
        """Record several, each an id with its data; one that cannot be recorded keeps no other back."""
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
        """Find the operations most like a query, best first; any string is one.

        Args:
            query: a task, a question, names.
            limit: how many at most.
            min_similarity: cosine below which an operation is left out that has no word of the query. What is near
                depends on the model: like texts have 0.3 and up with the bundled one, 0.6 and up with many others.
            pattern: only operations with this `pattern` in their data.
            include_observations: whether to add what was found in each.
            search_mode: hybrid, vector (or dense), fts (or keyword).

        Raises:
            ValueError: there is no such mode.
            EmbedderError: the mode is vector, and no vectors can be had.
        """
        mode = _MODES.get(search_mode) or SearchMode(search_mode)
        where = replace(_OPERATIONS, pattern=pattern)
        observations: dict[int, list[MustKeep]] = {}
        for fact in self._memory.facts() if include_observations else ():
            observations.setdefault(fact.operation, []).append(fact)

        def similar(hits: Sequence[Hit]) -> list[SimilarOperation]:
            best: dict[int, Hit] = {}
            for hit in hits:  # several passages may be of one operation
                if hit.chunk.operation and (hit.reasons.keyword_rank or hit.reasons.dense_score >= min_similarity):
                    best.setdefault(hit.chunk.operation, hit)
            found = [(self._operation(number), hit) for number, hit in best.items()]
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

        return enough_of(ask, similar, max(0, limit))

    def _learnt(self, operations: Iterable[int]) -> dict[int, list[MemoryItem]]:
        """What was learnt from each of some operations, by their numbers."""
        wanted = {reference(number): number for number in operations}
        where = ItemFilter(references=[*wanted], types=[ItemType.OBSERVATION])
        found: dict[int, list[MemoryItem]] = {}
        for item in self._memory.catalog.items(where) if wanted else ():
            for name in wanted.keys() & {*item.references}:
                found.setdefault(wanted[name], []).append(item)
        return found

    def _operation(self, number: int) -> Operation | None:
        try:
            return self._memory.expand(f"op {number}").operations[0]
        except NotFoundError:  # the index may be ahead of a memory that was put back
            return None

    def get_recommendations(self, task: str, *, agents: Sequence[str] = (), limit: int = 3) -> Recommendations:
        """Say what past work means for a task; see `ContextRetriever.get_recommendations`."""
        return self._memory.retriever.get_recommendations(task, agents=agents, limit=limit)

    def close(self) -> None:
        """Do nothing: the memory is closed by whoever opened it."""

    def get_stats(self) -> dict[str, Json]:
        """Return figures: `available`, and what the memory says of its search."""
        return {"available": self.is_available(), "search": self._memory.get_stats().get("search")}

"""What agents learn and are given: the catalog's calls of a memory, and a memory as one agent may see it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from orchestra_mem.catalog_types import AuditEntry, AuditFilter, Injection, MemoryItem
from orchestra_mem.core.catalog.access import Access
from orchestra_mem.errors import NotFoundError, OrchestraMemError
from orchestra_mem.memory.recall import Expansion, is_memory_item
from orchestra_mem.search_types import EVERYTHING, SearchFilter, SearchMode
from orchestra_mem.tiers.audit import AuditTrail
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.tiers.catalog_documents import CatalogDocuments
from orchestra_mem.tiers.catalog_learning import CatalogLearner
from orchestra_mem.tiers.catalog_selection import CatalogSelector
from orchestra_mem.types import Json, MustKeep, MustKeepKind, Operation, OperationFilter

if TYPE_CHECKING:
    from orchestra_mem.compression.categorizer import CategorizationService
    from orchestra_mem.compression.service import Compression
    from orchestra_mem.model_types import LanguageModel
    from orchestra_mem.retrieval.search import Answer

logger = logging.getLogger(__name__)

Foreground = Callable[[], AbstractContextManager[None]]
"""Keeps background work off the model."""


class InjectedMessage(str):
    """A message with what an agent should know before it; a text like any other. `injection` tells what was put in."""

    injection: Injection

    @classmethod
    def of(cls, message: str, injection: Injection) -> InjectedMessage:
        """Put what was selected before a message."""
        made = cls(f"{injection.text}\n{message}" if injection.text else message)
        made.injection = injection
        return made

    @property
    def context_loaded(self) -> bool:
        """Whether the catalog was asked, and could be."""
        return self.injection.loaded

    @property
    def item_ids(self) -> tuple[str, ...]:
        """The ids of the items that were put in, the most relevant first."""
        return tuple(each.item.id for each in self.injection.items)

    @property
    def tokens(self) -> int:
        """What was put in takes so many."""
        return self.injection.tokens


def injection_in(answers: Iterable[object]) -> Injection | None:
    """Find in what hooks have returned what was put before a message."""
    return next((each.injection for each in answers if isinstance(each, InjectedMessage)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogParts:
    """What the catalog is made of; `build` puts it together."""

    catalog: MemoryCatalog
    selector: CatalogSelector
    learner: CatalogLearner
    audit: AuditTrail
    documents: CatalogDocuments
    open_categorization: Callable[[LanguageModel | None, Foreground], CategorizationService]
    hooks: bool

    @property
    def access(self) -> Access:
        """Who may see and change what."""
        return self.catalog.access

    @property
    def has_work(self) -> bool:
        """Whether something is to be learnt, cleaned up or written."""
        return self.learner.waits or self.documents.due or self.catalog.cleanup_due

    def work(self) -> bool:
        """Learn from an exchange, write the documents, or clean up; whether there may be more."""
        if self.learner.waits:
            self.learner.work(1)
        elif self.documents.due:
            self.documents.write()
        elif self.catalog.cleanup_due:
            self.catalog.clean_up()
        return self.learner.waits

    def settle(self) -> None:
        """Learn from what waits, and read what people have edited: whoever looks now sees it. What fails waits on."""
        try:
            if self.learner.waits:
                self.learner.work()
            self.documents.take_in()
        except OrchestraMemError as error:
            logger.warning("the catalog is not up to date: %s", error)

    def write(self) -> None:
        """Bring the documents up to date; what fails waits for the next time."""
        self.settle()
        try:
            if self.documents.due:
                self.documents.write()
        except OrchestraMemError as error:
            logger.warning("the catalog's documents are not up to date: %s", error)

    def stats(self) -> dict[str, Json]:
        """Count live items, their tokens and agents, and the exchanges that wait to be learnt from."""
        found = [each for each in self.catalog.get_stats().values() if each.total_memories]
        items, tokens = (sum(each.total_memories for each in found), sum(each.total_tokens for each in found))
        return {"items": items, "tokens": tokens, "agents": len(found), "waiting": self.learner.waiting_count}

    def problems(self) -> list[Json]:
        """Return what is off, as `status` shows what is wrong."""
        return [{"subject": "catalog", "since": None, "problem": problem} for problem in self.learner.problems()]


class AgentCalls:
    """The calls of a memory that concern agents; `OrchestratorContextManager` has them."""

    _agents: CatalogParts
    _note_call: Callable[..., None]
    compression: Compression

    @property
    def catalog(self) -> MemoryCatalog:
        """What agents have learnt: decisions, insights, errors, plans, each of one agent or of all."""
        self._agents.settle()
        return self._agents.catalog

    @cached_property
    def categorization(self) -> CategorizationService:
        """Says what was learnt from orchestrations, and keeps it in the catalog."""
        return self._agents.open_categorization(self.compression.compressor.model, self.compression.foreground)

    @property
    def has_catalog_hooks(self) -> bool:
        """Whether an orchestrator asks the catalog and learns by itself: setting `catalog.hooks`."""
        return self._agents.hooks

    def inject(
        self, message: str, *, agent: str, max_tokens: int | None = None, use_memory: bool = True
    ) -> InjectedMessage:
        """Put before a message what the agent should know with it: relevant items of the catalog, fenced as data.

        Whatever is wrong with the catalog, the message comes back; `injection.problem` says why it is alone.

        Args:
            message: what the agent is to be told.
            agent: whose it is; it is given its own items, those of all, and what it is granted.
            max_tokens: what may be put in; by default, and at most, `catalog.max_injection_tokens`.
            use_memory: False gives the message as it is.

        Raises:
            ValueError: no agent is named, or the budget is negative.
        """
        if not agent.strip():
            raise ValueError("inject() needs the name of an agent, as in agent='reviewer'")
        if not use_memory:
            return InjectedMessage.of(message, Injection(agent=agent, problem="not asked for: use_memory is false"))
        try:
            injection = self.relevant(message, agent=agent, max_tokens=max_tokens, call="inject")
            self._agents.learner.note_given([each.item.content for each in injection.items])
        except OrchestraMemError as error:
            logger.warning("nothing of the catalog is given to %r: %s", agent, error)
            injection = Injection(agent=agent, problem=str(error))
        return InjectedMessage.of(message, injection)

    def relevant(
        self, message: str, *, agent: str, max_tokens: int | None = None, call: str = "get_relevant"
    ) -> Injection:
        """Select what an agent should know with a message, each item with the four parts of its relevance.

        Raises:
            ValueError: the budget is negative.
            StorageError: the catalog cannot be read.
        """
        self._agents.settle()
        return self._agents.selector.get_relevant(agent.strip(), message, max_tokens, call=call)

    def learn(self, message: str, answer: str, *, agent: str) -> None:
        """Learn from what an agent was told and what it answered: its decisions, insights, errors and plans.

        When this returns the exchange is kept for good, and is learnt from in the background, at the latest before the
        catalog is looked at again. What only repeats what was given by `inject` is not learnt again.

        Raises:
            ValueError: no agent is named.
            StorageError: it could not be kept.
        """
        self._agents.learner.put(agent, message, answer)
        self._note_call(changed=True)

    def write_catalog(self) -> None:
        """Write into the documents what has changed in the catalog. In a pause or refresh it happens by itself."""
        self._agents.write()

    def as_agent(self, agent: str) -> AgentMemory:
        """Give this memory as one agent may see it."""
        return AgentMemory(self, agent)  # type: ignore[arg-type]

    def audit(self, where: AuditFilter | None = None) -> list[AuditEntry]:
        """Return who looked at the catalog and who changed it, newest first."""
        return self._agents.audit.entries(where or AuditFilter())


class _Memory(Protocol):
    """What an agent's view needs of a memory."""

    _agents: CatalogParts

    @property
    def catalog(self) -> MemoryCatalog: ...

    def inject(self, message: str, *, agent: str, max_tokens: int | None = None) -> InjectedMessage: ...

    def learn(self, message: str, answer: str, *, agent: str) -> None: ...

    def search(self, query: str, *, where: SearchFilter, mode: SearchMode, limit: int) -> Answer: ...

    def operations(self, where: OperationFilter | None = None) -> list[Operation]: ...

    def count_operations(self, where: OperationFilter | None = None) -> int: ...

    def facts(self, kind: MustKeepKind | None = None, *, standing: bool = True) -> list[MustKeep]: ...

    def expand(self, reference: str | int) -> Expansion: ...


class AgentMemory:
    """A memory as one agent may see it: every face that speaks for an agent goes through this.

    By default agents share all but catalog items; with `catalog.isolation: strict` they see of operations, facts and
    search what is theirs, of all, or granted, and nothing else.
    """

    def __init__(self, memory: _Memory, agent: str) -> None:
        if not agent.strip():
            raise ValueError("an agent needs a name")
        self._memory = memory
        self.agent = agent.strip()
        self._access = memory._agents.access

    def inject(self, message: str, *, max_tokens: int | None = None) -> InjectedMessage:
        """See `OrchestratorContextManager.inject`."""
        return self._memory.inject(message, agent=self.agent, max_tokens=max_tokens)

    def learn(self, message: str, answer: str) -> None:
        """See `OrchestratorContextManager.learn`."""
        self._memory.learn(message, answer, agent=self.agent)

    def remember(self, content: str, **fields: object) -> MemoryItem:
        """Store an item of the catalog; see `MemoryCatalog.store`."""
        return self._memory.catalog.store({"content": content, **fields}, agent=self.agent)

    def search(
        self, query: str, *, where: SearchFilter = EVERYTHING, mode: SearchMode = SearchMode.HYBRID, limit: int = 10
    ) -> Answer:
        """See `OrchestratorContextManager.search`."""
        where = replace(where, readable=self._access.readable(self.agent), strict=self._access.strict)
        return self._memory.search(query, where=where, mode=mode, limit=limit)

    def operations(self, where: OperationFilter | None = None) -> list[Operation]:
        """See `OrchestratorContextManager.operations`."""
        if not self._access.strict:
            return self._memory.operations(where)
        where = where or OperationFilter()
        seen = [each for each in self._memory.operations(replace(where, limit=None, offset=0)) if self._may_see(each)]
        seen = seen[: len(seen) - where.offset] if where.offset < len(seen) else []
        return seen if where.limit is None else seen[max(0, len(seen) - where.limit) :]

    def count_operations(self, where: OperationFilter | None = None) -> int:
        """See `OrchestratorContextManager.count_operations`."""
        if not self._access.strict:
            return self._memory.count_operations(where)
        return len(self.operations(replace(where or OperationFilter(), limit=None, offset=0)))

    def facts(self, kind: MustKeepKind | None = None, *, standing: bool = True) -> list[MustKeep]:
        """See `OrchestratorContextManager.facts`."""
        found = self._memory.facts(kind, standing=standing)
        if not self._access.strict:
            return found
        visible = {each.id for each in self.operations()}
        return [fact for fact in found if fact.operation in visible]

    def expand(self, reference: str | int) -> Expansion:
        """See `OrchestratorContextManager.expand`.

        Raises:
            NotFoundError: there is no such thing that this agent may see.
        """
        if is_memory_item(reference):
            return self._memory.expand(self._memory.catalog.get(str(reference).strip(), agent=self.agent).id)
        found = self._memory.expand(reference)
        behind = (*found.operations, *found.around)
        if self._access.strict and (not found.operations or not all(map(self._may_see, behind))):
            raise NotFoundError(f"{reference!r} names nothing that agent {self.agent!r} may see")
        return found

    def _may_see(self, operation: Operation) -> bool:
        return not self._access.strict or self._access.may_read(self.agent, operation.agent)

"""The view that one agent has of a memory and its catalog, and messages with injected catalog items."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from orchestra_mem.catalog_types import GLOBAL, Injection, ItemStatus, MemoryItem
from orchestra_mem.core.catalog.access import EVERYBODY, OWNER, Access
from orchestra_mem.core.context.items import Part
from orchestra_mem.core.search.echoes import without_recalled
from orchestra_mem.errors import AccessDeniedError, NotFoundError
from orchestra_mem.memory.recall import Expansion, is_memory_item
from orchestra_mem.search_types import EVERYTHING, SearchFilter, SearchMode
from orchestra_mem.serialize import checked_json
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.tiers.catalog_reading import AuditTrail
from orchestra_mem.types import OWNERS_CHAT, MustKeep, MustKeepKind, Operation, OperationFilter, Session

if TYPE_CHECKING:
    from orchestra_mem.core.context.rendered import OrchestratorContext
    from orchestra_mem.core.search.disclosure import Recalled
    from orchestra_mem.retrieval.passages import Recommendations
    from orchestra_mem.retrieval.retriever import RetrievedContext
    from orchestra_mem.retrieval.search import Answer


class InjectedMessage(str):
    """A message with relevant catalog items in front of it. It is a plain `str`; `injection` describes the items."""

    injection: Injection

    @classmethod
    def of(cls, message: str, injection: Injection) -> InjectedMessage:
        """Put the text of an injection in front of a message."""
        made = cls(f"{injection.text}\n{message}" if injection.text else message)
        made.injection = injection
        return made

    @property
    def context_loaded(self) -> bool:
        """Whether the catalog was read. False if reading failed or the caller passed `use_memory=False`."""
        return self.injection.loaded

    @property
    def item_ids(self) -> tuple[str, ...]:
        """The ids of the injected items, most relevant first."""
        return tuple(each.item.id for each in self.injection.items)

    @property
    def tokens(self) -> int:
        """The number of injected tokens."""
        return self.injection.tokens


def first_injection(answers: Iterable[object]) -> Injection | None:
    """Return the first injection among the results of hooks; None if no hook injected anything."""
    return next((each.injection for each in answers if isinstance(each, InjectedMessage)), None)


class _Memory(Protocol):
    """The members of a memory that an agent's view uses."""

    _parts: Any
    catalog: MemoryCatalog
    retriever: Any
    inject: Callable[..., InjectedMessage]
    relevant: Callable[..., Injection]
    learn: Callable[..., None]
    record_operation: Callable[..., Operation]
    get_orchestrator_context: Callable[..., OrchestratorContext]
    search: Callable[..., Answer]
    operations: Callable[[OperationFilter], list[Operation]]
    count_operations: Callable[[OperationFilter], int]
    find_session: Callable[[str], Session]
    facts: Callable[..., list[MustKeep]]
    expand: Callable[[str | int], Expansion]


class AgentCatalog:
    """The catalog as one agent may see and change it: the methods of `MemoryCatalog` that take an `agent`."""

    def __init__(self, catalog: MemoryCatalog, agent: str) -> None:
        self._catalog = catalog
        self._agent = agent

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a method of `MemoryCatalog` with its `agent` argument filled in."""
        if name.startswith("_") or "agent" not in getattr(getattr(MemoryCatalog, name, None), "__annotations__", ()):
            raise AttributeError(f"an agent's catalog has no {name!r}; the owner of the memory uses memory.catalog")
        method = getattr(self._catalog, name)

        def call(*given: Any, **named: Any) -> Any:
            return method(*given, agent=self._agent, **named)

        return call


class AgentMemory:
    """A memory as one agent may see it. Every interface that acts for an agent uses this view, never the memory itself.

    By default agents share everything except catalog items. With `catalog.isolation: strict` an agent sees no
    documents, and operations and facts only of itself, of `global` and of agents whose items it may read.
    """

    def __init__(self, memory: _Memory, agent: str) -> None:
        self.agent = agent.strip()
        if self.agent in (OWNER, GLOBAL, EVERYBODY):
            raise ValueError(f"{agent!r} does not name a single agent; use another name")
        self._memory = memory
        self._access: Access = memory._parts.agents.catalog.access
        self._audit: AuditTrail = memory._parts.agents.catalog.audit
        self._is_strict = self._access.within(EVERYTHING, self.agent).strict
        if self._is_strict and self.agent in OWNERS_CHAT:
            raise AccessDeniedError(
                f"with isolation: strict no agent may be named {self.agent!r}: the owner's chats are recorded under it"
            )

    @property
    def catalog(self) -> AgentCatalog:
        """The catalog as this agent may see it: `items`, `get`, `store`, `update`, `delete`, `export` and more."""
        return AgentCatalog(self._memory.catalog, self.agent)

    def inject(self, message: str, *, max_tokens: int | None = None) -> InjectedMessage:
        """See `OrchestratorContextManager.inject`."""
        return self._memory.inject(message, agent=self.agent, max_tokens=max_tokens)

    def relevant(self, message: str, *, max_tokens: int | None = None) -> Injection:
        """See `OrchestratorContextManager.relevant`."""
        return self._memory.relevant(message, agent=self.agent, max_tokens=max_tokens)

    def learn(self, message: str, answer: str) -> None:
        """See `OrchestratorContextManager.learn`."""
        self._memory.learn(message, answer, agent=self.agent)

    def remember(self, content: str, **fields: object) -> MemoryItem:
        """Store an item in the catalog; see `MemoryCatalog.store`."""
        return self._memory.catalog.store({"content": content, **fields}, agent=self.agent)

    def record_operation(
        self, operation_type: str, operation_data: object, tokens_used: int | None = None, *,
        agent: str | None = None, **more: Any,
    ) -> Operation:  # fmt: skip
        """Record an operation of this agent; see `OrchestratorContextManager.record_operation`.

        Text recalled from the memory is removed from the data first, because other agents may read the operation.

        Raises:
            AccessDeniedError: `agent` is another agent, or the idempotency key belongs to an operation that this agent
                may not see.
        """
        if agent not in (None, self.agent):
            raise AccessDeniedError(f"agent {self.agent!r} may not act as {agent!r}")
        data = without_recalled(checked_json(operation_data))
        done = self._memory.record_operation(operation_type, data, tokens_used, agent=self.agent, **more)
        with self._audit.checking(self.agent, "record_operation"):
            if not self._may_see(done):
                raise AccessDeniedError(f"idempotency key {done.idempotency_key!r} is already in use; use another")
        return done

    def search(
        self, query: str, *, where: SearchFilter = EVERYTHING, mode: SearchMode = SearchMode.HYBRID, limit: int = 10
    ) -> Answer:
        """See `OrchestratorContextManager.search`."""
        found = self._memory.search(query, where=self._within("search", where), mode=mode, limit=limit)
        self._audit.recalled([self.agent], "search", (hit.chunk.source for hit in found.hits))
        return found

    def retrieve_context(self, task: str, *, where: SearchFilter = EVERYTHING, **more: Any) -> RetrievedContext:
        """See `ContextRetriever.retrieve_context`."""
        where = self._within("retrieve_context", where)
        found: RetrievedContext = self._memory.retriever.retrieve_context(task, where=where, **more)
        self._audit.recalled([self.agent], "retrieve_context", (entry.source for entry in found.entries))
        return found

    def passages(self, question: str, *, where: SearchFilter = EVERYTHING, **more: Any) -> Recalled:
        """See `ContextRetriever.passages`."""
        found: Recalled = self._memory.retriever.passages(question, where=self._within("passages", where), **more)
        self._audit.recalled([self.agent], "passages", (each.source for each in found.recollections))
        return found

    def get_recommendations(self, task: str, *, where: SearchFilter = EVERYTHING, **more: Any) -> Recommendations:
        """See `ContextRetriever.get_recommendations`."""
        where = self._within("get_recommendations", where)
        found: Recommendations = self._memory.retriever.get_recommendations(task, where=where, **more)
        self._audit.recalled(
            [self.agent], "get_recommendations", (each.source for _, group in found.groups() for each in group)
        )
        return found

    def get_orchestrator_context(
        self, for_operation: str, max_tokens: int | None = None, *, query: str | None = None
    ) -> OrchestratorContext:
        """See `OrchestratorContextManager.get_orchestrator_context`."""
        where = self._within("get_orchestrator_context")
        found = self._memory.get_orchestrator_context(for_operation, max_tokens, query=query, where=where)
        shown = [each for each in found.placements if each.part is Part.RECALLED and each.text]
        self._audit.recalled([self.agent], "get_orchestrator_context", (each.key.split()[1] for each in shown))
        return found

    def operations(self, where: OperationFilter | None = None) -> list[Operation]:
        """See `OrchestratorContextManager.operations`."""
        return self._memory.operations(self._operations_within("operations", where or OperationFilter()))

    def count_operations(self, where: OperationFilter | None = None) -> int:
        """See `OrchestratorContextManager.count_operations`."""
        return self._memory.count_operations(self._operations_within("count_operations", where or OperationFilter()))

    def _operations_within(self, call: str, where: OperationFilter) -> OperationFilter:
        if not self._is_strict:
            return where
        named = (*where.agents, *(() if where.agent is None else (where.agent,)))
        with self._audit.checking(self.agent, call):
            self._access.check_read(self.agent, named)
        return where if named else replace(where, agents=tuple(self._access.readable(self.agent) or ()))

    def find_session(self, session_id: str) -> Session:
        """See `OrchestratorContextManager.find_session`."""
        return self._memory.find_session(session_id)

    def facts(
        self, kind: MustKeepKind | None = None, *, standing: bool = True, since: datetime | None = None,
        limit: int | None = None,
    ) -> list[MustKeep]:  # fmt: skip
        """See `OrchestratorContextManager.facts`."""
        if not self._is_strict:
            return self._memory.facts(kind, standing=standing, since=since, limit=limit)
        visible = {each.id for each in self.operations()}
        found = [each for each in self._memory.facts(kind, standing=standing, since=since) if each.operation in visible]
        return found if limit is None else found[max(0, len(found) - limit) :]

    def expand(self, reference: str | int) -> Expansion:
        """See `OrchestratorContextManager.expand`.

        Raises:
            NotFoundError: The reference names nothing that this agent may see.
        """
        if is_memory_item(reference):
            item = self._memory.catalog.get(str(reference).strip(), agent=self.agent)
            if item.status is ItemStatus.DELETED:
                raise NotFoundError(f"item {reference!r} has been deleted")
            return Expansion(reference=item.id, operations=(), memory_item=item)
        if not self._is_strict:
            return self._memory.expand(reference)
        with suppress(NotFoundError):
            found = self._memory.expand(reference)
            whose = [found.item.assignee] if found.item else [each.agent for each in found.operations]
            if whose and not found.place and all(self._access.sees(self.agent, each) for each in whose):
                seen = {each.id for each in found.operations if self._may_see(each)}
                return replace(
                    found,
                    operations=tuple(each for each in found.operations if each.id in seen),
                    around=tuple(filter(self._may_see, found.around)),
                    events=tuple(each for each in found.events if not each.operation or each.operation in seen),
                )
        # The same error as for a missing target, so that it does not reveal whether a hidden target exists.
        raise NotFoundError(f"there is nothing named {reference!r} that agent {self.agent!r} may see")

    def _within(self, call: str, where: SearchFilter = EVERYTHING) -> SearchFilter:
        with self._audit.checking(self.agent, call):
            return self._access.within(where, self.agent)

    def _may_see(self, operation: Operation) -> bool:
        return self._access.sees(self.agent, operation.agent)

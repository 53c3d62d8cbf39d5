"""What agents learn and are given: the catalog's parts, and the calls of a memory that concern agents."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from orchestra_mem.catalog_types import AuditEntry, AuditFilter, CleanedUp, Injection
from orchestra_mem.core.catalog.access import OWNER, Access
from orchestra_mem.errors import OrchestraMemError
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.tiers.catalog_learning import CatalogLearner
from orchestra_mem.tiers.catalog_reading import AuditTrail, CatalogSelector
from orchestra_mem.tiers.edited_documents import CatalogDocuments
from orchestra_mem.types import Json

if TYPE_CHECKING:
    from orchestra_mem.compression.categorizer import CategorizationService
    from orchestra_mem.compression.service import Compression
    from orchestra_mem.memory.agent_view import AgentMemory, InjectedMessage
    from orchestra_mem.model_types import LanguageModel
    from orchestra_mem.tiers.session_archives import SessionArchives

logger = logging.getLogger(__name__)

Foreground = Callable[[], AbstractContextManager[None]]
"""Keeps background work off the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogParts:
    """What the catalog is made of; `build` puts it together."""

    catalog: MemoryCatalog
    selector: CatalogSelector
    learner: CatalogLearner
    audit: AuditTrail
    documents: CatalogDocuments
    open_archives: Callable[[], SessionArchives]
    open_categorization: Callable[[LanguageModel | None, Foreground], CategorizationService]
    hooks: bool
    can_write_now: Callable[[], bool]

    @property
    def access(self) -> Access:
        """Who may see and change what."""
        return self.catalog.access

    def work(self) -> bool:
        """Learn from an exchange, or else write the documents and clean up; whether there may be more."""
        waits = self.learner.waits or self.documents.due or self.catalog.cleanup_due
        if not waits or not self.can_write_now():
            return False
        if self.learner.waits:
            self.learner.work(1)
            return self.learner.waits
        if self.documents.due:
            self.write()
        if self.catalog.cleanup_due:
            self.clean_up()
        return False

    def clean_up(self, agent: str = OWNER) -> CleanedUp:
        """Hide items that have expired, forget old audit entries, and remove archives, which only the owner may."""
        done = self.catalog.clean_up(agent=agent)
        gone, kept = self.open_archives().clean_up() if agent == OWNER else ((), ())
        if gone:
            logger.info("archives of sessions removed: %s", ", ".join(gone))
        return replace(done, archives=tuple(gone), archives_kept=tuple(kept))

    def settle(self) -> None:
        """Learn from what waits, and read what people have edited: whoever looks now sees it. What fails waits on."""
        try:
            if self.learner.waits and self.can_write_now():
                self.learner.work()
            if self.documents.unseen and self.can_write_now():
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
        told = [*self.learner.problems(), *map(str, self.documents.faults())]
        return [{"subject": "catalog", "since": None, "problem": problem} for problem in told]


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
        return self._agents.open_categorization(self.compression.model, self.compression.foreground)

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
        from orchestra_mem.memory.agent_view import InjectedMessage

        if not use_memory:
            return InjectedMessage.of(message, Injection(agent=agent, problem="not asked for: use_memory is false"))
        try:
            injection = self.relevant(message, agent=agent, max_tokens=max_tokens, call="inject")
            self._agents.learner.note_given(agent.strip(), [each.item.content for each in injection.items])
        except OrchestraMemError as error:
            logger.warning("nothing of the catalog is given to %r: %s", agent, error)
            injection = Injection(agent=agent, problem=str(error))
        return InjectedMessage.of(message, injection)

    def relevant(
        self, message: str, *, agent: str, max_tokens: int | None = None, call: str = "get_relevant"
    ) -> Injection:
        """Select what an agent should know with a message, each item with the four parts of its relevance.

        Raises:
            ValueError: no agent is named, or the budget is negative.
            StorageError: the catalog cannot be read.
        """
        if not agent.strip():
            raise ValueError("name the agent that is given something, as in agent='reviewer'")
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

    def clean_up(self, *, agent: str = OWNER) -> CleanedUp:
        """Hide what has expired or is too much, and remove what the settings keep no longer; see `CleanedUp`.

        Happens by itself every `catalog.cleanup_interval_hours`.
        """
        return self._agents.clean_up(agent)

    def as_agent(self, agent: str) -> AgentMemory:
        """Give this memory as one agent may see it.

        Raises:
            ValueError: no agent is named, or all are.
        """
        from orchestra_mem.memory.agent_view import AgentMemory

        return AgentMemory(self, agent)  # type: ignore[arg-type]

    def audit(self, where: AuditFilter | None = None) -> list[AuditEntry]:
        """Return who looked at the catalog and who changed it, newest first."""
        return self._agents.audit.entries(where or AuditFilter())

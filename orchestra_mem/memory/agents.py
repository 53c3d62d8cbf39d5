"""The calls of a memory that concern agents, and the parts of the catalog that these calls use."""

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
"""Returns a context manager that keeps background jobs off the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogParts:
    """The parts of the catalog. `build` creates and connects them."""

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
        """The rules for who may see and change which items."""
        return self.catalog.access

    def work(self) -> bool:
        """Learn from a queued exchange, else write documents and clean up. Return whether more exchanges are queued."""
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
        """Hide expired and excess items and delete old audit entries; for the owner, also delete session archives."""
        done = self.catalog.clean_up(agent=agent)
        gone, kept = self.open_archives().clean_up() if agent == OWNER else ((), ())
        if gone:
            logger.info("archives of sessions removed: %s", ", ".join(gone))
        return replace(done, archives=tuple(gone), archives_kept=tuple(kept))

    def settle(self) -> None:
        """Before a read, learn from queued exchanges and apply people's edits. Log failures and retry later."""
        try:
            if self.learner.waits and self.can_write_now():
                self.learner.work()
            if self.documents.unseen and self.can_write_now():
                self.documents.read_edits()
        except OrchestraMemError as error:
            logger.warning("the catalog is not up to date: %s", error)

    def write(self) -> None:
        """Write the documents whose items have changed. Log failures and retry later."""
        self.settle()
        try:
            if self.documents.due:
                self.documents.write()
        except OrchestraMemError as error:
            logger.warning("the catalog's documents are not up to date: %s", error)

    def stats(self) -> dict[str, Json]:
        """Return the numbers of live items, their tokens, their agents, and exchanges queued for learning."""
        found = [each for each in self.catalog.get_stats().values() if each.total_memories]
        items, tokens = (sum(each.total_memories for each in found), sum(each.total_tokens for each in found))
        return {"items": items, "tokens": tokens, "agents": len(found), "waiting": self.learner.waiting_count}

    def problems(self) -> list[Json]:
        """Return the catalog's problems in the format that `status` shows."""
        told = [*self.learner.problems(), *map(str, self.documents.faults())]
        return [{"subject": "catalog", "since": None, "problem": problem} for problem in told]


class AgentCalls:
    """Mixin for `OrchestratorContextManager`: the calls that concern agents."""

    _agents: CatalogParts
    _note_call: Callable[..., None]
    compression: Compression

    @property
    def catalog(self) -> MemoryCatalog:
        """What agents have learnt: decisions, insights, errors, plans, each owned by one agent or shared by all."""
        self._agents.settle()
        return self._agents.catalog

    @cached_property
    def categorization(self) -> CategorizationService:
        """The service that extracts what was learnt from orchestrations and stores it in the catalog."""
        return self._agents.open_categorization(self.compression.model, self.compression.foreground)

    @property
    def has_catalog_hooks(self) -> bool:
        """Whether an orchestrator injects catalog items and learns automatically: setting `catalog.hooks`."""
        return self._agents.hooks

    def inject(
        self, message: str, *, agent: str, max_tokens: int | None = None, use_memory: bool = True
    ) -> InjectedMessage:
        """Put the catalog items that are relevant to a message in front of it, fenced as data.

        If the catalog fails, the message is returned unchanged and `injection.problem` names the cause.

        Args:
            message: The message to the agent.
            agent: The recipient. Candidates are its own items, global items, and items of agents that it may read.
            max_tokens: Budget for the injected text; by default, and at most, `catalog.max_injection_tokens`.
            use_memory: If False, return the message unchanged.

        Raises:
            ValueError: No agent is named, or the budget is negative.
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
        """Select the items that are relevant to a message, each with the four components of its relevance.

        Raises:
            ValueError: No agent is named, or the budget is negative.
            StorageError: The catalog cannot be read.
        """
        if not agent.strip():
            raise ValueError("name the agent that is given something, as in agent='reviewer'")
        self._agents.settle()
        return self._agents.selector.get_relevant(agent.strip(), message, max_tokens, call=call)

    def learn(self, message: str, answer: str, *, agent: str) -> None:
        """Learn decisions, insights, errors and plans from a message to an agent and its answer.

        When this returns, the exchange is stored. It is processed in the background, at the latest before the next read
        of the catalog. Sentences of the answer that only repeat injected items are ignored.

        Raises:
            ValueError: No agent is named, or the name is invalid.
            StorageError: The exchange could not be stored.
        """
        self._agents.learner.put(agent, message, answer)
        self._note_call(changed=True)

    def write_catalog(self) -> None:
        """Write catalog changes into the documents now, instead of at the next pause, `refresh` or `flush_session`."""
        self._agents.write()

    def clean_up(self, *, agent: str = OWNER) -> CleanedUp:
        """Hide expired and excess items, and delete audit entries and archives that are past their retention.

        This also runs automatically every `catalog.cleanup_interval_hours`.
        """
        return self._agents.clean_up(agent)

    def as_agent(self, agent: str) -> AgentMemory:
        """Return a view of this memory with only what one agent may see.

        Raises:
            ValueError: `agent` is blank, `global` or `*`, which name no single agent.
        """
        from orchestra_mem.memory.agent_view import AgentMemory

        return AgentMemory(self, agent)  # type: ignore[arg-type]

    def audit(self, where: AuditFilter | None = None) -> list[AuditEntry]:
        """Return the audit entries of reads and changes of the catalog, newest first."""
        return self._agents.audit.entries(where or AuditFilter())

"""The calls of a memory that concern agents."""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING

from orchestra_mem.catalog_types import AuditEntry, AuditFilter, CleanedUp, Injection
from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.errors import OrchestraMemError
from orchestra_mem.memory.recording import RecordingCalls
from orchestra_mem.tiers.catalog import MemoryCatalog

if TYPE_CHECKING:
    from orchestra_mem.compression.categorizer import CategorizationService
    from orchestra_mem.memory.agent_view import AgentMemory, InjectedMessage

logger = logging.getLogger(__name__)


class AgentCalls(RecordingCalls):
    """Mixin for `OrchestratorContextManager`: the calls that concern agents."""

    @property
    def catalog(self) -> MemoryCatalog:
        """What agents have learnt: decisions, insights, errors, plans, each owned by one agent or shared by all."""
        self._parts.agents.settle()
        return self._parts.agents.catalog

    @cached_property
    def categorization(self) -> CategorizationService:
        """The service that extracts what was learnt from orchestrations and stores it in the catalog."""
        from orchestra_mem.compression.categorizer import CategorizationService  # imported here: few programs need it
        from orchestra_mem.tiers.catalog_learning import OrchestrationObservations

        parts = self._parts
        return CategorizationService(
            parts.compression.model, settings=parts.settings.categorization, redacted=parts.redactor.text,
            observations=OrchestrationObservations(parts.agents.catalog, parts.log),
            foreground=parts.compression.foreground,
        )  # fmt: skip

    @property
    def has_catalog_hooks(self) -> bool:
        """Whether an orchestrator injects catalog items and learns automatically: setting `catalog.hooks`."""
        return self._parts.settings.catalog.hooks

    def inject(
        self, message: str, *, agent: str, max_tokens: int | None = None, use_memory: bool = True
    ) -> InjectedMessage:
        """Put catalog items in front of a message, fenced as data: those that fit the budget, the most relevant first.

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
            return InjectedMessage.of(
                message, Injection(agent=agent, problem="nothing was injected: use_memory is false")
            )
        try:
            injection = self.relevant(message, agent=agent, max_tokens=max_tokens, call="inject")
            self._parts.agents.learner.note_given(agent.strip(), [each.item.content for each in injection.items])
        except OrchestraMemError as error:
            logger.warning("no catalog items were injected for %r: %s", agent, error)
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
            raise ValueError("agent is blank: name the agent that gets the items, as in agent='reviewer'")
        self._parts.agents.settle()
        return self._parts.agents.catalog.get_relevant(agent.strip(), message, max_tokens, call=call)

    def learn(self, message: str, answer: str, *, agent: str) -> None:
        """Learn decisions, insights, errors and plans from a message to an agent and its answer.

        When this returns, the exchange is stored. It is processed in the background, at the latest before the next read
        of the catalog. Sentences of the answer that only repeat injected items are ignored.

        Raises:
            ValueError: No agent is named, or the name is invalid.
            StorageError: The exchange could not be stored.
        """
        self._parts.agents.learner.put(agent, message, answer)
        self._note_call(changed=True)

    def write_catalog(self) -> None:
        """Write catalog changes into the documents now, instead of at the next pause, `refresh` or `flush_session`."""
        self._parts.agents.write()

    def clean_up(self, *, agent: str = OWNER) -> CleanedUp:
        """Hide expired and excess items, and delete audit entries and archives that are past their retention.

        This also runs automatically every `catalog.cleanup_interval_hours`.
        """
        return self._parts.agents.clean_up(agent)

    def as_agent(self, agent: str) -> AgentMemory:
        """Return a view of this memory with only what one agent may see.

        Raises:
            ValueError: `agent` is blank, `global` or `*`, which name no single agent.
            AccessDeniedError: Under strict isolation, `agent` is `user` or `assistant`, as the owner's chats are.
        """
        from orchestra_mem.memory.agent_view import AgentMemory

        return AgentMemory(self, agent)  # type: ignore[arg-type]

    def audit(self, where: AuditFilter | None = None) -> list[AuditEntry]:
        """Return the audit entries of reads and changes of the catalog, newest first."""
        return self._parts.agents.catalog.audit.entries(where or AuditFilter())

"""Who asks, and the memory as they may see it: whole for its owner, for an agent what its view offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.errors import AccessDeniedError

if TYPE_CHECKING:
    from orchestra_mem.build.memory_service import MemoryService
    from orchestra_mem.memory.manager import OrchestratorContextManager


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks of a memory: an agent, or its owner."""

    memory: OrchestratorContextManager
    agent: str

    @property
    def is_owner(self) -> bool:
        """Whether it is no agent."""
        return self.agent == OWNER

    @property
    def view(self) -> Any:
        """The memory as the caller may see it."""
        return self.memory if self.is_owner else self.memory.as_agent(self.agent)

    @property
    def service(self) -> MemoryService:
        """The memory service over that."""
        from orchestra_mem.build.memory_service import MemoryService

        return MemoryService(self.view)

    def offered(self, name: str) -> Any:
        """Give what the memory has under a name.

        Raises:
            AccessDeniedError: an agent asks, and its view does not have it.
        """
        found = getattr(self.view, name, None)
        if found is None:
            raise AccessDeniedError(f"{name} is not offered to agents: agent {self.agent!r} may not ask for it")
        return found

    def retrieving(self, name: str) -> Any:
        """Give a call of the memory's retriever; an agent's view has those that it offers itself."""
        return getattr(self.memory.retriever, name) if self.is_owner else self.offered(name)

    def acting(self, named: str | None) -> str | None:
        """Say for whom something is done: an agent does all in its own name, the owner in whatever is named.

        Raises:
            AccessDeniedError: an agent names another one.
        """
        if self.is_owner:
            return named
        if named not in (None, self.agent):
            raise AccessDeniedError(f"agent {self.agent!r} may not ask or act as {named!r}")
        return self.agent

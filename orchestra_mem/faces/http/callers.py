"""Who asks, and the memory as they may see it: whole for its owner, for an agent what its view offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request

from orchestra_mem.build.memory_service import MemoryService
from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.errors import AccessDeniedError
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


async def _caller(request: Request) -> Caller:
    return Caller(request.app.state.memory, request.scope["caller"])


async def _owner(request: Request) -> OrchestratorContextManager:
    caller = await _caller(request)
    if not caller.is_owner:
        raise AccessDeniedError(f"agent {caller.agent!r} may not ask for this: it takes the memory's own token")
    return caller.memory


Asker = Annotated[Caller, Depends(_caller)]
"""Of a route that agents may use too."""
OwnMemory = Annotated[OrchestratorContextManager, Depends(_owner)]
"""Of a route that is refused to agents."""

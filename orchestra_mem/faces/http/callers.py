"""The caller of a request, as routes ask for it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from orchestra_mem.errors import AccessDeniedError
from orchestra_mem.faces.caller import Caller
from orchestra_mem.memory.manager import OrchestratorContextManager


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

"""MCP over HTTP: each request is answered by the tools of whose token it bears. The first one loads the SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from orchestra_mem.faces.caller import Caller
from orchestra_mem.faces.http.problems import Problem
from orchestra_mem.memory.manager import OrchestratorContextManager

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from orchestra_mem.faces.mcp.mcp_server import MemoryServer

MCP_HEADERS = ("Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name")
"""What clients send beside the token."""


class McpEndpoint:
    """Answers MCP clients: a server for each caller, made when it first asks and kept."""

    path = "/mcp"

    def __init__(self, memory: OrchestratorContextManager, max_body_bytes: int) -> None:
        self._memory = memory
        self._max_body_bytes = max_body_bytes
        self._servers: dict[str, MemoryServer] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        scope["route"] = self  # for the line of the log
        try:
            server = await run_sync(self._server, scope["caller"])
        except ImportError:
            words = "MCP needs `pip install 'orchestra-mem[mcp]'` where the server runs"
            await Problem(501, words)(scope, receive, send)
        else:
            await server.answer(scope, receive, send, max_body_bytes=self._max_body_bytes)

    def _server(self, agent: str) -> MemoryServer:
        from orchestra_mem.faces.mcp.mcp_server import MemoryServer

        if agent not in self._servers:
            self._servers[agent] = MemoryServer(Caller(self._memory, agent))
        return self._servers[agent]

"""The HTTP application, which combines the routers and the MCP endpoint, and the server that runs it.

The socket is opened separately by `take_port`, so that a port in use is reported before the memory is opened.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TypeAlias

import uvicorn
from anyio.to_thread import run_sync
from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.routing import Route

from orchestra_mem.build import HOME, open_relay
from orchestra_mem.errors import OrchestraMemError, ServerError
from orchestra_mem.faces.http import chat_routes
from orchestra_mem.faces.http.catalog_routes import catalog_router, service_router
from orchestra_mem.faces.http.chat_additions import Additions
from orchestra_mem.faces.http.context_routes import context_router, history_router
from orchestra_mem.faces.http.document_routes import EventStreams, document_router, event_router, work_router
from orchestra_mem.faces.http.guard import HANDLERS, PROBLEMS, Problem, RequestGuard
from orchestra_mem.faces.http.json_answers import JsonResponse, refuse_unknown
from orchestra_mem.faces.http.tokens import AccessTokens
from orchestra_mem.faces.http.web import document_pages, home_pages
from orchestra_mem.faces.http.web.pages import load_templates
from orchestra_mem.faces.records import Caller
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.settings import ServerSettings

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from orchestra_mem.faces.mcp_server import MemoryServer


class McpEndpoint:
    """ASGI endpoint for MCP clients. Each caller has its own MCP server, created by its first request."""

    path = "/mcp"

    def __init__(self, memory: OrchestratorContextManager, max_body_bytes: int) -> None:
        self._memory = memory
        self._max_body_bytes = max_body_bytes
        self._servers: dict[str, MemoryServer] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the status is 501 if the MCP library is not installed."""
        scope["route"] = self  # for the request log
        try:
            server = await run_sync(self._server, scope["caller"])
        except ImportError:
            words = "MCP needs `pip install 'orchestra-mem[mcp]'` where the server runs"
            await Problem(501, words)(scope, receive, send)
        else:
            await server.answer(scope, receive, send, max_body_bytes=self._max_body_bytes)

    def _server(self, agent: str) -> MemoryServer:
        from orchestra_mem.faces.mcp_server import MemoryServer

        if agent not in self._servers:
            self._servers[agent] = MemoryServer(Caller(self._memory, agent))
        return self._servers[agent]


# In the order of the OpenAPI description.
_ROUTERS = (
    catalog_router, service_router, context_router, history_router, document_router, work_router, event_router,
)  # fmt: skip
# Chat programs and links add parameters of their own.
_LENIENT_ROUTERS = (chat_routes.router, home_pages.router, document_pages.router)
_DESCRIPTION = "A memory for agents around a local LLM. See docs/server.md."


def make_application(memory: OrchestratorContextManager, project: Path, settings: ServerSettings) -> FastAPI:
    """Build the application of a memory. Run it only behind a `RequestGuard`, which authenticates requests."""
    additions = Additions(project / HOME / "index" / "chat_additions.jsonl")
    chat = chat_routes.ChatEndpoint(memory, settings, open_relay(project), additions)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await chat.close()

    app = FastAPI(
        title="orchestra-mem", description=_DESCRIPTION, docs_url=None, redoc_url=None, redirect_slashes=False,
        default_response_class=JsonResponse, exception_handlers=HANDLERS, responses=PROBLEMS,
        lifespan=lifespan, max_body_size=settings.max_body_bytes,
        dependencies=[Depends(HTTPBearer(auto_error=False, description="The token that `serve` printed."))],
    )  # fmt: skip
    app.state.memory, app.state.project = memory, project
    app.state.streams, app.state.chat = EventStreams(memory), chat
    for router in _ROUTERS:
        app.include_router(router, dependencies=[Depends(refuse_unknown)])
    for router in _LENIENT_ROUTERS:
        app.include_router(router)
    app.router.routes.append(Route(McpEndpoint.path, McpEndpoint(memory, settings.max_body_bytes), methods=["POST"]))
    return app


_ENDING_S = 5  # time for running requests to finish before they are cancelled
_CUTTING_S = 20  # time for cancelled chats to record their partial answers
_PAGE_FIRST_S = 1  # delay of the warm-up, which must not slow down the first page, often opened at once
_MOST_HEADER_BYTES = 262_144  # including the URL, which may hold a long question
_Tell: TypeAlias = "Callable[[], None]"


def take_port(host: str, port: int) -> socket.socket:
    """Open a socket that listens at an address.

    Raises:
        ServerError: The address cannot be resolved, or the port is not available.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # asyncio sets TCP_NODELAY only if the socket's protocol is explicit; without it, responses are delayed.
        taken = socket.socket(family, kind, protocol)
        try:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(address)
            taken.listen(2_048)
        except BaseException:
            taken.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ServerError(
            f"cannot listen on {host} port {port}: {why}; choose another with --port or --host"
        ) from error
    return taken


def address_of(listening: socket.socket) -> str:
    """Return the URL of the server for a browser."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run_server(
    memory: OrchestratorContextManager, project: Path, listening: socket.socket, *, tokens: AccessTokens,
    settings: ServerSettings, started: Callable[[], None],
) -> int:  # fmt: skip
    """Serve requests until SIGINT or SIGTERM; then finish the running requests, up to a time limit.

    Args:
        memory: The memory to serve; the caller closes it.
        project: The folder of the project.
        listening: The socket from `take_port`.
        tokens: The tokens that are accepted.
        settings: Request limits, and the allowed hosts and origins.
        started: Called once requests are accepted.

    Returns:
        The number of the first signal; 0 if the server ended by itself.
    """
    app = make_application(memory, project, settings)

    def begin() -> None:
        started()
        threading.Thread(target=_warm_up, args=(memory,), name="orchestra-mem warm", daemon=True).start()

    guard = RequestGuard(app, tokens, settings)
    config = uvicorn.Config(
        guard, log_config=None, access_log=False, server_header=False,
        proxy_headers=False, ws="none", lifespan="on", loop="asyncio", http="h11",
        h11_max_incomplete_event_size=_MOST_HEADER_BYTES, timeout_graceful_shutdown=_ENDING_S + _CUTTING_S,
    )  # fmt: skip
    server = _Server(config, begin, app.state.streams.end, guard.end)
    server.run(sockets=[listening])
    return server.ended_by


def _warm_up(memory: OrchestratorContextManager) -> None:
    """Compile the templates, extract pending facts and load the search index, so that first requests are fast."""
    load_templates()
    time.sleep(_PAGE_FIRST_S)
    with suppress(OrchestraMemError):  # the first request meets the same error and reports it
        memory.facts(limit=1)
        memory.search("where did we stop", limit=1)


class _Server(uvicorn.Server):
    """Uvicorn server that reports its start, ends open streams on shutdown, and does not raise signals again."""

    def __init__(self, config: uvicorn.Config, started: _Tell, end_streams: _Tell, cut_requests: _Tell) -> None:
        super().__init__(config)
        self._tell_started = started
        self._end_streams = end_streams
        self._cut_requests = cut_requests
        self.ended_by = 0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._end_streams()
        cutting = asyncio.get_running_loop().call_later(_ENDING_S, self._cut_requests)
        await super().shutdown(sockets)
        cutting.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the shutdown. A second signal does not force an exit, because the memory must still be closed.

        Uvicorn raises the signals that its own method has collected again, which would be too early as well.
        """
        self.ended_by = self.ended_by or sig
        self.should_exit = True

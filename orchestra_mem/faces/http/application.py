"""The application: the routes of each subject, a router a file, behind the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from orchestra_mem.build import open_relay
from orchestra_mem.faces.http import (
    catalog_routes,
    chat_routes,
    context_routes,
    document_routes,
    event_routes,
    history_routes,
    observation_routes,
    work_routes,
)
from orchestra_mem.faces.http.answer_schemas import components, example_of
from orchestra_mem.faces.http.event_routes import EventStreams
from orchestra_mem.faces.http.guard import allowed_origins
from orchestra_mem.faces.http.json_answers import JsonAnswer
from orchestra_mem.faces.http.mcp_endpoint import MCP_HEADERS, McpEndpoint
from orchestra_mem.faces.http.problems import HANDLERS, PROBLEMS
from orchestra_mem.faces.http.web import (
    catalog_pages,
    document_pages,
    home_pages,
    prompt_page,
    search_page,
    sessions_pages,
    work_pages,
)
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.settings import ServerSettings

# In the order of the description.
_ROUTES = (
    catalog_routes, observation_routes, context_routes, history_routes, document_routes, work_routes, event_routes,
    chat_routes, home_pages, sessions_pages, search_page, prompt_page, document_pages, catalog_pages, work_pages,
)  # fmt: skip
_DESCRIPTION = "A memory for agents around a local LLM. See docs/server.md."


class _Application(FastAPI):
    """Describes its answers when it is asked for its description, so that nobody else waits for that."""

    def openapi(self) -> dict[str, Any]:
        """Give the description of the API."""
        told = super().openapi()
        told["components"]["schemas"] |= components()
        routes = (route for path in told["paths"].values() for route in path.values())
        answers = (answer for route in routes for answer in route["responses"].values())
        for content in (each for answer in answers for each in answer.get("content", {}).values()):
            if example := example_of(content.get("schema", {})):
                content["example"] = example
        return told


def make_application(memory: OrchestratorContextManager, project: Path, settings: ServerSettings) -> FastAPI:
    """Make the application of a memory, for a `RequestGuard` to stand before."""
    cors = Middleware(
        CORSMiddleware, allow_origins=allowed_origins(settings), allow_methods=["*"],
        allow_headers=["Authorization", "Content-Type", "If-Match", "If-None-Match", *MCP_HEADERS],
        expose_headers=["ETag", "Location"],
    )  # fmt: skip
    chat = chat_routes.ChatEndpoint(memory, settings, open_relay(project))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await chat.close()

    app = _Application(
        title="orchestra-mem", description=_DESCRIPTION, docs_url=None, redoc_url=None, redirect_slashes=False,
        default_response_class=JsonAnswer, exception_handlers=HANDLERS, responses=PROBLEMS,
        lifespan=lifespan, max_body_size=settings.max_body_bytes, middleware=[cors] if settings.allowed_origins else [],
        dependencies=[Depends(HTTPBearer(auto_error=False, description="The token that `serve` printed."))],
    )  # fmt: skip
    app.state.memory, app.state.project = memory, project
    app.state.streams, app.state.chat = EventStreams(memory), chat
    for routes in _ROUTES:
        app.include_router(routes.router)
    app.router.routes.append(Route(McpEndpoint.path, McpEndpoint(memory, settings.max_body_bytes), methods=["POST"]))
    return app

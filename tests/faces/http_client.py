"""The server's application in this process, with its real routes, guard and memory, and clients of it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import uvicorn
from fastapi.routing import iter_route_contexts
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.build import utc_now
from orchestra_mem.faces.http.application import make_application
from orchestra_mem.faces.http.guard import RequestGuard
from orchestra_mem.faces.http.tokens import AccessTokens
from orchestra_mem.settings import ServerSettings
from tests.timing import until

TOKENS = AccessTokens("a-token-for-tests-0123456789")
ADDRESS = "http://127.0.0.1:8377"


@dataclass
class Served:
    """A served memory: `client` sends the memory's own token, `bare` sends none."""

    memory: OrchestratorContextManager
    client: TestClient
    bare: TestClient
    routes: list[tuple[str, str]]

    def agent(self, name: str) -> dict[str, str]:
        """Return the headers of an agent."""
        return {"Authorization": f"Bearer {TOKENS.of_agent(name)}"}

    def get(self, path: str, status: int = 200, /, **query: Any) -> Any:
        """Send a GET below /api/memory, check the status, and return the body."""
        return self.send("GET", path, status, params=query)

    def send(self, method: str, path: str, status: int = 200, **what: Any) -> Any:
        """Send a request below /api/memory, check the status, and return the body."""
        answer = self.client.request(method, f"/api/memory/{path}", **what)
        assert answer.status_code == status, answer.text
        kind = "application/problem+json" if status >= 400 else "application/json"
        assert status == 204 or answer.headers["content-type"] == kind
        return answer.json() if answer.content else None


def routes_of(app: Any) -> list[tuple[str, str]]:
    """List the methods and paths of an application."""
    found = [*iter_route_contexts(app.routes)]
    return sorted((method, re.sub(r":\w+}", "}", str(each.path))) for each in found for method in each.methods or ())


@contextmanager
def serving(
    folder: Path, *, config: dict[str, Any] | None = None, clock: Callable[[], datetime] = utc_now, **settings: Any
) -> Iterator[Served]:
    """Serve the memory of a folder."""
    with open_memory(folder, config=config, clock=clock) as memory:
        chosen = ServerSettings(**settings)
        app = make_application(memory, folder, chosen)
        guard = RequestGuard(app, TOKENS, chosen)
        own = {"Authorization": f"Bearer {TOKENS.own}"}
        with (
            TestClient(guard, base_url=ADDRESS, headers=own, raise_server_exceptions=False) as client,
            TestClient(guard, base_url=ADDRESS, raise_server_exceptions=False, follow_redirects=False) as bare,
        ):
            yield Served(memory, client, bare, routes_of(app))


@contextmanager
def listening(app: ASGIApp) -> Iterator[str]:
    """Serve an application on a free local port; yield its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()

"""Run the server: its socket is taken first, so that a port in use is told before anything else is opened."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TypeAlias

import uvicorn

from orchestra_mem.errors import OrchestraMemError, ServerError
from orchestra_mem.faces.http.application import make_application
from orchestra_mem.faces.http.guard import RequestGuard
from orchestra_mem.faces.http.tokens import AccessTokens
from orchestra_mem.faces.http.web.pages import load_templates
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.settings import ServerSettings

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ENDING_S = 5  # requests under way are waited for so long, and then cut off
_CUTTING_S = 20  # what came of them is recorded meanwhile
_PAGE_FIRST_S = 1  # the address is opened as soon as it is printed: that page is not to share the processor
_MOST_HEADER_BYTES = 262_144  # of questions in addresses, too
_Tell: TypeAlias = "Callable[[], None]"


def take_port(host: str, port: int) -> socket.socket:
    """Listen at an address.

    Raises:
        ServerError: that cannot be done here.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # With the protocol named: only then does asyncio send each answer without waiting for more (TCP_NODELAY).
        taken = socket.socket(family, kind, protocol)
        try:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(address)
            taken.listen(2_048)
        except BaseException:
            taken.close()
            raise
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ServerError(f"cannot listen at {host} port {port}: {why}; choose another by --port or --host") from error
    return taken


def address_of(listening: socket.socket) -> str:
    """Give the address at which a browser finds the server."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run_server(
    memory: OrchestratorContextManager,
    project: Path,
    listening: socket.socket,
    *,
    tokens: AccessTokens,
    settings: ServerSettings,
    started: Callable[[], None],
) -> int:
    """Answer until a signal ends it: no new requests then, those under way are waited for.

    Args:
        memory: what is served; it stays the caller's to close.
        project: its folder.
        listening: as `take_port` gives it.
        tokens: those that are answered.
        settings: the limits, and what else may ask.
        started: is called once requests are answered.

    Returns:
        The number of the signal.
    """
    app = make_application(memory, project, settings)

    def begin() -> None:
        started()
        threading.Thread(target=_prepare, args=(memory,), name="orchestra-mem warm", daemon=True).start()

    guard = RequestGuard(app, tokens, settings)
    config = uvicorn.Config(
        guard, log_config=None, access_log=False, server_header=False,
        proxy_headers=False, ws="none", lifespan="on", loop="asyncio", http="h11",
        h11_max_incomplete_event_size=_MOST_HEADER_BYTES, timeout_graceful_shutdown=_ENDING_S + _CUTTING_S,
    )  # fmt: skip
    server = _Server(config, begin, app.state.streams.end, guard.end)
    server.run(sockets=[listening])
    return server.ended_by


def _prepare(memory: OrchestratorContextManager) -> None:
    """Load the pages, find the facts, load what search is made of, so that the first who asks does not wait for it."""
    load_templates()
    time.sleep(_PAGE_FIRST_S)
    with suppress(OrchestraMemError):  # whoever asks is told
        memory.facts(limit=1)
        memory.search("where did we stop", limit=1)


class _Server(uvicorn.Server):
    """A server that tells when it has begun, ends streams with itself, and leaves signals to who started it."""

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

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take the signals for as long as it runs; the original raises them again, before the memory is closed."""
        before = {each: signal.signal(each, self.handle_exit) for each in _SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note a signal. A second one ends nothing sooner: the memory is to be closed, which takes seconds at most."""
        self.ended_by = self.ended_by or sig
        self.should_exit = True

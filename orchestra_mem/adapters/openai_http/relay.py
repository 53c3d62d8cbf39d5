"""Forward requests to a server that speaks OpenAI's protocol, and stream its responses back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx2 as httpx

from orchestra_mem.adapters.openai_http.server import Server
from orchestra_mem.types import Json

# On a small machine, a large prompt is processed for minutes before the first token arrives.
_SILENT_S = 1_800.0


class Relay:
    """Forwards requests to one server, many at a time. For use in one event loop.

    Args:
        server: Provides the address, the key and the trusted certificates.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._client = server.asynchronous(_SILENT_S)

    @asynccontextmanager
    async def send(self, method: str, path: str, body: Json = None) -> AsyncIterator[httpx.Response]:
        """Send a request and yield the response, whatever its status; its body is still to be read.

        Leaving the block before the body is read closes the connection, and the server stops its work.

        Raises:
            ModelError: The server cannot be reached, or the connection breaks while the block reads the body.
        """
        # ASCII: so a lone surrogate or NaN from a client reaches the server, which decides about it.
        content = None if body is None else json.dumps(body)
        kind = {"Content-Type": "application/json"}
        with self._translated():
            async with self._client.stream(method, path, content=content, headers=kind) as response:
                response.headers.setdefault("content-type", "application/json")
                yield response

    async def chunks(self, response: httpx.Response) -> AsyncIterator[bytes]:
        """Yield a response's body in pieces as they arrive, also after the block of `send`.

        Raises:
            ModelError: The connection broke.
        """
        with self._translated():
            async for chunk in response.aiter_bytes():
                yield chunk

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._server.fault(error) from error

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

"""Forward requests to a server that speaks OpenAI's protocol, and stream its responses back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2 as httpx

from orchestra_mem.adapters.openai_http.server import Server
from orchestra_mem.types import Json

# On a small machine, a large prompt is processed for minutes before the first token arrives.
_SILENT_S = 1_800.0


class Relayed:
    """A server's response whose body is still to be read."""

    def __init__(self, server: Server, response: httpx.Response) -> None:
        self._server = server
        self._response = response
        self.status = response.status_code
        self.content_type = response.headers.get("content-type", "application/json")

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces as they arrive.

        Raises:
            ModelError: The connection broke.
        """
        try:
            async for chunk in self._response.aiter_bytes():
                yield chunk
        except httpx.HTTPError as error:
            raise self._server.fault(error) from error

    async def body(self) -> bytes:
        """Return the complete body; raises the same error as `chunks`."""
        return b"".join([chunk async for chunk in self.chunks()])


class Relay:
    """Forwards requests to one server, many at a time. For use in one event loop.

    Args:
        server: Provides the address, the key and the trusted certificates.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._client = server.asynchronous(_SILENT_S)

    @asynccontextmanager
    async def send(self, method: str, path: str, body: Json = None) -> AsyncIterator[Relayed]:
        """Send a request and yield the response, whatever its status.

        Leaving the block before the body is read closes the connection, and the server stops its work.

        Raises:
            ModelError: The server cannot be reached.
        """
        # ASCII: so a lone surrogate or NaN from a client reaches the server, which decides about it.
        content = None if body is None else json.dumps(body)
        kind = {"Content-Type": "application/json"}
        request = self._client.build_request(method, path, content=content, headers=kind)
        try:
            response = await self._client.send(request, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._server.fault(error) from error
        try:
            yield Relayed(self._server, response)
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

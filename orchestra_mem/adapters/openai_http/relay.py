"""Hand requests on to a server that speaks OpenAI's protocol, and its answers back as they come."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2 as httpx

from orchestra_mem.adapters.openai_http.server import Server
from orchestra_mem.types import Json

# A large prompt on a small machine is read for minutes before the first token comes.
_SILENT_S = 1_800.0
_CONNECT_S = 5.0


class Relayed:
    """A server's response; its body is still to be read."""

    def __init__(self, server: Server, response: httpx.Response) -> None:
        self._server = server
        self._response = response
        self.status = response.status_code
        self.content_type = response.headers.get("content-type", "application/json")

    async def chunks(self) -> AsyncIterator[bytes]:
        """Give the body as it comes.

        Raises:
            ModelError: the server broke off.
        """
        try:
            async for chunk in self._response.aiter_bytes():
                yield chunk
        except httpx.HTTPError as error:
            raise self._server.fault(error) from error

    async def body(self) -> bytes:
        """Give the whole body; see `chunks`."""
        return b"".join([chunk async for chunk in self.chunks()])


class Relay:
    """Hands requests on to one server, many at a time; used from one event loop.

    Args:
        server: whose address, key and trust it has.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._client = server.asynchronous(httpx.Timeout(_SILENT_S, connect=_CONNECT_S))

    @asynccontextmanager
    async def send(self, method: str, path: str, body: Json = None) -> AsyncIterator[Relayed]:
        """Send a request, and give the response, whatever its status is.

        Left before its body is read, the connection ends, and with it the server's work.

        Raises:
            ModelError: the server cannot be reached.
        """
        # As ASCII: a client may escape half of a surrogate pair, or send NaN, and the server is to judge that.
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
        """Let go of all connections."""
        await self._client.aclose()

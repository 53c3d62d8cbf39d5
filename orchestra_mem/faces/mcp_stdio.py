"""Stdin and stdout of the MCP server. A client that closes stdin still gets the answers to its open requests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from anyio import create_memory_object_stream, create_task_group, sleep, wrap_file
from mcp.server.stdio import stdio_server
from mcp.types import JSONRPCNotification, JSONRPCRequest

_LOOK_EVERY_S = 0.01


@asynccontextmanager
async def opened_stdio() -> AsyncIterator[tuple[Any, Any]]:
    """Yield a stream of a client's messages and one for the server's.

    The SDK cancels all open requests when the stream of messages ends, so it ends only once they are answered.
    """
    asking, asked = create_memory_object_stream[Any]()
    answering, answers = create_memory_object_stream[Any]()
    waiting: list[Any] = []  # ids of open requests

    async def ask() -> None:
        async with messages, asking:
            async for received in messages:
                match getattr(received, "message", None):  # a line that is no message is an exception
                    case JSONRPCRequest(id=number):
                        waiting.append(number)
                    case JSONRPCNotification(method="notifications/cancelled", params={"requestId": number}):
                        waiting[:] = [each for each in waiting if each != number]
                await asking.send(received)
            while waiting:
                await sleep(_LOOK_EVERY_S)

    async def answer() -> None:
        async with answers, sent:
            async for message in answers:
                await sent.send(message)
                with suppress(AttributeError, ValueError):  # notifications have no id
                    waiting.remove(message.message.id)

    async with stdio_server(stdin=_lines()) as (messages, sent), create_task_group() as tasks:  # type: ignore[arg-type]
        tasks.start_soon(ask)
        tasks.start_soon(answer)
        yield asked, answering


async def _lines() -> AsyncIterator[str]:
    """Yield the lines of stdin, with "?" for half a surrogate pair: the SDK would leave such a line unanswered."""
    async for line in wrap_file(open(0, encoding="utf-8", errors="replace", closefd=False)):  # noqa: SIM115
        if "\\ud" in line.lower():
            with suppress(ValueError, RecursionError):
                line = json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace").decode()
        yield line

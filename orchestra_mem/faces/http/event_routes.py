"""The route that tells what happens in the memory, as it happens: server-sent events, with names and no contents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

from fastapi import APIRouter, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from orchestra_mem.faces.http.callers import OwnMemory
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.types import Json

router = APIRouter(prefix="/api/memory", tags=["events"])

_MOST_WAITING = 1_000
_Event: TypeAlias = "tuple[str, dict[str, Json]]"
_Told: TypeAlias = "Callable[..., dict[str, Json]]"
# What is told of each signal of the memory.
_SIGNALS: dict[str, _Told] = {
    "operation_recorded": lambda operation: {
        "operation": operation.id, "type": operation.type, "session": operation.session, "agent": operation.agent,
    },
    "refreshed": lambda refreshed: {
        "spilled_operations": refreshed.spilled_operations, "used_tokens": refreshed.used_tokens,
    },
    "session_flushed": lambda session, path: {"session": session.id, "document": path.name},
    "window_filled": lambda crossing: {"threshold": crossing.threshold.value, "used_tokens": crossing.used_tokens},
    "documents_edited": dict,
}  # fmt: skip


class EventStreams:
    """Hands on the signals of a memory to those who listen. Signals come from any thread."""

    def __init__(self, memory: OrchestratorContextManager) -> None:
        self._listeners: dict[asyncio.Queue[_Event | None], asyncio.AbstractEventLoop] = {}
        # The memory holds its subscribers weakly: they have to be kept.
        self._subscribers = {name: partial(self._tell, name, told) for name, told in _SIGNALS.items()}
        for name, subscriber in self._subscribers.items():
            getattr(memory.events, name).connect(subscriber)

    async def listen(self) -> AsyncIterator[_Event]:
        """Give what happens from `listening` on, until `end`. Who reads too slowly is told that events are missing."""
        queue: asyncio.Queue[_Event | None] = asyncio.Queue()
        self._listeners[queue] = asyncio.get_running_loop()
        try:
            yield "listening", {}
            while (event := await queue.get()) is not None:
                yield event
        finally:
            self._listeners.pop(queue, None)

    def end(self) -> None:
        """Tell all who listen that nothing more comes."""
        for queue in [*self._listeners]:
            queue.put_nowait(None)

    def _tell(self, name: str, told: _Told, memory: object, **what: Any) -> None:
        event = name, told(**what)
        for queue, loop in [*self._listeners.items()]:
            with suppress(RuntimeError):  # the loop has been closed this instant
                loop.call_soon_threadsafe(_put, queue, event)


def _put(queue: asyncio.Queue[_Event | None], event: _Event) -> None:
    if queue.qsize() < _MOST_WAITING:
        queue.put_nowait(event)
    elif queue.qsize() == _MOST_WAITING:
        queue.put_nowait(("missed", {}))


@router.get("/events", response_class=EventSourceResponse)
async def events(memory: OwnMemory, request: Request) -> AsyncIterator[ServerSentEvent]:
    """Tell what happens: operation_recorded, refreshed, session_flushed, window_filled, documents_edited.

    First comes `listening`: what happens from there on is told; and `missed` where the reader was too slow.
    """
    streams: Any = request.app.state.streams
    async for name, what in streams.listen():
        yield ServerSentEvent(event=name, data=what)

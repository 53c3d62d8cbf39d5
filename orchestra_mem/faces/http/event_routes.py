"""The route that tells what happens in the memory, as it happens: server-sent events, with names and no contents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from fastapi import APIRouter, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from orchestra_mem.core.context.window import Crossing
from orchestra_mem.faces.http.callers import OwnMemory
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.tiers.session_compaction import Refreshed
from orchestra_mem.types import Json, Operation, Session

router = APIRouter(prefix="/api/memory", tags=["events"])

_MOST_WAITING = 1_000
_Event: TypeAlias = "tuple[str, dict[str, Json]]"


class EventStreams:
    """Hands on the signals of a memory to those who listen. Signals come from any thread."""

    def __init__(self, memory: OrchestratorContextManager) -> None:
        self._listeners: dict[asyncio.Queue[_Event | None], asyncio.AbstractEventLoop] = {}
        events = memory.events  # holds its subscribers weakly: this object has to be kept
        events.operation_recorded.connect(self._recorded)
        events.refreshed.connect(self._refreshed)
        events.session_flushed.connect(self._flushed)
        events.window_filled.connect(self._filled)
        events.documents_edited.connect(self._edited)

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

    def _tell(self, name: str, **what: Json) -> None:
        for queue, loop in [*self._listeners.items()]:
            with suppress(RuntimeError):  # the loop has been closed this instant
                loop.call_soon_threadsafe(_put, queue, (name, what))

    def _recorded(self, memory: object, operation: Operation) -> None:
        self._tell(
            "operation_recorded", operation=operation.id, type=operation.type, session=operation.session,
            agent=operation.agent,
        )  # fmt: skip

    def _refreshed(self, memory: object, refreshed: Refreshed) -> None:
        self._tell("refreshed", spilled_operations=refreshed.spilled_operations, used_tokens=refreshed.used_tokens)

    def _flushed(self, memory: object, session: Session, path: Path) -> None:
        self._tell("session_flushed", session=session.id, document=path.name)

    def _filled(self, memory: object, crossing: Crossing) -> None:
        self._tell("window_filled", threshold=crossing.threshold.value, used_tokens=crossing.used_tokens)

    def _edited(self, memory: object) -> None:
        self._tell("documents_edited")


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

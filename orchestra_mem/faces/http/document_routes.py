"""Routes of documents and work items, and a stream of the memory's events. Events contain names but no texts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Body, Header, HTTPException, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import Field, StrictBool
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.responses import Response

from orchestra_mem.core.documents.signature import digest
from orchestra_mem.core.work.wording import MAX_TITLE_CHARS
from orchestra_mem.errors import DocumentConflictError, InvalidItemError, NotFoundError
from orchestra_mem.faces.http.json_answers import (
    NUMBER,
    Given,
    JsonResponse,
    Name,
    OwnerMemory,
    Paged,
    Shape,
    Text,
    shown,
    shown_page,
)
from orchestra_mem.faces.records import conflict_records, resolved_record, update_documents, work_record
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.tiers.authorship import BlamedLine
from orchestra_mem.types import Author, Json, Version
from orchestra_mem.work_types import WorkEvent, WorkFilter, WorkItem, WorkKind, WorkProgress, WorkStatus


class _DocumentName(StringConvertor):
    """Path convertor for document names: `decision_log`, or `catalog/NAME` for an agent's document."""

    regex = "(?:catalog/|(?!catalog/))[^/]+"


register_url_convertor("document", _DocumentName())
document_router = APIRouter(prefix="/api/memory", tags=["documents"])

_SESSION = "session"
_MARKDOWN = "text/markdown; charset=utf-8"
_TEXT: dict[int | str, dict[str, object]] = {
    200: {
        "description": "The document, byte for byte; `ETag` identifies this text.",
        "content": {"text/markdown": {"schema": {"type": "string"}, "example": "# Decision Log\n"}},
    },
    304: {"description": "The text is still the one that `If-None-Match` identifies."},
}
_LISTED = Shape("ListedDocument", name=str, path=str, etag=str, chars=int)
_DIFFERENCE = Shape("Difference", document=str, version=int, diff=str)
_CONFLICTING = Shape(
    "Conflict", id=str, document=str, path=str, line=int, yours=str, machine=str, changed_meanwhile=bool,
    sides=list[str],
)  # fmt: skip
_DECIDED = Shape("Decided", id=str, document=str, path=str, line=int, replaced=int, note=str)
IfMatch = Annotated[str | None, Header(description="The `ETag` of the text that the change is based on.")]


class ConflictDecision(Given):
    """How to resolve a conflict. `accept`: Take the machine's lines. `both`: Keep the lines of both sides."""

    accept: StrictBool
    both: StrictBool = False


def _text(memory: OrchestratorContextManager, name: str) -> str:
    if name == _SESSION:
        session = memory.session_memory.session
        if session is None:
            raise NotFoundError("no session is running, so there is no session document")
        return memory.session_memory.text(session)
    return memory.documents.text(name)


def _etag(text: str) -> str:
    return f'"{digest(text)}"'


def _names(header: str, text: str) -> bool:
    # A proxy that compresses marks the tag as weak, but it still identifies the text.
    return header.strip() == "*" or _etag(text) in [each.strip().removeprefix("W/") for each in header.split(",")]


@document_router.get("/documents", responses=shown([_LISTED]))
def list_documents(memory: OwnerMemory) -> JsonResponse:
    """List the documents; `session` is the document of the running session."""
    running = memory.session_memory.path
    paths = {name: memory.documents.path(name) for name in memory.documents.names()}
    found = []
    for name, path in (paths | ({_SESSION: running} if running else {})).items():
        text = _text(memory, name)
        found.append({"name": name, "path": str(path), "etag": _etag(text), "chars": len(text)})
    return JsonResponse(found)


@document_router.get("/documents/{name:document}/blame", responses=shown([BlamedLine]))
def blame(memory: OwnerMemory, name: str) -> JsonResponse:
    """Report for each line whether a person or the machine wrote it, and from which operations."""
    return JsonResponse(memory.blame(name))


@document_router.get("/documents/{name:document}/history", responses=shown_page(Version))
def history(memory: OwnerMemory, name: str, query: Annotated[Paged, Query()]) -> JsonResponse:
    """List the earlier versions of a document, newest first, each with its time, its author and why it was kept."""
    return query.answer_of(memory.documents.history(name)[::-1])


@document_router.get("/documents/{name:document}/history/{version}", responses=shown(_DIFFERENCE))
def difference(memory: OwnerMemory, name: str, version: int) -> JsonResponse:
    """Return the changes of a document since one of its versions, as a unified diff."""
    return JsonResponse({"document": name, "version": version, "diff": memory.documents.diff(name, version)})


@document_router.get("/conflicts", responses=shown([_CONFLICTING]))
def conflicts(memory: OwnerMemory) -> JsonResponse:
    """List the conflicts: lines that both a person and the machine changed. The document has the person's lines."""
    return JsonResponse(conflict_records(memory))


@document_router.post("/conflicts/{conflict}", responses=shown(_DECIDED))
def decide(memory: OwnerMemory, conflict: str, decision: ConflictDecision) -> JsonResponse:
    """Resolve a conflict: `accept` takes the machine's lines, `both` appends them, else the person's lines stay."""
    return JsonResponse(resolved_record(memory, conflict, accept=decision.accept, both=decision.both))


@document_router.get("/documents/{name:document}", response_class=Response, responses=_TEXT)
def read_document(memory: OwnerMemory, name: str, if_none_match: Annotated[str | None, Header()] = None) -> Response:
    """Read the current text of a document; `session` is the document of the running session."""
    text = _text(memory, name)
    headers = {"ETag": _etag(text)}
    if if_none_match is not None and _names(if_none_match, text):
        return Response(status_code=304, headers=headers)
    return Response(text.encode("utf-8", "surrogateescape"), media_type=_MARKDOWN, headers=headers)


@document_router.put("/documents/{name:document}", status_code=204, response_class=Response)
def save_document(
    memory: OwnerMemory, name: str, text: Annotated[bytes, Body(media_type="text/markdown")] = b"",
    if_match: IfMatch = None,
) -> Response:  # fmt: skip
    """Save a document if `If-Match` names its current text, which then becomes a version.

    Without `If-Match` the response is 428. If the text has changed, the response is 412 with the current `ETag`.
    """
    current = memory.documents.text(name)
    if if_match is None:
        raise HTTPException(428, "`If-Match` is missing: send the `ETag` of the text that you changed")
    try:
        new = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidItemError([f"body: not UTF-8 at byte {error.start}; send the text as UTF-8"]) from None
    if "\0" in new:
        raise InvalidItemError([f"body: must not contain NUL (character {new.index(chr(0))})"])
    try:
        if not _names(if_match, current):
            raise DocumentConflictError(f"{name} has changed since it was read: read it again, and merge your changes")
        if new != current:
            memory.documents.save(name, new, expected=current)
    except DocumentConflictError as error:
        raise HTTPException(412, str(error), headers={"ETag": _etag(memory.documents.text(name))}) from None
    return Response(status_code=204, headers={"ETag": _etag(new)})


work_router = APIRouter(prefix="/api/memory", tags=["work"])

_ITEM_ID = Field(ge=1, le=2**31)
_SHOWN_ITEM = Shape("ShownItem", item=WorkItem, progress=WorkProgress, blockers=list[WorkItem], events=list[WorkEvent])


class WorkQuery(Paged):
    """Filter for work items."""

    kind: list[WorkKind] = Field(default_factory=list, max_length=10)
    status: list[WorkStatus] = Field(default_factory=list, max_length=10)
    parent: Annotated[
        int | None, Query(ge=0, le=2**31, description="Only direct children of this item; 0: items without a parent.")
    ] = None
    text: Annotated[str, Query(max_length=4_000, description="Only items with all these words.")] = ""
    assignee: Name | None = None

    @property
    def where(self) -> WorkFilter:
        """The filter for the state manager."""
        return WorkFilter(
            kinds=tuple(self.kind), statuses=tuple(self.status), parent=self.parent, text=self.text,
            assignee=self.assignee,
        )  # fmt: skip


class NewItem(Given):
    """A work item to create."""

    kind: WorkKind
    title: Annotated[str, Field(min_length=1, max_length=MAX_TITLE_CHARS)]
    description: Annotated[str, Field(max_length=100_000)] = ""
    parent: Annotated[int, _ITEM_ID, NUMBER] | None = None
    priority: Annotated[int, Field(ge=1, le=5, description="1 is the highest, 5 the lowest."), NUMBER] = 3
    depends_on: list[Annotated[int, _ITEM_ID, NUMBER]] = Field(default_factory=list, max_length=1_000)
    assignee: Name | None = None
    acceptance: list[Text] = Field(default_factory=list, max_length=100)


class StatusChange(Given):
    """The new status of a work item."""

    status: WorkStatus
    reason: Annotated[str, Field(max_length=4_000, description="The reason, for example what blocks the item.")] = ""


@work_router.get("/work", responses=shown_page(WorkItem))
def list_work(memory: OwnerMemory, query: Annotated[WorkQuery, Query()]) -> JsonResponse:
    """List work items in the order of the backlog."""
    return query.answer_of(memory.state.items(query.where))


@work_router.get("/work/{item}", responses=shown(_SHOWN_ITEM))
def show_work(memory: OwnerMemory, item: int, limit: Annotated[int, Query(ge=1, le=1_000)] = 20) -> JsonResponse:
    """Show a work item with its progress, its blockers and its newest changes."""
    return JsonResponse(work_record(memory, item, limit))


@work_router.post("/work", status_code=201, responses=shown(WorkItem, 201, "The item as it was stored."))
def add_work(memory: OwnerMemory, item: NewItem) -> JsonResponse:
    """Create a milestone, epic, story, task or subtask."""
    made = memory.state.create(**item.model_dump(), author=Author.PERSON)
    update_documents(memory)
    return JsonResponse(made, 201, {"Location": f"/api/memory/work/{made.id}"})


@work_router.patch("/work/{item}", responses=shown(WorkItem))
def move_work(memory: OwnerMemory, item: int, change: StatusChange) -> JsonResponse:
    """Move a work item to another status. If the change is not allowed, the response lists the allowed statuses."""
    moved = memory.state.set_status(item, change.status, reason=change.reason, author=Author.PERSON)
    update_documents(memory)
    return JsonResponse(moved)


event_router = APIRouter(prefix="/api/memory", tags=["events"])

_MOST_WAITING = 1_000
_Event: TypeAlias = "tuple[str, dict[str, Json]]"
_ToEvent: TypeAlias = "Callable[..., dict[str, Json]]"
# The data of the event for each signal of the memory.
_SIGNALS: dict[str, _ToEvent] = {
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
    """Forwards the signals of a memory, which come from any thread, to the queues of listening event loops."""

    def __init__(self, memory: OrchestratorContextManager) -> None:
        self._listeners: dict[asyncio.Queue[_Event | None], asyncio.AbstractEventLoop] = {}
        # Kept, because the memory has only weak references to its subscribers.
        self._subscribers = {name: partial(self._tell, name, told) for name, told in _SIGNALS.items()}
        for name, subscriber in self._subscribers.items():
            getattr(memory.events, name).connect(subscriber)

    async def listen(self) -> AsyncIterator[_Event]:
        """Yield `listening`, then all events until `end` is called. If a slow reader loses events, it gets `missed`."""
        queue: asyncio.Queue[_Event | None] = asyncio.Queue()
        self._listeners[queue] = asyncio.get_running_loop()
        try:
            yield "listening", {}
            while (event := await queue.get()) is not None:
                yield event
        finally:
            self._listeners.pop(queue, None)

    def end(self) -> None:
        """End all streams. Call it in the listeners' event loop."""
        for queue in [*self._listeners]:
            queue.put_nowait(None)

    def _tell(self, name: str, to_event: _ToEvent, memory: object, **what: Any) -> None:
        event = name, to_event(**what)
        for queue, loop in [*self._listeners.items()]:
            with suppress(RuntimeError):  # the loop has just been closed
                loop.call_soon_threadsafe(_put, queue, event)


def _put(queue: asyncio.Queue[_Event | None], event: _Event) -> None:
    if queue.qsize() < _MOST_WAITING:
        queue.put_nowait(event)
    elif queue.qsize() == _MOST_WAITING:
        queue.put_nowait(("missed", {}))


@event_router.get("/events", response_class=EventSourceResponse)
async def events(memory: OwnerMemory, request: Request) -> AsyncIterator[ServerSentEvent]:
    """Stream events: operation_recorded, refreshed, session_flushed, window_filled, documents_edited.

    The first event is `listening`: all later events are sent. `missed` replaces events that a slow reader missed.
    """
    streams: Any = request.app.state.streams
    async for name, what in streams.listen():
        yield ServerSentEvent(event=name, data=what)

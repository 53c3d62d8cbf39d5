"""Routes of the catalog, and of the memory service: search, sessions, workers' observations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field, JsonValue
from starlette.responses import Response

from orchestra_mem.build.memory_service import (
    MemoryService,
    NewObservation,
    Observation,
    ObservationFilter,
    ObservationType,
    SessionRecord,
)
from orchestra_mem.catalog_types import CatalogStatistics, Injection, ItemFilter, ItemStatus, ItemType, MemoryItem
from orchestra_mem.core.catalog.item_drafts import ItemDraft
from orchestra_mem.errors import InvalidItemError, NotFoundError
from orchestra_mem.faces.http.json_answers import (
    Budget,
    CallerDep,
    Given,
    JsonResponse,
    Name,
    OwnerMemory,
    Paged,
    Question,
    Shape,
    SinceQuery,
    Text,
    UntilQuery,
    fields_of,
    shown,
    shown_page,
)
from orchestra_mem.faces.records import search_record
from orchestra_mem.search_types import Hit, SearchFilter, SearchMode, Tier
from orchestra_mem.serialize import to_object
from orchestra_mem.types import Author

catalog_router = APIRouter(prefix="/api/memory", tags=["catalog"])

_CLEANUP = Shape("Cleanup", expired=int, displaced=int, audit_entries=int, statistics=dict[str, CatalogStatistics])


class CatalogQuery(Paged):
    """Filter for items."""

    ci: Annotated[Name | None, Query(description="Only items of this agent; global: items that all agents see.")] = None
    type: ItemType | None = None
    tags: Annotated[
        str, Query(max_length=4_000, description="Only items with one of these tags, separated by commas.")
    ] = ""
    search: Annotated[str, Query(max_length=4_000, description="Only items with all these words.")] = ""

    @property
    def where(self) -> ItemFilter:
        """The filter for the catalog."""
        return ItemFilter(
            agents=[self.ci] if self.ci else None, types=[self.type] if self.type else (), text=self.search,
            tags=[tag.strip() for tag in self.tags.split(",") if tag.strip()], limit=self.limit, offset=self.offset,
        )  # fmt: skip


class RelevantQuery(Given):
    """Query parameters for selecting items that are relevant to a message."""

    message: Annotated[Question, Query(description="The message to the agent.")]
    ci: Annotated[Name | None, Query(description="The agent; with an agent's token, that agent.")] = None
    max_tokens: Annotated[Budget, Query(description="The budget in tokens.")] = 2_000


@catalog_router.get("/catalog", responses=shown_page(MemoryItem))
def list_items(caller: CallerDep, query: Annotated[CatalogQuery, Query()]) -> JsonResponse:
    """List the items that the caller may see, newest first."""
    catalog = caller.memory.catalog
    return query.answer(catalog.items(query.where, agent=caller.agent), catalog.count(query.where, agent=caller.agent))


@catalog_router.get("/catalog/{memory_id}", responses=shown(MemoryItem))
def show_item(caller: CallerDep, memory_id: str) -> JsonResponse:
    """Show an item, given its id or its number, such as M12."""
    item = caller.memory.catalog.get(memory_id, agent=caller.agent)
    if item.status is ItemStatus.DELETED:
        raise NotFoundError(f"item {memory_id!r} has been deleted; `orchestra-mem catalog show` still shows it")
    return JsonResponse(item)


@catalog_router.post("/catalog", status_code=201, responses=shown(MemoryItem, 201, "The item as it was stored."))
def store_item(caller: CallerDep, item: ItemDraft) -> JsonResponse:
    """Store an item, or strengthen the item with the same content; missing fields are derived from the content."""
    author = Author.PERSON if caller.is_owner else Author.MACHINE
    stored = caller.memory.catalog.store(item.model_dump(exclude_unset=True), agent=caller.agent, author=author)
    caller.memory.write_catalog()
    return JsonResponse(stored, 201, {"Location": f"/api/memory/catalog/{stored.id}"})


@catalog_router.delete("/catalog/{memory_id}", status_code=204, response_class=Response)
def delete_item(caller: CallerDep, memory_id: str) -> Response:
    """Hide an item from everybody; `orchestra-mem catalog purge` erases it permanently."""
    caller.memory.catalog.delete(memory_id, agent=caller.agent)
    caller.memory.write_catalog()
    return Response(status_code=204)


@catalog_router.get("/relevant", responses=shown(Injection))
def relevant(caller: CallerDep, query: Annotated[RelevantQuery, Query()]) -> JsonResponse:
    """Select relevant items for a message to an agent, each with its score; the owner has to name the agent, `ci`."""
    agent = caller.acting(query.ci)
    if not agent or not agent.strip():
        raise InvalidItemError(["query.ci: name the agent, as in ci=reviewer"])
    return JsonResponse(caller.memory.relevant(query.message, agent=agent, max_tokens=query.max_tokens))


@catalog_router.post("/cleanup", responses=shown(_CLEANUP))
def clean_up(memory: OwnerMemory) -> JsonResponse:
    """Hide expired items and items beyond the limit, delete old audit entries, and return statistics."""
    done = memory.catalog.clean_up()
    memory.write_catalog()
    figures = {"expired": done.expired, "displaced": done.displaced, "audit_entries": done.audit_entries}
    return JsonResponse({**figures, "statistics": memory.catalog.get_stats()})


service_router = APIRouter(prefix="/api/memory", tags=["memory service"])

_FOUND = Shape("Found", hits=list[Hit], notes=list[str])
_SHOWN_SESSION = Shape("ShownSession", **fields_of(SessionRecord), observations=list[Observation], total=int)


class SearchQuery(Given):
    """Query parameters of a search."""

    q: Annotated[Question, Query(description="Words, a question, or names such as #12 or src/app.py.")]
    limit: Annotated[int, Query(ge=1, le=200)] = 10
    tier: list[Tier] = Field(default_factory=list, max_length=10)
    kind: list[Name] = Field(default_factory=list, max_length=50)
    session: Name | None = None
    worker: Annotated[Name | None, Query(description="Only hits by this agent.")] = None
    item: Annotated[int | None, Query(ge=1, le=2**31, description="Only hits about this work item.")] = None
    since: SinceQuery = None
    until: UntilQuery = None
    mode: SearchMode = SearchMode.HYBRID

    @property
    def where(self) -> SearchFilter:
        """The filter for the search."""
        return SearchFilter(
            tiers=tuple(self.tier), kinds=tuple(self.kind), session=self.session, agent=self.worker, item=self.item,
            since=self.since, until=self.until,
        )  # fmt: skip


class ObservationQuery(Paged):
    """Filter for observations."""

    worker: Annotated[Name | None, Query(description="Only observations by this worker.")] = None
    session: Name | None = None
    type: Name | None = None
    since: SinceQuery = None
    until: UntilQuery = None


class ObservationBody(Given):
    """An observation to record: something that a worker did or saw."""

    content: Text
    worker: Annotated[Name | None, Field(description="The worker; required with the owner's token.")] = None
    type: ObservationType = ObservationType.CUSTOM
    session: Annotated[Name | None, Field(description="Default: the running session.")] = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


@service_router.get("/search", responses=shown(_FOUND))
def search(caller: CallerDep, query: Annotated[SearchQuery, Query()]) -> JsonResponse:
    """Search all tiers by keywords and by meaning, best hits first, each with its scores and reasons."""
    found = caller.view.search(query.q, where=query.where, mode=query.mode, limit=query.limit)
    return JsonResponse(search_record(found, caller.memory.hit_lines(found.hits)))


@service_router.get("/sessions", responses=shown_page(SessionRecord))
def list_sessions(memory: OwnerMemory, query: Annotated[Paged, Query()]) -> JsonResponse:
    """List the sessions, newest first."""
    return query.answer(MemoryService(memory).sessions(query.limit, query.offset), len(memory.sessions()))


@service_router.get("/sessions/{session_id}", responses=shown(_SHOWN_SESSION))
def show_session(memory: OwnerMemory, session_id: str, query: Annotated[Paged, Query()]) -> JsonResponse:
    """Show a session with its summary and its observations, newest first."""
    service = MemoryService(memory)
    where = ObservationFilter(session_id=session_id, limit=query.limit, offset=query.offset)
    record = to_object(service.session(session_id))
    total = service.count_observations(where)
    return JsonResponse({**record, "observations": service.get_observations(where), "total": total})


@service_router.get("/observations", responses=shown_page(Observation))
def list_observations(caller: CallerDep, query: Annotated[ObservationQuery, Query()]) -> JsonResponse:
    """List workers' observations, newest first."""
    others = query.model_dump(exclude={"worker", "session"})
    where = ObservationFilter(worker_id=query.worker, session_id=query.session, **others)
    service = MemoryService(caller.view)
    return query.answer(service.get_observations(where), service.count_observations(where))


@service_router.post(
    "/observations",
    status_code=201,
    responses=shown(Shape("NewId", id=int), 201, "The observation is stored permanently."),
)
def add_observation(caller: CallerDep, observation: ObservationBody) -> JsonResponse:
    """Record a worker's observation, which then survives any crash; the owner has to name the `worker`."""
    worker = caller.acting(observation.worker)
    if worker is None:
        raise InvalidItemError(["body.worker: name the worker"])
    others = observation.model_dump(exclude={"worker", "session"})
    new = NewObservation(worker_id=worker, session_id=observation.session, **others)
    return JsonResponse({"id": MemoryService(caller.view).capture_observation(new)}, 201)

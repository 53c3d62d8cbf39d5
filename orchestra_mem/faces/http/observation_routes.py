"""Routes of the memory service: search, sessions, and what workers did or saw."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field, JsonValue

from orchestra_mem.build.memory_service import (
    MemoryService,
    NewObservation,
    Observation,
    ObservationFilter,
    ObservationType,
    SessionRecord,
)
from orchestra_mem.errors import InvalidItemError
from orchestra_mem.faces.http.answer_schemas import Shape, fields_of
from orchestra_mem.faces.http.callers import Asker, OwnMemory
from orchestra_mem.faces.http.json_answers import (
    Given,
    JsonAnswer,
    Name,
    Paged,
    Question,
    Text,
    Time,
    shown,
    shown_page,
)
from orchestra_mem.faces.records import search_record
from orchestra_mem.search_types import Hit, SearchFilter, SearchMode, Tier
from orchestra_mem.serialize import to_object

router = APIRouter(prefix="/api/memory", tags=["memory service"])

_FOUND = Shape("Found", hits=list[Hit], notes=list[str])
_SHOWN_SESSION = Shape("ShownSession", **fields_of(SessionRecord), observations=list[Observation], total=int)


class SearchQuery(Given):
    """What is looked for, and where."""

    q: Annotated[Question, Query(description="Words, a question, or names such as #12 or src/app.py.")]
    limit: Annotated[int, Query(ge=1, le=200)] = 10
    tier: list[Tier] = Field(default_factory=list, max_length=10)
    kind: list[Name] = Field(default_factory=list, max_length=50)
    session: Name | None = None
    worker: Annotated[Name | None, Query(description="Only by this agent.")] = None
    item: Annotated[int | None, Query(ge=1, le=2**31, description="Only about this work item.")] = None
    since: Time | None = None
    until: Time | None = None
    mode: SearchMode = SearchMode.HYBRID

    @property
    def where(self) -> SearchFilter:
        """Where it is looked for."""
        return SearchFilter(
            tiers=tuple(self.tier), kinds=tuple(self.kind), session=self.session, agent=self.worker, item=self.item,
            since=self.since, until=self.until,
        )  # fmt: skip


class ObservationQuery(Paged):
    """Which observations are wanted."""

    worker: Annotated[Name | None, Query(description="Only by this worker.")] = None
    session: Name | None = None
    type: Name | None = None
    since: Annotated[Time | None, Query(description="Only from then on.")] = None
    until: Annotated[Time | None, Query(description="Only before then.")] = None


class ObservationBody(Given):
    """What a worker did or saw."""

    content: Text
    worker: Annotated[Name | None, Field(description="Who; with an agent's token itself.")] = None
    type: ObservationType = ObservationType.CUSTOM
    session: Annotated[Name | None, Field(description="Default: the session under way.")] = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


@router.get("/search", responses=shown(_FOUND))
def search(caller: Asker, query: Annotated[SearchQuery, Query()]) -> JsonAnswer:
    """Find what answers a question in all tiers, by words and by meaning, best first, each hit with its reasons."""
    found = caller.service.search(query.q, where=query.where, mode=query.mode, limit=query.limit)
    return JsonAnswer(search_record(found, caller.memory.hit_lines(found.hits)))


@router.get("/sessions", responses=shown_page(SessionRecord))
def list_sessions(memory: OwnMemory, query: Annotated[Paged, Query()]) -> JsonAnswer:
    """List the sessions, newest first."""
    return query.answer(MemoryService(memory).sessions(query.limit, query.offset), len(memory.sessions()))


@router.get("/sessions/{session_id}", responses=shown(_SHOWN_SESSION))
def show_session(memory: OwnMemory, session_id: str, query: Annotated[Paged, Query()]) -> JsonAnswer:
    """Show a session with its summary and its observations, newest first."""
    service = MemoryService(memory)
    where = ObservationFilter(session_id=session_id, limit=query.limit, offset=query.offset)
    record = to_object(service.session(session_id))
    total = service.count_observations(where)
    return JsonAnswer({**record, "observations": service.get_observations(where), "total": total})


@router.get("/observations", responses=shown_page(Observation))
def list_observations(caller: Asker, query: Annotated[ObservationQuery, Query()]) -> JsonAnswer:
    """List what workers did or saw, newest first."""
    where = ObservationFilter(
        worker_id=query.worker, session_id=query.session, type=query.type, since=query.since, until=query.until,
        limit=query.limit, offset=query.offset,
    )  # fmt: skip
    return query.answer(caller.service.get_observations(where), caller.service.count_observations(where))


@router.post("/observations", status_code=201, responses=shown(Shape("NewId", id=int), 201, "It is kept for good."))
def add_observation(caller: Asker, observation: ObservationBody) -> JsonAnswer:
    """Record what a worker did or saw. When this is answered it survives any crash."""
    worker = caller.acting(observation.worker)
    if worker is None:
        raise InvalidItemError(["body.worker: name the worker"])
    number = MemoryService(caller.memory).capture_observation(
        NewObservation(
            worker_id=worker, content=observation.content, type=observation.type, session_id=observation.session,
            metadata=observation.metadata,
        )
    )  # fmt: skip
    return JsonAnswer({"id": number}, 201)

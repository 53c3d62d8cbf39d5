"""Routes for status, contexts and retrieval, and for history: operations, facts, originals, losses, audit trail."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field, JsonValue, StrictBool

from orchestra_mem.catalog_types import AccessOutcome, AuditEntry, AuditFilter
from orchestra_mem.core.context.window import UsagePoint
from orchestra_mem.faces.http.json_answers import (
    MOST_TOKENS,
    NUMBER,
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
    Time,
    UntilQuery,
    fields_of,
    shown,
    shown_page,
)
from orchestra_mem.faces.records import context_record, record_once, status_record
from orchestra_mem.memory.recall import Expansion
from orchestra_mem.retrieval.passages import Recommendations
from orchestra_mem.retrieval.retriever import RetrievedContext
from orchestra_mem.types import MustKeep, MustKeepKind, Operation, OperationFilter, Summary

context_router = APIRouter(prefix="/api/memory", tags=["context"])

_TIERS = dict.fromkeys(("working_memory", "session_memory", "episodic_memory", "catalog", "search"), dict[str, Any])
_WINDOW = Shape(
    "Window", used_tokens=int, available_tokens=int, max_tokens=int, usage_percentage=float, operation_count=int,
    refresh_count=int, thresholds=dict[str, float],
)  # fmt: skip
_STATUS = Shape("Status", project=str, documents=dict[str, str | None], problems=list[dict[str, Any]], **_TIERS)
_CONTEXT = Shape(
    "Context", for_operation=str, budget_tokens=int, tokens=int, counter=str, exact=bool, parts=dict[str, Any],
    text=str, messages=list[dict[str, Any]], explain=str, notes=list[str],
)  # fmt: skip
_RETRIEVED = Shape("Retrieved", **fields_of(RetrievedContext), explain=str)
_RECOMMENDED = Shape("Recommended", **fields_of(Recommendations))


class ContextQuery(Given):
    """Query parameters of a context."""

    for_operation: Annotated[Name, Query(alias="for", description="The operation that the context is for.")] = "prompt"
    max_tokens: Annotated[Budget | None, Query(description="Default: the window up to the refresh threshold.")] = None
    query: Annotated[Question | None, Query(description="A question to recall memories for.")] = None


class TaskQuery(Given):
    """Query parameters that describe a task."""

    task: Annotated[Question, Query(description="The task.")]
    agent: list[Name] = Field(default_factory=list, max_length=20, description="An agent that will work on the task.")


class RetrieveQuery(TaskQuery):
    """Query parameters of a retrieval for a task."""

    max_tokens: Budget = 2_000
    pattern: Annotated[Name | None, Query(description="How the agents work together: only such work.")] = None


class RecommendQuery(TaskQuery):
    """Query parameters of recommendations for a task."""

    limit: Annotated[int, Query(ge=1, le=100)] = 3


@context_router.get("/status", responses=shown(_STATUS))
def status(memory: OwnerMemory, request: Request) -> JsonResponse:
    """Report the usage of the window, the contents of the tiers, the paths of the documents, and all problems."""
    return JsonResponse(status_record(memory, request.app.state.project))


@context_router.get("/window", responses=shown(_WINDOW))
def window(memory: OwnerMemory) -> JsonResponse:
    """Report the usage of the model's context window, and the thresholds as shares of the window."""
    tracker = memory.context_tracker
    thresholds = {name: getattr(tracker, f"{name}_threshold") for name in ("warning", "refresh", "critical")}
    return JsonResponse({**tracker.get_stats(), "thresholds": thresholds})


@context_router.get("/window/history", responses=shown_page(UsagePoint))
def window_history(memory: OwnerMemory, query: Annotated[Paged, Query()]) -> JsonResponse:
    """List the latest changes of the window's usage by operations and refreshes of all processes, newest first."""
    return query.answer_of(memory.window_history()[::-1])


@context_router.get("/tiers", responses=shown(Shape("Tiers", **_TIERS)))
def tiers(memory: OwnerMemory) -> JsonResponse:
    """Report statistics of each tier, of the catalog and of the search index."""
    stats = memory.get_stats()
    return JsonResponse({name: stats[name] for name in _TIERS})


@context_router.get("/context", responses=shown(_CONTEXT))
def context(caller: CallerDep, query: Annotated[ContextQuery, Query()]) -> JsonResponse:
    """Build the context that a model reads before an operation, with the reason for each included or omitted item."""
    found = caller.view.get_orchestrator_context(query.for_operation, query.max_tokens, query=query.query)
    return JsonResponse(context_record(found))


@context_router.get("/retrieve", responses=shown(_RETRIEVED))
def retrieve(caller: CallerDep, query: Annotated[RetrieveQuery, Query()]) -> JsonResponse:
    """Retrieve memories for a task within the budget: an index with costs, then the best entries."""
    found = caller.retrieving("retrieve_context")(
        query.task, agents=query.agent, pattern=query.pattern, max_tokens=query.max_tokens
    )
    return JsonResponse({**found.as_dict(), "explain": found.explain()})


@context_router.get("/recommend", responses=shown(_RECOMMENDED))
def recommend(caller: CallerDep, query: Annotated[RecommendQuery, Query()]) -> JsonResponse:
    """Return past decisions, rules, failures and similar tasks that matter for a task, with their sources."""
    found = caller.retrieving("get_recommendations")(query.task, agents=query.agent, limit=query.limit)
    return JsonResponse(found.as_dict())


history_router = APIRouter(prefix="/api/memory", tags=["history"])


class OperationQuery(Paged):
    """Filter for operations."""

    type: Name | None = None
    session: Name | None = None
    agent: Name | None = None
    since: SinceQuery = None
    until: UntilQuery = None


class NewOperation(Given):
    """An operation to record."""

    type: Annotated[Name, Field(description="The kind of operation, such as decision.")]
    data: JsonValue
    tokens: Annotated[int, Field(ge=0, le=MOST_TOKENS), NUMBER] | None = None
    agent: Annotated[Name | None, Field(description="Who did it; with an agent's token, that agent.")] = None
    critical: StrictBool | None = None
    timestamp: Time | None = None
    key: Annotated[
        Name | None, Field(description="Idempotency key: a second operation with the same key is not recorded.")
    ] = None


class FactQuery(Paged):
    """Filter for facts."""

    kind: MustKeepKind | None = None
    every: Annotated[bool, Query(description="Include superseded, removed and done facts.")] = False
    since: SinceQuery = None


class LossQuery(Paged):
    """Filter for summaries."""

    session: Name | None = None


class AuditQuery(Paged):
    """Filter for audit entries."""

    agent: Annotated[
        str | None, Query(max_length=200, description="Only entries of this agent; empty: entries of the owner.")
    ] = None
    call: Name | None = None
    outcome: AccessOutcome | None = None
    item: Name | None = None
    since: SinceQuery = None

    @property
    def where(self) -> AuditFilter:
        """The filter for the memory's `audit`."""
        return AuditFilter(**self.model_dump(include={"agent", "call", "outcome", "item", "since"}))


@history_router.get("/operations", responses=shown_page(Operation))
def list_operations(caller: CallerDep, query: Annotated[OperationQuery, Query()]) -> JsonResponse:
    """List operations of all sessions, newest first."""
    where = OperationFilter(**query.model_dump())
    return query.answer(caller.view.operations(where)[::-1], caller.view.count_operations(where))


@history_router.post(
    "/operations", status_code=201, responses=shown(Operation, 201, "The operation as it was recorded.")
)
def record_operation(caller: CallerDep, operation: NewOperation) -> JsonResponse:
    """Record an operation. Once the response is sent, the operation survives any crash.

    If an earlier operation with other content has the key, that one is returned, and `X-Memory-Problem` says so.
    """
    recorded, note = record_once(
        caller.view, operation.type, operation.data, operation.tokens, agent=operation.agent,
        critical=operation.critical, timestamp=operation.timestamp, key=operation.key,
    )  # fmt: skip
    return JsonResponse(recorded, 201, {"X-Memory-Problem": note.encode("ascii", "replace").decode()} if note else {})


@history_router.get("/facts", responses=shown_page(MustKeep))
def list_facts(caller: CallerDep, query: Annotated[FactQuery, Query()]) -> JsonResponse:
    """List the facts that summaries must keep, newest first; `kind` selects those of one kind."""
    return query.answer_of(caller.view.facts(query.kind, standing=not query.every, since=query.since)[::-1])


@history_router.get("/expand", responses=shown(Expansion))
def expand(caller: CallerDep, reference: Annotated[str, Query(min_length=1, max_length=200)]) -> JsonResponse:
    """Return the originals of a reference: op104, S12, K7, M3, decision_log.md:41, story 5."""
    return JsonResponse(caller.view.expand(reference))


@history_router.get("/losses", responses=shown_page(Summary))
def list_losses(memory: OwnerMemory, query: Annotated[LossQuery, Query()]) -> JsonResponse:
    """List the summaries, newest first: what each covers, its compression ratio, and the identifiers it dropped."""
    found = memory.losses(query.session, limit=query.offset + query.limit)[::-1]
    return query.answer(found[query.offset :], memory.count_losses(query.session))


@history_router.get("/audit", responses=shown_page(AuditEntry))
def list_audit(memory: OwnerMemory, query: Annotated[AuditQuery, Query()]) -> JsonResponse:
    """List who read or changed the catalog, newest first."""
    return query.answer_of(memory.audit(query.where))

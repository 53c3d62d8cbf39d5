"""Routes of what a model is given, and of the memory as a whole: status, the window, the tiers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field

from orchestra_mem.core.context.window import UsagePoint
from orchestra_mem.faces.http.answer_schemas import Shape
from orchestra_mem.faces.http.callers import Asker, OwnMemory
from orchestra_mem.faces.http.json_answers import Budget, Given, JsonAnswer, Name, Paged, Question, shown, shown_page
from orchestra_mem.faces.records import context_record, status_record

router = APIRouter(prefix="/api/memory", tags=["context"])

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
_RETRIEVED = Shape(
    "Retrieved", task=str, budget_tokens=int, tokens=int, counter=str, exact=bool, text=str,
    entries=list[dict[str, Any]], notes=list[str], explain=str,
)  # fmt: skip
_SAID = list[dict[str, Any]]
_RECOMMENDED = Shape(
    "Recommended", task=str, decisions=_SAID, rules=_SAID, failures=_SAID, similar_tasks=_SAID, notes=list[str]
)


class ContextQuery(Given):
    """What a context is for."""

    for_operation: Annotated[Name, Query(alias="for", description="The operation that it is for.")] = "prompt"
    max_tokens: Annotated[Budget | None, Query(description="Default: the window up to its refresh.")] = None
    query: Annotated[Question | None, Query(description="Memories are recalled for it.")] = None


class TaskQuery(Given):
    """A task that is to be done."""

    task: Annotated[Question, Query(description="What is to be done.")]
    agent: list[Name] = Field(default_factory=list, max_length=20, description="Who will do it.")


class RetrieveQuery(TaskQuery):
    """What is retrieved for a task."""

    max_tokens: Budget = 2_000
    pattern: Annotated[Name | None, Query(description="How they work together.")] = None


class RecommendQuery(TaskQuery):
    """What is recommended for a task."""

    limit: Annotated[int, Query(ge=1, le=100)] = 3


@router.get("/status", responses=shown(_STATUS))
def status(memory: OwnMemory, request: Request) -> JsonAnswer:
    """Tell how full the window is, what the tiers hold, where the documents are, and what is wrong."""
    return JsonAnswer(status_record(memory, request.app.state.project))


@router.get("/window", responses=shown(_WINDOW))
def window(memory: OwnMemory) -> JsonAnswer:
    """Tell how full the window is, and at which shares something happens."""
    tracker = memory.context_tracker
    thresholds = {name: getattr(tracker, f"{name}_threshold") for name in ("warning", "refresh", "critical")}
    return JsonAnswer({**tracker.get_stats(), "thresholds": thresholds})


@router.get("/window/history", responses=shown_page(UsagePoint))
def window_history(memory: OwnMemory, query: Annotated[Paged, Query()]) -> JsonAnswer:
    """List the changes of the window's usage by the newest operations and refreshes, whoever recorded, newest first."""
    return query.answer_of(memory.window_history()[::-1])


@router.get("/tiers", responses=shown(Shape("Tiers", **_TIERS)))
def tiers(memory: OwnMemory) -> JsonAnswer:
    """Tell what each tier holds."""
    stats = memory.get_stats()
    return JsonAnswer({name: stats[name] for name in _TIERS})


@router.get("/context", responses=shown(_CONTEXT))
def context(caller: Asker, query: Annotated[ContextQuery, Query()]) -> JsonAnswer:
    """Build what a model is given before an operation, with the reason for each item that it has or lacks."""
    build = caller.offered("get_orchestrator_context")
    return JsonAnswer(context_record(build(query.for_operation, query.max_tokens, query=query.query)))


@router.get("/retrieve", responses=shown(_RETRIEVED))
def retrieve(caller: Asker, query: Annotated[RetrieveQuery, Query()]) -> JsonAnswer:
    """Give what the memory has for a task: an index with costs, then the best entries, within the budget."""
    found = caller.retrieving("retrieve_context")(
        query.task, agents=query.agent, pattern=query.pattern, max_tokens=query.max_tokens
    )
    return JsonAnswer({**found.as_dict(), "explain": found.explain()})


@router.get("/recommend", responses=shown(_RECOMMENDED))
def recommend(caller: Asker, query: Annotated[RecommendQuery, Query()]) -> JsonAnswer:
    """Say what past decisions, rules, failures and similar tasks say for a task, with their sources."""
    found = caller.retrieving("get_recommendations")(query.task, agents=query.agent, limit=query.limit)
    return JsonAnswer(found.as_dict())

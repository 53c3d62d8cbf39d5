"""Routes of what was recorded: operations, facts, what summaries lost, the originals behind them, who looked."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field, JsonValue, StrictBool

from orchestra_mem.catalog_types import AccessOutcome, AuditEntry, AuditFilter
from orchestra_mem.faces.http.callers import Asker, OwnMemory
from orchestra_mem.faces.http.json_answers import (
    MOST_TOKENS,
    NUMBER,
    Given,
    JsonAnswer,
    Name,
    Paged,
    Time,
    shown,
    shown_page,
)
from orchestra_mem.memory.recall import Expansion
from orchestra_mem.types import MustKeep, MustKeepKind, Operation, OperationFilter, Summary

router = APIRouter(prefix="/api/memory", tags=["history"])


class OperationQuery(Paged):
    """Which operations are wanted."""

    type: Name | None = None
    session: Name | None = None
    agent: Name | None = None
    since: Annotated[Time | None, Query(description="Only from then on.")] = None
    until: Annotated[Time | None, Query(description="Only before then.")] = None


class NewOperation(Given):
    """What was done."""

    type: Annotated[Name, Field(description="What kind of thing was done, as in decision.")]
    data: JsonValue
    tokens: Annotated[int, Field(ge=0, le=MOST_TOKENS), NUMBER] | None = None
    agent: Annotated[Name | None, Field(description="Who did it; with an agent's token itself.")] = None
    critical: StrictBool | None = None
    timestamp: Time | None = None
    key: Annotated[Name | None, Field(description="A second operation with the same key is not recorded.")] = None


class FactQuery(Paged):
    """Which facts are wanted."""

    kind: MustKeepKind | None = None
    every: Annotated[bool, Query(description="Also those that were superseded, removed or are done.")] = False


class LossQuery(Paged):
    """Which summaries are wanted."""

    session: Name | None = None


class AuditQuery(Paged):
    """Which entries are wanted."""

    agent: Annotated[str | None, Query(max_length=200, description="Only of this agent; empty: of the owner.")] = None
    call: Name | None = None
    outcome: AccessOutcome | None = None
    item: Name | None = None
    since: Time | None = None

    @property
    def where(self) -> AuditFilter:
        """The entries that pass, as the memory is asked for them."""
        return AuditFilter(
            agent=self.agent, call=self.call, outcome=self.outcome, item=self.item, since=self.since
        )  # fmt: skip


@router.get("/operations", responses=shown_page(Operation))
def list_operations(caller: Asker, query: Annotated[OperationQuery, Query()]) -> JsonAnswer:
    """List operations of all sessions, newest first."""
    where = OperationFilter(**query.model_dump())
    return query.answer(caller.view.operations(where)[::-1], caller.view.count_operations(where))


@router.post("/operations", status_code=201, responses=shown(Operation, 201, "The operation as it was recorded."))
def record_operation(caller: Asker, operation: NewOperation) -> JsonAnswer:
    """Record what was done. When this is answered it survives any crash."""
    agent = caller.acting(operation.agent)
    recorded = caller.view.record_operation(
        operation.type, operation.data, operation.tokens, agent=agent, critical=operation.critical,
        timestamp=operation.timestamp, idempotency_key=operation.key,
    )  # fmt: skip
    return JsonAnswer(recorded, 201)


@router.get("/facts", responses=shown_page(MustKeep))
def list_facts(caller: Asker, query: Annotated[FactQuery, Query()]) -> JsonAnswer:
    """List the facts that summaries must keep, newest first: decisions, rules, roles, failures, open items."""
    return query.answer_of(caller.view.facts(query.kind, standing=not query.every)[::-1])


@router.get("/expand", responses=shown(Expansion))
def expand(caller: Asker, reference: Annotated[str, Query(min_length=1, max_length=200)]) -> JsonAnswer:
    """Give the originals behind a reference: op104, S12, K7, M3, decision_log.md:41, story 5."""
    return JsonAnswer(caller.view.expand(reference))


@router.get("/losses", responses=shown_page(Summary))
def list_losses(memory: OwnMemory, query: Annotated[LossQuery, Query()]) -> JsonAnswer:
    """List the summaries, newest first: what each covers, how much shorter it is, and which names it dropped."""
    found = memory.losses(query.session, limit=query.offset + query.limit)[::-1]
    return query.answer(found[query.offset :], memory.count_losses(query.session))


@router.get("/audit", responses=shown_page(AuditEntry))
def list_audit(memory: OwnMemory, query: Annotated[AuditQuery, Query()]) -> JsonAnswer:
    """List who looked at the catalog and who changed it, newest first."""
    return query.answer_of(memory.audit(query.where))

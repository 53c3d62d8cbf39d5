"""Pages of what agents have learnt and who looked at it: facts, the catalog, audit."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from orchestra_mem.catalog_types import AccessOutcome, ItemStatus, ItemType
from orchestra_mem.faces.http.callers import Asker, OwnMemory
from orchestra_mem.faces.http.catalog_routes import CatalogQuery
from orchestra_mem.faces.http.history_routes import AuditQuery, FactQuery
from orchestra_mem.faces.http.web.forms import ListForm, Sent, see_other
from orchestra_mem.faces.http.web.pages import Pager, render
from orchestra_mem.types import MustKeepKind

router = APIRouter(include_in_schema=False)

_PAGE = 50
_MOST_ITEMS = 5  # of an entry of the audit trail
_SHOWN = [status for status in ItemStatus if status is not ItemStatus.PURGED]


class FactsForm(ListForm, FactQuery):
    """Which facts are wanted."""


class ItemsForm(ListForm, CatalogQuery):
    """Which items are wanted."""

    hidden: bool = False


class AuditForm(ListForm, AuditQuery):
    """Which entries are wanted; `owner` wants those that are no agent's."""

    owner: bool = False


@router.get("/facts")
def list_facts(request: Request, caller: Asker, form: Annotated[FactsForm, Query()]) -> Response:
    """List what summaries must keep, newest first; `every` also what holds no longer."""
    found = caller.view.facts(form.kind, standing=not form.every)[::-1]
    pager = Pager(form.page, len(found), _PAGE)
    facts = found[pager.offset : pager.offset + _PAGE]
    return render(request, "facts.html", form=form, pager=pager, facts=facts, kinds=[*MustKeepKind])


@router.get("/catalog")
def list_items(request: Request, caller: Asker, form: Annotated[ItemsForm, Query()]) -> Response:
    """List the items that the caller may see, newest first."""
    catalog = caller.memory.catalog
    where = replace(form.where, statuses=_SHOWN if form.hidden else (ItemStatus.LIVE,))
    pager = Pager(form.page, catalog.count(where, agent=caller.agent), _PAGE)
    items = catalog.items(replace(where, limit=_PAGE, offset=pager.offset), agent=caller.agent)
    agents = sorted(catalog.get_stats(agent=caller.agent))
    return render(request, "catalog.html", form=form, pager=pager, items=items, agents=agents, types=[*ItemType])


@router.get("/catalog/{memory_id}")
def show_item(request: Request, caller: Asker, memory_id: str) -> Response:
    """Show an item with all that is known of it."""
    return render(request, "catalog_item.html", item=caller.memory.catalog.get(memory_id, agent=caller.agent))


@router.post("/catalog/{memory_id}")
def change_item(caller: Asker, memory_id: str, sent: Sent) -> Response:
    """Hide an item from everybody, or with `do=restore` show it again."""
    catalog = caller.memory.catalog
    (catalog.restore if sent.get("do") == "restore" else catalog.delete)(memory_id, agent=caller.agent)
    caller.memory.write_catalog()
    return see_other(f"/catalog/{quote(memory_id)}")


@router.get("/audit")
def list_audit(request: Request, memory: OwnMemory, form: Annotated[AuditForm, Query()]) -> Response:
    """List who looked at the catalog and who changed it, newest first."""
    found = memory.audit(replace(form.where, agent="") if form.owner else form.where)
    pager = Pager(form.page, len(found), _PAGE)
    entries = found[pager.offset : pager.offset + _PAGE]
    return render(
        request, "audit.html", form=form, pager=pager, entries=entries, outcomes=[*AccessOutcome],
        most_items=_MOST_ITEMS,
    )  # fmt: skip

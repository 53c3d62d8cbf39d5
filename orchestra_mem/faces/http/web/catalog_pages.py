"""Pages of what agents have learnt and who looked at it: facts, the catalog with forms to store and forget, audit."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import Response

from orchestra_mem.catalog_types import AccessOutcome, AuditFilter, ItemFilter, ItemStatus, ItemType
from orchestra_mem.core.catalog.item_drafts import ItemDraft
from orchestra_mem.faces.http import catalog_routes
from orchestra_mem.faces.http.callers import Asker, OwnMemory
from orchestra_mem.faces.http.json_answers import Time
from orchestra_mem.faces.http.web.forms import BLANK, Offset, Sent, Word, read, see_other
from orchestra_mem.faces.http.web.pages import render
from orchestra_mem.types import MustKeepKind

router = APIRouter(include_in_schema=False)

_PAGE = 50
_MOST_ITEMS = 5  # of an entry of the audit trail
_SHOWN = [status for status in ItemStatus if status is not ItemStatus.PURGED]
_KEPT = {"always": True, "expiring": False}
_DAY_END = "T23:59:59Z"


@router.get("/facts")
def list_facts(
    request: Request, caller: Asker, kind: Annotated[MustKeepKind | None, BLANK] = None, every: bool = False,
    offset: Offset = 0,
) -> Response:  # fmt: skip
    """List what summaries must keep, newest first; `every` also what holds no longer."""
    found = caller.view.facts(kind, standing=not every)[::-1]
    return _list(request, "facts.html", len(found), facts=found[offset : offset + _PAGE], kinds=[*MustKeepKind])


@router.get("/catalog")
def list_items(
    request: Request, caller: Asker, ci: Word = "", type: Annotated[ItemType | None, BLANK] = None, tag: Word = "",
    text: Word = "", kept: Word = "", hidden: bool = False, offset: Offset = 0,
) -> Response:  # fmt: skip
    """List the items that the caller may see, newest first; those that expire in the order that they go."""
    where = ItemFilter(
        agents=[ci] if ci else None, types=[type] if type else (), tags=[tag] if tag else (), text=text,
        stays=_KEPT.get(kept), statuses=_SHOWN if hidden else (ItemStatus.LIVE,), limit=_PAGE, offset=offset,
    )  # fmt: skip
    catalog = caller.memory.catalog
    items, total = catalog.items(where, agent=caller.agent), catalog.count(where, agent=caller.agent)
    agents = sorted(catalog.get_stats(agent=caller.agent))
    return _list(request, "catalog.html", total, items=items, agents=agents, types=[*ItemType])


@router.get("/catalog/{memory_id}")
def show_item(request: Request, caller: Asker, memory_id: str) -> Response:
    """Show an item with all that is known of it."""
    return render(request, "catalog_item.html", item=caller.memory.catalog.get(memory_id, agent=caller.agent))


@router.post("/catalog")
def store_item(caller: Asker, sent: Sent) -> Response:
    """Store an item, or strengthen the one that says the same; what is left empty is found out."""
    given: dict[str, object] = {**sent}
    given["tags"] = [tag.strip() for tag in sent.get("tags", "").split(",") if tag.strip()] or ""
    if (priority := sent.get("priority", "")).isdecimal():
        given["priority"] = int(priority)
    if expires := given.get("expires"):
        given["expires"] = f"{expires}{_DAY_END}"
    if given.pop("stays", ""):
        given["expires"] = None
    stored = catalog_routes.store_item(caller, read(ItemDraft, given))
    return see_other(f"/catalog/{stored.headers['location'].rpartition('/')[2]}")


@router.post("/catalog/{memory_id}")
def change_item(caller: Asker, memory_id: str, sent: Sent) -> Response:
    """Hide an item from everybody, or with `do=restore` show it again."""
    catalog = caller.memory.catalog
    (catalog.restore if sent.get("do") == "restore" else catalog.delete)(memory_id, agent=caller.agent)
    caller.memory.write_catalog()
    return see_other(f"/catalog/{quote(memory_id)}")


@router.get("/audit")
def list_audit(
    request: Request, memory: OwnMemory, agent: Word = "", owner: bool = False, call: Word = "",
    outcome: Annotated[AccessOutcome | None, BLANK] = None, item: Word = "",
    since: Annotated[Time | None, BLANK] = None, offset: Offset = 0,
) -> Response:  # fmt: skip
    """List who looked at the catalog and who changed it, newest first; `owner` lists what was no agent's."""
    where = AuditFilter(
        agent="" if owner else agent or None, call=call or None, outcome=outcome, item=item or None, since=since,
        limit=offset + _PAGE + 1,
    )  # fmt: skip
    found = memory.audit(where)
    return _list(
        request, "audit.html", len(found), entries=found[offset : offset + _PAGE], outcomes=[*AccessOutcome],
        most_items=_MOST_ITEMS,
    )  # fmt: skip


def _list(request: Request, template: str, total: int, **what: Any) -> Response:
    """Show a piece of a list, with the filters that it was asked by."""
    return render(request, template, query=dict(request.query_params), total=total, limit=_PAGE, **what)

"""Routes of the catalog: what agents have learnt, item by item."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from orchestra_mem.catalog_types import (
    GLOBAL,
    CatalogStatistics,
    Injection,
    ItemFilter,
    ItemStatus,
    ItemType,
    MemoryItem,
)
from orchestra_mem.core.catalog.item_drafts import ItemDraft
from orchestra_mem.errors import InvalidItemError, NotFoundError
from orchestra_mem.faces.http.answer_schemas import Shape
from orchestra_mem.faces.http.callers import Asker, OwnMemory
from orchestra_mem.faces.http.json_answers import Budget, Given, JsonAnswer, Name, Paged, Question, shown, shown_page
from orchestra_mem.types import Author

router = APIRouter(prefix="/api/memory", tags=["catalog"])

_CLEANUP = Shape("Cleanup", expired=int, displaced=int, audit_entries=int, statistics=dict[str, CatalogStatistics])


class CatalogQuery(Paged):
    """Which items are wanted."""

    ci: Annotated[Name | None, Query(description=f"Only of this agent; {GLOBAL}: of all.")] = None
    type: ItemType | None = None
    tags: Annotated[str, Query(max_length=4_000, description="Only with one of these, separated by commas.")] = ""
    search: Annotated[str, Query(max_length=4_000, description="Only with all these words.")] = ""

    @property
    def where(self) -> ItemFilter:
        """The items that pass, as the catalog is asked for them."""
        return ItemFilter(
            agents=[self.ci] if self.ci else None, types=[self.type] if self.type else (), text=self.search,
            tags=[tag.strip() for tag in self.tags.split(",") if tag.strip()], limit=self.limit, offset=self.offset,
        )  # fmt: skip


class RelevantQuery(Given):
    """What an agent is to be told."""

    message: Annotated[Question, Query(description="What the agent is to be told.")]
    ci: Annotated[Name | None, Query(description="Which agent; with an agent's token itself.")] = None
    max_tokens: Annotated[Budget, Query(description="The budget.")] = 2_000


@router.get("/catalog", responses=shown_page(MemoryItem))
def list_items(caller: Asker, query: Annotated[CatalogQuery, Query()]) -> JsonAnswer:
    """List the items that the caller may see, newest first."""
    catalog = caller.memory.catalog
    return query.answer(catalog.items(query.where, agent=caller.agent), catalog.count(query.where, agent=caller.agent))


@router.get("/catalog/{memory_id}", responses=shown(MemoryItem))
def show_item(caller: Asker, memory_id: str) -> JsonAnswer:
    """Show an item by its id, or by its number as M12."""
    item = caller.memory.catalog.get(memory_id, agent=caller.agent)
    if item.status is ItemStatus.DELETED:
        raise NotFoundError(f"item {memory_id!r} has been deleted; `orchestra-mem catalog show` still shows it")
    return JsonAnswer(item)


@router.post("/catalog", status_code=201, responses=shown(MemoryItem, 201, "The item as it was stored."))
def store_item(caller: Asker, item: ItemDraft) -> JsonAnswer:
    """Store an item, or strengthen the one that says the same; what is left out is found out."""
    author = Author.PERSON if caller.is_owner else Author.MACHINE
    stored = caller.memory.catalog.store(item.model_dump(exclude_unset=True), agent=caller.agent, author=author)
    caller.memory.write_catalog()
    return JsonAnswer(stored, 201, {"Location": f"/api/memory/catalog/{stored.id}"})


@router.delete("/catalog/{memory_id}", status_code=204, response_class=Response)
def delete_item(caller: Asker, memory_id: str) -> Response:
    """Hide an item from everybody; `orchestra-mem catalog purge` removes it for good."""
    caller.memory.catalog.delete(memory_id, agent=caller.agent)
    caller.memory.write_catalog()
    return Response(status_code=204)


@router.get("/relevant", responses=shown(Injection))
def relevant(caller: Asker, query: Annotated[RelevantQuery, Query()]) -> JsonAnswer:
    """Select what an agent should know with a message, each item with its relevance; `text` is to be put before it."""
    agent = caller.acting(query.ci)
    if not agent or not agent.strip():
        raise InvalidItemError(["query.ci: name the agent, as in ci=reviewer"])
    return JsonAnswer(caller.memory.relevant(query.message, agent=agent, max_tokens=query.max_tokens))


@router.post("/cleanup", responses=shown(_CLEANUP))
def clean_up(memory: OwnMemory) -> JsonAnswer:
    """Hide what has expired or is beyond the limit, and give the figures of what is left."""
    done = memory.catalog.clean_up()
    memory.write_catalog()
    figures = {"expired": done.expired, "displaced": done.displaced, "audit_entries": done.audit_entries}
    return JsonAnswer({**figures, "statistics": memory.catalog.get_stats()})

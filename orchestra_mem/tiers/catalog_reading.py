"""Reading the catalog: what an agent may see of it, and what matters for a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

from orchestra_mem.catalog_types import (
    CatalogStatistics,
    CatalogStore,
    Injection,
    ItemFilter,
    ItemStatus,
    MemoryItem,
)
from orchestra_mem.core.catalog.access import OWNER, Access
from orchestra_mem.core.catalog.item_json import catalog_json
from orchestra_mem.core.catalog.tags import tag_key
from orchestra_mem.errors import NotFoundError
from orchestra_mem.ports import Clock
from orchestra_mem.tiers.audit import AuditTrail
from orchestra_mem.types import Json

Select: TypeAlias = "Callable[[str, str, int | None], Injection]"


class CatalogReader:
    """Gives items to who may see them, and keeps account of it; see `MemoryCatalog`."""

    def __init__(self, store: CatalogStore, audit: AuditTrail, access: Access, *, clock: Clock, select: Select) -> None:
        self._store = store
        self.audit = audit
        self.access = access
        self._clock = clock
        self._select = select

    def get(self, item_id: str, *, agent: str = OWNER) -> MemoryItem:
        """Give an item by its id, or by its number as `M12`, whatever its status.

        Raises:
            NotFoundError: there is none that this agent may see.
        """
        try:
            item = self._seen(item_id, agent)
        except NotFoundError:
            self.audit.read(agent, "get", detail=item_id[:80])
            raise
        self.audit.read(agent, "get", (item.id,), tokens=item.tokens)
        return item

    def _seen(self, item_id: str, agent: str) -> MemoryItem:
        with suppress(NotFoundError):
            item = self._store.item(item_id)
            if item.status is not ItemStatus.PURGED and self.access.may_read(agent, item.ci_source):
                return item
        # What an agent may not see is not told from what is not there.
        where = f"that agent {agent!r} may see" if agent else "; `orchestra-mem catalog list` shows them"
        raise NotFoundError(f"there is no item {item_id!r} in the catalog{' ' * bool(agent)}{where}")

    def items(self, where: ItemFilter, *, agent: str = OWNER) -> list[MemoryItem]:
        """List the items that pass a filter and that this agent may see, in its order.

        Raises:
            AccessDeniedError: the filter names an agent whose items this one may not see.
        """
        found = self._store.items(self._allowed(where, agent))
        self.audit.read(agent, "list", tuple(item.id for item in found), tokens=sum(item.tokens for item in found))
        return found

    def count(self, where: ItemFilter, *, agent: str = OWNER) -> int:
        """Count what `items` would list without a limit."""
        return self._store.count(self._allowed(where, agent))

    def _allowed(self, where: ItemFilter, agent: str) -> ItemFilter:
        allowed = self.access.readable(agent)
        if where.tags:
            where = replace(where, tags=[tag_key(tag) for tag in where.tags])
        with self.audit.checking(agent, "list"):
            self.access.check_read(agent, where.agents or ())
        return where if allowed is None or where.agents is not None else replace(where, agents=sorted(allowed))

    def get_stats(self, whose: str | None = None, *, agent: str = OWNER) -> dict[str, CatalogStatistics]:
        """Give figures of each agent that this one may see, and of `whose` alone where it is given."""
        shown = [each for each in self._store.agents() if self.access.may_read(agent, each) and whose in (None, each)]
        return {each: self._store.statistics(each) for each in shown}

    def search(self, query: str, filters: ItemFilter | None = None, *, agent: str = OWNER) -> list[MemoryItem]:
        """List the items in which all words of a query stand; `OrchestratorContextManager.search` finds by meaning."""
        return self.items(replace(filters or ItemFilter(), text=query), agent=agent)

    def get_relevant(self, ci: str, context: Mapping[str, object] | str, max_tokens: int | None = None) -> Injection:
        """Select what matters for a message; `context` is that, or a mapping that has it as `message`."""
        message = context if isinstance(context, str) else str(context.get("message", ""))
        return self._select(ci, message, max_tokens)

    def export(self, whose: str, *, agent: str = OWNER) -> dict[str, Json]:
        """Give the live items of an agent as a catalog document of the source design, oldest first."""
        items = self.items(ItemFilter(agents=[whose]), agent=agent)[::-1]
        return catalog_json(whose, items, self._clock(), self._store.last_cleanup())

    def _check_write(self, agent: str, call: str, *whose: str) -> None:
        with self.audit.checking(agent, call):
            self.access.check_write(agent, whose)

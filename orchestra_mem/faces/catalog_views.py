"""How items of the catalog, what agents are given of it, and the audit trail look on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from orchestra_mem.catalog_types import (
    AuditEntry,
    CatalogStatistics,
    InjectedItem,
    ItemStatus,
    MemoryItem,
)
from orchestra_mem.core.text import visible
from orchestra_mem.faces.views import short_time, table_of


def memory_items_view(items: Sequence[MemoryItem]) -> Iterator[RenderableType]:
    """Show the answer of `catalog list`."""
    has_hidden = any(item.status is not ItemStatus.LIVE for item in items)

    def row(item: MemoryItem) -> Sequence[str | Text]:
        status = [item.status.value] if has_hidden else []
        until = short_time(item.expires)[:-3] if item.expires else "for good"
        return [f"M{item.number}", item.type, item.ci_source, str(item.priority), until, *status, item.summary]

    columns = f"|type|of|prio>|kept until (UTC)|{'status|' if has_hidden else ''}says"
    return table_of(items, row, columns, empty="no items", hint="orchestra-mem catalog show M… gives the whole")


def catalog_stats_view(found: Mapping[str, CatalogStatistics]) -> Iterator[RenderableType]:
    """Show the answer of `catalog stats`."""

    def row(agent: str) -> Sequence[str | Text]:
        times = (found[agent].oldest_memory, found[agent].last_cleanup)
        told = (short_time(time)[:-3] if time else "" for time in times)
        return [agent, f"{found[agent].total_memories:,}", f"{found[agent].total_tokens:,}", *told]

    columns = "agent|items>|tokens>|oldest (UTC)|cleaned up (UTC)"
    return table_of(list(found), row, columns, empty="no items", wide=False)


def audit_view(found: Sequence[AuditEntry]) -> Iterator[RenderableType]:
    """Show the answer of `audit`."""

    def row(entry: AuditEntry) -> Sequence[str | Text]:
        tokens = f"{entry.tokens:,} tokens" if entry.tokens else ""
        what = visible("; ".join(filter(None, (", ".join(entry.items), tokens, entry.detail))))
        told = Text(" ".join(what.split()), overflow="fold", no_wrap=False)
        return [short_time(entry.time), entry.agent or "(owner)", entry.call, entry.outcome, told]

    return table_of(found, row, "time (UTC)|agent|call|outcome|what", empty="no entries")


def injections_view(found: Sequence[InjectedItem]) -> Iterator[RenderableType]:
    """Show the answer of `audit injections`."""

    def row(each: InjectedItem) -> Sequence[str]:
        times = f"{each.times:,} of {each.messages:,}"
        figures = (times, f"{each.tokens:,}", f"{each.token_share:.0%}", f"{each.unused:,}")
        return [visible(each.agent), each.item, *figures, ", ".join(each.warnings)]

    return table_of(
        found, row, "agent|item|messages>|tokens>|share>|unused>|warns", empty="nothing was given to agents",
        wide=False, hint="orchestra-mem catalog show … gives the item",
    )  # fmt: skip

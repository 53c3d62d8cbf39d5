"""What `work` and `work show` show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from orchestra_mem.core.documents.entries import visible
from orchestra_mem.faces.rendering import clipped, counted, plain_table
from orchestra_mem.faces.times import short_time

if TYPE_CHECKING:
    from rich.console import RenderableType

    from orchestra_mem.work_types import WorkEvent, WorkItem, WorkProgress


def work_view(items: Sequence[WorkItem], *, limited: bool = False) -> Iterator[RenderableType]:
    """The answer of `work`."""
    if not items:
        yield Text("no work items")
        return
    table = plain_table("id", "kind", "status", "priority", "title", right=["id", "priority"])
    for item in items:
        table.add_row(f"#{item.id}", item.kind, item.status, str(item.priority), clipped(item.title))
    yield table
    if limited:
        yield Text(f"the first {counted(len(items), 'item')}; --limit 0 lists all", style="dim")


def item_view(
    item: WorkItem,
    parent: WorkItem | None,
    progress: WorkProgress,
    blockers: Sequence[WorkItem],
    events: Sequence[WorkEvent],
) -> Iterator[RenderableType]:
    """The answer of `work show`."""
    yield Text(visible(item.name), style="bold")
    yield Text(f"{item.status}, priority {item.priority}{f', {visible(item.assignee)}' if item.assignee else ''}")
    if parent:
        yield Text(f"part of {visible(parent.name)}")
    if progress.total:
        yield Text(f"{progress.done:,} of {progress.total:,} done ({progress.share:.0%})")
    if item.depends_on:
        yield Text(f"depends on {', '.join(f'#{each}' for each in item.depends_on)}")
    for blocker in blockers:
        yield Text(f"waits for {visible(blocker.name)} ({blocker.status})", style="yellow")
    if item.description:
        yield Text(f"\n{visible(item.description)}")
    if item.acceptance:
        yield Text("\n" + "\n".join(f"- {visible(each)}" for each in item.acceptance))
    yield Text("")
    table = plain_table("when", "who", "what")
    for event in events:
        table.add_row(short_time(event.time), event.author, _what(event))
    yield table


def _what(event: WorkEvent) -> Text:
    if event.before is None:
        said = f"{event.field}: {event.after}"
    else:
        said = f"{event.field}: {event.before} -> {event.after or 'none'}"
    return clipped(f"{said} ({event.reason})" if event.reason else said)

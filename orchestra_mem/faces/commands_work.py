"""Commands for the state of work: work, work show, work add, work set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, BadParameter, Option

from orchestra_mem.faces.command import CommandResult, command, views, with_common_options
from orchestra_mem.faces.command import work as group
from orchestra_mem.faces.shell import Shell
from orchestra_mem.work_types import WorkFilter, WorkKind, WorkStatus

if TYPE_CHECKING:
    from orchestra_mem.memory.manager import OrchestratorContextManager

_STATUSES = ", ".join(status.replace(" ", "-") for status in WorkStatus)


def _status(given: str) -> WorkStatus:
    """Read a status, its words parted by spaces, hyphens or underscores."""
    try:
        return WorkStatus(" ".join(given.lower().replace("-", " ").replace("_", " ").split()))
    except ValueError:
        raise BadParameter(f"{given!r} is no status; there are {_STATUSES}") from None


ItemArgument = Annotated[int, Argument(metavar="ID", help="The number, without #.")]


def work(
    run: Shell,
    context: typer.Context,
    kinds: Annotated[
        list[WorkKind] | None,
        Option("--kind", metavar="KIND", help=f"Only: {', '.join(WorkKind)}. May be repeated."),
    ] = None,
    statuses: Annotated[
        list[WorkStatus] | None,
        Option("--status", metavar="STATUS", parser=_status, help=f"Only: {_STATUSES}. May be repeated."),
    ] = None,
    parent: Annotated[
        int | None, Option("--parent", min=0, metavar="ID", help="Only right below this item; 0 for none.")
    ] = None,
    text: Annotated[str, Option("--text", help="Only with all these words in title or description.")] = "",
    blocked_by: Annotated[
        int | None, Option("--blocked-by", min=1, metavar="ID", help="Only what depends on this item.")
    ] = None,
    assignee: Annotated[str | None, Option("--assignee", help="Only of this one.")] = None,
    limit: Annotated[int, Option("--limit", min=0, metavar="N", help="The first N; 0 for all.")] = 20,
) -> CommandResult | None:
    """List milestones, epics, stories and tasks in the order of the backlog; see and change them one by one.

    Example: orchestra-mem work --status in-progress --status blocked
    """
    if context.invoked_subcommand is not None:
        if run.given is not None:
            context.default_map = {context.invoked_subcommand: {"project": str(run.given)}}
        return None
    where = WorkFilter(
        kinds=tuple(kinds or ()), statuses=tuple(statuses or ()), parent=parent, text=text, blocked_by=blocked_by,
        assignee=assignee, limit=limit or None,
    )  # fmt: skip
    with run.open() as memory:
        found = memory.state.items(where)
    return CommandResult(found, lambda: views.work_view(found, limited=bool(limit) and len(found) == limit))


group.callback(invoke_without_command=True)(with_common_options(work))


@command(of=group)
def show(
    memory: OrchestratorContextManager,
    item_id: ItemArgument,
    limit: Annotated[int, Option("--limit", min=0, metavar="N", help="The newest N changes; 0 for all.")] = 20,
) -> CommandResult:
    """Show one item: all that it says, how much below it is done, what it waits for, and how it came to be so.

    Example: orchestra-mem work show 12
    """
    item, progress = memory.state.item(item_id), memory.state.progress(item_id)
    blockers = memory.state.blockers(item_id)
    events = memory.state.events(item_id, limit=limit or None)
    parent = None if item.parent is None else memory.state.item(item.parent)
    record = {"item": item, "progress": progress, "blockers": blockers, "events": events}
    return CommandResult(record, lambda: views.item_view(item, parent, progress, blockers, events))


@command(of=group, creates=True)
def add(
    run: Shell,
    memory: OrchestratorContextManager,
    kind: Annotated[WorkKind, Argument(metavar="KIND", help=f"One of: {', '.join(WorkKind)}.")],
    title: Annotated[str, Argument(metavar="TITLE", help="What it is, in a line.")],
    description: Annotated[str, Option("--description", help="What there is to say of it.")] = "",
    parent: Annotated[int | None, Option("--parent", min=1, metavar="ID", help="What it is a part of.")] = None,
    priority: Annotated[int, Option("--priority", min=1, max=5, metavar="N", help="1 is first, 5 last.")] = 3,
    depends_on: Annotated[
        list[int] | None,
        Option("--depends-on", min=1, metavar="ID", help="What must be done before. May be repeated."),
    ] = None,
    assignee: Annotated[str | None, Option("--assignee", help="Who does it.")] = None,
    acceptance: Annotated[
        list[str] | None, Option("--acceptance", metavar="TEXT", help="When it is good. May be repeated.")
    ] = None,
) -> CommandResult:
    """Create a milestone, epic, story, task or subtask; a memory is made where there is none.

    Example: orchestra-mem work add story "Sign in by mail" --parent 5
    """
    from orchestra_mem.types import Author

    item = memory.state.create(
        kind, title, description=description, parent=parent, priority=priority, depends_on=depends_on or (),
        assignee=assignee, acceptance=acceptance or (), author=Author.PERSON,
    )  # fmt: skip
    run.bring_documents_up(memory)
    return CommandResult(item, f"{item.name}\n")


@command(of=group, name="set")
def set_status(
    run: Shell,
    memory: OrchestratorContextManager,
    item_id: ItemArgument,
    status: Annotated[WorkStatus, Argument(metavar="STATUS", parser=_status, help=f"One of: {_STATUSES}.")],
    reason: Annotated[str, Option("--reason", help="Why, as for what it is blocked.")] = "",
) -> CommandResult:
    """Move an item to another status; what may follow which is told where it may not.

    Example: orchestra-mem work set 12 blocked --reason "waits for the vendor"
    """
    from orchestra_mem.types import Author

    item = memory.state.set_status(item_id, status, reason=reason, author=Author.PERSON)
    run.bring_documents_up(memory)
    return CommandResult(item, f"{item.name} is {item.status}\n")

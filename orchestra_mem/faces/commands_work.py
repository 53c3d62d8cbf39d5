"""Commands for the state of work: work, work show, work add, work set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestra_mem.faces.shell import DebugOption, JsonOption, ProjectOption, shell
from orchestra_mem.work_types import WorkFilter, WorkKind, WorkStatus

if TYPE_CHECKING:
    from orchestra_mem.types import Json

_STATUSES = ", ".join(status.replace(" ", "-") for status in WorkStatus)


def _status(given: str) -> WorkStatus:
    """Read a status, its words parted by spaces, hyphens or underscores."""
    try:
        return WorkStatus(" ".join(given.lower().replace("-", " ").replace("_", " ").split()))
    except ValueError:
        raise typer.BadParameter(f"{given!r} is no status; there are {_STATUSES}") from None


ItemArgument = Annotated[int, typer.Argument(metavar="ID", help="The number, without #.")]


def work(
    context: typer.Context,
    kinds: Annotated[
        list[WorkKind] | None,
        typer.Option("--kind", metavar="KIND", help=f"Only: {', '.join(WorkKind)}. May be repeated."),
    ] = None,
    statuses: Annotated[
        list[WorkStatus] | None,
        typer.Option("--status", metavar="STATUS", parser=_status, help=f"Only: {_STATUSES}. May be repeated."),
    ] = None,
    parent: Annotated[
        int | None, typer.Option("--parent", min=0, metavar="ID", help="Only right below this item; 0 for none.")
    ] = None,
    text: Annotated[str, typer.Option("--text", help="Only with all these words in title or description.")] = "",
    blocked_by: Annotated[
        int | None, typer.Option("--blocked-by", min=1, metavar="ID", help="Only what depends on this item.")
    ] = None,
    assignee: Annotated[str | None, typer.Option("--assignee", help="Only of this one.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="N", help="The first N; 0 for all.")] = 20,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List milestones, epics, stories and tasks in the order of the backlog; see and change them one by one.

    Example: orchestra-mem work --status in-progress --status blocked
    """
    if context.invoked_subcommand is not None:
        if project is not None:
            context.default_map = {context.invoked_subcommand: {"project": str(project)}}
        return None
    with shell(project, as_json, debug) as run:
        from orchestra_mem.serialize import to_object

        where = WorkFilter(
            kinds=tuple(kinds or ()), statuses=tuple(statuses or ()), parent=parent, text=text, blocked_by=blocked_by,
            assignee=assignee, limit=limit or None,
        )  # fmt: skip
        with run.open() as memory:
            found = memory.state.items(where)
        if as_json:
            return run.answer([to_object(item) for item in found])
        from orchestra_mem.faces.work_rendering import work_view

        run.show(*work_view(found, limited=bool(limit) and len(found) == limit))
    return None


def show(
    item_id: ItemArgument,
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="N", help="The newest N changes; 0 for all.")] = 20,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show one item: all that it says, how much below it is done, what it waits for, and how it came to be so.

    Example: orchestra-mem work show 12
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.serialize import to_object

        with run.open() as memory:
            item, progress = memory.state.item(item_id), memory.state.progress(item_id)
            blockers = memory.state.blockers(item_id)
            events = memory.state.events(item_id, limit=limit or None)
            parent = None if item.parent is None else memory.state.item(item.parent)
        if as_json:
            record: dict[str, Json] = {
                "item": to_object(item),
                "progress": {"done": progress.done, "total": progress.total, "share": round(progress.share, 4)},
                "blockers": [to_object(each) for each in blockers],
                "events": [to_object(event) for event in events],
            }
            return run.answer(record)
        from orchestra_mem.faces.work_rendering import item_view

        run.show(*item_view(item, parent, progress, blockers, events))
    return None


def add(
    kind: Annotated[WorkKind, typer.Argument(metavar="KIND", help=f"One of: {', '.join(WorkKind)}.")],
    title: Annotated[str, typer.Argument(metavar="TITLE", help="What it is, in a line.")],
    description: Annotated[str, typer.Option("--description", help="What there is to say of it.")] = "",
    parent: Annotated[int | None, typer.Option("--parent", min=1, metavar="ID", help="What it is a part of.")] = None,
    priority: Annotated[int, typer.Option("--priority", min=1, max=5, metavar="N", help="1 is first, 5 last.")] = 3,
    depends_on: Annotated[
        list[int] | None,
        typer.Option("--depends-on", min=1, metavar="ID", help="What must be done before. May be repeated."),
    ] = None,
    assignee: Annotated[str | None, typer.Option("--assignee", help="Who does it.")] = None,
    acceptance: Annotated[
        list[str] | None, typer.Option("--acceptance", metavar="TEXT", help="When it is good. May be repeated.")
    ] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Create a milestone, epic, story, task or subtask; a memory is made where there is none.

    Example: orchestra-mem work add story "Sign in by mail" --parent 5
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.serialize import to_object
        from orchestra_mem.types import Author

        with run.open(create=True) as memory:
            item = memory.state.create(
                kind, title, description=description, parent=parent, priority=priority, depends_on=depends_on or (),
                assignee=assignee, acceptance=acceptance or (), author=Author.PERSON,
            )  # fmt: skip
            run.bring_documents_up(memory)
        if as_json:
            return run.answer(to_object(item))
        run.text(f"{item.name}\n")
    return None


def set_status(
    item_id: ItemArgument,
    status: Annotated[WorkStatus, typer.Argument(metavar="STATUS", parser=_status, help=f"One of: {_STATUSES}.")],
    reason: Annotated[str, typer.Option("--reason", help="Why, as for what it is blocked.")] = "",
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Move an item to another status; what may follow which is told where it may not.

    Example: orchestra-mem work set 12 blocked --reason "waits for the vendor"
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.serialize import to_object
        from orchestra_mem.types import Author

        with run.open() as memory:
            item = memory.state.set_status(item_id, status, reason=reason, author=Author.PERSON)
            run.bring_documents_up(memory)
        if as_json:
            return run.answer(to_object(item))
        run.text(f"{item.name} is {item.status}\n")
    return None


def add_to(app: typer.Typer, group: typer.Typer, panel: str) -> None:
    """Add these commands: the list is the group itself."""
    group.callback(invoke_without_command=True)(work)
    group.command("show")(show)
    group.command("add")(add)
    group.command("set")(set_status)
    app.add_typer(group, name="work", rich_help_panel=panel)

"""Commands for all projects of a user: projects list, add, remove, info, recurring."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestra_mem.faces.command import FAILED, CommandResult, Invocation, command, command_group, views

if TYPE_CHECKING:
    from orchestra_mem.home import ListedProject, Projects

projects = command_group("projects", "Look after", help="All projects of yours, and what recurs in them.")
WhichArgument = Annotated[
    str | None, typer.Argument(metavar="PROJECT", help="Its name, id or folder. Default: the project of this folder.")
]


def _projects() -> Projects:
    from orchestra_mem.home import Projects

    return Projects()


@command(of=projects, name="list")
def list_projects() -> CommandResult:
    """List all projects that were opened, by name; a project lists itself when it is opened.

    Example: orchestra-mem projects list
    """
    found = _projects().list()

    def row(each: ListedProject) -> Sequence[str]:
        return each.name, each.id[:12], each.last_opened, "yes" if each.shared else "no", str(each.path)

    return CommandResult(
        found, lambda: views.table_of(found, row, "|id|opened|searched|folder", empty="no project has been opened yet"),
        notes=[f"orchestra-mem: {each.path}: {each.note}" for each in found if each.note],
    )  # fmt: skip


@command(of=projects)
def add(
    run: Invocation,
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="Of a project with a memory. Default: this one.")
    ] = None,
) -> CommandResult:
    """List a project that has a memory; one in a temporary folder too, which does not list itself.

    Example: orchestra-mem projects add ../shop
    """
    done = _projects().add(folder or run.project)
    return CommandResult(done, f"listed: {done.name} {done.id} {done.path}\n")


@command(of=projects)
def remove(run: Invocation, which: WhichArgument = None) -> CommandResult:
    """Take a project off the list until it is opened again; its memory stays as it is.

    Example: orchestra-mem projects remove shop
    """
    done = _projects().remove(which or run.project)
    return CommandResult(done, f"no longer listed: {done.name} {done.id} {done.path}\n")


@command(of=projects)
def info(run: Invocation, which: WhichArgument = None) -> CommandResult:
    """Show what is listed of a project: its id, name, tags, folder, and the days it was first and last opened.

    Example: orchestra-mem projects info shop
    """
    found = _projects().info(which or run.project)
    told = [
        f"{found.name} (ID: {found.id})", str(found.path), f"tags: {', '.join(found.tags) or 'none'}",
        f"opened: {found.first_opened} to {found.last_opened}",
        f"searched from others: {'yes' if found.shared else 'no'}", found.note,
    ]  # fmt: skip
    return CommandResult(found, "".join(f"{line}\n" for line in told if line))


@command(of=projects)
def recurring(
    least: Annotated[int, typer.Option("--least", min=2, metavar="N", help="In so many projects at least.")] = 3,
) -> CommandResult:
    """Find decisions, rules and insights that hold in several projects, and may be worth sharing.

    Exits with 1 if there are none.

    Example: orchestra-mem projects recurring --least 4
    """
    found = _projects().recurring(least=least)
    told = [[f"{each.project} K{each.id}: {' '.join(each.text.split())}" for each in group] for group in found.groups]
    text = "\n".join("".join(f"{line}\n" for line in lines) for lines in told) or "nothing recurs\n"
    notes = [f"orchestra-mem: {note}" for note in found.notes]
    return CommandResult(found, text, exit_code=0 if found.groups else FAILED, notes=notes)

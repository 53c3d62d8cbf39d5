"""The command line: the library and no more. What the commands do stands in the modules `commands_…` and `demo`.

Exit codes: 0 all well, 1 failed or a check found faults, 2 wrong usage, 3 configuration, 4 storage, 130 Ctrl-C.
"""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import Annotated, Any

import typer

from orchestra_mem.faces.command import app as app
from orchestra_mem.faces.command import config, importing, work
from orchestra_mem.faces.shell import INTERRUPTED, ProjectOption


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("orchestra-mem")
        except PackageNotFoundError:
            found = "(not installed, run from its sources)"
        typer.echo(f"orchestra-mem {found}")
        raise typer.Exit


def _given_to_all(command: object, project: str) -> dict[str, Any]:
    """Make defaults out of what was given before the command: the project's folder, for each command below."""
    below = getattr(command, "commands", None)
    if below is None:
        return {"project": project}
    return {"project": project} | {name: _given_to_all(each, project) for name, each in below.items()}


@app.callback()
def _about(
    context: typer.Context,
    project: ProjectOption = None,
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Look into, feed and mend the memory of a project: what its orchestrator did, decided and learned.

    Example: orchestra-mem init && orchestra-mem import git . && orchestra-mem context
    """
    if project is not None:
        context.default_map = _given_to_all(context.command, str(project))


# In the order of the help: a command adds itself to the program where it is defined.
for _name in ("demo", "commands_shell", *(f"commands_{_what}" for _what in "record ask work documents check".split())):
    import_module(f"orchestra_mem.faces.{_name}")
app.add_typer(importing, name="import", help="Record what happened elsewhere.", rich_help_panel="Begin")
app.add_typer(work, name="work", rich_help_panel="Work")
app.add_typer(config, name="config", help="Show and check the settings.", rich_help_panel="Look after")


def main() -> None:
    """Run the command line and end the process with its exit code."""
    _show_what_can_be_shown()
    try:
        app()
    except KeyboardInterrupt:
        # Before a command's own handling began, or in the middle of it.
        sys.exit(INTERRUPTED)


def _show_what_can_be_shown() -> None:
    """Have characters replaced that the encoding of a terminal or pipe lacks; by default they are an error."""
    for stream in (sys.stdout, sys.stderr):
        # Other handlers are meant: in the locale C, bytes that are no text go out as they came in.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")

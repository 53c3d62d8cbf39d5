"""The command line: the library and no more. What the commands do lives in the modules beside this one.

Exit codes: 0 all well, 1 failed or a check found faults, 2 wrong usage, 3 configuration, 4 storage, 130 Ctrl-C.
"""

from __future__ import annotations

import io
import sys
from typing import Annotated, Any

import typer

from orchestra_mem.faces import (
    commands_ask,
    commands_blame,
    commands_check,
    commands_conflicts,
    commands_documents,
    commands_edit,
    commands_record,
    commands_retrieve,
    commands_search,
    commands_shell,
    commands_summaries,
    commands_watch,
    commands_work,
    demo,
)
from orchestra_mem.faces.shell import INTERRUPTED, ProjectOption

EPILOG = "Exit codes: 0 all well, 1 failed or faults found, 2 wrong usage, 3 configuration, 4 storage, 130 Ctrl-C."

app = typer.Typer(
    name="orchestra-mem", no_args_is_help=True, pretty_exceptions_enable=False, epilog=EPILOG,
    context_settings={"help_option_names": ["--help", "-h"]},
)  # fmt: skip
_importing = typer.Typer(no_args_is_help=True, epilog=EPILOG)
_config = typer.Typer(no_args_is_help=True, epilog=EPILOG)
_work = typer.Typer(epilog=EPILOG)


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


demo.add_to(app, "Begin")
commands_shell.add_to(app, "Begin")
commands_record.add_to(app, _importing, "Record")
app.add_typer(_importing, name="import", help="Record what happened elsewhere.", rich_help_panel="Begin")
commands_ask.add_to(app, "Ask")
commands_search.add_to(app, "Ask")
commands_summaries.add_to(app, "Ask")
commands_retrieve.add_to(app, "Ask")
commands_work.add_to(app, _work, "Work")
commands_edit.add_to(app, "Documents")
commands_conflicts.add_to(app, "Documents")
commands_watch.add_to(app, "Documents")
commands_documents.add_to(app, "Documents")
commands_blame.add_to(app, "Documents")
app.add_typer(_config, name="config", help="Show and check the settings.", rich_help_panel="Look after")
commands_check.add_to(app, _config, "Look after")


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

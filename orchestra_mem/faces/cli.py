"""The command line: the library and no more. What the commands do stands in the modules `commands_…` and `demo`.

Exit codes: 0 success, 1 failure or faults found, 2 wrong usage, 3 configuration, 4 storage, 130 Ctrl-C.
"""

from __future__ import annotations

import gc
import io
import sys
from importlib import import_module
from typing import Annotated, Any

import typer

from orchestra_mem.faces.command import INTERRUPTED, STORAGE, ProjectOption, give_up_output
from orchestra_mem.faces.command import app as app


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("orchestra-mem")
        except PackageNotFoundError:
            found = "(not installed, run from its sources)"
        typer.echo(f"orchestra-mem {found}")
        raise typer.Exit


def _defaults_below(command: object, project: str) -> dict[str, Any]:
    """Make the folder that was given before the command the default of each command below."""
    below = getattr(command, "commands", {})
    return {"project": project} | {name: _defaults_below(each, project) for name, each in below.items()}


@app.callback()
def _about(
    context: typer.Context,
    project: ProjectOption = None,
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Look into, feed and repair the memory of a project: what its orchestrator did, decided and learned.

    Example: orchestra-mem init && orchestra-mem import git . && orchestra-mem context
    """
    if project is not None:
        context.default_map = _defaults_below(context.command, str(project))


# In the order of the help: a command adds itself to the program where it is defined.
for _name in ("commands_record", "demo", "commands_ask", "commands_work", "commands_catalog", "commands_documents",
              "commands_check", "commands_serve"):  # fmt: skip
    import_module(f"orchestra_mem.faces.{_name}")


def main() -> None:
    """Run the command line and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # What the encoding of a terminal or pipe lacks is replaced; by default it is an error. Other handlers are
        # meant: in the locale C, bytes that are no text go out as they came in.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="orchestra-mem")
    except KeyboardInterrupt:
        # Before a command's own handling began, or in the middle of it.
        sys.exit(INTERRUPTED)
    except OSError as error:
        # The help on its way out, as on a full disk; a command sees to its own answer.
        give_up_output(f"orchestra-mem: the output could not be written: {error}")
        sys.exit(STORAGE)
    finally:
        # The interpreter's last collections go through all that was loaded: a tenth of what `status` takes.
        gc.freeze()

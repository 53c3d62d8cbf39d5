"""Entry point of the command line. The commands themselves are in the modules `commands_…` and `demo`.

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
        from importlib.metadata import distributions

        versions = (each.version for each in distributions(name="orchestra-mem"))
        found = next(versions, "(not installed; running from source)")
        typer.echo(f"orchestra-mem {found}")
        raise typer.Exit


def _defaults_below(command: object, project: str) -> dict[str, Any]:
    """Build the click default map that passes a `--project` given before the command on to all subcommands."""
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
    """Inspect, fill and repair the memory of a project: what its orchestrator did, decided and learned.

    Example: orchestra-mem init && orchestra-mem import git . && orchestra-mem context
    """
    if project is not None:
        context.default_map = _defaults_below(context.command, str(project))


# Importing a module registers its commands; the help lists them in this order.
for _name in ("commands_record", "demo", "commands_ask", "commands_work", "commands_catalog", "commands_documents",
              "commands_check", "commands_serve"):  # fmt: skip
    import_module(f"orchestra_mem.faces.{_name}")


def main() -> None:
    """Run the command line and exit the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # Replace characters that the output encoding lacks; the default error handler, `strict`, would raise. Other
        # handlers are set on purpose: in the C locale, `surrogateescape` writes undecodable input bytes back unchanged.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="orchestra-mem")
    except KeyboardInterrupt:
        # Ctrl-C before the error handling of a command began, or during it.
        sys.exit(INTERRUPTED)
    except OSError as error:
        # The help could not be written, for example to a full disk; commands handle errors of their own output.
        give_up_output(f"orchestra-mem: the output could not be written: {error}")
        sys.exit(STORAGE)
    finally:
        # Skip the final garbage collections, which traverse every loaded object: a tenth of the run time of `status`.
        gc.freeze()

"""The command that tells who wrote each line of a document: blame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestra_mem.faces.shell import DebugOption, JsonOption, ProjectOption, shell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from orchestra_mem.tiers.authorship import BlamedLine
    from orchestra_mem.types import Json

_COLOURS = {"person": "green", "agent": "cyan", "compactor": "yellow", "machine": "dim"}


def blame(
    document: Annotated[
        str,
        typer.Argument(
            metavar="DOC", help="project_state, work_plan, decision_log, or session for the live session's document."
        ),
    ],
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Tell line by line who wrote a document, person or machine, and from which operations.

    Example: orchestra-mem blame decision_log
    """
    with shell(project, as_json, debug) as run:
        with run.open() as memory:
            lines = memory.blame(document)
        if as_json:
            return run.answer([_record(line) for line in lines])
        run.show(*_view(lines))
    return None


def add_to(app: typer.Typer, panel: str) -> None:
    """Give the command to a program."""
    app.command(rich_help_panel=panel)(blame)


def _record(line: BlamedLine) -> dict[str, Json]:
    origin = line.origin
    return {
        "line": line.line,
        "text": line.text,
        "writer": origin.writer.value,
        "operations": [[first, last] for first, last in origin.operations],
        "time": origin.time.isoformat() if origin.time else None,
    }


def _view(lines: Sequence[BlamedLine]) -> Iterator[RenderableType]:
    from rich.text import Text

    digits = len(str(len(lines)))
    for line in lines:
        origin = line.origin
        when = f"{origin.time:%Y-%m-%d %H:%M}" if origin.time else ""
        from_ = ", ".join(
            f"op{first}" if first == last else f"op{first} to {last}" for first, last in origin.operations
        )
        head = f"{origin.writer.value:<9} {when:<16} {from_:<8.20} {line.line:>{digits}} "
        yield Text.assemble((head, _COLOURS[origin.writer.value]), line.text.expandtabs(4))

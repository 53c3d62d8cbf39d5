"""Commands for lines that a person and the machine have both changed: conflicts, accept, reject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestra_mem.faces.shell import DebugOption, JsonOption, ProjectOption, shell

if TYPE_CHECKING:
    from pathlib import Path

    from orchestra_mem.manager import OrchestratorContextManager
    from orchestra_mem.types import Json

ConflictArgument = Annotated[str, typer.Argument(metavar="ID", help="As `conflicts` and the document show it.")]


def conflicts(project: ProjectOption = None, as_json: JsonOption = False, debug: DebugOption = False) -> None:
    """List what waits for your word: lines of yours that stand, and what the machine would have there.

    Example: orchestra-mem conflicts
    """
    with shell(project, as_json, debug) as run:
        with run.open() as memory:
            found = _records(memory)
        if as_json:
            return run.answer([*found])
        from orchestra_mem.faces.document_rendering import conflicts_view

        run.show(*conflicts_view(found))
    return None


def _records(memory: OrchestratorContextManager) -> list[dict[str, Json]]:
    from orchestra_mem.core.documents.alignment import split_lines

    found: list[dict[str, Json]] = []
    for name, block in memory.conflicts():
        lines = split_lines(memory.episodic_memory.text(name))
        above = lines[max(0, block.line - 1 - block.person_lines) : block.line - 1]
        found.append(
            {
                "id": block.id, "document": name.value, "path": str(memory.episodic_memory.path(name)),
                "line": block.line, "yours": "".join(f"{line}\n" for line in above), "machine": block.machine,
                "changed_meanwhile": not block.unchanged,
            }
        )  # fmt: skip
    return found


def accept(
    conflict: ConflictArgument, project: ProjectOption = None, as_json: JsonOption = False, debug: DebugOption = False
) -> None:
    """Let the machine's lines of a conflict take the place of yours. What stood there becomes a version.

    Example: orchestra-mem accept 3f9a1c
    """
    _resolve(conflict, True, project, as_json, debug)


def reject(
    conflict: ConflictArgument, project: ProjectOption = None, as_json: JsonOption = False, debug: DebugOption = False
) -> None:
    """Keep your lines of a conflict, and take the machine's out. Deleting the block in an editor does the same.

    Example: orchestra-mem reject 3f9a1c
    """
    _resolve(conflict, False, project, as_json, debug)


def _resolve(conflict: str, accepted: bool, project: Path | None, as_json: bool, debug: bool) -> None:
    with shell(project, as_json, debug) as run:
        with run.open() as memory:
            name, done = memory.resolve_conflict(conflict, accept=accepted)
            path = memory.episodic_memory.path(name)
        if as_json:
            record: dict[str, Json] = {
                "id": conflict, "document": name.value, "path": str(path), "line": done.line,
                "replaced": done.replaced, "note": done.note,
            }  # fmt: skip
            return run.answer(record)
        run.text(f"{path}:{done.line}: {done.note}\n")
    return None


def add_to(app: typer.Typer, panel: str) -> None:
    """Add these commands."""
    for command in (conflicts, accept, reject):
        app.command(rich_help_panel=panel)(command)

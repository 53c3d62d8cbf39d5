"""Commands for the documents' earlier texts: history, diff, restore."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from orchestra_mem.errors import NotFoundError
from orchestra_mem.faces.shell import DebugOption, JsonOption, ProjectOption, shell
from orchestra_mem.types import DocumentName

DocumentArgument = Annotated[str, typer.Argument(metavar="DOC", help="project_state, work_plan or decision_log.")]


def history(
    document: DocumentArgument,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List a document's earlier texts, oldest first: when, by whom it was written, why it was replaced.

    Example: orchestra-mem history project_state
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.serialize import to_object

        name = document.removesuffix(".md")
        if name not in set(DocumentName):
            known = ", ".join(each.value for each in DocumentName)
            raise NotFoundError(f"there is no document {document!r}; there are: {known}")
        with run.open() as memory:
            found = memory.episodic_memory.history(name)
        if as_json:
            return run.answer([to_object(version) for version in found])
        from orchestra_mem.faces.rendering import versions_view

        run.show(*versions_view(found))
    return None


def diff(
    document: DocumentArgument,
    version: Annotated[int | None, typer.Argument(help="An earlier text's number. Default: the newest.")] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show what has changed in a document since one of its earlier texts.

    Example: orchestra-mem diff project_state 3
    """
    with shell(project, as_json, debug) as run:
        with run.open() as memory:
            found = memory.episodic_memory.diff(document, version)
        if as_json:
            run.answer({"document": document, "version": version, "diff": found})
        elif not run.out.is_terminal:
            run.text(found)
        else:
            from orchestra_mem.faces.rendering import diff_view

            run.show(diff_view(found) if found else "no difference")


def restore(
    document: DocumentArgument,
    version: Annotated[int, typer.Argument(help="The number of the text to put back.")],
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Put an earlier text of a document back, word for word. What stands there now becomes a version itself.

    Example: orchestra-mem restore decision_log 3
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.serialize import to_object

        with run.open() as memory:
            kept = memory.episodic_memory.restore(document, version)
        if as_json:
            run.answer({"restored": version, "kept": to_object(kept)})
        elif kept.sequence == version:
            run.text(f"version {version} stands in {kept.document}; it replaced nothing\n")
        else:
            run.text(
                f"version {version} stands in {kept.document} again; what stood there is version {kept.sequence}\n"
            )


def add_to(app: typer.Typer, panel: str) -> None:
    """Add these commands."""
    commands: tuple[Callable[..., None], ...] = (history, diff, restore)
    for command in commands:
        app.command(rich_help_panel=panel)(command)

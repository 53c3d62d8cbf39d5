"""The command that opens a document in a person's editor: edit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestra_mem.errors import DocumentError, NotFoundError, storage_error
from orchestra_mem.faces.shell import FAILED, DebugOption, JsonOption, ProjectOption, shell
from orchestra_mem.types import DocumentName

if TYPE_CHECKING:
    from orchestra_mem.diagnosis import DocumentProblem
    from orchestra_mem.faces.editing import TakenIn
    from orchestra_mem.faces.text_changes import TextChange
    from orchestra_mem.manager import OrchestratorContextManager
    from orchestra_mem.types import Json

EditedArgument = Annotated[
    str, typer.Argument(metavar="DOC", help="project_state, work_plan, decision_log, or session for the running one.")
]


def edit(
    document: EditedArgument, project: ProjectOption = None, as_json: JsonOption = False, debug: DebugOption = False
) -> None:
    """Open a document in your editor; afterwards tell what was taken in and what is wrong. 1 where something is.

    Example: orchestra-mem edit decision_log
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.build import load_settings
        from orchestra_mem.diagnosis import check_document
        from orchestra_mem.faces.editing import find_editor, run_editor, taken_in
        from orchestra_mem.faces.text_changes import text_change

        with run.open() as memory:  # closed again before the editor opens: whoever else works here goes on
            path = _path(memory, document)
            facts = memory.facts(standing=False)
        before = _text(path)
        code = run_editor(find_editor(os.environ, path), path, aside=as_json)
        # Before the memory is opened, which would make a document again that is not there.
        problems = check_document(path, run.project, load_settings(run.project, os.environ))
        after = _text(path) if path.is_file() else ""
        with run.open() as memory:
            taken = taken_in(facts, memory.facts(standing=False))
        change = text_change(before, after)
        if as_json:
            head: dict[str, Json] = {"document": path.stem, "path": str(path), "editor_exit_code": code}
            run.answer(head | {"changed": before != after} | _record(change, taken, problems))
        else:
            from orchestra_mem.faces.document_rendering import edit_view

            run.show(*edit_view(path, change, taken, problems, changed=before != after))
        if code:
            run.tell(f"the editor ended with exit code {code}; what it had saved stands")
        elif before == after:
            run.tell("an editor that opens a window of its own may return at once: what you save there is taken in too")
        if code or problems:
            raise typer.Exit(FAILED)


def _path(memory: OrchestratorContextManager, document: str) -> Path:
    name = document.removesuffix(".md")
    if name == "session":
        path = memory.session_memory.path
        if path is None:
            raise NotFoundError("no session is under way, so it has no document; `orchestra-mem record` begins one")
        return path
    if name not in set(DocumentName):
        known = ", ".join([*(each.value for each in DocumentName), "session"])
        raise NotFoundError(f"there is no document {document!r}; there are: {known}")
    return memory.episodic_memory.path(DocumentName(name))


def _text(path: Path) -> str:
    if path.is_dir():
        raise DocumentError(f"{path} is a folder, a document is expected there; move the folder away")
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise storage_error(error, "reading", path) from error


def _record(change: TextChange, taken: TakenIn, problems: list[DocumentProblem]) -> dict[str, Json]:
    from orchestra_mem.faces.document_rendering import problem_record
    from orchestra_mem.serialize import to_object

    facts: dict[str, Json] = {
        "added": [to_object(fact) for fact in taken.added],
        "changed": [{"before": to_object(was), "after": to_object(now)} for was, now in taken.changed],
        "removed": [to_object(fact) for fact in taken.removed],
    }
    return {
        "lines_added": change.added, "lines_removed": change.removed, "facts": facts,
        "problems": [problem_record(problem) for problem in problems],
    }  # fmt: skip


def add_to(app: typer.Typer, panel: str) -> None:
    """Add this command."""
    app.command(rich_help_panel=panel)(edit)

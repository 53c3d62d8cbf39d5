"""Commands for the documents: edit, conflicts, accept, reject, watch, history, diff, restore, blame."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from orchestra_mem import build
from orchestra_mem.errors import DocumentError, NotFoundError, storage_error
from orchestra_mem.faces import records
from orchestra_mem.faces.command import FAILED, CommandResult, Invocation, command, views

if TYPE_CHECKING:
    from orchestra_mem.faces.editing import DocumentChange
    from orchestra_mem.memory.manager import OrchestratorContextManager

_DOCUMENTS = "project_state, work_plan, decision_log, or catalog/AGENT"
DocumentArgument = Annotated[str, Argument(metavar="DOC", help=f"{_DOCUMENTS}.")]
AnyDocumentArgument = Annotated[str, Argument(metavar="DOC", help=f"{_DOCUMENTS}, or session for the running one.")]
ConflictArgument = Annotated[str, Argument(metavar="ID", help="As `conflicts` and the document show it.")]
# Seconds between two looks of `watch`; a save is told of at the third look after it at the latest, so within a second.
_LOOK_S = 0.25


@command("Documents")
def edit(run: Invocation, document: AnyDocumentArgument) -> CommandResult:
    """Open a document in your editor; then count the lines changed and say what is wrong. Exits with 1 if something is.

    Example: orchestra-mem edit decision_log
    """
    from orchestra_mem.doctor.documents import check_document
    from orchestra_mem.faces.editing import differing_lines, run_editor

    with run.open() as memory:  # closed again before the editor opens, so that other processes are not blocked
        path = _path(memory, document)
    before = _text(path)
    code = run_editor(os.environ, path, aside=run.as_json)
    problems = check_document(path, run.project, build.load_settings(run.project, os.environ))
    after = _text(path) if path.is_file() else ""
    lines = differing_lines(before, after)
    added = sum(line.startswith("+") for line in lines)
    record = {
        "document": path.stem, "path": str(path), "editor_exit_code": code, "changed": before != after,
        "lines_added": added, "lines_removed": len(lines) - added, "problems": problems,
    }  # fmt: skip
    notes = []
    if code:
        notes = [f"the editor ended with exit code {code}; what it had saved is kept"]
    elif before == after:
        notes = ["an editor that opens a window of its own may return at once: what you save there is read as well"]
    counts = f"lines added: {added:,}, removed: {len(lines) - added:,}" if before != after else "not changed"
    return CommandResult(
        record, lambda: f"{path}: {counts}\n{views.problems_text(problems)}",
        exit_code=FAILED if code or problems else 0, notes=notes,
    )  # fmt: skip


def _path(memory: OrchestratorContextManager, document: str) -> Path:
    name = document.removesuffix(".md")
    if name == "session":
        path = memory.session_memory.path
        if path is None:
            raise NotFoundError("there is no session, so it has no document; `orchestra-mem record` begins one")
        return path
    writer, name = memory.documents.find(document, others=("session",))
    return writer.path(name)


def _text(path: Path) -> str:
    if path.is_dir():
        raise DocumentError(f"{path} is a folder, a document is expected there; move the folder away")
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise storage_error(error, "reading", path) from error


@command("Documents")
def conflicts(memory: OrchestratorContextManager) -> CommandResult:
    """List the lines that you and the machine both changed: yours, which stand, and the machine's.

    Example: orchestra-mem conflicts
    """
    found = records.conflict_records(memory)
    return CommandResult(found, lambda: views.conflicts_view(found))


@command("Documents")
def accept(
    memory: OrchestratorContextManager,
    conflict: ConflictArgument,
    both: Annotated[bool, Option("--both", help="Keep your lines, and put the machine's behind them.")] = False,
) -> CommandResult:
    """Replace your lines of a conflict by the machine's. The earlier text becomes a version.

    Example: orchestra-mem accept 3f9a1c
    """
    return _resolve(memory, conflict, accept=True, both=both)


@command("Documents")
def reject(memory: OrchestratorContextManager, conflict: ConflictArgument) -> CommandResult:
    """Keep your lines of a conflict and remove the machine's. Deleting the block in an editor does the same.

    Example: orchestra-mem reject 3f9a1c
    """
    return _resolve(memory, conflict, accept=False)


def _resolve(memory: OrchestratorContextManager, conflict: str, *, accept: bool, both: bool = False) -> CommandResult:
    done = records.resolved_record(memory, conflict, accept=accept, both=both)
    return CommandResult(done, f"{done['path']}:{done['line']}: {done['note']}\n")


@command("Documents", json_lines=True)
def watch(run: Invocation) -> None:
    """Show changes to the documents as they are saved, line by line, until Ctrl-C.

    Example: orchestra-mem watch
    """
    from orchestra_mem.build.place import Place
    from orchestra_mem.faces.editing import SeenTexts

    run.require_memory()
    folders = Place.of(run.project, build.load_settings(run.project, os.environ)).folders
    try:
        texts = SeenTexts(folders)
        run.tell(f"watching {' and '.join(map(str, folders))}; Ctrl-C ends it")
        while True:
            for found in texts.look():
                _show_change(run, found)
            time.sleep(_LOOK_S)
    except KeyboardInterrupt:
        run.tell("")  # the end that is meant, and not in the terminal's line of ^C


def _show_change(run: Invocation, found: DocumentChange) -> None:
    now = build.utc_now()
    if run.as_json:
        record = {
            "time": now.isoformat(), "document": found.path.stem, "path": str(found.path),
            "event": found.event.value, "added": found.added, "removed": found.removed, "lines": found.lines,
        }  # fmt: skip
        return run.text(f"{json.dumps(record)}\n")
    return run.show(views.change_view(now, found))


@command("Documents")
def history(memory: OrchestratorContextManager, document: DocumentArgument) -> CommandResult:
    """List a document's earlier versions, oldest first: when, by whom it was written, why it was replaced.

    Example: orchestra-mem history project_state
    """
    found = memory.documents.history(document)
    return CommandResult(found, lambda: views.versions_view(found))


@command("Documents")
def diff(
    memory: OrchestratorContextManager,
    document: DocumentArgument,
    version: Annotated[int | None, Argument(metavar="N", help="The number of a version. Default: the newest.")] = None,
) -> CommandResult:
    """Show what has changed in a document since one of its earlier versions.

    Example: orchestra-mem diff project_state 3
    """
    found = memory.documents.diff(document, version)
    record = {"document": document, "version": version, "diff": found}
    return CommandResult(
        record, lambda: views.diff_view(found), notes=[] if found else [f"{document} has not changed since"]
    )


@command("Documents")
def restore(
    memory: OrchestratorContextManager,
    document: DocumentArgument,
    version: Annotated[int, Argument(metavar="N", help="The number of the version to put back.")],
) -> CommandResult:
    """Put an earlier version of a document back, word for word. The present text becomes a version itself.

    A whole memory is put back by restore-backup.

    Example: orchestra-mem restore decision_log 3
    """
    kept = memory.documents.restore(document, version)
    replaced = "it replaced nothing" if kept.sequence == version else f"the text before is version {kept.sequence}"
    words = f"version {version} stands in {document}; {replaced}\n"
    return CommandResult({"restored": version, "kept": kept}, words)


@command("Documents")
def blame(memory: OrchestratorContextManager, document: AnyDocumentArgument) -> CommandResult:
    """Show line by line who wrote a document, person or machine, and from which operations.

    Example: orchestra-mem blame decision_log
    """
    lines = memory.blame(document)
    return CommandResult(lines, lambda: views.blame_view(lines))

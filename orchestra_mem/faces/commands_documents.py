"""Commands for the documents, and for the decisions that projects share."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import BadParameter

from orchestra_mem import build
from orchestra_mem.errors import DocumentError, NotFoundError, StorageReadOnlyError, storage_error
from orchestra_mem.faces import records
from orchestra_mem.faces.command import CommandResult, Invocation, add_group, argument, command, option, views
from orchestra_mem.serialize import readable_json, to_object

if TYPE_CHECKING:
    from orchestra_mem.core.documents.shared_document import SharedDecision
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.memory.sharing import SharedFact

_DOCUMENTS = "project_state, work_plan, decision_log, or catalog/AGENT"
DocumentArgument = Annotated[str, argument("DOC", f"{_DOCUMENTS}.")]
AnyDocumentArgument = Annotated[str, argument("DOC", f"{_DOCUMENTS}, or session for the current session.")]
ConflictArgument = Annotated[str, argument("ID", "The conflict's id, as shown by `conflicts` and in the document.")]
# Seconds between two polls of `watch`, which reports a save once two polls in a row find the same text.
_LOOK_S = 0.25


@command("Documents")
def edit(run: Invocation, document: AnyDocumentArgument) -> CommandResult:
    """Open a document in your editor, then report changed lines and faults. Exits with 1 on a fault or editor error.

    Example: orchestra-mem edit decision_log
    """
    from orchestra_mem.doctor.documents import check_document
    from orchestra_mem.faces.editing import differing_lines, run_editor

    with run.open() as memory:  # closed before the editor opens, so that other processes are not blocked
        path = _path(memory, document)
        if not path.exists() and memory.session_memory.store.state(path):
            raise StorageReadOnlyError(
                f"{path} is on the server, and this user may only read it there; `orchestra-mem status` shows why"
            )
    before = _text(path)
    code = run_editor(os.environ, path, aside=run.as_json)
    problems = check_document(path, run.project, run.settings)
    after = _text(path) if path.is_file() else ""
    lines = differing_lines(before, after)
    added = sum(line.startswith("+") for line in lines)
    record = {
        "document": path.stem, "path": str(path), "editor_exit_code": code, "changed": before != after,
        "lines_added": added, "lines_removed": len(lines) - added, "problems": problems,
    }  # fmt: skip
    notes = []
    if code:
        notes = [f"the editor ended with exit code {code}; what it saved is kept"]
    elif before == after:
        notes = ["if your editor opens in a separate window, save there: changes are read when they are saved"]
    counts = f"lines added: {added:,}, removed: {len(lines) - added:,}" if before != after else "not changed"
    return CommandResult(
        record, lambda: f"{path}: {counts}\n{views.problems_text(problems)}",
        failed=bool(code or problems), notes=notes,
    )  # fmt: skip


def _path(memory: OrchestratorContextManager, document: str) -> Path:
    name = document.removesuffix(".md")
    if name == "session":
        path = memory.session_memory.path
        if path is None:
            raise NotFoundError(
                "there is no current session, so there is no session document; `orchestra-mem record` starts a session"
            )
        return path
    writer, name = memory.documents.find(document, others=("session",))
    return writer.path(name)


def _text(path: Path) -> str:
    if path.is_dir():
        raise DocumentError(f"{path} is a folder, but must be a document: move the folder away")
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise storage_error(error, "reading", path) from error


@command("Documents")
def conflicts(memory: OrchestratorContextManager) -> CommandResult:
    """List lines that you and the machine, or two machines, both changed. The first version applies until you decide.

    Example: orchestra-mem conflicts
    """
    found = records.conflict_records(memory)
    return CommandResult(found, lambda: views.conflicts_view(found))


@command("Documents")
def accept(
    memory: OrchestratorContextManager,
    conflict: ConflictArgument,
    both: Annotated[bool, option("--both", "Keep your lines, and add the machine's after them.")] = False,
) -> CommandResult:
    """Replace your lines of a conflict with the machine's. The earlier text is kept as a version.

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

    Meanwhile, other folders of a memory on a server get the changes, and this folder gets theirs.

    Example: orchestra-mem watch
    """
    from orchestra_mem.build.storage import Place
    from orchestra_mem.faces.editing import SeenTexts

    run.require_memory()
    folders = Place.of(run.project, run.settings).folders
    with suppress(KeyboardInterrupt), run.open() if run.settings.storage.url else nullcontext():
        texts = SeenTexts(folders)
        run.tell(f"watching {' and '.join(map(str, folders))}; Ctrl-C ends it")
        while True:
            for found in texts.look():
                now = build.utc_now()
                if run.as_json:
                    run.text(f"{readable_json({'time': now.isoformat(), **to_object(found)})}\n")
                else:
                    run.show(views.change_view(now, found))
            time.sleep(_LOOK_S)
    run.tell("")  # Ctrl-C is the normal end of `watch`; a newline after the ^C on the terminal


@command("Documents")
def history(memory: OrchestratorContextManager, document: DocumentArgument) -> CommandResult:
    """List a document's earlier versions, oldest first: who wrote each, and when and why it was replaced.

    Example: orchestra-mem history project_state
    """
    found = memory.documents.history(document)
    return CommandResult(found, lambda: views.versions_view(found))


@command("Documents")
def diff(
    memory: OrchestratorContextManager,
    document: DocumentArgument,
    version: Annotated[int | None, argument("N", "The number of a version. Default: the newest.")] = None,
) -> CommandResult:
    """Show what has changed in a document since one of its earlier versions.

    Example: orchestra-mem diff project_state 3
    """
    found = memory.documents.diff(document, version)
    record = {"document": document, "version": version, "diff": found}
    return CommandResult(
        record, lambda: views.diff_view(found),
        notes=[] if found else [f"{document} has not changed since that version"],
    )  # fmt: skip


@command("Documents")
def restore(
    memory: OrchestratorContextManager,
    document: DocumentArgument,
    version: Annotated[int, argument("N", "The number of the version to put back.")],
) -> CommandResult:
    """Restore an earlier version of a document, with what has been recorded since. The current text is kept.

    It undoes what people have changed since that version. Facts that operations have added or ended since stay so, and
    new work stays; work in that version has its status again. To restore a complete memory, use restore-backup.

    Example: orchestra-mem restore decision_log 3
    """
    kept = memory.documents.restore(document, version)
    replaced = (
        "no text was replaced" if kept.sequence == version else f"the previous text is kept as version {kept.sequence}"
    )
    words = f"version {version} of {document} is restored, with what has been recorded since; {replaced}\n"
    return CommandResult({"restored": version, "kept": kept}, words)


@command("Documents")
def blame(memory: OrchestratorContextManager, document: AnyDocumentArgument) -> CommandResult:
    """Show line by line who wrote a document, person or machine, and from which operations.

    Example: orchestra-mem blame decision_log
    """
    lines = memory.blame(document)
    return CommandResult(lines, lambda: views.blame_view(lines))


decisions = add_group("decisions", "Ask", help="Decisions and rules that projects share.")
FactArgument = Annotated[str, argument("K", "The number in this project, as `facts` shows it: K12.")]
AgainOption = Annotated[bool, option("--again", "Even if a person has removed it by hand.")]


@command(of=decisions)
def share(
    memory: OrchestratorContextManager,
    fact: FactArgument,
    tags: Annotated[list[str] | None, option("--tag TAG", "Only for projects with this tag.")] = None,
    again: AgainOption = False,
) -> CommandResult:
    """Copy a decision or a rule of this project to the shared log, for all projects or for those with a tag.

    Example: orchestra-mem decisions share K12 --tag payments
    """
    from orchestra_mem.core.text import squeeze
    from orchestra_mem.tiers.shared_decisions import tag_fault

    if why := tag_fault(tags := [*map(squeeze, tags or ())]):
        raise BadParameter(why, param_hint="--tag")
    done = memory.share_decision(fact, tags=tags, again=again)
    document = memory.shared_log.path
    if done.entry is None:
        later = "it is added there when the document can be written and a decision is shared again"
        note = f"orchestra-mem: not yet in {document}: {done.problem}; {later}"
        return _share_result(done, f"recorded as {done.number}", [note])
    if done.is_new:
        return _share_result(done, f"shared as {done.number}")
    is_so = bool(tags) and {*tags} == {*done.entry.tags}
    words = f"already shared as {done.number}, {'now ' * is_so}for {_meant(done.entry)}"
    return _share_result(done, words, [] if is_so else [f"edit its line in {document} to change that"])


@command(of=decisions)
def unshare(memory: OrchestratorContextManager, fact: FactArgument) -> CommandResult:
    """Take a decision or a rule that this project has shared back out of the shared log.

    Example: orchestra-mem decisions unshare K12
    """
    return _share_result(memory.unshare_decision(fact), "no longer shared")


@command(of=decisions)
def shared(memory: OrchestratorContextManager) -> CommandResult:
    """List the decisions and rules that projects share, with who shared each and for which projects.

    Example: orchestra-mem decisions shared --json
    """
    found, log = memory.shared_decisions(), memory.shared_log
    lines = (
        f"{each.number or 'by hand'}: {each.text} ({each.kind} of {each.project or 'a person'}, for {_meant(each)}"
        f"{each.perhaps_superseded_by and f'; perhaps superseded by {each.perhaps_superseded_by}'})\n"
        for each in found
    )
    notes = [f"orchestra-mem: {each}" for each in (*log.faults(), *log.remarks())]
    notes += [] if log.problem else [f"shared log: {log.document()}"]
    none = "the shared log cannot be read\n" if log.problem else "no shared decisions or rules\n"
    return CommandResult(found, "".join(lines) or none, failed=bool(log.problem), notes=notes)


@command(of=decisions)
def adopt(
    memory: OrchestratorContextManager,
    number: Annotated[str, argument("K", "The number in the shared log, as `decisions shared` lists it.")],
    again: AgainOption = False,
) -> CommandResult:
    """Copy a shared decision or rule into this project; later changes of the shared log do not affect the copy.

    Example: orchestra-mem decisions adopt K3
    """
    done = memory.adopt_decision(number, again=again)
    return _share_result(done, f"{'adopted' if done.is_new else 'already in this project'} as {done.number}")


def _share_result(done: SharedFact, words: str, notes: Sequence[str] = ()) -> CommandResult:
    gone = "".join(f"it supersedes K{fact.id}: {fact.text}\n" for fact in done.superseded)
    return CommandResult(done, f"{words}: {done.text}\n{gone}", notes=notes)


def _meant(shared: SharedDecision) -> str:
    return "no project" if shared.unclear else ", ".join(shared.tags) or "all projects"

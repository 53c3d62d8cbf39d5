"""Commands for work items (work, work show, work add, work set), and to act as an orchestrator: shell and run."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import BadParameter

from orchestra_mem.faces import records
from orchestra_mem.faces.command import FAILED, CommandResult, Invocation, add_group, argument, command, option, views
from orchestra_mem.faces.inputs import up_to
from orchestra_mem.serialize import readable_json
from orchestra_mem.types import Author
from orchestra_mem.work_types import WorkFilter, WorkKind, WorkStatus

if TYPE_CHECKING:
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.orchestrator import Orchestrator

group = add_group("work", "Work")
_PROMPT = "> "
_COMMENT = re.compile(r"\s*#(?!\d)")
_GREETING = (
    'Type what to do, for example "create an epic for user authentication"; help shows more, quit ends the session.'
)
_STATUSES = ", ".join(status.replace(" ", "-") for status in WorkStatus)


def _status(given: str) -> WorkStatus:
    try:
        return WorkStatus(given)
    except ValueError:
        raise BadParameter(f"unknown status {given!r}; use one of: {_STATUSES}") from None


ItemArgument = Annotated[int, argument("ID", "The item's number, without #.")]


@command(of=group, bare=True)
def work(
    memory: OrchestratorContextManager,
    kinds: Annotated[list[WorkKind] | None, option("--kind KIND", "Only this kind.")] = None,
    statuses: Annotated[
        list[WorkStatus] | None,
        option("--status STATUS", f"Only this status, one of: {_STATUSES}.", parser=_status),
    ] = None,
    parent: Annotated[
        int | None, option("--parent ID", "Only direct children of this item; 0: items without a parent.", min=0)
    ] = None,
    text: Annotated[str, option("--text TEXT", "Only with all these words in title or description.")] = "",
    blocked_by: Annotated[int | None, option("--blocked-by ID", "Only items that depend on this item.", min=1)] = None,
    assignee: Annotated[str | None, option("--assignee NAME", "Only assigned to this name.")] = None,
    limit: Annotated[int, option("--limit N", "The first N; 0 for all.", min=0)] = 20,
) -> CommandResult:
    """List milestones, epics, stories and tasks in the order of the backlog; subcommands show and change single items.

    Example: orchestra-mem work --status in-progress --status blocked
    """
    where = WorkFilter(
        kinds=tuple(kinds or ()), statuses=tuple(statuses or ()), parent=parent, text=text, blocked_by=blocked_by,
        assignee=assignee, limit=limit or None,
    )  # fmt: skip
    found = memory.state.items(where)
    return CommandResult(found, lambda: views.work_view(found), notes=up_to(found, limit, "first"))


@command(of=group)
def show(
    memory: OrchestratorContextManager,
    item_id: ItemArgument,
    limit: Annotated[int, option("--limit N", "The newest N changes; 0 for all.", min=0)] = 20,
) -> CommandResult:
    """Show one item: its text, its progress, what it waits for, and its history.

    Example: orchestra-mem work show 12
    """
    record = records.work_record(memory, item_id, limit or None)
    above = record["item"].parent
    parent = None if above is None else memory.state.item(above)
    return CommandResult(record, lambda: views.item_view(record, parent))


@command(of=group)
def add(
    run: Invocation,
    kind: Annotated[WorkKind, argument("KIND", "What to create.")],
    title: Annotated[str, argument("TITLE", "The title, in one line.")],
    description: Annotated[str, option("--description TEXT", "A longer description.")] = "",
    parent: Annotated[int | None, option("--parent ID", "The item that it is part of.", min=1)] = None,
    priority: Annotated[int, option("--priority N", "1 is highest, 5 lowest.", min=1, max=5)] = 3,
    depends_on: Annotated[
        list[int] | None, option("--depends-on ID", "An item that must be done before.", min=1)
    ] = None,
    assignee: Annotated[str | None, option("--assignee NAME", "Who does it.")] = None,
    acceptance: Annotated[list[str] | None, option("--acceptance TEXT", "A condition for accepting it.")] = None,
) -> CommandResult:
    """Create a milestone, epic, story, task or subtask; creates a memory if there is none.

    Example: orchestra-mem work add story "Sign in by mail" --parent 5
    """
    with run.open(create=True) as memory:
        item = memory.state.create(
            kind, title, description=description, parent=parent, priority=priority, depends_on=depends_on or (),
            assignee=assignee, acceptance=acceptance or (), author=Author.PERSON,
        )  # fmt: skip
        records.update_documents(memory)
    return CommandResult(item, f"{item.name}\n")


@command(of=group, name="set")
def set_status(
    memory: OrchestratorContextManager,
    item_id: ItemArgument,
    status: Annotated[WorkStatus, argument("STATUS", f"One of: {_STATUSES}.", parser=_status)],
    reason: Annotated[str, option("--reason TEXT", "Why, for example what blocks it.")] = "",
) -> CommandResult:
    """Move an item to another status. If the change is not allowed, the error lists the allowed statuses.

    Example: orchestra-mem work set 12 blocked --reason "waits for the vendor"
    """
    item = memory.state.set_status(item_id, status, reason=reason, author=Author.PERSON)
    records.update_documents(memory)
    return CommandResult(item, f"{item.name} is {item.status}\n")


@command("Work", name="shell", json_lines=True)
def talk(
    run: Invocation,
    script: Annotated[Path | None, option("--script FILE", "Run the lines of a file; comments begin with #.")] = None,
    yes: Annotated[bool, option("--yes", "Cancel and undo without asking, except to undo an older change.")] = False,
) -> None:
    """Manage work items by plain commands; creates a memory if there is none.

    Everything is recorded. `quit`, Ctrl-D or Ctrl-C end the session.

    Example: orchestra-mem shell
    """
    from orchestra_mem.orchestrator import Orchestrator

    lines = _typed(run) if script is None else _scripted(run, _read(script))
    with run.open(create=True) as memory, Orchestrator(memory, agent="shell", confirm=not yes) as orchestrator:
        orchestrator.end_on_signals()
        all_done = _talk(run, orchestrator, lines)
    if script is not None and not all_done:
        raise typer.Exit(FAILED)


def _talk(run: Invocation, orchestrator: Orchestrator, lines: Iterator[str]) -> bool:
    """Execute lines until the last or until `quit`. Return True if all succeeded and all questions were answered."""
    from orchestra_mem.core.text import visible
    from orchestra_mem.orchestrator import Outcome, reply_record

    all_done, outcome = True, Outcome.DONE
    for line in lines:
        reply = orchestrator.execute(line)
        if reply.text:
            run.text(f"{readable_json(reply_record(reply)) if run.as_json else visible(reply.text)}\n")
            sys.stdout.flush()
        stays_open = outcome is Outcome.ASKED and not reply.answers
        outcome = reply.outcome
        all_done = all_done and not stays_open and outcome not in (Outcome.REFUSED, Outcome.NOT_UNDERSTOOD)
        if outcome is Outcome.ENDED:
            break
    return all_done and outcome is not Outcome.ASKED


def _typed(run: Invocation) -> Iterator[str]:
    """Yield the lines of stdin. On a terminal, show a prompt and offer the editing keys of readline."""
    if sys.stdin is None:
        return
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")
    if not sys.stdin.isatty():
        yield from (line.rstrip("\r\n") for line in sys.stdin)
        return
    with suppress(ImportError):  # Windows has no readline
        import readline  # noqa: F401  enables the arrow keys in `input`
    run.tell(_GREETING)
    while True:
        try:
            yield input(_PROMPT)
        except EOFError:
            run.tell("")
            return


def _read(script: Path) -> str:
    try:
        return script.read_text(encoding="utf-8-sig", errors="surrogateescape")
    except OSError as error:
        raise BadParameter(f"{script}: {error.strerror}", param_hint="--script") from error


def _scripted(run: Invocation, text: str) -> Iterator[str]:
    """Yield the commands of a script, and echo each; `#12 is done` is a command, not a comment."""
    for line in text.split("\n"):
        if line.strip() and not _COMMENT.match(line):
            if not run.as_json:
                run.text(f"{_PROMPT}{line}\n")
            yield line


@command("Work", name="run")
def do_task(
    run: Invocation,
    memory: OrchestratorContextManager,
    task: Annotated[int, argument("ID", "The task's number.", min=1)],
    shell_command: Annotated[str, argument("COMMAND", "A shell command; exit code 0 means that the task is done.")],
    tries: Annotated[int, option("--tries N", "At most N tries.", min=1)] = 1,
    timeout: Annotated[float | None, option("--timeout SECONDS", "Seconds for each try.", min=0.001)] = None,
) -> CommandResult:
    """Do a task by a shell command; its exit code sets the task's status, and each try is recorded.

    The command gets the task in the environment variables ORCHESTRA_MEM_TASK_ID and ORCHESTRA_MEM_TASK_TITLE, and a
    context from the memory on standard input.

    Example: orchestra-mem run 12 "pytest -q" --tries 2
    """
    from orchestra_mem.orchestrator import Orchestrator, task_record

    orchestrator = Orchestrator(memory, agent="run")
    orchestrator.end_on_signals()
    result = orchestrator.execute_task(task, shell_command, max_iterations=tries, timeout_s=timeout, folder=run.project)
    item = orchestrator.tracker.item(task)
    records.update_documents(memory)
    note = f"{item.name} is {item.status}{f': {result.error}' if result.error else ''}"
    return CommandResult(
        task_record(item, result), f"{result.result}\n" if result.result else "",
        failed=bool(result.error), notes=[] if run.as_json else [note],
    )  # fmt: skip

"""The commands that act as an orchestrator: shell talks, run does a task."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestra_mem.faces.command import CommandResult, command, flag
from orchestra_mem.faces.shell import FAILED, Shell

if TYPE_CHECKING:
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.orchestrator import Orchestrator, Reply

_PROMPT = "> "
_COMMENT = re.compile(r"\s*#(?!\d)")
_GREETING = 'Say what is to be done, as in "create an epic for user authentication"; help shows more, quit ends.'


@command("Begin", name="shell", json_lines=True)
def talk(
    run: Shell,
    script: Annotated[
        Path | None,
        typer.Option("--script", metavar="FILE", help="Run the lines of a file; comments begin with #."),
    ] = None,
    yes: Annotated[bool, flag("--yes", "Cancel and undo without asking.")] = False,
) -> None:
    """Talk about the work in everyday words; all of it is remembered. `quit`, Ctrl-D or Ctrl-C end the session.

    Example: orchestra-mem shell
    """
    from orchestra_mem.orchestrator import Orchestrator

    lines = _typed(run) if script is None else _scripted(run, _read(script))
    with run.open(create=True) as memory, Orchestrator(memory, agent="shell", confirm=not yes) as orchestrator:
        orchestrator.end_on_signals()
        all_done = _talk(run, orchestrator, lines)
    if script is not None and not all_done:
        raise typer.Exit(FAILED)


def _talk(run: Shell, orchestrator: Orchestrator, lines: Iterator[str]) -> bool:
    """Answer lines until they end or one says so; whether each was done or answered."""
    from orchestra_mem.orchestrator import Outcome

    all_done = True
    for line in lines:
        reply = orchestrator.execute(line)
        if reply.text:
            _show(run, reply)
        all_done = all_done and reply.outcome not in (Outcome.REFUSED, Outcome.NOT_UNDERSTOOD)
        if reply.outcome is Outcome.ENDED:
            break
    return all_done


def _show(run: Shell, reply: Reply) -> None:
    from orchestra_mem.orchestrator import reply_record

    if run.as_json:
        typer.echo(json.dumps(reply_record(reply)))
    else:
        run.text(f"{reply.text}\n")
    sys.stdout.flush()


def _typed(run: Shell) -> Iterator[str]:
    """The lines of a person at a terminal, with a prompt and what readline offers, or of whatever stdin was led to."""
    if sys.stdin is None:
        return
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")
    if not sys.stdin.isatty():
        yield from (line.rstrip("\r\n") for line in sys.stdin)
        return
    with suppress(ImportError):  # Windows has none
        import readline  # noqa: F401  the arrow keys: `input` uses it once it is there
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
        raise typer.BadParameter(f"{script}: {error.strerror}", param_hint="--script") from error


def _scripted(run: Shell, text: str) -> Iterator[str]:
    """The lines of a text, each shown before its answer; `#12 is done` is no comment."""
    for line in text.split("\n"):
        if line.strip() and not _COMMENT.match(line):
            if not run.as_json:
                run.text(f"{_PROMPT}{line}\n")
            yield line


@command("Begin", name="run")
def do_task(
    run: Shell,
    memory: OrchestratorContextManager,
    task: Annotated[int, typer.Argument(metavar="ID", help="The task's number.", min=1)],
    shell_command: Annotated[
        str, typer.Argument(metavar="COMMAND", help="For the shell; its exit code says how it went.")
    ],
    tries: Annotated[int, typer.Option("--tries", min=1, help="How often it is tried at most.")] = 1,
    timeout: Annotated[float | None, typer.Option("--timeout", min=0.001, help="Seconds for each try.")] = None,
) -> CommandResult:
    """Do a task by a shell command; the task's status follows, and how it went is remembered.

    The command finds the task in ORCHESTRA_MEM_TASK_ID and ORCHESTRA_MEM_TASK_TITLE, and what the memory has for it
    on its standard input.

    Example: orchestra-mem run 12 "pytest -q" --tries 2
    """
    from orchestra_mem.orchestrator import Orchestrator, task_record

    orchestrator = Orchestrator(memory, agent="run")
    orchestrator.end_on_signals()
    result = orchestrator.execute_task(task, shell_command, max_iterations=tries, timeout_s=timeout, folder=run.project)
    item = orchestrator.tracker.item(task)
    run.bring_documents_up(memory)
    text = f"{result.result}\n" if result.result else ""
    note = f"{item.name} is {item.status}{f': {result.error}' if result.error else ''}"
    return CommandResult(
        task_record(item, result), text, exit_code=FAILED if result.error else 0, note="" if run.as_json else note
    )

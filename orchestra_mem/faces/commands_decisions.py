"""Commands for what projects share: decisions share, decisions shared, decisions adopt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from orchestra_mem.faces.command import CommandResult, command

if TYPE_CHECKING:
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.memory.sharing import SharedFact

decisions = typer.Typer(no_args_is_help=True)


@command(of=decisions)
def share(
    memory: OrchestratorContextManager,
    fact: Annotated[str, Argument(metavar="K", help="The number in this project, as `facts` shows it: K12.")],
    tags: Annotated[
        list[str] | None, Option("--tag", metavar="TAG", help="Only for projects with this tag. May be repeated.")
    ] = None,
) -> CommandResult:
    """Lift a decision or a rule of this project into the shared log, for all projects or those with a tag.

    Example: orchestra-mem decisions share K12 --tag payments
    """
    done = memory.share_decision(fact, tags=tags or ())
    return _told(done, "shared as" if done.is_new else "shared already, as")


@command(of=decisions)
def shared(memory: OrchestratorContextManager) -> CommandResult:
    """List the decisions and rules that projects share, with who shared each and for which projects.

    Example: orchestra-mem decisions shared --json
    """
    found, log = memory.shared_decisions(), memory.shared_log
    lines = (
        f"{each.number or 'by hand'}: {each.text} ({each.kind} of {each.project or 'a person'}, for "
        f"{'nobody' if each.unclear else ', '.join(each.tags) or 'all'})\n"
        for each in found
    )
    notes = [f"orchestra-mem: {each['problem']}" for each in log.problems()]
    notes += [] if log.problem else [f"its document: {log.path or 'off, there is no home'}"]
    none = "what is shared cannot be read\n" if log.problem else "nothing is shared\n"
    return CommandResult(found, "".join(lines) or none, notes=notes)


@command(of=decisions)
def adopt(
    memory: OrchestratorContextManager,
    number: Annotated[str, Argument(metavar="K", help="The number in the shared log, as `decisions shared` lists it.")],
) -> CommandResult:
    """Take a shared decision or rule into this project as its own, whatever becomes of it in the shared log.

    Example: orchestra-mem decisions adopt K3
    """
    done = memory.adopt_decision(number)
    return _told(done, "adopted as" if done.is_new else "stands here already, as")


def _told(done: SharedFact, words: str) -> CommandResult:
    return CommandResult(done, f"{words} {done.number}: {done.text}\n")

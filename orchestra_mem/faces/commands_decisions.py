"""Commands for what projects share: decisions share, decisions shared, decisions adopt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from orchestra_mem.faces.command import CommandResult, command, command_group, flag

if TYPE_CHECKING:
    from orchestra_mem.core.documents.shared_document import SharedDecision
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.memory.sharing import SharedFact

decisions = command_group("decisions", "Ask", help="What projects share.")
AgainOption = Annotated[bool, flag("--again", "Also where somebody has taken it out by hand.")]


@command(of=decisions)
def share(
    memory: OrchestratorContextManager,
    fact: Annotated[str, Argument(metavar="K", help="The number in this project, as `facts` shows it: K12.")],
    tags: Annotated[
        list[str] | None, Option("--tag", metavar="TAG", help="Only for projects with this tag. May be repeated.")
    ] = None,
    again: AgainOption = False,
) -> CommandResult:
    """Lift a decision or a rule of this project into the shared log, for all projects or those with a tag.

    Example: orchestra-mem decisions share K12 --tag payments
    """
    done = memory.share_decision(fact, tags=tags or (), again=again)
    document = memory.shared_log.path
    if done.entry is None:
        later = f"orchestra-mem: it comes into {document} when that can be written and a decision is shared again"
        return _told(done, f"recorded as {done.number}", [f"{later}: {done.problem}"])
    if done.is_new:
        return _told(done, f"shared as {done.number}")
    words = f"shared already, as {done.number}, for {_meant(done.entry)}"
    return _told(done, words, [f"edit its line in {document} to change that"])


@command(of=decisions)
def shared(memory: OrchestratorContextManager) -> CommandResult:
    """List the decisions and rules that projects share, with who shared each and for which projects.

    Example: orchestra-mem decisions shared --json
    """
    found, log = memory.shared_decisions(), memory.shared_log
    document = log.document()
    lines = (
        f"{each.number or 'by hand'}: {each.text} ({each.kind} of {each.project or 'a person'}, for {_meant(each)})\n"
        for each in found
    )
    notes = [f"orchestra-mem: {each}" for each in (*log.faults(), *log.remarks())]
    notes += [] if log.problem else [f"its document: {document}"]
    none = "what is shared cannot be read\n" if log.problem else "nothing is shared\n"
    return CommandResult(found, "".join(lines) or none, notes=notes)


@command(of=decisions)
def adopt(
    memory: OrchestratorContextManager,
    number: Annotated[str, Argument(metavar="K", help="The number in the shared log, as `decisions shared` lists it.")],
    again: AgainOption = False,
) -> CommandResult:
    """Take a shared decision or rule into this project as its own, whatever becomes of it in the shared log.

    Example: orchestra-mem decisions adopt K3
    """
    done = memory.adopt_decision(number, again=again)
    return _told(done, f"{'adopted' if done.is_new else 'stands here already,'} as {done.number}")


def _told(done: SharedFact, words: str, notes: Sequence[str] = ()) -> CommandResult:
    gone = "".join(f"it takes the place of K{fact.id}: {fact.text}\n" for fact in done.superseded)
    return CommandResult(done, f"{words}: {done.text}\n{gone}", notes=notes)


def _meant(shared: SharedDecision) -> str:
    return "nobody" if shared.unclear else ", ".join(shared.tags) or "all"

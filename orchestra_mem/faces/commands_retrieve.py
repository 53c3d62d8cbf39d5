"""Commands that recall for a task: retrieve, recommend."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from orchestra_mem.errors import EmbedderError, SearchError, StorageError
from orchestra_mem.faces.shell import DebugOption, JsonOption, ProjectOption, Shell, shell

if TYPE_CHECKING:
    from orchestra_mem.manager import OrchestratorContextManager


def _asked(task: str) -> str:
    """What is to be done, which has to be something."""
    if not task.strip():
        raise typer.BadParameter("it is empty: say what is to be done", param_hint="TASK")
    return task


TaskArgument = Annotated[str, typer.Argument(help="What is to be done.", callback=_asked)]
AgentsOption = Annotated[
    list[str] | None, typer.Option("--agent", help="Who will do it: their work goes a little before. May be repeated.")
]


def bring_up(memory: OrchestratorContextManager) -> None:
    """Take everything into the index first; where that cannot be, the answer says so itself."""
    with suppress(SearchError, StorageError, EmbedderError):
        memory.update_index()


def _tell(run: Shell, notes: tuple[str, ...]) -> None:
    for note in notes:
        run.tell(f"orchestra-mem: {note}")


def retrieve(
    task: TaskArgument,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=0, metavar="N", help="The budget.")] = 2_000,
    agents: AgentsOption = None,
    pattern: Annotated[
        str | None, typer.Option("--pattern", help="How they work together: what was done so goes a little before.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", metavar="", help="Why each entry was recalled and shown as it is, instead.")
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Print what the memory has for a task, for a model: an index with costs, then the best entries. 1 where nothing.

    Example: orchestra-mem retrieve "deploy the shop" --max-tokens 1000
    """
    with shell(project, as_json, debug) as run:
        with run.open() as memory:
            bring_up(memory)
            found = memory.retriever.retrieve_context(task, agents=agents or (), pattern=pattern, max_tokens=max_tokens)
        _tell(run, found.notes)
        if as_json:
            run.answer(found.as_dict())
        else:
            run.text(found.explain() if explain else found.text)
        if not found.entries:
            raise typer.Exit(1)


def recommend(
    task: TaskArgument,
    agents: AgentsOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="So many of each kind at most.")] = 3,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Print what past decisions, rules, failures and similar tasks say for a task, with their sources. 1 where nothing.

    Example: orchestra-mem recommend "deploy the shop" --json
    """
    with shell(project, as_json, debug) as run:
        with run.open() as memory:
            bring_up(memory)
            found = memory.retriever.get_recommendations(task, agents=agents or (), limit=limit)
        _tell(run, found.notes)
        if as_json:
            run.answer(found.as_dict())
        else:
            run.text(found.render())
        if not any(found.groups()):
            raise typer.Exit(1)


def add_to(app: typer.Typer, panel: str) -> None:
    """Add these commands to the command line."""
    for command in (retrieve, recommend):
        app.command(rich_help_panel=panel)(command)

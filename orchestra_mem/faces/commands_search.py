"""Commands that search: search, index."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from orchestra_mem.errors import EmbedderError, SearchError, StorageError
from orchestra_mem.faces.commands_ask import SessionOption, session_id, when
from orchestra_mem.faces.shell import DebugOption, JsonOption, ProjectOption, Shell, shell
from orchestra_mem.search_types import SearchFilter, SearchMode, Tier
from orchestra_mem.types import OperationFilter

if TYPE_CHECKING:
    from orchestra_mem.manager import OrchestratorContextManager
    from orchestra_mem.services.indexing import Backlog
    from orchestra_mem.services.searching import Answer
    from orchestra_mem.types import Json


def search(
    query: Annotated[str, typer.Argument(help="Words, a question, or names such as #12 or src/app.py.")],
    tiers: Annotated[
        list[Tier] | None, typer.Option("--tier", metavar="TIER", help=f"Only of: {', '.join(Tier)}. May be repeated.")
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="Only this type of operation, document or fact. May be repeated."),
    ] = None,
    session: SessionOption = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only by this agent.")] = None,
    item: Annotated[int | None, typer.Option("--item", metavar="N", help="Only about this work item.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="From then on; ISO 8601, or a span back as in 2h.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Before then.")] = None,
    mode: Annotated[
        SearchMode,
        typer.Option("--mode", metavar="MODE", help=f"By words, meaning or both: {', '.join(SearchMode)}."),
    ] = SearchMode.HYBRID,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="So many hits at most.")] = 10,
    explain: Annotated[
        bool, typer.Option("--explain", metavar="", help="Why each hit stands where it does: ranks, scores, shares.")
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Find what answers a question, in all tiers and archives, by words and by meaning. 1 where nothing does.

    Example: orchestra-mem search "how do we deploy" --since 30d
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.build import utc_now

        now = utc_now()
        first, end = when(since, now, "--since"), when(until, now, "--until")
        with run.open() as memory:
            with suppress(SearchError, StorageError, EmbedderError):  # what is there answers, and says what it lacks
                _bring_up(run, memory)
            where = SearchFilter(
                tiers=tuple(tiers or ()), kinds=tuple(kinds or ()), agent=agent, item=item, since=first, until=end,
                session=None if session is None else session_id(memory, session),
            )  # fmt: skip
            found = memory.search(query, where=where, mode=mode, limit=limit)
            lines = memory.hit_lines(found.hits)
        for note in found.notes:
            run.tell(f"orchestra-mem: {note}")
        _show(run, found, lines, explain=explain)
        if not found.hits:
            raise typer.Exit(1)


def _show(run: Shell, found: Answer, lines: Sequence[int], *, explain: bool) -> None:
    if run.as_json:
        from orchestra_mem.serialize import hit_record

        hits: list[Json] = [
            {**hit_record(hit), "line": line or None} for hit, line in zip(found.hits, lines, strict=True)
        ]
        return run.answer({"hits": hits, "notes": [*found.notes]})
    from orchestra_mem.faces.search_rendering import hits_view

    return run.show(*hits_view(found.hits, lines, explain=explain))


def _bring_up(run: Shell, memory: OrchestratorContextManager, *, anew: bool = False) -> None:
    """Bring the index up to the memory, with a bar where that takes long."""
    with run.progress("passages") as bar:
        task = bar.add_task("indexing", total=None)

        def told(left: Backlog) -> None:
            count = left.operations + left.vectors
            total = max(count, int(bar.tasks[0].total or 0))
            bar.update(task, total=total, completed=total - count)

        memory.update_index(told, anew=anew)


def index(
    anew: Annotated[
        bool, typer.Option("--anew", metavar="", help="Throw away what is there first, as after a change of model.")
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Bring the search index up to the memory now. Searches do so themselves, in pieces.

    Example: orchestra-mem index --anew
    """
    with shell(project, as_json, debug) as run:
        with run.open() as memory:
            newest = memory.operations(OperationFilter(limit=1))
            _bring_up(run, memory, anew=anew)
        _require_kept(run, newest[-1].id if newest else 0)
        if as_json:
            return run.answer({"complete": True})
        run.tell("the index has everything")
    return None


def _require_kept(run: Shell, last_operation: int) -> None:
    """Make sure that the index lies on the disk: where nothing may be written it is made in main memory, and is gone.

    Raises:
        StorageError: it does not.
    """
    from orchestra_mem.diagnosis import inspect_index

    report = inspect_index(run.project)
    if not report.present or (report.fault is None and report.operations < last_operation):
        raise StorageError(
            f"the index cannot be kept: {report.database.parent} cannot be written to, so each search makes one of "
            "its own in main memory; give this user the right to write there"
        )


def add_to(app: typer.Typer, panel: str) -> None:
    """Add these commands to the command line."""
    for command in (search, index):
        app.command(rich_help_panel=panel)(command)

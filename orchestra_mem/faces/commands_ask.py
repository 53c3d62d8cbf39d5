"""Commands that only read: context, status, ops, sessions, expand, facts, losses."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from orchestra_mem.errors import NotFoundError
from orchestra_mem.faces.commands_retrieve import bring_up
from orchestra_mem.faces.shell import DebugOption, JsonOption, ProjectOption, Shell, as_json_object, shell
from orchestra_mem.faces.times import parse_time
from orchestra_mem.types import MustKeepKind

if TYPE_CHECKING:
    from orchestra_mem.core.context.rendered import OrchestratorContext
    from orchestra_mem.manager import OrchestratorContextManager
    from orchestra_mem.types import Json

SessionOption = Annotated[str | None, typer.Option("--session", metavar="ID", help="A session's id, or how it begins.")]


def context(
    for_operation: Annotated[str, typer.Option("--for", metavar="TYPE", help="The operation it is for.")] = "prompt",
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=0, help="The budget. Default: the window up to its refresh.")
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", metavar="TEXT", help="Recall memories for this; they come at the end.")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", metavar="", help="Why each item entered, was shortened, or stayed out, instead."),
    ] = False,
    messages: Annotated[bool, typer.Option("--messages", metavar="", help="As chat messages, in JSON.")] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Print what the model would be given before an operation, as it is.

    Example: orchestra-mem context --max-tokens 2000 > prompt.md
    """
    with shell(project, as_json, debug) as run:
        with run.open() as memory:
            if query is not None:
                bring_up(memory)
            found = memory.get_orchestrator_context(for_operation, max_tokens, query=query)
        for note in found.notes:
            run.tell(f"orchestra-mem: {note}")
        if as_json:
            run.answer(_context_record(found))
        elif messages:
            run.answer([dict(message) for message in found.as_messages()])
        elif explain:
            run.text(found.explain())
        else:
            run.text(found.render())


def _context_record(found: OrchestratorContext) -> dict[str, Json]:
    return {
        "for_operation": found.for_operation, "budget_tokens": found.budget_tokens, "tokens": found.tokens,
        "counter": found.counter, "exact": found.exact, "parts": found.as_dict(), "text": found.render(),
        "messages": [dict(message) for message in found.as_messages()], "explain": found.explain(),
        "notes": [*found.notes],
    }  # fmt: skip


def status(project: ProjectOption = None, as_json: JsonOption = False, debug: DebugOption = False) -> None:
    """Show how full the window is, what the tiers hold, where the documents lie, and what is wrong.

    Example: orchestra-mem status
    """
    with shell(project, as_json, debug) as run:
        with run.open() as memory:
            record = _status_record(run, memory)
        if as_json:
            return run.answer(record)
        from orchestra_mem.faces.rendering import status_view

        run.show(*status_view(record))
    return None


def _status_record(run: Shell, memory: OrchestratorContextManager) -> dict[str, Json]:
    from orchestra_mem.diagnosis import index_words, inspect_index
    from orchestra_mem.types import DocumentName, OperationFilter, SessionStatus

    # First, as what it meets on its way belongs to the problems.
    found = memory.get_orchestrator_context("status")
    stats = memory.get_stats()
    tracker = memory.context_tracker
    sessions = memory.sessions()
    session_path = memory.session_memory.path
    documents: dict[str, Json] = {name.value: str(memory.episodic_memory.path(name)) for name in DocumentName}
    newest = memory.operations(OperationFilter(limit=1))
    return {
        "project": str(run.project),
        "search_index": index_words(inspect_index(run.project), newest[-1].id if newest else 0),
        "documents": documents | {"session": str(session_path) if session_path else None},
        "thresholds": {
            "warning": tracker.warning_threshold, "refresh": tracker.refresh_threshold,
            "critical": tracker.critical_threshold,
        },
        "next_context": {"tokens": found.tokens, "budget_tokens": found.budget_tokens},
        "sessions": {
            "total": len(sessions),
            "archived": sum(session.status is SessionStatus.ARCHIVED for session in sessions),
        },
        **stats, "problems": _problems(memory, stats["problems"]),
    }  # fmt: skip


def _problems(memory: OrchestratorContextManager, known: Json) -> list[Json]:
    """What is known to be wrong, and whether the model can be had, which may not have been needed yet."""
    from orchestra_mem.diagnosis import why_unusable

    assert isinstance(known, list)
    model = memory.model
    if model is None or any(as_json_object(problem)["subject"] == "language model" for problem in known):
        return known
    why = why_unusable(model)
    return [*known, {"subject": "language model", "since": None, "problem": why}] if why else known


def ops(
    operation_type: Annotated[str | None, typer.Option("--type", help="Of this type.")] = None,
    session: SessionOption = None,
    agent: Annotated[str | None, typer.Option("--agent", help="By this agent.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="From then on; ISO 8601, or a span back as in 2h.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Before then.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="N", help="The newest N; 0 for all.")] = 20,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List operations of all sessions, oldest first. With --json they are there in full.

    Example: orchestra-mem ops --type decision --since 7d
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.build import utc_now
        from orchestra_mem.serialize import to_object
        from orchestra_mem.types import OperationFilter

        now = utc_now()
        where = OperationFilter(
            type=operation_type, agent=agent, since=when(since, now, "--since"), until=when(until, now, "--until"),
            limit=limit or None,
        )  # fmt: skip
        with run.open() as memory:
            if session is not None:
                where = replace(where, session=session_id(memory, session))
            found = memory.operations(where)
        limited = _limited(run, len(found), limit)
        if as_json:
            return run.answer([to_object(operation) for operation in found])
        from orchestra_mem.faces.rendering import operations_view

        run.show(*operations_view(found, limited=limited))
    return None


def _limited(run: Shell, count: int, limit: int) -> bool:
    """Whether there may be more than the limit; with `--json`, whose list has no place for it, it is told on stderr."""
    limited = bool(limit) and count == limit
    if limited and run.as_json:
        run.tell(f"the newest {count:,}; --limit 0 lists all")
    return limited


def session_id(memory: OrchestratorContextManager, beginning: str) -> str:
    """The session that begins so.

    Raises:
        NotFoundError: none does, or several do.
    """
    found = [session.id for session in memory.sessions() if session.id.startswith(beginning)]
    if len(found) != 1:
        many = "several sessions begin" if found else "no session begins"
        raise NotFoundError(f"{many} with {beginning!r}; `orchestra-mem sessions` lists them")
    return found[0]


def when(given: str | None, now: datetime, option: str) -> datetime | None:
    """A time given as an option; see `parse_time`.

    Raises:
        BadParameter: it is none.
    """
    try:
        return parse_time(given, now)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def sessions(project: ProjectOption = None, as_json: JsonOption = False, debug: DebugOption = False) -> None:
    """List the sessions, oldest first.

    Example: orchestra-mem sessions
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.serialize import to_object

        with run.open() as memory:
            found = memory.sessions()
        if as_json:
            return run.answer([to_object(session) for session in found])
        from orchestra_mem.faces.rendering import sessions_view

        run.show(*sessions_view(found))
    return None


def expand(
    reference: Annotated[str, typer.Argument(help="What search names: op104, S12, K7, decision_log.md:41, story 5.")],
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show what stands around a hit, then the originals behind it, word for word.

    S12 is a summary, K7 a kept fact, op104 an operation, decision_log.md:41 a line, story 5 a work item.

    Example: orchestra-mem expand S12
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.faces.search_rendering import place_record
        from orchestra_mem.serialize import to_object

        with run.open() as memory:
            found = memory.expand(reference)
        if as_json:
            return run.answer(
                {
                    "reference": found.reference,
                    "operations": [to_object(operation) for operation in found.operations],
                    "summary": to_object(found.summary) if found.summary else None,
                    "fact": to_object(found.fact) if found.fact else None,
                    "around": [to_object(operation) for operation in found.around],
                    "place": place_record(found),
                    "item": to_object(found.item) if found.item else None,
                    "events": [to_object(event) for event in found.events],
                }
            )
        from orchestra_mem.faces.rendering import expansion_text
        from orchestra_mem.faces.search_rendering import surroundings_text

        run.text(surroundings_text(found) + expansion_text(found))
    return None


def facts(
    kind: Annotated[
        MustKeepKind | None, typer.Option("--kind", metavar="KIND", help=f"One of: {', '.join(MustKeepKind)}.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", metavar="", help="Also those that were taken back or are done.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="N", help="The newest N; 0 for all.")] = 50,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List what may not be lost: decisions, rules, roles, failures, open items, as far as it was looked for.

    Example: orchestra-mem facts --kind decision --all
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.serialize import to_object

        with run.open() as memory:
            found = memory.facts(kind, standing=not everything, limit=limit or None)
        limited = _limited(run, len(found), limit)
        if as_json:
            return run.answer([to_object(fact) for fact in found])
        from orchestra_mem.faces.rendering import facts_view

        run.show(*facts_view(found, limited=limited))
    return None


def losses(
    session: SessionOption = None,
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="N", help="The newest N; 0 for all.")] = 20,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List what was summarised: what each summary covers, its ratio, and the identifiers that it dropped.

    Example: orchestra-mem losses --limit 5
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.serialize import to_object

        with run.open() as memory:
            found = memory.losses(session, limit=limit or None)
        limited = _limited(run, len(found), limit)
        if as_json:
            return run.answer([to_object(summary) for summary in found])
        from orchestra_mem.faces.rendering import losses_view

        run.show(*losses_view(found, limited=limited))
    return None


def add_to(app: typer.Typer, panel: str) -> None:
    """Add these commands."""
    for command in (context, status, ops, sessions, expand, facts, losses):
        app.command(rich_help_panel=panel)(command)

"""Commands that only read: context, status, ops, sessions, expand, facts, losses."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from orchestra_mem.errors import EmbedderError, NotFoundError, SearchError, StorageError
from orchestra_mem.faces.command import (
    CommandResult,
    LimitOption,
    SessionOption,
    SinceOption,
    UntilOption,
    command,
    flag,
    recall_views,
    tell_limited,
    tell_notes,
    views,
)
from orchestra_mem.faces.shell import Shell, as_json_object
from orchestra_mem.faces.times import time_span
from orchestra_mem.types import MustKeepKind

if TYPE_CHECKING:
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.memory.recall import Expansion
    from orchestra_mem.types import Json


@command("Ask")
def context(
    run: Shell,
    memory: OrchestratorContextManager,
    for_operation: Annotated[str, Option("--for", metavar="TYPE", help="The operation it is for.")] = "prompt",
    max_tokens: Annotated[
        int | None, Option("--max-tokens", min=0, help="The budget. Default: the window up to its refresh.")
    ] = None,
    query: Annotated[
        str | None, Option("--query", metavar="TEXT", help="Recall memories for this; they come at the end.")
    ] = None,
    explain: Annotated[
        bool, flag("--explain", "Why each item entered, was shortened, or stayed out, instead.")
    ] = False,
    messages: Annotated[bool, flag("--messages", "As chat messages, in JSON.")] = False,
) -> CommandResult:
    """Print what the model would be given before an operation, as it is.

    Example: orchestra-mem context --max-tokens 2000 > prompt.md
    """
    if query is not None:
        bring_up(memory)
    found = memory.get_orchestrator_context(for_operation, max_tokens, query=query)
    tell_notes(run, found.notes)
    if not run.as_json:
        if messages:
            return CommandResult(None, json.dumps(found.as_messages(), indent=2) + "\n")
        return CommandResult(None, found.explain() if explain else found.render())
    record = {
        "for_operation": found.for_operation, "budget_tokens": found.budget_tokens, "tokens": found.tokens,
        "counter": found.counter, "exact": found.exact, "parts": found.as_dict(), "text": found.render(),
        "messages": [dict(message) for message in found.as_messages()], "explain": found.explain(),
        "notes": [*found.notes],
    }  # fmt: skip
    return CommandResult(record, "")


def bring_up(memory: OrchestratorContextManager) -> None:
    """Take everything into the index first; where that cannot be, the answer says so itself."""
    with suppress(SearchError, StorageError, EmbedderError):
        memory.update_index()


@command("Ask")
def status(run: Shell, memory: OrchestratorContextManager) -> CommandResult:
    """Show how full the window is, what the tiers hold, where the documents lie, and what is wrong.

    Example: orchestra-mem status
    """
    record = _status_record(run, memory)
    return CommandResult(record, lambda: views.status_view(record))


def _status_record(run: Shell, memory: OrchestratorContextManager) -> dict[str, Json]:
    from orchestra_mem.doctor import index_words, inspect_index
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
    """List what is known to be wrong, and whether the model can be had, which may not have been needed yet."""
    from orchestra_mem.doctor import why_unusable

    assert isinstance(known, list)
    model = memory.model
    if model is None or any(as_json_object(problem)["subject"] == "language model" for problem in known):
        return known
    why = why_unusable(model)
    return [*known, {"subject": "language model", "since": None, "problem": why}] if why else known


@command("Ask")
def ops(
    run: Shell,
    operation_type: Annotated[str | None, Option("--type", help="Of this type.")] = None,
    session: SessionOption = None,
    agent: Annotated[str | None, Option("--agent", help="By this agent.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = 20,
) -> CommandResult:
    """List operations of all sessions, oldest first. With --json they are there in full.

    Example: orchestra-mem ops --type decision --since 7d
    """
    from orchestra_mem.types import OperationFilter

    first, end = time_span(since, until)
    where = OperationFilter(type=operation_type, agent=agent, since=first, until=end, limit=limit or None)
    with run.open() as memory:
        if session is not None:
            where = replace(where, session=session_id(memory, session))
        found = memory.operations(where)
    limited = tell_limited(run, len(found), limit)
    return CommandResult(found, lambda: views.operations_view(found, limited=limited))


def session_id(memory: OrchestratorContextManager, beginning: str) -> str:
    """Find the session that begins so.

    Raises:
        NotFoundError: none does, or several do.
    """
    found = [session.id for session in memory.sessions() if session.id.startswith(beginning)]
    if len(found) != 1:
        many = "several sessions begin" if found else "no session begins"
        raise NotFoundError(f"{many} with {beginning!r}; `orchestra-mem sessions` lists them")
    return found[0]


@command("Ask")
def sessions(memory: OrchestratorContextManager) -> CommandResult:
    """List the sessions, oldest first.

    Example: orchestra-mem sessions
    """
    found = memory.sessions()
    return CommandResult(found, lambda: views.sessions_view(found))


@command("Ask")
def expand(
    memory: OrchestratorContextManager,
    reference: Annotated[str, Argument(help="What search names: op104, S12, K7, decision_log.md:41, story 5.")],
) -> CommandResult:
    """Show what stands around a hit, then the originals behind it, word for word.

    S12 is a summary, K7 a kept fact, op104 an operation, decision_log.md:41 a line, story 5 a work item.

    Example: orchestra-mem expand S12
    """
    found = memory.expand(reference)
    record = {
        "reference": found.reference, "operations": found.operations, "summary": found.summary, "fact": found.fact,
        "around": found.around, "place": _place_record(found), "item": found.item, "events": found.events,
    }  # fmt: skip
    return CommandResult(record, lambda: recall_views.surroundings_text(found) + recall_views.expansion_text(found))


def _place_record(found: Expansion) -> dict[str, Json] | None:
    """Give the passage of a document that was asked for, and those around it."""
    if found.place is None:
        return None
    place = found.place
    return {
        "document": str(place.document), "heading": [*place.passage.heading], "line": place.passage.line,
        "text": place.passage.text, "before": [{"line": each.line, "text": each.text} for each in place.before],
        "behind": [{"line": each.line, "text": each.text} for each in place.behind],
    }  # fmt: skip


@command("Ask")
def facts(
    run: Shell,
    memory: OrchestratorContextManager,
    kind: Annotated[
        MustKeepKind | None, Option("--kind", metavar="KIND", help=f"One of: {', '.join(MustKeepKind)}.")
    ] = None,
    everything: Annotated[bool, flag("--all", "Also those that were taken back or are done.")] = False,
    limit: LimitOption = 50,
) -> CommandResult:
    """List what may not be lost: decisions, rules, roles, failures, open items, as far as it was looked for.

    Example: orchestra-mem facts --kind decision --all
    """
    found = memory.facts(kind, standing=not everything, limit=limit or None)
    limited = tell_limited(run, len(found), limit)
    return CommandResult(found, lambda: views.facts_view(found, limited=limited))


@command("Ask")
def losses(
    run: Shell, memory: OrchestratorContextManager, session: SessionOption = None, limit: LimitOption = 20
) -> CommandResult:
    """List what was summarised: what each summary covers, its ratio, and the identifiers that it dropped.

    Example: orchestra-mem losses --limit 5
    """
    found = memory.losses(session, limit=limit or None)
    limited = tell_limited(run, len(found), limit)
    return CommandResult(found, lambda: recall_views.losses_view(found, limited=limited))

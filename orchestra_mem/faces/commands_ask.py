"""Commands that only read, search among them: they tell what the memory holds, and what it has for a question."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option

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
from orchestra_mem.faces.shell import Shell
from orchestra_mem.faces.times import time_span
from orchestra_mem.search_types import SearchFilter, SearchMode, Tier
from orchestra_mem.types import MustKeepKind, OperationFilter

if TYPE_CHECKING:
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.retrieval.indexer import Backlog


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
        _bring_up(run, memory)
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


def _bring_up(run: Shell, memory: OrchestratorContextManager) -> None:
    """Take everything into the index first; where that cannot be, the answer says so itself."""
    with suppress(SearchError, StorageError, EmbedderError):
        _update_index(run, memory)


def _update_index(run: Shell, memory: OrchestratorContextManager, *, anew: bool = False) -> None:
    """Bring the index up to the memory, with a bar where that takes long."""
    with run.progress("passages") as bar:
        task = bar.add_task("indexing", total=None)

        def told(left: Backlog) -> None:
            count = left.operations + left.vectors
            total = max(count, int(bar.tasks[0].total or 0))
            bar.update(task, total=total, completed=total - count)

        memory.update_index(told, anew=anew)


@command("Ask")
def status(run: Shell, memory: OrchestratorContextManager) -> CommandResult:
    """Show how full the window is, what the tiers hold, where the documents lie, and what is wrong.

    Example: orchestra-mem status
    """
    from orchestra_mem.doctor import index_words, inspect_index
    from orchestra_mem.types import DocumentName, SessionStatus

    # First, as what it meets on its way belongs to the problems.
    found = memory.get_orchestrator_context("status")
    stats = memory.get_stats()
    tracker, sessions, session_path = memory.context_tracker, memory.sessions(), memory.session_memory.path
    documents = {name.value: str(memory.episodic_memory.path(name)) for name in DocumentName}
    newest = memory.operations(OperationFilter(limit=1))
    record = {
        "project": str(run.project),
        "search_index": index_words(inspect_index(run.project), newest[-1].id if newest else 0),
        "documents": documents | {"session": str(session_path) if session_path else None},
        "thresholds": {name: getattr(tracker, f"{name}_threshold") for name in ("warning", "refresh", "critical")},
        "next_context": {"tokens": found.tokens, "budget_tokens": found.budget_tokens},
        "sessions": {
            "total": len(sessions),
            "archived": sum(session.status is SessionStatus.ARCHIVED for session in sessions),
        },
        **stats, "problems": _problems(memory, stats["problems"]),
    }  # fmt: skip
    return CommandResult(record, lambda: views.status_view(record))


def _problems(memory: OrchestratorContextManager, known: Any) -> list[Any]:
    """List what is known to be wrong, and whether the model can be had, which may not have been needed yet."""
    from orchestra_mem.doctor import why_unusable

    model, subject = memory.model, "language model"
    if model is None or any(problem["subject"] == subject for problem in known):
        return [*known]
    why = why_unusable(model)
    return [*known, {"subject": subject, "since": None, "problem": why}] if why else [*known]


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
    return CommandResult(found, lambda: recall_views.expansion_text(found))


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


@command("Ask")
def search(
    run: Shell,
    query: Annotated[str, Argument(help="Words, a question, or names such as #12 or src/app.py.")],
    tiers: Annotated[
        list[Tier] | None, Option("--tier", metavar="TIER", help=f"Only of: {', '.join(Tier)}. May be repeated.")
    ] = None,
    kinds: Annotated[
        list[str] | None,
        Option("--kind", metavar="KIND", help="Only this type of operation, document or fact. May be repeated."),
    ] = None,
    session: SessionOption = None,
    agent: Annotated[str | None, Option("--agent", help="Only by this agent.")] = None,
    item: Annotated[int | None, Option("--item", metavar="N", help="Only about this work item.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    mode: Annotated[
        SearchMode, Option("--mode", metavar="MODE", help=f"By words, meaning or both: {', '.join(SearchMode)}.")
    ] = SearchMode.HYBRID,
    limit: Annotated[int, Option("--limit", min=1, metavar="N", help="So many hits at most.")] = 10,
    explain: Annotated[bool, flag("--explain", "Why each hit stands where it does: ranks, scores, shares.")] = False,
) -> CommandResult:
    """Find what answers a question, in all tiers and archives, by words and by meaning. 1 where nothing does.

    Example: orchestra-mem search "how do we deploy" --since 30d
    """
    from orchestra_mem.serialize import to_object

    first, end = time_span(since, until)
    with run.open() as memory:
        _bring_up(run, memory)
        where = SearchFilter(
            tiers=tuple(tiers or ()), kinds=tuple(kinds or ()), agent=agent, item=item, since=first, until=end,
            session=None if session is None else session_id(memory, session),
        )  # fmt: skip
        found = memory.search(query, where=where, mode=mode, limit=limit)
        lines = memory.hit_lines(found.hits)
    tell_notes(run, found.notes)
    hits = [to_object(hit) | {"line": line or None} for hit, line in zip(found.hits, lines, strict=True)]
    record = {"hits": hits, "notes": [*found.notes]}
    return CommandResult(
        record, lambda: recall_views.hits_view(found.hits, lines, explain=explain), exit_code=0 if found.hits else 1
    )


@command("Ask")
def index(
    run: Shell,
    anew: Annotated[bool, flag("--anew", "Throw away what is there first, as after a change of model.")] = False,
) -> CommandResult:
    """Bring the search index up to the memory now. Searches do so themselves, in pieces.

    Example: orchestra-mem index --anew
    """
    with run.open() as memory:
        newest = memory.operations(OperationFilter(limit=1))
        _update_index(run, memory, anew=anew)
    _require_kept(run, newest[-1].id if newest else 0)
    if not run.as_json:
        run.tell("the index has everything")
    return CommandResult({"complete": True}, "")


def _require_kept(run: Shell, last_operation: int) -> None:
    """Make sure that the index lies on the disk: where nothing may be written each search makes one for itself alone.

    Raises:
        StorageError: it does not.
    """
    from orchestra_mem.doctor import inspect_index

    report = inspect_index(run.project)
    if not report.present or (report.fault is None and report.operations < last_operation):
        raise StorageError(
            f"the index cannot be kept: {report.database.parent} cannot be written to, so each search makes one of "
            "its own; give this user the right to write there"
        )


def _asked(task: str) -> str:
    """Require that something is to be done."""
    if not task.strip():
        raise BadParameter("it is empty: say what is to be done", param_hint="TASK")
    return task


TaskArgument = Annotated[str, Argument(help="What is to be done.", callback=_asked)]
AgentsOption = Annotated[
    list[str] | None, Option("--agent", help="Who will do it: their work goes a little before. May be repeated.")
]


@command("Ask")
def retrieve(
    run: Shell,
    memory: OrchestratorContextManager,
    task: TaskArgument,
    max_tokens: Annotated[int, Option("--max-tokens", min=0, metavar="N", help="The budget.")] = 2_000,
    agents: AgentsOption = None,
    pattern: Annotated[
        str | None, Option("--pattern", help="How they work together: what was done so goes a little before.")
    ] = None,
    explain: Annotated[bool, flag("--explain", "Why each entry was recalled and shown as it is, instead.")] = False,
) -> CommandResult:
    """Print what the memory has for a task, for a model: an index with costs, then the best entries. 1 where nothing.

    Example: orchestra-mem retrieve "deploy the shop" --max-tokens 1000
    """
    _bring_up(run, memory)
    found = memory.retriever.retrieve_context(task, agents=agents or (), pattern=pattern, max_tokens=max_tokens)
    tell_notes(run, found.notes)
    return CommandResult(
        found.as_dict(), found.explain() if explain else found.text, exit_code=0 if found.entries else 1
    )


@command("Ask")
def recommend(
    run: Shell,
    memory: OrchestratorContextManager,
    task: TaskArgument,
    agents: AgentsOption = None,
    limit: Annotated[int, Option("--limit", min=1, metavar="N", help="So many of each kind at most.")] = 3,
) -> CommandResult:
    """Print what past decisions, rules, failures and similar tasks say for a task, with their sources. 1 where nothing.

    Example: orchestra-mem recommend "deploy the shop" --json
    """
    _bring_up(run, memory)
    found = memory.retriever.get_recommendations(task, agents=agents or (), limit=limit)
    tell_notes(run, found.notes)
    return CommandResult(found.as_dict(), found.render, exit_code=0 if any(found.groups()) else 1)

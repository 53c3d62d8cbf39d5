"""Commands that query the memory: context, status, history, facts, search, retrieval and summaries."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from typer import BadParameter

from orchestra_mem.errors import EmbedderError, NotFoundError, SearchError, StorageError
from orchestra_mem.faces import records
from orchestra_mem.faces.command import CommandResult, Invocation, argument, command, option, recall_views, views
from orchestra_mem.faces.inputs import LimitOption, SessionOption, SinceOption, UntilOption, agent_name, up_to
from orchestra_mem.search_types import SearchFilter, SearchMode, Tier
from orchestra_mem.serialize import readable_json
from orchestra_mem.types import MustKeepKind, OperationFilter

if TYPE_CHECKING:
    from orchestra_mem.compression.service import SummaryHistory
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.retrieval.indexer import Backlog
    from orchestra_mem.retrieval.search import Answer


AllProjectsOption = Annotated[bool, option("--all-projects", "Use all listed projects; each result names its project.")]


@command("Ask")
def context(
    run: Invocation,
    memory: OrchestratorContextManager,
    for_operation: Annotated[
        str, option("--for TYPE", "The type of the operation that the context is for.")
    ] = "prompt",
    max_tokens: Annotated[
        int | None,
        option("--max-tokens N", "The budget in tokens. Default: the window up to its refresh threshold.", min=0),
    ] = None,
    query: Annotated[str | None, option("--query TEXT", "Add memories recalled for this query, at the end.")] = None,
    explain: Annotated[
        bool, option("--explain", "Print instead why each item was included, shortened or left out.")
    ] = False,
    messages: Annotated[bool, option("--messages", "Print as chat messages, in JSON.")] = False,
) -> CommandResult:
    """Print the exact context that the model would get before an operation.

    Example: orchestra-mem context --max-tokens 2000 > prompt.md
    """
    if query is not None:
        _bring_up(run, memory)
    found = memory.get_orchestrator_context(for_operation, max_tokens, query=query)
    record = records.context_record(found)
    shown = record["explain"] if explain else record["text"]
    notes = _lacks(found.notes)
    if not (record["text"] or explain):
        notes.append(f"nothing is recorded, or nothing fits {found.budget_tokens:,} tokens; --explain shows which")
    return CommandResult(record, readable_json(record["messages"], indent=2) + "\n" if messages else shown, notes=notes)


def _lacks(notes: Iterable[str]) -> list[str]:
    return [f"orchestra-mem: {note}" for note in notes]


def _bring_up(run: Invocation, memory: OrchestratorContextManager) -> None:
    """Bring the index up to date. Ignore failures, because the notes of the search answer report them."""
    with suppress(SearchError, StorageError, EmbedderError):
        _update_index(run, memory)


def _update_index(run: Invocation, memory: OrchestratorContextManager, *, anew: bool = False) -> None:
    """Bring the search index up to date, and show the progress."""
    with run.progress("passages") as bar:
        task = bar.add_task("indexing", total=None)

        def show(left: Backlog) -> None:
            count = left.operations + left.vectors
            total = max(count, int(bar.tasks[0].total or 0))
            bar.update(task, total=total, completed=total - count)

        memory.update_index(show, anew=anew, facts=True)


@command("Ask")
def status(run: Invocation, memory: OrchestratorContextManager) -> CommandResult:
    """Show how full the window is, what the tiers hold, where the documents are, and what is wrong.

    Example: orchestra-mem status
    """
    from orchestra_mem.faces.status_lines import status_lines

    record = records.status_record(memory, run.project)
    return CommandResult(record, lambda: status_lines(record))


@command("Ask")
def ops(
    memory: OrchestratorContextManager,
    operation_type: Annotated[str | None, option("--type TYPE", "Only of this type.")] = None,
    session: SessionOption = None, agent: Annotated[str | None, option("--agent NAME", "Only by this agent.")] = None,
    since: SinceOption = None, until: UntilOption = None, limit: LimitOption = 20,
) -> CommandResult:  # fmt: skip
    """List operations of all sessions, oldest first; in full with --json.

    Example: orchestra-mem ops --type decision --since 7d
    """
    found = memory.operations(
        OperationFilter(
            session=_session_id(memory, session), type=operation_type, agent=agent, since=since, until=until,
            limit=limit or None,
        )
    )  # fmt: skip
    return CommandResult(found, lambda: views.operations_view(found), notes=up_to(found, limit))


def _session_id(memory: OrchestratorContextManager, beginning: str | None) -> str | None:
    """Return the only session id that starts with `beginning`; None if `beginning` is None.

    Raises:
        NotFoundError: No session matches, or several do.
    """
    if beginning is None:
        return None
    found = [session.id for session in memory.sessions() if session.id.startswith(beginning)]
    if len(found) != 1:
        many = "several session ids begin" if found else "no session id begins"
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
    reference: Annotated[
        str, argument("REFERENCE", "A reference that search shows: op104, S12, K7, M3, decision_log.md:41, story 5.")
    ],
) -> CommandResult:
    """Show the text around a search hit, then the original operations, word for word.

    S12 is a summary, K7 a fact, op104 an operation, decision_log.md:41 a line, story 5 a work item, M3 a catalog item.

    Example: orchestra-mem expand S12
    """
    found = memory.expand(reference)
    return CommandResult(found, lambda: recall_views.expansion_text(found))


@command("Ask")
def facts(
    memory: OrchestratorContextManager,
    kind: Annotated[MustKeepKind | None, option("--kind KIND", "Only of this kind.")] = None,
    every: Annotated[bool, option("--all", "Include facts that are superseded, removed or done.")] = False,
    since: SinceOption = None,
    limit: LimitOption = 50,
) -> CommandResult:
    """List the facts that summaries must keep: decisions, rules, roles, failures, completions, open items, insights.

    Example: orchestra-mem facts --kind decision --since Monday
    """
    found = memory.facts(kind, standing=not every, since=since, limit=limit or None)
    return CommandResult(found, lambda: views.facts_view(found), notes=up_to(found, limit))


@command("Ask")
def losses(memory: OrchestratorContextManager, session: SessionOption = None, limit: LimitOption = 20) -> CommandResult:
    """List what each summary covers and has lost: operations, ratio, and dropped identifiers.

    Example: orchestra-mem losses --limit 5
    """
    found = memory.losses(_session_id(memory, session), limit=limit or None)
    return CommandResult(found, lambda: recall_views.losses_view(found), notes=up_to(found, limit))


@command("Ask")
def search(
    run: Invocation,
    query: Annotated[str, argument("QUERY", "Words, a question, or names such as #12 or src/app.py.")],
    tiers: Annotated[list[Tier] | None, option("--tier TIER", "Only this tier.")] = None,
    kinds: Annotated[list[str] | None, option("--kind KIND", "Only this type of operation, document or fact.")] = None,
    session: SessionOption = None,
    agent: Annotated[str | None, option("--agent NAME", "Only by this agent.")] = None,
    item: Annotated[int | None, option("--item N", "Only about this work item.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    mode: Annotated[SearchMode, option("--mode MODE", "Search by words, meaning or both.")] = SearchMode.HYBRID,
    limit: Annotated[int, option("--limit N", "At most N hits.", min=1)] = 10,
    explain: Annotated[
        bool, option("--explain", "Show why each hit is ranked as it is: ranks, scores, shares.")
    ] = False,
    all_projects: AllProjectsOption = False,
) -> CommandResult:
    """Search all tiers by words and by meaning, best hits first, uncertain hits last. Exits with 1 if nothing is found.

    Example: orchestra-mem search "how do we deploy" --since 30d
    """
    where = SearchFilter(
        tiers=tuple(tiers or ()), kinds=tuple(kinds or ()), agent=agent, item=item, since=since, until=until
    )
    if all_projects:
        from orchestra_mem.home import Projects

        if session is not None or item is not None:
            raise BadParameter(
                "a session or work item belongs to one project: leave out --session and --item, or --all-projects"
            )
        everywhere = Projects().search(query, where=where, mode=mode, limit=limit)
        return _hits(everywhere, [hit.line for hit in everywhere.hits], explain=explain)
    with run.open() as memory:
        _bring_up(run, memory)
        where = replace(where, session=_session_id(memory, session))
        found = memory.search(query, where=where, mode=mode, limit=limit)
        return _hits(found, memory.hit_lines(found.hits), explain=explain)


def _hits(found: Answer, lines: list[int], *, explain: bool) -> CommandResult:
    return CommandResult(
        records.search_record(found, lines), lambda: recall_views.hits_view(found.hits, lines, explain=explain),
        failed=not found.hits, notes=_lacks(found.notes),
    )  # fmt: skip


@command("Ask")
def index(
    run: Invocation,
    anew: Annotated[bool, option("--anew", "Delete the index first, for example after a change of model.")] = False,
) -> CommandResult:
    """Bring the search index up to date now. Searches also do this, in small steps.

    Example: orchestra-mem index --anew
    """
    from orchestra_mem.doctor.documents import inspect_index

    with run.open() as memory:
        newest = memory.operations(OperationFilter(limit=1))
        _update_index(run, memory, anew=anew)
    report = inspect_index(run.project)
    is_behind = newest and report.operations < newest[-1].id
    if not report.present or (report.fault is None and is_behind):
        raise StorageError(  # if the index cannot be written, each search builds a temporary one
            f"the index was not saved in {report.database.parent}, so each search builds a temporary one: "
            "check that this user may write there"
        )
    return CommandResult({"complete": True}, "", notes=[] if run.as_json else ["the index is up to date"])


def _not_blank(task: str) -> str:
    if not task.strip():
        raise BadParameter("must not be empty: say what is to be done", param_hint="TASK")
    return task


TaskArgument = Annotated[str, argument("TASK", "What is to be done.", callback=_not_blank)]
AgentsOption = Annotated[
    list[str] | None,
    option(
        "--agent NAME", "Who does it: its entries rank higher; only what all of them may see is used.",
        callback=lambda given: [agent_name(name) for name in given or ()],
    ),
]  # fmt: skip


@command("Ask")
def retrieve(
    run: Invocation,
    memory: OrchestratorContextManager,
    task: TaskArgument,
    max_tokens: Annotated[int, option("--max-tokens N", "The budget in tokens.", min=0)] = 2_000,
    agents: AgentsOption = None,
    pattern: Annotated[
        str | None,
        option("--pattern NAME", "How the agents work together: only past work with this `pattern` in its data."),
    ] = None,
    explain: Annotated[
        bool, option("--explain", "Print instead why each entry was recalled and how it is shown.")
    ] = False,
) -> CommandResult:
    """Print what the memory has about a task, for a model to read: an index with token costs, then the best entries.

    Guesses come last, marked `perhaps`. Exits with 1 if nothing is found.

    Example: orchestra-mem retrieve "deploy the shop" --max-tokens 1000
    """
    _bring_up(run, memory)
    found = memory.retriever.retrieve_context(task, agents=agents or (), pattern=pattern, max_tokens=max_tokens)
    memory.catalog.audit.recalled(agents or (), "retrieve_context", (each.source for each in found.entries))
    return CommandResult(
        found.as_dict(), found.explain() if explain else found.text,
        failed=not found.entries, notes=_lacks(found.notes),
    )  # fmt: skip


@command("Ask")
def recommend(
    run: Invocation, task: TaskArgument, agents: AgentsOption = None,
    limit: Annotated[int, option("--limit N", "At most N of each kind.", min=1)] = 3,
    all_projects: AllProjectsOption = False,
) -> CommandResult:  # fmt: skip
    """Print past decisions, rules, failures and similar tasks that matter for a task, with their sources.

    Guesses come last, marked `perhaps`. Exits with 1 if nothing is found.

    Example: orchestra-mem recommend "deploy the shop" --json
    """
    if all_projects:
        from orchestra_mem.home import Projects

        found = Projects().recommend(task, agents=agents or (), limit=limit)
    else:
        with run.open() as memory:
            _bring_up(run, memory)
            found = memory.retriever.get_recommendations(task, agents=agents or (), limit=limit)
            sources = (each.source for _, group in found.groups() for each in group)
            memory.catalog.audit.recalled(agents or (), "get_recommendations", sources)
    if any(found.groups()):
        return CommandResult(found.as_dict(), found.render, notes=_lacks(found.notes))
    notes = _lacks([*found.notes, "no past decision, rule, failure or similar task was found for this task"])
    return CommandResult(found.as_dict(), "", failed=True, notes=notes)


class SummariesAction(StrEnum):
    """Actions of the command `summaries`."""

    LIST = "list"
    REDO = "redo"


@command("Ask")
def summaries(
    run: Invocation,
    action: Annotated[
        SummariesAction, argument("ACTION", "`list` lists summaries, `redo` redoes one with the model.")
    ] = SummariesAction.LIST,
    reference: Annotated[str | None, argument("ID", "The summary to redo, for example S12.")] = None,
    session: SessionOption = None,
    limit: LimitOption = 20,
) -> CommandResult:
    """List summaries: how each was made and checked, what was put back and lost. redo makes the model try again now.

    Example: orchestra-mem summaries redo S12
    """
    if (action is SummariesAction.REDO) != (reference is not None):
        raise BadParameter(
            "`redo` needs the id of a summary, and `list` takes none; example: summaries redo S12", param_hint="ID"
        )
    with run.open() as memory:
        if reference is not None:
            done = memory.compression.redo(reference)
            fault = f", {done.fault}" if done.fault else ""
            what = (
                "the next refresh uses this text:"
                if done.verdict.good
                else "the summary stays unchanged; the attempt's text:"
            )
            head = f"{done.verdict}{fault} ({done.talk.seconds:.1f} s); {what}"
            return CommandResult(done, f"{head}\n\n{done.text.rstrip()}\n")
        found = memory.compression.stories(memory.losses(_session_id(memory, session), limit=limit or None))
    return CommandResult([_story_record(story) for story in found], lambda: recall_views.summaries_view(found))


def _story_record(story: SummaryHistory) -> dict[str, Any]:
    from orchestra_mem.serialize import to_object

    trial, job = story.trial, story.job
    return {
        **to_object(story.summary),
        "model": trial.model if trial else None,
        "tried": trial.verdict if trial else None,
        "fault": (trial.fault if trial else "") or (job.error if job else "") or None,
        "job": job.state if job else None,
        "draft_waits": story.draft is not None,
    }

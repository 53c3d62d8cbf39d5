"""Commands that search and recall, and that look at summaries: search, index, summaries, retrieve, recommend."""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option

from orchestra_mem.errors import EmbedderError, SearchError, StorageError
from orchestra_mem.faces.command import (
    CommandResult,
    LimitOption,
    SessionOption,
    SinceOption,
    UntilOption,
    command,
    flag,
    recall_views,
    tell_notes,
)
from orchestra_mem.faces.commands_ask import bring_up, session_id
from orchestra_mem.faces.shell import Shell
from orchestra_mem.faces.times import time_span
from orchestra_mem.search_types import SearchFilter, SearchMode, Tier
from orchestra_mem.types import OperationFilter

if TYPE_CHECKING:
    from orchestra_mem.compression.service import SummaryStory
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.retrieval.indexer import Backlog


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
        with suppress(SearchError, StorageError, EmbedderError):  # what is there answers, and says what it lacks
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


def _bring_up(run: Shell, memory: OrchestratorContextManager, *, anew: bool = False) -> None:
    """Bring the index up to the memory, with a bar where that takes long."""
    with run.progress("passages") as bar:
        task = bar.add_task("indexing", total=None)

        def told(left: Backlog) -> None:
            count = left.operations + left.vectors
            total = max(count, int(bar.tasks[0].total or 0))
            bar.update(task, total=total, completed=total - count)

        memory.update_index(told, anew=anew)


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
        _bring_up(run, memory, anew=anew)
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


class SummariesAction(StrEnum):
    """What to do with summaries."""

    LIST = "list"
    REDO = "redo"
    STATS = "stats"


@command("Ask")
def summaries(
    run: Shell,
    action: Annotated[
        SummariesAction, Argument(metavar="[redo|stats]", help="Let the model better one; count what came of it.")
    ] = SummariesAction.LIST,
    reference: Annotated[str | None, Argument(metavar="[ID]", help="For redo: as in S12.")] = None,
    session: SessionOption = None,
    limit: LimitOption = 20,
) -> CommandResult:
    """List summaries: how each was made, what the check said, what was put back and lost. redo tries again, now.

    Example: orchestra-mem summaries redo S12
    """
    if (action is SummariesAction.REDO) != (reference is not None):
        raise BadParameter("redo goes with the number of a summary, as in S12", param_hint="ID")
    with run.open() as memory:
        if reference is not None:
            return _redo(memory, reference)
        if action is SummariesAction.STATS:
            stats = memory.compression.stats()
            return CommandResult(stats, lambda: recall_views.stats_view(stats))
        found = memory.compression.stories(memory.losses(session, limit=limit or None))
    return CommandResult([_story_record(story) for story in found], lambda: recall_views.stories_view(found))


def _redo(memory: OrchestratorContextManager, reference: str) -> CommandResult:
    done = memory.compression.redo(reference)
    record = {
        "verdict": done.verdict, "fault": done.fault or None, "method": done.method, "tokens": done.tokens,
        "source_tokens": done.source_tokens, "ratio": round(done.ratio, 4), "put_back": list(done.put_back),
        "dropped": list(done.dropped), "seconds": round(done.talk.seconds, 3), "text": done.text,
    }  # fmt: skip
    fault = f", {done.fault}" if done.fault else ""
    what = "the next refresh puts this in:" if done.verdict.good else "it stays as it is:"
    return CommandResult(record, f"{done.verdict}{fault} ({done.talk.seconds:.1f} s); {what}\n\n{done.text.rstrip()}\n")


def _story_record(story: SummaryStory) -> dict[str, Any]:
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
    bring_up(memory)
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
    bring_up(memory)
    found = memory.retriever.get_recommendations(task, agents=agents or (), limit=limit)
    tell_notes(run, found.notes)
    return CommandResult(found.as_dict(), found.render, exit_code=0 if any(found.groups()) else 1)

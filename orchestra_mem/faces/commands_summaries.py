"""The command for what a model has to do with summaries: summaries, with redo and stats."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from orchestra_mem.faces.commands_ask import SessionOption
from orchestra_mem.faces.shell import DebugOption, JsonOption, ProjectOption, Shell, shell

if TYPE_CHECKING:
    from orchestra_mem.manager import OrchestratorContextManager
    from orchestra_mem.services.compression import SummaryStory
    from orchestra_mem.types import Json


class SummariesAction(StrEnum):
    """What to do with summaries."""

    LIST = "list"
    REDO = "redo"
    STATS = "stats"


def summaries(
    action: Annotated[
        SummariesAction, typer.Argument(metavar="[redo|stats]", help="Let the model better one; count what came of it.")
    ] = SummariesAction.LIST,
    reference: Annotated[str | None, typer.Argument(metavar="[ID]", help="For redo: as in S12.")] = None,
    session: SessionOption = None,
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="N", help="The newest N; 0 for all.")] = 20,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List summaries: how each was made, what the check said, what was put back and lost. redo tries again, now.

    Example: orchestra-mem summaries redo S12
    """
    if (action is SummariesAction.REDO) != (reference is not None):
        raise typer.BadParameter("redo goes with the number of a summary, as in S12", param_hint="ID")
    with shell(project, as_json, debug) as run:
        with run.open() as memory:
            if reference is not None:
                return _redo(run, memory, reference)
            if action is SummariesAction.STATS:
                return _stats(run, memory)
            found = memory.compression.stories(memory.losses(session, limit=limit or None))
        if as_json:
            return run.answer([_record(story) for story in found])
        from orchestra_mem.faces.summary_rendering import stories_view

        run.show(*stories_view(found))
    return None


def _redo(run: Shell, memory: OrchestratorContextManager, reference: str) -> None:
    done = memory.compression.redo(reference)
    if run.as_json:
        return run.answer(
            {
                "verdict": done.verdict.value, "fault": done.fault or None, "method": done.method,
                "tokens": done.tokens, "source_tokens": done.source_tokens, "ratio": round(done.ratio, 4),
                "put_back": list(done.put_back), "dropped": list(done.dropped), "seconds": round(done.talk.seconds, 3),
                "text": done.text,
            }
        )  # fmt: skip
    fault = f", {done.fault}" if done.fault else ""
    what = "the next refresh puts this in:" if done.verdict.good else "it stays as it is:"
    run.text(f"{done.verdict}{fault} ({done.talk.seconds:.1f} s); {what}\n\n{done.text.rstrip()}\n")
    return None


def _stats(run: Shell, memory: OrchestratorContextManager) -> None:
    found = memory.compression.stats()
    if run.as_json:
        return run.answer([*found])
    from orchestra_mem.faces.summary_rendering import stats_view

    run.show(*stats_view(found))
    return None


def _record(story: SummaryStory) -> dict[str, Json]:
    from orchestra_mem.serialize import to_object

    trial, job = story.trial, story.job
    return {
        **to_object(story.summary),
        "model": trial.model if trial else None,
        "tried": trial.verdict.value if trial else None,
        "fault": (trial.fault if trial else "") or (job.error if job else "") or None,
        "job": job.state.value if job else None,
        "draft_waits": story.draft is not None,
    }


def add_to(app: typer.Typer, panel: str) -> None:
    """Add this command."""
    app.command(rich_help_panel=panel)(summaries)

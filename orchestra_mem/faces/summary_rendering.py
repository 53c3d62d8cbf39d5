"""How answers about summaries and models look on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from orchestra_mem.faces.rendering import clipped, plain_table, subject_of
from orchestra_mem.job_types import JobState
from orchestra_mem.services.compression import SummaryStory
from orchestra_mem.types import Json


def stories_view(stories: Sequence[SummaryStory]) -> Iterator[RenderableType]:
    """The answer of `summaries`."""
    if not stories:
        yield Text("nothing has been summarised")
        return
    table = plain_table("", "ratio", "put back", "lost", "method", "verdict", right=["ratio", "put back", "lost"])
    table.expand = True
    table.columns[-1].ratio = 1
    for story in stories:
        summary = story.summary
        table.add_row(
            clipped(f"S{summary.id}" if summary.level else f"S{summary.id} {subject_of(summary)}"),
            f"{summary.ratio:.0%}", str(len(summary.put_back)), str(len(summary.dropped)),
            clipped(summary.method), clipped(_verdict(story)),
        )  # fmt: skip
    yield table
    yield Text("orchestra-mem losses names what was lost, orchestra-mem expand S… gives the originals", style="dim")


def _verdict(story: SummaryStory) -> str:
    """What came of the model's part, and what is still to come."""
    if story.draft is not None:
        return f"{story.draft.verdict}; with the next refresh"
    if story.job is not None and story.job.state is not JobState.FAILED:
        tried = f", {story.job.attempts} tries failed: {story.job.error}" if story.job.attempts else ""
        return f"{story.job.state.value} for the model{tried}" if story.job.since is None else "under way"
    if story.trial is not None:
        return f"{story.trial.verdict}{': ' if story.trial.fault else ''}{story.trial.fault}"
    return story.summary.verdict or "no model was asked"


def stats_view(stats: Sequence[dict[str, Json]]) -> Iterator[RenderableType]:
    """The answer of `summaries stats`."""
    if not stats:
        yield Text("no model was asked to summarise yet")
        return
    counts = ("accepted", "retried", "no_better", "rejected", "failed", "skipped")
    names = ("used", "on retry", "no better", "rejected", "failed", "not tried")
    for model in dict.fromkeys(str(row["model"]) for row in stats):
        yield Text(model, style="bold")
        table = plain_table("content", *names, "seconds", right=[*names, "seconds"])
        for row in stats:
            if row["model"] == model:
                table.add_row(clipped(str(row["content"])), *(str(row[name]) for name in counts), str(row["seconds"]))
        yield table

"""What `search` shows: where each hit stands, when it was said, the passage, and on request why it stands there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from orchestra_mem.core.documents.entries import visible
from orchestra_mem.faces.rendering import clipped
from orchestra_mem.faces.times import short_time

if TYPE_CHECKING:
    from rich.console import RenderableType

    from orchestra_mem.search_types import Hit, Reasons

_PASSAGE_CHARS = 280


def hits_view(hits: Sequence[Hit], *, explain: bool) -> Iterator[RenderableType]:
    """The answer of `search`."""
    if not hits:
        yield Text("nothing was found")
    for number, hit in enumerate(hits, 1):
        chunk = hit.chunk
        head = Text(f"{number:>3}  ", style="dim")
        head.append(chunk.source, style="bold")
        if chunk.heading:
            head.append("  ").append_text(clipped(" > ".join(chunk.heading)))
        elif chunk.title:
            head.append("  ").append_text(clipped(chunk.title))
        tail = [chunk.kind, *([chunk.agent] if chunk.agent else []), *([short_time(chunk.time)] if chunk.time else [])]
        head.append(f"  {', '.join(tail)}  {hit.score:.3f}", style="dim")
        yield head
        yield Text("     ").append_text(_passage(chunk.text))
        if explain:
            yield from (Text(f"     {line}", style="dim") for line in reasons_lines(hit.reasons))


def _passage(text: str) -> Text:
    squeezed = visible(" ".join(text.split()))
    return Text(squeezed if len(squeezed) <= _PASSAGE_CHARS else f"{squeezed[:_PASSAGE_CHARS]} …")


def reasons_lines(reasons: Reasons) -> Iterator[str]:
    """Why a hit stands where it does, line by line."""
    searches = [
        f"{name} {'not found' if rank is None else f'rank {rank}'}, score {score:.3f}"
        for name, rank, score in (
            ("words:", reasons.keyword_rank, reasons.keyword_score),
            ("meaning:", reasons.dense_rank, reasons.dense_score),
        )
    ]
    yield "; ".join(searches)
    if reasons.identifiers:
        yield f"has {', '.join(reasons.identifiers)}"
    yield "score: " + " + ".join(f"{value:.3f} {name}" for name, value in reasons.shares if value)
    if reasons.priors:
        yield "times " + ", ".join(f"{value:.3f} {name}" for name, value in reasons.priors)

"""What `search` shows: where each hit stands, when it was said, the passage, and on request why it stands there.

And what `expand` shows of what stands around one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from orchestra_mem.core.documents.entries import plain_text, visible
from orchestra_mem.faces.rendering import clipped
from orchestra_mem.faces.times import short_time
from orchestra_mem.work_types import WorkKind

if TYPE_CHECKING:
    from rich.console import RenderableType

    from orchestra_mem.search_types import Hit, Reasons
    from orchestra_mem.services.recall import Expansion
    from orchestra_mem.types import Json
    from orchestra_mem.work_types import WorkEvent

_PASSAGE_CHARS = 280


def hits_view(hits: Sequence[Hit], lines: Sequence[int], *, explain: bool) -> Iterator[RenderableType]:
    """The answer of `search`; `lines` are where the hits stand in their documents, 0 for those that stand in none."""
    if not hits:
        yield Text("nothing was found")
    for number, (hit, line) in enumerate(zip(hits, lines, strict=True), 1):
        chunk = hit.chunk
        head = Text(f"{number:>3}  ", style="dim")
        head.append(f"{chunk.source}:{line}" if line else chunk.source, style="bold")
        if chunk.heading and chunk.kind not in set(WorkKind):
            head.append("  ").append_text(clipped(" > ".join(chunk.heading)))
        elif chunk.title:
            head.append("  ").append_text(clipped(chunk.title))
        about = f"item {chunk.item}" if chunk.item is not None and chunk.kind not in set(WorkKind) else ""
        tail = filter(None, (chunk.kind, about, chunk.agent, short_time(chunk.time) if chunk.time else ""))
        head.append(f"  {', '.join(tail)}  {hit.score:.3f}", style="dim")
        yield head
        yield Text("     ").append_text(_passage(chunk.text))
        if explain:
            yield from (Text(f"     {line}", style="dim") for line in reasons_lines(hit.reasons))


def _passage(text: str) -> Text:
    squeezed = visible(" ".join(text.split()))
    return Text(squeezed if len(squeezed) <= _PASSAGE_CHARS else f"{squeezed[:_PASSAGE_CHARS]} …")


def surroundings_text(found: Expansion) -> str:
    """What stands around what `expand` was asked for, before the originals; empty where nothing does."""
    lines = []
    if found.place is not None:
        place = found.place
        lines.append(f"{found.reference}  {' > '.join(place.passage.heading)}".rstrip())
        for passage in (*place.before, place.passage, *place.behind):
            mark = ">" if passage is place.passage else " "
            numbered = enumerate(visible(passage.text).split("\n"), passage.line)
            lines += [f"{mark} {number:>5}  {line}" for number, line in numbered]
        lines.append("")
    if found.item is not None:
        item = found.item
        lines += [f"{item.name}: {item.status.value}", *filter(None, (item.description, *item.acceptance))]
        lines += [_change(event) for event in found.events]
        lines.append("")
    if found.around:
        asked = found.operations[0]
        for operation in sorted((*found.around, asked), key=lambda each: each.id):
            mark = ">" if operation.id == asked.id else " "
            said = visible(" ".join(plain_text(operation, max_chars=_PASSAGE_CHARS).split()))
            lines.append(f"{mark} op{operation.id} {short_time(operation.timestamp)} {operation.type}: {said}")
        lines.append("")
    return "".join(f"{line}\n" for line in lines)


def _change(event: WorkEvent) -> str:
    before = f"{event.before} -> " if event.before else ""
    why = f" ({event.reason})" if event.reason else ""
    return visible(f"  {short_time(event.time)} {event.field}: {before}{event.after or 'none'}{why}")


def place_record(found: Expansion) -> dict[str, Json] | None:
    """The passage of a document that was asked for, and those around it, as JSON."""
    if found.place is None:
        return None
    place = found.place
    return {
        "document": str(place.document),
        "heading": [*place.passage.heading],
        "line": place.passage.line,
        "text": place.passage.text,
        "before": [{"line": each.line, "text": each.text} for each in place.before],
        "behind": [{"line": each.line, "text": each.text} for each in place.behind],
    }


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

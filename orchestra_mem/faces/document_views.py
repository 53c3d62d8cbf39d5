"""How answers about the documents look: conflicts, problems, versions, what an edit came to, changes as they happen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from orchestra_mem.core.text import visible
from orchestra_mem.doctor import DocumentProblem
from orchestra_mem.faces.editing import DocumentChange, Event, TakenIn
from orchestra_mem.faces.times import short_time
from orchestra_mem.faces.views import clipped, counted, plain_table, table_of, told_with_advice
from orchestra_mem.tiers.authorship import BlamedLine
from orchestra_mem.types import Author, MustKeep, MustKeepStatus, Version

_MOST_LINES = 12
_LINE_CHARS = 400
_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_WRITERS = {"person": "green", "agent": "cyan", "compactor": "yellow", "machine": "dim"}


def conflicts_view(records: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    """Show the answer of `conflicts`."""
    if not records:
        yield Text("nothing waits for your word", style="green")
        return
    table = plain_table("", "document", "line>", "yours", "the machine's")
    table.expand = True
    table.columns[0].overflow = "fold"
    for column in table.columns[-2:]:
        column.ratio = 1
    for record in records:
        yours = _side(record["yours"])
        if record["changed_meanwhile"]:
            yours.append(" (changed since)", style="dim")
        table.add_row(record["id"], record["document"], str(record["line"]), yours, _side(record["machine"]))
    yield table
    yield Text("orchestra-mem accept … takes the machine's lines, reject … keeps yours", style="dim")


def _side(text: str) -> Text:
    said = clipped(text)
    return said if said.plain.strip() else Text("(taken out)", style="dim")


def problems_view(problems: Sequence[DocumentProblem]) -> Iterator[RenderableType]:
    """Show the answer of `check`, where something is wrong."""
    yield told_with_advice(
        [("fault", "bold red", "", visible(str(each)), f"→ meanwhile {each.meanwhile}") for each in problems]
    )


def edit_view(
    path: Path, lines: Sequence[str], taken: TakenIn, problems: Sequence[DocumentProblem], *, changed: bool
) -> Iterator[RenderableType]:
    """Show the answer of `edit`; `lines` are those that came and went."""
    if not changed:
        yield Text(f"{path} was not changed")
    else:
        added = sum(line.startswith("+") for line in lines)
        yield Text(f"{path}: {counted(added, 'line')} added, {len(lines) - added:,} removed")
    table = Table.grid(padding=(0, 1))
    for _ in range(3):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for word, style, facts in (
        ("added", "green", taken.added),
        ("changed", "yellow", [now for _, now in taken.changed]),
        ("removed", "red", taken.removed),
    ):
        for fact in facts:
            table.add_row(Text(word, style=style), f"K{fact.id}", fact.kind.value, _fact(fact))
    if table.row_count:
        yield Text("taken in:")
        yield table
    elif changed:
        yield Text("no fact was added, changed or removed; contexts show the text as it stands")
    if problems:
        yield from problems_view(problems)


def _fact(fact: MustKeep) -> Text:
    said = clipped(fact.text)
    said.no_wrap, said.overflow = False, "fold"
    if fact.status in (MustKeepStatus.SUPERSEDED, MustKeepStatus.DONE):
        said.append(f" ({fact.status.value})", style="dim")
    return said


def change_view(time: datetime, found: DocumentChange) -> Text:
    """Show a changed document with the first of its lines, as `watch` shows it."""
    told = {
        Event.NEW: "is new, ", Event.GONE: "is gone, ", Event.CHANGED: "",
        Event.UNREADABLE: "cannot be shown: `orchestra-mem check` tells why",
    }[found.event]  # fmt: skip
    shown = Text(no_wrap=True, overflow="ellipsis")
    shown.append(f"{short_time(time)} ", style="dim")
    shown.append(visible(found.path.stem), style="bold")
    shown.append(f" {told}")
    if found.event is not Event.UNREADABLE:
        shown.append(f"+{found.added:,}", style="green").append(f" -{found.removed:,}", style="red")
    for line in found.lines[:_MOST_LINES]:
        shown.append(f"\n  {line[0]} {_visible_line(line[1:])}", style=_STYLES[line[0]])
    more = len(found.lines) - _MOST_LINES
    if more > 0:
        shown.append(f"\n  … and {counted(more, 'line')} more", style="dim")
    return shown


def _visible_line(line: str) -> str:
    return visible(line[:_LINE_CHARS]).replace("\n", " ").replace("\t", "    ").replace("<\\!--", "<!--")


def versions_view(versions: Sequence[Version]) -> Iterator[RenderableType]:
    """Show the answer of `history`; what a person wrote stands out."""

    def row(each: Version) -> Sequence[Text]:
        style = "bold" if each.author is Author.PERSON else ""
        cells = (str(each.sequence), short_time(each.time), each.author, each.reason, f"{each.size_bytes:,}")
        return [Text(cell, style=style) for cell in cells]

    columns = "version>|kept (UTC)|written by|kept for|bytes>"
    return table_of(versions, row, columns, empty="no earlier texts", wide=False)


def diff_view(diff: str) -> Text:
    """Show a unified difference in colours."""
    shown = Text()
    for line in diff.splitlines():
        style = "bold" if line.startswith(("---", "+++")) else _STYLES.get(line[:1], "")
        shown.append(visible(line) + "\n", style=style)
    shown.right_crop(1)
    return shown


def blame_view(lines: Sequence[BlamedLine]) -> Iterator[RenderableType]:
    """Show the answer of `blame`."""
    digits = len(str(len(lines)))
    for line in lines:
        origin = line.origin
        when = f"{origin.time:%Y-%m-%d %H:%M}" if origin.time else ""
        from_ = ", ".join(
            f"op{first}" if first == last else f"op{first} to {last}" for first, last in origin.operations
        )
        head = f"{origin.writer.value:<9} {when:<16} {from_:<8.20} {line.line:>{digits}} "
        yield Text.assemble((head, _WRITERS[origin.writer.value]), line.text.expandtabs(4))

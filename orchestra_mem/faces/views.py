"""Terminal views: tables and lines, for 80 columns and more. Texts of the memory are never interpreted as markup."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestra_mem.core.documents.entries import entry_title, outcome_words, plain_text
from orchestra_mem.core.text import visible
from orchestra_mem.doctor.memory import Finding, Health
from orchestra_mem.faces.editing import DocumentChange, DocumentEvent
from orchestra_mem.faces.records import counted
from orchestra_mem.serialize import local_day, local_time
from orchestra_mem.settings import DEFAULT_ORIGIN, Settings
from orchestra_mem.tiers.authorship import BlamedLine
from orchestra_mem.types import Author, DocumentFault, MustKeep, MustKeepStatus, Operation, Session, Version
from orchestra_mem.work_types import WorkEvent, WorkItem

_Row = TypeVar("_Row")

_TITLE_CHARS = 400
_CELL_CHARS = 24  # maximum width of all columns except the last
_MARKS = {Health.SOUND: ("ok", "green"), Health.NOTE: ("note", "yellow"), Health.FAULT: ("fault", "bold red")}
_MOST_LINES = 12
_LINE_CHARS = 400
_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_WRITERS = {"person": "green", "agent": "cyan", "compactor": "yellow", "machine": "dim"}


def short_time(time: datetime) -> str:
    """Format a time in this machine's time zone."""
    return f"{local_time(time):%Y-%m-%d %H:%M:%S}"


def plain_table(*columns: str) -> Table:
    """Make a table without a frame; columns whose heads end in `>` are right-aligned."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for head in columns:
        right = head.endswith(">")
        table.add_column(head.rstrip(">"), justify="right" if right else "left", overflow="ellipsis", no_wrap=True)
    return table


def table_of(
    rows: Sequence[_Row], row: Callable[[_Row], Sequence[str | Text]], columns: str, *, empty: str, wide: bool = True,
    hint: str = "",
) -> Iterator[RenderableType]:  # fmt: skip
    """Show rows as a table.

    Args:
        rows: Objects to show, one a row.
        row: Returns the cells of an object.
        columns: Column heads, separated by `|`; see `plain_table`.
        empty: Text to show instead if there are no rows.
        wide: Let the last column take all remaining width.
        hint: Text to show after the table.
    """
    if not rows:
        yield Text(empty)
        return
    table = plain_table(*columns.split("|"))
    if wide:
        table.expand = True
        table.columns[-1].ratio = 1
        for column in table.columns[:-1]:
            column.max_width = _CELL_CHARS
    for each in rows:
        table.add_row(*(clipped(cell) if isinstance(cell, str) else cell for cell in row(each)))
    yield table
    if hint:
        yield Text(hint, style="dim")


def show_whole(view: RenderableType) -> None:
    """Let a table take the width of its longest cells."""
    if isinstance(view, Table):
        view.expand = False
        for column in view.columns:
            column.max_width = None


def clipped(text: str) -> Text:
    """Put a text on one line, which rich truncates at the width of the terminal or column."""
    return Text(" ".join(visible(text[:_TITLE_CHARS]).split()), no_wrap=True, overflow="ellipsis")


def operations_view(operations: Sequence[Operation]) -> Iterator[RenderableType]:
    """Show the result of `ops`."""
    agents = any(operation.agent for operation in operations)

    def row(each: Operation) -> Sequence[str | Text]:
        agent = [each.agent or ""] if agents else []
        return [str(each.id), short_time(each.timestamp), f"{each.tokens:,}", *agent, operation_words(each)]

    columns = f"op>|time|tokens>|{'agent|' if agents else ''}what"
    return table_of(operations, row, columns, empty="no operations")


def operation_words(operation: Operation) -> Text:
    """Describe an operation in one line, in bold if it is critical."""
    title = entry_title(operation.type, operation.data)
    outcome = outcome_words(operation.data)
    if not outcome and ": " not in title:
        outcome = f": {plain_text(operation, max_chars=_TITLE_CHARS)}"
    shown = clipped(title if title.endswith(outcome) else f"{title}{outcome}")
    if operation.critical:
        shown.stylize("bold")
    return shown


def sessions_view(sessions: Sequence[Session]) -> Iterator[RenderableType]:
    """Show the result of `sessions`."""

    def row(each: Session) -> Sequence[str | Text]:
        ended = short_time(each.ended)[:-3] if each.ended else ""
        document = Text(Path(each.archive).name if each.archive else "", overflow="fold", no_wrap=False)
        return each.id[:8], short_time(each.started)[:-3], ended, each.status, document

    return table_of(sessions, row, "session|started|ended|status|document", empty="no sessions")


def facts_view(facts: Sequence[MustKeep]) -> Iterator[RenderableType]:
    """Show the result of `facts`."""

    def row(each: MustKeep) -> Sequence[str | Text]:
        state = "" if each.status is MustKeepStatus.STANDING else f", {each.status}"
        source = f"op{each.operation}" if each.operation else "by hand"
        return f"K{each.id}", each.kind, source, local_day(each.timestamp) + state, each.text

    return table_of(facts, row, "|kind|operation|day|text", empty="no facts")


def settings_view(settings: Settings) -> Iterator[RenderableType]:
    """Show the result of `config show`."""
    table = plain_table("setting", "value", "from")
    for column in table.columns:
        column.overflow, column.no_wrap = "fold", False
    for key, value in settings.flat().items():
        origin = settings.origin_of(key)
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        table.add_row(Text(key), Text(shown or '""'), Text(origin), style="dim" if origin == DEFAULT_ORIGIN else "")
    yield table


def findings_view(findings: Sequence[Finding]) -> Iterator[RenderableType]:
    """Show the result of `doctor`."""
    table = Table.grid(padding=(0, 1))
    for overflow in ("ellipsis", "ellipsis", "fold"):
        table.add_column(no_wrap=overflow != "fold", overflow=overflow)
    for each in findings:
        mark, style = _MARKS[each.health]
        advice = [Text(f"→ {each.advice}", style="dim")] if each.advice else []
        table.add_row(Text(mark, style=style), Text(each.part), Group(Text(each.words), *advice))
    yield table
    faults = sum(finding.health is Health.FAULT for finding in findings)
    yield Text("")
    yield Text(counted(faults, "fault"), style="bold red") if faults else Text("no faults", style="green")


def work_view(items: Sequence[WorkItem]) -> Iterator[RenderableType]:
    """Show the result of `work`."""
    return table_of(
        items, lambda item: (f"#{item.id}", item.kind, item.status, str(item.priority), item.title),
        "id>|kind|status|priority>|title", empty="no work items",
    )  # fmt: skip


def item_view(record: Mapping[str, Any], parent: WorkItem | None) -> Iterator[RenderableType]:
    """Show the result of `work show`."""
    item, progress = record["item"], record["progress"]
    yield Text(visible(item.name), style="bold")
    yield Text(f"{item.status}, priority {item.priority}{f', {visible(item.assignee)}' if item.assignee else ''}")
    if parent:
        yield Text(f"part of {visible(parent.name)}")
    if progress.total:
        yield Text(f"{progress.done:,} of {progress.total:,} done ({progress.share:.0%})")
    if item.depends_on:
        yield Text(f"depends on {', '.join(f'#{each}' for each in item.depends_on)}")
    for blocker in record["blockers"]:
        yield Text(f"waits for {visible(blocker.name)} ({blocker.status})", style="yellow")
    if item.description:
        yield Text(f"\n{visible(item.description)}")
    if item.acceptance:
        yield Text("\n" + "\n".join(f"- {visible(each)}" for each in item.acceptance))
    yield Text("")
    yield from table_of(
        record["events"], lambda event: (short_time(event.time), event.author, event_words(event)), "when|who|what",
        empty="",
    )  # fmt: skip


def event_words(event: WorkEvent) -> str:
    """Describe a change of a work item in one line."""
    before = f"{event.before} -> " if event.before is not None else ""
    return f"{event.field}: {before}{event.after or 'none'}{f' ({event.reason})' if event.reason else ''}"


def conflicts_view(records: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    """Show the result of `conflicts`."""
    if not records:
        yield Text("no conflicts", style="green")
        return
    titles = ["kept", "the other side"] if all(record["sides"] for record in records) else ["yours", "the machine's"]
    table = plain_table("", "document", "line>", *titles)
    table.expand = True
    table.columns[0].overflow = "fold"
    for column in table.columns[-2:]:
        column.ratio = 1
    for record in records:
        mine, theirs = record["sides"] or ("", "")
        yours = _side(mine, record["yours"])
        if record["changed_meanwhile"]:
            yours.append(" (changed since)", style="dim")
        table.add_row(record["id"], record["document"], str(record["line"]), yours, _side(theirs, record["machine"]))
    yield table
    taken, kept = ("the machine's lines", "yours") if titles[0] == "yours" else ("the other side's lines", "the first")
    yield Text(f"orchestra-mem accept … takes {taken}, reject … keeps {kept}", style="dim")


def _side(machine: str, text: str) -> Text:
    said = clipped(text)
    said = said if said.plain.strip() else Text("(deleted)", style="dim")
    return Text(f"{machine}: ").append_text(said) if machine else said


def problems_text(problems: Sequence[DocumentFault]) -> str:
    """Format the faults that `check` found, without wrapping, so that programs can find file:line."""
    return "".join(f"{visible(str(problem))}\n  meanwhile: {problem.meanwhile}\n" for problem in problems)


def change_view(time: datetime, found: DocumentChange) -> Text:
    """Show a change found by `watch`, with the first changed lines."""
    words = {
        DocumentEvent.NEW: "is new, ", DocumentEvent.GONE: "was deleted, ", DocumentEvent.CHANGED: "",
        DocumentEvent.UNREADABLE: "cannot be shown: `orchestra-mem check` shows why",
    }[found.event]  # fmt: skip
    shown = Text(no_wrap=True, overflow="ignore")
    shown.append(f"{short_time(time)} ", style="dim")
    shown.append(visible(found.path.stem), style="bold")
    shown.append(f" {words}")
    if found.event is not DocumentEvent.UNREADABLE:
        shown.append(f"+{found.added:,}", style="green").append(f" -{found.removed:,}", style="red")
    for line in found.lines[:_MOST_LINES]:
        said = visible(line[1 : _LINE_CHARS + 1]).replace("\n", " ").replace("\t", "    ").replace("<\\!--", "<!--")
        shown.append(f"\n  {line[0]} {said}", style=_STYLES[line[0]])
    more = len(found.lines) - _MOST_LINES
    if more > 0:
        shown.append(f"\n  … and {counted(more, 'line')} more", style="dim")
    return shown


def versions_view(versions: Sequence[Version]) -> Iterator[RenderableType]:
    """Show the result of `history`, with versions by people in bold."""

    def row(each: Version) -> Sequence[Text]:
        style = "bold" if each.author is Author.PERSON else ""
        cells = (str(each.sequence), short_time(each.time), each.author, each.reason, f"{each.size_bytes:,}")
        return [Text(cell, style=style) for cell in cells]

    columns = "version>|saved|written by|reason|bytes>"
    return table_of(versions, row, columns, empty="no earlier versions", wide=False)


def diff_view(diff: str) -> Iterator[RenderableType]:
    """Show a unified diff in colours."""
    for line in diff.splitlines():
        style = "bold" if line.startswith(("---", "+++")) else _STYLES.get(line[:1], "")
        yield Text(visible(line), style=style, no_wrap=True, overflow="ignore")


def blame_view(lines: Sequence[BlamedLine]) -> Iterator[RenderableType]:
    """Show the result of `blame`."""
    digits = len(str(len(lines)))
    for line in lines:
        origin = line.origin
        when = short_time(origin.time)[:-3] if origin.time else ""
        from_ = ", ".join(
            f"op{first}" if first == last else f"op{first} to {last}" for first, last in origin.operations
        )
        head = f"{origin.writer.value:<9} {when:<16} {from_:<8.20} {line.line:>{digits}} "
        # One output line per document line, however long: terminals wrap it, and programs can parse it.
        yield Text(head, style=_WRITERS[origin.writer.value], no_wrap=True, overflow="ignore").append(
            line.text.expandtabs(4), style="not dim default"
        )

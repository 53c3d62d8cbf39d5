"""How answers look on a terminal: tables and lines, 80 columns and up. Texts of the memory are never read as markup."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestra_mem.core.documents.entries import entry_title, plain_text, visible
from orchestra_mem.doctor import Finding, Health
from orchestra_mem.faces.shell import as_json_object
from orchestra_mem.faces.times import short_time
from orchestra_mem.settings import DEFAULT_ORIGIN, Settings
from orchestra_mem.types import Json, MustKeep, MustKeepStatus, Operation, Session
from orchestra_mem.work_types import WorkEvent, WorkItem, WorkProgress

if TYPE_CHECKING:
    pass

_Row = TypeVar("_Row")

_TITLE_CHARS = 400
_MARKS = {Health.SOUND: ("ok", "green"), Health.NOTE: ("note", "yellow"), Health.FAULT: ("fault", "bold red")}
_LOUDNESS = ("green", "yellow", "dark_orange", "bold red")


def plain_table(*columns: str, right: Sequence[str] = ()) -> Table:
    """Make a table without a frame; the columns in `right` are set flush right."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="ellipsis", no_wrap=True)
    return table


def table_of(
    rows: Sequence[_Row], row: Callable[[_Row], Iterable[RenderableType]], *columns: str, empty: str,
    right: Sequence[str] = (), wide: bool = True, more: str = "", hint: str = "",
) -> Iterator[RenderableType]:  # fmt: skip
    """Show rows as a table, or say in `empty` that there are none.

    Args:
        rows: what is shown.
        row: gives the cells of one.
        columns: the heads.
        empty: what is said where there is nothing.
        right: the columns that are set flush right.
        wide: the last column takes all the room that is left.
        more: what is said below where there is more than what is shown.
        hint: what is said at the end.
    """
    if not rows:
        yield Text(empty)
        return
    table = plain_table(*columns, right=right)
    if wide:
        table.expand = True
        table.columns[-1].ratio = 1
    for each in rows:
        table.add_row(*row(each))
    yield table
    yield from (Text(words, style="dim") for words in (more, hint) if words)


def counted(number: int, noun: str) -> str:
    """Give a number with its noun, which takes an s for the plural."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def clipped(text: str) -> Text:
    """Put a text in one line, as far as a terminal can show it."""
    return Text(" ".join(visible(text[:_TITLE_CHARS]).split()), no_wrap=True, overflow="ellipsis")


def bar(share: float, thresholds: Sequence[float], width: int = 50) -> Text:
    """Draw a horizontal bar of a share of 1, the thresholds marked in it."""
    filled = min(width, round(share * width))
    marks = {min(width - 1, int(threshold * width)) for threshold in thresholds}
    shown = Text("│")
    for column in range(width):
        style = style_of((column + 0.5) / width, thresholds)
        if column < filled:
            shown.append("█", style=style)
        else:
            shown.append("┊" if column in marks else "·", style=style if column in marks else "dim")
    return shown.append("│")


def style_of(share: float, thresholds: Sequence[float]) -> str:
    """Choose the colour of a share: the more thresholds it has reached, the louder."""
    return _LOUDNESS[min(len(_LOUDNESS) - 1, sum(share >= threshold for threshold in sorted(thresholds)))]


def _figure(value: Json) -> str:
    assert isinstance(value, int | float)
    return f"{value:,}"


def status_view(record: dict[str, Json]) -> Iterator[RenderableType]:
    """Show the answer of `status`."""
    window, thresholds = as_json_object(record["context_window"]), as_json_object(record["thresholds"])
    used, size = window["used_tokens"], window["max_tokens"]
    assert isinstance(used, int)
    assert isinstance(size, int)
    shares = {name: float(share) for name, share in thresholds.items() if isinstance(share, int | float)}
    yield Text(f"Memory of {record['project']}", style="bold")
    yield Text("")
    yield Text.assemble("window   ", bar(used / size, list(shares.values())), f" {used / size:.0%}")
    told = ", ".join(f"{name} at {share:.0%}" for name, share in shares.items())
    whose = "the model's own" if window["exact"] else "not the model's own"
    yield Text(f"         {used:,} of {size:,} tokens")
    yield Text(f"         {told}")
    yield Text(f"         counted by {window['counter']} ({whose})")
    following = as_json_object(record["next_context"])
    yield Text(f"context  {_figure(following['tokens'])} of {_figure(following['budget_tokens'])} tokens")
    yield Text(f"search   {record['search_index']}")
    yield from _tiers(record)
    yield from _documents(as_json_object(record["documents"]), str(record["project"]))
    problems = record["problems"]
    assert isinstance(problems, list)
    for problem in map(as_json_object, problems):
        since = f" (since {problem['since']})" if problem["since"] else ""
        yield Text(f"! {problem['subject']}: {problem['problem']}{since}", style="bold red")
    if not problems:
        yield Text("no problems", style="green")


def _tiers(record: dict[str, Json]) -> Iterator[RenderableType]:
    working, session = as_json_object(record["working_memory"]), as_json_object(record["session_memory"])
    episodic, sessions = as_json_object(record["episodic_memory"]), as_json_object(record["sessions"])
    document_tokens = sum(int(value) for name, value in episodic.items() if name.endswith("_tokens"))
    table = plain_table("tier", "holds", "tokens", right=["tokens"])
    table.add_row(
        "working", f"{_figure(working['operation_count'])} of {_figure(working['max_operations'])} operations",
        f"{_figure(working['current_tokens'])} of {_figure(working['max_tokens'])}",
    )  # fmt: skip
    here = counted(int(session["operation_count"]), "operation") if session["session_id"] else "none under way"
    table.add_row("session", here, _figure(session.get("current_tokens", 0)))
    table.add_row("", f"{_figure(sessions['archived'])} archived", "")
    table.add_row("episodic", counted(int(episodic["version_count"]), "earlier text"), f"{document_tokens:,}")
    yield Text("")
    yield table


def _documents(paths: dict[str, Json], project: str) -> Iterator[RenderableType]:
    table = plain_table("document", "file")
    for name, path in paths.items():
        if path is not None:
            table.add_row(name, Text(_below(project, Path(str(path))), overflow="fold"))
    yield Text("")
    yield table
    yield Text("")


def _below(project: str | Path, path: Path) -> str:
    return str(path.relative_to(project)) if path.is_relative_to(project) else str(path)


def newest(rows: Sequence[object], limited: bool) -> str:
    """Say below a table that there may be more than its limit."""
    return f"the newest {len(rows):,}; --limit 0 lists all" if limited else ""


def operations_view(operations: Sequence[Operation], *, limited: bool = False) -> Iterator[RenderableType]:
    """Show the answer of `ops`."""
    agents = any(operation.agent for operation in operations)

    def row(operation: Operation) -> Iterator[RenderableType]:
        yield from (str(operation.id), short_time(operation.timestamp), f"{operation.tokens:,}")
        if agents:
            yield clipped(operation.agent or "")
        yield _what(operation)

    columns = ["op", "time (UTC)", "tokens", *(["agent"] if agents else []), "what"]
    return table_of(
        operations, row, *columns, right=["op", "tokens"], empty="no operations", more=newest(operations, limited)
    )


def _what(operation: Operation) -> Text:
    title = entry_title(operation.type, operation.data)
    text = title if ": " in title else f"{title}: {plain_text(operation, max_chars=_TITLE_CHARS)}"
    shown = clipped(text)
    if operation.critical:
        shown.stylize("bold")
    return shown


def sessions_view(sessions: Sequence[Session]) -> Iterator[RenderableType]:
    """Show the answer of `sessions`."""

    def row(session: Session) -> Iterator[RenderableType]:
        ended = short_time(session.ended)[:-3] if session.ended else ""
        yield from (session.id[:8], short_time(session.started)[:-3], ended, session.status.value)
        yield Text(Path(session.archive).name if session.archive else "", overflow="fold", no_wrap=False)

    columns = ("session", "started (UTC)", "ended", "status", "document")
    return table_of(sessions, row, *columns, empty="no sessions", wide=False)


def facts_view(facts: Sequence[MustKeep], *, limited: bool = False) -> Iterator[RenderableType]:
    """Show the answer of `facts`."""

    def row(fact: MustKeep) -> Iterator[RenderableType]:
        state = "" if fact.status is MustKeepStatus.STANDING else fact.status.value
        yield from (f"K{fact.id}", fact.kind.value, f"op{fact.operation}" if fact.operation else "by hand", state)
        yield clipped(fact.text)

    return table_of(
        facts, row, "", "kind", "operation", "", "says", more=newest(facts, limited),
        empty="nothing was found; operations are looked through when the memory is refreshed",
    )  # fmt: skip


def settings_view(settings: Settings) -> Iterator[RenderableType]:
    """Show the answer of `config show`."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("setting", overflow="fold")
    table.add_column("value", overflow="fold")
    table.add_column("from", overflow="fold")
    for key, value in settings.flat().items():
        origin = settings.origin_of(key)
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        table.add_row(Text(key), Text(shown or '""'), Text(origin), style="dim" if origin == DEFAULT_ORIGIN else "")
    yield table


def findings_view(findings: Sequence[Finding]) -> Iterator[RenderableType]:
    """Show the answer of `doctor`."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        mark, style = _MARKS[finding.health]
        told: RenderableType = Text(finding.words)
        if finding.advice:
            told = Group(Text(finding.words), Text(f"→ {finding.advice}", style="dim"))
        table.add_row(Text(mark, style=style), Text(finding.part), told)
    yield table
    faults = sum(finding.health is Health.FAULT for finding in findings)
    yield Text("")
    yield Text(counted(faults, "fault"), style="bold red") if faults else Text("all is well", style="green")


def work_view(items: Sequence[WorkItem], *, limited: bool = False) -> Iterator[RenderableType]:
    """Show the answer of `work`."""
    return table_of(
        items, lambda item: (f"#{item.id}", item.kind, item.status, str(item.priority), clipped(item.title)),
        "id", "kind", "status", "priority", "title", right=["id", "priority"], empty="no work items", wide=False,
        more=f"the first {counted(len(items), 'item')}; --limit 0 lists all" if limited else "",
    )  # fmt: skip


def item_view(
    item: WorkItem,
    parent: WorkItem | None,
    progress: WorkProgress,
    blockers: Sequence[WorkItem],
    events: Sequence[WorkEvent],
) -> Iterator[RenderableType]:
    """Show the answer of `work show`."""
    yield Text(visible(item.name), style="bold")
    yield Text(f"{item.status}, priority {item.priority}{f', {visible(item.assignee)}' if item.assignee else ''}")
    if parent:
        yield Text(f"part of {visible(parent.name)}")
    if progress.total:
        yield Text(f"{progress.done:,} of {progress.total:,} done ({progress.share:.0%})")
    if item.depends_on:
        yield Text(f"depends on {', '.join(f'#{each}' for each in item.depends_on)}")
    for blocker in blockers:
        yield Text(f"waits for {visible(blocker.name)} ({blocker.status})", style="yellow")
    if item.description:
        yield Text(f"\n{visible(item.description)}")
    if item.acceptance:
        yield Text("\n" + "\n".join(f"- {visible(each)}" for each in item.acceptance))
    yield Text("")
    table = plain_table("when", "who", "what")
    for event in events:
        table.add_row(short_time(event.time), event.author, _event(event))
    yield table


def _event(event: WorkEvent) -> Text:
    if event.before is None:
        said = f"{event.field}: {event.after}"
    else:
        said = f"{event.field}: {event.before} -> {event.after or 'none'}"
    return clipped(f"{said} ({event.reason})" if event.reason else said)

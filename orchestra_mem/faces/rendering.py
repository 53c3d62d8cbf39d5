"""How answers look on a terminal: tables and lines, 80 columns and up. Texts of the memory are never read as markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestra_mem.core.documents.entries import entry_title, plain_text, visible
from orchestra_mem.diagnosis import Finding, Health
from orchestra_mem.faces.plots import bar
from orchestra_mem.faces.shell import as_json_object
from orchestra_mem.faces.times import short_time
from orchestra_mem.serialize import dump_json
from orchestra_mem.services.recall import Expansion
from orchestra_mem.settings import DEFAULT_ORIGIN, Settings
from orchestra_mem.types import Author, Json, MustKeep, MustKeepStatus, Operation, Session, Summary, Version

_TITLE_CHARS = 400
_MARKS = {Health.SOUND: ("ok", "green"), Health.NOTE: ("note", "yellow"), Health.FAULT: ("fault", "bold red")}


def plain_table(*columns: str, right: Sequence[str] = ()) -> Table:
    """A table without a frame; the columns in `right` are set flush right."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="ellipsis", no_wrap=True)
    return table


def counted(number: int, noun: str) -> str:
    """A number with its noun, which takes an s for the plural."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def clipped(text: str) -> Text:
    """A text in one line, as far as a terminal can show it."""
    return Text(" ".join(visible(text[:_TITLE_CHARS]).split()), no_wrap=True, overflow="ellipsis")


def _figure(value: Json) -> str:
    assert isinstance(value, int | float)
    return f"{value:,}"


def status_view(record: dict[str, Json]) -> Iterator[RenderableType]:
    """The answer of `status`."""
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


def operations_view(operations: Sequence[Operation], *, limited: bool = False) -> Iterator[RenderableType]:
    """The answer of `ops`."""
    if not operations:
        yield Text("no operations")
        return
    agents = any(operation.agent for operation in operations)
    columns = ["op", "time (UTC)", "tokens", *(["agent"] if agents else []), "what"]
    table = plain_table(*columns, right=["op", "tokens"])
    table.columns[-1].ratio = 1
    for operation in operations:
        table.add_row(
            str(operation.id), short_time(operation.timestamp), f"{operation.tokens:,}",
            *([clipped(operation.agent or "")] if agents else []), _what(operation),
        )  # fmt: skip
    table.expand = True
    yield table
    if limited:
        yield _newest(len(operations))


def _newest(count: int) -> Text:
    return Text(f"the newest {count:,}; --limit 0 lists all", style="dim")


def _what(operation: Operation) -> Text:
    title = entry_title(operation.type, operation.data)
    text = title if ": " in title else f"{title}: {plain_text(operation, max_chars=_TITLE_CHARS)}"
    shown = clipped(text)
    if operation.critical:
        shown.stylize("bold")
    return shown


def sessions_view(sessions: Sequence[Session]) -> Iterator[RenderableType]:
    """The answer of `sessions`."""
    if not sessions:
        yield Text("no sessions")
        return
    table = plain_table("session", "started (UTC)", "ended", "status", "document")
    table.columns[-1].no_wrap = False
    for session in sessions:
        ended = short_time(session.ended)[:-3] if session.ended else ""
        document = Text(Path(session.archive).name if session.archive else "", overflow="fold")
        table.add_row(session.id[:8], short_time(session.started)[:-3], ended, session.status.value, document)
    yield table


def expansion_text(found: Expansion) -> str:
    """The answer of `expand`: the operations as they were recorded, a line of JSON each."""
    lines = []
    if found.summary is not None:
        summary = found.summary
        lines += [
            f"S{summary.id}, {subject_of(summary)}: {_covered(summary)}, "
            f"{summary.source_tokens:,} tokens told in {summary.tokens:,} ({summary.ratio:.0%})",
            *(f"| {line}" for line in summary.text.splitlines()), "",
        ]  # fmt: skip
    if found.fact is not None:
        fact = found.fact
        lines += [f"K{fact.id}: {fact.kind.value}, {fact.status.value}: {fact.text}", ""]
    for operation in found.operations:
        agent = f" by {operation.agent}" if operation.agent else ""
        lines += [
            f"op{operation.id} {short_time(operation.timestamp)} {operation.type}{agent} ({operation.tokens:,} tokens)",
            dump_json(operation.data),
        ]
    return "\n".join(lines) + "\n"


def subject_of(summary: Summary) -> str:
    """What a summary is of: a level, a whole session, or a section of a document."""
    return summary.document or (f"level {summary.level}" if summary.level else f"session {summary.session[:8]}")


def _covered(summary: Summary) -> str:
    return "all of it stands there" if summary.document else counted(summary.operation_count, "operation")


def facts_view(facts: Sequence[MustKeep], *, limited: bool = False) -> Iterator[RenderableType]:
    """The answer of `facts`."""
    if not facts:
        yield Text("nothing was found; operations are looked through when the memory is refreshed")
        return
    table = plain_table("", "kind", "operation", "", "says")
    table.expand = True
    table.columns[-1].ratio = 1
    for fact in facts:
        state = "" if fact.status is MustKeepStatus.STANDING else fact.status.value
        says = clipped(" ".join(fact.text.split()))
        table.add_row(
            f"K{fact.id}", fact.kind.value, f"op{fact.operation}" if fact.operation else "by hand", state, says
        )
    yield table
    if limited:
        yield _newest(len(facts))


def losses_view(summaries: Sequence[Summary], *, limited: bool = False) -> Iterator[RenderableType]:
    """The answer of `losses`."""
    if not summaries:
        yield Text("nothing has been summarised")
        return
    yield losses_table(summaries)
    if limited:
        yield _newest(len(summaries))
    yield Text("orchestra-mem expand S… gives the originals", style="dim")


def losses_table(summaries: Sequence[Summary]) -> Table:
    """Summaries, one a line."""
    table = plain_table(
        "", "of", "operations", "tokens", "to", "ratio", "kept", "dropped identifiers",
        right=["tokens", "to", "ratio", "kept"],
    )  # fmt: skip
    table.expand = True
    table.columns[-1].ratio = 1
    for summary in summaries:
        dropped = f"{len(summary.dropped)}: {', '.join(summary.dropped)}" if summary.dropped else "none"
        table.add_row(
            f"S{summary.id}", clipped(subject_of(summary)),
            "" if summary.document else f"{summary.first_operation}-{summary.last_operation}",
            f"{summary.source_tokens:,}", f"{summary.tokens:,}", f"{summary.ratio:.0%}", str(len(summary.must_keeps)),
            clipped(dropped),
        )  # fmt: skip
    return table


def versions_view(versions: Sequence[Version]) -> Iterator[RenderableType]:
    """The answer of `history`."""
    if not versions:
        yield Text("no earlier texts")
        return
    table = plain_table("version", "kept (UTC)", "written by", "kept for", "bytes", right=["version", "bytes"])
    for version in versions:
        style = "bold" if version.author is Author.PERSON else ""
        table.add_row(
            str(version.sequence), short_time(version.time), version.author.value, version.reason.value,
            f"{version.size_bytes:,}", style=style,
        )  # fmt: skip
    yield table


def diff_view(diff: str) -> Text:
    """A unified difference in colours."""
    shown = Text()
    for line in diff.splitlines():
        style = "bold" if line.startswith(("---", "+++")) else ""
        style = style or {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        shown.append(visible(line) + "\n", style=style)
    shown.right_crop(1)
    return shown


def settings_view(settings: Settings) -> Iterator[RenderableType]:
    """The answer of `config show`."""
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
    """The answer of `doctor`."""
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

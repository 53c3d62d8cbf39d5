"""Replay a history through a memory, and show what became of it, section by section, from 80 columns on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from rich import box
from rich.console import RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.core.context.window import UsageEvent, UsagePoint
from orchestra_mem.core.documents.entries import visible
from orchestra_mem.core.histories import History, HistoryOperation
from orchestra_mem.faces.document_views import diff_view, versions_view
from orchestra_mem.faces.recall_views import losses_view
from orchestra_mem.faces.views import clipped, counted, style_of
from orchestra_mem.memory.importing import Imported, import_history
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.memory.recall import Expansion
from orchestra_mem.types import DocumentName, Json, Operation, Summary, Version

# A history of fewer commits does not fill the window often enough: then each changed file is an operation as well.
FEW_COMMITS = 150
MOST_OPERATIONS = 600
# Small enough to be read whole on a terminal.
SHOWN_CONTEXT_TOKENS = 1_000
_MOST_SUMMARIES = 10
_MOST_DIFF_LINES = 24
_MOST_EXPLAINED = 3
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def thinned(history: History, most: int) -> History:
    """Thin a history of commits with patches out to at most `most` operations (but keep all its commits).

    Each commit may have its equal share of what is left; of more files the first are taken.
    """

    def some() -> Iterator[HistoryOperation]:
        files_left = max(0, most - history.total)
        commit, room = 0, 0
        for operation in history.operations:
            if operation.position != commit:
                commit = operation.position
                room = files_left // (history.total - commit + 1)
            if operation.type == "file_change":
                if not room:
                    continue
                room, files_left = room - 1, files_left - 1
            yield operation

    return replace(history, operations=some())


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What the first session came to, before it was flushed.

    `originals_equal` is whether the operations behind `expansion` are those that were read from the repository, value
    for value; None where nothing was compacted. `points` tell how full the window was, `marks` its thresholds.
    """

    recorded: int
    tokens: int
    seconds: float
    refreshes: int
    asked_refresh: bool
    points: Sequence[UsagePoint]
    marks: dict[str, float]
    full_context: OrchestratorContext
    small_context: OrchestratorContext
    summaries: list[Summary]
    expansion: Expansion | None
    originals_equal: bool | None
    archive: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSession:
    """What the next session finds; `versions` and `diff` are those of `document`, which has most."""

    documents: dict[str, Path]
    document: str
    versions: list[Version]
    diff: str
    recent: list[Operation]
    context_tokens: int


def replay(
    memory: OrchestratorContextManager, history: History, on_operation: Callable[[HistoryOperation], None]
) -> Replayed:
    """Record a history, look at what has become of it, and flush the session. `on_operation` is told each one."""
    originals: dict[str, Json] = {}
    begun = time.perf_counter()

    def step(_done: Imported, found: HistoryOperation) -> None:
        originals[found.idempotency_key] = found.data
        memory.get_orchestrator_context(found.type)  # as an orchestrator does for its next prompt
        on_operation(found)

    done = import_history(memory, history, on_operation=step)
    tracker = memory.context_tracker
    asked = tracker.refresh_count == 0
    if asked:
        memory.refresh()
    seconds = time.perf_counter() - begun
    summaries = memory.losses()
    # Of the most operations that do not fill the screen, of several the newest.
    short = [summary for summary in summaries if summary.level == 1 and summary.operation_count <= 8] or summaries
    best = max(reversed(short), key=lambda summary: summary.operation_count, default=None)
    expansion = memory.expand(f"S{best.id}") if best else None
    return Replayed(
        recorded=done.recorded, tokens=sum(op.tokens for op in memory.operations()), seconds=seconds,
        refreshes=tracker.refresh_count, asked_refresh=asked, points=tracker.history(),
        marks={name: getattr(tracker, f"{name}_threshold") for name in ("warning", "refresh", "critical")},
        full_context=memory.get_orchestrator_context("the next prompt"),
        small_context=memory.get_orchestrator_context("the next prompt", SHOWN_CONTEXT_TOKENS),
        summaries=summaries, expansion=expansion, archive=memory.flush_session(), originals_equal=(
            all(op.data == originals[op.idempotency_key or ""] for op in expansion.operations) if expansion else None
        ),
    )  # fmt: skip


def look_again(memory: OrchestratorContextManager) -> NextSession:
    """Look at what the next session finds."""
    episodic = memory.episodic_memory
    document = max(DocumentName, key=lambda name: len(episodic.history(name.value)))
    versions = episodic.history(document.value)
    return NextSession(
        documents={name.value: episodic.path(name) for name in DocumentName}, document=document.value,
        versions=versions, diff=episodic.diff(document.value) if versions else "",
        recent=memory.query_recent_operations(limit=5),
        context_tokens=memory.get_orchestrator_context("the next prompt").tokens,
    )  # fmt: skip


def opening(
    history: History, limit: int, folder: Path, window_tokens: int, *, patches: bool
) -> Iterator[RenderableType]:
    """Say what is about to happen; with `patches` changed files are operations too."""
    newest = f"Of its commits the newest {history.total:,} are taken (--limit)."
    much = f"It has {counted(history.total, 'commit')}." if history.total < limit else newest
    if patches:
        much += (
            " These are few, so each file that they changed is an operation as well, with its patch "
            f"(at most {MOST_OPERATIONS:,} in all)."
        )
    yield Text("orchestra-mem: a history replayed", style="bold")
    yield Text(
        f"Each commit of {history.source} becomes an operation that is recorded by the same manager that an "
        "orchestrator uses, and followed by a context, for a model with a window of only "
        f"{window_tokens:,} tokens. {much} In the documents entries are clipped to "
        "a few lines, and compacted however young they are, so that so small a window has much to show."
    )
    yield Text(f"The memory lies in {folder} and stays there.", overflow="fold")
    if history.note:
        yield Text(f"Note: {history.note}.", style="yellow")


def everything(replayed: Replayed, following: NextSession, folder: Path) -> Iterator[RenderableType]:
    """Give all sections, in their order."""
    sections = {
        "What was recorded": _recorded(replayed), "The window over time": _window(replayed),
        "What was compacted": _compacted(replayed),
        "What the model would be given": _context(replayed.full_context, replayed.small_context),
        "The documents": _documents(replayed, following, folder), "A document's versions": _versions(following),
        "“What did we just do?”": _recent(following.recent),
    }  # fmt: skip
    for number, (title, parts) in enumerate(sections.items(), 1):
        yield Text("")
        yield Rule(Text(f"{number}. {title}", style="bold"), align="left", style="dim")
        for part in parts:
            yield Text(part) if isinstance(part, str) else part
    yield Text("")
    yield Rule(style="dim")
    yield Text("Look around:")
    for command in ("status", "losses", "history project_state", "ops --limit 5"):
        yield Text(f"  orchestra-mem {command} -C {folder}", no_wrap=True, overflow="ignore")


def _recorded(replayed: Replayed) -> Iterator[RenderableType]:
    per_second = replayed.recorded / replayed.seconds if replayed.seconds else 0
    yield (
        f"{counted(replayed.recorded, 'operation')} of {replayed.tokens:,} tokens in {replayed.seconds:.1f} s "
        f"({per_second:,.0f} a second, refreshes included). "
        f"They would fill the window {replayed.tokens / _size(replayed):.1f} times over."
    )


def _size(replayed: Replayed) -> int:
    return round(replayed.full_context.budget_tokens / replayed.marks["refresh"])


def _window(replayed: Replayed) -> Iterator[RenderableType]:
    size, marks = _size(replayed), replayed.marks
    yield plot([point.used_tokens / size for point in replayed.points], {marks[name]: name for name in marks})
    if replayed.asked_refresh:
        yield (
            "The history is too short to fill the window, so that no refresh came by itself: "
            "one was asked for at the end (`refresh()`)."
        )
        return
    resets = [point for point in replayed.points if point.event is UsageEvent.RESET]
    full = sum(point.before_tokens >= size * marks["refresh"] for point in resets)
    before = max(point.before_tokens for point in resets)
    after = sum(point.used_tokens for point in resets) / len(resets)
    yield (
        f"At {marks['refresh']:.0%} of the window, or when the session document outgrows its share of "
        "it, the memory is refreshed: older operations go to that document, it is compacted, and the next "
        f"context begins anew. Here the first happened {_times(full)}, the second "
        f"{_times(replayed.refreshes - full)}; from at most {before:,} tokens ({before / size:.0%}) down to "
        f"{after:,.0f} ({after / size:.0%}) on average."
    )


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count:,} times")


def _compacted(replayed: Replayed) -> Iterator[RenderableType]:
    expansion = replayed.expansion
    if expansion is None or expansion.summary is None:
        yield "Nothing: all of it fits into the session document word for word."
        return
    first = [summary for summary in replayed.summaries if summary.level == 1]
    source, told = sum(each.source_tokens for each in first), sum(each.tokens for each in first)
    newest = replayed.summaries[-_MOST_SUMMARIES:]
    levels = max(summary.level for summary in replayed.summaries)
    yield (
        f"{counted(sum(each.operation_count for each in first), 'operation')} of {source:,} tokens, told in {told:,}: "
        f"a ratio of {told / source:.0%}, without a model. Summaries: {len(replayed.summaries):,}, on "
        f"{counted(levels, 'level')}; the newest {len(newest)}:"
    )
    yield from losses_view(newest, hint=False)
    summary = expansion.summary
    yield from ("", f"S{summary.id} reads:", _boxed(summary.text.strip()))
    yield f"and `expand S{summary.id}` gives {counted(len(expansion.operations), 'operation')}:"
    for operation in expansion.operations[:_MOST_SUMMARIES]:
        yield clipped(f"  op{operation.id}  {_commit(operation)}")
    same = replayed.originals_equal
    words = "equal, value for value, to what git told" if same else "NOT equal to what git told: this is a bug"
    yield Text(f"They are {words}.", style="green" if same else "bold red")


def _boxed(text: str) -> Panel:
    return Panel(Text(visible(text)), box=box.SQUARE, border_style="dim")


def _context(full: OrchestratorContext, small: OrchestratorContext) -> Iterator[RenderableType]:
    yield (
        f"At the end of the replay the context has {full.tokens:,} tokens of a budget of {full.budget_tokens:,}. "
        f"So that it can be read here, this is one for a budget of {small.budget_tokens:,}: {small.tokens:,} "
        f"tokens, counted by {small.counter} ({'the model’s own' if small.exact else 'not the model’s own'})."
    )
    yield _boxed(small.render().rstrip())
    yield "Why each item is there (+), shortened (~) or left out (-); `explain()`, the first of each kind:"
    for line in _excerpt(small.explain()):
        yield Text(visible(line), no_wrap=True, overflow="ellipsis")


def _excerpt(explained: str) -> list[str]:
    """Give of each part its headline, and of its items the first few of each mark."""
    shown: list[str] = []
    seen: dict[str, int] = {}
    passed = 0
    for line in explained.splitlines():
        mark = line[:4] if line.startswith("  ") else ""
        if not mark:
            shown += [f"    … {passed} more"] if passed else []
            seen, passed = {}, 0
        seen[mark] = seen.get(mark, 0) + 1
        if not mark or seen[mark] <= _MOST_EXPLAINED:
            shown.append(line)
        else:
            passed += 1
    return [*shown, f"    … {passed} more"] if passed else shown


def _documents(replayed: Replayed, following: NextSession, folder: Path) -> Iterator[RenderableType]:
    yield (
        "The session was flushed and the memory opened again, as by the next run of the program. What stands in "
        f"these files is what it remembers; its first context has {following.context_tokens:,} tokens of them. "
        "They may be edited at any time, also while the program runs."
    )
    table = Table.grid(padding=(0, 2))
    for name, path in [*following.documents.items(), ("session", replayed.archive)]:
        if path is not None:
            shown = path.relative_to(folder) if path.is_relative_to(folder) else path
            table.add_row(Text(name), Text(str(shown), overflow="fold"), Text(f"{path.stat().st_size:,} bytes"))
    yield table


def _versions(following: NextSession) -> Iterator[RenderableType]:
    yield (
        f"Before {following.document}.md is written anew, the old text is kept. The newest "
        f"{len(following.versions)} are there, and the last change was:"
    )
    yield from versions_view(following.versions[-5:])
    lines = following.diff.splitlines()
    yield from ("", diff_view("\n".join(lines[:_MOST_DIFF_LINES])))
    if len(lines) > _MOST_DIFF_LINES:
        yield Text(f"… {len(lines) - _MOST_DIFF_LINES:,} more lines", style="dim")


def _recent(operations: Sequence[Operation]) -> Iterator[RenderableType]:
    newest, *older = operations
    yield f"Last, on {newest.timestamp:%d %B %Y}, we did this: {_commit(newest)}."
    if older:
        yield "Before that:"
    for operation in older:
        yield clipped(f"- {operation.timestamp:%d %B}: {_commit(operation)}")


def _commit(operation: Operation) -> str:
    """Tell a commit, or a changed file, in words."""
    data = operation.data
    if not isinstance(data, dict):
        return operation.type
    if operation.type == "file_change":
        return f"changed {data.get('title')}"
    files = data.get("files")
    changed = [file for file in files if isinstance(file, dict)] if isinstance(files, list) else []
    counts = {name: [file.get(name) for file in changed] for name in ("added", "deleted")}
    added, deleted = (sum(count for count in counts[name] if isinstance(count, int)) for name in counts)
    count = counted(len(changed), "file")
    return f"{data.get('subject') or 'a commit without words'} ({count}, +{added:,} -{deleted:,})"


def plot(values: Sequence[float], marks: Mapping[float, str], *, width: int = 62, height: int = 10) -> Text:
    """Draw shares of 1 over time, `height` lines high, with a labelled line at each of the marks.

    Of more values than columns, each column shows the highest of its own.
    """
    columns = list(values)
    if len(columns) > width:
        edges = [len(values) * column // width for column in range(width + 1)]
        columns = [max(values[start:end]) for start, end in pairwise(edges)]
    shown = Text()
    rows = {min(height - 1, int(mark * height)): (mark, label) for mark, label in sorted(marks.items())}
    for row in range(height - 1, -1, -1):
        mark, label = rows.get(row, (None, ""))
        shown.append(f"{mark:>4.0%} ┤" if mark is not None else "  0% ┤" if row == 0 else "     │")
        for value in columns:
            level = max(0, min(8, round((value * height - row) * 8)))
            if level:
                shown.append(_EIGHTHS[level], style=style_of(value, list(marks)))
            else:
                shown.append("┄" if mark is not None else " ", style="dim")
        if label:
            shown.append(f" {label}", style="dim")
        shown.append("\n")
    return shown.append("     └" + "─" * len(columns))

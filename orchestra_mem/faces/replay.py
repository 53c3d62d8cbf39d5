"""Replay a history through a memory, and show what became of it, section by section, from 80 columns on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path

from rich import box
from rich.console import RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.core.context.window import UsageEvent, UsagePoint
from orchestra_mem.core.histories import History, HistoryOperation
from orchestra_mem.core.text import visible
from orchestra_mem.faces.recall_views import losses_view
from orchestra_mem.faces.views import counted, operation_words, style_of
from orchestra_mem.memory.importing import Imported, import_history
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.memory.recall import Expansion
from orchestra_mem.types import DocumentName, Json, Operation, Summary

WINDOW_TOKENS = 8_192
# Entries so short that several make a segment in so small a window, and a document so large that it is compacted as
# often for its own size as for the window's; a history that was made just now is compacted like an old one.
SMALL_CONFIG: dict[str, object] = {
    "orchestrator": {"context_window": {"max_tokens": WINDOW_TOKENS}, "session_compression_ratio": 0.5},
    "compaction": {"window_share": 0.55, "verbatim_window_s": 0}, "entries": {"max_chars": 240},
}  # fmt: skip
# A history of fewer commits does not fill the window often enough: then each changed file is an operation as well.
FEW_COMMITS = 150
MOST_OPERATIONS = 600
# Small enough to be read whole on a terminal.
_SHOWN_CONTEXT_TOKENS = 1_000
# An example of a summary covers no more operations than a screen holds.
_MOST_EXPANDED = 8
_MOST_SUMMARIES = 10
_EIGHTHS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a replayed history came to.

    `points` tell how full the window was. `originals_equal` is whether the operations behind `expansion` are those that
    were read from the repository, value for value; None where nothing was compacted.
    """

    folder: Path
    operations: list[Operation]
    seconds: float
    refreshes: int
    asked_refresh: bool
    points: Sequence[UsagePoint]
    marks: dict[str, float]
    context: OrchestratorContext
    summaries: list[Summary]
    expansion: Expansion | None
    originals_equal: bool | None
    documents: dict[str, Path]


def thinned(history: History, most: int) -> History:
    """Thin a history of commits with patches out to some `most` operations: each commit with its share of files."""
    room = most // history.total - 1

    def some() -> Iterator[HistoryOperation]:
        for _, commit in groupby(history.operations, key=lambda operation: operation.position):
            files = 0
            for operation in commit:
                files += operation.type == "file_change"
                if operation.type != "file_change" or files <= room:
                    yield operation

    return replace(history, operations=some())


def replay(
    memory: OrchestratorContextManager, history: History, folder: Path, told: Callable[[HistoryOperation], object]
) -> Replayed:
    """Record a history, look at what has become of it, and flush the session."""
    originals: dict[str | None, Json] = {}
    begun = time.perf_counter()

    def step(_done: Imported, found: HistoryOperation) -> None:
        originals[found.idempotency_key] = found.data
        memory.get_orchestrator_context(found.type)  # as an orchestrator does for its next prompt
        told(found)

    import_history(memory, history, on_operation=step)
    tracker = memory.context_tracker
    asked = tracker.refresh_count == 0
    if asked:
        memory.refresh()
    seconds = time.perf_counter() - begun
    summaries = memory.losses()
    short = [each for each in summaries if each.level == 1 and each.operation_count <= _MOST_EXPANDED] or summaries
    best = max(reversed(short), key=lambda summary: summary.operation_count, default=None)
    expansion = memory.expand(f"S{best.id}") if best else None
    context = memory.get_orchestrator_context("the next prompt", _SHOWN_CONTEXT_TOKENS)
    archive = memory.flush_session()
    expanded = expansion.operations if expansion else ()
    documents = {name.value: memory.episodic_memory.path(name) for name in DocumentName}
    return Replayed(
        folder=folder, operations=memory.operations(), seconds=seconds, refreshes=tracker.refresh_count,
        asked_refresh=asked, points=tracker.history(),
        marks={name: getattr(tracker, f"{name}_threshold") for name in ("warning", "refresh", "critical")},
        context=context, summaries=summaries, expansion=expansion,
        originals_equal=all(op.data == originals[op.idempotency_key] for op in expanded) if expansion else None,
        documents=documents | ({"session": archive} if archive else {}),
    )  # fmt: skip


def replayed_record(replayed: Replayed) -> dict[str, object]:
    """Give what a history came to as JSON."""
    context, expansion = replayed.context, replayed.expansion
    return {
        "folder": str(replayed.folder), "recorded": len(replayed.operations),
        "recorded_tokens": sum(operation.tokens for operation in replayed.operations),
        "seconds": round(replayed.seconds, 3), "window_tokens": WINDOW_TOKENS, "refreshes": replayed.refreshes,
        "asked_refresh": replayed.asked_refresh,
        "usage": [[point.sequence, point.used_tokens, point.event.value] for point in replayed.points],
        "summaries": replayed.summaries, "expanded": expansion.reference if expansion else None,
        "originals_equal": replayed.originals_equal,
        "context": {"budget_tokens": context.budget_tokens, "tokens": context.tokens, "text": context.render()},
        "documents": {name: str(path) for name, path in replayed.documents.items()},
    }  # fmt: skip


def opening(history: History, limit: int, folder: Path, *, patches: bool) -> Iterator[RenderableType]:
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
        f"{WINDOW_TOKENS:,} tokens. {much} In the documents entries are clipped to "
        "a few lines, and compacted however young they are, so that so small a window has much to show."
    )
    yield Text(f"The memory lies in {folder} and stays there.", overflow="fold")
    if history.note:
        yield Text(f"Note: {history.note}.", style="yellow")


def replayed_view(replayed: Replayed) -> Iterator[RenderableType]:
    """Show what a history came to."""
    sections = {
        "What was recorded": _recorded(replayed), "The window over time": _window(replayed),
        "What was compacted": _compacted(replayed), "What the model would be given": _context(replayed),
        "The documents": _documents(replayed),
    }  # fmt: skip
    for number, (title, parts) in enumerate(sections.items(), 1):
        yield Text("")
        yield Rule(Text(f"{number}. {title}", style="bold"), align="left", style="dim")
        for part in parts:
            yield Text(part) if isinstance(part, str) else part
    yield Text("")
    yield Rule(style="dim")
    yield Text("Look around:")
    for command in (
        "status",
        "context --explain",
        "losses",
        "history project_state",
        "diff project_state",
        "ops --limit 5",
    ):
        yield Text(f"  orchestra-mem {command} -C {replayed.folder}", no_wrap=True, overflow="ignore")


def _recorded(replayed: Replayed) -> Iterator[RenderableType]:
    count, tokens = len(replayed.operations), sum(operation.tokens for operation in replayed.operations)
    yield (
        f"{counted(count, 'operation')} of {tokens:,} tokens in {replayed.seconds:.1f} s "
        f"({count / max(replayed.seconds, 0.001):,.0f} a second, refreshes included). "
        f"They would fill the window {tokens / WINDOW_TOKENS:.1f} times over."
    )


def _window(replayed: Replayed) -> Iterator[RenderableType]:
    size, marks = WINDOW_TOKENS, replayed.marks
    yield plot([point.used_tokens / size for point in replayed.points], {marks[name]: name for name in marks})
    if replayed.asked_refresh:
        yield (
            "The history is too short to fill the window, so that no refresh came by itself: "
            "one was asked for at the end (`refresh()`)."
        )
        return
    resets = [point for point in replayed.points if point.event is UsageEvent.RESET]
    before = max(point.before_tokens for point in resets)
    after = sum(point.used_tokens for point in resets) / len(resets)
    yield (
        f"At {marks['refresh']:.0%} of the window, or when the session document outgrows its share of "
        "it, the memory is refreshed: older operations go to that document, it is compacted, and the next "
        f"context begins anew. Here that happened {counted(replayed.refreshes, 'time')}; from at most {before:,} "
        f"tokens ({before / size:.0%}) down to {after:,.0f} ({after / size:.0%}) on average."
    )


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
        yield Text(f"  op{operation.id}  ", no_wrap=True, overflow="ellipsis").append_text(operation_words(operation))
    same = replayed.originals_equal
    words = "equal, value for value, to what git told" if same else "NOT equal to what git told: this is a bug"
    yield Text(f"They are {words}.", style="green" if same else "bold red")


def _boxed(text: str) -> Panel:
    return Panel(Text(visible(text)), box=box.SQUARE, border_style="dim")


def _context(replayed: Replayed) -> Iterator[RenderableType]:
    context = replayed.context
    yield (
        f"So that it can be read here, this is a context for a budget of {context.budget_tokens:,}: {context.tokens:,} "
        f"tokens, counted by {context.counter} ({'the model’s own' if context.exact else 'not the model’s own'})."
    )
    yield _boxed(context.render().rstrip())


def _documents(replayed: Replayed) -> Iterator[RenderableType]:
    yield (
        "The session was flushed. What stands in these files is what the next run of the program remembers. "
        "They may be edited at any time, also while the program runs."
    )
    table = Table.grid(padding=(0, 2))
    for name, path in replayed.documents.items():
        shown = path.relative_to(replayed.folder) if path.is_relative_to(replayed.folder) else path
        table.add_row(Text(name), Text(str(shown), overflow="fold"), Text(f"{path.stat().st_size:,} bytes"))
    yield table


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
        shown.append(f" {label}\n" if label else "\n", style="dim")
    return shown.append("     └" + "─" * len(columns))

"""The command `demo`: record a git history through the real manager with a small window, and show the result."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from orchestra_mem import build
from orchestra_mem.faces.command import CommandResult, Invocation, command, option, recall_views, views
from orchestra_mem.faces.records import counted
from orchestra_mem.types import DocumentName

if TYPE_CHECKING:
    from rich.console import RenderableType

    from orchestra_mem.core.histories import History, HistoryOperation
    from orchestra_mem.memory.importing import Imported
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.memory.recall import Expansion
    from orchestra_mem.types import Json, Summary

WINDOW_TOKENS = 8_192
# `max_chars`: several entries fit a segment of this small window. `window_share`: the size of the session document
# triggers compaction as often as the window does. `verbatim_window_s`: new operations are compacted like old ones.
_SMALL_CONFIG: dict[str, object] = {
    "orchestrator": {"context_window": {"max_tokens": WINDOW_TOKENS}, "session_compression_ratio": 0.5},
    "compaction": {"window_share": 0.55, "verbatim_window_s": 0}, "entries": {"max_chars": 240},
}  # fmt: skip
# Small enough to be read completely on a terminal.
_SHOWN_CONTEXT_TOKENS = 1_000
# The summary shown as an example covers at most this many operations, which fit one screen.
_MOST_EXPANDED = 8
_MOST_SUMMARIES = 10
# Number of fill levels shown, which fit one line. Each is the maximum of an interval.
_FIGURES = 16


@command("Begin")
def demo(
    run: Invocation,
    repo: Annotated[Path, option("--repo PATH", "The repository.")] = Path(),
    limit: Annotated[int, option("--limit N", "Its newest N commits.", min=1)] = 400,
) -> CommandResult:
    """Record a git history in a new memory with a small window, and show what it keeps. Takes under a minute.

    Example: orchestra-mem demo --repo . --limit 400
    """
    import tempfile

    source = run.project if run.given is not None and repo == Path() else repo
    history = build.open_git_history(source, limit=limit)
    folder = Path(tempfile.mkdtemp(prefix="orchestra-mem-demo-"))
    if not run.debug:
        logging.getLogger("orchestra_mem").setLevel(logging.ERROR)
    if not run.as_json:
        run.show(*_opening(history, limit, folder))
    config = _SMALL_CONFIG | {"project": {"name": source.resolve().name or "project"}}
    with build.open_memory(folder, config=config) as memory:
        record, expansion = _replay(run, memory, history, folder)
    return CommandResult(record, lambda: _view(record, expansion))


def _replay(
    run: Invocation, memory: OrchestratorContextManager, history: History, folder: Path
) -> tuple[dict[str, Any], Expansion | None]:
    """Record a history and flush the session. Return the figures, and an expanded summary, None without summaries."""
    from orchestra_mem.memory.importing import import_history

    originals: dict[str | None, Json] = {}
    begun = time.perf_counter()
    with run.progress(history.unit) as bar:
        task = bar.add_task("recording", total=history.total)

        def step(_done: Imported, found: HistoryOperation) -> None:
            originals[found.idempotency_key] = found.data
            memory.get_orchestrator_context(found.type)  # as an orchestrator does before its next prompt
            bar.update(task, completed=found.position)

        import_history(memory, history, on_operation=step)
    tracker = memory.context_tracker
    asked = tracker.refresh_count == 0
    if asked:
        memory.refresh()
    seconds = time.perf_counter() - begun
    summaries, operations = memory.losses(), memory.operations()
    short = [each for each in summaries if each.level == 1 and each.operation_count <= _MOST_EXPANDED] or summaries
    best = max(reversed(short), key=lambda summary: summary.operation_count, default=None)
    expansion = memory.expand(f"S{best.id}") if best else None
    context = memory.get_orchestrator_context("the next prompt", _SHOWN_CONTEXT_TOKENS)
    archive = memory.flush_session()
    documents = {name.value: memory.episodic_memory.path(name) for name in DocumentName}
    record = {
        "folder": folder, "recorded": len(operations), "recorded_tokens": sum(each.tokens for each in operations),
        "seconds": round(seconds, 3), "window_tokens": WINDOW_TOKENS, "refreshes": tracker.refresh_count,
        "asked_refresh": asked,
        "usage": [(point.sequence, point.used_tokens, point.event) for point in memory.window_history()],
        "summaries": summaries, "expanded": expansion.reference if expansion else None,
        "originals_equal": all(op.data == originals[op.idempotency_key] for op in expansion.operations)
        if expansion else None,
        "context": {"budget_tokens": context.budget_tokens, "tokens": context.tokens, "text": context.render()},
        "documents": documents | ({"session": archive} if archive else {}),
    }  # fmt: skip
    return record, expansion


def _opening(history: History, limit: int, folder: Path) -> Iterator[RenderableType]:
    from rich.text import Text

    much = f"It has {counted(history.total, 'commit')}."
    if history.total >= limit:
        much = f"The newest {history.total:,} of its commits are used (--limit)."
    yield Text(
        f"Each commit of {history.source} is recorded as an operation, and followed by a context for a model with a "
        f"window of only {WINDOW_TOKENS:,} tokens. {much}"
    )
    yield Text(f"The memory is created in {folder} and is kept there.", overflow="fold")
    if history.note:
        yield Text(f"Note: {history.note}.", style="yellow")


def _view(record: dict[str, Any], expansion: Expansion | None) -> Iterator[RenderableType]:
    from rich.text import Text

    sections = {
        "What was recorded": [_recorded(record)], "The window over time": _window(record),
        "What was compacted": _compacted(record, expansion),
        "What the model would get": [_boxed(record["context"]["text"])], "The documents": _documents(record),
    }  # fmt: skip
    for number, (title, parts) in enumerate(sections.items(), 1):
        yield Text("")
        yield Text(f"{number}. {title}", style="bold")
        for part in parts:
            yield Text(part) if isinstance(part, str) else part


def _recorded(record: Mapping[str, Any]) -> str:
    count, tokens, seconds = record["recorded"], record["recorded_tokens"], record["seconds"]
    return (
        f"{counted(count, 'operation')} of {tokens:,} tokens in {seconds:.1f} s "
        f"({count / max(seconds, 0.001):,.0f} a second, refreshes included). "
        f"They would fill the window {tokens / WINDOW_TOKENS:.1f} times over."
    )


def _window(record: Mapping[str, Any]) -> Iterator[str]:
    shares = [used / WINDOW_TOKENS for _, used, _ in record["usage"]]
    step = -(-len(shares) // _FIGURES)
    yield " ".join(f"{max(shares[first : first + step]):.0%}" for first in range(0, len(shares), step))
    if record["asked_refresh"]:
        yield "The history is too short to fill the window, so one refresh was requested at the end (`refresh()`)."
    else:
        yield (
            "At 80% of the window, or when the session document outgrows its share of it, the memory is refreshed: "
            "older operations move to that document, it is compacted, and the next context starts a new epoch. This "
            f"happened {counted(record['refreshes'], 'time')}."
        )


def _compacted(record: Mapping[str, Any], expansion: Expansion | None) -> Iterator[RenderableType]:
    summaries: list[Summary] = record["summaries"]
    if expansion is None or expansion.summary is None:
        yield "Nothing: all of it fits into the session document word for word."
        return
    first = [summary for summary in summaries if summary.level == 1]
    source, tokens = sum(each.source_tokens for each in first), sum(each.tokens for each in first)
    yield (
        f"{counted(sum(each.operation_count for each in first), 'operation')} of {source:,} tokens became "
        f"{tokens:,} tokens of summaries, {tokens / source:.0%}, without a model. The newest:"
    )
    yield from recall_views.losses_view(summaries[-_MOST_SUMMARIES:], hint=False)
    yield f"{expansion.reference} reads:"
    yield _boxed(expansion.summary.text)
    yield f"`expand {expansion.reference}` shows the operations as they were recorded:"
    yield from views.operations_view(expansion.operations[:_MOST_SUMMARIES])
    equal = record["originals_equal"]
    yield (
        "They equal the data from git, value for value."
        if equal
        else "They do NOT equal the data from git: this is a bug."
    )


def _boxed(text: str) -> RenderableType:
    from rich import box
    from rich.panel import Panel
    from rich.text import Text

    from orchestra_mem.core.text import visible

    return Panel(Text(visible(text.strip())), box=box.SQUARE, border_style="dim", expand=False)


def _documents(record: Mapping[str, Any]) -> Iterator[str]:
    yield "The session was flushed. These files are what the next run of the program remembers:"
    for name, path in record["documents"].items():
        yield f"{name:<14} {os.path.relpath(path, record['folder'])}  ({path.stat().st_size:,} bytes)"
    yield f"Look around: orchestra-mem status -C {record['folder']}"

"""The command `demo`: record a git history through the real manager with a small window, and show the result."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

from orchestra_mem import build
from orchestra_mem.faces.command import CommandResult, Invocation, command, option, recall_views, views
from orchestra_mem.faces.records import counted, status_record

if TYPE_CHECKING:
    from rich.console import RenderableType

    from orchestra_mem.core.imported_history import History, HistoryOperation
    from orchestra_mem.memory.importing import Imported
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.memory.recall import Expansion

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
        run.show(
            f"Each commit of {history.source} is recorded as an operation, and followed by a context for a model with\n"
            f"a window of only {WINDOW_TOKENS:,} tokens. The memory is created in {folder} and is kept there."
        )
    config = _SMALL_CONFIG | {"project": {"name": source.resolve().name or "project"}}
    with build.open_memory(folder, config=config) as memory:
        seconds = _replay(run, memory, history)
        summaries, operations = memory.losses(), memory.operations()
        short = [each for each in summaries if each.level == 1 and each.operation_count <= _MOST_EXPANDED] or summaries
        best = max(reversed(short), key=lambda summary: summary.operation_count, default=None)
        expansion = memory.expand(f"S{best.id}") if best else None
        context = memory.get_orchestrator_context("the next prompt", _SHOWN_CONTEXT_TOKENS)
        memory.flush_session()
        record = {
            "folder": folder, "recorded": len(operations), "recorded_tokens": sum(each.tokens for each in operations),
            "seconds": round(seconds, 3), "window_tokens": WINDOW_TOKENS, "note": history.note,
            "refreshes": memory.context_tracker.refresh_count, "summaries": summaries,
            "expanded": expansion.reference if expansion else None,
            "context": {"budget_tokens": context.budget_tokens, "tokens": context.tokens, "text": context.render()},
            "status": status_record(memory, folder),
        }  # fmt: skip
    return CommandResult(record, lambda: _view(record, expansion))


def _replay(run: Invocation, memory: OrchestratorContextManager, history: History) -> float:
    """Record a history, and refresh at least once. Return the seconds that this took."""
    from orchestra_mem.memory.importing import import_history

    begun = time.perf_counter()
    with run.progress(history.unit) as bar:
        task = bar.add_task("recording", total=history.total)

        def step(_done: Imported, found: HistoryOperation) -> None:
            memory.get_orchestrator_context(found.type)  # as an orchestrator does before its next prompt
            bar.update(task, completed=found.position)

        import_history(memory, history, on_operation=step)
    if not memory.context_tracker.refresh_count:
        memory.refresh()
    return time.perf_counter() - begun


def _view(record: Mapping[str, Any], expansion: Expansion | None) -> Iterator[RenderableType]:
    from rich.text import Text

    from orchestra_mem.core.text import visible
    from orchestra_mem.faces.status_lines import status_lines

    count, tokens, seconds = record["recorded"], record["recorded_tokens"], record["seconds"]
    yield Text("\n1. What was recorded", style="bold")
    yield Text(
        f"{counted(count, 'operation')} of {tokens:,} tokens in {seconds:.1f} s "
        f"({count / max(seconds, 0.001):,.0f} a second, refreshes included). "
        f"They would fill the window {tokens / WINDOW_TOKENS:.1f} times over."
    )
    if record["note"]:
        yield Text(f"Note: {record['note']}.", style="yellow")
    yield Text("\n2. What was compacted", style="bold")
    yield Text(
        "At 80% of the window, when the session document outgrows its share of it, or on request, the memory is "
        "refreshed: older operations move to that document, it is compacted, and the next context starts a new epoch. "
        f"Here this happened {counted(record['refreshes'], 'time')}. `losses` lists the summaries; the newest:"
    )
    yield from recall_views.losses_view(record["summaries"][-_MOST_SUMMARIES:])
    if expansion is not None and expansion.summary is not None:
        yield Text(f"{expansion.reference} reads:")
        yield Text(indent(visible(expansion.summary.text.strip()), "  "))
        yield Text(f"`expand {expansion.reference}` shows the operations as they were recorded:")
        yield from views.operations_view(expansion.operations[:_MOST_SUMMARIES])
    yield Text("\n3. What the model would get", style="bold")
    yield Text(indent(visible(record["context"]["text"].strip()), "  "))
    yield Text("\n4. What the next run of the program remembers", style="bold")
    yield from status_lines(record["status"])
    yield Text(f"Look around: orchestra-mem status -C {record['folder']}")

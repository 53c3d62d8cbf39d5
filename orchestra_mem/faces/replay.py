"""Replay a history through a memory: what the demonstration does, apart from how it is shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.core.context.window import UsagePoint
from orchestra_mem.core.histories import History, HistoryOperation
from orchestra_mem.manager import OrchestratorContextManager
from orchestra_mem.services.importing import Imported, import_history
from orchestra_mem.services.recall import Expansion
from orchestra_mem.types import DocumentName, Json, Operation, Summary, Version

# A history of fewer commits does not fill the window often enough: then each changed file is an operation as well.
FEW_COMMITS = 150
MOST_OPERATIONS = 600
# Small enough to be read whole on a terminal.
SHOWN_CONTEXT_TOKENS = 1_000


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

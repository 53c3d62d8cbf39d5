"""The command `demo`: a git history recorded through the real manager with a small window, and what became of it."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from orchestra_mem.errors import StorageError
from orchestra_mem.faces.command import CommandResult, Invocation, command, recall_views, views

if TYPE_CHECKING:
    from rich.console import RenderableType

    from orchestra_mem.core.context.rendered import OrchestratorContext
    from orchestra_mem.core.context.window import UsagePoint
    from orchestra_mem.core.histories import History, HistoryOperation
    from orchestra_mem.memory.importing import Imported
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.memory.recall import Expansion
    from orchestra_mem.types import Json, Operation, Summary

WINDOW_TOKENS = 8_192
# Entries so short that several make a segment in so small a window, and a document so large that it is compacted as
# often for its own size as for the window's; a history that was made just now is compacted like an old one.
_SMALL_CONFIG: dict[str, object] = {
    "orchestrator": {"context_window": {"max_tokens": WINDOW_TOKENS}, "session_compression_ratio": 0.5},
    "compaction": {"window_share": 0.55, "verbatim_window_s": 0}, "entries": {"max_chars": 240},
}  # fmt: skip
# A history of fewer commits does not fill the window often enough: then each changed file is an operation as well.
_FEW_COMMITS = 150
_MOST_OPERATIONS = 600
# Small enough to be read whole on a terminal.
_SHOWN_CONTEXT_TOKENS = 1_000
# An example of a summary covers no more operations than a screen holds.
_MOST_EXPANDED = 8
_MOST_SUMMARIES = 10
_PLOT_COLUMNS = 70
_EIGHTHS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a recorded history came to.

    `points` tell how full the window was. `originals_equal` is whether the operations behind `expansion` are those that
    were read from the repository, value for value; None where nothing was compacted.
    """

    folder: Path
    operations: list[Operation]
    seconds: float
    refreshes: int
    asked_refresh: bool
    points: Sequence[UsagePoint]
    context: OrchestratorContext
    summaries: list[Summary]
    expansion: Expansion | None
    originals_equal: bool | None
    documents: dict[str, Path]

    @property
    def tokens(self) -> int:
        """The tokens of all operations."""
        return sum(operation.tokens for operation in self.operations)


@command("Begin")
def demo(
    run: Invocation,
    repo: Annotated[Path, Option("--repo", metavar="PATH", help="The repository.")] = Path(),
    limit: Annotated[int, Option("--limit", min=1, metavar="N", help="Its newest N commits.")] = 400,
    keep: Annotated[
        Path | None, Option("--keep", metavar="DIR", help="Where the memory is made. Default: a new temporary one.")
    ] = None,
) -> CommandResult:
    """Record a git history in a new memory with a small window, and show what it keeps. Takes under a minute.

    Example: orchestra-mem demo --repo . --limit 400
    """
    from orchestra_mem.build import open_git_history, open_memory

    source = run.project if run.given is not None and repo == Path() else repo
    history = open_git_history(source, limit=limit)
    patches = history.total < _FEW_COMMITS
    if patches:
        history = thinned(open_git_history(source, limit=limit, patches=True), _MOST_OPERATIONS)
    folder = _folder(keep)
    if not run.debug:
        logging.getLogger("orchestra_mem").setLevel(logging.ERROR)
    if not run.as_json:
        run.show(*_opening(history, limit, folder, patches=patches))
    config = _SMALL_CONFIG | {"project": {"name": source.resolve().name or "project"}}
    with open_memory(folder, config=config) as memory:
        found = _replay(run, memory, history, folder)
    record = {
        "folder": found.folder, "recorded": len(found.operations), "recorded_tokens": found.tokens,
        "seconds": round(found.seconds, 3), "window_tokens": WINDOW_TOKENS, "refreshes": found.refreshes,
        "asked_refresh": found.asked_refresh,
        "usage": [(point.sequence, point.used_tokens, point.event) for point in found.points],
        "summaries": found.summaries, "expanded": found.expansion.reference if found.expansion else None,
        "originals_equal": found.originals_equal,
        "context": {
            "budget_tokens": found.context.budget_tokens, "tokens": found.context.tokens,
            "text": found.context.render(),
        },
        "documents": found.documents,
    }  # fmt: skip
    return CommandResult(record, lambda: _view(found))


def _folder(keep: Path | None) -> Path:
    from orchestra_mem.build import HOME

    if keep is None:
        return Path(tempfile.mkdtemp(prefix="orchestra-mem-demo-"))
    if (keep / HOME).exists():
        raise StorageError(f"{keep} has a memory already; name a folder without one, so that nothing is mixed into it")
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{keep} cannot be made: {error.strerror or error}") from error
    return keep.resolve()


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


def _replay(run: Invocation, memory: OrchestratorContextManager, history: History, folder: Path) -> Replayed:
    """Record a history, look at what has become of it, and flush the session."""
    from orchestra_mem.memory.importing import import_history
    from orchestra_mem.types import DocumentName

    originals: dict[str | None, Json] = {}
    begun = time.perf_counter()
    with run.progress(history.unit) as bar:
        task = bar.add_task("recording", total=history.total)

        def step(_done: Imported, found: HistoryOperation) -> None:
            originals[found.idempotency_key] = found.data
            memory.get_orchestrator_context(found.type)  # as an orchestrator does for its next prompt
            bar.update(task, completed=found.position)

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
    documents = {name.value: memory.episodic_memory.path(name) for name in DocumentName}
    return Replayed(
        folder=folder, operations=memory.operations(), seconds=seconds, refreshes=tracker.refresh_count,
        asked_refresh=asked, points=tracker.history(), context=context, summaries=summaries, expansion=expansion,
        originals_equal=all(op.data == originals[op.idempotency_key] for op in expansion.operations)
        if expansion else None,
        documents=documents | ({"session": archive} if archive else {}),
    )  # fmt: skip


def _opening(history: History, limit: int, folder: Path, *, patches: bool) -> Iterator[RenderableType]:
    """Say what is about to happen; with `patches` changed files are operations too."""
    from rich.text import Text

    much = f"It has {views.counted(history.total, 'commit')}."
    if history.total >= limit:
        much = f"The newest {history.total:,} of its commits are taken (--limit)."
    if patches:
        much += (
            " That is little, so each file that they changed is an operation as well, with its patch "
            f"(at most {_MOST_OPERATIONS:,} in all)."
        )
    yield Text("orchestra-mem: a git history replayed", style="bold")
    yield Text(
        f"Each commit of {history.source} is recorded as an operation, as an orchestrator would record it, and "
        f"followed by a context for a model with a window of only {WINDOW_TOKENS:,} tokens. {much} Documents show each "
        "operation in a few lines and are compacted at once, so that so small a window has much to show."
    )
    yield Text(f"The memory is made in {folder} and stays there.", overflow="fold")
    if history.note:
        yield Text(f"Note: {history.note}.", style="yellow")


def _view(found: Replayed) -> Iterator[RenderableType]:
    """Show what a history came to, section by section."""
    from rich.rule import Rule
    from rich.text import Text

    sections = {
        "What was recorded": _recorded(found), "The window over time": _window(found),
        "What was compacted": _compacted(found), "What the model would be given": _context(found),
        "The documents": _documents(found),
    }  # fmt: skip
    for number, (title, parts) in enumerate(sections.items(), 1):
        yield Text("")
        yield Rule(Text(f"{number}. {title}", style="bold"), align="left", style="dim")
        for part in parts:
            yield Text(part) if isinstance(part, str) else part
    yield Text("")
    yield Rule(style="dim")
    yield Text("Look around:")
    for line in ("status", "context --explain", "losses", "history project_state", "ops --limit 5"):
        yield Text(f"  orchestra-mem {line} -C {found.folder}", no_wrap=True, overflow="ignore")


def _recorded(found: Replayed) -> Iterator[RenderableType]:
    count, tokens = len(found.operations), found.tokens
    yield (
        f"{views.counted(count, 'operation')} of {tokens:,} tokens in {found.seconds:.1f} s "
        f"({count / max(found.seconds, 0.001):,.0f} a second, refreshes included). "
        f"They would fill the window {tokens / WINDOW_TOKENS:.1f} times over."
    )


def _window(found: Replayed) -> Iterator[RenderableType]:
    yield plot([point.used_tokens / WINDOW_TOKENS for point in found.points])
    if found.asked_refresh:
        yield "The history is too short to fill the window, so one refresh was asked for at the end (`refresh()`)."
        return
    resets = [point for point in found.points if point.event == "reset"]
    before = max(point.before_tokens for point in resets)
    after = sum(point.used_tokens for point in resets) / len(resets)
    yield (
        "At 80% of the window, or when the session document outgrows its share of it, the memory is refreshed: older "
        "operations go to that document, it is compacted, and the next context begins anew. Here that happened "
        f"{views.counted(found.refreshes, 'time')}; from at most {before:,} tokens ({before / WINDOW_TOKENS:.0%}) "
        f"down to {after:,.0f} ({after / WINDOW_TOKENS:.0%}) on average."
    )


def plot(shares: Sequence[float], columns: int = _PLOT_COLUMNS) -> str:
    """Draw shares of 1 over time in a line; where they are more than columns, each shows the highest of its own."""
    edges = [len(shares) * column // columns for column in range(columns + 1)]
    shown = shares if len(shares) <= columns else [max(shares[start:end]) for start, end in pairwise(edges)]
    return "".join(_EIGHTHS[max(0, min(8, round(share * 8)))] for share in shown)


def _compacted(found: Replayed) -> Iterator[RenderableType]:
    from rich.text import Text

    expansion = found.expansion
    if expansion is None or expansion.summary is None:
        yield "Nothing: all of it fits into the session document word for word."
        return
    first = [summary for summary in found.summaries if summary.level == 1]
    source, tokens = sum(each.source_tokens for each in first), sum(each.tokens for each in first)
    newest = found.summaries[-_MOST_SUMMARIES:]
    levels = max(summary.level for summary in found.summaries)
    yield (
        f"{views.counted(sum(each.operation_count for each in first), 'operation')} of {source:,} tokens became "
        f"{tokens:,} tokens of summaries, {tokens / source:.0%}, without a model. There are {len(found.summaries):,} "
        f"summaries on {views.counted(levels, 'level')}; the newest {len(newest)}:"
    )
    yield from recall_views.losses_view(newest, hint=False)
    summary = expansion.summary
    yield from ("", f"S{summary.id} reads:", _boxed(summary.text.strip()))
    yield f"and `expand S{summary.id}` gives {views.counted(len(expansion.operations), 'operation')}:"
    for operation in expansion.operations[:_MOST_SUMMARIES]:
        line = Text(f"  op{operation.id}  ", no_wrap=True, overflow="ellipsis")
        yield line.append_text(views.operation_words(operation))
    equal = found.originals_equal
    words = "They equal, value for value, what git told" if equal else "They do NOT equal what git told: this is a bug"
    yield Text(f"{words}.", style="green" if equal else "bold red")


def _boxed(text: str) -> RenderableType:
    from rich import box
    from rich.panel import Panel
    from rich.text import Text

    from orchestra_mem.core.text import visible

    return Panel(Text(visible(text)), box=box.SQUARE, border_style="dim")


def _context(found: Replayed) -> Iterator[RenderableType]:
    context = found.context
    whose = "the model's own" if context.exact else "not the model's own"
    yield (
        f"So that it can be read here, this is a context for a budget of {context.budget_tokens:,} tokens: "
        f"{context.tokens:,}, counted by {context.counter} ({whose})."
    )
    yield _boxed(context.render().rstrip())


def _documents(found: Replayed) -> Iterator[RenderableType]:
    yield (
        "The session was flushed. These files are what the next run of the program remembers. "
        "Edit them at any time, also while the program runs."
    )
    for name, path in found.documents.items():
        shown = path.relative_to(found.folder) if path.is_relative_to(found.folder) else path
        yield f"{name:<14} {shown}  ({path.stat().st_size:,} bytes)"

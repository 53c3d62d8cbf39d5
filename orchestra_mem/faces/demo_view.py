"""How the demonstration looks, section by section, from 80 columns on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from orchestra_mem.core.context.window import UsageEvent
from orchestra_mem.core.documents.entries import visible
from orchestra_mem.faces.plots import plot
from orchestra_mem.faces.rendering import clipped, counted, diff_view, losses_table, versions_view
from orchestra_mem.types import Json, Operation, Summary

if TYPE_CHECKING:
    from orchestra_mem.core.context.rendered import OrchestratorContext
    from orchestra_mem.core.histories import History
    from orchestra_mem.faces.replay import NextSession, Replayed
    from orchestra_mem.faces.shell import Shell

_MOST_SUMMARIES = 10
_NOTHING = "Nothing: all of it fits into the session document word for word."
_MOST_DIFF_LINES = 24
_MOST_EXPLAINED = 3


class DemoView:
    """Prints the demonstration's sections."""

    def __init__(self, run: Shell) -> None:
        self._run = run
        self._number = 0

    def _section(self, title: str, words: str = "") -> None:
        self._number += 1
        self._run.show(Text(""), Rule(Text(f"{self._number}. {title}", style="bold"), align="left", style="dim"))
        if words:
            self._run.show(Text(words))

    def opening(
        self, history: History, limit: int, folder: Path, window_tokens: int, most_operations: int | None
    ) -> None:
        """What is about to happen. `most_operations` where changed files are operations too: how many at most."""
        finer = "" if most_operations is None else (
            " These are few, so each file that they changed is an operation as well, with its patch "
            f"(at most {most_operations:,} in all)."
        )  # fmt: skip
        self._run.show(
            Text("orchestra-mem: a history replayed", style="bold"),
            Text(
                f"Each commit of {history.source} becomes an operation that is recorded by the same manager that an "
                "orchestrator uses, and followed by a context, for a model with a window of only "
                f"{window_tokens:,} tokens. {_how_much(history, limit)}{finer} In the documents entries are clipped to "
                "a few lines, and compacted however young they are, so that so small a window has much to show."
            ),
            Text(f"The memory lies in {folder} and stays there.", overflow="fold"),
        )
        if history.note:
            self._run.show(Text(f"Note: {history.note}.", style="yellow"))

    def everything(self, replayed: Replayed, following: NextSession, folder: Path) -> None:
        """All sections, in their order."""
        self._recorded(replayed)
        self._window(replayed)
        self._compacted(replayed)
        self._context(replayed.full_context, replayed.small_context)
        self._documents(replayed, following, folder)
        self._versions(following)
        self._recent(following)
        self._ending(folder)

    def _recorded(self, replayed: Replayed) -> None:
        per_second = replayed.recorded / replayed.seconds if replayed.seconds else 0
        self._section(
            "What was recorded",
            f"{counted(replayed.recorded, 'operation')} of {replayed.tokens:,} tokens in {replayed.seconds:.1f} s "
            f"({per_second:,.0f} a second, refreshes included). "
            f"They would fill the window {replayed.tokens / _size(replayed):.1f} times over.",
        )

    def _window(self, replayed: Replayed) -> None:
        size = _size(replayed)
        marks = {share: name for name, share in replayed.marks.items()}
        resets = [point for point in replayed.points if point.event is UsageEvent.RESET]
        self._section("The window over time")
        self._run.show(plot([point.used_tokens / size for point in replayed.points], marks))
        if replayed.asked_refresh:
            words = (
                "The history is too short to fill the window, so that no refresh came by itself: "
                "one was asked for at the end (`refresh()`)."
            )
        else:
            full = sum(point.before_tokens >= size * replayed.marks["refresh"] for point in resets)
            before = max(point.before_tokens for point in resets)
            after = sum(point.used_tokens for point in resets) / len(resets)
            words = (
                f"At {replayed.marks['refresh']:.0%} of the window, or when the session document outgrows its share of "
                "it, the memory is refreshed: older operations go to that document, it is compacted, and the next "
                f"context begins anew. Here the first happened {_times(full)}, the second "
                f"{_times(replayed.refreshes - full)}; from at most {before:,} tokens ({before / size:.0%}) down to "
                f"{after:,.0f} ({after / size:.0%}) on average."
            )
        self._run.show(Text(words))

    def _compacted(self, replayed: Replayed) -> None:
        self._section("What was compacted")
        if replayed.expansion is None or replayed.expansion.summary is None:
            self._run.show(Text(_NOTHING))
            return
        first = [summary for summary in replayed.summaries if summary.level == 1]
        source, told = sum(s.source_tokens for s in first), sum(s.tokens for s in first)
        newest = replayed.summaries[-_MOST_SUMMARIES:]
        operations = sum(s.operation_count for s in first)
        levels = max(summary.level for summary in replayed.summaries)
        self._run.show(
            Text(
                f"{counted(operations, 'operation')} of {source:,} tokens, told in {told:,}: "
                f"a ratio of {told / source:.0%}, without a model. Summaries: {len(replayed.summaries):,}, on "
                f"{counted(levels, 'level')}; the newest {len(newest)}:"
            ),
            losses_table(newest),
        )
        self._expanded(replayed, replayed.expansion.summary)

    def _expanded(self, replayed: Replayed, summary: Summary) -> None:
        assert replayed.expansion is not None
        self._run.show(
            Text(""), Text(f"S{summary.id} reads:"),
            Panel(Text(visible(summary.text.strip())), box=box.SQUARE, border_style="dim"),
            Text(f"and `expand S{summary.id}` gives {counted(len(replayed.expansion.operations), 'operation')}:"),
        )  # fmt: skip
        for operation in replayed.expansion.operations[:_MOST_SUMMARIES]:
            self._run.show(clipped(f"  op{operation.id}  {_commit(operation)}"))
        same = replayed.originals_equal
        words = "equal, value for value, to what git told" if same else "NOT equal to what git told: this is a bug"
        self._run.show(Text(f"They are {words}.", style="green" if same else "bold red"))

    def _context(self, full: OrchestratorContext, small: OrchestratorContext) -> None:
        self._section(
            "What the model would be given",
            f"At the end of the replay the context has {full.tokens:,} tokens of a budget of {full.budget_tokens:,}. "
            f"So that it can be read here, this is one for a budget of {small.budget_tokens:,}: {small.tokens:,} "
            f"tokens, counted by {small.counter} ({'the model’s own' if small.exact else 'not the model’s own'}).",
        )
        self._run.show(
            Panel(Text(visible(small.render().rstrip())), box=box.SQUARE, border_style="dim"),
            Text("Why each item is there (+), shortened (~) or left out (-); `explain()`, the first of each kind:"),
        )
        for line in _excerpt(small.explain()):
            self._run.show(clipped_line(line))

    def _documents(self, replayed: Replayed, following: NextSession, folder: Path) -> None:
        self._section(
            "The documents",
            "The session was flushed and the memory opened again, as by the next run of the program. What stands in "
            f"these files is what it remembers; its first context has {following.context_tokens:,} tokens of them. "
            "They may be edited at any time, also while the program runs.",
        )
        table = Table.grid(padding=(0, 2))
        for name, path in [*following.documents.items(), ("session", replayed.archive)]:
            if path is not None:
                shown = path.relative_to(folder) if path.is_relative_to(folder) else path
                table.add_row(Text(name), Text(str(shown), overflow="fold"), Text(f"{path.stat().st_size:,} bytes"))
        self._run.show(table)

    def _versions(self, following: NextSession) -> None:
        self._section(
            "A document's versions",
            f"Before {following.document}.md is written anew, the old text is kept. The newest "
            f"{len(following.versions)} are there, and the last change was:",
        )
        self._run.show(*versions_view(following.versions[-5:]))
        lines = following.diff.splitlines()
        self._run.show(Text(""), diff_view("\n".join(lines[:_MOST_DIFF_LINES])))
        if len(lines) > _MOST_DIFF_LINES:
            self._run.show(Text(f"… {len(lines) - _MOST_DIFF_LINES:,} more lines", style="dim"))

    def _recent(self, following: NextSession) -> None:
        self._section("“What did we just do?”")
        newest, *older = following.recent
        self._run.show(Text(f"Last, on {newest.timestamp:%d %B %Y}, we did this: {_commit(newest)}."))
        if older:
            self._run.show(Text("Before that:"))
        for operation in older:
            self._run.show(clipped(f"- {operation.timestamp:%d %B}: {_commit(operation)}"))

    def _ending(self, folder: Path) -> None:
        self._run.show(Text(""), Rule(style="dim"), Text("Look around:"))
        for command in ("status", "losses", "history project_state", "ops --limit 5"):
            self._run.text(f"  orchestra-mem {command} -C {folder}\n")


def clipped_line(line: str) -> Text:
    """A line that keeps its indentation, clipped at the terminal's edge."""
    return Text(visible(line), no_wrap=True, overflow="ellipsis")


def _how_much(history: History, limit: int) -> str:
    if history.total < limit:
        return f"It has {counted(history.total, 'commit')}."
    return f"Of its commits the newest {history.total:,} are taken (--limit)."


def _size(replayed: Replayed) -> int:
    return round(replayed.full_context.budget_tokens / replayed.marks["refresh"])


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count:,} times")


def _excerpt(explained: str) -> list[str]:
    """Of each part its headline, and of its items the first few of each mark."""
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


def _commit(operation: Operation) -> str:
    """A commit, or a changed file, in words."""
    data = operation.data
    if not isinstance(data, dict):
        return operation.type
    if operation.type == "file_change":
        return f"changed {data.get('title')}"
    files = data.get("files")
    changed = [file for file in files if isinstance(file, dict)] if isinstance(files, list) else []
    added, deleted = (_sum(changed, field) for field in ("added", "deleted"))
    count = counted(len(changed), "file")
    return f"{data.get('subject') or 'a commit without words'} ({count}, +{added:,} -{deleted:,})"


def _sum(files: Sequence[dict[str, Json]], field: str) -> int:
    values = (file.get(field) for file in files)
    return sum(value for value in values if isinstance(value, int))

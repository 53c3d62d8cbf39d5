"""Check that contexts, queries, documents and memory stay small at 1,250 work items, and at 10 and 100 times as many.

The source design assumes 50 epics, 200 stories and 1,000 tasks, with 62.5 % of a 128K window for them. Each size is
built in one process and then used in another for a session of 100 operations.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import Options, Report, Target, fresh, percentile, run, say, stopwatch
from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.tiers.state import StateManager
from orchestra_mem.types import DocumentName
from orchestra_mem.work_types import OPEN_STATUSES, WorkFilter, WorkItem, WorkKind, WorkStatus

TARGETS: dict[str, Target] = {
    "context_share": ("<=", 0.625),
    "status_p95_ms": ("<=", 10.0),
    "project_state_tokens": ("<=", 30_000),
    "work_plan_tokens": ("<=", 30_000),
    "memory_mb": ("<=", 50.0),
}
FACTORS = {"1x": 1, "10x": 10, "100x": 100}
_QUICK = ("1x",)
_EPICS, _STORIES, _TASKS = 50, 4, 5  # epics per project, stories per epic, tasks per story
_EPICS_OF_A_MILESTONE = 25
_OPERATIONS = 100
_DOCUMENTS = (DocumentName.PROJECT_STATE, DocumentName.WORK_PLAN)
_WINDOW_TOKENS = 128_000
_SHOWN = 20
_IMPORT = """
import psutil, benchmarks.scale, orchestra_mem.build.wiring
from orchestra_mem.adapters.tokenizers import open_counter
open_counter().count("the ranks are loaded with the first count")
print(psutil.Process().memory_info().rss)
"""
_BUILD = "from benchmarks.scale import build; build({folder!r}, {factor})"
_WORK = "from benchmarks.scale import work; work({folder!r}, {before})"
_SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo yu za bre cli dro fle gra".split()


@dataclass(slots=True)
class Text:
    """Seeded generator of titles and descriptions: some words are common, most are rare."""

    chance: random.Random

    def words(self, count: int) -> str:
        """Return `count` words."""
        return " ".join(self._word(int(self.chance.paretovariate(0.7))) for _ in range(count))

    @staticmethod
    def _word(number: int) -> str:
        number = number % 40_000 + 30
        parts = []
        while number:
            number, part = divmod(number, len(_SYLLABLES))
            parts.append(_SYLLABLES[part])
        return "".join(parts)


def build(folder: str, factor: int) -> None:
    """Build a project of `factor` times the size, with two fifths of its items done."""
    text = Text(random.Random(factor))
    with open_memory(folder) as memory:
        milestone = 0
        for number in range(_EPICS * factor):
            with memory.state.together():
                if number % _EPICS_OF_A_MILESTONE == 0:
                    milestone = memory.state.create(WorkKind.MILESTONE, text.words(2)).id
                _build_epic(memory.state, text, milestone)


def _build_epic(state: StateManager, text: Text, milestone: int) -> None:
    chance = text.chance
    epic = state.create(
        WorkKind.EPIC, text.words(3), description=text.words(30), parent=milestone, priority=chance.randint(1, 5)
    )
    for _ in range(_STORIES):
        story = state.create(
            WorkKind.STORY, text.words(5), description=text.words(25), parent=epic.id, priority=chance.randint(1, 5)
        )
        before: WorkItem | None = None
        for _ in range(_TASKS):
            waits = [before.id] if before and chance.random() < 0.3 else []
            before = state.create(
                WorkKind.TASK, text.words(6), description=text.words(15), parent=story.id, depends_on=waits,
                priority=chance.randint(1, 5), assignee=chance.choice(["ann", "bob", None]),
            )  # fmt: skip
            _move_on(state, before, chance)


def _move_on(state: StateManager, item: WorkItem, chance: random.Random) -> None:
    drawn = chance.random()
    if drawn < 0.4 and not state.blockers(item.id):
        state.set_status(item.id, WorkStatus.DONE)
    elif drawn < 0.5:
        state.set_status(item.id, WorkStatus.IN_PROGRESS)
    elif drawn < 0.55:
        state.set_status(item.id, WorkStatus.BLOCKED, reason="waits for an answer")


@dataclass(slots=True)
class Measured:
    """Measurements of one session."""

    status_ms: list[float] = field(default_factory=list)
    change_ms: list[float] = field(default_factory=list)
    text_ms: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)


def work(folder: str, imported: int) -> None:
    """Run a session on a project, and print its measurements as JSON.

    Args:
        folder: Folder of the project.
        imported: Bytes of resident memory of a process after the same imports.
    """
    measured, chance = Measured(), random.Random(5)
    with open_memory(folder) as memory:
        size = sum(sum(row.values()) for row in memory.state.counts().values())
        for number in range(_OPERATIONS):
            _step(memory, number, chance.randint(1, size), measured, chance)
        memory.refresh()
        resident = psutil.Process().memory_info().rss
        stats = memory.episodic_memory.get_stats()
    tokens = {name.value: stats[f"{name.value}_tokens"] for name in _DOCUMENTS}
    print(
        json.dumps(
            {
                "items": size, "status_ms": measured.status_ms, "change_ms": measured.change_ms,
                "text_ms": measured.text_ms, "share": max(measured.shares), "tokens": tokens,
                "memory_mb": (resident - imported) / 2**20,
            }
        )
    )  # fmt: skip


def _step(
    memory: OrchestratorContextManager, number: int, item_id: int, measured: Measured, chance: random.Random
) -> None:
    """Query the state of work, get a context, change an item and record an operation."""
    state = memory.state
    for ask in (
        lambda: state.item(item_id),
        lambda: state.progress(item_id),
        lambda: state.blockers(item_id),
        lambda: state.events(item_id),
        state.counts,
        lambda: state.items(WorkFilter(parent=item_id, limit=_SHOWN)),
        lambda: state.items(WorkFilter(blocked_by=item_id)),
        lambda: state.items(WorkFilter(statuses=(WorkStatus.IN_PROGRESS,), limit=_SHOWN)),
        lambda: state.items(WorkFilter(statuses=(WorkStatus.BLOCKED,), limit=_SHOWN)),
        lambda: state.items(WorkFilter(kinds=(WorkKind.EPIC,), statuses=OPEN_STATUSES, limit=_SHOWN)),
        lambda: state.items(WorkFilter(statuses=OPEN_STATUSES, assignee="ann", limit=_SHOWN)),
        lambda: state.progress(1),
    ):
        with stopwatch(measured.status_ms):
            ask()
    words = chance.sample(state.item(item_id).title.split(), 2)
    with stopwatch(measured.text_ms):
        state.items(WorkFilter(text=" ".join(words), limit=_SHOWN))
    measured.shares.append(memory.get_orchestrator_context("task_execution").tokens / _WINDOW_TOKENS)
    operation = memory.record_operation("task_execution", {"text": f"worked on #{item_id}: {' '.join(words)}"})
    with stopwatch(measured.change_ms):
        state.create(WorkKind.TASK, f"follow-up {number} of {words[0]}", operation=operation.id)


def measure(options: Options, report: Report) -> None:
    """Measure each size in separate processes; the targets apply to the worst size."""
    imported = int(fresh(_IMPORT))
    results = {}
    for name, factor in FACTORS.items():
        if options.quick and name not in _QUICK:
            continue
        with tempfile.TemporaryDirectory() as folder:
            fresh(_BUILD.format(folder=folder, factor=factor))
            say(f"{name}: built")
            results[name] = json.loads(fresh(_WORK.format(folder=folder, before=imported)))
    for name, result in results.items():
        n, note = len(result["status_ms"]), f"{result['items']:,} items"
        report.add(f"status_p95_ms_{name}", percentile(result["status_ms"], 95), n=n, note=note)
        report.add(f"text_p95_ms_{name}", percentile(result["text_ms"], 95), n=len(result["text_ms"]), note=note)
        report.add(f"change_p95_ms_{name}", percentile(result["change_ms"], 95), n=len(result["change_ms"]), note=note)
        report.add(f"context_share_{name}", result["share"], n=_OPERATIONS, note=note)
        report.add(f"memory_mb_{name}", result["memory_mb"], note=note)
    report.add("context_share", max(each["share"] for each in results.values()), note="largest context over 128K")
    report.add(
        "status_p95_ms", max(percentile(each["status_ms"], 95) for each in results.values()), note="at the worst size"
    )
    for document in _DOCUMENTS:
        tokens = max(each["tokens"][document.value] for each in results.values())
        report.add(f"{document.value}_tokens", tokens, note="at its largest, after a refresh")
    report.add(
        "memory_mb", max(each["memory_mb"] for each in results.values()), note="resident beyond imports; worst size"
    )


if __name__ == "__main__":
    sys.exit(run("scale", measure, TARGETS))

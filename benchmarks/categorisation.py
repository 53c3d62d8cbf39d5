"""Measure how often the rules, and optionally a model, name the category of an orchestration (decision, bugfix, …).

The data are forty tasks with their results (`data/orchestrations.jsonl`), in the style of eight writers: a hurried
developer, a product manager, an operator, a data scientist, somebody who writes English as a second language, a
designer, a support engineer, and a program's log. Each task was labelled when it was written; most contain none of the
rules' keywords. The rules come from the source design; neither they nor the prompt were fitted to these tasks. With
`--model` a model categorises the tasks too, without a time limit and otherwise with the default settings.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks._harness import Options, Report, Target, find_model, run, say
from orchestra_mem import CategorizationService
from orchestra_mem.catalog_types import RULE_BASED, Category
from orchestra_mem.settings import CategorizationSettings

# From the source design. The model's time has no target, as it depends on the processor.
TARGETS: dict[str, Target] = {"rules_per_s": (">=", 10), "rules_max_ms": ("<=", 5_000)}
_MODEL_TIMEOUT_MS = 300_000
_DESIGN_TIMEOUT_MS = CategorizationSettings().timeout_ms
DATA = Path(__file__).resolve().parent / "data" / "orchestrations.jsonl"


class Task(NamedTuple):
    """A task with its result, its category, and the kind of writer."""

    writer: str
    type: Category
    task: str
    result: str
    success: bool = True


_ROWS = map(json.loads, DATA.read_text(encoding="utf-8").splitlines())
TASKS = [Task(**row | {"type": Category(row["type"])}) for row in _ROWS]


def measure(options: Options, report: Report) -> None:
    """Categorise all tasks by the rules, and by a model if one is named."""
    _add(report, "rules", CategorizationService())
    if options.model:
        settings = CategorizationSettings(timeout_ms=_MODEL_TIMEOUT_MS)
        model = find_model(options.model, context_tokens=4_096)
        _add(report, "model", CategorizationService(model, settings=settings))


def _add(report: Report, name: str, service: CategorizationService) -> None:
    right: Counter[Category] = Counter()
    of_model, with_word, durations_ms = 0, 0, []
    for number, each in enumerate(TASKS, 1):
        begun = time.perf_counter()
        learnt = service.categorize_orchestration(
            {"pattern": "sequential", "agent_ids": ["worker-1"], "task": each.task, "result_summary": each.result,
             "success": each.success, "duration": 4_000},
        )  # fmt: skip
        durations_ms.append((time.perf_counter() - begun) * 1_000)
        right[each.type] += learnt.type is each.type
        of_model += learnt.source != RULE_BASED
        with_word += learnt.type is not Category.PATTERN_USAGE
        say(f"{number}: {each.type} read as {learnt.type} by {learnt.source}")
    report.add(f"{name}_accuracy", right.total() / len(TASKS), n=len(TASKS), note=_told(right))
    report.add(f"{name}_mean_ms", sum(durations_ms) / len(TASKS), n=len(TASKS))
    report.add(f"{name}_max_ms", max(durations_ms), n=len(TASKS))
    if name == "rules":
        report.add("rules_matched", with_word / len(TASKS), n=len(TASKS), note="tasks with a keyword of the rules")
        report.add("rules_per_s", 1_000 * len(TASKS) / sum(durations_ms), n=len(TASKS))
    else:
        report.add("model_answered", of_model / len(TASKS), n=len(TASKS), note="the rules answered the others")
        in_time = _share_below(durations_ms, _DESIGN_TIMEOUT_MS)
        report.add("model_in_time", in_time, n=len(TASKS), note="within the default timeout")


def _share_below(durations_ms: Sequence[float], most_ms: float) -> float:
    return sum(duration <= most_ms for duration in durations_ms) / len(durations_ms)


def _told(right: Counter[Category]) -> str:
    of = Counter(each.type for each in TASKS)
    return ", ".join(f"{kind} {right[kind]}/{of[kind]}" for kind in Category)


if __name__ == "__main__":
    sys.exit(run("categorisation", measure, TARGETS))

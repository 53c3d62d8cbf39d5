"""Measure how long the program's own prompts take while a model improves summaries in the background.

A model in this process works for a memory with a long queue; now and then the program prompts it. Each such prompt is
followed by a similar one without background work, so that both meet the same load on the machine. At first the prompts
share no prefix; then they share all but their ends, so that the model's prompt cache can hold the rest.

Records come with pauses, in which the processor's caches go cold. To show what that alone costs, the same data is also
written without a memory: encoded as JSON, tokenized, and committed to an SQLite database of one table.
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import Options, Report, Target, find_model, percentile, run, say, stopwatch
from benchmarks._operations import Generator, Work, WorkClock
from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.adapters.tokenizers import TiktokenCounter
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import LanguageModel, Message, Role

TARGETS: dict[str, Target] = {
    "foreground_delay_ratio": ("<=", 1.2),
    "foreground_alike_ratio": ("<=", 1.2),
    "record_p99_ratio": ("<=", 2.5),
}
_MODEL = "qwen2.5-coder-0.5b-instruct-q4_k_m"
_OPERATIONS, _PROMPTS, _PAUSE_S = 900, 28, 4.0
_QUICK_OPERATIONS, _QUICK_PROMPTS, _QUICK_PAUSE_S = 240, 12, 3.0
_ANSWER_TOKENS = 12
_RECORD_EVERY_S = 0.02
_ENTRY_CHARS = 4_000  # about as much as an entry shows of its operation
_QUESTION = (
    "a parser that drops the last row of its table when the cursor is closed too early, and a queue that keeps its "
    "oldest entries for ever. Say in one sentence what is to be done first, and why it matters for the release."
)
# As long as a typical system prompt of an orchestrator.
_RULES = "".join(
    f"Rule {n}: a request about part {n} of the plan is answered with its number, its state, and what stands in its "
    "way; nothing is done without a word of the person who asked. "
    for n in range(1, 9)
)


class Records:
    """Milliseconds of records, and of bare writes of the same data."""

    def __init__(self, database: Path) -> None:
        self.ours: list[float] = []
        self.bare: list[float] = []
        self._count = TiktokenCounter()
        self._database = sqlite3.connect(database, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute("CREATE TABLE operations (id INTEGER PRIMARY KEY, tokens INTEGER, data TEXT)")

    def write_bare(self, data: object) -> None:
        """Encode data as JSON, count its tokens, and commit it."""
        text = json.dumps(data)
        tokens = self._count.count(text[:_ENTRY_CHARS])
        self._database.execute("BEGIN IMMEDIATE")
        self._database.execute("INSERT INTO operations (tokens, data) VALUES (?, ?)", (tokens, text))
        self._database.execute("COMMIT")

    def close(self) -> None:
        """Close the bare database."""
        self._database.close()


def measure(options: Options, report: Report) -> None:
    """Prompt with and without background work, and record in between."""
    model = find_model(options.model or _MODEL, context_tokens=2_048)
    clock = WorkClock()
    try:
        with tempfile.TemporaryDirectory() as folder, open_memory(folder, clock=clock, model=model) as memory:
            _fill(memory, clock, _QUICK_OPERATIONS if options.quick else _OPERATIONS)
            with (
                closing(Records(Path(folder) / "meanwhile.db")) as records,
                closing(Records(Path(folder) / "alone.db")) as alone,
            ):
                _prompts(memory, model, clock, options, report, records, alone)
    except ModelError as error:
        for key in TARGETS:
            report.unmeasured(key, str(error))
    finally:
        model.close()


def _fill(memory: OrchestratorContextManager, clock: WorkClock, operations: int) -> None:
    """Record steps and test runs of which extraction keeps little, so that a model has room to add lines."""
    chance = random.Random(7)
    for number in range(operations):
        clock.advance(120)
        if number % 3 == 0:
            text = f"I looked at src/part_{number}/rows.py and thought about the cursor of part {number}."
            memory.record_operation("message", {"role": "agent", "text": text})
        else:
            runs = [f"tests/test_{number}_{k}.py::test_row_{k} PASSED {chance.randint(1, 999)} ms" for k in range(24)]
            memory.record_operation("tool_call", {"tool": "bash", "output": "\n".join(runs)})
    memory.refresh()


def _prompts(
    memory: OrchestratorContextManager,
    model: LanguageModel,
    clock: WorkClock,
    options: Options,
    report: Report,
    records: Records,
    alone: Records,
) -> None:
    busy: dict[bool, list[float]] = {False: [], True: []}
    free: dict[bool, list[float]] = {False: [], True: []}
    works, numbers = Generator(8).works(), count()
    interrupted = 0
    prompts = _QUICK_PROMPTS if options.quick else _PROMPTS
    for number in range(prompts):
        alike = number >= prompts // 2
        if number == prompts // 2:
            _ask(model, next(numbers), alike=True)  # fills the cache: the first prompt has no prefix to reuse
        waiting = _waiting(memory)
        pause_s = _QUICK_PAUSE_S if options.quick else _PAUSE_S
        _record(memory, works, clock, pause_s, records)
        at_work = any(story.job and story.job.since for story in memory.compression.stories(memory.losses()))
        interrupted += at_work
        with memory.foreground():
            with stopwatch(busy[alike]):
                _ask(model, next(numbers), alike=alike)
            with stopwatch(free[alike]):
                _ask(model, next(numbers), alike=alike)
            _record(memory, works, clock, pause_s, alone)
        kind = "alike" if alike else "distinct"
        say(f"{kind}: {busy[alike][-1]:.0f} ms, {free[alike][-1]:.0f} ms alone; {waiting} summaries wait")
    for alike, name in ((False, "delay"), (True, "alike")):
        kind = "with the same beginning as the prompts before" if alike else "unlike the prompts before"
        report.percentiles(f"foreground_{name}", busy[alike], (50, 95), note=f"a prompt {kind}, with background work")
        report.percentiles(f"foreground_{name}_alone", free[alike], (50, 95), note="the same without background work")
        ratio = percentile(busy[alike], 95) / percentile(free[alike], 95)
        report.add(f"foreground_{name}_ratio", ratio, n=len(busy[alike]), note="ratio of the 95th percentiles")
    report.percentiles("record", records.ours, (50, 99), note="records meanwhile, including refreshes")
    report.percentiles("record_bare", records.bare, (50, 99), note="JSON, a count, a commit, and nothing else")
    ratio = percentile(records.ours, 99) / percentile(records.bare, 99)
    report.add("record_p99_ratio", ratio, n=len(records.ours), note="a record / a bare write, both meanwhile")
    report.percentiles("record_alone", alone.ours, (50, 99), note="with nothing in the background")
    report.percentiles("record_alone_bare", alone.bare, (50, 99), note="bare writes, with nothing in the background")
    report.add(
        "interrupted",
        interrupted,
        n=sum(map(len, busy.values())),
        note="prompts that arrived while a summary was being generated",
    )
    report.add("waiting_at_the_end", _waiting(memory), note="summaries")


def _record(
    memory: OrchestratorContextManager, works: Iterator[Work], clock: WorkClock, seconds: float, records: Records
) -> None:
    """Alternate records and bare writes of similar data for some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        work = next(works)
        clock.advance(0.01)
        with stopwatch(records.ours):
            memory.record_operation(work.type, work.data)
        time.sleep(_RECORD_EVERY_S)
        work = next(works)
        with stopwatch(records.bare):
            records.write_bare(work.data)
        time.sleep(_RECORD_EVERY_S)


def _ask(model: LanguageModel, number: int, *, alike: bool) -> None:
    told = f"{number * 7919} is the number of this prompt."
    messages = [
        Message(role=Role.SYSTEM, text=f"{_RULES}{told}" if alike else told),
        Message(role=Role.USER, text=f"There is {_QUESTION}"),
    ]
    model.generate(messages, max_tokens=_ANSWER_TOKENS, timeout_s=120)


def _waiting(memory: OrchestratorContextManager) -> int:
    return sum(story.job is not None for story in memory.compression.stories(memory.losses()))


if __name__ == "__main__":
    sys.exit(run("foreground", measure, TARGETS))

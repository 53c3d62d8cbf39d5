"""Measure what a long session costs: time per record, tokens of contexts and session document, process memory."""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import Options, Report, Target, fresh, percentile, run, say
from benchmarks._operations import Generator, Work, WorkClock
from orchestra_mem import OrchestratorContextManager, open_memory

TARGETS: dict[str, Target] = {
    "record_slowdown": ("<=", 1.5),
    "context_tokens_max_share": ("<=", 0.8),
    "session_doc_growth_exponent": ("<=", 0.3),
    "rss_beyond_imports_mb": ("<=", 50.0),
}
# Growth is measured from here on: before, caches and the first documents fill.
FIRST = 1_000
CONTEXT_EVERY = 20
DOCUMENT_EVERY = 10
BUCKETS_A_DECADE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """Number of operations recorded for a window size, and of records behind each p50."""

    window: int
    operations: int
    sample: int


FULL_RUN = (
    Length(window=8_192, operations=100_000, sample=5_000),
    Length(window=128_000, operations=1_000_000, sample=10_000),
)
QUICK_RUN = (
    Length(window=8_192, operations=1_500, sample=250),
    Length(window=128_000, operations=20_000, sample=2_000),
)
MAIN_WINDOW = 128_000


@dataclass(slots=True)
class Growth:
    """Measurements of one long session. `documents`: (operations, tokens) of the session document over time."""

    largest_context: int = 0
    contexts: int = 0
    documents: list[tuple[int, int]] = field(default_factory=list)
    epochs: int = 0
    fresh_ms: list[float] = field(default_factory=list)
    beside_ms: list[float] = field(default_factory=list)


def timed(memory: OrchestratorContextManager, clock: WorkClock, work: Work) -> float:
    """Record one operation at its time; return the milliseconds."""
    clock.advance(work.seconds)
    start = time.perf_counter_ns()
    memory.record_operation(work.type, work.data, agent=work.agent)
    return (time.perf_counter_ns() - start) / 1e6


def grow(length: Length) -> Growth:
    """Record one long session and sample it along the way."""
    growth, clock, works = Growth(), WorkClock(), Generator(length.window).works()
    config = {"orchestrator": {"context_window": {"max_tokens": length.window}}}
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, open_memory(folder, config=config, clock=clock) as memory:
        for number, work in enumerate(islice(works, length.operations), start=1):
            timed(memory, clock, work)
            if number % CONTEXT_EVERY == 0:
                context = memory.get_orchestrator_context("task_execution")
                growth.largest_context = max(growth.largest_context, context.tokens)
                growth.contexts += 1
                growth.epochs = max(growth.epochs, context.epoch)
            if number % DOCUMENT_EVERY == 0 and number >= FIRST:
                growth.documents.append((number, memory.session_memory.token_count()))
            if number % max(2_500, length.operations // 100) == 0:
                tell(length, number, time.monotonic() - started)
        beside(memory, clock, length, growth)
    return growth


def tell(length: Length, number: int, seconds: float) -> None:
    """Report progress and about how long the rest takes."""
    left = seconds / number * (length.operations - number)
    say(
        f"growth, window of {length.window:,}: {number:,} of {length.operations:,} operations, {left / 60:.0f} min left"
    )


def beside(memory: OrchestratorContextManager, clock: WorkClock, length: Length, growth: Growth) -> None:
    """Record alternately into the long session and a new one, so that both meet the same load on the machine."""
    config = {"orchestrator": {"context_window": {"max_tokens": length.window}}}
    works, new_clock = Generator(length.window + 1).works(), WorkClock()
    with tempfile.TemporaryDirectory() as folder, open_memory(folder, config=config, clock=new_clock) as new:
        for work in islice(works, FIRST):
            timed(new, new_clock, work)
        for work in islice(works, length.sample):
            growth.fresh_ms.append(timed(new, new_clock, work))
            growth.beside_ms.append(timed(memory, clock, work))


def exponent(points: list[tuple[int, int]]) -> float:
    """Return b of a fit tokens = a * operations^b: least squares of logarithms, tenths of a decade weighted alike."""
    buckets: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for operations, tokens in points:
        at = math.log10(operations)
        buckets[int(at * BUCKETS_A_DECADE)].append((at, math.log10(max(1, tokens))))
    centres = [tuple(map(statistics.fmean, zip(*bucket, strict=True))) for bucket in buckets.values()]
    return statistics.linear_regression([x for x, _ in centres], [y for _, y in centres]).slope


RSS = """
import psutil, sys, tempfile
from itertools import islice
from benchmarks._operations import Generator, WorkClock
from orchestra_mem import open_memory
from orchestra_mem.adapters.tokenizers import open_counter
rss = psutil.Process().memory_info
open_counter().count("the ranks are loaded with the first count")
loaded, clock = rss().rss, WorkClock()
with tempfile.TemporaryDirectory() as folder, open_memory(folder, clock=clock) as memory:
    most = 0
    for number, work in enumerate(islice(Generator(2).works(), int(sys.argv[1]))):
        clock.advance(work.seconds)
        memory.record_operation(work.type, work.data, agent=work.agent)
        if number % 10 == 0:
            memory.get_orchestrator_context("task_execution")
        most = max(most, rss().rss)
print(loaded, most)
"""
RSS_OPERATIONS = 10_000


def measure_memory(quick: bool, report: Report) -> None:
    """Measure the peak resident memory of fresh processes that record 10,000 operations with default settings."""
    beyond: list[float] = []
    for _ in range(1 if quick else 5):
        say("growth: memory of a fresh process")
        loaded, most = (int(part) / 2**20 for part in fresh(RSS, str(RSS_OPERATIONS)).split())
        beyond.append(most - loaded)
    note = f"highest during {RSS_OPERATIONS:,} records, minus imports and tokenizer ranks; median of processes"
    report.add("rss_beyond_imports_mb", statistics.median(beyond), n=len(beyond), note=note)


def measure(options: Options, report: Report) -> None:
    """Measure memory in fresh processes, then a long session for each window."""
    measure_memory(options.quick, report)
    results = {length.window: (length, grow(length)) for length in (QUICK_RUN if options.quick else FULL_RUN)}
    for window, (length, growth) in results.items():
        add_growth(report, f"_{window}", length, growth)
    length, main = results[MAIN_WINDOW]
    figures = report.figures
    slowdown = figures[f"record_slowdown_{MAIN_WINDOW}"].value
    report.add("record_slowdown", slowdown, n=length.sample, note="p50 of this session / of a new one, alternating")
    shares = {window: figures[f"context_tokens_max_share_{window}"].value for window in results}
    worst = max(shares, key=lambda window: shares[window])
    report.add("context_tokens_max_share", shares[worst], n=sum(g.contexts for _, g in results.values()),
               note=f"the largest of all contexts, window of {worst:,}")  # fmt: skip
    # Over less than a decade, the saw-tooth of spills and compactions hides any growth.
    long = [window for window, (each, _) in results.items() if each.operations >= 10 * FIRST]
    slope = max(figures[f"session_doc_growth_exponent_{window}"].value for window in long)
    report.add("session_doc_growth_exponent", slope, n=len(main.documents), note=f"the highest of windows {long}")


def add_growth(report: Report, suffix: str, length: Length, growth: Growth) -> None:
    """Report one session."""
    fresh_p50 = percentile(growth.fresh_ms, 50)
    report.add(
        f"record_slowdown{suffix}", percentile(growth.beside_ms, 50) / fresh_p50, n=len(growth.beside_ms),
        note=f"a new session, alternating, takes {fresh_p50:.2f} ms",
    )  # fmt: skip
    report.add(
        f"context_tokens_max_share{suffix}", growth.largest_context / length.window, n=growth.contexts,
        note=f"{growth.largest_context:,} tokens, {growth.epochs:,} epochs",
    )  # fmt: skip
    tokens = [size for _, size in growth.documents]
    report.add(
        f"session_doc_growth_exponent{suffix}", exponent(growth.documents), n=len(tokens),
        note=f"{tokens[-1]:,} tokens at operation {length.operations:,}, at most {max(tokens):,}",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(run("growth", measure, TARGETS))

"""Measure how long callers wait for recording, contexts, refreshes, flushes, opening and importing."""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._facts import load_records
from benchmarks._harness import Options, Report, Target, fresh, run, say, stopwatch
from benchmarks._operations import Generator, Work, WorkClock
from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.tiers.session_compaction import Refreshed
from orchestra_mem.types import STATED_FACT

TARGETS: dict[str, Target] = {
    "record_p99_ms": ("<=", 1.0),
    "context_p95_ms": ("<=", 5.0),
    "refresh_p95_ms": ("<=", 100.0),
    "flush_p95_ms": ("<=", 250.0),
    "import_ms": ("<=", 150.0),
    "open_100k_ms": ("<=", 500.0),
}
WINDOW = 128_000
BUDGET = WINDOW * 8 // 10
# Share of its budget from which a context counts as full.
FULL = 0.9
# The first calls of a process load the tokenizer and fill caches. Its first pause (an agent pauses while its model
# works) loads the tables that refreshes need.
WARM_UP = 100
FIRST_PAUSE_S = 1.5
# A paced agent requests a context, waits at least this long for its model, and records four operations.
PAUSE_S = 0.12
PAUSE_EVERY = 4
# Number of sessions in the project that is opened; the last one has not ended.
SESSIONS = 10
WORDS_OF_400_TOKENS = 245
HOME, SHARED = "ORCHESTRA_MEM_HOME", 50
DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many calls each part of a run makes."""

    runs: int
    operations: int
    paced_operations: int
    large_operations: int
    contexts: int
    flushes: int
    long_sessions: int
    long_session: int
    imports: int
    opened: int
    opens: int


FULL_RUN = Sizes(
    runs=6, operations=30_000, paced_operations=6_000, large_operations=8_000, contexts=5_000, flushes=2_000,
    long_sessions=5, long_session=10_000, imports=200, opened=100_000, opens=100,
)  # fmt: skip
QUICK_RUN = Sizes(
    runs=2, operations=1_500, paced_operations=800, large_operations=250, contexts=600, flushes=30, long_sessions=1,
    long_session=600, imports=11, opened=0, opens=0,
)  # fmt: skip


@dataclass(slots=True)
class Timed:
    """Milliseconds of record calls, run by run; calls that refreshed also separately, by the reason for the refresh."""

    calls: list[list[float]] = field(default_factory=list)
    refreshes: list[list[float]] = field(default_factory=list)
    by_window: list[float] = field(default_factory=list)
    by_document: list[float] = field(default_factory=list)
    entry_tokens: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Paced:
    """Milliseconds that a paced agent waits, and milliseconds of all refreshes in any thread."""

    records: list[float] = field(default_factory=list)
    contexts: list[float] = field(default_factory=list)
    refreshes: list[float] = field(default_factory=list)
    in_pauses: int = 0


@contextmanager
def project(clock: WorkClock, folder: str | None = None) -> Iterator[OrchestratorContextManager]:
    """Open a memory with a window of 128,000 tokens, in a new folder if none is given."""
    config = {"orchestrator": {"context_window": {"max_tokens": WINDOW}}}
    if folder:
        Path(folder).mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as new, open_memory(folder or new, config=config, clock=clock) as memory:
        yield memory


def record(memory: OrchestratorContextManager, clock: WorkClock, work: Work, tokens: int | None = None) -> int:
    """Record one operation at its time; return its tokens."""
    clock.advance(work.seconds)
    return memory.record_operation(work.type, work.data, tokens, agent=work.agent).entry_tokens


def time_records(works: Iterator[Work], operations: int, timed: Timed, *, reported: float) -> None:
    """Time each record of one run without pauses, including the spills and refreshes within it.

    `reported`: Tokens that the caller reports, as a multiple of an entry's tokens (a model may think before it acts);
    at 0 the caller reports none.
    """
    clock, calls, refreshes = WorkClock(), list[float](), list[float]()
    with project(clock) as memory:
        # Keep the tracker: fetching it through the memory counts as a read, and a read may refresh first.
        tracker = memory.context_tracker
        for work in islice(works, WARM_UP):
            record(memory, clock, work)
        time.sleep(FIRST_PAUSE_S)
        tokens = 200
        for work in islice(works, operations):
            given = int(tokens * reported) if reported else None
            count = tracker.refresh_count
            full = tracker.used_tokens() + (given or tokens) >= BUDGET
            with stopwatch(calls):
                tokens = record(memory, clock, work, given)
            timed.entry_tokens.append(tokens)
            if tracker.refresh_count > count:
                refreshes.append(calls[-1])
                (timed.by_window if full else timed.by_document).append(calls[-1])
    timed.calls.append(calls)
    timed.refreshes.append(refreshes)


def time_paced(works: Iterator[Work], operations: int, *, reported: float) -> Paced:
    """Work at an agent's pace: a context, a pause for the model, some operations."""
    clock, paced, tokens = WorkClock(), Paced(), 200
    caller = threading.current_thread()

    def refreshed(_: object, refreshed: Refreshed) -> None:
        paced.refreshes.append(refreshed.milliseconds)
        paced.in_pauses += threading.current_thread() is not caller

    with project(clock) as memory:
        for work in islice(works, WARM_UP):
            record(memory, clock, work)
        time.sleep(FIRST_PAUSE_S)
        memory.events.refreshed.connect(refreshed)
        for number, work in enumerate(islice(works, operations)):
            if number % PAUSE_EVERY == 0:
                with stopwatch(paced.contexts):
                    memory.get_orchestrator_context("task_execution")
                time.sleep(PAUSE_S)
            with stopwatch(paced.records):
                tokens = record(memory, clock, work, int(tokens * reported))
        memory.events.refreshed.disconnect(refreshed)
    return paced


def measure_records(sizes: Sizes, report: Report) -> None:
    """Record mixed work; every second run reports tokens, so that both reasons for a refresh occur."""
    timed = Timed()
    for number in range(sizes.runs):
        say(f"record: run {number + 1} of {sizes.runs}")
        time_records(Generator(number).works(), sizes.operations, timed, reported=4.0 if number % 2 else 0.0)
    size = statistics.median(timed.entry_tokens)
    note = f"without pauses, including spills and refreshes; median entry of {size:.0f} tokens"
    report.percentiles_of_runs("record", timed.calls, (50, 95, 99, 99.9), note=note)
    note = "entire record calls that refreshed because the caller neither paused nor read"
    report.percentiles_of_runs("refresh_unpaced", timed.refreshes, (50, 95, 99), note=note)
    for name, samples in (("window", timed.by_window), ("document", timed.by_document)):
        if samples:
            report.percentiles(f"refresh_by_{name}", samples, (50, 95), note=f"of these, due for the {name}'s size")
    say("record: at an agent's pace")
    paced = time_paced(Generator(1).works(), sizes.paced_operations, reported=4.0)
    note = f"an agent's pace: a context, {PAUSE_S:g} s for the model, {PAUSE_EVERY} operations, and so on"
    where = f"{note}; {paced.in_pauses} during pauses, the others before a context"
    report.percentiles("refresh", paced.refreshes, (50, 95), note=where)
    report.percentiles("record_paced", paced.records, (50, 95, 99), note=note)
    report.percentiles("context_paced", paced.contexts, (50, 95, 99), note=note)
    large = Timed()
    for number in range(max(1, sizes.runs // 2)):
        say("record: operations of 400 tokens")
        time_records(Generator(number).sized(WORDS_OF_400_TOKENS), sizes.large_operations, large, reported=0.0)
    note = f"median entry of {statistics.median(large.entry_tokens):.0f} tokens"
    report.percentiles_of_runs("record_400", large.calls, (50, 95, 99), note=note)
    report.percentiles_of_runs("refresh_unpaced_400", large.refreshes, (50, 95), note=note)


def fill_documents(memory: OrchestratorContextManager, seed: int) -> None:
    """Fill each episodic document, as a person would, beyond its share of the context."""
    works = Generator(seed).sized(120)
    for path in sorted(memory.episodic_memory.folder.glob("*.md")):
        with path.open("a", encoding="utf-8") as document:
            for number in range(150):
                data = next(works).data
                assert isinstance(data, dict)
                document.write(f"\n## Note {number}: {data['title']}\n\n{data['result']}\n")


def measure_contexts(sizes: Sizes, report: Report) -> None:
    """Request a context after each operation; only contexts that are nearly full count."""
    clock, works = WorkClock(), Generator(7).works()
    full, other, rendered, begun_by = list[float](), list[float](), list[float](), list[float]()
    tokens, begun = list[int](), 0
    with project(clock) as memory:
        fill_documents(memory, 11)
        for work in islice(works, 600):
            record(memory, clock, work)
        memory.refresh()
        tracker = memory.context_tracker
        epoch, refreshes = memory.get_orchestrator_context("task_execution").epoch, tracker.refresh_count
        while len(full) < sizes.contexts:
            record(memory, clock, next(works))
            start = time.perf_counter_ns()
            context = memory.get_orchestrator_context("task_execution")
            took = (time.perf_counter_ns() - start) / 1e6
            (full if context.tokens >= FULL * BUDGET else other).append(took)
            if context.tokens >= FULL * BUDGET:
                tokens.append(context.tokens)
                begun += context.epoch != epoch and tracker.refresh_count == refreshes
                with stopwatch(rendered):
                    context.render()
            epoch, refreshes = context.epoch, tracker.refresh_count
            if not full and len(other) > 5_000:
                raise RuntimeError(f"no context reached {FULL:.0%} of its budget of {BUDGET:,} tokens")
        for saved in range(1, sizes.contexts // 5):
            with stopwatch(begun_by):
                memory.get_orchestrator_context("task_execution", BUDGET - saved)
    middle = statistics.median(tokens)
    note = f"{middle:,.0f} of {BUDGET:,} tokens (median); {begun} of them began an epoch"
    report.percentiles("context", full, (50, 95, 99, 99.9), note=note)
    report.percentiles("context_render", rendered, (95,), note="`render()` of these")
    report.percentiles("context_begin", begun_by, (50, 95), note="each with a new budget, so that it begins an epoch")
    report.add("context_tokens", middle, n=len(tokens), note="median of the measured contexts")


def share_decisions() -> None:
    """Make a project share decisions and rules in people's own words, from the train split."""
    records = [each for each in load_records(DATA / "facts.jsonl", "train") if each.language == "en"]
    told = [line for each in records for line in each.lines if line.kind in ("decision", "constraint")]
    with project(WorkClock()) as memory:
        for line in random.Random(1).sample(told, 2 * SHARED):
            memory.record_operation(STATED_FACT, {"text": line.text, "kind": line.kind}, critical=True)
        for fact in memory.facts():
            if len(memory.shared_decisions()) < SHARED:
                memory.share_decision(f"K{fact.id}")


def measure_shared(sizes: Sizes, report: Report) -> None:
    """Time the same contexts with 50 shared decisions, and without a home folder."""
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
        os.environ[HOME] = home
        share_decisions()
        for name, where in (("shared", home), ("unshared", "off")):
            os.environ[HOME] = where
            clock, works = WorkClock(), Generator(7).works()
            asked, begun, opened = list[float](), list[float](), list[float]()
            with project(clock, f"{folder}/{name}") as memory:
                for work in islice(works, 600):
                    record(memory, clock, work)
                memory.refresh()
                context = memory.get_orchestrator_context("task_execution")
                for work in islice(works, sizes.contexts):
                    record(memory, clock, work)
                    with stopwatch(asked):
                        context = memory.get_orchestrator_context("task_execution")
                for saved in range(1, sizes.contexts // 5):
                    with stopwatch(begun):
                        memory.get_orchestrator_context("task_execution", BUDGET - saved)
                tokens = sum(each.tokens for each in context.placements if each.part == "shared_decisions")
            for _ in range(sizes.imports):
                opened.append(float(fresh(OPEN, f"{folder}/{name}", str(WINDOW)).split()[2]))
            note = f"{tokens:,} tokens of {SHARED} shared decisions" if tokens else "the same work without a home"
            report.percentiles(f"context_{name}", asked, (50, 95), note=note)
            report.percentiles(f"context_begin_{name}", begun, (50, 95), note="each begins an epoch")
            report.percentiles(f"context_first_{name}", opened, (50,), note="from opening, in a fresh process")
    os.environ[HOME] = "off"


def measure_flushes(sizes: Sizes, report: Report) -> None:
    """Flush sessions of 20 to 300 operations, and a few long ones."""
    clock, works, chance = WorkClock(), Generator(3).works(), random.Random(3)
    short, long = list[float](), list[float]()
    with project(clock) as memory:
        for number in range(sizes.flushes):
            if number % 250 == 0:
                say(f"flush: {number} of {sizes.flushes}")
            for work in islice(works, chance.randint(20, 300)):
                record(memory, clock, work)
            with stopwatch(short):
                memory.flush_session()
        for _ in range(sizes.long_sessions):
            for work in islice(works, sizes.long_session):
                record(memory, clock, work)
            with stopwatch(long):
                memory.flush_session()
    report.percentiles("flush", short, (50, 95, 99), note="sessions of 20 to 300 operations, no model")
    report.percentiles("flush_long", long, (50,), note=f"sessions of {sizes.long_session:,} operations")


def measure_imports(sizes: Sizes, report: Report) -> None:
    """Compare fresh interpreters with and without an import of the package; bytecode is cached."""
    with_package, bare = list[float](), list[float]()
    fresh("import orchestra_mem")
    for _ in range(sizes.imports):
        with stopwatch(bare):
            fresh("pass")
        with stopwatch(with_package):
            fresh("import orchestra_mem")
    alone = statistics.median(bare)
    report.add(
        "import_ms", statistics.median(with_package) - alone, n=len(bare),
        note=f"median of fresh interpreters, minus the {alone:.0f} ms of a bare one",
    )  # fmt: skip


OPEN = """
import sys, time
from orchestra_mem import open_memory
start = time.perf_counter()
memory = open_memory(sys.argv[1], config={"orchestrator": {"context_window": {"max_tokens": int(sys.argv[2])}}})
opened = time.perf_counter()
loaded = "tiktoken" in sys.modules
memory.get_orchestrator_context("task_execution")
asked = time.perf_counter()
memory.record_operation("note", {"text": "first operation after the start"})
print((opened - start) * 1e3, int(loaded), (asked - start) * 1e3, (time.perf_counter() - start) * 1e3)
"""


def measure_opens(sizes: Sizes, report: Report) -> None:
    """Open a project with many operations in fresh processes; its files are in the system's cache."""
    if not sizes.opened:
        report.unmeasured("open_100k_ms", "full run only: needs 100,000 operations")
        return
    clock, works, each = WorkClock(), Generator(5).works(), sizes.opened // SESSIONS
    opens, contexts, records, loaded = list[float](), list[float](), list[float](), 0
    with tempfile.TemporaryDirectory() as folder:
        with project(clock, folder) as memory:
            for number in range(SESSIONS):
                say(f"open: recording session {number + 1} of {SESSIONS}")
                for work in islice(works, each):
                    record(memory, clock, work)
                if number < SESSIONS - 1:
                    memory.flush_session()
        for _ in range(sizes.opens):
            opened, had, asked, recorded = map(float, fresh(OPEN, folder, str(WINDOW)).split())
            opens.append(opened)
            contexts.append(asked)
            records.append(recorded)
            loaded += int(had)
    what = f"median of fresh processes, after the import; {SESSIONS} sessions, one running with {each:,} operations"
    report.add("open_100k_ms", statistics.median(opens), n=len(opens), note=what)
    loads = "all" if loaded == len(opens) else str(loaded)
    report.percentiles("open_100k", opens, (95,), note=f"{loads} of them loaded the tokenizer")
    report.percentiles("open_100k_to_context", contexts, (50, 95), note="to the first context, including the tokenizer")
    report.percentiles("open_100k_to_record", records, (50, 95), note="to the first record after that")


def measure(options: Options, report: Report) -> None:
    """Measure all calls."""
    sizes = QUICK_RUN if options.quick else FULL_RUN
    measure_imports(sizes, report)
    measure_records(sizes, report)
    measure_contexts(sizes, report)
    measure_shared(sizes, report)
    measure_flushes(sizes, report)
    measure_opens(sizes, report)
    report.note("A percentile over several runs is the median of theirs, so that one busy minute does not decide.")


if __name__ == "__main__":
    sys.exit(run("latency", measure, TARGETS))

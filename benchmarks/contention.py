"""Four processes of eight threads record into one `.obra` and read it: nothing is lost and nothing is duplicated.

In the first phase they only record and read. In the second phase another process refreshes and flushes, and one process
is killed with SIGKILL in the middle of its work and restarted. Every recording that returned is reported through a
pipe; at the end the complete memory is examined as after a crash (`_survival.py`).
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks._harness import Options, Report, Target, run, say
from benchmarks._survival import ENTRY_CHARS, draft_for, examine
from orchestra_mem.adapters.tokenizers import open_counter
from orchestra_mem.build import open_memory
from orchestra_mem.types import OperationFilter

PROCESSES = 4
THREADS = 8
TARGETS: dict[str, Target] = {
    "lost": ("<=", 0),
    "duplicated": ("<=", 0),
    "errors": ("<=", 0),
    "documents_broken": ("<=", 0),
}
# The verbatim window is one second, so that compaction has something to do within the run.
CONFIG = {"compaction": {"verbatim_window_s": 1}, "entries": {"max_chars": ENTRY_CHARS}}
_COUNTER = open_counter("auto")
# Load the vocabulary once, before the fork, instead of in each process.
_COUNTER.count("warm")
# A thread reads once after this many recordings, each time by another call.
_RECORDS_A_READ = 4
_REFRESH_EVERY_S = 0.4
_FLUSH_EVERY_S = 2.0
_MOST_ERRORS = 20
_EXAMPLES = 10


@dataclass(slots=True)
class Seen:
    """Everything that the processes of a phase have reported."""

    acknowledged: dict[str, int] = field(default_factory=dict)
    record_ms: list[float] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, line: str) -> None:
        """Parse and store a line that a process has reported."""
        what, _, rest = line.rstrip("\n").partition(" ")
        with self.lock:
            self.counts[what] += 1
            if what == "record":
                marker, number, took = rest.split()
                self.acknowledged[marker] = int(number)
                self.record_ms.append(float(took))
            elif what == "error":
                self.errors.append(rest)


class Worker:
    """The body of one process: a memory, and threads that use it until a deadline."""

    def __init__(self, project: Path, name: str, deadline: float, pipe: int, *, disturbs: bool) -> None:
        self._memory = open_memory(project, config=CONFIG, counter=_COUNTER)
        self._name = name
        self._deadline = deadline
        self._pipe = pipe
        self._disturbs = disturbs

    def run(self) -> None:
        """Run all threads until the deadline."""
        work: list[Callable[[], None]] = [lambda thread=thread: self._use(thread) for thread in range(THREADS)]  # type: ignore[misc]
        if self._disturbs:
            work.append(self._disturb)
        threads = [threading.Thread(target=one) for one in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._memory.close()

    def _use(self, thread: int) -> None:
        number = failed = 0
        while time.monotonic() < self._deadline and failed < _MOST_ERRORS:
            number += 1
            try:
                self._record(f"{self._name}t{thread}-{number}")
                if not number % _RECORDS_A_READ:
                    self._read(number // _RECORDS_A_READ)
                    self._tell("read")
            except Exception as error:
                failed += 1
                self._tell(f"error {type(error).__name__}: {error}".replace("\n", " "))

    def _record(self, marker: str) -> None:
        kind, data = draft_for(marker)
        start = time.perf_counter_ns()
        operation = self._memory.record_operation(kind, data)
        took = (time.perf_counter_ns() - start) / 1e6
        self._tell(f"record {marker} {operation.id} {took:.4f}")
        if not operation.id % 7:
            stored = self._memory.operations(OperationFilter(after=operation.id - 1, through=operation.id))
            if stored != [operation]:
                raise AssertionError(f"operation {operation.id} is not read as it was recorded: {stored}")

    def _read(self, number: int) -> None:
        if number % 3 == 0:
            context = self._memory.get_orchestrator_context("test")
            if context.tokens > self._memory.context_tracker.max_tokens:
                raise AssertionError(f"a context of {context.tokens} tokens is larger than the window")
        elif number % 3 == 1:
            if not self._memory.query_recent_operations(limit=5):
                raise AssertionError("no operation was read right after one was recorded")
        else:
            self._memory.get_stats()

    def _disturb(self) -> None:
        last_flush = time.monotonic()
        while time.monotonic() < self._deadline:
            time.sleep(_REFRESH_EVERY_S)
            try:
                if time.monotonic() - last_flush > _FLUSH_EVERY_S:
                    last_flush = time.monotonic()
                    self._memory.flush_session()
                    self._tell("flush")
                else:
                    self._memory.refresh()
                    self._tell("refresh")
            except Exception as error:
                self._tell(f"error {type(error).__name__}: {error}".replace("\n", " "))

    def _tell(self, text: str) -> None:
        # A single write smaller than the pipe's buffer is never interleaved with another.
        os.write(self._pipe, text[:500].encode("utf-8", "replace") + b"\n")


def start(project: Path, name: str, deadline: float, seen: Seen, *, disturbs: bool) -> tuple[int, threading.Thread]:
    """Start a process, and a thread in this process that collects its reports."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _be(project, name, deadline, writing, disturbs)
    os.close(writing)

    def listen() -> None:
        with os.fdopen(reading, encoding="utf-8") as pipe:
            for line in pipe:
                seen.take(line)

    listener = threading.Thread(target=listen)
    listener.start()
    return child, listener


def _be(project: Path, name: str, deadline: float, pipe: int, disturbs: bool) -> NoReturn:
    try:
        Worker(project, name, deadline, pipe, disturbs=disturbs).run()
    except BaseException as error:
        os.write(pipe, f"error {name}: {type(error).__name__}: {error}".replace("\n", " ").encode()[:500] + b"\n")
        os._exit(1)
    os._exit(0)


def phase(project: Path, name: str, seconds: float, *, disturbed: bool) -> Seen:
    """Run all processes for `seconds`; if `disturbed`, with flushes and refreshes, and with one process killed."""
    seen = Seen()
    deadline = time.monotonic() + seconds
    # Fork all processes before any listening thread starts: a fork copies the locks that other threads hold.
    running: dict[int, threading.Thread] = {}
    for process in range(PROCESSES):
        child, listener = start(project, f"{name}p{process}", deadline, seen, disturbs=disturbed and process == 0)
        running[child] = listener
    if disturbed:
        victim = list(running)[-1]
        time.sleep(seconds / 3)
        os.kill(victim, signal.SIGKILL)
        running[victim].join()
        os.waitpid(victim, 0)
        del running[victim]
        seen.counts["kill"] += 1
        child, listener = start(project, f"{name}again", deadline, seen, disturbs=False)
        running[child] = listener
    for child, listener in running.items():
        listener.join()
        _, status = os.waitpid(child, 0)
        if status and not any(seen.errors):
            seen.errors.append(f"a process exited with status {status}")
    return seen


def check(project: Path, acknowledged: dict[str, int], report: Report, errors: list[str]) -> None:
    """Reopen the memory and examine all of it."""
    with open_memory(project, config=CONFIG, counter=_COUNTER) as memory:
        found = examine(project, memory, acknowledged=acknowledged)
        sessions = len(memory.sessions())
    counts = Counter(violation.kind for violation in found)
    total = len(acknowledged)
    report.add("lost", counts["lost"], n=total, note="acknowledged, but missing or changed")
    report.add("duplicated", counts["duplicated"], n=total, note="in the log twice, or in two tiers")
    report.add("errors", len(errors) + counts["restart"], n=total, note="calls that failed, or that read wrong data")
    report.add("documents_broken", counts["document"], n=sessions, note="torn, inconsistent or left over; n: sessions")
    for text in [*errors[:_EXAMPLES], *(f"[{v.kind}] {v.text}" for v in found[:_EXAMPLES])]:
        report.note(text)


def measure(options: Options, report: Report) -> None:
    """Run the undisturbed and the disturbed phase, and examine the memory after them."""
    seconds = 8.0 if options.quick else 40.0
    with tempfile.TemporaryDirectory(prefix="contention-") as project:
        folder = Path(project)
        open_memory(folder, config=CONFIG, counter=_COUNTER).close()
        phases = {}
        for name, disturbed in (("calm", False), ("disturbed", True)):
            seen = phases[name] = phase(folder, name, seconds, disturbed=disturbed)
            say(f"{name}: {dict(seen.counts)}")
        acknowledged = {marker: number for seen in phases.values() for marker, number in seen.acknowledged.items()}
        check(folder, acknowledged, report, [error for seen in phases.values() for error in seen.errors])
        for name, seen in phases.items():
            what = f"{PROCESSES} processes of {THREADS} threads, {name}"
            report.add(f"{name}_records_per_s", seen.counts["record"] / seconds, n=seen.counts["record"], note=what)
            report.percentiles(f"{name}_record", seen.record_ms, (50, 99), note="one of 32 concurrent callers")
        for key in ("refresh", "flush", "kill"):
            report.add(f"{key}_count", phases["disturbed"].counts[key], note="during the disturbed phase")


if __name__ == "__main__":
    sys.exit(run("contention", measure, TARGETS))

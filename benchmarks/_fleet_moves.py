"""Moves a large memory to a server and back: its answers stay the same."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._harness import CHECKOUT, Report, say, stopwatch
from benchmarks._operations import WorkClock
from benchmarks._search_texts import Texts
from orchestra_mem import open_memory
from tests.postgres_server import PostgresServer

_QUESTIONS = 200
_SECONDS_APART = 30


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of a memory: the texts of each search's hits, a context, and the times of the searches."""

    hits: list[list[str]]
    context: str
    search_ms: list[float]


def answers(folder: Path, config: dict[str, Any], clock: WorkClock, questions: list[str]) -> Answers:
    """Collect a memory's answers."""
    hits: list[list[str]] = []
    search_ms: list[float] = []
    with open_memory(folder, config=config, clock=clock) as memory:
        for question in questions[:5]:
            memory.search(question)
        for question in questions:
            with stopwatch(search_ms):
                found = memory.search(question).hits
            hits.append([f"{hit.chunk.source}: {hit.chunk.text}" for hit in found])
        return Answers(hits, memory.get_orchestrator_context("task_execution").render(), search_ms)


def measure_moves(report: Report, server: PostgresServer, folder: Path, n: int) -> None:
    """Build a memory of `n` operations in a file; move it to a server and back, and compare."""
    texts, clock = Texts(), WorkClock()
    questions = [question for question, _ in texts.questions(_QUESTIONS, n)]
    with open_memory(folder, clock=clock) as memory:
        for first in range(1, n + 1, 1_000):
            for chunk in texts.chunks(first, min(1_000, n + 1 - first)):
                clock.advance(_SECONDS_APART)
                memory.record_operation("note", {"text": chunk.text}, agent=chunk.agent)
        memory.refresh()
        memory.update_index()
    say("fleet: built")
    before = answers(folder, {}, clock, questions)
    config = {"storage": {"url": server.url, "schema_name": server.schema()}}
    report.add("move_to_server_s", move(folder, config), n=n, note="including a check of each row")
    there = answers(folder, config, clock, questions)
    (folder / ".obra" / "obra.db").rename(folder / "old.db")
    report.add("move_back_s", move(folder, {}, config), n=n)
    back = answers(folder, {}, clock, questions)
    tell_answers(report, before, there, back)


def tell_answers(report: Report, before: Answers, there: Answers, back: Answers) -> None:
    """Compare the answers in the file, on the server, and in the file again."""
    different = [
        one != other
        for after in (there, back)
        for one, other in zip([*before.hits, before.context], [*after.hits, after.context], strict=True)
    ]
    report.add("moved_differently", sum(different), n=len(different), note="searches and contexts, byte for byte")
    pairs = list(zip(before.hits, there.hits, strict=True))
    wanted = sum(len(one) for one, _ in pairs)
    missing = sum(len(set(one) - set(other)) for one, other in pairs)
    report.add("search_hits_missing", missing / wanted, n=wanted, note="share of the file's hits, not on the server")
    report.percentiles("search", there.search_ms, (50, 95), note="with the memory on the server")
    report.percentiles("search_sqlite", before.search_ms, (50, 95), note="the same memory in its file")


def command(folder: Path, target: dict[str, Any], at: dict[str, Any]) -> subprocess.Popen[str]:
    """Start the command that moves a memory from `at` to `target`."""
    there = target.get("storage")
    to = ["--to", there["url"], "--schema", there["schema_name"]] if there else ["--to", "file"]
    set_ = {f"ORCHESTRA_MEM__STORAGE__{key.upper()}": value for key, value in at.get("storage", {}).items()}
    return subprocess.Popen(
        [sys.executable, "-m", "orchestra_mem", "move", *to], cwd=folder, stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **set_}, text=True,
    )  # fmt: skip


def move(folder: Path, target: dict[str, Any], at: dict[str, Any] | None = None) -> float:
    """Move a memory; return the seconds, including the start of the command."""
    begun = time.perf_counter()
    if code := command(folder, target, at or {}).wait():
        raise SystemExit(f"move exited with status {code}")
    return time.perf_counter() - begun

"""Moves a large memory to a server and back: its answers stay the same, and a killed move leaves nothing behind."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
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
    """Build a memory of `n` operations in a file; kill a move to a server, then move it there and back, and compare."""
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
    left = kill_a_move(server, folder, config, n)
    report.add("killed_move_left", left, n=2, note="source changed, or rows left in the target")
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


def kill_a_move(server: PostgresServer, folder: Path, target: dict[str, Any], n: int) -> int:
    """Kill a move while it copies operations; return whether the source changed plus whether the target has rows."""
    before, schema = digest(folder), target["storage"]["schema_name"]
    moving = command(folder, target, {})
    with server.connect() as connection:
        query = "SELECT coalesce(pg_relation_size(to_regclass(%s)), 0) > %s"
        while connection.execute(query, (f"{schema}.operations", 100 * n)).fetchone() != (True,):
            if moving.poll() is not None:
                raise SystemExit("move ended before it could be killed")
            time.sleep(0.005)
        moving.kill()
        moving.wait()
        kept = connection.execute(f"SELECT count(*) FROM {schema}.operations").fetchone()
    return (digest(folder) != before) + (kept != (0,))


def digest(folder: Path) -> str:
    """Return a hash of all rows of a memory's file."""
    found = hashlib.sha256()
    with closing(sqlite3.connect(folder / ".obra" / "obra.db")) as connection:
        for line in connection.iterdump():
            found.update(line.encode("utf-8", "surrogatepass"))
    return found.hexdigest()

"""Processes that `fleet.py` starts to record into one memory, and a sampler of the server's load meanwhile."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks._harness import CHECKOUT
from benchmarks._survival import draft_for
from orchestra_mem import OrchestraMemError, open_memory
from orchestra_mem.tiers.session_compaction import Refreshed
from tests.postgres_server import PostgresServer

_PAUSE_S = 0.02
# Keep log messages off standard error, to which the server's package sends them.
logging.getLogger("orchestra_mem").propagate = False
# Looks for the lock of recording processes, not for the lock of document writers.
_LOOK = (
    "SELECT array_agg(pid), (SELECT count(*) FROM pg_locks l JOIN pg_namespace n ON "
    "(CAST(l.classid AS BIGINT) << 32 | CAST(l.objid AS BIGINT)) = hashtextextended('orchestra-mem ' || n.nspname, 0) "
    "WHERE l.locktype = 'advisory' AND l.granted) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
)


@dataclass(slots=True, kw_only=True)
class Told:
    """Results of recording processes: the number acknowledged for each key, times, and errors.

    `calm_ms`: Records without a refresh of the window. `refresh_ms`: Refreshes. `refused`: Errors of the library.
    `untold`: Any other errors. `seconds`: Time of the slowest process. `cpu_ms`: Processor time of the processes.
    """

    kept: dict[str, int] = field(default_factory=dict)
    record_ms: list[float] = field(default_factory=list)
    calm_ms: list[float] = field(default_factory=list)
    refresh_ms: list[float] = field(default_factory=list)
    commit_ms: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    seconds: float = 0.0
    cpu_ms: float = 0.0

    def take(self, other: Told) -> None:
        """Add the results of another process."""
        self.kept |= other.kept
        for name in ("record_ms", "calm_ms", "refresh_ms", "commit_ms", "refused", "untold"):
            getattr(self, name).extend(getattr(other, name))
        self.seconds = max(self.seconds, other.seconds)
        self.cpu_ms += other.cpu_ms


def record(folder: str, config: str, name: str, most: int) -> None:
    """Body of a recording process: start on a line of standard input, stop at its end or after `most` records.

    A refused record is repeated with the same key, as a caller would do.
    """
    told, ended, commit = Told(), threading.Event(), [0.0]

    def at(point: str) -> None:
        if point == "record.commit.before":
            commit[0] = time.perf_counter()
        elif point == "record.commit.after":
            told.commit_ms.append((time.perf_counter() - commit[0]) * 1000)

    def refreshed(memory: object, refreshed: Refreshed) -> None:
        told.refresh_ms.append(refreshed.milliseconds)

    def until_closed() -> None:
        sys.stdin.read()
        ended.set()

    with open_memory(folder, config=json.loads(config), write_point=at) as memory:
        memory.get_orchestrator_context("task_execution")  # warm-up
        memory.record_operation("note", {"text": name})
        told.commit_ms.clear()
        memory.events.refreshed.connect(refreshed)
        print("ready", flush=True)
        sys.stdin.readline()
        threading.Thread(target=until_closed, daemon=True).start()
        begun, cpu = time.perf_counter(), time.process_time()
        while len(told.kept) < most and not ended.is_set():
            key = f"{name}-{len(told.kept) + 1}"
            kind, data = draft_for(key)
            start, refreshes = time.perf_counter(), len(told.refresh_ms)
            try:
                told.kept[key] = memory.record_operation(kind, data, idempotency_key=key).id
                told.record_ms.append((time.perf_counter() - start) * 1000)
                if len(told.refresh_ms) == refreshes:
                    told.calm_ms.append(told.record_ms[-1])
            except OrchestraMemError as error:
                told.refused.append(str(error))
            except Exception as error:
                told.untold.append(f"{type(error).__name__}: {error}")
        told.seconds, told.cpu_ms = time.perf_counter() - begun, (time.process_time() - cpu) * 1000
    print(json.dumps(asdict(told)), flush=True)


class Recorders:
    """Processes that record into one memory, already started once this object is made."""

    def __init__(
        self, folder: Path, config: Mapping[str, Any], count: int, *, most: int = sys.maxsize, name: str = "p"
    ) -> None:
        code = "import sys; from benchmarks._fleet import record; record(*sys.argv[1:4], int(sys.argv[4]))"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(CHECKOUT), os.environ.get("PYTHONPATH", "")])}
        self._running = [
            subprocess.Popen(
                [sys.executable, "-c", code, str(folder), json.dumps(config), f"{name}{number}", str(most)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
            )
            for number in range(count)
        ]  # fmt: skip
        for each in self._running:
            assert each.stdin is not None
            assert each.stdout is not None
            each.stdout.readline()
        for each in self._running:
            each.stdin.write("go\n")  # type: ignore[union-attr]
            each.stdin.flush()  # type: ignore[union-attr]

    def end(self, *, at_once: bool = False) -> Told:
        """Wait until all are done, or with `at_once` stop each after its current record; return the results."""
        told = Told()
        if at_once:
            for each in self._running:
                each.stdin.close()  # type: ignore[union-attr]
        for each in self._running:
            said = each.stdout.read()  # type: ignore[union-attr]
            with suppress(BrokenPipeError):
                each.stdin.close()  # type: ignore[union-attr]
            if code := each.wait():
                told.untold.append(f"a process exited with status {code}")
            else:
                told.take(Told(**json.loads(said)))
        return told


class Watch:
    """Context manager that samples a server: its processor time, and how often a memory's lock is held.

    `cpu_ms` covers all processes of the server. `locked` is the share of samples that found a lock held.
    """

    def __init__(self, server: PostgresServer) -> None:
        self._connection = server.connect()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._go_on)
        self._first: dict[int, float] = {}
        self._last: dict[int, float] = {}
        self._looks = self._held = 0

    def __enter__(self) -> Watch:
        """Start sampling."""
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop sampling."""
        self._ended.set()
        self._thread.join()
        self._look()
        self._connection.close()

    @property
    def cpu_ms(self) -> float:
        """Processor time of the server, without that of the sampling connection."""
        return sum(last - self._first[pid] for pid, last in self._last.items())

    @property
    def locked(self) -> float:
        """Share of samples that found a lock held, 0 to 1."""
        return self._held / max(1, self._looks)

    def _go_on(self) -> None:
        while not self._ended.wait(_PAUSE_S):
            self._look()

    def _look(self) -> None:
        (row,) = self._connection.execute(_LOOK).fetchall()
        pids: Sequence[int] = row[0] or []  # type: ignore[assignment]
        self._looks += 1
        self._held += bool(row[1])
        for pid in pids:
            with suppress(OSError):
                self._last[pid] = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6
                self._first.setdefault(pid, self._last[pid])

"""Promise 1: once `record_operation` has returned, the operation survives `kill -9` at any instruction."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from pathlib import Path

from orchestra_mem import open_memory
from tests.memories import SMALL, work
from tests.processes import start
from tests.promises.conftest import Open

# Records operations in a loop, with refreshes and reads between, and prints each id once it is acknowledged.
WORKER = """
import json, sys
from orchestra_mem import open_memory
from tests.memories import SMALL, operation
with open_memory(sys.argv[1], config=SMALL) as memory:
    for number in range(1, 100_000):
        kind, data = operation(number)
        done = memory.record_operation(kind, {**data, "writer": sys.argv[2]})
        print(json.dumps([done.id, number]), flush=True)
        if number % 25 == 0:
            memory.refresh()
        if number % 7 == 0:
            memory.get_orchestrator_context("next prompt")
"""


def _worker(project: Path, name: str) -> subprocess.Popen[str]:
    return start("-c", WORKER, project, name, stderr=None)


def _killed(worker: subprocess.Popen[str], lines: int, pause_s: float) -> dict[int, int]:
    """Kill a worker soon after its first acknowledgements; return the operation numbers by acknowledged id."""
    assert worker.stdout is not None
    said = [worker.stdout.readline() for _ in range(lines)]
    time.sleep(pause_s)
    worker.send_signal(signal.SIGKILL)
    said += worker.stdout.readlines()
    worker.wait()
    worker.stdout.close()
    return dict(json.loads(line) for line in said if line.endswith("\n"))


def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path) -> None:
    """After each of four kills every acknowledged operation is stored as recorded, and recording continues."""
    chance = random.Random(0)
    expected: dict[int, tuple[int, str]] = {}
    for life in "abcd":
        said = _killed(_worker(tmp_path, life), chance.randint(5, 90), chance.random() / 20)
        expected |= {acknowledged: (number, life) for acknowledged, number in said.items()}
    with open_memory(tmp_path, config=SMALL) as memory:
        kept = {op.id: op.data for op in memory.operations()}
        memory.get_orchestrator_context("next prompt")
        next_id = memory.record_operation("note", {"text": "Went on."}).id
    assert next_id == max(kept) + 1
    for acknowledged, (number, life) in expected.items():
        data = kept[acknowledged]
        assert isinstance(data, dict)
        assert str(number) in json.dumps(data)
        assert data["writer"] == life


def test_processes_record_side_by_side(tmp_path: Path) -> None:
    """Two processes that record into one project get distinct ids, and both keep their operations when killed."""
    workers = [_worker(tmp_path, name) for name in "xy"]
    said = [_killed(worker, 60, 0.0) for worker in workers]
    assert not set(said[0]) & set(said[1])
    with open_memory(tmp_path, config=SMALL) as memory:
        assert {*said[0], *said[1]} <= {op.id for op in memory.operations()}


def test_a_second_session_has_the_first(open_project: Open) -> None:
    """All operations of earlier sessions are there after flushing and reopening."""
    for first in (1, 41, 81):
        with open_project() as memory:
            work(memory, 40, first)
            memory.flush_session()
    with open_project() as memory:
        assert [op.id for op in memory.operations()] == list(range(1, 121))

"""The lock on a file: one process at a time, whoever forks and whoever takes the file away."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from orchestra_mem.adapters.files.lock import ProcessLock
from orchestra_mem.errors import LockTimeoutError

_TRY = """
import sys
from pathlib import Path
from orchestra_mem.adapters.files.lock import ProcessLock
from orchestra_mem.errors import LockTimeoutError
lock = ProcessLock(Path(sys.argv[1]), timeout_s=0.05)
try:
    lock.acquire()
    print("got it")
except LockTimeoutError as error:
    print(error)
"""


def _tried(path: Path) -> str:
    """What another process says that asks for the lock."""
    return subprocess.run(
        [sys.executable, "-c", _TRY, str(path)], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_another_process_waits_and_is_told(tmp_path: Path) -> None:
    """It gets the lock when it is released, and not before."""
    path = tmp_path / "lock"
    lock = ProcessLock(path, timeout_s=1)
    lock.acquire()
    assert _tried(path) == (
        f"another process has held {path} for 0.05 s; see storage.lock_timeout_s, or end that process"
    )
    lock.release()
    assert _tried(path) == "got it"
    lock.acquire()  # the one that got it has ended without letting go
    lock.release()


def test_it_is_the_lock_that_filelock_takes(tmp_path: Path) -> None:
    """Each waits for the other."""
    ours, theirs = ProcessLock(tmp_path / "lock", timeout_s=0.05), FileLock(str(tmp_path / "lock"), timeout=0.05)
    ours.acquire()
    with pytest.raises(Timeout):
        theirs.acquire()
    ours.release()
    with theirs, pytest.raises(LockTimeoutError):
        ours.acquire()
    ours.acquire()
    ours.release()


def test_a_forked_child_does_not_hold_it_on(tmp_path: Path) -> None:
    """Released is released, though a child has inherited the open file."""
    lock = ProcessLock(tmp_path / "lock", timeout_s=1)
    lock.acquire()
    waiting, go_on = os.pipe()
    child = os.fork()
    if not child:
        os.close(go_on)
        os.read(waiting, 1)
        os._exit(0)
    os.close(waiting)
    lock.release()
    assert _tried(tmp_path / "lock") == "got it"
    os.close(go_on)
    os.waitpid(child, 0)


def test_a_lock_file_that_was_taken_away_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who locks a file that has gone meanwhile holds nothing: the next that comes would lock another."""
    path, flock = tmp_path / "lock", fcntl.flock
    lock = ProcessLock(path, timeout_s=1)
    tries: list[int] = []

    def taken_away(descriptor: int, operation: int) -> None:
        flock(descriptor, operation)
        if operation & fcntl.LOCK_EX and not tries:
            tries.append(descriptor)
            path.unlink()

    monkeypatch.setattr(fcntl, "flock", taken_away)
    lock.acquire()
    assert len(tries) == 1
    assert "has held" in _tried(path)
    lock.release()

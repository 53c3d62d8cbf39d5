"""The lock that keeps processes apart: the system's own on a file, which it takes back when its holder dies."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.errors import LockTimeoutError, storage_error

if sys.platform != "win32":
    import fcntl
if TYPE_CHECKING:
    from filelock import FileLock

_POLL_S = 0.002
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class ProcessLock:
    """One process at a time holds it; its threads keep apart by themselves.

    `filelock`, which serves Windows here, takes 0.1 to 0.3 ms for each turn, nearly as long as all else of a spill; it
    asks for the same lock on the same file.
    """

    def __init__(self, path: Path, *, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._descriptor = -1
        self._portable: FileLock | None = None

    def acquire(self) -> None:
        """Take the lock, as soon as no other process has it.

        Raises:
            LockTimeoutError: one has held it all the time.
            StorageError: the file cannot be made or locked.
        """
        try:
            held = self._acquire()
        except OSError as error:
            raise storage_error(error, "locking", self._path) from error
        if not held:
            raise LockTimeoutError(
                f"another process has held {self._path} for {self._timeout_s:g} s; "
                "see storage.lock_timeout_s, or end that process"
            )

    def release(self) -> None:
        """Let the next one have it."""
        if self._portable is not None:
            self._portable.release()
        elif sys.platform != "win32":
            descriptor, self._descriptor = self._descriptor, -1
            try:
                # Closing alone would leave it to a child that was forked meanwhile.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            finally:
                os.close(descriptor)

    def _acquire(self) -> bool:
        if sys.platform == "win32":
            return self._acquire_portable()
        end = time.monotonic() + self._timeout_s
        while not self._try():
            if time.monotonic() >= end:
                return False
            time.sleep(_POLL_S)
        return True

    def _try(self) -> bool:
        descriptor = os.open(self._path, _FLAGS, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Somebody may have taken the file away, and another made a new one.
            if os.path.samestat(os.fstat(descriptor), os.stat(self._path)):
                self._descriptor = descriptor
                return True
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return False

    def _acquire_portable(self) -> bool:
        from filelock import FileLock, Timeout  # slow to load

        if self._portable is None:
            self._portable = FileLock(
                str(self._path), timeout=self._timeout_s, thread_local=False, poll_interval=_POLL_S
            )
        try:
            self._portable.acquire()
        except Timeout:
            return False
        return True

"""Lifetime of loaded llama.cpp objects: free them when idle or closed, and stop their work when the interpreter exits.

Compiled code cannot be interrupted from outside, and an interpreter that exits while a thread runs such code may crash.
So the thread is asked to stop, and the exit waits for it.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Timer, current_thread, main_thread
from typing import Generic, Protocol, TypeVar

from orchestra_mem.errors import ModelError

# How often a caller that waits for llama.cpp checks whether the result is still wanted.
ASK_EVERY_S = 0.02
# How long `Held.close` waits for the thread at work: llama.cpp ignores the stop flag while it loads a file.
_ENDS_S = 2.0
NO_MORE = "llama.cpp starts no more work: the program is exiting"

_exiting = Event()
_running: list[Stop] = []


class Stop:
    """A flag that asks work to stop, and is never cleared. llama.cpp reads `sign` as a C string, empty until then."""

    def __init__(self) -> None:
        self.sign = ctypes.create_string_buffer(2)

    def set(self) -> None:
        """Ask the work that polls this flag to stop."""
        self.sign[0] = b"\1"

    def __call__(self) -> bool:
        """Check whether the flag is set."""
        return self.sign[0] != b"\0"

    def require_wanted(self, path: Path) -> None:
        """Raise an error that names the file if the flag is set.

        Raises:
            ModelError: The object loaded from the file was closed, or the interpreter exits.
        """
        if self():
            raise ModelError(f"{path.name} was closed, or the program is exiting")


@contextmanager
def running(stop: Stop) -> Iterator[None]:
    """Delay the interpreter's exit until this block ends; `stop` is set when the exit begins.

    Raises:
        ModelError: The interpreter is already exiting.
    """
    _running.append(stop)  # before the check: the exit could begin in between
    try:
        if exit_begun():
            raise ModelError(NO_MORE)
        yield
    finally:
        _running.remove(stop)


def exit_begun() -> bool:
    """Check whether the interpreter is exiting. False in the main thread, as exit handlers there may use llama.cpp."""
    return _exiting.is_set() and current_thread() is not main_thread()


class Closable(Protocol):
    """An object that `Held` can manage."""

    def close(self) -> None:
        """Free the object's memory."""


_T = TypeVar("_T", bound=Closable)


class Held(Generic[_T]):
    """An object that is loaded on first use, used by one thread at a time, and freed when it is idle or closed.

    Args:
        path: The file that the object is loaded from.
        load: Loads the object. Its argument is the flag that asks it to stop early.
        idle_s: Seconds after the last use until the object is freed; 0 for never.
    """

    def __init__(self, path: Path, load: Callable[[Stop], _T], *, idle_s: float = 0.0) -> None:
        self.stop = Stop()
        self.value: _T | None = None
        self._path = path
        self._load = load
        self._idle_s = idle_s
        self._lock = Lock()
        self._timer: Timer | None = None

    @contextmanager
    def use(self) -> Iterator[_T]:
        """Return a context manager that yields the object, loaded and locked for the calling thread.

        Raises:
            ModelError: The object cannot be loaded, or has been closed.
        """
        with self._lock:
            self._end_timer()
            try:
                self.stop.require_wanted(self._path)
                if self.value is None:
                    with running(self.stop):
                        self.value = self._load(self.stop)
                    self.stop.require_wanted(self._path)
                yield self.value
            finally:
                if self.stop():
                    self._let_go()
                elif self._idle_s and self.value is not None:
                    self._timer = Timer(self._idle_s, self._let_go_if_free)
                    self._timer.daemon = True
                    self._timer.start()

    def close(self) -> None:
        """Free the object permanently. A thread at work is asked to stop, and frees the object itself if it is slow."""
        self.stop.set()
        self._let_go_if_free(_ENDS_S)

    def _let_go_if_free(self, wait_s: float = 0.0) -> None:
        if self._lock.acquire(timeout=wait_s):
            try:
                self._let_go()
            finally:
                self._lock.release()

    def _let_go(self) -> None:
        self._end_timer()
        value, self.value = self.value, None
        if value is not None:
            with suppress(ModelError), running(Stop()):  # the system frees the memory if the interpreter is exiting
                value.close()

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@atexit.register
def _end_all() -> None:
    _exiting.set()
    while _running:
        for stop in tuple(_running):
            stop.set()
        time.sleep(ASK_EVERY_S)


os.register_at_fork(after_in_child=_running.clear)  # a child has none of its parent's threads

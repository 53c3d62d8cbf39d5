"""Hold what llama.cpp has loaded until it is idle or closed, and stop its work when the interpreter exits.

Compiled code cannot be stopped from outside, and an interpreter that exits while a thread is in it may crash: so the
thread is told to stop, and then waited for.
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

# How often whoever waits for llama.cpp asks whether it is still wanted.
ASK_EVERY_S = 0.02
# Who closes waits so long for whoever is at work: while llama.cpp loads a file it looks at no sign.
_ENDS_S = 2.0
NO_MORE = "llama.cpp begins nothing any more: the program ends"

_exiting = Event()
_running: list[Stop] = []


class Stop:
    """A sign to end, set once and for good. llama.cpp reads `sign` itself, as a C string: empty means go on."""

    def __init__(self) -> None:
        self.sign = ctypes.create_string_buffer(2)

    def set(self) -> None:
        """Tell whoever works under this sign to end."""
        self.sign[0] = b"\1"

    def __call__(self) -> bool:
        """Tell whether the work is to end."""
        return self.sign[0] != b"\0"

    def require_wanted(self, path: Path) -> None:
        """Go no further with a file that nobody waits for.

        Raises:
            ModelError: the sign is set.
        """
        if self():
            raise ModelError(f"{path.name} is no longer wanted: it was closed, or the program ends")


@contextmanager
def running(stop: Stop) -> Iterator[None]:
    """Have the interpreter's end set `stop` and wait for what is done here.

    Raises:
        ModelError: the interpreter ends already.
    """
    _running.append(stop)  # before the question, or the end could come between
    try:
        if exit_begun():
            raise ModelError(NO_MORE)
        yield
    finally:
        _running.remove(stop)


def exit_begun() -> bool:
    """Tell whether the interpreter ends; what it does last, as to close a memory, it does in the main thread."""
    return _exiting.is_set() and current_thread() is not main_thread()


class Closable(Protocol):
    """What can be held."""

    def close(self) -> None:
        """Let go of its memory."""


_T = TypeVar("_T", bound=Closable)


class Held(Generic[_T]):
    """Something that is loaded at its first use, used by one thread at a time, and let go when it is idle or closed.

    Args:
        path: the file that it is loaded from.
        load: does that; it heeds the sign that it is given.
        idle_s: seconds after the last use until it is let go; 0 for never.
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
        """Have it for oneself.

        Raises:
            ModelError: it cannot be loaded, or has been closed.
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
        """Let go of it for good. Whoever is at work with it is told to end, and lets go of it where that takes long."""
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
            with suppress(ModelError), running(Stop()):  # while the interpreter ends the memory is left to the system
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


if hasattr(os, "register_at_fork"):  # no thread of its parent lives in a child
    os.register_at_fork(after_in_child=_running.clear)

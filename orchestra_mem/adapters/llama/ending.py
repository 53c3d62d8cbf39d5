"""How work in llama.cpp is told to end: by its caller, by a closing, or because the interpreter ends.

Compiled code cannot be stopped from outside, and a program whose interpreter ends while a thread is in it may crash:
so that thread is told to end, and then waited for.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, current_thread, main_thread

from orchestra_mem.errors import ModelError

# How often whoever waits for llama.cpp asks whether it is still wanted.
ASK_EVERY_S = 0.02

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


class Turn:
    """A lock whose holder can be told to end; `stop` is the sign of those who hold it or wait for it now."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.stop = Stop()

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Tell everybody to end, and hold the lock; whoever comes afterwards has a new sign."""
        self.stop.set()
        while not self.lock.acquire(timeout=ASK_EVERY_S):
            self.stop.set()
        try:
            self.stop = Stop()
            yield
        finally:
            self.lock.release()


@contextmanager
def running(stop: Stop) -> Iterator[None]:
    """Have the interpreter's end set `stop` and wait for what is done here.

    Raises:
        ModelError: the interpreter ends already.
    """
    _running.append(stop)  # before the question, or the end could come between
    try:
        if exit_begun():
            raise ModelError("llama.cpp begins nothing any more: the program ends")
        yield
    finally:
        _running.remove(stop)


def exit_begun() -> bool:
    """Tell whether the interpreter ends; what it does last, as to close a memory, it does in the main thread."""
    return _exiting.is_set() and current_thread() is not main_thread()


@atexit.register
def _end_all() -> None:
    _exiting.set()
    while _running:
        for stop in tuple(_running):
            stop.set()
        time.sleep(ASK_EVERY_S)


if hasattr(os, "register_at_fork"):  # no thread of its parent lives in a child
    os.register_at_fork(after_in_child=_running.clear)

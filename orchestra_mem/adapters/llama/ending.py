"""How what takes long is ended: by who closes a model, and by the interpreter's end.

Compiled code cannot be stopped from outside. What it works with is freed by who has seen it return, and a program whose
interpreter ends while a thread is in it may crash: so it is told to end, and then waited for.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread, current_thread, main_thread

from orchestra_mem.errors import ModelError

# So often is asked, while something takes its time, whether it is still wanted.
ASK_EVERY_S = 0.02

_exiting = Event()
_under_way: list[Thread] = []


class Ended:
    """Tells something that was begun whether it is to end: with a file's closing, or with the interpreter."""

    def __init__(self, closed: Event) -> None:
        self._closed = closed

    def __call__(self) -> bool:
        """Tell whether it is to end, for whatever reason."""
        return self.closed or exit_begun()

    @property
    def closed(self) -> bool:
        """Tell whether the file was closed."""
        return self._closed.is_set()


class Ending:
    """Ends what was begun with a file before its closing was over; what begins later is another matter."""

    def __init__(self) -> None:
        self._told = Event()
        self._closings = 0
        self._counting = Lock()

    def begun(self) -> Ended:
        """Give what tells something that begins now whether it is to end."""
        return Ended(self._told)

    @contextmanager
    def closing(self, lock: Lock) -> Iterator[None]:
        """Tell who holds a lock to end, as well as who waits for it or begins meanwhile, and hold it."""
        with self._counting:
            self._closings += 1
            self._told.set()
        with lock:
            try:
                yield
            finally:
                with self._counting:
                    self._closings -= 1
                    if not self._closings:  # who closes still has told the same ones
                        self._told = Event()


def require_wanted(path: Path, ended: Ended) -> None:
    """Go no further with a file that nobody waits for.

    Raises:
        ModelError: it was closed, or the interpreter ends.
    """
    if ended():
        raise ModelError(f"{path.name} is no longer wanted: it was closed, or the program ends")


@contextmanager
def under_way() -> Iterator[None]:
    """Have the interpreter's end wait for what is done here, which is to ask often whether it is to end.

    Raises:
        ModelError: the interpreter ends already.
    """
    thread = current_thread()
    _under_way.append(thread)
    try:
        if exit_begun():
            raise ModelError("llama.cpp begins nothing any more: the program ends")
        yield
    finally:
        _under_way.remove(thread)


def exit_begun() -> bool:
    """Tell whether the interpreter ends; what it does last, as to close a memory, it does in the main thread."""
    return _exiting.is_set() and current_thread() is not main_thread()


@atexit.register
def _end_all() -> None:
    _exiting.set()
    # In a child that was forked no thread of its parent lives.
    while any(thread.is_alive() for thread in tuple(_under_way)):
        time.sleep(ASK_EVERY_S)

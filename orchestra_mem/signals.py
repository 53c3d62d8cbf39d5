"""Signals: what happens in a memory, for whoever wants to hear of it.

A subscriber cannot break what it listens to: one that raises is passed over, logged and counted.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from blinker import Signal

from orchestra_mem.types import Json

logger = logging.getLogger(__name__)


class _PutOff(threading.local):
    """What a thread has still to tell, None where it tells at once."""

    waiting: list[Callable[[], None]] | None = None


class MemoryEvents:
    """The signals of one memory. Subscribe with `memory.events.operation_recorded.connect(function)`.

    A subscriber is called with the memory and, by keyword, with what happened; after it has happened, in the thread
    that did it, which goes on holding the memory: who has much to do hands it to a thread of his own. Of a refresh in a
    pause a thread of the memory tells, which holds nothing by then. Subscribers are held weakly, as blinker does: keep
    a reference. `failures` counts those that raised, by name.
    """

    def __init__(self) -> None:
        self.operation_recorded = Signal("operation: what has been recorded")
        self.refreshed = Signal("refreshed: what the refresh did")
        self.session_flushed = Signal("session: the one that has ended; path: its document")
        self.window_filled = Signal("crossing: the threshold that the context window has reached")
        self.documents_edited = Signal("what people changed in documents has been taken in")
        self.failures: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._put_off = _PutOff()

    def send(self, memory: object, signal: str, **what: object) -> None:
        """Tell the subscribers of the signal with this name."""
        if self._put_off.waiting is not None:
            self._put_off.waiting.append(partial(self.send, memory, signal, **what))
            return
        sent: Signal = getattr(self, signal)
        if not sent.receivers:
            return
        for receiver in sent.receivers_for(memory):
            try:
                receiver(memory, **what)
            except Exception:
                name = getattr(receiver, "__qualname__", type(receiver).__qualname__)
                with self._lock:
                    self.failures[name] += 1
                logger.exception("the subscriber %s failed", name)

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """Tell of what this thread does meanwhile only afterwards, so that who is told may wait for other threads."""
        waiting: list[Callable[[], None]] = []
        self._put_off.waiting = waiting
        try:
            yield
        finally:
            self._put_off.waiting = None
            for tell in waiting:
                tell()

    def problems(self) -> list[Json]:
        """The subscribers that have failed, as `status` shows what is wrong."""
        with self._lock:
            return [
                {"subject": name, "since": None, "problem": f"a subscriber; it failed {count:,} times, see the log"}
                for name, count in self.failures.items()
            ]

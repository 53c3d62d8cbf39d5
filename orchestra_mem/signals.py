"""Signals: subscribe to what happens in a memory.

A subscriber cannot break the memory: an exception in one is logged and counted, and the others are called.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter

from blinker import Signal

from orchestra_mem.types import Json

logger = logging.getLogger(__name__)


class MemoryEvents:
    """The signals of one memory. Subscribe with `memory.events.operation_recorded.connect(function)`.

    A subscriber is called with the memory and, by keyword, with what happened: after the event, in the thread that
    caused it, while that thread holds the memory's lock. So hand long work to a thread of your own. blinker holds
    subscribers weakly: keep a reference. `failures` counts those that raised, by name.
    """

    def __init__(self, memory: object) -> None:
        self._memory = memory
        self.operation_recorded = Signal("operation: what has been recorded")
        self.refreshed = Signal("refreshed: what the refresh did")
        self.session_flushed = Signal("session: the one that has ended; path: its document")
        self.window_filled = Signal("crossing: the threshold that the context window has reached")
        self.documents_edited = Signal("what people changed in documents has been taken in")
        self.failures: Counter[str] = Counter()
        self._lock = threading.Lock()

    def send(self, signal: str, **what: object) -> None:
        """Call the subscribers of the signal with this name."""
        sent: Signal = getattr(self, signal)
        if not sent.receivers:
            return
        for receiver in sent.receivers_for(self._memory):
            try:
                receiver(self._memory, **what)
            except Exception:
                name = getattr(receiver, "__qualname__", type(receiver).__qualname__)
                self.note_failure(name)
                logger.exception("the subscriber %s failed", name)

    def note_failure(self, name: str) -> None:
        """Take note that a subscriber, or a hook of a plugin, has failed."""
        with self._lock:
            self.failures[name] += 1

    def problems(self) -> list[Json]:
        """List the subscribers and hooks that have failed, in the form in which `status` shows problems."""
        with self._lock:
            return [
                {"subject": name, "since": None, "problem": f"called on events, it failed {count:,} times, see the log"}
                for name, count in self.failures.items()
            ]

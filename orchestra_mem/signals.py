"""Signals for subscribing to events of a memory.

A subscriber cannot break the memory: an exception is logged and counted, and the remaining subscribers still run.
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

    A subscriber receives the memory and, as keyword arguments, the details of the event. It runs after the event, in
    the thread that caused it, while that thread holds the memory's lock: pass long work to another thread. blinker
    holds only weak references to subscribers, so keep a strong one. `failures` counts exceptions by subscriber name.
    """

    def __init__(self, memory: object) -> None:
        self._memory = memory
        self.operation_recorded = Signal("operation: the recorded operation")
        self.refreshed = Signal("refreshed: the result of the refresh")
        self.session_flushed = Signal("session: the ended session; path: its document")
        self.window_filled = Signal("crossing: the threshold that the context window has reached")
        self.documents_edited = Signal("people's changes to documents have been imported")
        self.failures: Counter[str] = Counter()
        self._lock = threading.Lock()

    def send(self, signal: str, **what: object) -> None:
        """Call the subscribers of a signal, given by its attribute name."""
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
        """Count a failure of a subscriber or a plugin hook."""
        with self._lock:
            self.failures[name] += 1

    def problems(self) -> list[Json]:
        """Return the subscribers and hooks that have failed, in the format of problems in `status`."""
        with self._lock:
            return [
                {"subject": name, "since": None, "problem": f"failures when called on events: {count:,}; see the log"}
                for name, count in self.failures.items()
            ]

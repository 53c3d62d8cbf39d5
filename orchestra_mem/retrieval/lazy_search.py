"""Open the search of a memory at its first use: its libraries take long to load, and few programs need them."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from orchestra_mem.core.context.continuity import CENTROID_MESSAGES, NO_EMBEDDER, TurnWindow, few_messages
from orchestra_mem.errors import ClosedError, OrchestraMemError, SearchError, StorageError

if TYPE_CHECKING:
    from orchestra_mem.retrieval.search import MemorySearch

logger = logging.getLogger(__name__)

# The index follows a change after so long: the source design asks for ten seconds. Who records on and on is in need of
# the processor: it waits for a pause, though no longer than a minute.
_FOLLOW_S, _STILL_S, _LONGEST_S = 5.0, 0.5, 60.0


class LazySearch:
    """Opens the search once, has its index follow the memory, and closes it. Safe to share between threads.

    Args:
        make: opens it.
    """

    def __init__(self, make: Callable[[], MemorySearch]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._closed = False
        self._changed, self._ended = threading.Event(), threading.Event()
        self._follower: threading.Thread | None = None
        self.changed_at = 0.0
        self.opened: MemorySearch | None = None
        weakref.finalize(self, _end, self._changed, self._ended)

    def open(self) -> MemorySearch:
        """Give the search, opened now if it has not been.

        Raises:
            SearchError: what it is made of cannot be loaded.
            StorageError: the index cannot be used.
        """
        if self.opened is None:
            with self._lock:
                if self._closed:
                    raise ClosedError("this memory has been closed; open it again with open_memory()")
                if self.opened is None:
                    self.opened = self._made()
        return self.opened

    def _made(self) -> MemorySearch:
        try:
            return self._make()
        except ImportError as error:
            raise SearchError(f"search cannot be loaded, numpy and faiss-cpu belong to it: {error}") from error

    def turn_window(self, messages: Sequence[str]) -> TurnWindow:
        """Say how many turns of a talk stand in full, by how far its last message is from those before it."""
        if len(messages) <= CENTROID_MESSAGES:  # nothing is loaded for these
            return few_messages(len(messages) - 1)
        try:
            return self.open().turn_window(messages)
        except (SearchError, StorageError):
            return NO_EMBEDDER

    def note_change(self) -> None:
        """Have the index follow what has been recorded, in the background and within seconds."""
        self.changed_at = time.monotonic()
        if not self._changed.is_set():
            self._changed.set()
            if self._follower is None and not self._closed:
                # It does not keep the memory alive.
                given = weakref.ref(self), self._changed, self._ended
                self._follower = threading.Thread(target=_follow, args=given, name="orchestra-mem follow", daemon=True)
                with suppress(RuntimeError):  # no thread can be had: the next search takes it in
                    self._follower.start()

    @property
    def problem(self) -> str | None:
        """What keeps search by meaning off, in words; None where nothing is known to."""
        return self.opened.problem if self.opened else None

    def close(self) -> None:
        """Close it; it is opened no more."""
        with self._lock:
            self._closed = True
        _end(self._changed, self._ended)
        if self.opened is not None:
            self.opened.close()


def _end(changed: threading.Event, ended: threading.Event) -> None:
    ended.set()
    changed.set()


def _follow(search: weakref.ref[LazySearch], changed: threading.Event, ended: threading.Event) -> None:
    while changed.wait() and not ended.wait(_FOLLOW_S):
        latest = time.monotonic() + _LONGEST_S - _FOLLOW_S
        while (here := search()) and time.monotonic() < min(latest, here.changed_at + _STILL_S):
            del here
            if ended.wait(_STILL_S):
                return
        changed.clear()
        if here is None:
            return
        try:
            here.open().follow()
        except OrchestraMemError as error:  # the next search meets it again, and tells
            logger.debug("the search index does not follow: %s", error)
        del here

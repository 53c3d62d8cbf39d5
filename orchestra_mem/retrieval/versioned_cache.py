"""Answers kept for as long as the memory is the same: the least recently used go first, and old ones go by time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import TTLCache

T = TypeVar("T")


class VersionedCache(Generic[T]):
    """Keeps values by version and key. Safe to share between threads.

    A value is found under the version alone that it was made at or before: whoever takes the version first and looks
    second never stores what is older than its version, and so is never given what is older than the memory.

    Args:
        max_entries: how many are kept; 0 keeps none.
        ttl_s: for how long, in seconds.
        timer: gives seconds that never go back.
    """

    def __init__(self, max_entries: int, ttl_s: float, *, timer: Callable[[], float] = time.monotonic) -> None:
        self._values: TTLCache[tuple[Hashable, Hashable], T] = TTLCache(max_entries, ttl_s, timer)
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    def get(self, version: Hashable, key: Hashable, *, counted: bool = True) -> T | None:
        """The value of a key at a version; None where there is none. Nothing is kept of version None."""
        with self._lock:
            found = None if version is None else self._values.get((version, key))
            self.hits += counted and found is not None
            self.misses += counted and found is None
            return found

    def put(self, version: Hashable, key: Hashable, value: T) -> None:
        """Keep a value that was made while the memory had this version, or later."""
        with self._lock:
            if version is not None and self._values.maxsize:
                self._values[version, key] = value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()

    def __len__(self) -> int:
        """How many values are kept."""
        with self._lock:
            return len(self._values)

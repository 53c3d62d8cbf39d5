"""Open the search of a memory at its first use: its libraries take long to load, and few programs need them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from orchestra_mem.core.context.continuity import NO_EMBEDDER, TurnWindow, turn_window
from orchestra_mem.errors import ClosedError, SearchError

if TYPE_CHECKING:
    from orchestra_mem.retrieval.search import MemorySearch


class LazySearch:
    """Opens the search once, and closes it. Safe to share between threads.

    Args:
        make: opens it.
        is_remote: the embedder is asked over a network, so that no context may wait for it.
    """

    def __init__(self, make: Callable[[], MemorySearch], *, is_remote: bool) -> None:
        self._make = make
        self._is_remote = is_remote
        self._lock = threading.Lock()
        self._closed = False
        self.opened: MemorySearch | None = None

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
        """Say how many turns of a talk stand in full, by how far its last message is from those before it.

        Nothing is loaded for that, and no server asked: where nobody has searched yet there is no embedder.
        """
        if self.opened is None or self._is_remote:
            return NO_EMBEDDER
        found = [self.opened.embed(message) for message in messages]
        vectors = [each[1] for each in found if each is not None]
        if not vectors or len(vectors) < len(found):
            return NO_EMBEDDER
        return turn_window(vectors[-1], vectors[:-1])

    @property
    def problem(self) -> str | None:
        """What keeps search by meaning off, in words; None where nothing is known to."""
        return self.opened.problem if self.opened else None

    def close(self) -> None:
        """Close it; it is opened no more."""
        with self._lock:
            self._closed = True
        if self.opened is not None:
            self.opened.close()

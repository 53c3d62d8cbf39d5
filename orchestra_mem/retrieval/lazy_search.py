"""Open a memory's search on first use: its libraries are slow to load, and few programs need them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from orchestra_mem.core.context.continuity import CENTROID_MESSAGES, TurnWindow, turn_window
from orchestra_mem.errors import ClosedError, EmbedderError, SearchError
from orchestra_mem.types import Json

if TYPE_CHECKING:
    from orchestra_mem.retrieval.search import MemorySearch
    from orchestra_mem.search_types import Embedder


class LazySearch:
    """Opens the search once, requests index updates, and closes it. Safe to share between threads.

    Args:
        make: Opens the search.
        words: Returns the table of word vectors without opening the search; None if search by meaning is off.
        is_followed: Reports whether the index is worth the memory: the project was searched, or has many operations.
    """

    def __init__(
        self, make: Callable[[], MemorySearch], words: Callable[[], Embedder | None], is_followed: Callable[[], bool]
    ) -> None:
        self._make = make
        self._words = words
        self._is_followed = is_followed
        self._lock = threading.Lock()
        self._closed = False
        self.opened: MemorySearch | None = None

    def open(self) -> MemorySearch:
        """Return the search; open it first if necessary.

        Raises:
            ClosedError: The memory was closed before search was opened.
            SearchError: A library that search needs cannot be loaded.
            StorageError: The index cannot be used.
        """
        if self.opened is None:
            with self._lock:
                if self._closed:
                    raise ClosedError("this memory has been closed; open it again with open_memory()")
                try:
                    if self.opened is None:
                        self.opened = self._make()
                except ImportError as error:
                    raise SearchError(f"search cannot be loaded; it needs numpy and faiss-cpu: {error}") from error
        return self.opened

    def turn_window(self, messages: Sequence[str]) -> TurnWindow:
        """Choose how many turns of a conversation to show in full, by how similar its last message is to earlier ones.

        Messages are always compared by word vectors: building a context never waits for a model, a server or the index.
        """
        if len(messages) <= CENTROID_MESSAGES:  # too few to compare: the table need not be loaded
            return TurnWindow(reason=f"earlier messages: {len(messages) - 1}, needed: {CENTROID_MESSAGES}")
        try:
            vectors = words.embed(messages) if (words := self._words()) else None
        except (EmbedderError, ImportError):
            vectors = None
        if vectors is None:
            return TurnWindow(reason="messages cannot be compared: no embedder is available")
        return turn_window(vectors[-1], [*vectors[:-1]])

    def follow(self) -> None:
        """Request an index update in the background, if the index is to be kept up to date.

        Raises:
            ClosedError, SearchError, StorageError: See `open`.
        """
        if self.opened or self._is_followed():
            self.open().follow()

    def forget_purged(self) -> None:
        """Remove purged items from the index now, if there may be an index.

        Raises:
            ClosedError, SearchError, StorageError: See `open`.
        """
        if self.opened or self._is_followed():
            self.open().indexer.catch_up(embeds=False)

    @property
    def problem(self) -> str | None:
        """Why search by meaning is off, as a message; None if no reason is known."""
        return self.opened.problem if self.opened else None

    def problems(self) -> list[Json]:
        """Return why search by meaning is off, in the form that `status` uses; empty if no reason is known."""
        return [{"subject": "search", "since": None, "problem": self.problem}] if self.problem else []

    def close(self) -> None:
        """Close the search permanently."""
        with self._lock:
            self._closed = True
        if self.opened is not None:
            self.opened.close()

"""Open the search of a memory at its first use: its libraries take long to load, and few programs need them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from orchestra_mem.core.context.continuity import CENTROID_MESSAGES, NO_EMBEDDER, TurnWindow, few_messages, turn_window
from orchestra_mem.errors import ClosedError, EmbedderError, SearchError
from orchestra_mem.types import Json

if TYPE_CHECKING:
    from orchestra_mem.retrieval.search import MemorySearch
    from orchestra_mem.search_types import Embedder


class LazySearch:
    """Opens the search once, has its index follow the memory, and closes it. Safe to share between threads.

    Args:
        make: opens it.
        words: gives the table of words alone, None where there is to be none.
        has_index: tells whether this project has been searched, by any process.
    """

    def __init__(
        self, make: Callable[[], MemorySearch], words: Callable[[], Embedder | None], has_index: Callable[[], bool]
    ) -> None:
        self._make = make
        self._words = words
        self._has_index = has_index
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
                try:
                    if self.opened is None:
                        self.opened = self._make()
                except ImportError as error:
                    raise SearchError(f"search cannot be loaded, numpy and faiss-cpu belong to it: {error}") from error
        return self.opened

    def turn_window(self, messages: Sequence[str]) -> TurnWindow:
        """Say how many turns of a talk stand in full, by how far its last message is from those before it.

        The table of words tells it, whatever embeds passages: no context waits for a model, a server or the index.
        """
        if len(messages) <= CENTROID_MESSAGES:  # nothing is loaded for these
            return few_messages(len(messages) - 1)
        try:
            vectors = words.embed(messages) if (words := self._words()) else None
        except (EmbedderError, ImportError):
            vectors = None
        return NO_EMBEDDER if vectors is None else turn_window(vectors[-1], [*vectors[:-1]])

    def follow(self) -> None:
        """Have the index brought up in the background; where nobody has searched, there is nothing to bring up.

        Raises:
            SearchError: what it is made of cannot be loaded.
            StorageError: the index cannot be used.
        """
        if self.opened or self._has_index():
            self.open().follow()

    @property
    def problem(self) -> str | None:
        """What keeps search by meaning off, in words; None where nothing is known to."""
        return self.opened.problem if self.opened else None

    def problems(self) -> list[Json]:
        """Return what is off, in the words of `status`."""
        return [{"subject": "search", "since": None, "problem": self.problem}] if self.problem else []

    def close(self) -> None:
        """Close it; it is opened no more."""
        with self._lock:
            self._closed = True
        if self.opened is not None:
            self.opened.close()

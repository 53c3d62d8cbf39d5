"""Guard an embedder: what has failed is left alone for a while, and nobody who searches waits for a server.

A server is asked in the background. A query alone is sent while somebody waits, and only to one that answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from orchestra_mem.errors import EmbedderError
from orchestra_mem.search_types import Embedder, EmbeddingModel, Vector, Vectors

T = TypeVar("T")

# After the first failures in a row: the back-off of the source design.
_PAUSES_S = (5.0, 10.0, 20.0)
_UNHEARD = "the server of embeddings has not answered yet"


class Guard:
    """Keeps calls from what has failed: for 5 s, then 10, then 20, and from `failures` in a row on for `reset_s`.

    No pause is longer than `reset_s`. The first call that succeeds ends that. Safe to share between threads.
    """

    def __init__(
        self, *, failures: int = 5, reset_s: float = 60.0, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._failures, self._reset_s, self._timer = failures, reset_s, timer
        self._failed = 0
        self._next_try = 0.0
        self.problem: str | None = None

    @property
    def pause_s(self) -> float:
        """How long until the next try may be made."""
        return max(0.0, self._next_try - self._timer()) if self.problem else 0.0

    def call(self, work: Callable[[], T]) -> T:
        """Do the work, if it may be tried.

        Raises:
            EmbedderError: it failed, or has failed so lately that it is left alone.
        """
        if self.problem and self.pause_s:
            raise EmbedderError(self.problem)
        try:
            found = work()
        except Exception as error:  # whatever an embedder raises, search goes on by words
            known = isinstance(error, EmbedderError)
            self.problem = str(error) if known else f"the embedder failed: {type(error).__name__}: {error}"
            if not self.pause_s:  # of several that fail together one counts
                pause_s = _PAUSES_S[min(self._failed, len(_PAUSES_S) - 1)]
                self._failed += 1
                self._next_try = self._timer() + (
                    self._reset_s if self._failed >= self._failures else min(pause_s, self._reset_s)
                )
            raise EmbedderError(self.problem) from error
        self._failed, self.problem = 0, None
        return found


class GuardedEmbedder:
    """An embedder behind a guard; fulfils `Embedder`. Where it fails, or is left alone, it raises `EmbedderError`.

    Args:
        embedder: what is guarded.
        guard: keeps calls from it.
        is_remote: it is a server. Then `embed` alone, in the background, asks one that has not been heard of or has
            failed; `model` and `embed_query` raise at once.
    """

    def __init__(self, embedder: Embedder, guard: Guard, *, is_remote: bool = False) -> None:
        self._embedder = embedder
        self._guard = guard
        self._is_remote = is_remote
        self._model = None if is_remote else embedder.model

    @property
    def model(self) -> EmbeddingModel:
        """What the vectors are made with."""
        if self._model is None:
            raise EmbedderError(self._guard.problem or _UNHEARD)
        return self._model

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts."""

        def work() -> Vectors:
            if self._is_remote and (self._model is None or self._guard.problem):
                self._embedder.embed_query("Are you there?")  # many texts take long to fail
                self._model = self._embedder.model
            return self._embedder.embed(texts)

        return self._guard.call(work)

    def embed_query(self, query: str) -> Vector:
        """Embed a query."""
        if self._is_remote and (self._model is None or self._guard.problem):
            raise EmbedderError(self._guard.problem or _UNHEARD)
        return self._guard.call(lambda: self._embedder.embed_query(query))

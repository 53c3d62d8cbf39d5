"""Put a circuit breaker around an embedder: after some failures in a row it is not called for a while.

pybreaker was looked at first: it holds one lock through each call, so that a query would wait for a batch of the
indexing. circuitbreaker counts by the monotonic clock and holds none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from circuitbreaker import CircuitBreaker

from orchestra_mem.errors import EmbedderError
from orchestra_mem.search_types import Embedder, EmbeddingModel, Tokens, Vector, Vectors, WordEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")


class TableEmbedder(Embedder, WordEmbedder, Protocol):
    """Embeds texts and single words with the same table."""


class Guard:
    """Keeps calls from what has failed `failures` times in a row, for `reset_s` seconds; then the next ones try it.

    The first call that succeeds ends that; one that fails begins it again. Safe to share between threads.
    """

    def __init__(self, *, failures: int = 5, reset_s: float = 60.0) -> None:
        self._failures = failures
        self._breaker = CircuitBreaker(failure_threshold=failures, recovery_timeout=reset_s)

    @property
    def problem(self) -> str | None:
        """What keeps calls off, in words; None where they are let through."""
        if not self._breaker.opened:
            return None
        return (
            f"it failed {self._failures} times in a row, the next try is in {max(1, self._breaker.open_remaining)} s: "
            f"{self._breaker.last_failure}"
        )

    def call(self, work: Callable[[], T]) -> T:
        """Do the work, if it may be tried.

        Raises:
            EmbedderError: it failed, or has failed so often that it is left alone.
        """
        if problem := self.problem:
            raise EmbedderError(problem)
        try:
            with self._breaker:
                return work()
        except EmbedderError:
            raise
        except Exception as error:  # whatever an embedder raises, search goes on by words
            raise EmbedderError(f"the embedder failed: {type(error).__name__}: {error}") from error


class GuardedEmbedder:
    """An embedder behind a guard; fulfils `Embedder`. Where it fails, or is left alone, it raises `EmbedderError`."""

    def __init__(self, embedder: Embedder, guard: Guard) -> None:
        self._embedder = embedder
        self._guard = guard

    @property
    def model(self) -> EmbeddingModel:
        """What the vectors are made with."""
        return self._embedder.model

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts."""
        return self._guard.call(lambda: self._embedder.embed(texts))

    def embed_query(self, query: str) -> Vector:
        """Embed a query."""
        return self._guard.call(lambda: self._embedder.embed_query(query))


class GuardedTable(GuardedEmbedder):
    """A table of word vectors behind a guard; fulfils `WordEmbedder` too."""

    def __init__(self, table: TableEmbedder, guard: Guard) -> None:
        super().__init__(table, guard)
        self._table = table

    def embed_words(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Embed words one by one."""
        return self._guard.call(lambda: self._table.embed_words(words))

    def cut(self, words: Sequence[str]) -> Tokens:
        """Cut words into tokens."""
        return self._guard.call(lambda: self._table.cut(words))

    def token_vectors(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """Give the vectors of tokens."""
        return self._guard.call(lambda: self._table.token_vectors(numbers))

"""Bring the search index up to date in a background thread, with a circuit breaker around the embedder.

After a failure the embedder is not called for a while. A search never waits for a server that is known to be down.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from orchestra_mem.errors import ClosedError, EmbedderError, StorageError
from orchestra_mem.search_types import Embedder, EmbeddingModel, Vector, Vectors

T = TypeVar("T")

# Pauses after the first consecutive failures: the back-off schedule of the source design.
_PAUSES_S = (5.0, 10.0, 20.0)
_UNHEARD = "the embedding server has not answered yet"


class Guard:
    """A circuit breaker: failures in a row block calls for 5, 10, then 20 s; at `failures` and more, for `reset_s`.

    No pause is longer than `reset_s`. A successful call resets the count. Safe to share between threads.
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
        """Seconds until the next call is allowed."""
        return max(0.0, self._next_try - self._timer()) if self.problem else 0.0

    def call(self, work: Callable[[], T]) -> T:
        """Run `work` and return its result, unless calls are blocked.

        Raises:
            EmbedderError: The call failed, or calls are blocked after an earlier failure.
        """
        if self.problem and self.pause_s:
            raise EmbedderError(self.problem)
        try:
            found = work()
        except Exception as error:  # whatever an embedder raises, keyword search goes on
            known = isinstance(error, EmbedderError)
            self.problem = str(error) if known else f"the embedder failed: {type(error).__name__}: {error}"
            if not self.pause_s:  # concurrent failures count once
                pause_s = _PAUSES_S[min(self._failed, len(_PAUSES_S) - 1)]
                self._failed += 1
                self._next_try = self._timer() + (
                    self._reset_s if self._failed >= self._failures else min(pause_s, self._reset_s)
                )
            raise EmbedderError(self.problem) from error
        self._failed, self.problem = 0, None
        return found


class GuardedEmbedder:
    """An `Embedder` that calls another through a guard. Raises `EmbedderError` if the call fails or is blocked.

    Args:
        embedder: The embedder to call.
        guard: Blocks calls after a failure.
        is_remote: Whether the embedder is a server. Before its first answer and after a failure, only `embed` calls it,
            which runs in the background; `embed_query` raises at once, and before the first answer `model` does, too.
    """

    def __init__(self, embedder: Embedder, guard: Guard, *, is_remote: bool = False) -> None:
        self._embedder = embedder
        self._guard = guard
        self._is_remote = is_remote
        self._model = None if is_remote else embedder.model

    @property
    def model(self) -> EmbeddingModel:
        """The model that makes the vectors."""
        if self._model is None:
            raise EmbedderError(self._guard.problem or _UNHEARD)
        return self._model

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts; first probe a server that has not answered yet or has failed."""

        def work() -> Vectors:
            if self._is_remote and (self._model is None or self._guard.problem):
                self._embedder.embed_query("Are you there?")  # a short probe fails sooner than many texts
                self._model = self._embedder.model
            return self._embedder.embed(texts)

        return self._guard.call(work)

    def embed_query(self, query: str) -> Vector:
        """Embed a query; raise at once if a server has not answered yet or has failed."""
        if self._is_remote and (self._model is None or self._guard.problem):
            raise EmbedderError(self._guard.problem or _UNHEARD)
        return self._guard.call(lambda: self._embedder.embed_query(query))


logger = logging.getLogger(__name__)

_CLOSING_S = 2.0


class IndexWorker:
    """Runs `catch_up` in a background thread on request, and again while the embedder fails. Sets `rested` after a run.

    Args:
        catch_up: Indexes everything new, in small steps; must return early once `closing` is set.
        guard: Reports whether calls are blocked, and for how long.
    """

    def __init__(self, catch_up: Callable[[], object], guard: Guard) -> None:
        self._catch_up = catch_up
        self._guard = guard
        self.closing, self.rested, self._wanted = threading.Event(), threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def follow(self) -> None:
        """Request a run; start the thread if it is not running."""
        with self._lock:
            self.rested.clear()
            self._wanted.set()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="orchestra-mem index", daemon=True)
                self._thread.start()

    def end(self) -> None:
        """Ask the thread to end after its current step."""
        self.closing.set()
        self._wanted.set()

    def join(self) -> None:
        """Wait up to 2 s for the thread to end."""
        with self._lock:  # `follow` may be about to start the thread
            thread = self._thread
        if thread is not None:
            # Do not wait for a server, which may take a minute: the thread ends later, when it finds the index closed.
            thread.join(_CLOSING_S)

    def _work(self) -> None:
        while not self.closing.is_set():
            self._wanted.clear()
            self._bring_up()
            with self._lock:
                self.rested.set()
                if not self._wanted.is_set() and not self._guard.problem:
                    self._thread = None
                    return
            self._wanted.wait(self._guard.pause_s)

    def _bring_up(self) -> None:
        try:
            self._catch_up()
        except (ClosedError, EmbedderError) as error:
            logger.debug("%s", error)  # every search reports it in its notes, or raises it
        except StorageError as error:
            logger.warning("the search index could not be updated: %s", error)
        except Exception:
            # The next search tries again and reports what is not indexed.
            logger.exception("the search index could not be updated")

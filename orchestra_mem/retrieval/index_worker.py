"""Bring the search index up in a thread of its own.

Its embedder is guarded: one that has failed is left alone for a while, and nobody who searches waits for a server.
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


logger = logging.getLogger(__name__)

_CLOSING_S = 2.0


class IndexWorker:
    """Brings an index up as often as that is wanted, and again where the embedder failed, until it is back.

    Args:
        catch_up: takes in all that is new, in small steps; ends early once `closing` is set.
        guard: tells whether the embedder is left alone, and for how long.
    """

    def __init__(self, catch_up: Callable[[], object], guard: Guard) -> None:
        self._catch_up = catch_up
        self._guard = guard
        self.closing, self.rested, self._wanted = threading.Event(), threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def follow(self) -> None:
        """Have the index brought up."""
        with self._lock:
            self.rested.clear()
            self._wanted.set()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="orchestra-mem index", daemon=True)
                self._thread.start()

    def end(self) -> None:
        """Let the thread end after the step that it is at."""
        self.closing.set()
        self._wanted.set()

    def join(self) -> bool:
        """Wait a little for the end of the thread; whether there was one."""
        with self._lock:  # it may be about to start
            thread = self._thread
        if thread is None:
            return False
        # A server may take a minute to answer; what comes then finds the index closed.
        thread.join(_CLOSING_S)
        return True

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
        except ClosedError:
            pass
        except EmbedderError as error:
            # Each answer tells it.
            logger.debug("%s", error)
        except StorageError as error:
            logger.warning("the search index could not be brought up to the memory: %s", error)
        except Exception:
            # The next search tries again, and tells what is left.
            logger.exception("the search index could not be brought up to the memory")

"""Bring the search index up in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from orchestra_mem.errors import ClosedError, EmbedderError, StorageError
from orchestra_mem.retrieval.guarded_embedder import Guard

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

"""Apply changes made by people and on other machines, in the background."""

from __future__ import annotations

import logging
import threading
import weakref

from orchestra_mem.errors import ClosedError
from orchestra_mem.ports import DocumentStore

logger = logging.getLogger(__name__)

# A text saved on one machine reaches the files of the others within two periods.
_EVERY_S = 0.7
_AFTER_A_FAULT_S = 3.0
_JOIN_S = 1.0  # the thread takes longer only while it waits for an unreachable server


class Follower:
    """Calls `DocumentStore.follow` periodically in a daemon thread. Holds only a weak reference to the store."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = weakref.ref(store)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="orchestra-mem documents", daemon=True)
        weakref.finalize(store, self._ended.set)
        try:
            self._thread.start()
        except RuntimeError:  # no thread available: the next write applies the changes
            self._ended.set()

    def end(self) -> None:
        """End the thread once its present call has finished; wait up to a second for it."""
        self._ended.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(_JOIN_S)

    def _run(self) -> None:
        wait_s = _EVERY_S
        while not self._ended.wait(wait_s):
            try:
                if (store := self._store()) is None:
                    return
                store.follow()
                wait_s = _EVERY_S
            except ClosedError:
                return
            except Exception:  # the next caller gets the same error
                logger.debug("following has failed", exc_info=True)
                wait_s = _AFTER_A_FAULT_S
            finally:
                store = None

"""Follow what people and other machines write while the program does something else."""

from __future__ import annotations

import logging
import threading
import weakref

from orchestra_mem.errors import ClosedError
from orchestra_mem.ports import DocumentStore

logger = logging.getLogger(__name__)

# What is saved on one machine is in the others' files within two of these.
_EVERY_S = 0.7
_AFTER_A_FAULT_S = 3.0
_JOIN_S = 1.0  # longer only where it waits for a server that is away


class Follower:
    """Looks again and again, in a thread of its own, until it is ended. It keeps no store alive."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = weakref.ref(store)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="orchestra-mem documents", daemon=True)
        weakref.finalize(store, self._ended.set)
        try:
            self._thread.start()
        except RuntimeError:  # no thread can be had: whoever writes next brings all together
            self._ended.set()

    def end(self) -> None:
        """End the thread, after the look that it is at."""
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
            except Exception:  # whoever calls next meets it again, and is told
                logger.debug("following has failed", exc_info=True)
                wait_s = _AFTER_A_FAULT_S
            finally:
                store = None

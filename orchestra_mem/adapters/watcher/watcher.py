"""The watcher itself: its thread looks, waits until documents are still, and tells."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Self

from orchestra_mem.adapters.watcher.changes import STEP_S, Changes
from orchestra_mem.adapters.watcher.events import CLOSE_S, THREAD_NAME, Events
from orchestra_mem.errors import ClosedError
from orchestra_mem.types import FileState

logger = logging.getLogger(__name__)

# How soon, where events tell of changes, it is seen what no event tells of: a folder put in another's place, the target
# of a link, a file mapped into memory, a save on another machine, events that the kernel had no room for. With the
# debounce time it is under a second; one look, with all that has been idle meanwhile to wake, takes 0.4 ms.
_BEAT_S = 0.7
# The share of a core that looking without a reason may take, for large folders: with events, and without.
_BEAT_SHARE = 0.000_5
_POLL_SHARE = 0.02


class DocumentWatcher:
    """Tells of the documents in some folders whose content may have changed. Safe to share between threads.

    Folders below the given ones are not watched. A folder need not exist yet; it may vanish and come back. A document
    that is taken away is told of like one that is changed. One that is there at the start is not told of, unless
    `expect` has told another state of it before.

    Args:
        folders: where the documents are.
        on_change: is called on the watcher's thread with the paths, as folder and name. What it raises is logged.
        mode: `poll` looks every `poll_s` seconds, for folders where the system tells of no changes.
        debounce_s: so long a document must have been the same before it is told of. One that is saved over and over is
            told of within a second all the same.
        poll_s: seconds between two looks where it polls. Large folders are looked at more seldom.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        *,
        on_change: Callable[[frozenset[Path]], None],
        mode: Literal["auto", "poll"] = "auto",
        debounce_s: float = 0.2,
        poll_s: float = 1.0,
    ) -> None:
        self._on_change = on_change
        self._events_wanted = mode == "auto"
        self._poll_s = poll_s
        places = tuple(dict.fromkeys(os.path.abspath(folder) for folder in folders))
        self.folders = tuple(map(Path, places))
        self._changes = Changes(places, debounce_s=debounce_s)
        self._events: Events | None = None
        # Why it polls although it should not, in words.
        self.problem: str | None = None
        self._start_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._hint = threading.Event()
        self._next_look = time.monotonic()

    @property
    def mode(self) -> str:
        """What it really does: inotify, fsevents, windows, kqueue or poll; off before the start and after the end."""
        if self._thread is None or self._closing.is_set():
            return "off"
        events = self._events
        return "poll" if events is None else events.name

    def start(self) -> None:
        """Begin to watch; what is saved after this has returned is told of. Does nothing where it has begun already.

        Raises:
            ClosedError: it has been closed.
        """
        with self._start_lock:
            if self._closing.is_set():
                raise ClosedError("this watcher has been closed; make a new one")
            if self._thread is not None:
                return
            if self._events_wanted:
                self._watch_events()
            try:
                self._changes.begin()
                self._hint.set()  # for what was expected otherwise than it is
                thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
                thread.start()
            except BaseException:
                self._stop_events()
                raise
            self._thread = thread

    def expect(self, path: Path, state: FileState | None) -> None:
        """Say in which state the program itself left a document (None: it is gone): of that state it is not told.

        The state must be that of what was written, taken before anybody else could save there. Told after the debounce
        time it is too late, and the document is told of. What is in none of the folders is passed over.
        """
        self._changes.expect(path, state)

    def close(self) -> None:
        """End all threads, within a second unless `on_change` takes longer. It may be called from there, and twice."""
        with self._start_lock:
            self._closing.set()
            self._hint.set()
            thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        thread.join(CLOSE_S)
        if thread.is_alive():
            logger.warning("what was called for a changed document still runs; the watcher ends when it returns")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                try:
                    self._turn()
                except Exception:
                    logger.exception("looking for changed documents failed; it is tried again")
                    self._closing.wait(_BEAT_S)
        finally:
            self._stop_events()

    def _turn(self) -> None:
        """Wait for a reason to look, look once, tell what is ready to be told."""
        hinted = self._hint.wait(self._idle_s())
        self._hint.clear()
        if self._events is not None:
            hinted |= self._renew_events()
        due = self._changes.waiting or time.monotonic() >= self._next_look
        if self._closing.is_set() or not (hinted or due):
            return
        began = time.thread_time()
        ready = self._changes.look()
        cost = time.thread_time() - began
        least, share = (self._poll_s, _POLL_SHARE) if self._events is None else (_BEAT_S, _BEAT_SHARE)
        self._next_look = time.monotonic() + max(least, cost / share)
        if ready:
            self._tell(ready)
        if hinted or self._changes.waiting:
            # However large the folders are, and however many events there are, this gets at most a quarter of a core.
            self._closing.wait(max(STEP_S, 3 * cost))

    def _idle_s(self) -> float:
        if self._changes.waiting:
            return 0.0
        return _BEAT_S if self._events is not None else max(0.0, self._next_look - time.monotonic())

    def _tell(self, documents: frozenset[Path]) -> None:
        logger.debug("changed: %s", ", ".join(sorted(path.name for path in documents)))
        try:
            self._on_change(documents)
        except Exception:
            logger.exception("what was called for %d changed documents failed; watching goes on", len(documents))

    def _watch_events(self) -> None:
        try:
            self._events = Events([*map(str, self.folders)], hint=self._hint.set)
            self._renew_events()
        except (ImportError, OSError, RuntimeError) as error:
            self._poll_instead(error)

    def _renew_events(self) -> bool:
        """Watch the folders that are there now; whether something may have been missed meanwhile."""
        if self._events is None:
            return False
        try:
            return self._events.renew()
        except (OSError, RuntimeError) as error:
            self._poll_instead(error)
            return True

    def _poll_instead(self, error: Exception) -> None:
        advice = ""
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EMFILE, errno.ENFILE):
            advice = " Raise the limit: sysctl fs.inotify.max_user_watches, fs.inotify.max_user_instances, ulimit -n."
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        self.problem = (
            f"the system cannot tell of changed documents ({reason}); they are looked at every {self._poll_s:g} s."
            f"{advice}"
        )
        logger.warning("%s", self.problem)
        self._stop_events()

    def _stop_events(self) -> None:
        events, self._events = self._events, None
        if events is not None:
            events.close()

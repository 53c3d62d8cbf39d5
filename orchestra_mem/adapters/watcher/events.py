"""The system's own events, through watchdog: that something happened in a folder, and no more."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver, EventEmitter, ObservedWatch

THREAD_NAME = "orchestra-mem-watch"
# watchdog's threads may take half a second to end: so long a rename waits there for its other half.
CLOSE_S = 0.95
_NAMES = {
    "InotifyObserver": "inotify",
    "FSEventsObserver": "fsevents",
    "WindowsApiObserver": "windows",
    "KqueueObserver": "kqueue",
}


class Events:
    """The system's own events of some folders, through watchdog. Used by one thread at a time.

    `hint` is called, on a thread of watchdog's, for whatever happens there.

    Raises:
        OSError, RuntimeError, ImportError: the system has no events, or has no room for another watch.
    """

    def __init__(self, folders: Sequence[str], *, hint: Callable[[], None]) -> None:
        from watchdog import events  # slow to load, and not needed where it polls
        from watchdog.observers import Observer

        class Hint(events.FileSystemEventHandler):
            def dispatch(self, event: FileSystemEvent) -> None:
                hint()

        self._folders = folders
        self._handler = Hint()
        # Not the opening of files, nor the closing of what was only read: to read is no reason to look.
        self._kinds: list[type[FileSystemEvent]] = [
            events.FileModifiedEvent,
            events.FileCreatedEvent,
            events.FileDeletedEvent,
            events.FileMovedEvent,
            events.FileClosedEvent,
            events.DirDeletedEvent,
        ]
        # Each folder's place on its file system, and what watches it there.
        self._watches: dict[str, tuple[tuple[int, int], ObservedWatch, EventEmitter]] = {}
        self._observer: BaseObserver = Observer()
        name = _NAMES.get(type(self._observer).__name__)
        if name is None:
            raise RuntimeError(f"{type(self._observer).__name__} of watchdog polls as well")
        self.name = name
        self._name_thread(getattr(self._observer, "_inotify_fd", None))
        self._name_thread(self._observer)
        try:
            self._observer.start()
        except BaseException:
            self._observer.stop()
            raise

    def renew(self) -> bool:
        """Watch the folders as they stand now; whether anything is watched that was not, or the other way round."""
        changed = False
        for folder in self._folders:
            place = _place(folder)
            watched = self._watches.get(folder)
            if watched is not None:
                if watched[0] == place and watched[2].is_alive():
                    continue
                del self._watches[folder]
                with suppress(KeyError, OSError):  # another name of the same folder has been dropped before
                    self._observer.unschedule(watched[1])
                changed = True
            if place is not None:
                changed |= self._watch(folder, place)
        return changed

    def close(self) -> None:
        """End watchdog's threads, within half a second and a little."""
        self._watches.clear()
        self._observer.stop()
        if self._observer.is_alive():
            self._observer.join(CLOSE_S)

    def _watch(self, folder: str, place: tuple[int, int]) -> bool:
        try:
            # Of a link to a folder, watchdog would watch the link.
            watch = self._observer.schedule(self._handler, os.path.realpath(folder), event_filter=self._kinds)
        except (FileNotFoundError, NotADirectoryError):  # taken away this instant
            return False
        emitter = next(emitter for emitter in self._observer.emitters if emitter.watch == watch)
        self._name_thread(emitter)
        self._watches[folder] = (place, watch, emitter)
        return True

    @staticmethod
    def _name_thread(thread: object) -> None:
        if isinstance(thread, threading.Thread):
            thread.name = THREAD_NAME


def _place(folder: str) -> tuple[int, int] | None:
    """What tells a folder from another that is put in its place; None where there is none."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None

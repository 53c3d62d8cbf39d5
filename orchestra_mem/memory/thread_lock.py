"""The lock that a memory keeps its threads apart with: within the process that made it, and in no child of that."""

from __future__ import annotations

import os
import threading
from types import TracebackType

from orchestra_mem.errors import ClosedError


class ThreadLock:
    """May be taken again by its holder.

    After a fork it refuses: the thread that holds it may not be there, and then nobody would ever let it go.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process = os.getpid()

    @property
    def inherited(self) -> bool:
        """Whether this is a child of the process that made it."""
        return os.getpid() != self._process

    def check(self) -> None:
        """Make sure that this is the process that made it.

        Raises:
            ClosedError: it is a child.
        """
        if self.inherited:
            raise ClosedError("this memory was opened before a fork; a child process opens its own with open_memory()")

    def __enter__(self) -> None:
        """Take it, as soon as no other thread has it."""
        self.check()
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let the next one have it."""
        self._lock.release()

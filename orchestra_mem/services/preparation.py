"""What is done in the caller's pauses: what the next refresh needs of operations and edits, and what is due.

Nothing depends on it: what was not done ahead the refresh does itself, to the same end, and a spill or a refresh that
finds no pause comes before the next reading. While something is done ahead no lock of the memory is held, and nothing
is written.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Protocol
from weakref import WeakMethod, WeakSet

from orchestra_mem.tiers.foresight import Foresight
from orchestra_mem.types import Operation

logger = logging.getLogger(__name__)

# So long nothing is recorded before a pause counts as one. Between its steps, of some 0.1 ms, who comes back can go on.
_QUIET_S = 0.05
# What takes a millisecond is done in less: between two records that do not come one upon the other.
_MOMENT_S = 0.005
_BETWEEN_S = 0.000_3
# A thread that has had nothing to do for so long ends.
_IDLE_S = 10.0
# What waits beyond this is left to the refresh.
_MOST_WAITING = 256
# A refresh that waits for other processes takes no longer.
_LONGEST_STEP_S = 30.0
# A process that records less than this is about to end, as a command is.
_FIRST = 4


class Pausing(Protocol):
    """What is done in a pause, or `briefly` in a moment."""

    def __call__(self, *, briefly: bool) -> None:
        """Do what is due."""
        ...


class Preparation:
    """Follows what this process records. The flow calls it under the manager's lock.

    Args:
        foresight: prepares operations.
        in_pause: a method that is called in a pause when nothing is left to be done ahead, and `briefly` in a moment
            that was wanted; by a thread without a lock.
    """

    def __init__(self, foresight: Foresight, in_pause: Pausing) -> None:
        self._foresight = foresight
        # Weakly, so that a thread that waits for work keeps no memory that nobody has any more.
        self._in_pause = WeakMethod(in_pause)
        self._moment_wanted = False
        self._waiting: deque[Iterator[None]] = deque(maxlen=_MOST_WAITING)
        self._steps = _load()
        self._worker: threading.Thread | None = None
        self._came = threading.Event()
        self._hurry = threading.Event()  # ends a wait for a longer pause
        self._alone = False
        self._busy = False
        self._over = threading.Event()
        self._touched = 0.0
        self._recorded = 0
        _at_work.add(self)

    def keep_still(self) -> None:
        """Do nothing until the operation that is being recorded has gone through the tiers."""
        self._busy = True

    def follow(self, operation: Operation) -> None:
        """It has; what the next refresh needs of it is done in the next pause."""
        self._touched, self._busy = time.monotonic(), False
        self._recorded += 1
        self.do(self._foresight.prepare(operation))

    @property
    def follows(self) -> bool:
        """Whether pauses are looked for: a process that has recorded next to nothing may be about to end."""
        return self._recorded >= _FIRST and not self._alone and not self._over.is_set()

    def do(self, steps: Iterator[None]) -> None:
        """Let these steps be done in the next pause."""
        self._waiting.append(steps)
        if self.follows:
            self._wake()

    def want_moment(self) -> None:
        """Have something done as soon as the caller is still for a moment."""
        if not self._moment_wanted:
            self._moment_wanted = True
            self._hurry.set()
        self._wake()

    def stop(self) -> None:
        """End with the step at hand: the memory closes."""
        self._over.set()
        self._came.set()
        self._hurry.set()

    def end(self) -> None:
        """Stop, and wait for the step at hand."""
        self.stop()
        if self._worker is not None:
            self._worker.join(_LONGEST_STEP_S)

    def _wake(self) -> None:
        if not self._came.is_set():  # to ask costs less than to set it again
            self._came.set()
        if self._worker is None or not self._worker.is_alive():
            worker = threading.Thread(target=self._work, name="orchestra-mem preparation", daemon=True)
            try:
                worker.start()
            except RuntimeError as error:
                self._alone = True
                logger.warning("no thread for pauses can be started, so nothing waits for one: %s", error)
            else:
                self._worker = worker

    def _step(self) -> bool:
        """Do the next step: first load what all need, then what waits; False where nothing does."""
        try:
            if next(self._steps, self) is self:
                if not self._waiting:
                    return False
                self._steps = self._waiting.popleft()
        except Exception:
            # The refresh meets it again, and tells of it.
            logger.debug("something could not be prepared", exc_info=True)
            self._steps = iter(())
        return True

    def _rest(self, *, briefly: bool) -> None:
        if in_pause := self._in_pause():
            in_pause(briefly=briefly)

    def _work(self) -> None:
        while self._came.wait(_IDLE_S) and not self._over.is_set():
            pause = 0.0 if self._busy else time.monotonic() - self._touched
            quiet = _MOMENT_S if self._moment_wanted else _QUIET_S
            if pause < quiet:
                self._hurry.wait(quiet - pause)
                self._hurry.clear()
                continue
            if self._moment_wanted:
                self._moment_wanted = False
                self._rest(briefly=True)
            elif not self._step():
                self._came.clear()
                self._rest(briefly=False)
                if self._waiting:  # it has come this instant
                    self._came.set()
            time.sleep(_BETWEEN_S)


def _load() -> Iterator[None]:
    """Load the tables of cues and compile their patterns: the first refresh would take a third of a second for it."""
    from orchestra_mem.core.cues.cue import compile_patterns
    from orchestra_mem.core.facts import extraction  # noqa: F401  with it all the tables

    yield
    yield from compile_patterns()


_at_work: WeakSet[Preparation] = WeakSet()


@atexit.register
def _end_all() -> None:
    """Let no thread be stopped in the middle of a refresh when the interpreter ends: nobody could close after that."""
    for preparation in list(_at_work):
        preparation.end()

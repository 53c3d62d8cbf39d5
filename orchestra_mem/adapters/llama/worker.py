"""The thread in which a model is loaded and generates, which keeps the model until it is idle or closed.

One thread, as OpenMP keeps a team of threads for each one that asks it. Not a `ThreadPoolExecutor`: the interpreter's
end waits for the executor's threads before anybody can tell them to end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Condition, Thread
from typing import Any, Generic, TypeVar

from orchestra_mem.adapters.llama.ending import Stop, running
from orchestra_mem.adapters.llama.session import LlamaSession
from orchestra_mem.errors import ModelError

_T = TypeVar("_T")


class Call(Generic[_T]):
    """A call that waits for its turn, is being made, or is done: `future` has its result."""

    def __init__(self, work: Callable[[Stop], _T]) -> None:
        self._work = work
        self._stop = Stop()
        self.future: Future[_T] = Future()

    def end(self) -> None:
        """Withdraw it where it waits; tell it to end where it is being made."""
        if not self.future.cancel():
            self._stop.set()

    def make(self) -> None:
        """Make the call."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            with running(self._stop):
                self.future.set_result(self._work(self._stop))
        except BaseException as error:  # raised to whoever asks for the result
            self.future.set_exception(error)


class Worker:
    """Makes calls one after the other; loads the model for the first, and lets go of it when idle.

    Args:
        load: loads the model.
        idle_s: seconds after the last call until the model is let go; 0 for never.
    """

    def __init__(self, load: Callable[[Stop], LlamaSession], idle_s: float) -> None:
        self._load = load
        self._idle_s = idle_s or None
        self.session: LlamaSession | None = None
        self._changed = Condition()
        self._waiting: deque[Call[Any]] = deque()
        self._now: Call[Any] | None = None
        self._thread: Thread | None = None
        self.ended = False

    def load(self, stop: Stop) -> LlamaSession:
        """Load the model where it is not loaded; to be called by the worker."""
        if self.session is None:
            self.session = self._load(stop)
        return self.session

    def submit(self, work: Callable[[Stop], _T]) -> Call[_T]:
        """Have a call made behind those before it; it is withdrawn at once where the worker has been ended."""
        call = Call(work)
        with self._changed:
            if self.ended:
                call.end()
                return call
            self._waiting.append(call)
            self._changed.notify()
            if self._thread is None:
                self._thread = Thread(target=self._run, name="llama", daemon=True)
                self._thread.start()
        return call

    def end(self) -> None:
        """Withdraw every call, tell the one under way to end, and let go of the model behind it."""
        with self._changed:
            self.ended = True
            for call in self._waiting:
                call.end()
            self._waiting.clear()
            if self._now is not None:
                self._now.end()
            self._changed.notify()

    def join(self, wait_s: float) -> None:
        """Wait so long for an ended worker to let go of the model."""
        if (thread := self._thread) is not None:
            thread.join(wait_s)

    def _run(self) -> None:
        while (call := self._next()) is not None:
            call.make()
            del call  # it holds what was asked for

    def _next(self) -> Call[Any] | None:
        with self._changed:
            self._now = None
            self._changed.wait_for(lambda: self._waiting or self.ended, self._idle_s)
            if self._waiting:
                self._now = self._waiting.popleft()
                return self._now
            self._thread = None
            if self.session is not None:
                # While the interpreter ends, the memory is left to the system.
                with suppress(ModelError), running(Stop()):
                    self.session.close()
                self.session = None
            return None

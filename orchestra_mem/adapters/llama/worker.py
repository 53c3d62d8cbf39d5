"""The thread in which a model is loaded and reads: OpenMP keeps a team of threads for each one that asks it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import ParamSpec, TypeVar
from weakref import finalize

from orchestra_mem.adapters.llama.ending import under_way

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Calls = SimpleQueue[Callable[[], None] | None]


class Worker:
    """A thread that makes calls one after the other.

    Not a `ThreadPoolExecutor`: the interpreter's end waits for its threads before anybody can tell them to end.
    """

    def __init__(self) -> None:
        calls: _Calls = SimpleQueue()
        self._calls = calls
        self._thread = Thread(target=_work, args=(calls,), name="llama", daemon=True)
        self._thread.start()
        # It ends with a model that nobody has closed as well.
        self._ended = finalize(self, calls.put, None)
        self._ended.atexit = False  # who asks it for something as the interpreter ends is told so

    def submit(self, call: Callable[_P, _T], *args: _P.args, **named: _P.kwargs) -> Future[_T]:
        """Have a call made, after those before it."""
        future: Future[_T] = Future()

        def make() -> None:
            try:
                with under_way():
                    future.set_result(call(*args, **named))
            except BaseException as error:  # told to who asks for the result
                future.set_exception(error)

        self._calls.put(make)
        return future

    def end(self, wait_s: float) -> None:
        """End it behind the calls it was given, which are waited for so many seconds at most."""
        self._ended()
        self._thread.join(wait_s)


def _work(calls: _Calls) -> None:
    while (call := calls.get()) is not None:
        call()
        del call  # it holds the model, which would never be let go while the thread waits

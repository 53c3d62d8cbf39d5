"""Bounds on processor time that hold on slow and busy machines as well; work is measured without coverage's tracer."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from functools import partial

# Time that `_pace` measures on the reference machine, where the bounds of the tests were set.
_REFERENCE_S = 0.006
_TRIES = 4
# A bound fails at twice its seconds: the faults that it guards against take many times as long.
_ROOM = 2


def repeated(unit: str, chars: int) -> str:
    """Repeat a unit up to the given number of characters."""
    return (unit * (chars // len(unit) + 1))[:chars]


def spent_s(work: Callable[[], object]) -> float:
    """Processor time of this process within `work`, in seconds, without coverage's tracer, which would double it."""
    tracer = sys.gettrace()
    sys.settrace(None)
    start = time.process_time()
    try:
        work()
        return time.process_time() - start
    finally:
        sys.settrace(tracer)


def _pace() -> float:
    """How many times slower than the reference machine this one currently runs Python."""

    def yardstick() -> None:
        words: dict[str, int] = {}
        for number in range(30_000):
            word = str(number % 977)
            words[word] = words.get(word, 0) + len(word)

    return max(1.0, spent_s(yardstick) / _REFERENCE_S)


def until(holds: Callable[[], object], within_s: float = 30.0) -> float:
    """Wait until a condition holds, and return the seconds that it took; fail after `within_s`."""
    start = time.monotonic()
    while not holds():
        assert time.monotonic() < start + within_s, f"not within {within_s} s"
        time.sleep(0.01)
    return time.monotonic() - start


def assert_quick(seconds: float, work: Callable[[], object], *, tries: int = _TRIES) -> None:
    """Check that `work` takes about this many seconds on the reference machine, in at least one of a few tries."""
    told: list[str] = []
    for _ in range(tries):
        pace = _pace()
        spent = spent_s(work)
        pace = max(pace, _pace())
        if spent <= _ROOM * seconds * pace:
            return
        told.append(f"{spent:.2f} s at {pace:.1f} times the pace")
    raise AssertionError(f"far more than {seconds} s: {'; '.join(told)}")


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Check that `work(size)` takes at most three times its share of what an eighth takes, in one of a few tries.

    Time that grew with the square of the size would take eight times that share. Each try has a different size, as
    results for the same text may be cached.
    """
    told: list[str] = []
    for tried in (size - number * size // 50 for number in range(_TRIES)):
        gc.collect()
        part = spent_s(partial(work, tried // 8))
        whole = spent_s(partial(work, tried))
        if whole <= 3 * 8 * part + 0.05:
            return
        told.append(f"{whole:.2f} s where an eighth takes {part:.3f} s")
    raise AssertionError("; ".join(told))

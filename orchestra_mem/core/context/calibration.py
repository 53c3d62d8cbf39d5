"""How far an estimate of tokens lies from what the model reports, learned while it is used. Pure."""

from __future__ import annotations

from collections import deque
from math import ceil
from statistics import median
from threading import Lock

# A report is heeded where it can be about the same text: what was reported may hold an answer's thinking as well, or
# nothing, and few tokens are mostly a chat template's.
_LEAST_TOKENS = 32
_PLAUSIBLE = (0.4, 2.0)
# The factor is the median of the last reports, rounded up to a step; it keeps within this, and waits for so many.
_BOUNDS = (0.6, 1.25)
_STEP = 0.05
_NEEDED = 16
_KEPT = 64


class Calibration:
    """A factor for estimates, by what the model reported for texts that were estimated. Safe to share between threads.

    `factor`, by which estimates are multiplied, is 1 until there are sixteen reports, and from 0.6 to 1.25 whatever is
    reported.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._ratios: deque[float] = deque(maxlen=_KEPT)
        self.factor = 1.0

    def report(self, counted: int, reported: int) -> None:
        """Take in what the model reported for a text, `counted` by the estimate as it was calibrated then."""
        if counted < _LEAST_TOKENS or reported <= 0:
            return
        with self._lock:
            ratio = reported / counted * self.factor
            if not _PLAUSIBLE[0] <= ratio <= _PLAUSIBLE[1]:
                return
            self._ratios.append(ratio)
            if len(self._ratios) >= _NEEDED:
                low, high = _BOUNDS
                steps = ceil(round(median(self._ratios) / _STEP, 2))
                self.factor = min(high, max(low, steps * _STEP))

    def apply(self, tokens: int) -> int:
        """Correct an estimate; rounded up."""
        return tokens if self.factor == 1 else ceil(tokens * self.factor)

    def words(self) -> str:
        """Say what it has come to; empty where nothing is corrected."""
        return "" if self.factor == 1 else f"times {self.factor:.2f}, by what the model reports"

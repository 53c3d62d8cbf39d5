"""A correction factor for token estimates, learned from the token counts that the model reports."""

from __future__ import annotations

from collections import deque
from math import ceil
from statistics import median
from threading import Lock

# A report is ignored if it is unlikely to be about the same text: it may include the reasoning of an answer, or be
# empty, and a small count is mostly the chat template.
_LEAST_TOKENS = 32
_PLAUSIBLE = (0.4, 2.0)
# The factor is the median of the last `_KEPT` ratios, rounded up to a multiple of `_STEP` and clamped to `_BOUNDS`.
_BOUNDS = (0.6, 1.25)
_STEP = 0.05
_NEEDED = 16
_KEPT = 64


class Calibration:
    """Corrects token estimates by the model's own counts of estimated texts. Safe to share between threads.

    Estimates are multiplied by `factor`, which is 1 until there are 16 plausible reports, then always 0.6 to 1.25.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._ratios: deque[float] = deque(maxlen=_KEPT)
        self.factor = 1.0

    def report(self, counted: int, reported: int) -> None:
        """Learn from the model's count for a text; `counted` is its estimate, corrected by the present `factor`."""
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
        """Return an estimate corrected by `factor`, rounded up."""
        return tokens if self.factor == 1 else ceil(tokens * self.factor)

    def words(self) -> str:
        """Describe the correction for messages; empty if there is none."""
        return "" if self.factor == 1 else f"scaled by {self.factor:.2f} to match the usage that the model reports"

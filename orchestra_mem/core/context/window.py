"""Track how full the model's context window is, announce thresholds, and reconstruct past usage from records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from threading import Lock

from orchestra_mem.types import WindowRefresh

_log = logging.getLogger(__name__)

MAX_POINTS = 10_000  # about 2 MB, and more than a plot can show


class Threshold(StrEnum):
    """The fill levels that are announced, from the lowest to the highest."""

    WARNING = "warning"
    REFRESH = "refresh"
    CRITICAL = "critical"


class UsageEvent(StrEnum):
    """The cause of a change in usage: an operation, a report of the model, or a refresh."""

    ADDED = "added"
    REPORTED = "reported"
    RESET = "reset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """A threshold that was reached from below."""

    threshold: Threshold
    used_tokens: int
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePoint:
    """The usage directly before and after one change. `sequence` numbers the points of a history from 1."""

    sequence: int
    time: datetime
    before_tokens: int
    used_tokens: int
    event: UsageEvent


Listener = Callable[[Crossing], None]

_LEVELS = (
    (Threshold.WARNING, logging.INFO, "a refresh is near"),
    (Threshold.REFRESH, logging.WARNING, "a refresh is due"),
    (Threshold.CRITICAL, logging.ERROR, "the window is about to overflow"),
)


class ContextWindowTracker:
    """Adds up the tokens in the window and announces thresholds. Safe to share between threads.

    A threshold is announced when the usage reaches it from below, and again only after the usage has been under it.

    Args:
        max_tokens: Size of the model's window.
        warning_threshold: Share of the window, over 0 and up to 1. The three thresholds must ascend.
        refresh_threshold: Share from which `should_refresh` is true.
        critical_threshold: Share from which the model may soon lose the start of its context.

    Raises:
        ValueError: The thresholds do not ascend within 0 to 1, or `max_tokens` is less than 1.
    """

    def __init__(
        self,
        max_tokens: int,
        warning_threshold: float = 0.70,
        refresh_threshold: float = 0.80,
        critical_threshold: float = 0.95,
    ) -> None:
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}: must be at least 1")
        if not 0 < warning_threshold < refresh_threshold < critical_threshold <= 1:
            raise ValueError(
                f"thresholds are warning {warning_threshold}, refresh {refresh_threshold}, critical "
                f"{critical_threshold}: they must ascend, be above 0 and at most 1"
            )
        self.max_tokens = max_tokens
        self.warning_threshold = warning_threshold
        self.refresh_threshold = refresh_threshold
        self.critical_threshold = critical_threshold
        self._lock = Lock()
        self._listeners: dict[Threshold, list[Listener]] = {threshold: [] for threshold in Threshold}
        self._used = 0
        self._operations = 0
        self.refresh_count = 0

    @property
    def budget_tokens(self) -> int:
        """The default budget of a context: the tokens of the window up to its refresh threshold."""
        return int(self.max_tokens * self.refresh_threshold)

    def add_usage(self, tokens: int) -> None:
        """Add the tokens of one operation.

        Raises:
            ValueError: `tokens` is negative.
        """
        self._change(tokens, UsageEvent.ADDED)

    def set_usage(self, tokens: int) -> None:
        """Replace the sum by the usage that the model reported.

        Raises:
            ValueError: `tokens` is negative.
        """
        self._change(tokens, UsageEvent.REPORTED)

    def reset(self, to: int = 0) -> None:
        """Start over after a refresh with the `to` tokens of the new context, and count the refresh.

        Raises:
            ValueError: `to` is negative.
        """
        self._change(to, UsageEvent.RESET)

    def should_refresh(self) -> bool:
        """Check whether the refresh threshold is reached."""
        return self.usage_percentage() >= self.refresh_threshold

    def would_be_critical(self, more_tokens: int) -> bool:
        """Check whether `more_tokens` in addition to the present usage would reach the critical threshold."""
        return (self._used + more_tokens) / self.max_tokens >= self.critical_threshold

    def used_tokens(self) -> int:
        """Return the tokens in use; they may exceed the window."""
        return self._used

    def available_tokens(self) -> int:
        """Return the tokens that are left, 0 if the window is full or overflows."""
        return max(0, self.max_tokens - self._used)

    def usage_percentage(self) -> float:
        """Return the share of the window in use, 0.0 to 1.0, or more if the window overflows."""
        return self._used / self.max_tokens

    def get_stats(self) -> dict[str, int | float]:
        """Return a consistent snapshot of the figures; `operation_count` counts since the last refresh."""
        with self._lock:
            used, operations, refreshes = self._used, self._operations, self.refresh_count
        return {
            "used_tokens": used,
            "available_tokens": max(0, self.max_tokens - used),
            "max_tokens": self.max_tokens,
            "usage_percentage": used / self.max_tokens,
            "operation_count": operations,
            "refresh_count": refreshes,
        }

    def on(self, threshold: Threshold, listener: Listener) -> None:
        """Call `listener` each time that `threshold` is reached from below.

        The listener runs in the thread that changed the usage, after the change and with no lock held. Its exceptions
        are logged and suppressed. It cannot be removed again; `memory.events.window_filled` supports unsubscribing.
        """
        with self._lock:
            self._listeners[threshold] = [*self._listeners[threshold], listener]

    def _change(self, tokens: int, event: UsageEvent) -> None:
        if tokens < 0:
            raise ValueError(f"tokens is {tokens}: must be at least 0")
        refreshes = 0
        with self._lock:
            before = self._used
            if event is UsageEvent.ADDED:
                tokens += before
                self._operations += 1
            elif event is UsageEvent.RESET:
                self._operations = 0
                refreshes = self.refresh_count = self.refresh_count + 1
            self._used = tokens
        if refreshes:
            _log.info("context window refresh %d: from %d to %d tokens", refreshes, before, tokens)
        self._announce(before, tokens)

    def _announce(self, before: int, after: int) -> None:
        shares = self.warning_threshold, self.refresh_threshold, self.critical_threshold
        for (threshold, level, meaning), share in zip(_LEVELS, shares, strict=True):
            if before / self.max_tokens < share <= after / self.max_tokens:
                figures = f"{after / self.max_tokens:.1%} ({after:,} of {self.max_tokens:,} tokens)"
                _log.log(level, "context window %s: %s, %s", threshold.value, figures, meaning)
                self._tell(Crossing(threshold=threshold, used_tokens=after, max_tokens=self.max_tokens))

    def _tell(self, crossing: Crossing) -> None:
        for listener in self._listeners[crossing.threshold]:
            try:
                listener(crossing)
            except Exception:
                _log.exception("a listener for the %s threshold failed: %r", crossing.threshold.value, listener)


def past_usage(operations: Sequence[tuple[int, datetime, int]], refreshes: Sequence[WindowRefresh]) -> list[UsagePoint]:
    """Reconstruct how full the window was after each operation and refresh, oldest first, beginning at 0 tokens.

    Args:
        operations: Number, time and tokens of each operation, in order.
        refreshes: The refreshes in order; each comes after the operation that it names.
    """
    rows: list[tuple[int, datetime, int, WindowRefresh | None]] = [(*each, None) for each in operations]
    rows += [(each.operation, each.time, each.used_tokens, each) for each in refreshes]
    points: list[UsagePoint] = []
    used = 0
    for _, time, tokens, refresh in sorted(rows, key=lambda row: (row[0], row[3] is not None)):
        before, used = (refresh.before_tokens, tokens) if refresh else (used, used + tokens)
        event = UsageEvent.RESET if refresh else UsageEvent.ADDED
        points.append(
            UsagePoint(sequence=len(points) + 1, time=time, before_tokens=before, used_tokens=used, event=event)
        )
    return points

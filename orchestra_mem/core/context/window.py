"""Track how full the model's context window is, announce when it fills up, and tell from records how that went."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from threading import Lock

from orchestra_mem.types import WindowRefresh

_log = logging.getLogger(__name__)

MAX_POINTS = 10_000  # some 2 MB; more than a plot can show


class Threshold(StrEnum):
    """The fill levels that are announced, from the lowest to the highest."""

    WARNING = "warning"
    REFRESH = "refresh"
    CRITICAL = "critical"


class UsageEvent(StrEnum):
    """What changed the usage: an operation, a report of the model, or a refresh."""

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
    """The usage right after one change, and right before it.

    `sequence` numbers all changes from 1.
    """

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
    """Adds up what fills the window and tells when a threshold is reached. Safe to share between threads.

    A threshold is announced once when it is reached from below, and again only after the usage has been under it.

    Args:
        max_tokens: the model's window.
        warning_threshold: share of the window, over 0 and up to 1, as the two after it; each over the one before.
        refresh_threshold: from here on `should_refresh` is true.
        critical_threshold: from here on the model may lose the start of its context.

    Raises:
        ValueError: the thresholds are not in ascending order within 0 to 1, or a size is too small.
    """

    def __init__(
        self,
        max_tokens: int,
        warning_threshold: float = 0.70,
        refresh_threshold: float = 0.80,
        critical_threshold: float = 0.95,
    ) -> None:
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}: a window holds at least 1 token")
        if not 0 < warning_threshold < refresh_threshold < critical_threshold <= 1:
            raise ValueError(
                f"thresholds are warning {warning_threshold}, refresh {refresh_threshold}, critical "
                f"{critical_threshold}: they must ascend, from over 0 to at most 1"
            )
        self.max_tokens = max_tokens
        self.warning_threshold = warning_threshold
        self.refresh_threshold = refresh_threshold
        self.critical_threshold = critical_threshold
        self._limits = tuple(
            _first_at_or_over(share, max_tokens) for share in (warning_threshold, refresh_threshold, critical_threshold)
        )
        self._lock = Lock()
        self._listeners: dict[Threshold, list[Listener]] = {threshold: [] for threshold in Threshold}
        self._used = 0
        self._operations = 0
        self.refresh_count = 0

    def add_usage(self, tokens: int) -> None:
        """Add what one operation used.

        Raises:
            ValueError: `tokens` is negative.
        """
        self._change(tokens, UsageEvent.ADDED)

    def set_usage(self, tokens: int) -> None:
        """Take over what the model reported, in the place of what was added up.

        Raises:
            ValueError: `tokens` is negative.
        """
        self._change(tokens, UsageEvent.REPORTED)

    def reset(self, to: int = 0) -> None:
        """Start over after a refresh with what the new context holds, `to` tokens; counts the refresh.

        Raises:
            ValueError: `to` is negative.
        """
        self._change(to, UsageEvent.RESET)

    def should_refresh(self) -> bool:
        """Tell whether the refresh threshold is reached."""
        return self._used >= self._limits[1]

    def would_be_critical(self, more_tokens: int) -> bool:
        """Tell whether the critical threshold is reached with so many tokens more."""
        return self._used + more_tokens >= self._limits[2]

    def used_tokens(self) -> int:
        """Tell the tokens in use; may be over the window."""
        return self._used

    def available_tokens(self) -> int:
        """Tell the tokens that are left, 0 when the window is full or over."""
        return max(0, self.max_tokens - self._used)

    def usage_percentage(self) -> float:
        """Tell the share in use, 0.0 to 1.0, and over 1.0 when the window overflows."""
        return self._used / self.max_tokens

    def get_stats(self) -> dict[str, int | float]:
        """Give the figures as of one instant; `operation_count` counts since the last refresh."""
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

        The call comes in the thread that changed the usage, after the change, with no lock held. What a listener
        raises is logged and goes no further. To `memory.events.window_filled` one may unsubscribe as well.
        """
        with self._lock:
            self._listeners[threshold] = [*self._listeners[threshold], listener]

    def _change(self, tokens: int, event: UsageEvent) -> None:
        if tokens < 0:
            raise ValueError(f"tokens is {tokens}: usage cannot be negative")
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
        if after < self._limits[0] or after <= before:
            return
        for (threshold, level, meaning), limit in zip(_LEVELS, self._limits, strict=True):
            if before < limit <= after:
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
    """Tell how full the window was after each operation and refresh, oldest first.

    Args:
        operations: number, time and tokens of each, in their order.
        refreshes: in their order; each comes behind the operation that it names. Before the first, usage begins at 0.
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


def _first_at_or_over(share: float, max_tokens: int) -> int:
    """Find the least count whose share of the window, as `usage_percentage` gives it, is at least `share`."""
    tokens = max(0, int(share * max_tokens) - 1)
    while tokens / max_tokens < share:
        tokens += 1
    return tokens

"""A clock that tests set. Programs that tests start import this module, so it loads nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2025, 1, 15, 10, tzinfo=UTC)


class Clock:
    """A clock that tests set through `now`; if it has a step, each call advances it by that."""

    def __init__(self, now: datetime = START, *, step_s: float = 0) -> None:
        self.now = now
        self.step = timedelta(seconds=step_s)

    def __call__(self) -> datetime:
        """Advance the clock by its step and return the time."""
        self.now += self.step
        return self.now

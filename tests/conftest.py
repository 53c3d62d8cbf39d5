"""What holds for all tests: how properties are tried, an environment that sets nothing, and a clock that tests set."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from orchestra_mem import OrchestratorContextManager

START = datetime(2025, 1, 15, 10, tzinfo=UTC)

# The settings of who runs the tests stay out of them.
for name in [name for name in os.environ if name.startswith("ORCHESTRA_MEM__")]:
    del os.environ[name]

# No deadline: a property is not wrong because the machine is busy. In CI the same examples are drawn each time, so that
# a change fails for what it changes; elsewhere new ones are.
settings.register_profile("home", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("home"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        """The time that was set."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Ten o'clock."""
    return Clock()


def record(memory: OrchestratorContextManager, count: int, first: int = 1, kind: str = "step", say: str = "") -> None:
    """Operations that say their number in a sentence; the one given may name it as `{n}`."""
    sentence = say or "Step number {n} was taken."
    for number in range(first, first + count):
        memory.record_operation(kind, {"text": sentence.format(n=number)})

"""Ranking: each part does what it says, and the parts add up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestra_mem.core.search.question import Period
from orchestra_mem.core.search.ranking import nearness, recency

NOW = datetime(2024, 5, 1, tzinfo=UTC)


def seconds(times: list[datetime | None]) -> NDArray[np.float64]:
    """Times as ranking takes them."""
    return np.array([time.timestamp() if time else np.nan for time in times])


# Traits and priors


def test_recency_is_halved_with_each_half_life() -> None:
    """What has no time is old; what is to come is now."""
    times = [NOW, NOW - timedelta(days=30), NOW - timedelta(days=60), NOW + timedelta(days=9), None]
    assert recency(seconds(times), NOW, 30.0) == pytest.approx([1, 0.5, 0.25, 1, 0])


def test_nearness_falls_faster_before_a_period_than_behind_it() -> None:
    """Outside it is 0.8 at most, half of it two weeks later or three days ahead; of several the nearest counts."""
    may = Period(start=NOW, end=NOW + timedelta(days=31))
    times = [NOW, may.end - timedelta(seconds=1), may.end + timedelta(days=14), NOW - timedelta(days=3), None]
    assert nearness(seconds(times), [may]) == pytest.approx([1, 1, 0.4, 0.4, 0], abs=1e-5)
    far = Period(start=NOW + timedelta(days=400), end=NOW + timedelta(days=401))
    assert nearness(seconds(times), [far, may]) == pytest.approx(nearness(seconds(times), [may]), abs=1e-5)

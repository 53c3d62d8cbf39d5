"""Ranking: each component of the score by itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestra_mem.core.periods import Period
from orchestra_mem.core.search.ranking import Pool, Weights, nearness, recency, shares_of

NOW = datetime(2024, 5, 1, tzinfo=UTC)
NOTHING = Weights(
    own=0, coverage=0, before=0, second_before=0, group=0, agent=0, statement=0, substance=0, tells_time=0,
    period=0,
)  # fmt: skip


def floats(*values: float) -> NDArray[np.float32]:
    """Return a float32 array."""
    return np.array(values, np.float32)


def seconds(times: list[datetime | None]) -> NDArray[np.float64]:
    """Return the times in seconds, NaN for None."""
    return np.array([time.timestamp() if time else np.nan for time in times])


def pool(
    keyword: NDArray[np.float32], *, matches: list[list[float]] | None = None, groups: list[int] | None = None
) -> Pool:
    """Candidates in a row with these keyword scores, in one group unless `groups` is given."""
    count = len(keyword)
    met = np.array(matches, np.float32) if matches else np.zeros((0, count), np.float32)
    return Pool(
        keyword=keyword, dense=np.zeros(count, np.float32), matches=met, rarities=np.ones(len(met), np.float32),
        before=np.arange(-1, count - 1), behind=np.array([*range(1, count), -1][:count], np.int64),
        groups=np.array(groups or [0] * count, np.int64), traits={}, priors={},
    )  # fmt: skip


# Neighbours


def test_neighbours_and_group_lend_their_scores() -> None:
    """The previous candidate, the second previous, and the best of the group add their score, each by its weight."""
    candidates = pool(floats(0, 0, 10, 0, 0), groups=[1, 1, 1, 1, 2])
    weights = replace(NOTHING, keyword=1, dense=0, late=0, own=1, before=0.5, second_before=0.1, group=0.2)
    shares = shares_of(candidates, weights)
    assert list(shares) == ["own", "before", "second_before", "group"]
    assert shares["own"] == pytest.approx([0, 0, 1, 0, 0])
    assert shares["before"] == pytest.approx([0, 0, 0, 0.5, 0])
    assert shares["second_before"] == pytest.approx([0, 0, 0, 0, 0.1])
    assert shares["group"] == pytest.approx([0.2, 0.2, 0.2, 0.2, 0])


def test_words_count_where_they_are_met_or_around_it() -> None:
    """A word in the previous candidate counts 0.7, in the next 0.5, two away 0.3, in the group 0.2; the best counts."""
    candidates = pool(floats(*[0] * 7), matches=[[0, 0, 0, 1, 0, 0, 0]])
    covered = shares_of(candidates, replace(NOTHING, coverage=1))["coverage"]
    assert covered == pytest.approx([0.2, 0.3, 0.5, 1, 0.7, 0.3, 0.2])


# Traits and priors


def test_recency_is_halved_with_each_half_life() -> None:
    """Recency halves per half-life; a missing time scores 0, a future time 1."""
    times = [NOW, NOW - timedelta(days=30), NOW - timedelta(days=60), NOW + timedelta(days=9), None]
    assert recency(seconds(times), NOW, 30.0) == pytest.approx([1, 0.5, 0.25, 1, 0])


def test_nearness_falls_faster_before_a_period_than_behind_it() -> None:
    """Outside a period nearness is at most 0.8, half of that 14 days after or 3 days before it; the nearest counts."""
    may = Period(start=NOW, end=NOW + timedelta(days=31))
    times = [NOW, may.end - timedelta(seconds=1), may.end + timedelta(days=14), NOW - timedelta(days=3), None]
    assert nearness(seconds(times), [may]) == pytest.approx([1, 1, 0.4, 0.4, 0], abs=1e-5)
    far = Period(start=NOW + timedelta(days=400), end=NOW + timedelta(days=401))
    assert nearness(seconds(times), [far, may]) == pytest.approx(nearness(seconds(times), [may]), abs=1e-5)

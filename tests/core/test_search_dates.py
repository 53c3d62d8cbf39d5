"""The times that a query names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.search.question import periods_in
from tests.builders import cases

NOW = datetime(2024, 1, 15, 12, tzinfo=UTC)  # a Monday


@pytest.mark.parametrize(("query", "first", "behind"), cases("a_time_named_is_a_period"))
def test_a_time_named_is_a_period(query: str, first: str, behind: str) -> None:
    """Days, months, years, and what is told from the present; without a year the last that is not to come."""
    (period,) = periods_in(f"What happened {query}?", NOW)
    assert (f"{period.start:%Y-%m-%d}", f"{period.end:%Y-%m-%d}") == (first, behind)


@pytest.mark.parametrize(
    "query", ["31 June", "I may go", "chapter 12", "2023-13-01", "999 years ago, 999 years", "marching in", "2077", ""]
)
def test_what_is_no_time_is_no_period(query: str) -> None:
    """Nor is a day that the calendar does not have."""
    assert periods_in(query, datetime(900, 1, 15, tzinfo=UTC)) == ()


def test_several_times_come_in_order_each_once_and_the_present_is_in_utc() -> None:
    """Late in the evening west of Greenwich it is tomorrow there."""
    found = periods_in("between 3 May 2023 and 5 May 2023, not 3 May 2023", NOW)
    assert [period.start.day for period in found] == [3, 5]
    evening = datetime(2024, 1, 14, 22, tzinfo=timezone(timedelta(hours=-5)))
    assert periods_in("today", evening) == periods_in("today", NOW)


@given(st.text(), st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)))
def test_any_query_at_any_time_is_read(query: str, now: datetime) -> None:
    """A period ends after it starts."""
    words = f"{query} last week, 12 years ago, last month, in May, on 29 February, this year, last year, past year"
    assert all(period.start < period.end for period in periods_in(words, now.replace(tzinfo=UTC)))

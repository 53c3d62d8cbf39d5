"""The times that a query names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.search.question import periods_in

NOW = datetime(2024, 1, 15, 12, tzinfo=UTC)  # a Monday


@pytest.mark.parametrize(
    ("query", "first", "behind"),
    [
        ("on 8th December, 2023", "2023-12-08", "2023-12-09"),
        ("December 1,2023", "2023-12-01", "2023-12-02"),
        ("Jan. 5, 2024", "2024-01-05", "2024-01-06"),
        ("on May 8", "2023-05-08", "2023-05-09"),
        ("on 3 January", "2024-01-03", "2024-01-04"),
        ("2023-05-04", "2023-05-04", "2023-05-05"),
        ("2023-05", "2023-05-01", "2023-06-01"),
        ("in December", "2023-12-01", "2024-01-01"),
        ("in january", "2024-01-01", "2024-02-01"),
        ("mid-August 2023", "2023-08-01", "2023-09-01"),
        ("December 2022", "2022-12-01", "2023-01-01"),
        ("in 2022", "2022-01-01", "2023-01-01"),
        ("today", "2024-01-15", "2024-01-16"),
        ("yesterday", "2024-01-14", "2024-01-15"),
        ("last Friday", "2024-01-12", "2024-01-13"),
        ("last Monday", "2024-01-08", "2024-01-09"),
        ("this week", "2024-01-15", "2024-01-22"),
        ("last week", "2024-01-08", "2024-01-15"),
        ("last month", "2023-12-01", "2024-01-01"),
        ("last year", "2023-01-01", "2024-01-01"),
        ("past week", "2024-01-08", "2024-01-16"),
        ("3 days ago", "2024-01-12", "2024-01-13"),
        ("two weeks ago", "2023-12-29", "2024-01-05"),
    ],
)
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

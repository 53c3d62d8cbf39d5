"""Times as people type and read them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import typer

_AGO = re.compile(r"(\d{1,6})\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_time(given: str | None, now: datetime | None = None) -> datetime | None:
    """Read a time in ISO 8601, of this machine's zone where it names none, or a span back from `now` as in `2h`.

    Raises:
        ValueError: it is neither, in words.
    """
    if given is None:
        return None
    span = _AGO.fullmatch(given.strip())
    try:
        if span and now is not None:
            return now - timedelta(**{_UNITS[span[2]]: int(span[1])})
        return datetime.fromisoformat(given.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        also = " or a span back from now as in 30m, 2h, 7d" if now is not None else ""
        raise ValueError(f"{given!r} is no time; give ISO 8601 as in 2025-01-31T14:00{also}") from None


def time_span(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """Read the options `--since` and `--until`.

    Raises:
        BadParameter: one of them is no time.
    """
    from orchestra_mem.build import utc_now

    now = utc_now()
    return parse_option(since, "--since", now), parse_option(until, "--until", now)


def parse_option(given: str | None, option: str, now: datetime | None = None) -> datetime | None:
    """Read a time that was given as an option; see `parse_time`.

    Raises:
        BadParameter: it is none.
    """
    try:
        return parse_time(given, now)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def short_time(time: datetime) -> str:
    """Write a time for a table, in UTC as the documents have it."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")

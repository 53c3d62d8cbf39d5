"""Input handling that several commands share: confirmations, stdin, agent names, times, common options."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, TextIO

from typer import BadParameter

from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.faces.command import Invocation, option

_SPAN = re.compile(r"(\d{1,6})\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def agreed(run: Invocation, question: str) -> bool:
    """Ask a yes-or-no question on stderr and read the answer from stdin; only `y` and `yes` count as yes."""
    run.tell(f"{question} (yes or no)")
    return sys.stdin is not None and sys.stdin.readline().strip().lower() in ("y", "yes")


def agent_name(given: str | None) -> str:
    """Return the agent to act as, by default the owner; reject an empty name, as from an unset shell variable."""
    if given is not None and not given.strip():
        raise BadParameter("the name is empty: name an agent, or leave the option out")
    return given.strip() if given is not None else OWNER


def from_stdin() -> bytes:
    """Read stdin to its end.

    Raises:
        BadParameter: stdin is closed.
    """
    # If stdin was closed, for example by `<&-`, Python sets it to None. Typeshed does not declare that.
    stdin: TextIO | None = sys.stdin
    if stdin is None:
        raise BadParameter("stdin is closed: pipe the input in, or give it as an argument")
    return stdin.buffer.read()


def parse_span(given: str) -> timedelta | None:
    """Parse a duration such as `30m`, `2h` or `7d`; None if the text is not a duration."""
    span = _SPAN.fullmatch(given)
    return timedelta(**{_UNITS[span[2]]: int(span[1])}) if span else None


def parse_time(given: str, now: datetime | None = None) -> datetime:
    """Parse an ISO 8601 time, by default in the local time zone, or a duration back from now such as `2h`.

    Raises:
        BadParameter: The text is neither, or the time is out of range.
    """
    try:
        if (span := parse_span(given.strip())) is not None:
            return (now or datetime.now(UTC)) - span
        return datetime.fromisoformat(given.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadParameter(
            f"{given!r} is not a time; use ISO 8601 such as 2025-01-31T14:00, or a span before now such as 30m or 7d"
        ) from None


SinceOption = Annotated[
    datetime | None,
    option("--since TIME", "Only from this time on: ISO 8601, or a span before now such as 2h.", parser=parse_time),
]
UntilOption = Annotated[
    datetime | None, option("--until TIME", "Only before this time, given in the same way.", parser=parse_time)
]
SessionOption = Annotated[str | None, option("--session ID", "Only this session: its id, or the beginning of its id.")]
LimitOption = Annotated[int, option("--limit N", "The newest N; 0 for all.", min=0)]


def up_to(found: Sequence[object], limit: int, which: str = "newest") -> list[str]:
    """Return a list of notes: if the limit was reached, a note on how to list all results; else empty."""
    return [f"showing the {which} {len(found):,}; --limit 0 shows all"] if limit and len(found) == limit else []

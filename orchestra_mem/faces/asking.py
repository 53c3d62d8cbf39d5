"""Ask people, and read what they type: a yes before something goes for good, who acts, times, common options."""

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
    """Ask on stderr, and read one line from stdin; only `y` and `yes` agree."""
    run.tell(f"{question} (yes or no)")
    return sys.stdin is not None and sys.stdin.readline().strip().lower() in ("y", "yes")


def agent_name(given: str | None) -> str:
    """Read who acts: the owner where nothing was given, never where that is empty, as by a variable that is not set."""
    if given is not None and not given.strip():
        raise BadParameter("it is empty: name an agent, or leave it out to act as the memory's owner")
    return given.strip() if given is not None else OWNER


def from_stdin() -> bytes:
    """Read all that is piped in.

    Raises:
        BadParameter: stdin is closed.
    """
    # Typeshed does not know that Python sets it to None where it was closed, as by `<&-`.
    stdin: TextIO | None = sys.stdin
    if stdin is None:
        raise BadParameter("stdin is closed: pipe it in, or give it as the argument")
    return stdin.buffer.read()


def parse_span(given: str) -> timedelta | None:
    """Read a span as in `30m`, `2h`, `7d`; None where it is none."""
    span = _SPAN.fullmatch(given)
    return timedelta(**{_UNITS[span[2]]: int(span[1])}) if span else None


def parse_time(given: str, now: datetime | None = None) -> datetime:
    """Read a time in ISO 8601, of this machine's zone where it names none, or a span back from now as in `2h`.

    Raises:
        BadParameter: it is neither.
    """
    try:
        if (span := parse_span(given.strip())) is not None:
            return (now or datetime.now(UTC)) - span
        return datetime.fromisoformat(given.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadParameter(
            f"{given!r} is not a time; give ISO 8601 as in 2025-01-31T14:00, or a span back from now as in 30m, 2h, 7d"
        ) from None


SinceOption = Annotated[
    datetime | None, option("--since TIME", "Only from then on: ISO 8601, or a span back as in 2h.", parser=parse_time)
]
UntilOption = Annotated[datetime | None, option("--until TIME", "Only before then.", parser=parse_time)]
SessionOption = Annotated[str | None, option("--session ID", "Only of this session: its id, or how that begins.")]
LimitOption = Annotated[int, option("--limit N", "The newest N; 0 for all.", min=0)]


def up_to(found: Sequence[object], limit: int, which: str = "newest") -> list[str]:
    """Say that there may be more than the limit."""
    return [f"the {which} {len(found):,}; --limit 0 lists all"] if limit and len(found) == limit else []

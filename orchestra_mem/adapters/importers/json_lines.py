"""Lines of JSON from any file: bounded in length, each an object or a fault in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import IO

from orchestra_mem.errors import InvalidOperationError
from orchestra_mem.serialize import unrepeated
from orchestra_mem.types import Json

MAX_LINE_BYTES = 32 << 20  # a transcript holds images, and a screenshot in base64 seldom reaches a tenth of it
_BLOCK_BYTES = 1 << 16


class BadLineError(Exception):
    """Carries what is wrong with a line up to where its place is known."""


def read_lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes | None, int]]:
    """Give each line that is not blank: its number, its text, and where in the stream it ends.

    The text of a line over `MAX_LINE_BYTES` is None; it is read past, and never held in memory.
    """
    position = number = 0
    while raw := stream.readline(MAX_LINE_BYTES):
        position += len(raw)
        number += 1
        too_long = len(raw) == MAX_LINE_BYTES
        while too_long and not raw.endswith(b"\n") and (raw := stream.readline(_BLOCK_BYTES)):
            position += len(raw)
        line = raw.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else raw.strip()
        if too_long or line:
            yield number, None if too_long else line, position


def parse_object(line: bytes | None) -> dict[str, Json]:
    """Read a line of `read_lines` as a JSON object.

    Raises:
        BadLineError: it is none, or gives a key twice.
    """
    if line is None:
        raise BadLineError(f"is longer than {MAX_LINE_BYTES >> 20} MB")
    try:
        value: Json = json.loads(line, object_pairs_hook=unrepeated)
    except InvalidOperationError as error:
        raise BadLineError(error.problem) from None
    except UnicodeDecodeError:
        raise BadLineError("is not UTF-8; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadLineError(f"is no JSON: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError):
        raise BadLineError("has a number of too many digits, or is nested too deeply") from None
    if not isinstance(value, dict):
        raise BadLineError('is no JSON object; each line must be one, as in {"type": "note", "data": "rain"}')
    return value


def parse_time(value: Json) -> datetime | None:
    """Read a time in ISO 8601, of UTC where it names no zone, or in seconds since 1970; None of None.

    Raises:
        BadLineError: it is neither.
    """
    if value is None:
        return None
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            return time if time.tzinfo else time.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise BadLineError(f"timestamp: {json.dumps(value)[:80]} is no time; give ISO 8601 or seconds since 1970")


def time_or(value: Json, otherwise: datetime) -> datetime:
    """Read a time where a value is one, else take another."""
    try:
        return parse_time(value) or otherwise
    except BadLineError:
        return otherwise

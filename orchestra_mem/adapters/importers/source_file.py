"""The interface of the importers: a reader takes a `SourceFile`, yields operations, and reports faults to it.

JSON Lines are parsed here for all readers: lines are limited in length, and each is an object or a fault.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from orchestra_mem.core.imported_history import HistoryFault, HistoryOperation, OnFault
from orchestra_mem.errors import InvalidOperationError
from orchestra_mem.serialize import reject_duplicate_keys
from orchestra_mem.types import Json

_MOST_FAULTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file to be read. `start`: Size in bytes of the files before it. `agent`: Agent given by the caller, or None.

    `left_out`: Number of skipped parts by kind, for all files of the import.
    """

    path: Path
    start: int
    agent: str | None
    on_fault: OnFault
    left_out: Counter[str]

    def fault(self, place: int | str, problem: str) -> None:
        """Report a fault at a line number or a named place. After 1,000 faults, only count them."""
        self.left_out["faulty"] += 1
        if self.left_out["faulty"] <= _MOST_FAULTS:
            self.on_fault(HistoryFault(place=f"{self.path}:{place}", problem=problem))

    def text_of(self, content: Json) -> str:
        """Return the text of a message's content, a string or a list of blocks; count blocks without text."""
        texts = []
        for block in content if isinstance(content, list) else [content]:
            text = block.get("text") if isinstance(block, dict) else block
            if isinstance(text, str):
                texts.append(text)
            elif block is not None:
                self.left_out[kind_of(block)] += 1
        return "\n\n".join(texts)

    @property
    def modified(self) -> datetime:
        """Time of the file's last change, used for content without a time."""
        return datetime.fromtimestamp(self.path.stat().st_mtime, UTC)


Reader = Callable[[SourceFile], Iterator[HistoryOperation]]
"""Reads a file of one kind. It reports faults and goes on; an `OSError` ends only this file."""


def text_or(value: Json, otherwise: str) -> str:
    """Return `value` if it is a string and not empty, else `otherwise`."""
    return value if isinstance(value, str) and value else otherwise


def kind_of(value: Json) -> str:
    """Return the `type` or `content_type` of a line or block, "of no type" if it has neither."""
    found = value if isinstance(value, dict) else {}
    return text_or(found.get("type"), text_or(found.get("content_type"), "of no type"))


def digest(content: str | bytes) -> str:
    """Return the first 24 hexadecimal digits of the content's SHA-256."""
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return hashlib.sha256(raw).hexdigest()[:24]


MAX_LINE_BYTES = 32 << 20  # transcripts contain images; a screenshot in base64 seldom reaches a tenth of it
_BLOCK_BYTES = 1 << 16


class BadLineError(Exception):
    """A fault in a line, raised where the line's place is unknown; the caller adds the place."""


def read_lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes | None, int]]:
    """Yield each line that is not blank: its number, its text, and the offset of its end.

    The text of a line of `MAX_LINE_BYTES` or more is None; the rest of the line is skipped in small pieces.
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
    """Parse a line from `read_lines` as a JSON object.

    Raises:
        BadLineError: The line is not a JSON object, or contains a key twice.
    """
    if line is None:
        raise BadLineError(f"is longer than {MAX_LINE_BYTES >> 20} MB")
    try:
        value: Json = json.loads(line, object_pairs_hook=reject_duplicate_keys)
    except InvalidOperationError as error:
        raise BadLineError(error.problem) from None
    except UnicodeDecodeError:
        raise BadLineError("is not UTF-8; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadLineError(f"is not JSON: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError):
        raise BadLineError("has a number with too many digits, or is nested too deeply") from None
    if not isinstance(value, dict):
        raise BadLineError('is not a JSON object; each line must be one, such as {"type": "note", "data": "rain"}')
    return value


def parse_time(value: Json) -> datetime | None:
    """Parse a time in ISO 8601 (in UTC if it has no zone) or in seconds since 1970; None for None.

    Raises:
        BadLineError: The value is no such time.
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
    raise BadLineError(f"timestamp: {json.dumps(value)[:80]} is not a time; use ISO 8601 or seconds since 1970")


def time_or(value: Json, otherwise: datetime) -> datetime:
    """Parse a time; return `otherwise` if the value is None or no time."""
    try:
        return parse_time(value) or otherwise
    except BadLineError:
        return otherwise

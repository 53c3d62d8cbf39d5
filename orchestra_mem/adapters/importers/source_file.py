"""The port of the importers: a reader takes a `SourceFile` and gives its operations; the rest it tells the file.

Lines of JSON are read here for all of them: bounded in length, each an object or a fault in words.
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

from orchestra_mem.core.histories import HistoryFault, HistoryOperation, OnFault
from orchestra_mem.errors import InvalidOperationError
from orchestra_mem.serialize import unrepeated
from orchestra_mem.types import Json

_MOST_FAULTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file to be read: `start` is how many bytes of other files were read before, `agent` who did what it tells.

    `left_out` counts by kind what is there and is no operation.
    """

    path: Path
    start: int
    agent: str | None
    on_fault: OnFault
    left_out: Counter[str]

    def fault(self, place: int | str, problem: str) -> None:
        """Tell what cannot be read, by its line or what it is called; of more than 1,000 faults only how many."""
        self.left_out["faulty"] += 1
        if self.left_out["faulty"] <= _MOST_FAULTS:
            self.on_fault(HistoryFault(place=f"{self.path}:{place}", problem=problem))

    def text_of(self, content: Json) -> str:
        """Join the texts of a content, which is one or a list of blocks; blocks of another kind are left out."""
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
        """When the file was changed last: the time of what names none."""
        return datetime.fromtimestamp(self.path.stat().st_mtime, UTC)


Reader = Callable[[SourceFile], Iterator[HistoryOperation]]
"""Reads a file of one kind. What it cannot read it tells, and goes on; an `OSError` ends that file alone."""


def text_or(value: Json, otherwise: str) -> str:
    """Give a value that is a text and not empty, else something else."""
    return value if isinstance(value, str) and value else otherwise


def kind_of(value: Json) -> str:
    """Name the kind of a line or block, as it calls it."""
    found = value if isinstance(value, dict) else {}
    return text_or(found.get("type"), text_or(found.get("content_type"), "of no type"))


def digest(content: str | bytes) -> str:
    """Name a content in few characters."""
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return hashlib.sha256(raw).hexdigest()[:24]


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

"""Read a file of JSON lines as operations, one object a line.

An object that has `data` (or `operation_data`) beside the names that `record_operation` knows is an operation as it was
written; of any other object those names are taken out, and what is left is the data. So nothing in a line is lost.

A line is known again by its file, number and text. A file that was moved is recorded again: operations that are there
twice do less harm than one that was taken for another and is lost.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TypeVar

from orchestra_mem.adapters.importers.source_file import BadLineError, parse_object, parse_time, read_lines
from orchestra_mem.core.histories import History, HistoryFault, HistoryOperation, OnFault
from orchestra_mem.errors import HistoryError
from orchestra_mem.types import Json

_T = TypeVar("_T")

# Each thing that an operation has, with the keys that may hold it; the first that is there counts.
_KEYS = {
    "type": ("type", "operation_type"),
    "tokens": ("tokens", "tokens_used"),
    "agent": ("agent",),
    "critical": ("critical",),
    "timestamp": ("timestamp",),
    "idempotency_key": ("idempotency_key",),
}
_DATA = ("data", "operation_data")
# What `ops --json` prints besides: numbers of the memory that it came from.
_OTHER_MEMORY = {"id", "session"}


def open_jsonl_history(
    path: str | Path, *, operation_type: str = "imported", on_fault: OnFault | None = None
) -> History:
    """Open a file of JSON lines. Empty lines are passed over; `total` is its size in bytes.

    Read again, also after it has grown, the file gives the same keys; two files never do. A pipe can be read once only,
    so each reading of one gives keys of its own.

    Args:
        path: the file, in UTF-8.
        operation_type: the type of the objects that do not name one.
        on_fault: is told each line that cannot be recorded, and the reading goes on; without it the reading ends there.

    Raises:
        HistoryError: the file cannot be opened. While reading: a line is at fault, named by its number.
    """
    file = Path(path)
    total = 0
    if not file.exists() or file.is_file():
        # A pipe can be opened once only, so that is left to the reading.
        with _opened(file) as stream:
            total = os.fstat(stream.fileno()).st_size
    elif file.is_dir():
        raise HistoryError(f"{file} is a folder; name a file of JSON lines")
    operations = _read(file, operation_type, on_fault)
    return History(source=str(file), operations=operations, total=total, unit="bytes")


def _opened(file: Path) -> IO[bytes]:
    try:
        return file.open("rb")
    except OSError as error:
        raise HistoryError(f"{file} cannot be read: {error.strerror or error}") from error


def _read(file: Path, kind: str, on_fault: OnFault | None) -> Iterator[HistoryOperation]:
    name = str(file)
    with _opened(file) as stream:
        source = _source(file)
        for number, line, position in read_lines(stream):
            try:
                # No path has a NUL in it, so that no two of these come out as the same bytes.
                key = hashlib.sha256(b"%b\0%d:%b" % (source, number, line or b"")).hexdigest()
                yield _operation(line, f"{name}:{number}", f"jsonl:{key}", position, kind)
            except BadLineError as bad:
                fault = HistoryFault(place=f"{name}:{number}", problem=str(bad))
                if on_fault is None:
                    raise HistoryError(str(fault)) from bad
                on_fault(fault)


def _source(file: Path) -> bytes:
    """What tells the lines of a file from those of all others, however the file was named."""
    if not file.is_file():
        return uuid.uuid4().bytes
    return os.fsencode(file.resolve())  # behind `/dev/stdin`, too, may be a file


def _operation(line: bytes | None, place: str, own_key: str, position: int, kind: str) -> HistoryOperation:
    value = parse_object(line)
    given = {name: next((value.pop(key) for key in keys if key in value), None) for name, keys in _KEYS.items()}
    named, key, agent = (_typed(given[name], str, name, "no text") for name in ("type", "idempotency_key", "agent"))
    return HistoryOperation(
        type=kind if named is None else named,
        data=_data(value),
        timestamp=parse_time(given["timestamp"]),
        idempotency_key=key or own_key,
        place=place,
        position=position,
        tokens=_typed(given["tokens"], int, "tokens", "no whole number"),
        agent=agent,
        critical=_typed(given["critical"], bool, "critical", "neither true nor false"),
    )


def _data(value: dict[str, Json]) -> Json:
    alone = (value[key] for key in _DATA if key in value and not set(value) - _OTHER_MEMORY - {key})
    return next(alone, value)


def _typed(value: Json, kind: type[_T], key: str, problem: str) -> _T | None:
    """Give a value of just this type, or none."""
    if value is None or type(value) is kind:
        return value
    raise BadLineError(f"{key}: {json.dumps(value)[:80]} is {problem}")

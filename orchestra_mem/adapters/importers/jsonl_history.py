"""Read a JSON Lines file as operations, one object per line.

Keys that are parameters of `record_operation` are taken from the object. If `data` (or `operation_data`) is then the
only key apart from `id` and `session`, its value becomes the operation's data; otherwise the remaining object does.

A line is identified by its file, number and text, so a moved file is recorded again. Duplicate operations do less harm
than an operation that is lost because it was mistaken for another.
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
from orchestra_mem.core.imported_history import History, HistoryFault, HistoryOperation, OnFault
from orchestra_mem.errors import HistoryError
from orchestra_mem.types import Json

_T = TypeVar("_T")

# The fields of an operation, each with the keys that may hold it; the first key present is used.
_KEYS = {
    "type": ("type", "operation_type"),
    "tokens": ("tokens", "tokens_used"),
    "agent": ("agent",),
    "critical": ("critical",),
    "timestamp": ("timestamp",),
    "idempotency_key": ("idempotency_key",),
}
_DATA = ("data", "operation_data")
# `ops --json` prints these, too; an id and a session are valid only in the memory that printed them.
_OTHER_MEMORY = {"id", "session"}


def open_jsonl_history(path: str | Path, *, operation_type: str = "imported", on_fault: OnFault) -> History:
    """Open a JSON Lines file. Blank lines are skipped; `total` is the file's size in bytes.

    Reading a file again, even after it has grown, yields the same idempotency keys; two files never share one. A pipe
    can be read only once, so each reading of a pipe yields new keys.

    Args:
        path: The file, in UTF-8.
        operation_type: Type of the operations whose object does not name one.
        on_fault: Called for each line that cannot be recorded; reading then goes on.

    Raises:
        HistoryError: The file cannot be opened.
    """
    file = Path(path)
    total = 0
    if not os.path.exists(file) or file.is_file():  # unlike `Path.exists`, raises no error
        # A pipe can be opened only once, so only `_read` opens it.
        with _opened(file) as stream:
            total = os.fstat(stream.fileno()).st_size
    elif file.is_dir():
        raise HistoryError(f"{file} is a folder; give a JSON lines file")
    operations = _read(file, operation_type, on_fault)
    return History(source=str(file), operations=operations, total=total, unit="bytes")


def _opened(file: Path) -> IO[bytes]:
    try:
        return file.open("rb")
    except OSError as error:
        raise HistoryError(f"{file} cannot be read: {error.strerror or error}") from error


def _read(file: Path, kind: str, on_fault: OnFault) -> Iterator[HistoryOperation]:
    name = str(file)
    with _opened(file) as stream:
        # What identifies the file, however its path is written; `/dev/stdin` may be a regular file, too.
        source = os.fsencode(file.resolve()) if file.is_file() else uuid.uuid4().bytes
        for number, line, position in read_lines(stream):
            try:
                # No path contains a NUL, so different lines never yield the same bytes.
                key = hashlib.sha256(b"%b\0%d:%b" % (source, number, line or b"")).hexdigest()
                yield _operation(line, f"{name}:{number}", f"jsonl:{key}", position, kind)
            except BadLineError as bad:
                on_fault(HistoryFault(place=f"{name}:{number}", problem=str(bad)))


def _operation(line: bytes | None, place: str, own_key: str, position: int, kind: str) -> HistoryOperation:
    value = parse_object(line)
    given = {name: next((value.pop(key) for key in keys if key in value), None) for name, keys in _KEYS.items()}
    named, key, agent = (_typed(given[name], str, name, "not text") for name in ("type", "idempotency_key", "agent"))
    alone = (value[key] for key in _DATA if key in value and not set(value) - _OTHER_MEMORY - {key})
    return HistoryOperation(
        type=kind if named is None else named, data=next(alone, value), timestamp=parse_time(given["timestamp"]),
        idempotency_key=key or own_key, place=place, position=position,
        tokens=_typed(given["tokens"], int, "tokens", "not a whole number"), agent=agent,
        critical=_typed(given["critical"], bool, "critical", "neither true nor false"),
    )  # fmt: skip


def _typed(value: Json, kind: type[_T], key: str, problem: str) -> _T | None:
    """Return the value if it is None or exactly of type `kind`; otherwise raise a `BadLineError`."""
    if value is None or type(value) is kind:
        return value
    raise BadLineError(f"{key}: {json.dumps(value)[:80]} is {problem}")

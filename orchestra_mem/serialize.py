"""Conversion of records to JSON and back, for the event log and all interfaces (command line, HTTP, MCP).

This module decides which values can be recorded: any JSON value of any size round-trips unchanged, everything else is
rejected with the path to the value. A table lists the fields that the interfaces print for each type of record.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any

from orchestra_mem.errors import InvalidOperationError, InvalidTimeError
from orchestra_mem.search_types import Reasons
from orchestra_mem.types import Json

MAX_DEPTH = 500
# By default, CPython converts only integers of up to 4,300 digits to text and back. 14,000 bits stay below that.
_MAX_INT_BITS = 14_000
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_UNSHOWABLE = re.compile("[\x7f-\x9f\ud800-\udfff\u2028\u2029]")  # JSON itself escapes those below U+0020
NO_ZONE = "has no time zone; give one, as in `time.astimezone()` for local time or `datetime.now(UTC)`"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TOO_DEEP_HERE = "nested too deeply to be recorded from this depth of the call stack; record it from an outer function"
# Types whose values are copied as they are. A tuple, not a set: the type of a value need not be hashable.
_PLAIN = (str, bool, type(None))


class _Fault(Exception):
    """A value that is not JSON. `steps` is the path to the value, innermost step first."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.steps: list[str] = []


def checked_json(value: object) -> Json:
    """Copy a JSON value deeply, so that later changes by the caller do not affect the copy.

    Tuples become lists; instances of subclasses of `str`, `int`, `float` and `dict` become plain values.

    Raises:
        InvalidOperationError: The value is not JSON; the error's `path` begins with `data`.
    """
    try:
        return _copied(value, MAX_DEPTH)
    except _Fault as fault:
        raise InvalidOperationError("data" + "".join(reversed(fault.steps)), str(fault)) from None
    except RecursionError:
        raise InvalidOperationError("data", _TOO_DEEP_HERE) from None


def _copied(value: object, room: int) -> Json:
    """Copy a value nested at most `room` levels deep. Uses one stack frame per level: Python allows about 1,000."""
    if not isinstance(value, dict | list | tuple):
        return _copied_scalar(value)
    if not room:
        raise _Fault(f"nested deeper than {MAX_DEPTH} levels, or contains itself")
    key: object = None
    try:
        if not isinstance(value, dict):
            items: list[Json] = []
            for key, item in enumerate(value):  # noqa: B007  used for the path of a fault
                items.append(item if type(item) in _PLAIN else _copied(item, room - 1))
            return items
        copy: dict[str, Json] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise _Fault(f"a key of type {type(key).__name__} is not a JSON key; make it a string")
            copy[str.__str__(key)] = item if type(item) in _PLAIN else _copied(item, room - 1)
    except _Fault as fault:
        fault.steps.append(_step(key))
        raise
    return copy


def _copied_scalar(value: object) -> Json:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        if value.bit_length() > _MAX_INT_BITS:
            raise _Fault("an integer of over 4,300 digits; record it as a string")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _Fault(f"{value} is not a JSON number; record it as a string or as null")
        return float(value)
    raise _Fault(f"a value of type {type(value).__name__} is not JSON; give a string, number, list or dict")


def _step(key: object) -> str:
    if not isinstance(key, str):
        return f"[{key!r}]"
    return f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"


def dump_json(value: Json) -> str:
    """Serialize a checked value as ASCII, so that NULs and lone surrogates survive any store."""
    try:
        return _ENCODER.encode(value)
    except RecursionError:
        raise InvalidOperationError("data", _TOO_DEEP_HERE) from None


def readable_json(value: Json, *, indent: int | None = None) -> str:
    """Serialize a value for people, escaping only characters that no terminal can show. `indent`: Spaces per level."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=(",", ": " if indent else ":"))
    return text if text.isprintable() else _UNSHOWABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def reject_duplicate_keys(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    """Build a dictionary from key-value pairs; an `object_pairs_hook` for `json` that rejects duplicate keys.

    Raises:
        InvalidOperationError: A key occurs twice, so one of its values would be lost.
    """
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InvalidOperationError("data", f"the key {json.dumps(twice)} occurs twice in one object; give it once")
    return value


def to_microseconds(time: datetime) -> int:
    """Convert an aware time to microseconds since 1970, exactly.

    Raises:
        InvalidTimeError: The time has no time zone.
    """
    try:
        return (time - _EPOCH) // _MICROSECOND
    except TypeError:
        raise InvalidTimeError(f"{time} {NO_ZONE}") from None


def from_microseconds(value: int) -> datetime:
    """Convert microseconds since 1970 to an aware time in UTC."""
    return _EPOCH + timedelta(microseconds=value)


def local_time(time: datetime) -> datetime:
    """Return a time in this machine's time zone, or as given if the calendar ends before it there."""
    try:
        return time.astimezone()
    except OverflowError:
        return time


def local_day(time: datetime) -> str:
    """Return the date of a time in this machine's time zone, as in `2026-03-06`."""
    return f"{local_time(time):%Y-%m-%d}"


# The fields to print for each type of record, in this order; types that are not listed print all fields. `name=path`
# prints an attribute under another name, `name?` prints an empty value or 0 as null, and `name:4` rounds to 4 digits.
_SHOWN = {
    "BlamedLine": "line text writer=origin.writer operations=origin.operations time=origin.time",
    "Compressed": "verdict fault? method tokens source_tokens ratio:4 put_back dropped seconds=talk.seconds:3 text",
    "ConfigFault": "source line key problem",
    "DisclosedEntry": "source kind title time agent also indexed tokens full_tokens likelihood:4 perhaps text "
    "explanation",
    "DocumentChange": "document=path.stem path event added removed lines",
    "DocumentFault": "path line? problem meanwhile",
    "Excerpt": "document heading=passage.heading line=passage.line text=passage.text before behind",
    "Expansion": "reference operations summary fact around place item events memory_item",
    "Finding": "part health words advice",
    "Hit": "source=chunk.source tier=chunk.tier kind=chunk.kind heading=chunk.heading title=chunk.title? "
    "text=chunk.text time=chunk.time session=chunk.session agent=chunk.agent item=chunk.item "
    "operation=chunk.operation? score:6 likelihood:4 perhaps superseded_by? removed settled reasons",
    "MemoryItem": "id number timestamp ci_source type summary content tokens relevance_tags=tags priority expires "
    "references author status superseded_by? said",
    "MustKeep": "id kind text operation? author timestamp identifiers status superseded_by?",
    "Operation": "id session type data timestamp tokens agent critical idempotency_key",
    "Passage": "line text",
    "Recommendation": "source text why agent time outcome? full_tokens likelihood:4 perhaps fate? project? projects?",
    "Relevance": "score:6 recency tags affinity priority",
    "Session": "id started status ended archive spilled_through",
    "Summary": "id session level operations=first_operation,last_operation operation_count children parent? document? "
    "method tokens source_tokens ratio:4 must_keeps put_back dropped verdict? seconds:3 created text",
    "WorkEvent": "id item time author field before after reason? operation?",
    "WorkItem": "id kind title description status priority rank parent depends_on assignee acceptance created changed "
    "started finished",
    "WorkProgress": "done total share:4",
}
_SHOWN["ProjectHit"] = f"project project_id path {_SHOWN['Hit']} line? projects"
_SHOWN["ProjectFact"] = f"project project_id path {_SHOWN['MustKeep']}"


def to_object(value: Any) -> dict[str, Json]:
    """Convert a record of this package to the JSON object that all interfaces print."""
    shown: dict[str, Json] = {}
    for name, read, or_null, digits in _plan(type(value)):  # type: ignore[arg-type]  # types can be hashed
        found = _field(read(value))
        shown[name] = (
            round(found, digits) if isinstance(found, float) and digits else found or None if or_null else found
        )
    return shown


@cache
def _plan(kind: type) -> Sequence[tuple[str, Callable[[object], object], bool, int]]:
    """Compile `shown_fields` of a record type, with a getter in place of the attribute paths."""
    return [(name, attrgetter(*paths), or_null, digits) for name, paths, or_null, digits in shown_fields(kind)]


def shown_fields(kind: type) -> list[tuple[str, tuple[str, ...], bool, int]]:
    """List the printed fields of a record type: (name, attribute paths, whether empty becomes null, digits)."""
    assert is_dataclass(kind)
    found = []
    for spec in _SHOWN.get(kind.__name__, " ".join(field.name for field in fields(kind))).split():
        told, _, digits = spec.partition(":")
        name, _, path = told.rstrip("?").partition("=")
        found.append((name, tuple((path or name).split(",")), told.endswith("?"), int(digits or 0)))
    return found


def _reasons(reasons: Reasons) -> Json:
    return {
        "keyword": {"rank": reasons.keyword_rank, "score": round(reasons.keyword_score, 6)},
        "dense": {"rank": reasons.dense_rank, "score": round(reasons.dense_score, 6)},
        "identifiers": list(reasons.identifiers),
        "shares": {name: round(share, 6) for name, share in reasons.shares},
        "priors": {name: round(prior, 6) for name, prior in reasons.priors},
    }


def to_json(value: object) -> Json:
    """Convert a value to JSON: records to objects, times to ISO 8601, enum members to their values."""
    if isinstance(value, dict):
        return {name: to_json(each) for name, each in value.items()}
    return [to_json(each) for each in value] if isinstance(value, list) else _field(value)


def _field(value: object) -> Json:
    """Convert a record's field to JSON. Lists and dictionaries in records are recorded data, which is JSON already."""
    if isinstance(value, Enum):
        return _field(value.value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [_field(each) for each in value]
    if hasattr(value, "__fspath__"):
        return str(value)
    if isinstance(value, Reasons):
        return _reasons(value)
    return to_object(value) if is_dataclass(value) else value  # type: ignore[return-value]

"""Records to JSON and back: one place for the event log and for every face.

What may be recorded is decided here: any JSON value, at any size, comes back equal; anything else is refused with the
path to the value.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from orchestra_mem.errors import InvalidOperationError
from orchestra_mem.search_types import Hit
from orchestra_mem.types import Json, MustKeep, Operation, Session, Summary, Version
from orchestra_mem.work_types import WorkEvent, WorkItem

MAX_DEPTH = 500
# CPython reads and prints integers of up to 4,300 digits by default; 14,000 bits stay below that.
_MAX_INT_BITS = 14_000
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# What is copied by taking it as it is, whatever its value. No set: a value's type need not be hashable.
_PLAIN = (str, bool, type(None))
_Container = list[Json] | dict[str, Json]


@dataclass(slots=True)
class _Place:
    """Where a value stands: the `key` in its parent, of the outermost its name. Put together only for a fault."""

    parent: _Place | None
    key: object
    depth: int

    def path(self) -> str:
        steps: list[str] = []
        place = self
        while place.parent is not None:
            steps.append(_step(place.key))
            place = place.parent
        return "".join([str(place.key), *reversed(steps)])


def checked_json(value: object, name: str = "data") -> Json:
    """Copy a JSON value, so that later changes by the caller do not reach the copy.

    Tuples become lists and subclasses of `str`, `int`, `float`, `dict` become the plain type, as JSON has it.

    Raises:
        InvalidOperationError: the value is no JSON; its `path` begins with `name`.
    """
    waiting: list[tuple[object, _Container, _Place]] = []
    result = _copied(value, None, name, waiting)
    while waiting:
        original, copy, place = waiting.pop()
        if isinstance(original, dict) and isinstance(copy, dict):
            for key, item in original.items():
                field = key if type(key) is str else _key(key, place)
                copy[field] = item if type(item) in _PLAIN else _copied(item, place, key, waiting)
        elif isinstance(original, list | tuple) and isinstance(copy, list):
            for position, item in enumerate(original):
                copy.append(item if type(item) in _PLAIN else _copied(item, place, position, waiting))
    return result


def _copied(
    value: object, parent: _Place | None, key: object, waiting: list[tuple[object, _Container, _Place]]
) -> Json:
    """A simple value, or an empty container that `waiting` will fill. `key` leads to it from its parent."""
    if value is None or isinstance(value, bool):  # the outermost
        return value
    if isinstance(value, str):
        return str.__str__(value)
    place = _Place(parent, key, parent.depth + 1 if parent else 0)
    if isinstance(value, int):
        if value.bit_length() > _MAX_INT_BITS:
            raise InvalidOperationError(place.path(), "an integer of over 4,300 digits; record it as a string")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidOperationError(place.path(), f"{value} is no JSON number; record it as a string or as null")
        return float(value)
    if not isinstance(value, dict | list | tuple):
        raise InvalidOperationError(
            place.path(), f"a value of type {type(value).__name__} is no JSON; give a string, number, list or dict"
        )
    if place.depth >= MAX_DEPTH:
        raise InvalidOperationError(place.path(), f"nested deeper than {MAX_DEPTH} levels, or contains itself")
    copy: _Container = {} if isinstance(value, dict) else []
    waiting.append((value, copy, place))
    return copy


def _key(key: object, place: _Place) -> str:
    if not isinstance(key, str):
        raise InvalidOperationError(
            f"{place.path()}[{key!r}]", f"a key of type {type(key).__name__} is no JSON key; make it a string"
        )
    return str.__str__(key)


def _step(key: object) -> str:
    if not isinstance(key, str):
        return f"[{key}]"
    return f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"


def dump_json(value: Json) -> str:
    """Write a checked value as ASCII, so that NULs and lone surrogates survive any store."""
    try:
        return _ENCODER.encode(value)
    except RecursionError:
        raise InvalidOperationError(
            "data", "nested too deep for the depth of the call that records it; record it from an outer function"
        ) from None


def unrepeated(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    """An object as `json` reads it, for its `object_pairs_hook`.

    Raises:
        InvalidOperationError: a key stands there twice, of which one value would be lost.
    """
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InvalidOperationError("data", f"the key {json.dumps(twice)} stands twice in one object; give it once")
    return value


def load_json(text: str) -> Json:
    """Read what `dump_json` wrote."""
    value: Json = json.loads(text)
    return value


def to_microseconds(time: datetime) -> int:
    """Microseconds since 1970 of an aware time, exactly."""
    return (time - _EPOCH) // _MICROSECOND


def from_microseconds(value: int) -> datetime:
    """The aware time in UTC that `to_microseconds` was given."""
    return _EPOCH + timedelta(microseconds=value)


def operation_record(operation: Operation) -> dict[str, Json]:
    """An operation as JSON."""
    return {
        "id": operation.id,
        "session": operation.session,
        "type": operation.type,
        "data": operation.data,
        "timestamp": operation.timestamp.isoformat(),
        "tokens": operation.tokens,
        "agent": operation.agent,
        "critical": operation.critical,
        "idempotency_key": operation.idempotency_key,
    }


def session_record(session: Session) -> dict[str, Json]:
    """A session as JSON."""
    return {
        "id": session.id,
        "started": session.started.isoformat(),
        "status": session.status.value,
        "ended": session.ended.isoformat() if session.ended else None,
        "archive": session.archive,
        "spilled_through": session.spilled_through,
    }


def summary_record(summary: Summary) -> dict[str, Json]:
    """A summary and its line in the loss ledger as JSON."""
    return {
        "id": summary.id,
        "session": summary.session,
        "level": summary.level,
        "operations": [summary.first_operation, summary.last_operation],
        "operation_count": summary.operation_count,
        "children": list(summary.children),
        "parent": summary.parent or None,
        "document": summary.document or None,
        "method": summary.method,
        "tokens": summary.tokens,
        "source_tokens": summary.source_tokens,
        "ratio": round(summary.ratio, 4),
        "must_keeps": list(summary.must_keeps),
        "put_back": list(summary.put_back),
        "dropped": list(summary.dropped),
        "verdict": summary.verdict or None,
        "seconds": round(summary.seconds, 3),
        "created": summary.created.isoformat(),
        "text": summary.text,
    }


def must_keep_record(fact: MustKeep) -> dict[str, Json]:
    """A must-keep as JSON."""
    return {
        "id": fact.id,
        "kind": fact.kind.value,
        "text": fact.text,
        "operation": fact.operation or None,
        "author": fact.author.value,
        "timestamp": fact.timestamp.isoformat(),
        "identifiers": list(fact.identifiers),
        "status": fact.status.value,
        "superseded_by": fact.superseded_by or None,
    }


def hit_record(hit: Hit) -> dict[str, Json]:
    """A hit with its reasons as JSON."""
    chunk, reasons = hit.chunk, hit.reasons
    return {
        "source": chunk.source,
        "tier": chunk.tier.value,
        "kind": chunk.kind,
        "heading": list(chunk.heading),
        "title": chunk.title or None,
        "text": chunk.text,
        "time": chunk.time.isoformat() if chunk.time else None,
        "session": chunk.session,
        "agent": chunk.agent,
        "item": chunk.item,
        "operation": chunk.operation or None,
        "score": round(hit.score, 6),
        "reasons": {
            "keyword": {"rank": reasons.keyword_rank, "score": round(reasons.keyword_score, 6)},
            "dense": {"rank": reasons.dense_rank, "score": round(reasons.dense_score, 6)},
            "identifiers": list(reasons.identifiers),
            "shares": {name: round(value, 6) for name, value in reasons.shares},
            "priors": {name: round(value, 6) for name, value in reasons.priors},
        },
    }


def version_record(version: Version) -> dict[str, Json]:
    """A version of a document as JSON."""
    return {
        "document": version.document,
        "sequence": version.sequence,
        "time": version.time.isoformat(),
        "author": version.author.value,
        "reason": version.reason.value,
        "path": version.path,
        "size_bytes": version.size_bytes,
    }


def work_item_record(item: WorkItem) -> dict[str, Json]:
    """A work item as JSON."""
    return {
        "id": item.id,
        "kind": item.kind.value,
        "title": item.title,
        "description": item.description,
        "status": item.status.value,
        "priority": item.priority,
        "rank": item.rank,
        "parent": item.parent,
        "depends_on": list(item.depends_on),
        "assignee": item.assignee,
        "acceptance": list(item.acceptance),
        "created": item.created.isoformat(),
        "changed": item.changed.isoformat(),
        "started": item.started.isoformat() if item.started else None,
        "finished": item.finished.isoformat() if item.finished else None,
    }


def work_event_record(event: WorkEvent) -> dict[str, Json]:
    """A change of a work item as JSON."""
    return {
        "id": event.id,
        "item": event.item,
        "time": event.time.isoformat(),
        "author": event.author.value,
        "field": event.field,
        "before": event.before,
        "after": event.after,
        "reason": event.reason or None,
        "operation": event.operation or None,
    }

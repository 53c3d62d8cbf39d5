"""From what a caller hands over to an operation that can be recorded: everything is checked here, before any write."""

from __future__ import annotations

from datetime import UTC, datetime

from orchestra_mem.core.entries import entry_body, entry_title, is_critical
from orchestra_mem.errors import InvalidOperationError
from orchestra_mem.ports import Clock, TokenCounter
from orchestra_mem.serialize import checked_json
from orchestra_mem.types import UnrecordedOperation

_MAX_NAME_CHARS = 200
_MAX_TOKENS = 2**53


def make_draft(
    kind: object,
    data: object,
    tokens: object,
    *,
    agent: object,
    critical: bool | None,
    timestamp: object,
    idempotency_key: object,
    clock: Clock,
    counter: TokenCounter,
    entry_chars: int,
    number: int,
) -> UnrecordedOperation:
    """Check an operation and size its entry. `number` is about the id that it will have.

    Raises:
        InvalidOperationError: something is no JSON or out of range; `path` leads to it.
    """
    name = _name("operation_type", kind)
    if tokens is not None and (
        isinstance(tokens, bool) or not isinstance(tokens, int) or not 0 <= tokens < _MAX_TOKENS
    ):
        raise InvalidOperationError("tokens_used", f"{tokens!r} is no number of tokens; give 0 or more")
    if timestamp is not None and (not isinstance(timestamp, datetime) or timestamp.utcoffset() is None):
        raise InvalidOperationError("timestamp", f"{timestamp!r} is no time with a zone; give an aware datetime")
    try:
        time = (timestamp or clock()).astimezone(UTC)
    except OverflowError:
        raise InvalidOperationError("timestamp", f"{timestamp!r} lies outside of the calendar in UTC") from None
    checked = checked_json(data)
    body = entry_body(name, checked, tokens=tokens, max_chars=entry_chars, pointer=number)
    entry_tokens = counter.count(f"### [00:00:00] {entry_title(name, checked)} (op {number})\n{body}")
    return UnrecordedOperation(
        type=name,
        data=checked,
        timestamp=time,
        tokens=entry_tokens if tokens is None else tokens,
        entry_tokens=entry_tokens,
        agent=None if agent is None else _name("agent", agent),
        critical=is_critical(name, checked) if critical is None else bool(critical),
        idempotency_key=None if idempotency_key is None else _name("idempotency_key", idempotency_key),
    )


def _name(field: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidOperationError(field, f"{value!r} is no name; give a text that is not empty")
    if len(value) > _MAX_NAME_CHARS or not value.isprintable():
        raise InvalidOperationError(field, f"a name has up to {_MAX_NAME_CHARS} printable characters, in one line")
    return value

"""Turn a caller's arguments into an operation that can be recorded. All checks are done here, before any write."""

from __future__ import annotations

from datetime import UTC, datetime

from orchestra_mem.catalog_types import MAX_NAME_CHARS
from orchestra_mem.core.context.items import as_form
from orchestra_mem.core.documents.entries import Entry, is_critical
from orchestra_mem.errors import InvalidOperationError, StorageError
from orchestra_mem.memory.parts import MemoryParts
from orchestra_mem.serialize import checked_json
from orchestra_mem.types import Operation, Session, SessionStatus

_MAX_TOKENS = 2**31


def make_draft(
    parts: MemoryParts,
    kind: object,
    data: object,
    tokens: object,
    *,
    agent: object,
    critical: object,
    timestamp: object,
    idempotency_key: object,
    number: int,
    session: Session | None,
) -> Operation:
    """Check an operation, render its entry and count the tokens.

    `number` is its expected id, and `session` its expected session. For the errors see
    `OrchestratorContextManager.record_operation`.
    """
    if parts.database.in_transaction():
        raise StorageError(
            "recording: this thread is within a transaction (`state.together`), whose rollback would also remove the "
            "operation; record it after the transaction"
        )
    name = _name("operation_type", kind)
    reported = _tokens(tokens)
    time = parts.clock().astimezone(UTC) if timestamp is None else _time(timestamp)
    checked = parts.redactor.value(checked_json(data))
    agent = None if agent is None else _name("agent", agent)
    if critical is not None and not isinstance(critical, bool):
        problem = f"{critical!r} is not a bool; use True or False, or None to decide it automatically"
        raise InvalidOperationError("critical", problem)
    key = None if idempotency_key is None else _name("idempotency_key", idempotency_key)
    day = session.started.date() if session else time.date()
    thought = Operation(id=number, session="", type=name, data=checked, timestamp=time, tokens=0, entry_tokens=0)
    entry = Entry(operation=thought, started=day, max_chars=parts.session.place.entry_chars)
    # Counted in the form that contexts show, so that later counts come from the cache.
    entry_tokens = parts.counter.count(as_form(entry.text))
    return Operation(
        id=0, session="", type=name, data=checked, timestamp=time, entry_tokens=entry_tokens,
        tokens=entry_tokens if reported is None else reported, agent=agent, idempotency_key=key,
        critical=is_critical(name, checked) if critical is None else critical,
    )  # fmt: skip


def _tokens(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MAX_TOKENS:
        raise InvalidOperationError(
            "tokens_used", f"{value!r} is not a number of tokens: must be an integer from 0 to 2**31 - 1"
        )
    return int(value)


def _time(value: object) -> datetime:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise InvalidOperationError("timestamp", f"{value!r} is not a datetime with a time zone; use an aware datetime")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidOperationError("timestamp", f"{value!r} is out of range when converted to UTC") from None


def _name(field: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidOperationError(field, f"{value!r} is not a name: must be a string that is not blank")
    if len(value) > MAX_NAME_CHARS or not value.isprintable():
        raise InvalidOperationError(
            field, f"a name must have at most {MAX_NAME_CHARS} printable characters, on one line"
        )
    return str.__str__(value)  # plain `str` even for a subclass, as the database returns it


def new_session(now: datetime) -> Session:
    """Return a new session that begins now."""
    from uuid import uuid4  # loading takes milliseconds, and only a new session needs it

    return Session(id=str(uuid4()), started=now, status=SessionStatus.ACTIVE)

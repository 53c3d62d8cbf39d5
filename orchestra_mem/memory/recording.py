"""The call of a memory that records an operation. All checks are done before any write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from orchestra_mem.catalog_types import MAX_NAME_CHARS
from orchestra_mem.core.context.items import as_form
from orchestra_mem.core.documents.entries import Entry, is_critical
from orchestra_mem.errors import InvalidOperationError, StorageError
from orchestra_mem.memory.lifecycle import Lifecycle
from orchestra_mem.memory.parts import MemoryParts
from orchestra_mem.serialize import checked_json
from orchestra_mem.types import Json, Operation

_MAX_TOKENS = 2**31


class RecordingCalls:
    """Mixin for `OrchestratorContextManager`: the call that records, and what this and all other calls use."""

    _parts: MemoryParts
    _life: Lifecycle
    _note_call: Callable[..., None]

    def record_operation(
        self,
        operation_type: str,
        operation_data: object,
        tokens_used: int | None = None,
        *,
        agent: str | None = None,
        critical: bool | None = None,
        timestamp: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> Operation:
        """Record what the orchestrator did. When this returns, the operation is stored permanently.

        Args:
            operation_type: Kind of operation, such as `nl_command`, `task_execution` or `decision`.
            operation_data: Any JSON value, of any size.
            tokens_used: Tokens of the window that the operation used; by default the tokens of its entry.
            agent: Name of the agent that performed the operation.
            critical: Whether summaries must keep the operation; by default decided from its type and data.
            timestamp: Time of the operation, with a time zone; by default now.
            idempotency_key: A second call with the same key records nothing and returns the first operation.

        Raises:
            InvalidOperationError: A value is not JSON or out of range; nothing was recorded.
            StorageError: The write failed, or this thread is within `state.together`; nothing was recorded.
        """
        parts = self._parts.checked()
        if parts.database.in_transaction():
            raise StorageError(
                "recording: this thread is within a transaction (`state.together`), whose rollback would also remove "
                "the operation; record it after the transaction"
            )
        name, tokens = _name("operation_type", operation_type), _tokens(tokens_used)
        time = parts.clock().astimezone(UTC) if timestamp is None else _time(timestamp)
        data = parts.redactor.value(checked_json(operation_data))
        agent = None if agent is None else _name("agent", agent)
        critical = _truth("critical", critical)
        key = None if idempotency_key is None else _name("idempotency_key", idempotency_key)
        entry_tokens = self._entry_tokens(name, data, time)
        draft = Operation(
            id=0, session="", type=name, data=data, timestamp=time, entry_tokens=entry_tokens,
            tokens=entry_tokens if tokens is None else tokens, agent=agent, idempotency_key=key,
            critical=is_critical(name, data) if critical is None else critical,
        )  # fmt: skip
        with parts.lock:
            recorded = self._life.record(draft)
        self._note_call(changed=True)
        return recorded

    def _entry_tokens(self, name: str, data: Json, time: datetime) -> int:
        """Count the tokens of the entry that an operation is expected to get."""
        place, session = self._parts.session.place, self._life.session  # which another thread may end meanwhile
        day = session.started.date() if session else time.date()
        thought = Operation(
            id=self._life.last_id + 1, session="", type=name, data=data, timestamp=time, tokens=0, entry_tokens=0
        )
        # Counted in the form that contexts show, so that later counts come from the cache.
        return self._parts.counter.count(
            as_form(Entry(operation=thought, started=day, max_chars=place.entry_chars).text)
        )


def _truth(field: str, value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise InvalidOperationError(
        field, f"{value!r} is not a bool; use True or False, or None to decide it automatically"
    )


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

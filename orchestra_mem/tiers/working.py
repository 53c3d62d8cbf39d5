"""Working memory: the newest operations, in the process. Its truth is the event log; losing it loses nothing."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable

from orchestra_mem.core.documents.entries import Entry
from orchestra_mem.types import Json, Operation


class _Row:
    """Entries in a row, and their tokens."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque()
        self.tokens = 0

    def append(self, entry: Entry) -> None:
        """Put one at the end."""
        self.entries.append(entry)
        self.tokens += entry.operation.entry_tokens

    def pop_first(self) -> Entry:
        """Take the first one out."""
        entry = self.entries.popleft()
        self.tokens -= entry.operation.entry_tokens
        return entry


class WorkingMemory:
    """A deque of entries, up to so many operations and so many tokens. Safe to share between threads.

    What is over the limits stays until the caller has put it into the next tier: `overflow` names it, `drop_through`
    lets it go. What is to leave is settled as operations come, so that it does not depend on when the caller does that.
    """

    def __init__(self, *, max_operations: int = 50, max_tokens: int = 10_000) -> None:
        self.max_operations = max_operations
        self.max_tokens = max_tokens
        # Those that are to leave, and behind them those that stay.
        self._leaving = _Row()
        self._staying = _Row()
        self._lock = threading.RLock()

    def add(self, entry: Entry) -> None:
        """Take in an operation; the newest is last."""
        with self._lock:
            self._staying.append(entry)
            if len(self._staying.entries) > self.max_operations or self._staying.tokens > self.max_tokens:
                while self._over_half(len(self._staying.entries), self._staying.tokens):
                    self._leaving.append(self._staying.pop_first())

    def _over_half(self, count: int, tokens: int) -> bool:
        """Whether the oldest is to leave so many; the newest never is."""
        return count > 1 and (count > self.max_operations // 2 or tokens > self.max_tokens // 2)

    def overflow(self) -> list[Entry]:
        """What is to spill: each time that a limit was passed, the older ones until half of both limits was left."""
        with self._lock:
            return list(self._leaving.entries)

    @property
    def overflows(self) -> bool:
        """Whether there is something to spill."""
        return bool(self._leaving.entries)

    @property
    def overflows_far(self) -> bool:
        """Whether so much is to spill that it should wait no longer: as much as the limits again."""
        return len(self._leaving.entries) > self.max_operations or self._leaving.tokens > self.max_tokens

    def older_half(self) -> list[Entry]:
        """The older ones without which half of both limits is kept; the newest operation is never among them."""
        with self._lock:
            spilled = list(self._leaving.entries)
            count, tokens = len(self._staying.entries), self._staying.tokens
            for entry in self._staying.entries:
                if not self._over_half(count, tokens):
                    break
                spilled.append(entry)
                count -= 1
                tokens -= entry.operation.entry_tokens
            return spilled

    def drop_through(self, operation_id: int) -> None:
        """Let go of the operations up to an id: they stand in the next tier."""
        with self._lock:
            for row in (self._leaving, self._staying):
                while row.entries and row.entries[0].operation.id <= operation_id:
                    row.pop_first()

    def entries(self) -> list[Entry]:
        """All of it, oldest first."""
        with self._lock:
            return [*self._leaving.entries, *self._staying.entries]

    def get_all_operations(self) -> list[Operation]:
        """All operations, oldest first."""
        return [entry.operation for entry in self.entries()]

    def get_recent_operations(self, limit: int | None = None) -> list[Operation]:
        """The newest operations, newest first."""
        return self.get_operations(limit=limit)

    def get_operations(self, operation_type: str | None = None, limit: int | None = 10) -> list[Operation]:
        """The newest operations, newest first, of one type if given; all of them where `limit` is None."""
        found = [
            entry.operation
            for entry in reversed(self.entries())
            if operation_type is None or entry.operation.type == operation_type
        ]
        return found if limit is None else found[: max(0, limit)]

    def search(self, query: str, max_results: int = 5) -> list[Operation]:
        """The newest operations that hold the query, upper and lower case alike, newest first."""
        found = (entry.operation for entry in reversed(self.entries()) if holds(entry.operation, query))
        return _first(found, max_results)

    def clear(self) -> None:
        """Forget all. What was here is in the event log."""
        with self._lock:
            self._leaving, self._staying = _Row(), _Row()

    def get_stats(self) -> dict[str, Json]:
        """Number of operations, tokens, limits, and the share of the token limit that is used."""
        with self._lock:
            tokens = self._leaving.tokens + self._staying.tokens
            return {
                "operation_count": len(self._leaving.entries) + len(self._staying.entries),
                "max_operations": self.max_operations,
                "current_tokens": tokens,
                "max_tokens": self.max_tokens,
                "utilization": tokens / self.max_tokens if self.max_tokens else 0.0,
            }


def holds(operation: Operation, query: str) -> bool:
    """Whether an operation's type or data hold a text, upper and lower case alike."""
    wanted = query.casefold()
    text = f"{operation.type} {json.dumps(operation.data, ensure_ascii=False)}"
    return wanted in text.casefold()


def _first(found: Iterable[Operation], most: int) -> list[Operation]:
    result: list[Operation] = []
    for operation in found:
        if len(result) >= most:
            break
        result.append(operation)
    return result

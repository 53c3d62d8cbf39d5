"""Working memory: the newest operations, in the process. Its truth is the event log; losing it loses nothing."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable
from itertools import islice

from orchestra_mem.core.documents.entries import Entry
from orchestra_mem.types import Json, Operation


class WorkingMemory:
    """A deque of entries, up to so many operations and so many tokens. Safe to share between threads.

    What is over the limits stays until the caller has put it into the next tier: `overflow` names it, `drop_through`
    lets it go. What is to leave is settled as operations come, so that it does not depend on when the caller does that.
    """

    def __init__(self, *, max_operations: int = 50, max_tokens: int = 10_000) -> None:
        self.max_operations = max_operations
        self.max_tokens = max_tokens
        self._entries: deque[Entry] = deque()
        self._tokens = 0
        # Of those, at the front, the ones that are to leave.
        self._leaving = 0
        self._leaving_tokens = 0
        self._lock = threading.RLock()

    def add(self, entry: Entry) -> None:
        """Take in an operation; the newest is last."""
        with self._lock:
            self._entries.append(entry)
            self._tokens += entry.operation.entry_tokens
            staying = len(self._entries) - self._leaving
            if staying > self.max_operations or self._tokens - self._leaving_tokens > self.max_tokens:
                older = self.older_half()
                self._leaving = len(older)
                self._leaving_tokens = sum(each.operation.entry_tokens for each in older)

    def overflow(self) -> list[Entry]:
        """What is to spill: each time that a limit was passed, the older ones until half of both limits was left."""
        with self._lock:
            return list(islice(self._entries, self._leaving))

    @property
    def overflows(self) -> bool:
        """Whether there is something to spill."""
        return self._leaving > 0

    @property
    def overflows_far(self) -> bool:
        """Whether so much is to spill that it should wait no longer: as much as the limits again."""
        return self._leaving > self.max_operations or self._leaving_tokens > self.max_tokens

    def older_half(self) -> list[Entry]:
        """The older ones without which half of both limits is kept; the newest operation is never among them."""
        with self._lock:
            spilled: list[Entry] = []
            count, tokens = len(self._entries), self._tokens
            for entry in self._entries:
                if count == 1 or (count <= self.max_operations // 2 and tokens <= self.max_tokens // 2):
                    break
                spilled.append(entry)
                count -= 1
                tokens -= entry.operation.entry_tokens
            return spilled

    def drop_through(self, operation_id: int) -> None:
        """Let go of the operations up to an id: they stand in the next tier."""
        with self._lock:
            while self._entries and self._entries[0].operation.id <= operation_id:
                tokens = self._entries.popleft().operation.entry_tokens
                self._tokens -= tokens
                if self._leaving:
                    self._leaving -= 1
                    self._leaving_tokens -= tokens

    def entries(self) -> list[Entry]:
        """All of it, oldest first."""
        with self._lock:
            return list(self._entries)

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
            self._entries.clear()
            self._tokens = self._leaving = self._leaving_tokens = 0

    def get_stats(self) -> dict[str, Json]:
        """Number of operations, tokens, limits, and the share of the token limit that is used."""
        with self._lock:
            return {
                "operation_count": len(self._entries),
                "max_operations": self.max_operations,
                "current_tokens": self._tokens,
                "max_tokens": self.max_tokens,
                "utilization": self._tokens / self.max_tokens if self.max_tokens else 0.0,
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

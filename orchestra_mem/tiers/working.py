"""Working memory: the newest operations, in the process. Its truth is the event log; losing it loses nothing."""

from __future__ import annotations

import json
import threading
from collections import deque
from itertools import islice

from orchestra_mem.core.documents.entries import Entry, make_entry
from orchestra_mem.design_names import MadeOtherwise
from orchestra_mem.types import Json, Operation

# What an entry shows of its operation, as `entries.max_chars` has it by default.
_ENTRY_CHARS = 4_000


class WorkingMemory(MadeOtherwise, use="open_memory(project, config=config).working_memory"):
    """A deque of entries, up to so many operations and so many tokens. Safe to share between threads.

    What is over the limits stays until the caller has put it into the next tier: `overflow` names it, `drop_through`
    lets it go. What is to leave is settled as operations come, so that it does not depend on when the caller does that.
    """

    def __init__(self, *, max_operations: int = 50, max_tokens: int = 10_000) -> None:
        self.max_operations = max_operations
        self.max_tokens = max_tokens
        # Each with the tokens of all that ever came, itself included. So there is no sum that an interrupt could leave
        # behind.
        self._entries: deque[tuple[Entry, int]] = deque()
        # How many of them, from the oldest on, are to leave.
        self._leaving = 0
        self._newest = 0
        self._lock = threading.RLock()

    def add(self, entry: Entry) -> None:
        """Take in an operation; the newest is last. It is passed over where it comes again, as after an interrupt."""
        with self._lock:
            newest, through = self._entries[-1] if self._entries else (None, 0)
            if newest is not None and newest.operation.id == entry.operation.id:
                return
            self._newest = entry.operation.id
            self._entries.append((entry, through + entry.operation.entry_tokens))
            staying = len(self._entries) - self._leaving
            if staying > self.max_operations or self._tokens(self._leaving) > self.max_tokens:
                while self._over_half(self._leaving):
                    self._leaving += 1

    def add_operation(self, operation: Operation) -> None:
        """Take in an operation that has been recorded; `record_operation` has done it, then this does nothing.

        Raises:
            TypeError: it is not recorded.
        """
        if not isinstance(operation, Operation):
            raise TypeError(
                f"a {type(operation).__name__} is no recorded operation: use memory.record_operation(type, data, "
                "tokens), which stores it and takes it in here"
            )
        with self._lock:
            if operation.id > self._newest:
                self.add(make_entry(operation, started=operation.timestamp.date(), max_chars=_ENTRY_CHARS))

    def _tokens(self, first: int, end: int | None = None) -> int:
        """The tokens of those from a place on, and before another."""
        behind = len(self._entries) if end is None else end
        if first >= behind:
            return 0
        entry, through = self._entries[first]
        return self._entries[behind - 1][1] - through + entry.operation.entry_tokens

    def _over_half(self, first: int) -> bool:
        """Whether those from a place on are more than half of the limits hold; the newest alone never is."""
        count = len(self._entries) - first
        return count > 1 and (count > self.max_operations // 2 or self._tokens(first) > self.max_tokens // 2)

    def overflow(self) -> list[Entry]:
        """What is to spill: each time that a limit was passed, the older ones until half of both limits was left."""
        with self._lock:
            return [entry for entry, _ in islice(self._entries, self._leaving)]

    @property
    def overflows(self) -> bool:
        """Whether there is something to spill."""
        return self._leaving > 0

    @property
    def overflows_far(self) -> int:
        """How many times more than the limits is to spill; with one it should wait no longer, with two it must not."""
        with self._lock:
            tokens = self._tokens(0, self._leaving)
            return max(0, (self._leaving - 1) // self.max_operations, (tokens - 1) // self.max_tokens)

    def older_half(self) -> list[Entry]:
        """The older ones without which half of both limits is kept; the newest operation is never among them."""
        with self._lock:
            border = self._leaving
            while self._over_half(border):
                border += 1
            return [entry for entry, _ in islice(self._entries, border)]

    def drop_through(self, operation_id: int) -> None:
        """Let go of the operations up to an id: they stand in the next tier."""
        with self._lock:
            while self._entries and self._entries[0][0].operation.id <= operation_id:
                # In this order, so that an interrupt in between lets one stay longer and spills none too early.
                self._leaving = max(0, self._leaving - 1)
                self._entries.popleft()

    def entries(self) -> list[Entry]:
        """All of it, oldest first."""
        with self._lock:
            return [entry for entry, _ in self._entries]

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
        found = (entry.operation for entry in reversed(self.entries()) if _holds(entry.operation, query))
        return list(islice(found, max(0, max_results)))

    def clear(self) -> None:
        """Forget all. What was here is in the event log."""
        with self._lock:
            self._leaving = 0
            self._entries.clear()

    def get_stats(self) -> dict[str, Json]:
        """Number of operations, tokens, limits, and the share of the token limit in use: over 1 until it spills."""
        with self._lock:
            tokens = self._tokens(0)
            return {
                "operation_count": len(self._entries),
                "max_operations": self.max_operations,
                "current_tokens": tokens,
                "max_tokens": self.max_tokens,
                "utilization": tokens / self.max_tokens if self.max_tokens else 0.0,
            }


def _holds(operation: Operation, query: str) -> bool:
    """Whether an operation's type or data hold a text, upper and lower case alike."""
    wanted = query.casefold()
    text = f"{operation.type} {json.dumps(operation.data, ensure_ascii=False)}"
    return wanted in text.casefold()

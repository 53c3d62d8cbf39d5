"""Working memory: the newest operations, kept in the process. A crash loses none, since the event log has them all."""

from __future__ import annotations

import json
import threading
from collections import deque
from itertools import islice

from orchestra_mem.core.documents.entries import Entry
from orchestra_mem.design_names import RejectsDesignArguments
from orchestra_mem.types import Json, Operation

# Maximum characters of an entry; equals the default of the setting `entries.max_chars`.
_ENTRY_CHARS = 4_000


class WorkingMemory(RejectsDesignArguments, use="open_memory(project, config=config).working_memory"):
    """A queue of entries, limited by number of operations and by tokens. Safe to share between threads.

    Overflowing entries stay until the caller has moved them to the next tier: `overflow` returns them, `drop_through`
    removes them. Which entries overflow is decided when operations are added, not when the caller spills.
    """

    def __init__(self, *, max_operations: int = 50, max_tokens: int = 10_000) -> None:
        self.max_operations = max_operations
        self.max_tokens = max_tokens
        # Each entry with the running total of tokens up to and including it. A separate total could get out of step
        # with the entries if an interrupt came between the two updates.
        self._entries: deque[tuple[Entry, int]] = deque()
        # Number of oldest entries that overflow.
        self._leaving = 0
        self._newest = 0
        self._lock = threading.RLock()

    def add(self, entry: Entry) -> None:
        """Append an operation. Does nothing if it is the newest one already, as in a retry after an interrupt."""
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
        """Add a recorded operation, unless it or a newer one was added before. `record_operation` adds its own.

        Raises:
            TypeError: `operation` is not a recorded operation.
        """
        if not isinstance(operation, Operation):
            raise TypeError(
                f"a {type(operation).__name__} is not a recorded operation: use memory.record_operation(type, data, "
                "tokens), which stores it and adds it here"
            )
        with self._lock:
            if operation.id > self._newest:
                self.add(Entry(operation=operation, started=operation.timestamp.date(), max_chars=_ENTRY_CHARS))

    def _tokens(self, first: int, end: int | None = None) -> int:
        """Sum the tokens of the entries at the positions `first` to `end` - 1."""
        behind = len(self._entries) if end is None else end
        if first >= behind:
            return 0
        entry, through = self._entries[first]
        return self._entries[behind - 1][1] - through + entry.operation.entry_tokens

    def _over_half(self, first: int) -> bool:
        """Check whether the entries from position `first` on exceed half of a limit. A single entry never does."""
        count = len(self._entries) - first
        return count > 1 and (count > self.max_operations // 2 or self._tokens(first) > self.max_tokens // 2)

    def overflow(self) -> list[Entry]:
        """Return the entries to spill: once a limit is exceeded, the oldest entries, down to half of both limits."""
        with self._lock:
            return [entry for entry, _ in islice(self._entries, self._leaving)]

    @property
    def overflows(self) -> bool:
        """Whether there are entries to spill."""
        return self._leaving > 0

    @property
    def overflow_factor(self) -> int:
        """How many times the overflow exceeds a limit. At 1 the spill should not wait longer, at 2 it must not."""
        with self._lock:
            tokens = self._tokens(0, self._leaving)
            return max(0, (self._leaving - 1) // self.max_operations, (tokens - 1) // self.max_tokens)

    def older_half(self) -> list[Entry]:
        """Return the oldest entries, so that at most half of both limits remains. Never includes the newest entry."""
        with self._lock:
            border = self._leaving
            while self._over_half(border):
                border += 1
            return [entry for entry, _ in islice(self._entries, border)]

    def drop_through(self, operation_id: int) -> None:
        """Remove the operations up to and including an id, after the next tier has stored them."""
        with self._lock:
            while self._entries and self._entries[0][0].operation.id <= operation_id:
                # In this order, an interrupt in between may delay the spill of one entry, but causes no early spill.
                self._leaving = max(0, self._leaving - 1)
                self._entries.popleft()

    def entries(self) -> list[Entry]:
        """Return all entries, oldest first."""
        with self._lock:
            return [entry for entry, _ in self._entries]

    def get_all_operations(self) -> list[Operation]:
        """Return all operations, oldest first."""
        return [entry.operation for entry in self.entries()]

    def get_recent_operations(self, limit: int | None = None) -> list[Operation]:
        """Return the newest operations, newest first. Without a `limit`, all of them."""
        return self.get_operations(limit=limit)

    def get_operations(self, operation_type: str | None = None, limit: int | None = 10) -> list[Operation]:
        """Return the newest operations, newest first, optionally of one type. All of them if `limit` is None."""
        found = [
            entry.operation
            for entry in reversed(self.entries())
            if operation_type is None or entry.operation.type == operation_type
        ]
        return found if limit is None else found[: max(0, limit)]

    def search(self, query: str, max_results: int = 5) -> list[Operation]:
        """Return the newest operations whose type or data contain the query, ignoring case, newest first."""
        wanted = query.casefold()
        newest = (entry.operation for entry in reversed(self.entries()))
        texts = ((each, f"{each.type} {json.dumps(each.data, ensure_ascii=False)}") for each in newest)
        return list(islice((each for each, text in texts if wanted in text.casefold()), max(0, max_results)))

    def clear(self) -> None:
        """Remove all entries. The event log keeps the operations."""
        with self._lock:
            self._leaving = self._newest = 0
            self._entries.clear()

    def get_stats(self) -> dict[str, Json]:
        """Return operation count, tokens, limits, and `utilization`: tokens / token limit, over 1 before a spill."""
        with self._lock:
            tokens = self._tokens(0)
            return {
                "operation_count": len(self._entries),
                "max_operations": self.max_operations,
                "current_tokens": tokens,
                "max_tokens": self.max_tokens,
                "utilization": tokens / self.max_tokens if self.max_tokens else 0.0,
            }

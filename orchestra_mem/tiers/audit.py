"""Keep account of who looked at the catalog and who changed it."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from enum import StrEnum

from orchestra_mem.catalog_types import AccessOutcome, AuditEntry, AuditFilter, AuditLog, InjectedItem, MemoryItem
from orchestra_mem.errors import AccessDeniedError, StorageError
from orchestra_mem.ports import Clock

logger = logging.getLogger(__name__)

# Entries of reads wait for so many of them, or for the next change: a read never waits for the disk.
_BATCH = 64
_MOST_WAITING = 10_000
_MAX_DETAIL_CHARS = 500
_TOLD_FIELDS = ("content", "summary", "type", "ci_source", "tags", "priority", "expires", "references")


class AuditTrail:
    """Writes what changes at once, in the change's own transaction, and what is read in batches.

    Args:
        log: keeps the entries.
        clock: gives the present time.
        redacted: takes secrets out of a text.
        can_write_now: tells whether a write would be done at once.
    """

    def __init__(
        self, log: AuditLog, clock: Clock, redacted: Callable[[str], str], can_write_now: Callable[[], bool]
    ) -> None:
        self._log = log
        self._clock = clock
        self._redacted = redacted
        self._can_write_now = can_write_now
        self._waiting: list[AuditEntry] = []
        self._lock = threading.Lock()

    def read(self, agent: str, call: str, items: tuple[str, ...] = (), *, tokens: int = 0, detail: str = "") -> None:
        """Note what an agent was given, or that nothing was."""
        outcome = AccessOutcome.GIVEN if items else AccessOutcome.EMPTY
        entry = self._entry(agent, call, outcome, items, tokens, detail)
        with self._lock:
            self._waiting.append(entry)
            del self._waiting[:-_MOST_WAITING]  # where the disk refuses for long
            due = len(self._waiting) >= _BATCH
        if due:
            self._flush_now()

    @contextmanager
    def checking(self, agent: str, call: str) -> Iterator[None]:
        """Note it where an agent is refused within this."""
        try:
            yield
        except AccessDeniedError as error:
            with self._lock:
                self._waiting.append(self._entry(agent, call, AccessOutcome.REFUSED, (), 0, str(error)))
            self.flush()
            raise

    def changed(self, agent: str, call: str, items: tuple[str, ...], detail: str) -> None:
        """Note a change, in the transaction that makes it."""
        self._log.add([self._entry(agent, call, AccessOutcome.CHANGED, items, 0, detail)])

    def _entry(
        self, agent: str, call: str, outcome: AccessOutcome, items: tuple[str, ...], tokens: int, detail: str
    ) -> AuditEntry:
        detail = self._redacted(detail)[:_MAX_DETAIL_CHARS]
        return AuditEntry(
            time=self._clock(), agent=agent, call=call, outcome=outcome, items=items, tokens=tokens, detail=detail
        )

    def flush(self) -> None:
        """Write what waits; where the disk refuses it waits on."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        try:
            if waiting:
                self._log.add(waiting)
        except StorageError as error:
            logger.debug("the audit trail could not be written: %s", error)
            with self._lock:
                self._waiting[:0] = waiting

    def _flush_now(self) -> None:
        if self._waiting and self._can_write_now():
            self.flush()

    def entries(self, where: AuditFilter) -> list[AuditEntry]:
        """Return the newest entries that pass a filter, newest first; without those that cannot be written now."""
        self._flush_now()
        return self._log.entries(where)

    def injections(
        self, agent: str | None = None, since: datetime | None = None, *, unused: int = 10, share: float = 0.25
    ) -> list[InjectedItem]:
        """Count how often each item was put into the messages of each agent, those most often first.

        Args:
            agent: only of this one.
            since: only from then on.
            unused: an item that was given so often without being used bears the warning `unused`.
            share: one that took this share of all tokens, and was given so often, bears the warning `share`.
        """
        self._flush_now()

        def warnings(each: InjectedItem) -> Iterator[str]:
            if each.unused >= unused:
                yield "unused"
            if each.token_share >= share and each.times >= unused:
                yield "share"

        found = self._log.injections(agent, since)
        return [replace(each, warnings=tuple(warnings(each))) for each in found]

    def forget(self, before: datetime) -> int:
        """Remove what is older than a time; how many entries that is."""
        self.flush()
        return self._log.forget(before)


def described(before: MemoryItem, after: MemoryItem) -> str:
    """Say what a change was, field by field."""
    values = [(field, getattr(before, field), getattr(after, field)) for field in _TOLD_FIELDS]
    return "; ".join(f"{field}: {_short(was)} -> {_short(now)}" for field, was, now in values if was != now)


def _short(value: object) -> str:
    """A value that says nothing of what an item says; of texts a digest, so that a purge leaves no word behind."""
    if value in (None, "", (), []):
        return "none"
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    plain = isinstance(value, int | StrEnum)
    return str(value) if plain else f"digest {hashlib.sha256(repr(value).encode()).hexdigest()[:8]}"

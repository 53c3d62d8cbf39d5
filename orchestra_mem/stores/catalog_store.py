"""Stores for the catalog's memory items, the exchanges queued for learning, and the audit trail."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime

from orchestra_mem.catalog_types import (
    MAX_ATTEMPTS,
    AuditEntry,
    AuditFilter,
    CatalogStatistics,
    Exchange,
    InjectedItem,
    ItemFilter,
    ItemStatus,
    MemoryItem,
)
from orchestra_mem.serialize import from_microseconds, to_microseconds
from orchestra_mem.stores.statements import FreeText, Stored, Table, limit_of, matching

_NEW_ID = {"id": "nullif(?, 0)"}
_ITEMS = Table("memory_items", MemoryItem, write={"number": "nullif(?, 0)"})
_EXCHANGES = Table("exchanges", Exchange, write=_NEW_ID)
_AUDIT = Table("audit", AuditEntry, write=_NEW_ID)
FREE_TEXT = (
    FreeText("memory_items", ("ci_source", "summary", "content"), json=("tags", "references")),
    FreeText("memory_tags", ("ci_source", "tag")),
    FreeText("memory_references", ("reference",)),
    FreeText("exchanges", ("agent", "message", "answer", "error")),
    FreeText("audit", ("agent", "detail")),
)
_MOST_CLAUSES = 500  # limit on the words of a text search, as SQLite nests at most 1,000 conditions
_CHANGE, _MOVE, _CLEANUP = "change", "last move", "last cleanup"
_SET = "INSERT INTO catalog_state VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_NAME = "catalog"
_OPERATION = re.compile(r"op [0-9]+")  # a reference to an operation
_USES = ("get", "store", "update", "supersede", "restore")  # calls by which an agent makes use of an injected item


class CatalogStore(Stored):
    """Stores items, and exchanges queued for learning."""

    def changing(self) -> AbstractContextManager[object]:
        """Run the block's reads and writes in one transaction."""
        return self._database.transaction("catalog")

    def add(self, item: MemoryItem, digest: str, keys: Sequence[str]) -> MemoryItem:
        """Store a new item under its number, or the next one. `keys`: Its normalised tags, by which it is found."""
        with self.changing():
            item = replace(item, changed=self._next_change())
            values = _ITEMS.values(item, digest=digest, tag_count=len(keys))
            added = self._database.write(_NAME, f"{_ITEMS.insert('digest', 'tag_count')} RETURNING number", values)
            item = replace(item, number=added.row[0])
            self.file_item(item, keys)
        return item

    def replace(self, item: MemoryItem, digest: str, keys: Sequence[str]) -> MemoryItem:
        """Overwrite a stored item. Tag rows are kept for live items only, so no other item is found by tag."""
        with self.changing():
            item = replace(item, changed=self._next_change())
            before = self._database.value("SELECT ci_source FROM memory_items WHERE number = ?", [item.number])
            if before != item.ci_source:  # no row of the former agent shows that it has lost an item
                self._database.write(_NAME, _SET, (_MOVE, item.changed))
            values = _ITEMS.values(item, digest=digest, tag_count=len(keys))
            self._database.write(_NAME, _ITEMS.update("digest", "tag_count", key="number"), values)
            self.file_item(item, keys)
        return item

    def file_item(self, item: MemoryItem, keys: Sequence[str]) -> None:
        """Store the rows by which an item is found: its references and, if it is live, the keys of its tags."""
        self._database.write(_NAME, "DELETE FROM memory_tags WHERE item = ?", (item.number,))
        if item.status is ItemStatus.LIVE:
            rows = [(item.ci_source, key, item.number) for key in dict.fromkeys(keys)]
            self._database.write_all(_NAME, "INSERT INTO memory_tags VALUES (?, ?, ?)", rows)
        self._database.write(_NAME, "DELETE FROM memory_references WHERE item = ?", (item.number,))
        references = [(reference, item.number) for reference in dict.fromkeys(item.references)]
        self._database.write_all(_NAME, "INSERT INTO memory_references VALUES (?, ?)", references)

    def _next_change(self) -> int:
        query = (
            "INSERT INTO catalog_state VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = catalog_state.value + 1 "
            "RETURNING value"
        )
        with self.changing() as connection:
            return int(connection.execute(query, (_CHANGE,)).fetchone()[0])  # type: ignore[attr-defined]

    def item(self, item_id: str) -> MemoryItem:
        """Return an item by its id, or by its number, such as `M12`.

        Raises:
            NotFoundError: No such item exists.
        """
        number = item_id[1:] if item_id[:1] in "Mm" and item_id[1:].isdecimal() and len(item_id) < 20 else None
        where, value = ("number = ?", int(number)) if number else ("id = ?", item_id)
        missing = f"there is no item {item_id!r} in the catalog; `orchestra-mem catalog list` shows them"
        return self._database.one(_ITEMS, where, value, missing)

    def same(self, agent: str, digest: str) -> MemoryItem | None:
        """Return the agent's live item whose content has this digest, None if there is none."""
        tail = "WHERE ci_source = ? AND digest = ? AND status = 'live'"
        found = self._database.find(_ITEMS, tail, (agent, digest))
        return found[0] if found else None

    def items(self, where: ItemFilter) -> list[MemoryItem]:
        """Return the items that match a filter, newest first, or highest priority first if it sets `by_priority`."""
        condition, values = _passing(where)
        first = "priority DESC" if where.by_priority else "timestamp DESC"
        tail = f"{condition} ORDER BY {first}, number DESC LIMIT ? OFFSET ?"
        return self._database.find(_ITEMS, tail, [*values, limit_of(where.limit), max(0, where.offset)])

    def count(self, where: ItemFilter) -> int:
        """Count the items that match a filter, ignoring its limit and offset."""
        condition, values = _passing(where)
        return int(self._database.value(f"SELECT count(*) FROM memory_items {condition}", values))

    def by_number(self, numbers: Sequence[int]) -> list[MemoryItem]:
        """Return items by number, in the given order; unknown numbers are skipped."""
        tail = "WHERE number IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"
        found = self._database.find(_ITEMS, tail, (json.dumps([*numbers]),))
        items = {item.number: item for item in found}
        return [items[number] for number in numbers if number in items]

    def changed_after(self, change: int, limit: int) -> list[MemoryItem]:
        """Return up to `limit` items changed after the given change number, in order of change."""
        tail = "WHERE changed > ? ORDER BY changed LIMIT ?"
        return self._database.find(_ITEMS, tail, (change, limit))

    def last_change(self, agent: str | None = None) -> int:
        """Return the last change's number, default 0. With `agent`, only its items and moves between agents count."""
        if agent is None:
            return self._state(_CHANGE) or 0
        query = (
            "SELECT max(value) FROM (SELECT max(changed) AS value FROM memory_items WHERE ci_source = ? "
            "UNION ALL SELECT value FROM catalog_state WHERE name = ?) AS changes"
        )
        return int(self._database.value(query, [agent, _MOVE]) or 0)

    def last_move(self) -> int:
        """Return the number of the last change that moved an item to another agent, 0 if no item was moved."""
        return self._state(_MOVE) or 0

    def _state(self, name: str) -> int | None:
        value = self._database.value("SELECT value FROM catalog_state WHERE name = ?", [name])
        return None if value is None else int(value)

    def extracts(self, limit: int) -> list[MemoryItem]:
        """Return the newest live items with an extractive summary that is shorter than the content."""
        tail = "WHERE summary_method = 'extractive' AND status = 'live' AND summary_tokens < tokens "
        return self._database.find(_ITEMS, f"{tail}ORDER BY number DESC LIMIT ?", (limit,))

    def figures(self, agent: str, after: int = 0) -> list[tuple[int, ...]]:
        """Return the figures of an agent's live items; with `after`, of its items of any status changed since.

        The columns: number, time, priority, number of tags, tokens, tokens of the summary, 1 if live, time of expiry.
        Times are microseconds since 1970.
        """
        query = (
            "SELECT number, timestamp, priority, tag_count, tokens, summary_tokens, "
            "CASE WHEN status = 'live' THEN 1 ELSE 0 END, "
            f"coalesce(expires, {2**63 - 1}) FROM memory_items WHERE ci_source = ? AND "
        )
        tail = "changed > ?" if after else "status = 'live' AND ? = 0"
        return self._database.rows(f"{query}{tail} ORDER BY number", (agent, after))

    def tags(self, agent: str, numbers: Sequence[int] | None = None) -> list[tuple[str, int]]:
        """Return (tag key, item number) pairs of an agent's live items, or only of the items in `numbers`."""
        query, values = "SELECT tag, item FROM memory_tags WHERE ci_source = ?", [agent]
        if numbers is not None:
            query += " AND item IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"
            values.append(json.dumps([*numbers]))
        return self._database.rows(query, values)

    def expiring(self, now: datetime) -> list[MemoryItem]:
        """Return the live items that have expired by `now`."""
        tail = "WHERE status = 'live' AND expires IS NOT NULL AND expires <= ? ORDER BY number"
        return self._database.find(_ITEMS, tail, (now,))

    def excess(self, agent: str, most: int, permanent_from: int) -> list[MemoryItem]:
        """Return the agent's live items in excess of `most`, lowest priority and oldest first; none is permanent."""
        tail = (
            "WHERE ci_source = ? AND status = 'live' AND priority < ? AND expires IS NOT NULL "
            "ORDER BY priority, timestamp, number LIMIT ?"
        )
        excess = self.count(ItemFilter(agents=(agent,))) - most
        return self._database.find(_ITEMS, tail, (agent, permanent_from, max(0, excess)))

    def agents(self) -> list[str]:
        """Return the agents that have items, live or not, at the cost of one index lookup per agent."""
        following = "SELECT min(ci_source) FROM memory_items"
        query = (
            f"WITH RECURSIVE found (agent) AS ({following} UNION ALL "
            f"SELECT ({following} WHERE ci_source > agent) FROM found WHERE agent IS NOT NULL) "
            "SELECT agent FROM found WHERE agent IS NOT NULL"
        )
        return [agent for (agent,) in self._database.rows(query)]

    def statistics(self, agent: str | None = None) -> CatalogStatistics:
        """Return totals over the live items of one agent, or of all agents."""
        condition, values = matching({"status = ?": "live", "ci_source = ?": agent})
        query = f"SELECT count(*), coalesce(sum(tokens), 0), min(timestamp) FROM memory_items {condition}"
        count, tokens, oldest = self._database.rows(query, values)[0]
        return CatalogStatistics(
            total_memories=count,
            total_tokens=tokens,
            oldest_memory=None if oldest is None else from_microseconds(oldest),
            last_cleanup=self.last_cleanup(),
        )

    def last_cleanup(self) -> datetime | None:
        """Return the time of the last clean-up, None if there was none."""
        return None if (cleaned := self._state(_CLEANUP)) is None else from_microseconds(cleaned)

    def note_cleanup(self, now: datetime) -> None:
        """Record the time of a clean-up."""
        self._database.write(_NAME, _SET, (_CLEANUP, now))

    def purge(self, items: Sequence[MemoryItem]) -> None:
        """Permanently erase the text, tags and references of items; their rows stay, so no id is reused.

        References to operations also stay, so that an orchestration is not categorised again.
        """
        nothing = {"summary": "", "content": "", "tags": (), "tokens": 0, "summary_tokens": 0}
        with self.changing():
            for item in items:
                kept = tuple(filter(_OPERATION.fullmatch, item.references))
                item = replace(item, status=ItemStatus.PURGED, references=kept, **nothing)  # type: ignore[arg-type]
                self.replace(item, "", ())

    def put_exchange(self, exchange: Exchange) -> None:
        """Queue an exchange for learning."""
        self._database.write("learn", _EXCHANGES.insert(), _EXCHANGES.values(exchange))

    def exchanges(self, limit: int | None = None, *, failed: bool = False) -> list[Exchange]:
        """Return the queued exchanges that have attempts left, or those that have failed too often, oldest first."""
        tail = f"WHERE attempts {'>=' if failed else '<'} ? ORDER BY id LIMIT ?"
        return self._database.find(_EXCHANGES, tail, (MAX_ATTEMPTS, limit_of(limit)))

    def exchange_done(self, exchange: Exchange) -> bool:
        """Remove a learnt exchange from the queue; False if it was already removed."""
        return self._database.write("learn", "DELETE FROM exchanges WHERE id = ?", (exchange.id,)).rowcount == 1

    def exchange_failed(self, exchange: Exchange, error: str) -> None:
        """Record a failed attempt to learn from an exchange."""
        query = "UPDATE exchanges SET attempts = attempts + 1, error = ? WHERE id = ?"
        self._database.write("learn", query, (error, exchange.id))


class AuditLog(Stored):
    """Stores the audit trail. Entries never change; entries older than the retention time are removed."""

    def add(self, entries: Sequence[AuditEntry]) -> None:
        """Append entries, within the current transaction if there is one."""
        self._database.write_all("audit", _AUDIT.insert(), map(_AUDIT.values, entries))

    def entries(self, where: AuditFilter) -> list[AuditEntry]:
        """Return the entries that match a filter, newest first."""
        condition, values = matching(
            {
                "agent = ?": where.agent,
                "call = ?": where.call,
                "outcome = ?": where.outcome,
                "time >= ?": where.since,
                "EXISTS (SELECT 1 FROM json_each(items) WHERE value = ?)": where.item,
            }
        )
        tail = f"{condition} ORDER BY time DESC, id DESC LIMIT ?"  # reads are stored later than they happened
        return self._database.find(_AUDIT, tail, [*values, limit_of(where.limit)])

    def injections(self, agent: str | None, since: datetime | None) -> list[InjectedItem]:
        """Count injections per agent and item, most frequent first within each agent; see `InjectedItem`."""
        conditions = {"agent = ?": agent, "time >= ?": since, "call IN (?)": ["inject", *_USES]}
        condition, values = matching(conditions)
        query = "SELECT agent, call, items, tokens FROM audit"
        lengths = dict(self._database.rows("SELECT id, tokens FROM memory_items"))
        asked: Counter[str] = Counter()
        given: Counter[str] = Counter()
        found: dict[tuple[str, str], list[float]] = {}  # injections, tokens, injections since the item was last used
        for whose, call, listed, tokens in self._database.rows(f"{query} {condition} ORDER BY id", values):
            items = json.loads(listed)
            if call != "inject":
                for item in items:
                    found.get((whose, item), [0, 0, 0])[2] = 0
                continue
            asked[whose] += 1
            given[whose] += tokens
            part = tokens / max(1, sum(max(1, lengths.get(item, 1)) for item in items))
            for item in items:
                figures = found.setdefault((whose, item), [0, 0, 0])
                figures[0] += 1
                figures[1] += part * max(1, lengths.get(item, 1))
                figures[2] += 1
        made = [
            InjectedItem(
                agent=whose, item=item, times=int(times), messages=asked[whose], tokens=round(tokens),
                token_share=tokens / given[whose] if given[whose] else 0.0, unused=int(unused),
            )
            for (whose, item), (times, tokens, unused) in found.items()
        ]  # fmt: skip
        return sorted(made, key=lambda each: (each.agent, -each.times, each.item))

    def forget(self, before: datetime) -> int:
        """Delete the entries older than `before` and return their number."""
        return self._database.write("audit", "DELETE FROM audit WHERE time < ?", (before,)).rowcount


def _passing(where: ItemFilter) -> tuple[str, list[object]]:
    words = [*dict.fromkeys(where.text.split())][:_MOST_CLAUSES]
    conditions: dict[str, object] = {
        "1 = ?": 0 if where.agents is not None and not where.agents else None,  # an empty list matches nothing
        "ci_source IN (?)": None if where.agents is None else list(where.agents),
        "type IN (?)": list(where.types),
        "status IN (?)": list(where.statuses),
        "number IN (SELECT item FROM memory_tags WHERE tag IN (?))": list(where.tags),
        "number IN (SELECT item FROM memory_references WHERE reference IN (?))": list(where.references),
        "(expires IS NULL OR expires > ?)": where.live_at and to_microseconds(where.live_at),
    }
    holds = "instr(casefold(summary || ' ' || content), casefold(?)) > 0"
    return matching(conditions, *((holds, word) for word in words))

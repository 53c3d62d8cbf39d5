"""Work items, what they depend on, their counts and their events."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime

from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.adapters.database.rows import Table, matching
from orchestra_mem.adapters.database.work_leaves import NOTHING, leaves, leaves_below, minus, shift_leaves
from orchestra_mem.adapters.database.work_queries import limit_value, listing
from orchestra_mem.core.work.wording import search_text
from orchestra_mem.errors import NotFoundError
from orchestra_mem.work_types import WorkEvent, WorkFilter, WorkItem, WorkKind, WorkProgress, WorkStatus

_NEW_ID = {"id": "nullif(?, 0)"}
_ITEMS = Table(
    "work_items",
    WorkItem,
    read={
        "depends_on": "(SELECT json_group_array(depends_on) FROM "
        "(SELECT depends_on FROM work_dependencies WHERE item = work_items.id ORDER BY depends_on))"
    },
    write=_NEW_ID,
)
_EVENTS = Table("work_events", WorkEvent, write=_NEW_ID)
_BACKLOG = "ORDER BY priority, rank, id"


class SqliteWorkStore:
    """Fulfils `work_types.WorkStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def changing(self, name: str) -> Iterator[None]:
        """Make all that is read and written within one transaction; within another, a part that can fail alone."""
        with self._database.transaction(name) as connection:
            connection.execute("SAVEPOINT change")
            try:
                yield
            except BaseException:
                # After some errors (a full disk is one) SQLite has taken back all by itself, savepoints too.
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK TO change")
                    connection.execute("RELEASE change")
                raise
            connection.execute("RELEASE change")

    def add(self, item: WorkItem) -> WorkItem:
        """Store a new item; it gets the next id."""
        text = search_text(item.title, item.description)
        with self._database.transaction("work") as connection:
            added = self._database.write("work", _ITEMS.insert("folded"), [*_ITEMS.values(item), text])
            stored = replace(item, id=int(added.lastrowid or 0))
            self._write("INSERT INTO work_texts (rowid, folded) VALUES (?, ?)", (stored.id, text))
            self._set_dependencies((), stored)
            self._count(stored, 1)
            shift_leaves(connection, stored.parent, leaves(stored.status, NOTHING))
        return stored

    def replace(self, before: WorkItem, after: WorkItem) -> None:
        """Store an item as it is now; `before` is as it stood."""
        old, new = (search_text(each.title, each.description) for each in (before, after))
        with self._database.transaction("work") as connection:
            self._write(_ITEMS.update("folded"), [*_ITEMS.values(after), new])
            if old != new:
                self._write(
                    "INSERT INTO work_texts (work_texts, rowid, folded) VALUES ('delete', ?, ?)", (after.id, old)
                )
                self._write("INSERT INTO work_texts (rowid, folded) VALUES (?, ?)", (after.id, new))
            self._set_dependencies(before.depends_on, after)
            if before.status is not after.status:
                self._count(before, -1)
                self._count(after, 1)
            if (before.status, before.parent) != (after.status, after.parent):
                below = leaves_below(connection, after.id)
                shift_leaves(connection, before.parent, minus(NOTHING, leaves(before.status, below)))
                shift_leaves(connection, after.parent, leaves(after.status, below))

    def _set_dependencies(self, before: Sequence[int], item: WorkItem) -> None:
        gone, new = set(before) - set(item.depends_on), set(item.depends_on) - set(before)
        self._database.write_all(
            "work",
            "DELETE FROM work_dependencies WHERE item = ? AND depends_on = ?",
            [(item.id, each) for each in gone],
        )
        self._database.write_all(
            "work", "INSERT INTO work_dependencies VALUES (?, ?)", [(item.id, each) for each in new]
        )

    def _count(self, item: WorkItem, change: int) -> None:
        self._write(
            "INSERT INTO work_counts VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
            (item.kind, item.status, change),
        )

    def _write(self, query: str, values: Sequence[object]) -> None:
        self._database.write("work", query, values)

    def add_events(self, events: Sequence[WorkEvent]) -> None:
        """Store events; each gets the next id."""
        self._database.write_all("work", _EVENTS.insert(), map(_EVENTS.values, events))

    def item(self, item_id: int) -> WorkItem:
        """One item by its id.

        Raises:
            NotFoundError: there is none.
        """
        found = self._database.find("reading a work item", _ITEMS, "WHERE id = ?", (item_id,))
        if not found:
            raise NotFoundError(f"there is no work item #{item_id}; `orchestra-mem work` lists them")
        return found[0]

    def items(self, where: WorkFilter) -> list[WorkItem]:
        """The items that pass a filter, in the order of the backlog."""
        with self._database.reading("listing work items") as connection:
            ids, values = listing(connection, where)
            tail = f"WHERE id IN (SELECT id FROM ({ids})) {_BACKLOG}"
            return self._database.find("listing work items", _ITEMS, tail, values)

    def events(
        self, *, item: int | None = None, operation: int | None = None, after: int = 0, limit: int | None = None
    ) -> list[WorkEvent]:
        """Events in the order of their ids, of one item or one operation if given; of more than `limit` the newest."""
        condition, values = matching({"id > ?": after, "item = ?": item, "operation = ? AND operation > 0": operation})
        tail = f"{condition} ORDER BY id DESC LIMIT ?"
        return self._database.find("listing events of work", _EVENTS, tail, [*values, limit_value(limit)])[::-1]

    def last_event(self) -> int:
        """The id of the newest event, 0 where there is none."""
        query = "SELECT coalesce(max(id), 0) FROM work_events"
        return int(self._database.value("looking for events of work", query))

    def attribute(self, events: Sequence[int], operation: int) -> None:
        """Give events the operation that they came from."""
        self._database.write_all(
            "work", "UPDATE work_events SET operation = ? WHERE id = ?", [(operation, event) for event in events]
        )

    def unattributed(self, until: datetime) -> list[WorkEvent]:
        """Events without an operation that are no younger than `until`, oldest first."""
        tail = "WHERE operation = 0 AND time <= ? ORDER BY id"
        return self._database.find("listing events of work", _EVENTS, tail, (until,))

    def counts(self) -> dict[WorkKind, dict[WorkStatus, int]]:
        """How many items there are of each kind and status; every kind and status is there."""
        found = {kind: dict.fromkeys(WorkStatus, 0) for kind in WorkKind}
        query = "SELECT kind, status, count FROM work_counts"
        for kind, status, count in self._database.rows("counting work items", query):
            found[WorkKind(kind)][WorkStatus(status)] = count
        return found

    def progress(self, item_id: int) -> WorkProgress:
        """Say how many leaves are below an item, what is cancelled left out with all below it."""
        with self._database.reading("reading progress") as connection:
            done, total = leaves_below(connection, item_id)
        return WorkProgress(done=done, total=total)

    def blockers(self, item_id: int) -> list[WorkItem]:
        """What an item depends on and that is neither done nor cancelled, in the order of the backlog."""
        tail = (
            "WHERE id IN (SELECT depends_on FROM work_dependencies WHERE item = ?) "
            f"AND status NOT IN ('done', 'cancelled') {_BACKLOG}"
        )
        return self._database.find("reading what an item waits for", _ITEMS, tail, (item_id,))

    def waiting(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """Who waits for these, as pairs of who waits and whom for: what depends on them, and their parents."""
        query = (
            "SELECT item, depends_on FROM work_dependencies WHERE depends_on IN (SELECT value FROM json_each(:ids)) "
            "UNION ALL SELECT parent, id FROM work_items WHERE id IN (SELECT value FROM json_each(:ids)) "
            "AND parent IS NOT NULL"
        )
        return self._database.rows("reading what waits", query, {"ids": [*ids]})

    def last_rank(self, priority: int) -> float:
        """The highest rank of a priority, 0 where it has no items."""
        query = "SELECT max(rank) FROM work_items WHERE priority = ?"
        return float(self._database.value("reading a rank", query, (priority,)) or 0.0)

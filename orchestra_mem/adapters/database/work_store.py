"""Work items, what they depend on, their counts and their events."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.adapters.database.work_leaves import NOTHING, leaves, leaves_below, minus, shift_leaves
from orchestra_mem.adapters.database.work_queries import MAX_ID, limit_value, listing
from orchestra_mem.core.work.wording import search_text
from orchestra_mem.errors import NotFoundError
from orchestra_mem.serialize import dump_json, from_microseconds, load_json, to_microseconds
from orchestra_mem.types import Author
from orchestra_mem.work_types import WorkEvent, WorkFilter, WorkItem, WorkKind, WorkProgress, WorkStatus

_IDS_AT_ONCE = 500
_COLUMNS = (
    "kind title status priority rank parent assignee created changed started finished acceptance description folded"
).split()
_ITEM = (
    "SELECT w.id, w.kind, w.title, w.status, w.priority, w.rank, w.parent, w.assignee, w.created, w.changed, "
    "w.started, w.finished, w.acceptance, w.description, "
    "(SELECT group_concat(depends_on) FROM work_dependencies WHERE item = w.id) FROM "
)


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
        with self._database.transaction("work") as connection:
            cursor = connection.execute(
                f"INSERT INTO work_items ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})",
                _values(item),
            )
            stored = replace(item, id=int(cursor.lastrowid or 0))
            connection.execute(
                "INSERT INTO work_texts (rowid, folded) VALUES (?, ?)",
                (stored.id, search_text(item.title, item.description)),
            )
            self._set_dependencies((), stored)
            self._count(stored, 1)
            shift_leaves(connection, stored.parent, leaves(stored.status, NOTHING))
        return stored

    def replace(self, before: WorkItem, after: WorkItem) -> None:
        """Store an item as it is now; `before` is as it stood."""
        with self._database.transaction("work") as connection:
            connection.execute(
                f"UPDATE work_items SET {', '.join(f'{name} = ?' for name in _COLUMNS)} WHERE id = ?",
                (*_values(after), after.id),
            )
            old, new = (search_text(each.title, each.description) for each in (before, after))
            if old != new:
                connection.execute(
                    "INSERT INTO work_texts (work_texts, rowid, folded) VALUES ('delete', ?, ?)", (after.id, old)
                )
                connection.execute("INSERT INTO work_texts (rowid, folded) VALUES (?, ?)", (after.id, new))
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
        with self._database.transaction("work") as connection:
            connection.executemany(
                "DELETE FROM work_dependencies WHERE item = ? AND depends_on = ?", [(item.id, each) for each in gone]
            )
            connection.executemany("INSERT INTO work_dependencies VALUES (?, ?)", [(item.id, each) for each in new])

    def _count(self, item: WorkItem, change: int) -> None:
        with self._database.transaction("work") as connection:
            connection.execute(
                "INSERT INTO work_counts VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
                (item.kind.value, item.status.value, change),
            )

    def add_events(self, events: Sequence[WorkEvent]) -> None:
        """Store events; each gets the next id."""
        with self._database.transaction("work") as connection:
            connection.executemany(
                "INSERT INTO work_events (item, time, author, field, before, after, reason, operation) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        event.item, to_microseconds(event.time), event.author.value, event.field, event.before,
                        event.after, event.reason, event.operation,
                    )
                    for event in events
                ],
            )  # fmt: skip

    def item(self, item_id: int) -> WorkItem:
        """One item by its id.

        Raises:
            NotFoundError: there is none.
        """
        row = None
        if 0 < item_id <= MAX_ID:
            with self._database.reading("reading a work item") as connection:
                row = connection.execute(f"{_ITEM} work_items w WHERE w.id = ?", (item_id,)).fetchone()
        if row is None:
            raise NotFoundError(f"there is no work item #{item_id}; `orchestra-mem work` lists them")
        return _item(row)

    def items(self, where: WorkFilter) -> list[WorkItem]:
        """The items that pass a filter, in the order of the backlog."""
        if max(abs(where.parent or 0), abs(where.blocked_by or 0)) > MAX_ID:
            return []
        with self._database.reading("listing work items") as connection:
            ids, values = listing(connection, where)
            query = f"{_ITEM} ({ids}) page JOIN work_items w ON w.id = page.id ORDER BY w.priority, w.rank, w.id"
            return [_item(row) for row in connection.execute(query, values)]

    def events(
        self, *, item: int | None = None, operation: int | None = None, after: int = 0, limit: int | None = None
    ) -> list[WorkEvent]:
        """Events in the order of their ids, of one item or one operation if given; of more than `limit` the newest."""
        query, values = "SELECT * FROM work_events WHERE id > ?", [after]
        if item is not None:
            query, values = f"{query} AND item = ?", [*values, item]
        if operation is not None:
            query, values = f"{query} AND operation = ? AND operation > 0", [*values, operation]
        if any(abs(value) > MAX_ID for value in values):
            return []
        query = f"{query} ORDER BY id DESC LIMIT ?"
        with self._database.reading("listing events of work") as connection:
            rows = connection.execute(query, (*values, limit_value(limit))).fetchall()
        return [_event(row) for row in reversed(rows)]

    def last_event(self) -> int:
        """The id of the newest event, 0 where there is none."""
        with self._database.reading("looking for events of work") as connection:
            return int(connection.execute("SELECT coalesce(max(id), 0) FROM work_events").fetchone()[0])

    def attribute(self, events: Sequence[int], operation: int) -> None:
        """Give events the operation that they came from."""
        with self._database.transaction("work") as connection:
            connection.executemany(
                "UPDATE work_events SET operation = ? WHERE id = ?", [(operation, event) for event in events]
            )

    def unattributed(self, until: datetime) -> list[WorkEvent]:
        """Events without an operation that are no younger than `until`, oldest first."""
        query = "SELECT * FROM work_events WHERE operation = 0 AND time <= ? ORDER BY id"
        with self._database.reading("listing events of work") as connection:
            return [_event(row) for row in connection.execute(query, (to_microseconds(until),))]

    def counts(self) -> dict[WorkKind, dict[WorkStatus, int]]:
        """How many items there are of each kind and status; every kind and status is there."""
        found = {kind: dict.fromkeys(WorkStatus, 0) for kind in WorkKind}
        with self._database.reading("counting work items") as connection:
            for kind, status, count in connection.execute("SELECT kind, status, count FROM work_counts"):
                found[WorkKind(kind)][WorkStatus(status)] = count
        return found

    def progress(self, item_id: int) -> WorkProgress:
        """Say how many leaves are below an item, what is cancelled left out with all below it."""
        with self._database.reading("reading progress") as connection:
            done, total = leaves_below(connection, item_id)
        return WorkProgress(done=done, total=total)

    def blockers(self, item_id: int) -> list[WorkItem]:
        """What an item depends on and that is neither done nor cancelled, in the order of the backlog."""
        query = (
            f"{_ITEM} work_dependencies d JOIN work_items w ON w.id = d.depends_on "
            "WHERE d.item = ? AND w.status NOT IN ('done', 'cancelled') ORDER BY w.priority, w.rank, w.id"
        )
        with self._database.reading("reading what an item waits for") as connection:
            return [_item(row) for row in connection.execute(query, (item_id,))]

    def waiting(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """Who waits for these, as pairs of who waits and whom for: what depends on them, and their parents."""
        found: list[tuple[int, int]] = []
        with self._database.reading("reading what waits") as connection:
            for start in range(0, len(ids), _IDS_AT_ONCE):
                some = ids[start : start + _IDS_AT_ONCE]
                marks = ", ".join("?" * len(some))
                found += connection.execute(
                    f"SELECT item, depends_on FROM work_dependencies WHERE depends_on IN ({marks}) UNION ALL "
                    f"SELECT parent, id FROM work_items WHERE id IN ({marks}) AND parent IS NOT NULL",
                    (*some, *some),
                )
        return found

    def last_rank(self, priority: int) -> float:
        """The highest rank of a priority, 0 where it has no items."""
        with self._database.reading("reading a rank") as connection:
            row = connection.execute("SELECT max(rank) FROM work_items WHERE priority = ?", (priority,)).fetchone()
        return float(row[0] or 0.0)


def _values(item: WorkItem) -> tuple[object, ...]:
    return (
        item.kind.value, item.title, item.status.value, item.priority, item.rank, item.parent, item.assignee,
        to_microseconds(item.created), to_microseconds(item.changed), _microseconds(item.started),
        _microseconds(item.finished), dump_json([*item.acceptance]), item.description,
        search_text(item.title, item.description),
    )  # fmt: skip


def _microseconds(time: datetime | None) -> int | None:
    return None if time is None else to_microseconds(time)


def _time(value: int | None) -> datetime | None:
    return None if value is None else from_microseconds(value)


def _item(row: Any) -> WorkItem:
    (
        number, kind, title, status, priority, rank, parent, assignee, created, changed, started, finished, acceptance,
        description, depends_on,
    ) = row  # fmt: skip
    notes = load_json(acceptance)
    assert isinstance(notes, list)
    return WorkItem(
        id=number,
        kind=WorkKind(kind),
        title=title,
        created=from_microseconds(created),
        changed=from_microseconds(changed),
        description=description,
        status=WorkStatus(status),
        priority=priority,
        rank=rank,
        parent=parent,
        depends_on=tuple(sorted(map(int, depends_on.split(",")))) if depends_on else (),
        assignee=assignee,
        acceptance=tuple(map(str, notes)),
        started=_time(started),
        finished=_time(finished),
    )


def _event(row: Any) -> WorkEvent:
    number, item, time, author, field, before, after, reason, operation = row
    return WorkEvent(
        id=number,
        item=item,
        time=from_microseconds(time),
        author=Author(author),
        field=field,
        before=before,
        after=after,
        reason=reason,
        operation=operation,
    )

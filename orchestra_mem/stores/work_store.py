"""Store of work items, their dependencies, counts and events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from itertools import product

from orchestra_mem.core.work.wording import search_text, search_words
from orchestra_mem.stores.statements import FreeText, Stored, Table, limit_of, matching
from orchestra_mem.types import Author
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
FREE_TEXT = (
    FreeText("work_items", ("title", "description", "assignee"), json=("acceptance",)),
    FreeText("work_events", ("reason",)),
    FreeText(
        "work_events", ("before", "after"), where="field IN ('title', 'description', 'assignee', 'created', 'note')"
    ),
    FreeText("work_events", json=("before", "after"), where="field = 'acceptance'"),
)
_ORDER = "priority, rank, id"
_BACKLOG = f"ORDER BY {_ORDER}"
_MAX_CLAUSES = 32  # search words with a condition each; further words share one, as a statement's size is limited
# The leaves of the work tree below an item: those done, and all. Cancelled items and all items below them do not count.
_LEAVES = (
    "WITH RECURSIVE below (id, status) AS "
    "(SELECT id, status FROM work_items WHERE parent = ? AND status <> 'cancelled' "
    "UNION ALL SELECT child.id, child.status FROM work_items AS child JOIN below ON child.parent = below.id "
    "WHERE child.status <> 'cancelled') "
    "SELECT coalesce(sum(CASE WHEN status = 'done' THEN 1 ELSE 0 END), 0), count(*) FROM below WHERE NOT EXISTS "
    "(SELECT 1 FROM work_items AS child WHERE child.parent = below.id AND child.status <> 'cancelled')"
)


class WorkStore(Stored):
    """Stores items and events for `StateManager`, which enforces the rules. Safe for several threads and processes."""

    @contextmanager
    def changing(self, name: str) -> Iterator[None]:
        """Run the block in a transaction. A nested block has a savepoint, so that it is rolled back separately."""
        with self._database.transaction(name) as connection:
            connection.execute("SAVEPOINT change")
            try:
                yield
            except BaseException:
                # After some errors, such as a full disk, the database has already rolled back, savepoints included.
                with suppress(self._database.errors):
                    connection.execute("ROLLBACK TO change")
                    connection.execute("RELEASE change")
                raise
            connection.execute("RELEASE change")

    def add(self, item: WorkItem) -> WorkItem:
        """Store a new item under the next id."""
        text = search_text(item.title, item.description)
        with self._database.transaction("work"):
            values = _ITEMS.values(item, folded=text)
            added = self._database.write("work", f"{_ITEMS.insert('folded')} RETURNING id", values)
            stored = replace(item, id=added.row[0])
            self._set_dependencies((), stored)
            self._count(stored, 1)
        return stored

    def replace(self, before: WorkItem, after: WorkItem) -> None:
        """Overwrite the stored item `before` with `after`."""
        text = search_text(after.title, after.description)
        with self._database.transaction("work"):
            self._database.write("work", _ITEMS.update("folded"), _ITEMS.values(after, folded=text))
            self._set_dependencies(before.depends_on, after)
            if before.status is not after.status:
                self._count(before, -1)
                self._count(after, 1)

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
        self._database.write(
            "work",
            "INSERT INTO work_counts VALUES (?, ?, ?) ON CONFLICT (kind, status) "
            "DO UPDATE SET count = work_counts.count + excluded.count",
            (item.kind, item.status, change),
        )

    def add_events(self, events: Sequence[WorkEvent]) -> None:
        """Store events, each under the next id."""
        self._database.write_all("work", _EVENTS.insert(), map(_EVENTS.values, events))

    def item(self, item_id: int) -> WorkItem:
        """Return one item by its id.

        Raises:
            NotFoundError: No such item exists.
        """
        missing = f"there is no work item #{item_id}; `orchestra-mem work` lists them"
        return self._database.one(_ITEMS, "id = ?", item_id, missing)

    def items(self, where: WorkFilter) -> list[WorkItem]:
        """Return the items that match a filter, in backlog order."""
        ids, values = listing(where)
        return self._database.find(_ITEMS, f"WHERE id IN (SELECT id FROM ({ids}) AS chosen) {_BACKLOG}", values)

    def events(
        self, *, item: int | None = None, operation: int | None = None, after: int = 0, limit: int | None = None
    ) -> list[WorkEvent]:
        """Return events by ascending id, optionally of one item or operation; with a `limit`, the newest ones."""
        condition, values = matching({"id > ?": after, "item = ?": item, "operation = ? AND operation > 0": operation})
        tail = f"{condition} ORDER BY id DESC LIMIT ?"
        return self._database.find(_EVENTS, tail, [*values, limit_of(limit)])[::-1]

    def last_event(self) -> int:
        """Return the id of the newest event, 0 if there is none."""
        return int(self._database.value("SELECT coalesce(max(id), 0) FROM work_events"))

    def attribute(self, events: Sequence[int], operation: int, author: Author | None) -> None:
        """Record the operation that caused the events and, if given, its author."""
        change = "UPDATE work_events SET operation = ?, author = coalesce(?, author) WHERE id = ?"
        self._database.write_all("work", change, [(operation, author, event) for event in events])

    def unattributed(self, until: datetime) -> list[WorkEvent]:
        """Return the events without an operation up to the time `until`, oldest first."""
        tail = "WHERE operation = 0 AND time <= ? ORDER BY id"
        return self._database.find(_EVENTS, tail, (until,))

    def counts(self) -> dict[WorkKind, dict[WorkStatus, int]]:
        """Return the number of items of every kind and status, including zeros."""
        found = {kind: dict.fromkeys(WorkStatus, 0) for kind in WorkKind}
        query = "SELECT kind, status, count FROM work_counts"
        for kind, status, count in self._database.rows(query):
            found[WorkKind(kind)][WorkStatus(status)] = count
        return found

    def progress(self, item_id: int) -> WorkProgress:
        """Return the number of done leaves and of all leaves below an item, without cancelled subtrees."""
        done, total = self._database.rows(_LEAVES, (item_id,))[0]
        return WorkProgress(done=done, total=total)

    def blockers(self, item_id: int) -> list[WorkItem]:
        """Return the open items that an item depends on, in backlog order."""
        tail = (
            "WHERE id IN (SELECT depends_on FROM work_dependencies WHERE item = ?) "
            f"AND status NOT IN ('done', 'cancelled') {_BACKLOG}"
        )
        return self._database.find(_ITEMS, tail, (item_id,))

    def waiting(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """Return (waiting item, awaited item) pairs for the awaited `ids`: their dependents and parents wait."""
        query = (
            "WITH wanted AS (SELECT CAST(value AS BIGINT) AS id FROM json_each(?)) "
            "SELECT item, depends_on FROM work_dependencies WHERE depends_on IN (SELECT id FROM wanted) UNION ALL "
            "SELECT parent, id FROM work_items WHERE id IN (SELECT id FROM wanted) AND parent IS NOT NULL"
        )
        return self._database.rows(query, ([*ids],))

    def last_rank(self, priority: int) -> float:
        """Return the highest rank within a priority, 0 if no item has the priority."""
        query = "SELECT max(rank) FROM work_items WHERE priority = ?"
        return float(self._database.value(query, (priority,)) or 0.0)


def listing(where: WorkFilter) -> tuple[str, list[object]]:
    """Return a query and its values; the query yields (priority, rank, id) of matching items in backlog order.

    If an index applies and not all its rows are wanted, the query is a union with one part for each kind and status:
    the index yields each part in backlog order, and SQLite merges the parts only as far as `limit`.
    """
    words = search_words(where.text)
    holding = [("instr(folded, ?) > 0", word) for word in words[:_MAX_CLAUSES]]
    more_words = json.dumps(words[_MAX_CLAUSES:]) if words[_MAX_CLAUSES:] else None
    conditions: dict[str, object] = {
        "parent = ?": where.parent or None,
        "parent IS NULL AND 1 = ?": 1 if where.parent == 0 else None,
        "assignee = ?": where.assignee,
        "id IN (SELECT item FROM work_dependencies WHERE depends_on = ?)": where.blocked_by,
        "NOT EXISTS (SELECT 1 FROM json_each(?) WHERE instr(folded, value) = 0)": more_words,
    }
    leads = {
        "parent": where.parent is not None,
        "assignee": where.assignee is not None,
        "status": bool(where.kinds or where.statuses),
    }
    index = next((name for name, is_given in leads.items() if is_given), "")
    if where.blocked_by is not None or not index or (where.limit is None and not leads["status"]):
        of = {"kind IN (?)": [*where.kinds], "status IN (?)": [*where.statuses]}
        condition, values = matching(of | conditions, *holding)
        return f"SELECT {_ORDER} FROM work_items{condition} {_BACKLOG} LIMIT ?", [*values, limit_of(where.limit)]
    chosen = product(dict.fromkeys(where.kinds or WorkKind), dict.fromkeys(where.statuses or WorkStatus))
    parts = [matching({"kind = ?": kind, "status = ?": status} | conditions, *holding) for kind, status in chosen]
    rows = f"SELECT {_ORDER} FROM work_items INDEXED BY work_items_{index}"
    query = " UNION ALL ".join(f"{rows}{condition}" for condition, _ in parts)
    each_value = [value for _, values in parts for value in values]
    return f"{query} {_BACKLOG} LIMIT ?", [*each_value, limit_of(where.limit)]

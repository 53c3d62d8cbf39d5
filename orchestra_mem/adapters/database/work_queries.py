"""Which work items are wanted, as SQL that an index answers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from itertools import islice, product

from orchestra_mem.core.work.wording import search_words
from orchestra_mem.work_types import WorkFilter, WorkKind, WorkStatus

_ORDER = "priority, rank, id"
# Up to so many texts are looked up one by one and sorted; more of them lie so close together in the backlog that the
# first are soon come by there.
_RARE = 1_000
# What a query can hold of an absurdly long search. The index then gives too many, and each text is looked at anyway.
_MAX_THREES = 64
_MAX_CLAUSES = 32


def listing(connection: sqlite3.Connection, where: WorkFilter) -> tuple[str, list[object]]:
    """A query for the ids that pass a filter, the first of the backlog first, with its values."""
    led = where.parent is not None or where.assignee is not None or where.kinds or where.statuses
    match = _rare(connection, where.text)
    if match or where.blocked_by is not None or not led:
        query, values = _one_pass(where, match)
    else:
        query, values = _by_kind_and_status(where)
    return f"{query} ORDER BY {_ORDER} LIMIT ?", [*values, limit_value(where.limit)]


def limit_value(limit: int | None) -> int:
    """A limit as SQLite takes it: -1 for none."""
    return -1 if limit is None else max(limit, 0)


def _rare(connection: sqlite3.Connection, text: str) -> str:
    """What the index of texts is asked for, empty where going along the backlog finds enough sooner."""
    match = " AND ".join(islice(_threes(text), _MAX_THREES))
    if not match:
        return ""
    found = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM work_texts WHERE work_texts MATCH ? LIMIT ?)", (match, _RARE + 1)
    ).fetchone()[0]
    return match if found <= _RARE else ""


def _threes(text: str) -> Iterator[str]:
    """All runs of three characters in the words of a search, quoted: where a word is, they are."""
    for word in search_words(text):
        for start in range(len(word) - 2):
            yield '"' + word[start : start + 3].replace('"', '""') + '"'


def _one_pass(where: WorkFilter, match: str) -> tuple[str, list[object]]:
    """All in one go: along the backlog, along what depends on one item, or along what the index of texts gives."""
    clauses, values = _conditions(where)
    for column, wanted in (("kind", where.kinds), ("status", where.statuses)):
        if wanted:
            clauses.append(f"{column} IN ({', '.join('?' * len(wanted))})")
            values += [each.value for each in wanted]
    source = "work_items"
    if match:
        # A cross join is made in the order that it is written in.
        source = "(SELECT rowid AS found FROM work_texts WHERE work_texts MATCH ?) CROSS JOIN work_items ON id = found"
        values.insert(0, match)
    condition = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    return f"SELECT {_ORDER} FROM {source}{condition}", values


def _by_kind_and_status(where: WorkFilter) -> tuple[str, list[object]]:
    """A part for each kind and status: an index has each in order, and SQLite merges them as far as `limit` goes."""
    clauses, shared = _conditions(where)
    index = "status"
    if where.assignee is not None:
        index = "assignee"
    if where.parent is not None:
        index = "parent"
    parts: list[str] = []
    values: list[object] = []
    kinds, statuses = dict.fromkeys(where.kinds or WorkKind), dict.fromkeys(where.statuses or WorkStatus)
    for kind, status in product(kinds, statuses):
        condition = " AND ".join(["kind = ?", "status = ?", *clauses])
        parts.append(f"SELECT {_ORDER} FROM work_items INDEXED BY work_items_{index} WHERE {condition}")
        values += [kind.value, status.value, *shared]
    return " UNION ALL ".join(parts), values


def _conditions(where: WorkFilter) -> tuple[list[str], list[object]]:
    clauses: list[str] = []
    values: list[object] = []
    if where.parent is not None:
        clauses.append("parent = ?" if where.parent else "parent IS NULL")
        values += [where.parent] if where.parent else []
    if where.assignee is not None:
        clauses.append("assignee = ?")
        values.append(where.assignee)
    if where.blocked_by is not None:
        clauses.append("id IN (SELECT item FROM work_dependencies WHERE depends_on = ?)")
        values.append(where.blocked_by)
    words = search_words(where.text)
    if len(words) > _MAX_CLAUSES:
        clauses.append("NOT EXISTS (SELECT 1 FROM json_each(?) WHERE NOT instr(folded, value))")
        return clauses, [*values, json.dumps(words)]
    clauses += ["instr(folded, ?)"] * len(words)
    return clauses, [*values, *words]

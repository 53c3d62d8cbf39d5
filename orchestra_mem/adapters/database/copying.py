"""Copy all that one database keeps into another, and make sure of it row by row."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.adapters.database.statements import SqlDatabase
from orchestra_mem.errors import StorageError

_AT_ONCE = 1_000
# What is a database's own: which documents are copies of those that it has, and that the memory was moved away.
_NOT_COPIED = {
    "project_keys": "name NOT IN ('working copy', 'moved')",
    "shared_files": "1 = 0",
    "write_leases": "1 = 0",
}
_ALTERED = "copy: what arrived in {} is not what was sent; nothing has been copied"
_TAKEN = (
    "copy: the target has another memory already: there is something else in its {}. Name another schema or folder, "
    "or remove that memory first where nobody wants it: `DROP SCHEMA … CASCADE` in psql, or obra.db with obra.db-wal"
)


class Copied(NamedTuple):
    """How many rows there were, and a digest of them all, the same on both sides."""

    rows: int
    digest: str


def copy_database(source: SqlDatabase, target: SqlDatabase, *, on_table: Callable[[str, int], None]) -> Copied:
    """Copy every table within one transaction: whatever ends it early leaves the target as it was.

    Args:
        source: it is only read; within a transaction or a snapshot of the caller's, so that it holds still.
        target: it has the same tables; in each there is nothing, or the same as in the source.
        on_table: told each table, with the number of its rows, before it is copied.

    Raises:
        StorageError: something else stands in the target, or a row is not there as it was.
    """
    rows, digest = 0, hashlib.sha256()
    with target.transaction("copy") as connection:
        for table, columns in source.tables().items():
            is_there = next(_rows(target, table, columns), None) is not None
            count = int(source.value("copy", f"SELECT count(*) FROM {table} WHERE {_copied(table)}"))
            on_table(table, count)
            names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
            sent, arrived = hashlib.sha256(), hashlib.sha256()
            found = _digested(_rows(source, table, columns), sent)
            while part := [*islice(found, _AT_ONCE)]:
                if not is_there:
                    connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", part)
            deque(_digested(_rows(target, table, columns), arrived), maxlen=0)
            if sent.digest() != arrived.digest():
                raise StorageError((_TAKEN if is_there else _ALTERED).format(table))
            rows += count
            digest.update(f"{table} {sent.hexdigest()}\n".encode())
    return Copied(rows, digest.hexdigest())


def copy_to_file(source: SqlDatabase, path: Path, *, on_table: Callable[[str, int], None]) -> Copied:
    """Copy every table into a new SQLite file, which is sound, and whole without other files beside it.

    Raises:
        StorageError: the disk refused, or a row is not there as it was.
    """
    with closing(Database(path, full_sync=True)) as target:
        copied = copy_database(source, target, on_table=on_table)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    with closing(Database(path, read_only=True)) as target:
        if damage := target.check():
            raise StorageError(f"copy: {path} is damaged: {damage}")
    return copied


def _rows(database: SqlDatabase, table: str, columns: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of a table, in the same order of every database: by their number, else by all columns."""
    order = next((name for name in ("number", "id") if name in columns), None) or ", ".join(columns)
    names = ", ".join(f'"{name}"' for name in columns)
    query = f"SELECT {names} FROM {table} WHERE {_copied(table)} ORDER BY {order} LIMIT ? OFFSET ?"
    at = 0
    while part := database.rows("copy", query, (_AT_ONCE, at)):
        yield from part
        at += len(part)


def _copied(table: str) -> str:
    """The condition of the rows that are copied."""
    return _NOT_COPIED.get(table, "1 = 1")


def _digested(rows: Iterator[tuple[Any, ...]], digest: hashlib._Hash) -> Iterator[tuple[Any, ...]]:
    """Pass rows on, and take them into a digest on the way."""
    for row in rows:
        digest.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
        yield row

"""Go through all that a database keeps: copy it into another, or put other texts in the place of its own."""

from __future__ import annotations

import hashlib
import json
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
from orchestra_mem.serialize import dump_json
from orchestra_mem.types import Json

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


Change = Callable[[Json], Json]

# What tells texts that an editor may still have open: packed, and made again with the next write.
_PACKED = "documents_left"
_TAGS = "memory_tags"


class StoredText(NamedTuple):
    """A text of a table's row, as JSON where the column holds that; `place` names it for people."""

    table: str
    key: str
    column: str
    row: int | str
    value: Json
    is_json: bool

    @property
    def place(self) -> str:
        """The table, the row and the column."""
        return f"{self.table} {self.row}, {self.column}"


def stored_texts(database: SqlDatabase) -> Iterator[StoredText]:
    """Give every text of every table, row by row."""
    for table, columns in database.tables().items():
        key = next((name for name in ("number", "id", "name") if name in columns), None)
        texts = [name for name, is_text in columns.items() if is_text]
        if key is None or not texts:
            continue
        names = ", ".join(f'"{name}"' for name in (key, *texts))
        for row, *values in database.rows("reading all texts", f"SELECT {names} FROM {table} ORDER BY {key}"):
            for column, value in zip(texts, values, strict=True):
                if value:
                    found, is_json = _parsed(value)
                    yield StoredText(table, key, column, row, found, is_json)


def rewrite(database: SqlDatabase, change: Change) -> int:
    """Put the changed texts in the place of all, in one transaction; how many that were. Nothing of the old stays.

    What editors may have opened before is forgotten with it: it is packed, and only serves to merge what they save.
    """
    count = 0
    with database.transaction("redact") as connection:
        for text in list(stored_texts(database)):
            changed = change(text.value)
            if changed != text.value:
                stored = dump_json(changed) if text.is_json else changed
                query = f'UPDATE {text.table} SET "{text.column}" = ? WHERE {text.key} = ?'
                connection.execute(query, (stored, text.row))
                count += 1
        for (tag,) in connection.execute(f"SELECT DISTINCT tag FROM {_TAGS}").fetchall():
            if change(tag) != tag:
                connection.execute(f"DELETE FROM {_TAGS} WHERE tag = ?", (tag,))
        if count:
            connection.execute(f"DELETE FROM {_PACKED}")
    if count:
        database.compact()
    return count


def _parsed(value: str) -> tuple[Json, bool]:
    if value[:1] in '{["':
        try:
            return json.loads(value), True
        except (ValueError, RecursionError):
            pass
    return value, False

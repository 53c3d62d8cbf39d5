"""Operations on an entire database: copying it to another database, and searching or rewriting its texts."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.core.catalog.tags import tag_key
from orchestra_mem.core.documents.markdown import with_changed_words, words_of_document
from orchestra_mem.core.work.wording import search_text
from orchestra_mem.errors import StorageError
from orchestra_mem.serialize import dump_json
from orchestra_mem.stores import FREE_TEXT, CatalogStore, SqlDatabase
from orchestra_mem.stores.ledger import unpack_text
from orchestra_mem.stores.statements import FreeText
from orchestra_mem.types import Json

_AT_ONCE = 1_000
# Conditions for the rows to copy, for tables with data of one database only, such as the mark of a moved memory.
_NOT_COPIED = {
    "project_keys": "name NOT IN ('working copy', 'moved', 'arriving')",
    "shared_files": "1 = 0",
    "write_leases": "1 = 0",
}
_ALTERED = "copy: the rows of table {} differ from the source after copying; nothing was copied"
_TAKEN = (
    "copy: the target already contains another memory: its table {} has other rows. Choose another schema or folder, "
    "or delete that memory first if nobody needs it: `DROP SCHEMA … CASCADE` in psql, or obra.db with obra.db-wal"
)


class Copied(NamedTuple):
    """The number of copied rows, and the SHA-256 of all rows in hex, which is equal in source and target."""

    rows: int
    digest: str


def copy_database(source: SqlDatabase, target: SqlDatabase, *, on_table: Callable[[str, int], None]) -> Copied:
    """Copy every table in one transaction, so that an interruption leaves the target unchanged.

    Args:
        source: Database to read. The caller holds a transaction or snapshot, so that its content does not change.
        target: Database with the same tables, each of them empty or equal to the source's.
        on_table: Called with each table's name and number of rows, before the table is copied.

    Raises:
        StorageError: A table of the target has other content, or rows differ after the copy.
    """
    rows, digest = 0, hashlib.sha256()
    with target.transaction("copy") as connection:
        for table, columns in source.tables().items():
            is_there = next(_rows(target, table, columns), None) is not None
            count = int(source.value(f"SELECT count(*) FROM {table} WHERE {_copied(table)}"))
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
    """Copy every table to a new SQLite file without a write-ahead log, and check the file's integrity.

    Raises:
        StorageError: The disk refused, rows differ after the copy, or the new file is damaged.
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
    """Yield a table's copied rows in an order that all databases share: by number or id, else by all columns."""
    keys = next(([name] for name in ("number", "id") if name in columns), [*columns])
    names, order = (", ".join(f'"{name}"' for name in some) for some in (columns, keys))
    after, values = "1 = 1", list[Any]()
    # Pages begin behind the last row: an OFFSET would read all earlier rows again.
    while part := database.rows(
        f"SELECT {names} FROM {table} WHERE {_copied(table)} AND {after} ORDER BY {order} LIMIT ?", (*values, _AT_ONCE)
    ):
        yield from part
        after = f"({order}) > ({', '.join('?' * len(keys))})"
        values = [part[-1][[*columns].index(name)] for name in keys]


def _copied(table: str) -> str:
    """Return the SQL condition for the rows of a table that are copied."""
    return _NOT_COPIED.get(table, "1 = 1")


def _digested(rows: Iterator[tuple[Any, ...]], digest: hashlib._Hash) -> Iterator[tuple[Any, ...]]:
    """Yield the rows unchanged, adding each to the digest."""
    for row in rows:
        digest.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
        yield row


Change = Callable[[Json], Json]

# Compressed former texts of documents, as merge bases for open editors; each write adds one.
PACKED = "documents_left"
_DOCUMENTS = "shared_files"


class StoredText(NamedTuple):
    """A free text in a row of a table: `value` has its words. `key`, `row` and `stored` identify the row."""

    free: FreeText
    key: str
    column: str
    row: int | str
    stored: str
    value: Json

    @property
    def place(self) -> str:
        """The table, row and column, as shown to people."""
        return f"{self.free.table} {self.row}, {self.column}"

    def with_words(self, words: Any) -> str:
        """Return the text to store if `value` becomes `words`."""
        if self.column not in self.free.json:
            return str(words)
        if self.free.keys:
            known = json.loads(self.stored)
            words = known | {name: word for name, word in zip(self.free.keys, words, strict=True) if name in known}
        return dump_json(words)


def stored_texts(database: SqlDatabase) -> Iterator[StoredText]:
    """Yield the non-empty texts of all columns that hold words of people or agents."""
    tables = database.tables()
    for free in FREE_TEXT:
        texts = (*free.plain, *free.json)
        key = next(name for name in ("number", "id", "name", "item", "summary") if name in tables[free.table])
        names = ", ".join(f'"{name}"' for name in (key, *texts))
        for row, *values in database.rows(f"SELECT {names} FROM {free.table} WHERE {free.where} ORDER BY {key}"):
            for column, stored in zip(texts, values, strict=True):
                if stored:
                    yield StoredText(free, key, column, row, stored, _words(stored, free, column))


def _words(stored: str, free: FreeText, column: str) -> Json:
    """Return the words in a column: of JSON its value, or the list of the values of `keys`; of a document its words."""
    if column not in free.json:
        return words_of_document(stored) if free.table == _DOCUMENTS else stored
    value = json.loads(stored)
    return [value.get(key) for key in free.keys] if free.keys else value


def former_texts(database: SqlDatabase) -> Iterator[tuple[int, str | None]]:
    """Yield the number and the text of each former text of a document; None for a damaged one."""
    for number, packed in database.rows(f"SELECT id, text FROM {PACKED} ORDER BY id"):
        try:
            yield number, unpack_text(packed)
        except zlib.error:
            yield number, None


def rewrite(database: SqlDatabase, change: Change) -> int:
    """Apply `change` to the words of people and agents in one transaction; return the number of changed texts.

    Shared documents are skipped: they need a new revision, which the document store writes. A former text of a document
    whose words it would change is deleted. The old texts remain in the file until it is compacted.
    """
    count = 0
    with database.transaction("redact") as connection:
        for text in [each for each in stored_texts(database) if each.free.table != _DOCUMENTS]:
            changed = change(text.value)
            if changed != text.value:
                query = f'UPDATE {text.free.table} SET "{text.column}" = ? WHERE {text.key} = ? AND "{text.column}" = ?'
                connection.execute(query, (text.with_words(changed), text.row, text.stored))
                _derive(database, text)
                count += 1
        for number, former in former_texts(database):
            if former is None or with_changed_words(former, lambda words: str(change(words))) != former:
                connection.execute(f"DELETE FROM {PACKED} WHERE id = ?", (number,))
                count += 1
    return count


def _derive(database: SqlDatabase, text: StoredText) -> None:
    """Rebuild the search data derived from a changed text: `change` may miss a secret that is in lower case there."""
    if text.free.table == "work_items":
        found = database.rows("SELECT title, description FROM work_items WHERE id = ?", [text.row])[0]
        database.write("redact", "UPDATE work_items SET folded = ? WHERE id = ?", [search_text(*found), text.row])
    elif text.free.table == "must_keeps":  # the next fact brings the index of their words up to date
        database.write("redact", "DELETE FROM must_keep_words WHERE fact = ?", [text.row])
        database.write("redact", "UPDATE must_keeps SET indexed = 0 WHERE id = ?", [text.row])
    elif text.free.table == "memory_items" and text.column in ("tags", "references"):
        catalog = CatalogStore(database)
        for item in catalog.by_number([int(text.row)]):
            catalog.file_item(item, [tag_key(tag) for tag in item.tags])

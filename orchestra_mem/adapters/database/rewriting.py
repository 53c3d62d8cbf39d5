"""Go through every text of a database, and put others in their place: for what must not stay anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

from orchestra_mem.adapters.database.statements import SqlDatabase
from orchestra_mem.serialize import dump_json
from orchestra_mem.types import Json

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

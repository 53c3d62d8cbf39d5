"""Speak to a PostgreSQL server in SQLite's statements and values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import psycopg
from psycopg.adapt import Loader

from orchestra_mem.adapters.database.postgres_dialect import as_postgres
from orchestra_mem.adapters.database.statements import Cursor

# PostgreSQL's texts hold no NUL: this character of private use and a 0 stand for it, and a 1 behind it for itself.
_MARK = "\U00100000"


class _WholeNumber(Loader):
    """Sums of whole numbers are numerics there."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text else int(text)


class _Rows:
    """A cursor whose texts are as they were given."""

    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self._cursor = cursor

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    def fetchone(self) -> Any:
        row = self._cursor.fetchone()
        return row and _given(row)

    def fetchall(self) -> list[Any]:
        return [_given(row) for row in self._cursor.fetchall()] if self._cursor.description else []


class ServerConnection:
    """A connection that takes SQLite's statements and values."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, query: str, values: Any = (), /) -> Cursor:
        """Run a statement."""
        return _Rows(self._connection.execute(*as_postgres(query, _taken(values))))

    def executemany(self, query: str, rows: Iterable[Any], /) -> None:
        """Run a statement for each of several rows."""
        all_values = [_taken(row) for row in rows]
        if all_values:
            statement, _ = as_postgres(query, all_values[0])
            values = [as_postgres(query, each)[1] for each in all_values]
            self._connection.cursor().executemany(statement, values)


def configure(connection: psycopg.Connection[Any]) -> None:
    """Have a connection give numbers as SQLite does."""
    connection.adapters.register_loader("numeric", _WholeNumber)


def _taken(values: Any) -> Any:
    """Values as the server takes them: no truth values where numbers stand, no NUL in texts."""
    if isinstance(values, Mapping):
        return {name: _taken_one(value) for name, value in values.items()}
    return [_taken_one(value) for value in values]


def _taken_one(value: object) -> object:
    if isinstance(value, str):
        if "\x00" in value or _MARK in value:
            return value.replace(_MARK, f"{_MARK}1").replace("\x00", f"{_MARK}0")
        return str(value)
    return int(value) if isinstance(value, bool) else value


def _given(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_given_one(each) if isinstance(each, str) and _MARK in each else each for each in row)


def _given_one(text: str) -> str:
    return text.replace(f"{_MARK}0", "\x00").replace(f"{_MARK}1", _MARK)

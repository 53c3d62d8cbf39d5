"""Run statements against whatever database keeps the tables: what the stores call, and what each database fulfils."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from orchestra_mem.adapters.database.rows import Record, Table, Values, bound


class Written(NamedTuple):
    """What a statement that writes has done: the number of rows that it changed, and the first that it returns."""

    rowcount: int
    row: Any


class Connection(Protocol):
    """One connection, on which the statements of a transaction run. Values are `bound`."""

    def execute(self, query: str, values: Any = (), /) -> Any:
        """Run a statement, and give its cursor."""

    def executemany(self, query: str, rows: Iterable[Any], /) -> object:
        """Run a statement for each of several rows."""


class SqlDatabase(ABC):
    """The tables of a memory. Safe to share between threads; several processes may open the same ones.

    Statements are SQL that SQLite and PostgreSQL read alike, with `?` or `:name` for values. Whoever writes keeps all
    others from writing until the transaction ends, so that numbers are given in the order in which they are committed.
    """

    read_only: bool
    errors: type[Exception]
    """What its connections raise; the database itself raises a `StorageError` for it."""

    @abstractmethod
    def transaction(self, name: str) -> AbstractContextManager[Connection]:
        """Write within one transaction, all or nothing. May be nested: the outermost one commits."""

    @abstractmethod
    def reading(self, name: str) -> AbstractContextManager[Connection]:
        """Read what is committed; within this thread's own transaction, also what that has written."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[None]:
        """Let this thread read one moment of all tables, while others go on writing."""

    @abstractmethod
    def in_transaction(self) -> bool:
        """Return whether this thread is within a transaction of its own."""

    @abstractmethod
    def commit_count(self) -> tuple[int, int]:
        """Return what differs after every commit, by another process or by this one."""

    @abstractmethod
    def can_write_now(self) -> bool:
        """Return whether a write would be done at once, and not wait long for another process."""

    @abstractmethod
    def check(self) -> str | None:
        """Look through all tables; None where they are sound, else the database's words for the fault."""

    @abstractmethod
    def checkpoint(self) -> None:
        """Do now what a record would else have to wait for."""

    @abstractmethod
    def compact(self) -> None:
        """Write all tables anew, so that nothing stays of what was deleted or replaced."""

    @abstractmethod
    def tables(self) -> dict[str, dict[str, bool]]:
        """Name the columns of each table, each with whether it holds text."""

    @abstractmethod
    def refuse_writes(self, words: str) -> None:
        """Refuse with these words whatever any process writes to the tables, until this is called with none."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections; safe to call twice."""

    @property
    @abstractmethod
    def schema_version(self) -> int:
        """The number of the last migration that the tables have seen."""

    @property
    @abstractmethod
    def problem(self) -> str | None:
        """What has happened to the database below this process, in words; None where all is well."""

    def write(self, name: str, query: str, values: Values = ()) -> Written:
        """Run a statement in a transaction of that name, or within the one that is under way."""
        with self.transaction(name) as connection:
            return written(connection.execute(query, bound(values)))

    def write_all(self, name: str, query: str, rows: Iterable[Values]) -> None:
        """Run a statement for each of several rows, all or none."""
        with self.transaction(name) as connection:
            connection.executemany(query, map(bound, rows))

    def rows(self, name: str, query: str, values: Values = ()) -> list[Any]:
        """Give the rows that a query finds."""
        with self.reading(name) as connection:
            found: list[Any] = connection.execute(query, bound(values)).fetchall()
            return found

    def find(self, name: str, table: Table[Record], tail: str = "", values: Values = ()) -> list[Record]:
        """Give the records of a table that a condition or an order leads to."""
        return [table.load(row) for row in self.rows(name, f"{table.select} {tail}", values)]

    def value(self, name: str, query: str, values: Values = ()) -> Any:
        """Give the first value of the first row that a query finds, None where there is none."""
        rows = self.rows(name, query, values)
        return rows[0][0] if rows else None


class Stored:
    """What is kept in some tables of a database."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database


def written(cursor: Any) -> Written:
    """Give what a statement has done; SQLite ends one that returns rows when they are fetched."""
    rows = cursor.fetchall() if cursor.description else []
    return Written(cursor.rowcount, rows[0] if rows else None)


def columns_of(rows: Iterable[tuple[str, str, object]]) -> dict[str, dict[str, bool]]:
    """Put together what `SqlDatabase.tables` gives, of rows of a table, a column, and whether that holds text."""
    tables: dict[str, dict[str, bool]] = {}
    for table, column, is_text in rows:
        tables.setdefault(table, {})[column] = bool(is_text)
    return tables

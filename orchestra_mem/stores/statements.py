"""The database interface that the stores call, and the mapping of records to rows.

`SqlDatabase` is implemented for SQLite and PostgreSQL. `Table` derives statements and conversions from a dataclass.
"""

from __future__ import annotations

import json
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields
from datetime import datetime
from enum import EnumMeta
from operator import attrgetter
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from orchestra_mem.errors import ClosedError, NotFoundError, StorageError, StorageReadOnlyError
from orchestra_mem.ports import WritePoint
from orchestra_mem.serialize import dump_json, from_microseconds, to_microseconds

Values: TypeAlias = Sequence[object] | Mapping[str, object]
Record = TypeVar("Record")

_MOST = 2**63 - 1
_DECODERS: Mapping[str, Callable[[Any], object]] = {"datetime": from_microseconds, "bool": bool, "Json": json.loads}


def bound(values: Values) -> Any:
    """Convert values for SQL: times to microseconds, lists to JSON; clamp integers to 64 bits; make text valid."""
    if isinstance(values, Mapping):
        return {name: _bound(value) for name, value in values.items()}
    return [_bound(value) for value in values]


def _bound(value: object) -> object:
    if isinstance(value, str):
        # Lone surrogates, which SQLite cannot store, become U+FFFD; surrogate pairs are joined.
        return value if value.isascii() else value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, int):
        return value if -_MOST <= value <= _MOST else max(-_MOST, min(value, _MOST))
    if isinstance(value, datetime):
        return to_microseconds(value)
    return dump_json([*value]) if isinstance(value, tuple | list) else value


def limit_of(limit: int | None) -> int:
    """Return the value for a LIMIT clause: the largest integer for None, and 0 for a negative limit."""
    return _MOST if limit is None else max(limit, 0)


def matching(conditions: Mapping[str, object], *more: tuple[str, object]) -> tuple[str, list[object]]:
    """Return a WHERE clause ("" if empty) and its values. A list expands the `?`; None and empty lists are skipped."""
    clauses: list[str] = []
    values: list[object] = []
    for clause, value in (*conditions.items(), *more):
        if isinstance(value, tuple | list):
            if value:
                clauses.append(clause.replace("?", ", ".join("?" * len(value))))
                values += value
        elif value is not None:
            clauses.append(clause)
            values.append(value)
    return f" WHERE {' AND '.join(clauses)}" if clauses else "", values


class FreeText(NamedTuple):
    """Columns of a table that hold words of people or agents. Only they are searched for secrets and rewritten.

    All other columns hold words of the program, such as states, times, digests and names of documents; without these, a
    row could not be read. `plain` columns hold text, `json` columns JSON. `keys`: Keys of a JSON object whose values
    are such words; empty if the entire value is. `where`: SQL condition for the rows in which the columns hold words.
    """

    table: str
    plain: tuple[str, ...] = ()
    json: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    where: str = "1 = 1"


class Table(Generic[Record]):
    """A table whose rows are records of one dataclass: by default, each field is a column of the same name.

    Args:
        name, record: The table's name, and the dataclass.
        read: SQL expressions that read fields, by field name. Such a field is stored only if `write` has it as well.
        write: SQL expressions that store fields, by field name, with `?` for the value.
        but: Names of the dataclass's fields that the table lacks.
    """

    def __init__(
        self,
        name: str,
        record: type[Record],
        *,
        read: Mapping[str, str] | None = None,
        write: Mapping[str, str] | None = None,
        but: Sequence[str] = (),
    ) -> None:
        read, write = read or {}, write or {}
        own = [field for field in fields(record) if field.name not in but]  # type: ignore[arg-type]
        stored = [field for field in own if field.name in write or field.name not in read]
        self._name = name
        self._record = record
        self._names = tuple(field.name for field in own)
        self._decoders = [(field.name, decoder) for field in own if (decoder := _decoder(str(field.type), record))]
        self._get = attrgetter(*(field.name for field in stored))
        self._json = [field.name for field in stored if field.type == "Json"]
        self._marks = {field.name: write.get(field.name, "?").replace("?", f":{field.name}") for field in stored}
        # Quoted, as a field name may be an SQL keyword.
        self.columns = ", ".join(
            f'{read[field.name]} AS "{field.name}"' if field.name in read else f'"{field.name}"' for field in own
        )
        self.select = f"SELECT {self.columns} FROM {name}"

    def insert(self, *more: str) -> str:
        """Return the INSERT statement for a record's `values`, with additional columns."""
        marks = self._marks | {name: f":{name}" for name in more}
        names = ", ".join(f'"{name}"' for name in marks)
        return f"INSERT INTO {self._name} ({names}) VALUES ({', '.join(marks.values())})"

    def insert_from(self, column: str, query: str) -> str:
        """Return the statement that inserts a record's `values` per row of a query; the row fills `column`."""
        names = ", ".join(f'"{name}"' for name in (*self._marks, column))
        return f"INSERT INTO {self._name} ({names}) SELECT {', '.join(self._marks.values())}, {query}"

    def update(self, *more: str, key: str = "id") -> str:
        """Return the UPDATE statement for the row with a record's key; it takes the same values as `insert`."""
        marks = self._marks | {name: f":{name}" for name in more}
        changes = ", ".join(f'"{name}" = {mark}' for name, mark in marks.items() if name != key)
        return f"UPDATE {self._name} SET {changes} WHERE {key} = :{key}"

    def values(self, record: object, **more: object) -> dict[str, object]:
        """Return a record's stored values by column, with the values of additional columns."""
        values = dict(zip(self._marks, self._get(record), strict=True))
        for name in self._json:
            values[name] = dump_json(values[name])
        return values | more

    def load(self, row: Sequence[Any], **more: object) -> Record:
        """Create a record from a row of `columns`, ignoring further columns; `more` are values of other fields."""
        values = {**dict(zip(self._names, row, strict=False)), **more}
        for name, decode in self._decoders:
            if (value := values[name]) is not None:
                values[name] = decode(value)
        return self._record(**values)


def _decoder(annotation: str, record: type) -> Callable[[Any], object] | None:
    kind = annotation.removesuffix(" | None")
    if kind.startswith("tuple["):
        return lambda text: () if text == "[]" else tuple(json.loads(text))
    if kind in _DECODERS:
        return _DECODERS[kind]
    named = getattr(sys.modules[record.__module__], kind, None)
    # A dictionary of the members, as calling the enumeration takes ten times as long.
    return dict(zip(map(str, named), named, strict=True)).__getitem__ if isinstance(named, EnumMeta) else None


class Written(NamedTuple):
    """The result of a write: the number of changed rows, and the first row from RETURNING, or None."""

    rowcount: int
    row: Any


class Connection(Protocol):
    """A database connection that runs the statements of one transaction. Values must have passed through `bound`."""

    def execute(self, query: str, values: Any = (), /) -> Any:
        """Execute a statement and return its cursor."""

    def executemany(self, query: str, rows: Iterable[Any], /) -> object:
        """Execute a statement once for each row."""


class SqlDatabase(ABC):
    """The database of a memory. Safe to share between threads; several processes may open the same database.

    Statements are SQL that both SQLite and PostgreSQL understand, with `?` or `:name` for values. A write transaction
    locks out all other writers until it ends, so that numbers are assigned in commit order.

    Args:
        name: Name of the database in messages.
        write_point: Called before and after each commit.
        read_only: Refuse all writes.
    """

    errors: type[Exception]
    """The driver's exceptions; the methods of this class translate them to `StorageError`."""
    columns_query: str
    """Query for (table, column, whether the column contains text) of this program's tables, in order."""
    schema_version: int
    """The number of the last migration: opening applies it, or refuses."""
    why_read_only = ""
    """Why this user cannot write here, and what to do about it; empty if the caller asked for `read_only`."""

    def __init__(self, name: str, *, write_point: WritePoint | None, read_only: bool) -> None:
        self.read_only = read_only
        self._name = name
        self._tell: WritePoint = write_point or (lambda point: None)
        self._lock = threading.RLock()
        self._current: Connection | None = None  # of the lock holder's transaction or snapshot
        self._closed = False

    @contextmanager
    def transaction(self, name: str) -> Iterator[Connection]:
        """Run the block in a write transaction. Transactions may be nested: the outermost one commits."""
        with self._writing(name):
            if self._current is not None:
                yield self._current
                return
            try:
                with self._begun(name) as self._current:
                    yield self._current
            finally:
                self._current = None
            self._tell(f"{name}.commit.after")

    @contextmanager
    def reading(self, doing: str = "reading") -> Iterator[Connection]:
        """Yield a connection that reads committed data, or the connection of this thread's transaction or snapshot."""
        with self._translated(doing):
            own = self._own_transaction()
            if own is not None:
                yield own
                return
            self._check_open()
            with self._reader() as connection:
                yield connection

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let this thread read a consistent snapshot. Writes by other threads wait; other processes can write."""
        with self._lock, self._translated("reading"):
            self._check_open()
            try:
                with self._snapshot_connection() as self._current:
                    yield
            finally:
                self._current = None

    def in_transaction(self) -> bool:
        """Check whether this thread has an open transaction or snapshot."""
        return self._own_transaction() is not None

    def _own_transaction(self) -> Connection | None:
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._current
        finally:
            self._lock.release()

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        if self.read_only:
            why = self.why_read_only or "`orchestra-mem status` shows why"
            raise StorageReadOnlyError(f"{name}: {self._name}: this memory is read-only; {why}")
        with self._lock, self._translated(name):
            self._check_open()
            yield

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the memory in {self._name} has been closed")

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        try:
            yield
        except self.errors as error:
            raise self._told(error, doing) from error

    @abstractmethod
    def _told(self, error: Any, doing: str) -> StorageError:
        """Translate an exception of the driver."""

    @abstractmethod
    def _begun(self, name: str) -> AbstractContextManager[Connection]:
        """Begin a write transaction; commit it at the end of the block, or roll it back on an error."""

    @abstractmethod
    def _reader(self) -> AbstractContextManager[Connection]:
        """Yield a connection for reading, for exclusive use within the block."""

    @abstractmethod
    def _snapshot_connection(self) -> AbstractContextManager[Connection]:
        """Yield a connection that reads a consistent snapshot."""

    @abstractmethod
    def commit_count(self) -> tuple[int, int]:
        """Return two counters: the first changes when another process commits, the second when this object does."""

    @abstractmethod
    def can_write_now(self) -> bool:
        """Check whether a write would succeed now, without a long wait for another process."""

    @abstractmethod
    def who_writes(self) -> str:
        """Return the process that locks out other writers now, as far as it is known: "process 4711"."""

    @abstractmethod
    def check(self) -> str | None:
        """Check the integrity of all tables; return None if they are sound, else the database's error message."""

    def checkpoint(self) -> None:  # noqa: B027
        """Run a checkpoint now, so that no later write has to; no effect on a server, which runs its own."""

    @abstractmethod
    def compact(self) -> None:
        """Rewrite all tables, so that no deleted or replaced data remain in them."""

    @abstractmethod
    def refuse_writes(self, words: str) -> None:
        """Make every write by any process fail with the message `words`; "" allows writes again."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections; safe to call twice."""

    @property
    def problem(self) -> str | None:
        """Message about a fault with which calls still succeed, such as a deleted log; None if there is no fault."""
        return None

    def write(self, name: str, query: str, values: Values = ()) -> Written:
        """Execute a statement in a new transaction called `name`, or in the open transaction."""
        with self.transaction(name) as connection:
            return written(connection.execute(query, bound(values)))

    def write_all(self, name: str, query: str, rows: Iterable[Values]) -> None:
        """Execute a statement once for each row, in one transaction."""
        with self.transaction(name) as connection:
            connection.executemany(query, map(bound, rows))

    def rows(self, query: str, values: Values = ()) -> list[Any]:
        """Return all rows of a query."""
        with self.reading() as connection:
            found: list[Any] = connection.execute(query, bound(values)).fetchall()
            return found

    def find(self, table: Table[Record], tail: str = "", values: Values = ()) -> list[Record]:
        """Return a table's records; `tail` is the SQL after the table's name: WHERE, ORDER BY, LIMIT."""
        return [table.load(row) for row in self.rows(f"{table.select} {tail}", values)]

    def one(self, table: Table[Record], condition: str, value: object, missing: str) -> Record:
        """Return the record that meets a condition; raise `NotFoundError` with the message `missing` without one."""
        found = self.find(table, f"WHERE {condition}", (value,))
        if not found:
            raise NotFoundError(missing)
        return found[0]

    def value(self, query: str, values: Values = ()) -> Any:
        """Return the first column of a query's first row, None if there is no row."""
        rows = self.rows(query, values)
        return rows[0][0] if rows else None

    def tables(self) -> dict[str, dict[str, bool]]:
        """Return the column names of each table, each mapped to True if the column contains text."""
        tables: dict[str, dict[str, bool]] = {}
        for table, column, is_text in self.rows(self.columns_query):
            tables.setdefault(table, {})[column] = bool(is_text)
        return tables


class Stored:
    """Base class of the stores: records in some tables of a database."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database


def written(cursor: Any) -> Written:
    """Return the result of a write. All rows are fetched, as SQLite ends a RETURNING statement only then."""
    rows = cursor.fetchall() if cursor.description else []
    return Written(cursor.rowcount, rows[0] if rows else None)

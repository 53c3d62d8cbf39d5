"""Run statements against whatever database keeps the tables: what the stores call, and what each database fulfils.

A `Table` makes records rows and rows records: one rule for every table, so that no store spells out its columns.
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

from orchestra_mem.errors import ClosedError, StorageError, StorageReadOnlyError
from orchestra_mem.ports import WritePoint
from orchestra_mem.serialize import dump_json, from_microseconds, load_json, to_microseconds

Values: TypeAlias = Sequence[object] | Mapping[str, object]
Record = TypeVar("Record")

_MOST = 2**63 - 1
_DECODERS: Mapping[str, Callable[[Any], object]] = {"datetime": from_microseconds, "bool": bool, "Json": load_json}


def bound(values: Values) -> Any:
    """Give values as SQLite takes them: times in microseconds, lists as JSON, whole text, integers of 64 bits."""
    if isinstance(values, Mapping):
        return {name: _bound(value) for name, value in values.items()}
    return [_bound(value) for value in values]


def _bound(value: object) -> object:
    if isinstance(value, str):
        return value if value.isascii() else _without_surrogates(value)
    if isinstance(value, int):
        return max(-_MOST, min(value, _MOST))
    if isinstance(value, datetime):
        return to_microseconds(value)
    return dump_json([*value]) if isinstance(value, tuple | list) else value


def _without_surrogates(text: str) -> str:
    """Show bytes that are no UTF-8 as such: SQLite takes no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def limit_of(limit: int | None) -> int:
    """Give a limit as a query takes it; a number that no table reaches for none."""
    return _MOST if limit is None else max(limit, 0)


def matching(conditions: Mapping[str, object], *more: tuple[str, object]) -> tuple[str, list[object]]:
    """Join the conditions whose value is given: with each `?` for a value, or for all of a list."""
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


class Table(Generic[Record]):
    """A table whose rows are records of one dataclass: each field is the column of its name, but for what is told.

    Args:
        name: the table's.
        record: the dataclass.
        read: what a field is read from instead. It is not stored, unless `write` has it too.
        write: what is stored for a field, with `?` for its value.
        but: fields that the table does not have.
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
        # In quotes, as a field may have a name that is a word of SQL.
        self.columns = ", ".join(
            f'{read[field.name]} AS "{field.name}"' if field.name in read else f'"{field.name}"' for field in own
        )
        self.select = f"SELECT {self.columns} FROM {name}"

    def insert(self, *more: str) -> str:
        """Give the statement that stores a record's `values`, and those of more columns."""
        marks = self._marks | {name: f":{name}" for name in more}
        names = ", ".join(f'"{name}"' for name in marks)
        return f"INSERT INTO {self._name} ({names}) VALUES ({', '.join(marks.values())})"

    def insert_from(self, column: str, query: str) -> str:
        """Give the statement that stores a record's `values` for each row of a query, which gives one more column."""
        names = ", ".join(f'"{name}"' for name in (*self._marks, column))
        return f"INSERT INTO {self._name} ({names}) SELECT {', '.join(self._marks.values())}, {query}"

    def update(self, *more: str, key: str = "id") -> str:
        """Give the statement that changes the row with a record's key, for the same values as `insert`."""
        marks = self._marks | {name: f":{name}" for name in more}
        changes = ", ".join(f'"{name}" = {mark}' for name, mark in marks.items() if name != key)
        return f"UPDATE {self._name} SET {changes} WHERE {key} = :{key}"

    def values(self, record: object, **more: object) -> dict[str, object]:
        """Give what is stored of a record by its columns, and more columns with it."""
        values = dict(zip(self._marks, self._get(record), strict=True))
        for name in self._json:
            values[name] = dump_json(values[name])
        return values | more

    def load(self, row: Sequence[Any], **more: object) -> Record:
        """Make a record of a row of `columns`; columns behind those are passed over."""
        values = {**dict(zip(self._names, row, strict=False)), **more}
        for name, decode in self._decoders:
            if (value := values[name]) is not None:
                values[name] = decode(value)
        return self._record(**values)


def _decoder(annotation: str, record: type) -> Callable[[Any], object] | None:
    kind = annotation.removesuffix(" | None")
    if kind.startswith("tuple["):
        return _tuple
    if kind in _DECODERS:
        return _DECODERS[kind]
    named = getattr(sys.modules[record.__module__], kind, None)
    # A table of the members: to call the enumeration takes ten times as long.
    return dict(zip(map(str, named), named, strict=True)).__getitem__ if isinstance(named, EnumMeta) else None


def _tuple(text: str) -> tuple[object, ...]:
    return () if text == "[]" else tuple(json.loads(text))


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

    Args:
        name: what messages call it.
        write_point: told of each commit, before and after.
        read_only: refuse all that writes.
    """

    errors: type[Exception]
    """What its connections raise; the database itself raises a `StorageError` for it."""

    def __init__(self, name: str, *, write_point: WritePoint | None, read_only: bool) -> None:
        self.read_only = read_only
        self._name = name
        self._tell: WritePoint = write_point or (lambda point: None)
        self._lock = threading.RLock()
        self._current: Connection | None = None  # of the transaction or the snapshot of the thread that has the lock
        self._closed = False

    @contextmanager
    def transaction(self, name: str) -> Iterator[Connection]:
        """Write within one transaction, all or nothing. May be nested: the outermost one commits."""
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
    def reading(self, name: str) -> Iterator[Connection]:
        """Read what is committed; within this thread's own transaction, also what that has written."""
        with self._translated(name):
            own = self._own_transaction()
            if own is not None:
                yield own
                return
            self._check_open()
            with self._reader() as connection:
                yield connection

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let this thread read one moment of all tables, while others go on writing."""
        with self._lock, self._translated("reading"):
            self._check_open()
            try:
                with self._moment() as self._current:
                    yield
            finally:
                self._current = None

    def in_transaction(self) -> bool:
        """Return whether this thread is within a transaction of its own."""
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
            raise StorageReadOnlyError(
                f"{name}: {self._name}: this memory may be read and not be written; `orchestra-mem status` says why"
            )
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
        """Give what is raised for one of its connections' errors."""

    @abstractmethod
    def _begun(self, name: str) -> AbstractContextManager[Connection]:
        """Begin to write, commit at the end, and take all back where that fails."""

    @abstractmethod
    def _reader(self) -> AbstractContextManager[Connection]:
        """Give a connection to read with, that nobody else has meanwhile."""

    @abstractmethod
    def _moment(self) -> AbstractContextManager[Connection]:
        """Give a connection that reads one moment of all tables."""

    @abstractmethod
    def commit_count(self) -> tuple[int, int]:
        """Return what differs after every commit, by another process or by this one."""

    @abstractmethod
    def can_write_now(self) -> bool:
        """Return whether a write would be done at once, and not wait long for another process."""

    @abstractmethod
    def check(self) -> str | None:
        """Look through all tables; None where they are sound, else the database's words for the fault."""

    def checkpoint(self) -> None:  # noqa: B027
        """Do now what a record would else have to wait for; nothing where the database does it by itself."""

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
    def problem(self) -> str | None:
        """What has happened to the database below this process, in words; None where the call that meets it tells."""
        return None

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

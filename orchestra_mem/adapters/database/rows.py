"""Records as rows of a table and back: one rule for every table, so that no store spells out its columns."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from enum import EnumMeta
from operator import attrgetter
from typing import Any, Generic, TypeAlias, TypeVar

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

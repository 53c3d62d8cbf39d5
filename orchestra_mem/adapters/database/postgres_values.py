"""Speak to a PostgreSQL server in SQLite's statements and values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.types.string import StrDumperUnknown, TextLoader

from orchestra_mem.adapters.database.postgres_dialect import as_postgres

# PostgreSQL's texts hold no NUL: this character of private use and a 0 stand for it, and a 1 behind it for itself.
_MARK = "\U00100000"


class _TextDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace(_MARK, f"{_MARK}1").replace("\x00", f"{_MARK}0"))


class _TextLoader(TextLoader):
    def load(self, data: Buffer) -> str:
        text = str(super().load(data))
        return text.replace(f"{_MARK}0", "\x00").replace(f"{_MARK}1", _MARK) if _MARK in text else text


class _TruthDumper(Dumper):
    """Truth values stand where numbers do."""

    oid = psycopg.adapters.types["int8"].oid

    def dump(self, obj: bool) -> Buffer | None:
        return b"1" if obj else b"0"


class _WholeNumber(Loader):
    """Sums of whole numbers are numerics there."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text else int(text)


class ServerConnection:
    """A connection that takes SQLite's statements and values."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, query: str, values: Any = (), /) -> psycopg.Cursor[Any]:
        """Run a statement."""
        return self._connection.execute(as_postgres(query), values)

    def executemany(self, query: str, rows: Iterable[Any], /) -> None:
        """Run a statement for each of several rows."""
        self._connection.cursor().executemany(as_postgres(query), rows)


def configure(connection: psycopg.Connection[Any]) -> None:
    """Have a connection take and give values as SQLite does."""
    adapters = connection.adapters
    adapters.register_dumper(str, _TextDumper)
    adapters.register_dumper(bool, _TruthDumper)
    adapters.register_loader("text", _TextLoader)
    adapters.register_loader("numeric", _WholeNumber)

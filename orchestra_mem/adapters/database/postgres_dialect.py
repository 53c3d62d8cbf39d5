"""Translation of SQLite's statements, schema and values to PostgreSQL; no other module handles the differences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.string import StrDumperUnknown, TextLoader

from orchestra_mem.adapters.database.migrations import MIGRATIONS
from orchestra_mem.errors import StorageError

# Created in each new schema: the version table, and counterparts of SQLite's built-in functions.
_PREPARATION: tuple[str, ...] = (
    "CREATE TABLE schema_version (version BIGINT NOT NULL, commits BIGINT NOT NULL)",
    "INSERT INTO schema_version VALUES (0, 0)",
    "CREATE FUNCTION instr(whole TEXT, part TEXT) RETURNS INTEGER LANGUAGE sql IMMUTABLE "
    "AS 'SELECT strpos(whole, part)'",
    "CREATE FUNCTION listed(list TEXT) RETURNS TABLE (value TEXT) LANGUAGE sql IMMUTABLE "
    "AS 'SELECT json_array_elements_text(CAST(list AS JSON))'",
)
# One function for each table: a shared function would plan its query again for every row.
_NUMBERING = (
    "CREATE OR REPLACE FUNCTION number_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "NEW.{column} := (SELECT coalesce(max({column}), 0) + 1 FROM {table}); RETURN NEW; END $$",
    "CREATE TRIGGER numbered BEFORE INSERT ON {table} FOR EACH ROW WHEN (NEW.{column} IS NULL) "
    "EXECUTE FUNCTION number_{table}()",
)
_NUMBERED = re.compile(r"CREATE TABLE (\w+) \(\s*(id|number) INTEGER PRIMARY KEY")
_TYPES = (
    (r"\bINTEGER\b", "BIGINT"), (r"\bREAL\b", "DOUBLE PRECISION"), (r"\bBLOB\b", "BYTEA"),
    (r"\bTEXT\b", 'TEXT COLLATE "C"'), (r"\)\s*STRICT(, WITHOUT ROWID)?\s*$", ")"), (r"\[(\w+)\]", r'"\1"'),
    (r" REFERENCES \w+ \(\w+\)", ""),
)  # fmt: skip
_PARTS = re.compile(r"'[^']*'|\?|(?<!:):(?P<name>[a-z_]+)|%")
_WORDS = (
    (re.compile(r" INDEXED BY \w+"), ""),
    (re.compile(r"\bjson_each\("), "listed("),
    (re.compile(r"\bjson_group_array\((\w+)\)"), r"coalesce(CAST(json_agg(\1) AS TEXT), '[]')"),
    (re.compile(r"\bcasefold\("), "folded("),
)


# Minimum server version and its expression to fold the case of all scripts: built-in tables if available, else ICU.
_FOLDING = (
    (180_000, "casefold(whole COLLATE pg_unicode_fast)"),
    (170_000, "lower(whole COLLATE pg_c_utf8)"),
    (0, 'lower(whole COLLATE "und-x-icu")'),
)


TABLES = ", ".join(f"'{name}'" for name in re.findall(r"CREATE TABLE (\w+)", "".join(MIGRATIONS)))
"""Names of the tables that the migrations create, as a list in SQL; a schema may contain other tables."""


def preparation(server_version: int) -> list[str]:
    """Return the first statements of a new schema. `server_version`: In libpq's form, such as 180004 for 18.4."""
    fold = next(how for least, how in _FOLDING if server_version >= least)
    folded = f"CREATE FUNCTION folded(whole TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$ SELECT {fold} $$"
    return [*_PREPARATION, folded]


def schema_statements(migrations: Sequence[str], version: int) -> list[str]:
    """Return the statements of the migrations after `version`; in a new schema (0), without the data migrations."""
    found: list[str] = []
    for statement in ";".join(migrations[version:]).split(";"):
        statement = statement.strip()
        is_data = statement.startswith(("INSERT", "UPDATE", "DELETE"))
        if not statement or "work_texts" in statement or (is_data and not version):
            continue
        numbered = _NUMBERED.match(statement)
        for pattern, to in _TYPES:
            statement = re.sub(pattern, to, statement)
        found.append(statement)
        if numbered:
            table, column = numbered.groups()
            found += [each.format(table=table, column=column) for each in _NUMBERING]
    return found


@lru_cache(maxsize=512)
def as_postgres(query: str) -> str:
    """Translate a statement into PostgreSQL's SQL with psycopg's placeholders."""
    for pattern, to in _WORDS:
        query = pattern.sub(to, query)

    def placed(match: re.Match[str]) -> str:
        if match["name"]:
            return f"%({match['name']})s"
        return "%s" if match[0] == "?" else match[0].replace("%", "%%")

    return _PARTS.sub(placed, query)


# PostgreSQL text cannot contain NUL: NUL is stored as this private-use character + "0", the character as itself + "1".
_MARK = "\U00100000"


class _TextDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace(_MARK, f"{_MARK}1").replace("\x00", f"{_MARK}0"))


class _TextLoader(TextLoader):
    def load(self, data: Buffer) -> str:
        text = str(super().load(data))
        return text.replace(f"{_MARK}0", "\x00").replace(f"{_MARK}1", _MARK) if _MARK in text else text


class _TruthDumper(Dumper):
    """Dump bool as an integer: the schema has no boolean columns."""

    oid = psycopg.adapters.types["int8"].oid

    def dump(self, obj: bool) -> Buffer | None:
        return b"1" if obj else b"0"


class _WholeNumber(Loader):
    """Load numeric without a fraction as int: PostgreSQL's sum of BIGINT is numeric."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text else int(text)


class ServerConnection:
    """A connection that accepts SQLite's statements and values."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, query: str, values: Any = (), /) -> psycopg.Cursor[Any]:
        """Execute a statement and return its cursor."""
        return self._connection.execute(as_postgres(query), values)

    def executemany(self, query: str, rows: Iterable[Any], /) -> None:
        """Execute a statement once for each row."""
        self._connection.cursor().executemany(as_postgres(query), rows)


def configure(connection: psycopg.Connection[Any]) -> None:
    """Make a connection convert values as SQLite does."""
    adapters = connection.adapters
    adapters.register_dumper(str, _TextDumper)
    adapters.register_dumper(bool, _TruthDumper)
    adapters.register_loader("text", _TextLoader)
    adapters.register_loader("numeric", _WholeNumber)


def told_name(url: str) -> str:
    """Return the server, its port and the database of a connection string, without user and password.

    Raises:
        StorageError: The string is invalid. The message gives no details, as they could reveal a password.
    """
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:
        raise StorageError(
            "storage.url is not a valid PostgreSQL address: write special characters as %40 and so on, and use only "
            "parameters of libpq"
        ) from None
    port = f":{given['port']}" if given.get("port") else ""
    return f"postgresql://{given.get('host') or 'localhost'}{port}/{given.get('dbname') or ''}"

"""Inspect an index read-only: damage is reported, and nothing is changed."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from orchestra_mem.search_types import EmbeddingModel

APPLICATION_ID = 0x6F6D7369
FORMAT = 5
_BUSY_S = 2.0
_FILES = ("search.db", "search.db-wal", "search.db-shm", "index.lock")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """The state of an index folder. `fault` is a message; if it is None, the other fields are valid.

    `present` is False if there is no index. `operations` is the id of the last indexed operation. `models` are the
    models that have vectors in the index.
    """

    database: Path
    present: bool
    fault: str | None = None
    size_bytes: int = 0
    chunks: int = 0
    operations: int = 0
    models: tuple[EmbeddingModel, ...] = ()


def in_the_way(folder: Path) -> tuple[Path, str] | None:
    """Return a path that blocks the index folder or one of its files, and the problem with it; None if nothing does."""
    if not folder.is_dir():
        return (folder, "is not a folder; remove it") if os.path.lexists(folder) else None
    paths = (folder / name for name in _FILES)
    return next(((path, "is not a file; remove it") for path in paths if path.is_dir()), None)


def format_fault(connection: sqlite3.Connection) -> str | None:
    """Return why this program cannot read a database; None if it can."""
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if application != APPLICATION_ID:
        return "is not a search index of orchestra-mem"
    return None if version == FORMAT else f"has format {version}, but this program uses format {FORMAT}"


def quick_check(connection: sqlite3.Connection) -> str | None:
    """Check an entire database; return SQLite's message for the first fault, None if it is intact."""
    verdict = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    return None if verdict == "ok" else " ".join(verdict.split())


def inspect(folder: Path, *, thorough: bool = False) -> IndexReport:
    """Inspect the index in a folder.

    Args:
        folder: The index folder; it need not exist.
        thorough: Check the entire database, which takes seconds if it is large.
    """
    path = folder / "search.db"
    if folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK):
        return IndexReport(database=path, present=True, fault="cannot be read: give this user the right to read there")
    if found := in_the_way(folder):
        return IndexReport(database=found[0], present=True, fault=found[1])
    if not path.is_file():
        return IndexReport(database=path, present=False)
    size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
    # SQLite may need to create files next to a WAL database. In a read-only folder, only `immutable` opens one.
    mode = "mode=ro" if os.access(folder, os.W_OK) else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=_BUSY_S)) as connection:
            return _report(connection, path, size, thorough)
    except (sqlite3.Error, UnicodeDecodeError, TypeError, ValueError) as error:
        return IndexReport(database=path, present=True, size_bytes=size, fault=str(error))


def _report(connection: sqlite3.Connection, path: Path, size: int, thorough: bool) -> IndexReport:
    fault = format_fault(connection)
    if thorough and not fault and (verdict := quick_check(connection)):
        fault = f"is damaged: {verdict}"
    if fault:
        return IndexReport(database=path, present=True, size_bytes=size, fault=fault)
    rows = connection.execute("SELECT name, version, dimensions, file FROM model ORDER BY slot").fetchall()
    missing = [file for *_, file in rows if not (path.parent / file).is_file()]
    mark = connection.execute("SELECT value FROM mark WHERE name = 'operations'").fetchone()
    return IndexReport(
        database=path,
        present=True,
        fault=f"lacks its vectors: {missing[0]} is missing" if missing else None,
        size_bytes=size,
        chunks=int(connection.execute("SELECT count(*) FROM chunk").fetchone()[0]),
        operations=int(mark[0]) if mark else 0,
        models=tuple(EmbeddingModel(name=row[0], version=row[1], dimensions=row[2]) for row in rows),
    )

"""Open the database that the settings name: a file in the memory's folder, or a server's."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.adapters.database import Database, SqlDatabase, project_key
from orchestra_mem.adapters.files import BACKUP_MARK, why_read_only
from orchestra_mem.choices import Durability
from orchestra_mem.errors import StorageError, StorageReadOnlyError, storage_error
from orchestra_mem.settings import Settings

if TYPE_CHECKING:
    from orchestra_mem.ports import WritePoint

_FILE = "obra.db"
_COPY_FILE = "working_copy"
_COPY = "working copy"


def database_file(home: Path, settings: Settings) -> Path | None:
    """Return where the database lies; None where a server keeps it."""
    return None if settings.storage.url else home / _FILE


def open_database(
    home: Path,
    settings: Settings,
    *,
    read_only: bool = False,
    wait_s: float | None = None,
    write_point: WritePoint | None = None,
    moving: bool = False,
) -> SqlDatabase:
    """Open a memory's database; the first time makes it.

    Args:
        home: the memory's folder.
        settings: where the database is.
        read_only: refuse all that writes.
        wait_s: how long to wait for others; as the settings say where not given.
        write_point: told of each commit, before and after.
        moving: it is what a memory is moved from or to: whether the folder is the one with its documents is not asked.

    Raises:
        StorageReadOnlyError: it is a backup, and not to be read alone.
        StorageError: it cannot be used; also where the folder's memory is on a server, or a server's in another folder.
    """
    if not read_only and (home / BACKUP_MARK).exists():
        raise StorageReadOnlyError(why_read_only(home))
    storage = settings.storage
    wait_s = storage.busy_timeout_s if wait_s is None else wait_s
    path, copy = database_file(home, settings), home / _COPY_FILE
    if path is not None:
        if copy.exists() and not moving:
            raise StorageError(
                f"the memory of {home} is on a server: set storage.url and storage.schema_name as `move` was given "
                f"them. To go on with {path}, remove {copy} first"
            )
        return Database(
            path, full_sync=storage.durability is Durability.FULL, busy_timeout_s=wait_s, write_point=write_point,
            read_only=read_only,
        )  # fmt: skip
    try:
        from orchestra_mem.adapters.database.postgres import PostgresDatabase
    except ImportError as error:
        raise StorageError(f"storage.url needs `pip install 'orchestra-mem[postgres]'`: {error}") from error
    database = PostgresDatabase(
        storage.url, schema=storage.schema_name, busy_timeout_s=wait_s, write_point=write_point, read_only=read_only
    )
    try:
        if not moving:
            claim(database, home, storage.schema_name)
    except BaseException:
        database.close()
        raise
    return database


def claim(database: SqlDatabase, home: Path, schema: str) -> None:
    """Let this folder be the one that has the documents; they are files, and a second folder would not know of them.

    Raises:
        StorageError: another folder is it.
    """
    path, here = home / _COPY_FILE, f"{socket.gethostname()}:{home}"
    try:
        mine = path.read_bytes() if path.exists() else f"{os.urandom(8).hex()} {here}".encode()
        known = project_key(database, _COPY, mine)
        if known and known != mine:
            where = known.decode(errors="replace").partition(" ")[2]
            if where != here or path.exists():
                raise StorageError(
                    f"schema {schema} of storage.url keeps the memory of another folder, {where}: give this one a "
                    "schema of its own (storage.schema_name), or copy the whole .obra from there to go on with it here"
                )
            mine = known  # the same folder, which has lost the file
        if not path.exists() and not database.read_only:
            path.write_bytes(mine)
    except OSError as error:
        raise storage_error(error, "writing", path) from error


def unclaim(home: Path) -> None:
    """Let the folder's memory be in its file again."""
    (home / _COPY_FILE).unlink(missing_ok=True)

"""Where a memory is stored: its paths, the database that the settings name, and the document store.

The same for the log of decisions that projects share, with its settings.
"""

from __future__ import annotations

import json
import re
import socket
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestra_mem.adapters.config_files import CONFIG_PATH, load_settings
from orchestra_mem.adapters.database import Database, project_key, shared_name
from orchestra_mem.adapters.database.connection import REFUSALS
from orchestra_mem.adapters.database.files import readable
from orchestra_mem.adapters.database.project_key import moved_words
from orchestra_mem.adapters.files import BACKUP_MARK, FileDocumentStore, why_read_only
from orchestra_mem.adapters.home import home_folder
from orchestra_mem.choices import Durability
from orchestra_mem.core.documents.episodic import ProjectView, render_document
from orchestra_mem.core.documents.markdown import without_front_matter
from orchestra_mem.core.documents.signature import timeless
from orchestra_mem.errors import DocumentError, OrchestraMemError, StorageError, StorageReadOnlyError, telling
from orchestra_mem.settings import DEFAULT_ORIGIN, Settings, StorageSettings
from orchestra_mem.stores import EventLog, Ledger, SqlDatabase
from orchestra_mem.tiers.shared_decisions import sharers_of
from orchestra_mem.types import DocumentName

if TYPE_CHECKING:
    from orchestra_mem.adapters.files.working_copies import CopyHistory
    from orchestra_mem.ports import WritePoint

_FILE = "obra.db"
COPIES_FILE = "working_copy.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The paths of a project's memory. `names` are its episodic documents."""

    project: Path
    home: Path
    memory: Path
    sessions: Path
    names: tuple[DocumentName, ...] = tuple(DocumentName)

    @classmethod
    def of(cls, project: Path, settings: Settings) -> Place:
        """Derive the paths from a project's settings."""
        where = settings.orchestrator
        memory, sessions = project / where.memory_dir, project / where.session_dir
        names = (DocumentName.DECISION_LOG,) if settings.documents.only_decisions else tuple(DocumentName)
        return cls(project=project, home=project / ".obra", memory=memory, sessions=sessions, names=names)

    @property
    def folders(self) -> list[Path]:
        """The folders with documents that people edit."""
        return [self.memory, self.sessions, self.memory / "catalog"]

    def documents(self) -> list[Path]:
        """Return the paths of the episodic documents, whether or not they exist."""
        return [self.memory / f"{name.value}.md" for name in self.names]

    def older_documents(self) -> Sequence[str]:
        """Return the names of episodic documents that have content, and the number of session documents as text."""
        found = []
        blank = ProjectView(project="", updated=None, session="", size_tokens=0, operations=0, sessions=0)
        for name, path in zip(self.names, self.documents(), strict=True):
            if path.is_file():
                text = path.read_text(encoding="utf-8", errors="surrogateescape")
                said, nothing = (timeless(without_front_matter(each)) for each in (text, render_document(name, blank)))
                if said != nothing:
                    found.append(path.name)
        count = sum(1 for folder in (self.sessions, self.sessions / "archive") for _ in folder.glob("session_*.md"))
        if count:
            found.append(f"{count:,} session {'document' if count == 1 else 'documents'}")
        return found


def database_file(home: Path, settings: Settings) -> Path | None:
    """Return the path of the database file, None if the database is on a server."""
    return None if settings.storage.url else home / _FILE


def server_name(settings: Settings) -> str:
    """Return the schema and server of a memory's database, without user and password; empty if it is in a file."""
    if not settings.storage.url:
        return ""
    from orchestra_mem.adapters.database.postgres_dialect import told_name

    return f"schema {settings.storage.schema_name} of {told_name(settings.storage.url)}"


def machine_name(settings: Settings) -> str:
    """Return this machine's name among those that share a memory; never empty, and without what ends a comment."""
    name = settings.storage.machine or socket.gethostname()
    return re.sub(r"[^\w.@:]+", "-", name).strip("-") or "another machine"


def open_database(
    home: Path,
    settings: Settings,
    *,
    read_only: bool = False,
    wait_s: float | None = None,
    write_point: WritePoint | None = None,
    moving: bool = False,
) -> SqlDatabase:
    """Open a memory's database, and create it on first use.

    Args:
        home: The memory's folder.
        settings: Settings that name the database.
        wait_s: Seconds to wait for locks of other processes; `storage.busy_timeout_s` by default.
        read_only, write_point: See `SqlDatabase`.
        moving: For a move, skip two checks: that the memory was not moved away, and that the documents belong to it.

    Raises:
        StorageReadOnlyError: The folder is a backup, and `read_only` is false.
        StorageError: The database cannot be used, was moved away, or the folder has documents of another memory.
    """
    if not read_only and (home / BACKUP_MARK).exists():
        raise StorageReadOnlyError(why_read_only(home))
    storage = settings.storage
    wait_s = storage.busy_timeout_s if wait_s is None else wait_s
    path, copy = database_file(home, settings), home / COPIES_FILE
    database: SqlDatabase
    if path is None:
        try:
            from orchestra_mem.adapters.database.postgres import PostgresDatabase
        except ImportError as error:
            raise StorageError(f"storage.url needs `pip install 'orchestra-mem[postgres]'`: {error}") from error
        database = PostgresDatabase(
            storage.url, schema=storage.schema_name, busy_timeout_s=wait_s, write_point=write_point, read_only=read_only
        )
    elif copy.exists() and not moving:
        todo = "set storage.url and storage.schema_name to the values given to `move`"
        told = f"the memory of {home} is on a server: {todo}"
        if path.exists():
            told += f". To use {path} as it was before: `orchestra-mem move --to file --old-place-lost`"
        raise StorageError(told)
    else:
        database = Database(
            path, full_sync=storage.durability is Durability.FULL, busy_timeout_s=wait_s, write_point=write_point,
            read_only=read_only,
        )  # fmt: skip
    try:
        if not moving and (words := moved_words(database)):
            raise StorageError(words)
        if not (moving or path or database.read_only):
            working_copy(database, home, settings).close()
    except BaseException:
        database.close()
        raise
    return database


def working_copy(database: SqlDatabase, home: Path, settings: Settings) -> CopyHistory:
    """Open the record of the shared documents copied to this folder, and create it on first use.

    Raises:
        StorageError: The copies belong to another memory than the database, or the folder has its own database.
    """
    from orchestra_mem.adapters.files.working_copies import CopyHistory

    path, memory, server = home / COPIES_FILE, project_key(database, "working copy").hex(), server_name(settings)
    if not path.exists() and not _is_left(home / _FILE):
        raise StorageError(
            f"{home / _FILE} has a memory, and {server} has a different one: move the memory of the file to a separate "
            "schema (storage.schema_name) with `orchestra-mem move`, or move the file away first"
        )
    copies = CopyHistory(path)
    with ExitStack() as opened:
        opened.callback(copies.close)
        if (known := copies.about("memory") or memory) != memory:
            was = copies.about("place") or "another place"
            here = "the one that is there now" if was == server else f"the one in {server}"
            raise StorageError(
                f"{home} has documents of the memory that was in {was}, but the settings name {here}: another one, or "
                "a later copy. To use the first, correct storage.url and storage.schema_name; to use the second, move "
                f"everything in {home} but config.yaml away"
            )
        copies.note("memory", known)
        copies.note("place", server)
        opened.pop_all()
    return copies


def given_name(settings: Settings) -> list[str]:
    """Return the project's id and name as the settings give them; the name is empty if it is only the folder's."""
    project = settings.project
    return [project.id, project.name if settings.origin_of("project.name") != DEFAULT_ORIGIN else ""]


def named_by_memory(database: SqlDatabase, home: Path, settings: Settings) -> Settings:
    """Return the settings with the id and the name that the memory on the server has, as documents contain them.

    The first folder whose settings contain them gives them to the memory, and later each folder in which they change.
    """
    project, own = settings.project, given_name(settings)
    if database.read_only:
        known = shared_name(database, own, project.name, changed=False)
    else:
        with closing(working_copy(database, home, settings)) as copies:
            was = json.loads(noted) if (noted := copies.about("project")) else own
            now = [new or old for new, old in zip(own, was, strict=True)]  # some programs pass a name, others do not
            known = shared_name(database, own, project.name, changed=now != was)
            copies.note("project", json.dumps(now))
    named = project.model_copy(update=dict(zip(("id", "name"), known, strict=True)))
    return settings.model_copy(update={"project": named})


def _is_left(path: Path) -> bool:
    """Check whether the memory in a database file was moved elsewhere; True if the file does not exist."""
    if not path.exists():
        return True
    try:
        with closing(Database(path, read_only=True)) as database:
            return bool(moved_words(database))
    except StorageReadOnlyError:  # an older schema: nothing may migrate a file that was left, so look for its triggers
        address, copy = readable(path)
        with copy or nullcontext(), closing(sqlite3.connect(address, uri=True)) as left:
            return left.execute(REFUSALS).fetchone() is not None


def open_store(
    place: Place,
    settings: Settings,
    database: SqlDatabase | None = None,
    *,
    write_point: WritePoint | None = None,
    read_only: bool = False,
) -> FileDocumentStore:
    """Open the store of a memory's documents.

    Args:
        place: The paths of the memory.
        settings: The project's settings.
        database: The memory's database. A server also shares the documents; with a file, or None, they are local. Where
            this user may only read, the documents on the server are read, and none are copied to this machine.
        write_point: Called before and after each change on the disk, with the name of the step.
        read_only: Refuse all writes.
    """
    storage = settings.storage
    how: dict[str, Any] = {
        "versions": place.memory / "versions", "lock_file": place.home / "obra.lock",
        "lock_timeout_s": storage.lock_timeout_s, "full_sync": storage.durability is Durability.FULL,
        "write_point": write_point, "read_only": read_only or (database is not None and database.read_only),
    }  # fmt: skip
    if database is None or not storage.url:
        return FileDocumentStore(**how)
    from orchestra_mem.adapters.database.postgres import PostgresDatabase
    from orchestra_mem.adapters.files.served import ServedDocumentStore
    from orchestra_mem.adapters.files.shared import SharedDocumentStore
    from orchestra_mem.stores.shared_files import SharedFiles

    assert isinstance(database, PostgresDatabase)
    folders, files = {"sessions": place.sessions, "memory": place.memory}, SharedFiles(database)
    if how["read_only"]:
        return ServedDocumentStore(folders, files=files, **how)
    return SharedDocumentStore(
        folders, files=files,
        exclusive=lambda timeout_s: database.exclusive("documents", timeout_s=timeout_s),
        copies=working_copy(database, place.home, settings),
        machine=machine_name(settings), **how,
    )  # fmt: skip


def no_working_copy(place: Place, *, only_check: bool = False) -> None:
    """Make the folder's documents local again: remove their revision numbers and the record of copies.

    With `only_check`, change nothing, but raise `StorageError` if a document cannot be read or may not be written.
    """
    from orchestra_mem.core.documents.signature import unstamped

    plain = FileDocumentStore(versions=place.memory / "versions", lock_file=place.home / "obra.lock")
    for folder in (*place.folders, place.sessions / "archive"):
        for path in folder.glob("*.md"):
            try:
                text = plain.read(path) or ""
            except DocumentError:  # a folder, for example: it is neither read nor written
                continue
            if (bare := unstamped(text)[0]) != text and only_check:
                plain.check_rights(path)
            elif bare != text:
                plain.replace(path, bare, expected=text, name="document")
    for path in () if only_check else place.home.glob(f"{COPIES_FILE}*"):
        path.unlink()


# Settings of the shared log. No prompt contains the entire document, so it may be large and list all decisions.
_SETTINGS: dict[str, object] = {
    "project.name": "Shared decisions",
    "project.shared": False,
    "orchestrator.memory_dir": ".",
    "orchestrator.session_dir": ".obra/sessions",
    "orchestrator.context_window.max_tokens": 16_777_216,
    "orchestrator.episodic_compression_threshold": 8_000_000,
    "documents.only_decisions": True,
    "documents.decisions_in_full": 100_000,
    "documents.decisions_in_brief": 0,
    "context.shared_share": 0.0,
    "compression.auto": False,
}
_HEAD = "# The decisions that projects share: a memory like any other, but with decision_log.md as its only document.\n"


def shared_document(environ: Mapping[str, str]) -> Path | None:
    """Return the path of the shared log's document, which may not exist; None if there is no home folder."""
    home = home_folder(environ)
    return home and home / "shared" / f"{DocumentName.DECISION_LOG}.md"


def prepare_shared_log(folder: Path, storage: StorageSettings) -> Settings:
    """Create the shared log's folder with a settings file, so that all commands work there. Return its settings.

    `storage` holds the sharing project's storage settings; all are used except those that name a database: the log is
    in its own file, or on the server that its own settings name. The environment is ignored.

    Raises:
        ConfigError: The settings file was changed and is invalid.
        StorageError: The folder cannot be written to.
    """
    path = folder / CONFIG_PATH
    with telling("creating the shared log in", folder):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            lines = (f"{key}: {json.dumps(value)}\n" for key, value in _SETTINGS.items())
            path.write_text(_HEAD + "".join(lines), encoding="utf-8")
    how = storage.model_dump(mode="json", exclude={"url", "schema_name"})
    return load_settings(folder, {}, {**_SETTINGS, "storage": how})


def sharers_in(folder: Path) -> dict[str, str]:
    """Return the ids of the projects that shared the facts of the shared log; {} if its database cannot be read."""
    with suppress(OrchestraMemError):
        settings = load_settings(folder, {})
        with closing(open_database(folder / CONFIG_PATH.parent, settings, read_only=True)) as log:
            return sharers_of(EventLog(log), Ledger(log))
    return {}

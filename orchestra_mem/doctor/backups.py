"""Back up a memory while programs use it, and restore a backup.

A backup is a folder whose `.obra` opens like any other memory, but read-only. It holds the database as a SQLite file
(even of a memory on a server), the documents of the same moment, and `backup.json` with the digests of all files.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from orchestra_mem.adapters.config_files import load_settings, with_values
from orchestra_mem.adapters.database.database_copy import copy_to_file
from orchestra_mem.adapters.database.files import is_in_use
from orchestra_mem.adapters.database.migrations import MIGRATIONS
from orchestra_mem.adapters.files import BACKUP_MARK, why_read_only
from orchestra_mem.adapters.files.exchange import exchange, settled
from orchestra_mem.adapters.files.reading import encode, sync_folder
from orchestra_mem.adapters.files.served import ServedDocumentStore
from orchestra_mem.build import HOME
from orchestra_mem.build.storage import Place, database_file, no_working_copy, open_database, open_store
from orchestra_mem.errors import SchemaTooNewError, StorageError, StorageReadOnlyError, storage_error, telling
from orchestra_mem.settings import Settings

_DATABASE = "obra.db"
# Not copied: derived data, the HTTP server's token, files of running programs, and the database file (rows are copied).
_SERVER = "server"
_LEFT_OUT = ("index/", f"{_SERVER}/", "obra.lock", "working_copy", BACKUP_MARK, _DATABASE)
_SECRETS = ("storage.url", "llm.api_key", "search.api_key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """The content of `backup.json`.

    `schema` is the version of the database schema, `rows` the number of rows and `digest` the SHA-256 over all of them.
    `left_out` lists the settings that were removed. `files` maps each path in `.obra` to its SHA-256.
    """

    program: str
    schema: int
    made: str
    project: str
    rows: int
    digest: str
    left_out: list[str]
    files: dict[str, str]


def make_backup(project: Path, settings: Settings, target: Path, *, on_table: Callable[[str, int], None]) -> Backup:
    """Copy a memory into a new folder. Programs can record meanwhile, but wait briefly before writing a document.

    An interrupted backup leaves no `target`. `on_table` is called with each table's name and number of rows. If the
    memory is read-only for this user, it is copied without its lock, so a document in a file may change meanwhile; the
    documents on a server are of the same moment as its database.

    Raises:
        StorageError: `target` exists or cannot be made, the memory is itself a backup, or a file cannot be read.
    """
    place = Place.of(project, settings)
    if os.path.lexists(target):
        example = f", for example {target / place.project.name}" if target.is_dir() else ""
        raise StorageError(f"{target} already exists, and a backup never replaces anything: name a new folder{example}")
    if not target.parent.is_dir():
        raise StorageError(f"the folder {target.parent} for the backup does not exist")
    if any(_is_within(target, each) for each in (place.home, *place.folders)):
        raise StorageError(f"{target} is inside the memory itself: name a folder elsewhere")
    why = why_read_only(place.home)
    if why and (place.home / BACKUP_MARK).exists():
        raise StorageReadOnlyError(why)
    with (
        _unfinished(target) as folder,
        closing(open_database(place.home, settings, read_only=bool(why))) as database,
        closing(open_store(place, settings, database, read_only=bool(why))) as store,
        ExitStack() as moment,
    ):
        home, copied = folder / HOME, dict[str, object]()
        home.mkdir()
        _copy_rights(place.home, home, 0o700)
        _copy_changed(place, home, copied)
        with store.lock():  # held briefly: only files that have changed since are copied
            made = datetime.now(UTC)
            moment.enter_context(database.snapshot())
            _copy_changed(place, home, copied)
        if isinstance(store, ServedDocumentStore):
            _copy_served(store, place, home, copied)
        rows, digest = copy_to_file(database, home / _DATABASE, on_table=on_table)
        if (file := database_file(place.home, settings)) is not None:
            _copy_rights(file, home / _DATABASE, 0o600)
        left_out = _make_self_contained(home / "config.yaml", place)
        if settings.storage.url:
            modes = {path: path.stat().st_mode for path in home.rglob("*.md")}
            for path, mode in modes.items():
                path.chmod(mode | 0o200)  # a copy of a document marked read-only loses its revision number, too
            no_working_copy(Place.of(folder, load_settings(folder, {})))
            for path, mode in modes.items():
                path.chmod(mode)
        backup = Backup(
            program=version("orchestra-mem"), schema=database.schema_version, made=made.isoformat(timespec="seconds"),
            project=str(project), rows=rows, digest=digest, left_out=left_out,
            files={name: _digest(home / name) for name in (_DATABASE, *sorted(copied))},
        )  # fmt: skip
        (home / BACKUP_MARK).write_text(json.dumps(asdict(backup), indent=1), encoding="ascii")
    return backup


def restore_backup(folder: Path, project: Path, *, replace: bool) -> tuple[Backup, Path | None]:
    """Copy the memory of a backup into a project's folder; with `replace`, move an existing memory aside first.

    Returns:
        The backup, and the path to which the existing memory was moved; None if there was no memory.

    Raises:
        StorageError: The folder is no backup or damaged, the settings lead to a server or to other folders, or the
            existing memory may not be replaced or is in use.
    """
    backup, home, aside = check_backup(folder), project / HOME, None
    settings = load_settings(folder, os.environ)
    if settings.storage.url:
        raise StorageError(
            f"storage.url ({settings.origin_of('storage.url')}) names a server, but a backup is restored into a file: "
            "unset it, restore, then copy the memory into an empty schema with `orchestra-mem move`"
        )
    place, own = (Place.of(project, each) for each in (settings, load_settings(folder, {})))
    for key, there, here in (("memory_dir", place.memory, own.memory), ("session_dir", place.sessions, own.sessions)):
        if os.path.realpath(there) != os.path.realpath(here):
            raise StorageError(
                f"orchestrator.{key} ({settings.origin_of(f'orchestrator.{key}')}) puts documents into {there}, but a "
                f"backup is restored into {here}: unset it, restore, then move the documents and set it again"
            )
    if os.path.lexists(home):
        if (home / BACKUP_MARK).exists():
            raise StorageError(f"{home} is itself a backup; name the project to restore into with -C")
        if not replace:
            raise StorageError(f"{home} already exists; with --replace it is moved aside first")
        aside = home.with_name(f"{HOME}.before-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}")
    with _unfinished(home, aside) as made:
        for name in backup.files:
            _copy(folder / HOME / name, made / name)
        _compare(backup.files, made)
        if (home / _SERVER).is_dir():  # its clients keep their tokens
            shutil.copytree(home / _SERVER, made / _SERVER)
        check_unused(project, "restore again")
    return backup, aside


def check_backup(folder: Path) -> Backup:
    """Read a backup's `backup.json`, and compare all its files with their digests.

    Raises:
        SchemaTooNewError: A newer program made it.
        StorageError: It is no backup, is damaged, or has been changed.
    """
    home = folder / HOME
    mark = home / BACKUP_MARK
    try:
        with telling("reading", mark):
            if not mark.is_file():
                why = f"it has no {HOME}/{BACKUP_MARK}" if folder.is_dir() else "the folder does not exist"
                raise StorageError(f"{folder} is not a backup: {why}")
            found = json.loads(mark.read_bytes())
        if found["schema"] > len(MIGRATIONS):
            raise SchemaTooNewError(
                f"{folder} was made by a newer orchestra-mem, {found['program']}: install that version"
            )
        backup = Backup(**found)
        if not all(_is_within(home / name, home) for name in backup.files):
            raise StorageError(f"{mark} is damaged: it names files outside the backup")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(
            f"{mark} is damaged: it does not have the form that `orchestra-mem backup` writes"
        ) from error
    _compare(backup.files, home)
    return backup


def _is_within(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


@contextmanager
def _unfinished(target: Path, aside: Path | None = None) -> Iterator[Path]:
    """Yield a temporary folder, removed on failure; flush it, move an old target `aside`, rename it to `target`."""
    folder = target.with_name(f"{target.name}.unfinished-{os.getpid()}")
    with telling("writing", target):
        folder.mkdir()
        try:
            yield folder
            for path in (*folder.rglob("*"), folder):
                sync_folder(path)  # files as well
            if aside is None:
                os.rename(folder, target)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        # From here on nothing is removed, as `folder` may hold the old target.
        if aside and exchange(folder, target):
            os.rename(folder, aside)
        elif aside:  # no exchange on this system: for an instant there is no target
            os.rename(target, aside)
            os.rename(folder, target)
        sync_folder(target.parent)


def _files(place: Place) -> Iterator[tuple[str, Path]]:
    """Yield (path in the backup's `.obra`, file) for each file to back up, including documents in other folders."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # a folder removed meanwhile is skipped
            raise storage_error(error, "reading", Path(error.filename))

    for folder, below, names in os.walk(place.home, onerror=refuse):
        # Not even entered: this user may have no right to read derived data that another user's program has made.
        below[:] = [each for each in below if f"{each}/" not in _LEFT_OUT or Path(folder) != place.home]
        for path in (Path(folder, name) for name in names):
            name = path.relative_to(place.home).as_posix()
            if not name.startswith(_LEFT_OUT) and path.is_file():
                yield name, path
    for known, elsewhere in _elsewhere(place).items():
        for pattern in ("*.md", "versions/*.md", "catalog/*.md", "archive/*.md"):
            yield from ((f"{known}/{path.relative_to(elsewhere)}", path) for path in elsewhere.glob(pattern))


def _elsewhere(place: Place) -> Mapping[str, Path]:
    folders = {"memory": place.memory, "sessions": place.sessions}
    return {known: each for known, each in folders.items() if not _is_within(each, place.home)}


def _copy_changed(place: Place, home: Path, copied: dict[str, object]) -> None:
    """Copy files changed since their last copy; remove copies of removed files. `copied` maps file names to states."""
    found = dict(_files(place))
    for name, path in found.items():
        with telling("copying", path), suppress(FileNotFoundError):  # removed meanwhile
            state = (status := path.stat()).st_ino, status.st_size, status.st_mtime_ns
            if copied.get(name) != state:
                _copy(path, home / name)
                copied[name] = state
    for name in copied.keys() - found.keys():
        (home / name).unlink()
        del copied[name]


def _copy_served(store: ServedDocumentStore, place: Place, home: Path, copied: dict[str, object]) -> None:
    """Replace the copies of this folder's documents, which may be old or missing, by the documents on the server."""
    store.follow()
    elsewhere = _elsewhere(place)
    for known, folder in (("memory", place.memory), ("sessions", place.sessions)):
        there = home / (known if known in elsewhere else folder.relative_to(place.home))
        for old in sorted(there.rglob("*.md")):
            old.unlink()
            copied.pop(old.relative_to(home).as_posix(), None)
        for path in store.paths():
            if path.is_relative_to(folder):
                target = there / path.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(encode(store.read(path) or ""))
                copied[target.relative_to(home).as_posix()] = None


def _copy(path: Path, target: Path) -> None:
    if path.suffix == ".md":
        settled(path)  # wait for an editor that writes the file in place
    target.parent.mkdir(parents=True, exist_ok=True)
    _copy_rights(path.parent, target.parent, 0o700)
    target.unlink(missing_ok=True)
    shutil.copy2(path, target)


def _copy_rights(path: Path, target: Path, own: int) -> None:
    """Set the permissions of `target` to those of `path`, plus the owner's bits in `own`."""
    target.chmod(path.stat().st_mode & 0o777 | own)


def _digest(path: Path) -> str:
    with telling("reading", path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _compare(files: Mapping[str, str], home: Path) -> None:
    if wrong := [name for name, each in files.items() if not (home / name).is_file() or _digest(home / name) != each]:
        more = f" and {len(wrong) - 3:,} more" if len(wrong) > 3 else ""
        told = f"{home} was damaged or changed since it was made: {', '.join(wrong[:3])}{more}"
        raise StorageError(
            f"{told}. Use another backup; if there is none, copy this {HOME} into a project by hand, and delete "
            f"{BACKUP_MARK} there to use what is left"
        )


def _make_self_contained(config: Path, place: Place) -> list[str]:
    """Remove secrets, and paths of documents outside `.obra`, from a backup's settings; return the changed keys."""
    values = dict.fromkeys(_SECRETS, "")
    for known in _elsewhere(place):
        values[f"orchestrator.{known.removesuffix('s')}_dir"] = f"{HOME}/{known}"
    if not config.exists():
        return []
    text, changed = with_values(config.read_bytes().decode("utf-8-sig"), values)
    if changed:
        config.chmod(0o600)
        config.write_bytes(text.encode())
    return changed


def check_unused(project: Path, then: str) -> None:
    """Check that no program has the database file open.

    Raises:
        StorageError: A program has it open; the message ends with what to do `then`.
    """
    home = project / HOME
    if is_in_use(home / _DATABASE):
        raise StorageError(f"another program has the memory in {home} open: end it, then {then}")

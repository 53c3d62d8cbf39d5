"""Move a memory's database: from its file to a PostgreSQL server, or back."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from orchestra_mem.adapters.database.project_key import empty_where_left, mark_moved, moved_words, take_mark_away
from orchestra_mem.adapters.database.whole_database import Copied, copy_database
from orchestra_mem.build.place import Place
from orchestra_mem.build.storage import database_file, no_working_copy, open_database, open_store, working_copy
from orchestra_mem.errors import StorageError
from orchestra_mem.ports import WritePoint
from orchestra_mem.settings import Settings

TO_FILE = "file"


def move_database(
    project: Path,
    settings: Settings,
    target: Settings,
    *,
    on_table: Callable[[str, int], None],
    write_point: WritePoint | None = None,
) -> Copied:
    """Copy the database that the settings name to where `target` has it, and make sure of it; the old one stays.

    Nobody writes meanwhile, and nobody there from then on: who does is told where the memory is. Whatever ends it early
    leaves the target as it was, or complete: then it can be done again. What the memory itself has left in the target
    when it was moved away from there makes way. Documents stay where they are: from then on the memory is to be opened
    with `target`. `on_table` is told each table with its number of rows, `write_point` each commit there.

    Raises:
        StorageError: a database cannot be used, or the target has a memory already.
    """
    place = Place.of(project, settings)
    with (
        closing(open_database(place.home, settings, moving=True)) as source,
        closing(open_database(place.home, target, moving=True, write_point=write_point)) as opened,
        open_store(place, settings, source).lock(),
        source.transaction("copy"),
    ):
        if words := moved_words(source):
            raise StorageError(words)
        mark_moved(source, _words(place.home, settings, target))  # before anything is copied: it may be refused
        with opened.transaction("copy"):
            empty_where_left(opened, source)
            copied = copy_database(source, opened, on_table=on_table)
        if settings.storage.url:
            no_working_copy(place)
        else:
            working_copy(opened, place.home, target.storage.schema_name).close()
    return copied


def go_on_here(project: Path, settings: Settings) -> bool:
    """Let a memory that was moved away go on where it was as well; False where it was not moved."""
    place = Place.of(project, settings)
    path = database_file(place.home, settings)
    if path is not None and not path.exists():
        return False
    with closing(open_database(place.home, settings, moving=True)) as database:
        if not moved_words(database):
            return False
        take_mark_away(database)
    if path is not None:
        no_working_copy(place)
    return True


def _words(home: Path, old: Settings, new: Settings) -> str:
    """Tell who looks for the memory where it was where it is, and what to do."""
    here, there = (_place(home, each) for each in (old, new))
    todo = "set storage.url and storage.schema_name to that" if new.storage.url else "only that folder can use it"
    back = "URL`, with the URL in storage.url" if old.storage.url else f"{TO_FILE}`"
    return (
        f"this memory was moved from {here} to {there} on {datetime.now(UTC):%Y-%m-%d}: {todo}. To go on here as well, "
        f"with what was recorded until then: `orchestra-mem move --to {back}"
    )


def _place(home: Path, settings: Settings) -> str:
    if (path := database_file(home, settings)) is not None:
        return f"{path} of {socket.gethostname()}"
    from orchestra_mem.adapters.database.postgres_dialect import told_name

    return f"schema {settings.storage.schema_name} of {told_name(settings.storage.url)}"

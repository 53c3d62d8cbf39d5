"""Move a memory's database to a server, or back to a file.

The copy is marked as unfinished until the old database is marked as moved. So a move killed at any step leaves at most
one usable memory, and can be repeated.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from orchestra_mem.adapters.database.database_copy import Copied, copy_database
from orchestra_mem.adapters.database.project_key import (
    arriving_route,
    empty_where_left,
    mark_arriving,
    mark_moved,
    moved_words,
    shared_name,
    take_mark_away,
)
from orchestra_mem.build.storage import (
    Place,
    database_file,
    given_name,
    no_working_copy,
    open_database,
    open_store,
    server_name,
    working_copy,
)
from orchestra_mem.errors import StorageError
from orchestra_mem.ports import WritePoint
from orchestra_mem.settings import Settings

TO_FILE = "file"


def move_database(
    project: Path, settings: Settings, target: Settings, *, on_table: Callable[[str, int], None],
    write_point: WritePoint | None = None,
) -> Copied:  # fmt: skip
    """Copy the database of `settings` to the database of `target`, and verify the copy; documents are not moved.

    Nothing can be written meanwhile. Afterwards the memory must be opened with `target`: the old database keeps its
    rows, but opening it fails with a message that names the new place. The copy can be opened only after that. A
    repeated call completes an interrupted move. Rows left in the target by an earlier move from there are replaced.
    `on_table` is called with each table and its number of rows, `write_point` at each commit.

    Raises:
        StorageError: A database cannot be used, the memory was already moved away, or the target has another memory.
    """
    place = Place.of(project, settings)
    here, there = (
        server_name(each) or f"{database_file(place.home, each)} on {socket.gethostname()}"
        for each in (settings, target)
    )
    route = f"from {here} to {there} on {datetime.now(UTC):%Y-%m-%d}"
    with (
        closing(open_database(place.home, settings, moving=True, write_point=write_point)) as source,
        closing(open_database(place.home, target, moving=True, write_point=write_point)) as opened,
        # A server's database that is marked as moved refuses to lock the documents.
        closing(open_store(place, settings, None if moved_words(source) else source)) as store,
        store.lock(),
    ):
        if settings.storage.url:
            no_working_copy(place, only_check=True)  # before anything is copied
        with source.transaction("copy"):
            left, arriving = moved_words(source), arriving_route(opened)
            is_complete = bool(arriving) and _moved(arriving) in left  # interrupted after the source was marked
            if left and not is_complete:
                raise StorageError(left if arriving_route(source) else f"already moved: {left}")
            if not left:
                if not settings.storage.url:  # on a server, the memory has a name of its own
                    shared_name(source, given_name(settings), settings.project.name, changed=True)
                mark_moved(source, _words(route, settings, target), server_name(settings))  # first, as it may fail
            with opened.transaction("copy"):
                if not left:
                    empty_where_left(opened, source)
                copied = copy_database(source, opened, on_table=on_table)  # only compares a complete copy
                if not left:
                    mark_arriving(opened, route)
        if settings.storage.url:
            no_working_copy(place)
        take_mark_away(opened, server_name(target))
        if not settings.storage.url:
            working_copy(opened, place.home, target).close()
    return copied


def reactivate(project: Path, settings: Settings) -> bool:
    """Make what a move has left usable: the old database or, if the move was interrupted, the copy; False if neither.

    What is recorded at the other place, if that is in use after all, does not get into this memory.
    """
    place = Place.of(project, settings)
    path = database_file(place.home, settings)
    if path is not None and not path.exists():
        return False
    with closing(open_database(place.home, settings, moving=True)) as database:
        if not moved_words(database):
            return False
        if path is not None:
            no_working_copy(place)  # first, as a document may refuse it
        take_mark_away(database, server_name(settings))
    return True


def _words(route: str, old: Settings, new: Settings) -> str:
    """Return the message for programs that open the old database: the memory's new place, and how to proceed."""
    todo = (
        "set storage.url and storage.schema_name to the new place"
        if new.storage.url
        else "there, remove storage.url from .obra/config.yaml; no other folder can use it"
    )
    back = "URL" if old.storage.url else TO_FILE
    return (
        f"{_moved(route)}: {todo}. If that is lost: `orchestra-mem move --to {back} --old-place-lost` uses "
        "this place again, with what was recorded before the move"
    )


def _moved(route: str) -> str:
    return f"this memory was moved {route}"

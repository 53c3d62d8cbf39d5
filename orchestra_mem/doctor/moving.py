"""Move a memory's database: from its file to a PostgreSQL server, or back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from orchestra_mem.adapters.database.copying import Copied, copy_database
from orchestra_mem.build.place import Place
from orchestra_mem.build.storage import no_working_copy, open_database, open_store, working_copy
from orchestra_mem.settings import Settings

TO_FILE = "file"


def move_database(
    project: Path, settings: Settings, target: Settings, *, on_table: Callable[[str, int], None]
) -> Copied:
    """Copy the database that the settings name to where `target` has it, and make sure of it; the old one stays.

    Nobody writes meanwhile; programs that have the memory open go on with the old database, so there should be none.
    Whatever ends it early leaves the target's tables empty, so that it can be done again. Documents stay where they
    are: from then on the memory is to be opened with `target`. `on_table` is told each table with its number of rows.

    Raises:
        StorageError: a database cannot be used, or the target has a memory already.
    """
    place = Place.of(project, settings)
    with (
        closing(open_database(place.home, settings)) as source,
        closing(open_database(place.home, target, moving=True)) as opened,
        open_store(place, settings, source).lock(),
        source.transaction("copy"),
    ):
        copied = copy_database(source, opened, on_table=on_table)
        if target.storage.url:
            working_copy(opened, place.home, target.storage.schema_name).close()
    if not target.storage.url:
        no_working_copy(place)
    return copied

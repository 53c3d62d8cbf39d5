"""The project's keys, stored in its database, and the mark that its memory was moved elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from orchestra_mem.stores import SqlDatabase


def project_key(database: SqlDatabase, name: str = "redaction") -> bytes:
    """Return a random key of 16 bytes, created at its first use; b"" if there is none in a read-only database.

    Concurrent callers all get the same key. With the key for redaction, digests of the same secret are equal only
    within this project.
    """
    query = "SELECT value FROM project_keys WHERE name = ?"
    key = database.value(query, [name])
    if key is None and not database.read_only:
        made = "INSERT INTO project_keys VALUES (?, ?) ON CONFLICT DO NOTHING"
        database.write("project key", made, [name, os.urandom(16)])
        key = database.value(query, [name])
    return bytes(key or b"")


def project_id(database: SqlDatabase) -> str:
    """Return the project's default id, in hex; empty if the id is missing and the database is read-only."""
    return project_key(database, "id").hex()


def ledger_key(database: SqlDatabase, home: Path | None) -> str:
    """Return the short name of the ledger in its documents.

    `home`: Folder of the database's file, None on a server. A copy of the folder has another inode and so another key,
    as its ledger gives the same numbers to other facts; an older database that is put back into the folder has its key.
    """
    made = project_id(database)
    return f"L{int(made[:8], 16) ^ (home.stat().st_ino if home else 0) & 0xFFFFFFFF:08x}" if made else ""


def shared_name(database: SqlDatabase, given: Sequence[str], folder: str, *, changed: bool) -> list[str]:
    """Return the id and the name that a memory has in all its folders: those first `given`, or the last `changed`.

    Where none was given, the name is that of the first `folder`.
    """
    known = _stored_name(database)
    named = _named(known, given, folder, changed=changed)
    if named != known and not database.read_only:
        with database.transaction("project key"):  # reads again, as another folder may have given a name meanwhile
            named = _named(_stored_name(database), given, folder, changed=changed)
            made = "INSERT INTO project_keys VALUES ('project', ?) ON CONFLICT (name) DO UPDATE SET value = ?"
            database.write("project key", made, [json.dumps(named).encode()] * 2)
    number, name, first = [*known, folder][:3] if known and database.read_only else named
    return [number, name or first]


def _stored_name(database: SqlDatabase) -> list[str]:
    """Return the stored id, name and name of the first folder; empty if nothing is stored."""
    found = database.value("SELECT value FROM project_keys WHERE name = 'project'")
    return [*json.loads(bytes(found))] if found else []


def _named(known: Sequence[str], given: Sequence[str], folder: str, *, changed: bool) -> list[str]:
    """Return what to store, with a `given` id and name where they are `changed` or were not known before."""
    *old, first = [*known, folder][:3] if known else ("", "", folder)
    both = zip(given, old, strict=True)
    return [*((new or was) if changed else (was or new) for new, was in both), first]


_MOVED, _ARRIVING, _LEFT = "moved", "arriving", "left "


def mark_moved(database: SqlDatabase, words: str, place: str) -> None:
    """Store the message that says where the memory is now; every later write by any process fails with this message.

    `place`: The schema that is left, with its server, which the copy of the memory notes; empty for a file.
    """
    if place:
        query = "INSERT INTO project_keys VALUES (?, ?) ON CONFLICT DO NOTHING"
        database.write("copy", query, [f"{_LEFT}{place}", b""])
    _mark(database, _MOVED, words, words)


def mark_arriving(database: SqlDatabase, route: str) -> None:
    """Mark the copy of a memory as unusable until the memory is marked as moved. `route`: From where, to where."""
    _mark(database, _ARRIVING, route, _unfinished(route))


def _mark(database: SqlDatabase, key: str, value: str, words: str) -> None:
    with database.transaction("copy"):
        database.write("copy", "INSERT INTO project_keys VALUES (?, ?)", [key, value.encode()])
        database.refuse_writes(words)


def _unfinished(route: str) -> str:
    return (
        f"the move of this memory {route} was interrupted: repeat the same `orchestra-mem move` with the storage "
        "settings of the old place, which may still be in use. If that place is lost, `orchestra-mem move --to` here "
        "with `--old-place-lost` continues with this copy"
    )


def moved_words(database: SqlDatabase) -> str:
    """Return the message of a memory that was moved away, or whose move to here is unfinished; empty if neither."""
    found = _marks(database)
    return _unfinished(found[_ARRIVING]) if _ARRIVING in found else found.get(_MOVED, "")


def arriving_route(database: SqlDatabase) -> str:
    """Return the route stored by `mark_arriving`; empty if this is no unfinished copy."""
    return _marks(database).get(_ARRIVING, "")


def _marks(database: SqlDatabase) -> dict[str, str]:
    found = database.rows("SELECT name, value FROM project_keys WHERE name IN (?, ?)", [_MOVED, _ARRIVING])
    return {name: bytes(value).decode() for name, value in found}


def left_places(database: SqlDatabase, *, forget: bool = False) -> list[str]:
    """Return the schemas, with their servers, in which moves have left rows; with `forget`, first forget them all."""
    if forget:
        database.write("project key", f"DELETE FROM project_keys WHERE name LIKE '{_LEFT}%'")
    found = database.rows(f"SELECT name FROM project_keys WHERE name LIKE '{_LEFT}%' ORDER BY name")
    return [name.removeprefix(_LEFT) for (name,) in found]


def empty_where_left(target: SqlDatabase, source: SqlDatabase) -> None:
    """Take the mark of a move away from `target`, and delete all rows if its memory is now in `source`, or still is.

    The rows stay if `source` lacks the last operation in `target`, for example because it is an older copy. Only
    columns without text are compared, as a redaction rewrites texts.
    """
    if not moved_words(target):
        return
    names = ", ".join(name for name, is_text in target.tables()["operations"].items() if not is_text)
    last = target.rows(f"SELECT {names} FROM operations ORDER BY id DESC LIMIT 1")
    highest = target.value("SELECT max(id) FROM operations")
    has_all = last == source.rows(f"SELECT {names} FROM operations WHERE id = ?", [highest])
    take_mark_away(target)
    if has_all and project_key(target) == project_key(source):
        for table in target.tables():
            target.write("copy", f"DELETE FROM {table}")


def take_mark_away(database: SqlDatabase, place: str = "") -> None:
    """Undo `mark_moved` and `mark_arriving`, so that the memory can be written in this database, at this `place`."""
    with database.transaction("copy"):
        database.refuse_writes("")
        database.write("copy", "DELETE FROM project_keys WHERE name IN (?, ?, ?)", [_MOVED, _ARRIVING, _LEFT + place])

"""Keep the project's own keys in its database, and the mark that its memory was moved away."""

from __future__ import annotations

import os

from orchestra_mem.adapters.database.statements import SqlDatabase


def project_key(database: SqlDatabase, name: str = "redaction") -> bytes:
    """Return a key, made when it is first asked for; b"" where nothing may be written and none is there.

    Of several programs that ask at once all get the same. With the one for redaction, what two secrets have in common
    shows in this project and nowhere else.
    """
    query = "SELECT value FROM project_keys WHERE name = ?"
    key = database.value("reading the project's key", query, [name])
    if key is None and not database.read_only:
        made = "INSERT INTO project_keys VALUES (?, ?) ON CONFLICT DO NOTHING"
        database.write("project key", made, [name, os.urandom(16)])
        key = database.value("reading the project's key", query, [name])
    return bytes(key or b"")


def project_id(database: SqlDatabase) -> str:
    """Return the id by which the project is known where its settings give none; empty where none can be made."""
    return project_key(database, "id").hex()


_KEY = "moved"


def mark_moved(database: SqlDatabase, words: str) -> None:
    """Keep the words that tell where the memory is now, and refuse with them what any process writes from now on."""
    with database.transaction("copy"):
        database.write("copy", "INSERT INTO project_keys VALUES (?, ?)", [_KEY, words.encode()])
        database.refuse_writes(words)


def moved_words(database: SqlDatabase) -> str:
    """Return those words; empty where the memory was not moved away."""
    found = database.value("opening", "SELECT value FROM project_keys WHERE name = ?", [_KEY])
    return bytes(found or b"").decode()


def empty_where_left(target: SqlDatabase, source: SqlDatabase) -> None:
    """Remove all rows of the memory in `source` from a database that it was moved away from; others stay.

    They stay as well where `source` does not have the last operation of them, as when it is an older copy.
    """
    last = target.rows("copy", "SELECT * FROM operations ORDER BY id DESC LIMIT 1")
    has_all = last == source.rows("copy", "SELECT * FROM operations WHERE id = ?", [row[0] for row in last] or [0])
    if has_all and moved_words(target) and project_key(target) == project_key(source):
        take_mark_away(target)
        for table in target.tables():
            target.write("copy", f"DELETE FROM {table}")


def take_mark_away(database: SqlDatabase) -> None:
    """Let the memory go on here."""
    with database.transaction("copy"):
        database.refuse_writes("")
        database.write("copy", "DELETE FROM project_keys WHERE name = ?", [_KEY])

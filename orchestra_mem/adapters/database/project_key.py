"""The project's keys, stored in its database, and the mark that its memory was moved elsewhere."""

from __future__ import annotations

import os

from orchestra_mem.adapters.database.statements import SqlDatabase


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


_KEY = "moved"


def mark_moved(database: SqlDatabase, words: str) -> None:
    """Store the message that says where the memory is now; every later write by any process fails with this message."""
    with database.transaction("copy"):
        database.write("copy", "INSERT INTO project_keys VALUES (?, ?)", [_KEY, words.encode()])
        database.refuse_writes(words)


def moved_words(database: SqlDatabase) -> str:
    """Return the message stored by `mark_moved`; empty if the memory was not moved."""
    found = database.value("SELECT value FROM project_keys WHERE name = ?", [_KEY])
    return bytes(found or b"").decode()


def empty_where_left(target: SqlDatabase, source: SqlDatabase) -> None:
    """Delete all rows from `target` if its memory was moved away and is now in `source`; otherwise change nothing.

    The rows also stay if `source` lacks the last operation in `target`, for example because it is an older copy.
    """
    last = target.rows("SELECT * FROM operations ORDER BY id DESC LIMIT 1")
    has_all = last == source.rows("SELECT * FROM operations WHERE id = ?", [row[0] for row in last] or [0])
    if has_all and moved_words(target) and project_key(target) == project_key(source):
        take_mark_away(target)
        for table in target.tables():
            target.write("copy", f"DELETE FROM {table}")


def take_mark_away(database: SqlDatabase) -> None:
    """Undo `mark_moved`, so that the memory can be written in this database again."""
    with database.transaction("copy"):
        database.refuse_writes("")
        database.write("copy", "DELETE FROM project_keys WHERE name = ?", [_KEY])

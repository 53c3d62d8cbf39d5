"""The project's own keys, kept in its database: they go with its folder wherever that goes."""

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

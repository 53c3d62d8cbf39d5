"""The project's own key: with it what two secrets have in common shows in this project and nowhere else."""

from __future__ import annotations

import os

from orchestra_mem.adapters.database.statements import SqlDatabase

_BYTES = 16
_NAME = "redaction"


def project_key(database: SqlDatabase) -> bytes:
    """Return the key, made when it is first asked for; b"" where nothing may be written and none is there."""
    query = "SELECT value FROM project_keys WHERE name = ?"
    key = database.value("reading the project's key", query, [_NAME])
    if key is None and not database.read_only:
        made = "INSERT INTO project_keys VALUES (?, ?) ON CONFLICT DO NOTHING"
        database.write("project key", made, [_NAME, os.urandom(_BYTES)])
        key = database.value("reading the project's key", query, [_NAME])
    return bytes(key or b"")

"""Remember what the copies on this machine have held: by that it is seen what somebody has done to one."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestra_mem.adapters.files.reading import decode, encode
from orchestra_mem.core.documents.copies import Copy
from orchestra_mem.errors import StorageError, database_error
from orchestra_mem.types import FileState

_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS copies (
    name TEXT PRIMARY KEY, revision INTEGER NOT NULL, state TEXT NOT NULL, stamp INTEGER, text BLOB
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen (id INTEGER PRIMARY KEY, name TEXT NOT NULL, stamp INTEGER, text BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS sending (
    name TEXT PRIMARY KEY, sent BLOB NOT NULL, stamp INTEGER, text BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS seen_name ON seen (name, id);
"""
_GONE, _UNKNOWN = "gone", "unknown"
# An editor may have a document open for hours, while others go on: what so many bytes, packed, tell of each is kept.
_KEPT_BYTES = 4_000_000
_REMEMBER = (
    "INSERT INTO seen (name, stamp, text) SELECT ?1, ?2, ?3 WHERE (?2, ?3) IS NOT "
    "(SELECT stamp, text FROM seen WHERE name = ?1 ORDER BY id DESC LIMIT 1)"
)
_FORGET = (
    "DELETE FROM seen WHERE name = ?1 AND id <= (SELECT max(id) FROM (SELECT id, sum(length(text)) "
    "OVER (ORDER BY id DESC) AS size FROM seen WHERE name = ?1) WHERE size > ?2)"
)


class Folders:
    """Where the documents lie on this machine, by names that are the same on every one."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = folders

    def name(self, path: Path) -> str | None:
        """The name of a document on every machine; None for what is none, as a name that is no text in UTF-8."""
        for name, folder in self._folders.items():
            if path.suffix == ".md" and path.is_relative_to(folder):
                rest = path.relative_to(folder).as_posix()
                return f"{name}/{rest}" if rest.isprintable() else None
        return None

    def path(self, name: str) -> Path:
        """Where the document of that name lies here."""
        folder, _, rest = name.partition("/")
        return self._folders[folder] / rest

    def paths(self, pattern: str) -> Iterator[Path]:
        """Yield the files of a pattern in all folders."""
        return (path for folder in self._folders.values() for path in sorted(folder.glob(pattern)))


class LocalTexts:
    """The names of the files that this folder has copies of, each with its revision, and what it has held.

    The document store's lock is held by whoever calls it.

    Raises:
        StorageError: its file cannot be used. It may be removed: then a copy that differs is kept as a version.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def _run(self, query: str, *values: object) -> list[Any]:
        """Run a statement; the rows that it gives."""
        try:
            if self._connection is None:
                self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._connection.executescript(_TABLES)
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            text = f"remembering what the documents have held: {self._path}: {error}"
            told = database_error(error, text, kept="the documents are as they were")
            raise told or StorageError(f"{text}; remove it: what differs from the server's is kept as versions")  # noqa: B904

    def about(self, name: str) -> str:
        """Return what is known of the folder under a name, empty for nothing."""
        return "".join(value for (value,) in self._run("SELECT value FROM about WHERE name = ?", name))

    def note(self, name: str, value: str) -> None:
        """Keep something about the folder."""
        self._run("INSERT OR REPLACE INTO about VALUES (?, ?)", name, value)

    @property
    def through(self) -> int:
        """The revision up to which the server's changes have been taken over."""
        return int(self.about("through") or 0)

    @through.setter
    def through(self, revision: int) -> None:
        self.note("through", str(revision))

    def revision(self, name: str) -> int:
        """Return the revision that a copy was brought to, 0 where there is none."""
        return sum(number for (number,) in self._run("SELECT revision FROM copies WHERE name = ?", name))

    def changed(self, state: Callable[[str], FileState | None], *, but: Sequence[str] = ()) -> dict[str, str]:
        """Name the copies whose files are not as they were when they were brought to their revision, and how they are.

        Args:
            state: gives the state of a file by its name.
            but: names that have one of these parts are left out.
        """
        left_out = " AND name NOT LIKE ?" * len(but)
        query = f"SELECT name, state FROM copies WHERE state <> ?{left_out} ORDER BY name"
        known = self._run(query, _GONE, *(f"%{part}%" for part in but))
        return {name: now for name, then in known if (now := _state(state(name))) != then}

    def names(self) -> set[str]:
        """Name the files that the folder has copies of."""
        return {name for (name,) in self._run("SELECT name FROM copies WHERE state <> ?", _GONE)}

    def in_step(self, name: str) -> Copy | None:
        """Return what a copy held that the server has; None where that is not remembered."""
        rows = self._run("SELECT stamp, text FROM copies WHERE name = ? AND text IS NOT NULL", name)
        return Copy(rows[0][0], decode(rows[0][1])) if rows else None

    def held(self, name: str) -> list[Copy]:
        """Return what a copy has held, oldest first."""
        rows = self._run("SELECT stamp, text FROM seen WHERE name = ? ORDER BY id", name)
        return [Copy(stamp, decode(zlib.decompress(packed))) for stamp, packed in rows]

    def remember(self, name: str, copy: Copy) -> None:
        """Remember what a copy holds, or is about to hold."""
        self._run(_REMEMBER, name, copy.stamp, _packed(copy.text))
        self._run(_FORGET, name, _KEPT_BYTES)

    def begin_sending(self, name: str, text: str, copy: Copy) -> None:
        """Note a text about to be stored on the server, in which is what a copy holds."""
        row = name, _packed(text), copy.stamp, _packed(copy.text)
        self._run("INSERT OR REPLACE INTO sending VALUES (?, ?, ?, ?)", *row)

    def remember_sent(self, name: str, text: str) -> None:
        """Remember what a copy held when this text of the server's was sent: what is saved next is a change of that.

        Nothing is done where nothing was sent, or its arrival is known.
        """
        query = "DELETE FROM sending WHERE name = ? AND sent = ? RETURNING stamp, text"
        for stamp, packed in self._run(query, name, _packed(text)):
            copy = Copy(stamp, decode(zlib.decompress(packed)))
            held = "UPDATE copies SET state = ?, stamp = ?, text = ? WHERE name = ?"
            self._run(held, _UNKNOWN, copy.stamp, encode(copy.text), name)
            self.remember(name, copy)

    def bring(self, name: str, revision: int, state: FileState | None, copy: Copy | None) -> None:
        """Note a copy's revision, what it holds where that is remembered, and its file's state where that is known."""
        self._put(name, revision, _state(state) or _UNKNOWN, copy and copy.stamp, copy and encode(copy.text))
        if copy is not None:
            self.remember(name, copy)

    def forget(self, name: str, revision: int) -> None:
        """Note the revision at which a file went; there is no copy any more."""
        self._put(name, revision, _GONE, None, None)
        self._run("DELETE FROM seen WHERE name = ?", name)

    def _put(self, *row: object) -> None:
        self._run("INSERT OR REPLACE INTO copies VALUES (?, ?, ?, ?, ?)", *row)

    def close(self) -> None:
        """Close the file; it is opened again when it is asked for something."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _packed(text: str) -> bytes:
    return zlib.compress(encode(text), level=1)


def _state(state: FileState | None) -> str:
    return f"{state.inode} {state.size_bytes} {state.modified_ns}" if state else ""

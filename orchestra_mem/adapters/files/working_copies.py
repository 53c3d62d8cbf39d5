"""This machine's copies of shared documents: their earlier contents, to detect what people changed, and a follower."""

from __future__ import annotations

import logging
import sqlite3
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from orchestra_mem.adapters.files.reading import decode, encode
from orchestra_mem.core.documents.signature import Copy
from orchestra_mem.errors import ClosedError, DocumentError, LockTimeoutError, StorageError, database_error
from orchestra_mem.ports import DocumentStore
from orchestra_mem.stores.ledger import pack_text, unpack_text
from orchestra_mem.types import FileState

logger = logging.getLogger(__name__)

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
# Compressed size of the contents kept for each document: editors may show an old one for hours while others write.
_KEPT_BYTES = 4_000_000
_REMEMBER = (
    "INSERT INTO seen (name, stamp, text) SELECT ?1, ?2, ?3 WHERE (?2, ?3) IS NOT "
    "(SELECT stamp, text FROM seen WHERE name = ?1 ORDER BY id DESC LIMIT 1)"
)
_FORGET = (
    "DELETE FROM seen WHERE name = ?1 AND id <= (SELECT max(id) FROM (SELECT id, sum(length(text)) "
    "OVER (ORDER BY id DESC) AS size FROM seen WHERE name = ?1) WHERE size > ?2)"
)
_FORMER = (
    "SELECT name, 'seen', 'id', id, text FROM seen UNION ALL SELECT name, 'sending', 'name', name, text FROM sending "
    "UNION ALL SELECT name, 'sending', 'name', name, sent FROM sending"
)


class Folders:
    """Maps paths of documents on this machine to names that are the same on every machine, and back."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        # Nested folders first, so that a document is named after the innermost folder that contains it.
        self._folders = dict(sorted(folders.items(), key=lambda each: -len(each[1].parts)))

    def name(self, path: Path) -> str | None:
        """Return a document's name; None for other files, and for paths that are not printable text."""
        for name, folder in self._folders.items():
            if path.suffix == ".md" and path.is_relative_to(folder):
                rest = path.relative_to(folder).as_posix()
                return f"{name}/{rest}" if rest.isprintable() else None
        return None

    def path(self, name: str) -> Path:
        """Return the path of a document on this machine; raise `DocumentError` if the name leads to no document."""
        folder, _, rest = name.partition("/")
        path = self._folders.get(folder, Path()) / rest
        if self.name(path) != name or ".." in Path(rest).parts:
            raise DocumentError(f"{name!r} on the server is not the name of a document")
        return path

    def has(self, name: str) -> bool:
        """Check whether a name leads to a document; log a warning if not."""
        try:
            self.path(name)
        except DocumentError as error:
            logger.warning("%s; it is skipped", error)
            return False
        return True

    def paths(self) -> Iterator[Path]:
        """Yield the documents of all folders, those of a nested folder twice."""
        return (path for folder in self._folders.values() for path in sorted(folder.rglob("*.md")))


class CopyHistory:
    """Stores the names of this folder's copies, their revisions, and the contents that they have had.

    Callers that write hold the document store's lock.

    Raises:
        StorageError: The file cannot be used. Deleting it is safe: copies unlike the server's become versions.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def _run(self, query: str, *values: object) -> list[Any]:
        """Run a statement and return its rows; open the file first if necessary."""
        try:
            if self._connection is None:
                opened = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
                opened.execute("PRAGMA journal_mode = WAL")
                opened.execute("PRAGMA synchronous = NORMAL")
                opened.executescript(_TABLES)
                self._connection = opened
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            text = f"recording the state of the documents: {self._path}: {error}"
            fault = database_error(error, text, kept="the documents are unchanged")
            raise fault or StorageError(f"{text}; delete it: documents that differ from the server's become versions")  # noqa: B904

    def about(self, name: str) -> str:
        """Return a property of the folder, empty if it is not set."""
        return "".join(value for (value,) in self._run("SELECT value FROM about WHERE name = ?", name))

    def note(self, name: str, value: str) -> None:
        """Set a property of the folder."""
        self._run("INSERT OR REPLACE INTO about VALUES (?, ?)", name, value)

    @property
    def through(self) -> int:
        """The revision up to which the server's changes have been applied on this machine."""
        return int(self.about("through") or 0)

    @through.setter
    def through(self, revision: int) -> None:
        self.note("through", str(revision))

    def revision(self, name: str) -> int:
        """Return a copy's revision, or the revision that removed it; 0 for an unknown name."""
        return sum(number for (number,) in self._run("SELECT revision FROM copies WHERE name = ?", name))

    def changed(self, state: Callable[[str], FileState | None], *, but: Sequence[str] = ()) -> dict[str, str]:
        """Return the copies whose files have changed since their revision was recorded, with their present states.

        Args:
            state: Returns the state of a file by its name.
            but: Names that contain one of these parts are skipped.
        """
        left_out = " AND name NOT LIKE ?" * len(but)
        query = f"SELECT name, state FROM copies WHERE state <> ?{left_out} ORDER BY name"
        known = self._run(query, _GONE, *(f"%{part}%" for part in but))
        return {name: now for name, then in known if (now := _state(state(name))) != then}

    def names(self) -> set[str]:
        """Return the names of all copies in the folder."""
        return {name for (name,) in self._run("SELECT name FROM copies WHERE state <> ?", _GONE)}

    def synced_copy(self, name: str) -> Copy | None:
        """Return a copy's last content that the server has as well; None if no such content is known."""
        rows = self._run("SELECT stamp, text FROM copies WHERE name = ? AND text IS NOT NULL", name)
        return Copy(rows[0][0], decode(rows[0][1])) if rows else None

    def held(self, name: str) -> list[Copy]:
        """Return the contents that a copy has had, oldest first."""
        rows = self._run("SELECT stamp, text FROM seen WHERE name = ? ORDER BY id", name)
        return [Copy(stamp, unpack_text(packed)) for stamp, packed in rows]

    def remember(self, name: str, copy: Copy) -> None:
        """Record the content that a copy has or is about to get; drop the oldest contents beyond `_KEPT_BYTES`."""
        self._run(_REMEMBER, name, copy.stamp, pack_text(copy.text))
        self._run(_FORGET, name, _KEPT_BYTES)

    def begin_sending(self, name: str, text: str, copy: Copy) -> None:
        """Record a text that is about to be stored on the server, and the copy's content that this text includes."""
        row = name, pack_text(text), copy.stamp, pack_text(copy.text)
        self._run("INSERT OR REPLACE INTO sending VALUES (?, ?, ?, ?)", *row)

    def remember_sent(self, name: str, text: str) -> None:
        """Record the arrival of a text from `begin_sending`: the next save is an edit of the copy recorded for it.

        Does nothing if no such text was sent, or if its arrival has already been recorded.
        """
        query = "DELETE FROM sending WHERE name = ? AND sent = ? RETURNING stamp, text"
        for stamp, packed in self._run(query, name, pack_text(text)):
            copy = Copy(stamp, unpack_text(packed))
            held = "UPDATE copies SET state = ?, stamp = ?, text = ? WHERE name = ?"
            self._run(held, _UNKNOWN, copy.stamp, encode(copy.text), name)
            self.remember(name, copy)

    def bring(self, name: str, revision: int, state: FileState | None, copy: Copy | None) -> None:
        """Record a copy's revision, its content (None: not kept), and the state of its file (None: unknown)."""
        self._put(name, revision, _state(state) or _UNKNOWN, copy and copy.stamp, copy and encode(copy.text))
        if copy is not None:
            self.remember(name, copy)

    def forget(self, name: str, revision: int) -> None:
        """Record the revision that removed a file; the copy no longer exists."""
        self._put(name, revision, _GONE, None, None)
        self._run("DELETE FROM seen WHERE name = ?", name)

    def _put(self, *row: object) -> None:
        self._run("INSERT OR REPLACE INTO copies VALUES (?, ?, ?, ?, ?)", *row)

    def former(self) -> Iterator[tuple[str, str, tuple[str, str, object]]]:
        """Yield the earlier contents of all copies: the copy's name, the text, and the row's table, key and value."""
        for name, table, key, value, packed in self._run(_FORMER):
            with suppress(zlib.error):
                yield name, unpack_text(packed), (table, key, value)

    def change_former(self, change: Callable[[str], str], copy: str | None = None) -> int:
        """Apply `change` to the contents of one copy, or all, in the file too; count those that it changed.

        Contents stay as merge bases, but a text that is being sent is deleted.
        """
        texts = {row: new for name, was, row in self.former() if copy in (None, name) and (new := change(was)) != was}
        for (table, key, value), text in texts.items():
            if table == "seen":
                self._run("UPDATE seen SET text = ? WHERE id = ?", pack_text(text), value)
            else:
                self._run(f"DELETE FROM {table} WHERE {key} = ?", value)
        # What was overwritten remains in the file and its log, also from a call that was killed here.
        self._run("VACUUM")
        self._run("PRAGMA wal_checkpoint(TRUNCATE)")
        return len(texts)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _state(state: FileState | None) -> str:
    return f"{state.inode} {state.size_bytes} {state.modified_ns}" if state else ""


# A text saved on one machine reaches the files of the others within two periods.
_EVERY_S = 0.7
_AFTER_A_FAULT_S = 3.0
_JOIN_S = 1.0  # the thread takes longer only while it waits for an unreachable server


class Follower:
    """Calls `DocumentStore.follow` periodically in a daemon thread. Holds only a weak reference to the store."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = weakref.ref(store)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="orchestra-mem documents", daemon=True)
        weakref.finalize(store, self._ended.set)
        try:
            self._thread.start()
        except RuntimeError:  # no thread available: the next write applies the changes
            self._ended.set()

    def end(self) -> None:
        """End the thread once its present call has finished; wait up to a second for it."""
        self._ended.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(_JOIN_S)

    def _run(self) -> None:
        wait_s = _EVERY_S
        while not self._ended.wait(wait_s):
            wait_s = _EVERY_S
            try:
                if (store := self._store()) is None:
                    return
                with suppress(LockTimeoutError):  # others write now
                    store.follow()
            except ClosedError:
                return
            except Exception:  # the next caller gets the same error
                logger.debug("following has failed", exc_info=True)
                wait_s = _AFTER_A_FAULT_S
            finally:
                store = None

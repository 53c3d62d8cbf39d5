"""Store of the documents that several machines share: the newest revision of each file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from orchestra_mem.errors import DocumentConflictError
from orchestra_mem.stores.statements import FreeText, Stored, Table
from orchestra_mem.types import SharedFile

_FILES = Table("shared_files", SharedFile)
FREE_TEXT = (FreeText("shared_files", ("text",)),)
# Bytes that are not UTF-8 are lone surrogates in a text. PostgreSQL stores none: private-use characters replace them.
# Regular expressions, as most texts have no surrogates: `str.translate` takes 30 times as long on such texts.
_GIVEN, _HELD = re.compile("[\udc80-\udcff]"), re.compile("[\U0010fe80-\U0010feff]")
_PUT = (
    "INSERT INTO shared_files (name, revision, text, moved_to, machine, saved) "
    "SELECT :name, coalesce(max(revision), 0) + 1, :text, :moved_to, :machine, :saved FROM shared_files WHERE 1 = 1 "
    "ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, text = excluded.text, "
    "moved_to = excluded.moved_to, machine = excluded.machine, "
    "saved = CASE WHEN excluded.saved > coalesce(shared_files.saved, 0) THEN excluded.saved "
    "ELSE shared_files.saved END WHERE shared_files.revision = :revision RETURNING revision"
)


class SharedFiles(Stored):
    """Stores the newest revision of each document that several machines share."""

    def newer_than(self, revision: int) -> list[SharedFile]:
        """Return the files changed after a revision, in order of change."""
        found = self._database.find(_FILES, "WHERE revision > ? ORDER BY revision", (revision,))
        return [replace(file, text=file.text and _HELD.sub(_given, file.text)) for file in found]

    def sizes_after(self, revision: int) -> list[tuple[str, int, int | None]]:
        """Return name, revision and size in bytes (None: removed) of the files changed after a revision, in order."""
        query = "SELECT name, revision, octet_length(text) FROM shared_files WHERE revision > ? ORDER BY revision"
        return [(name, number, size) for name, number, size in self._database.rows(query, (revision,))]

    def text(self, name: str) -> str | None:
        """Return the newest text of a file, None if there is none."""
        text: str | None = self._database.value("SELECT text FROM shared_files WHERE name = ?", (name,))
        return text and _HELD.sub(_given, text)

    def put_all(self, files: Sequence[SharedFile]) -> list[int]:
        """Store new revisions of all files or of none, as `put` does, and return their numbers."""
        with self._database.transaction("sharing"):
            return [self.put(file) for file in files]

    def put(self, file: SharedFile) -> int:
        """Store a new revision of a file, based on its `revision` (0: new file), and return the new number.

        Raises:
            DocumentConflictError: Another machine has stored a revision since.
        """
        text = file.text and _GIVEN.sub(_held, file.text)
        done = self._database.write("sharing", _PUT, _FILES.values(replace(file, text=text))).row
        if done is None:
            raise DocumentConflictError(f"{file.name} was changed on another machine while it was being written")
        return int(done[0])


def _held(byte: re.Match[str]) -> str:
    return chr(ord(byte[0]) - 0xDC00 + 0x10FE00)


def _given(held: re.Match[str]) -> str:
    return chr(ord(held[0]) - 0x10FE00 + 0xDC00)

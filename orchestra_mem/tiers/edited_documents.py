"""The one table of documents that the machine writes and people edit: every command asks it, by a document's name."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from orchestra_mem.core.documents.catalog_document import kept_name, shown_name
from orchestra_mem.core.documents.conflicts import ConflictBlock, Resolved, accept, find_conflicts, reject
from orchestra_mem.core.documents.markdown import line_end
from orchestra_mem.errors import DocumentError, NotFoundError, StorageError
from orchestra_mem.tiers.document_writer import DocumentWriter
from orchestra_mem.types import DocumentFault, FileState, Json, Version, VersionReason


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedEdit:
    """What came of an edit of a text that may have changed since.

    `text` was saved; it `is_merged` where it also has what came since. Where the edit `collides` with the `current`
    text nothing was saved, and `text` has the lines of both.
    """

    text: str
    current: str
    is_merged: bool = False
    collides: bool = False


class EditedDocuments:
    """Gives documents, their earlier texts, conflicts and faults by name: `project_state`, `catalog/reviewer`.

    Args:
        writers: write the documents, each those that it has the names of.
    """

    def __init__(self, *writers: DocumentWriter) -> None:
        self.writers = writers
        self._store = writers[0].store

    def names(self) -> list[str]:
        """Name the documents that there are."""
        return [shown_name(name) for writer in self.writers for name in writer.names()]

    def find(self, document: str, *, others: tuple[str, ...] = ()) -> tuple[DocumentWriter, str]:
        """Return who writes a document, and the name that it goes by there. `others` are what else may be asked for.

        Raises:
            NotFoundError: there is no such document.
        """
        wanted = kept_name(document)
        for writer in self.writers:
            if wanted in writer.names():
                return writer, wanted
        known = ", ".join([*self.names(), *others])
        raise NotFoundError(f"there is no document {document!r}; there are: {known}")

    def path(self, document: str) -> Path:
        """Where a document lies; see `find`."""
        writer, name = self.find(document)
        return writer.path(name)

    def text(self, document: str) -> str:
        """A document as it stands, empty where there is none; raises where something else than a file stands there."""
        return self._store.read(self.path(document)) or ""

    def history(self, document: str) -> list[Version]:
        """The kept versions of a document, oldest first; also of a session document, by the stem of its file.

        Raises:
            NotFoundError: there is no such document.
        """
        return self._store.versions(kept_name(document)) or self._store.versions(self.find(document)[1])

    def _version(self, document: str, sequence: int | None) -> Version:
        """A version by its number, by default the newest."""
        versions = self._store.versions(self.find(document)[1])
        found = [version for version in versions if sequence in (None, version.sequence)]
        if not found:
            kept = ", ".join(str(version.sequence) for version in versions) or "none"
            wanted = "any version" if sequence is None else f"version {sequence}"
            raise NotFoundError(f"{document} does not have {wanted}; kept are: {kept}")
        return found[-1]

    def diff(self, document: str, sequence: int | None = None, until: int | None = None) -> str:
        """Unified difference from a version (by default the newest) to another one, by default the text as it stands.

        Raises:
            NotFoundError: there is no such document or version.
        """
        version = self._version(document, sequence)
        old = self._store.read_version(version).splitlines(keepends=True)
        after = self.text(document) if until is None else self._store.read_version(self._version(document, until))
        name, end = document.removesuffix(".md"), "now" if until is None else f"version {until}"
        new = after.splitlines(keepends=True)
        found = unified_diff(old, new, f"{name} (version {version.sequence})", f"{name} ({end})")
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in found)

    def restore(self, document: str, sequence: int) -> Version:
        """Put an earlier text back, word for word; the present one becomes a version.

        Returns:
            The version that keeps what stood there, or the restored one where nothing did.

        Raises:
            NotFoundError: there is no such document or version.
        """
        writer, name = self.find(document)
        with self._store.lock():
            version = self._version(document, sequence)
            old = self._store.read_version(version)
            current = self._store.read(self.path(document))
            if current == old:
                return version
            return writer.put(name, old, expected=current, reason=VersionReason.RESTORE, point="restore") or version

    def save(self, document: str, text: str, *, expected: str) -> None:
        """Save a whole text for a person; the present one becomes a version.

        Raises:
            NotFoundError: there is no such document.
            DocumentConflictError: it no longer holds `expected`.
        """
        writer, name = self.find(document)
        there = expected or (None if self._store.read(self.path(document)) is None else "")  # deleted, read as empty
        writer.put(name, text, expected=there, reason=VersionReason.EDIT, point="restore")

    def save_edit(self, document: str, text: str, *, opened: str) -> SavedEdit:
        """Save what a person has made of the text that was `opened`, merged with what has come since.

        Where both have changed the same lines nothing is saved: then it is for the person to put them together.

        Raises:
            NotFoundError: there is no such document.
            DocumentConflictError: somebody has saved it this instant.
        """
        from orchestra_mem.core.documents.merge import merge

        with self._store.lock():
            current = self.text(document)
            ends = line_end(current)
            opened, text = (each.replace("\r\n", "\n").replace("\n", ends) for each in (opened, text))
            found = merge(opened, current, text)
            if found.conflicts:
                together = merge(opened, current, text, both=True)
                return SavedEdit(text=together.text, current=current, collides=True)
            if found.text != current:
                self.save(document, found.text, expected=current)
        return SavedEdit(text=found.text, current=current, is_merged=found.text != text)

    def unread(self) -> list[str]:
        """Name the documents that people have saved and that the memory has not read since."""
        return [shown_name(name) for writer in self.writers for name in writer.unread()]

    def conflicts(self) -> list[tuple[str, ConflictBlock]]:
        """The collisions that wait for a person's word, document by document; what is no document has none."""
        waiting: list[tuple[str, ConflictBlock]] = []
        for name in self.names():
            with suppress(DocumentError):
                waiting += [(name, block) for block in find_conflicts(self.text(name))]
        return waiting

    def resolve(self, conflict: str, *, accepted: bool, both: bool = False) -> tuple[str, Resolved]:
        """Let the machine's lines of a conflict take the place of the person's, or take them out, or keep both.

        Raises:
            NotFoundError: no document has a conflict with this id.
            DocumentConflictError: somebody has saved the document this instant.
        """
        with self._store.lock():
            waiting = self.conflicts()
            for document, block in waiting:
                if block.id == conflict:
                    writer, name = self.find(document)
                    text = self.text(document)
                    done = accept(text, conflict, both=both) if accepted or both else reject(text, conflict)
                    writer.put(name, done.text, expected=text, reason=VersionReason.EDIT, point="resolve")
                    return document, done
        there = ", ".join(block.id for _, block in waiting) or "none"
        raise NotFoundError(f"there is no conflict {conflict!r}; open are: {there}")

    def problems(self) -> list[Json]:
        """The conflicts that wait, as `status` shows what is wrong."""
        waits = "conflict {0.id} in line {0.line} waits for you: `orchestra-mem conflicts`"
        with suppress(StorageError):  # told as the document's own problem
            return [{"subject": name, "since": None, "problem": waits.format(each)} for name, each in self.conflicts()]
        return []

    def faults(self) -> list[DocumentFault]:
        """What is wrong with the documents on disk; each is served as far as it can be meanwhile."""
        return [fault for path in map(self.path, self.names()) for fault in self._store.faults(path)]

    def states(self) -> Mapping[str, FileState | None]:
        """What tells whether the documents have changed, without reading them."""
        names = [(writer.path, name) for writer in self.writers for name in writer.names()]
        return {shown_name(name): self._store.state(path(name)) for path, name in names}

"""Access by name to the documents that the machine writes and people edit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from orchestra_mem.core.documents.catalog_document import (
    kept_name,
    shown_name,
)
from orchestra_mem.core.documents.conflicts import ConflictBlock, Resolved, accept, find_conflicts, reject
from orchestra_mem.core.documents.markdown import line_end
from orchestra_mem.core.documents.owned_lines import at_line, free_rows, owned_keys, owned_lines, with_rows
from orchestra_mem.core.documents.plan_lines import has_work, with_work_heading
from orchestra_mem.core.documents.signature import with_time_of
from orchestra_mem.core.text import squeeze
from orchestra_mem.errors import DocumentError, NotFoundError, StorageError
from orchestra_mem.tiers.document_writer import DocumentWriter
from orchestra_mem.types import Author, DocumentFault, FileState, Json, Version, VersionReason

# Blank lines between which several entries have been removed.
_BLANKS = re.compile(r"(\r?\n)(?:\r?\n){3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedEdit:
    """Result of saving an edit of a document that may have changed since it was opened.

    `text` is the saved text; `is_merged` is true if it includes changes that others saved since. `current` is the text
    before the save. If the edit `collides` with those changes, nothing is saved, and `text` has both sides' lines.
    """

    text: str
    current: str
    is_merged: bool = False
    collides: bool = False


class EditedDocuments:
    """Reads and changes documents and their versions. Names are, for example, `project_state` or `catalog/reviewer`.

    Args:
        writers: Each manages the documents in its `names()`.
    """

    def __init__(self, *writers: DocumentWriter) -> None:
        self.writers = writers
        self.store = writers[0].store

    def names(self) -> list[str]:
        """List the names of all documents."""
        return [shown_name(name) for writer in self.writers for name in writer.names()]

    def find(self, document: str, *, others: tuple[str, ...] = ()) -> tuple[DocumentWriter, str]:
        """Return the writer of a document, and the document's name in that writer.

        Raises:
            NotFoundError: there is no such document. The message also lists `others` as possible names.
        """
        wanted = kept_name(document)
        for writer in self.writers:
            if wanted in writer.names():
                return writer, wanted
        known = ", ".join([*self.names(), *others])
        raise NotFoundError(f"there is no document {document!r}; use one of: {known}")

    def path(self, document: str) -> Path:
        """Return the path of a document. Raises like `find`."""
        writer, name = self.find(document)
        return writer.path(name)

    def text(self, document: str) -> str:
        """Return a document's present text, empty if it has no file. Raises `DocumentError` for an unreadable file."""
        return self.store.read(self.path(document)) or ""

    def history(self, document: str) -> list[Version]:
        """List the kept versions of a document, oldest first. Session documents are named by the stem of their file.

        Raises:
            NotFoundError: there is no such document.
        """
        return self.store.versions(kept_name(document)) or self.store.versions(self.find(document)[1])

    def _version(self, document: str, sequence: int | None) -> Version:
        """Return a version by its sequence number, by default the newest."""
        versions = self.store.versions(self.find(document)[1])
        found = [version for version in versions if sequence in (None, version.sequence)]
        if not found:
            kept = ", ".join(str(version.sequence) for version in versions) or "none"
            wanted = "any version" if sequence is None else f"version {sequence}"
            raise NotFoundError(f"{document} does not have {wanted}; kept versions: {kept}")
        return found[-1]

    def diff(self, document: str, sequence: int | None = None, until: int | None = None) -> str:
        """Return the unified diff from version `sequence` (default: newest) to `until` (default: the present text).

        Raises:
            NotFoundError: there is no such document or version.
        """
        version = self._version(document, sequence)
        old = self.store.read_version(version).splitlines(keepends=True)
        after = self.text(document) if until is None else self.store.read_version(self._version(document, until))
        name, end = document.removesuffix(".md"), "now" if until is None else f"version {until}"
        new = after.splitlines(keepends=True)
        found = unified_diff(old, new, f"{name} (version {version.sequence})", f"{name} ({end})")
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in found)

    def restore(self, document: str, sequence: int) -> Version:
        """Restore an earlier text, word for word but with what has been recorded since. The present text is kept.

        What people added or changed since is undone; facts and work items of operations since stay. The time of writing
        in the front matter is that of the machine's last text: whoever edits the restored text has not edited an old
        one.

        Returns:
            The version of the replaced text; the restored version if no file or no different text was replaced.

        Raises:
            NotFoundError: there is no such document or version.
        """
        writer, name = self.find(document)
        with self.store.lock():
            version = self._version(document, sequence)
            current = self.store.read(self.path(document))
            old = with_time_of(self.store.read_version(version), writer.last_written(name, current).left or "")
            if current:
                old = self._as_recorded(writer, current, old)
            if current == old:
                return version
            return writer.put(name, old, expected=current, reason=VersionReason.RESTORE, point="restore") or version

    def _as_recorded(self, writer: DocumentWriter, current: str, old: str) -> str:
        """Return an old text with the machine's lines that only `current` has, without facts that have ended since."""
        from orchestra_mem.core.documents.document_merge import apply_stale_edit
        from orchestra_mem.core.documents.opened_text import undone

        old = with_work_heading(old) if has_work(current) else old
        current = self._in_first_words(writer, current, old)
        ended = {f"K{fact.id}" for fact in writer.ended(old, current) if fact.author is Author.MACHINE}
        own = writer.by_people({key for key in owned_keys(current).values() if key[0] in "KM#"})
        opened = undone("\n".join(free_rows(current, own)), current, old)
        if opened == current and not ended:
            return old
        gone = {place for place, key in owned_keys(old).items() if key in ended}
        old = "\n".join(row for place, row in enumerate(old.split("\n")) if place not in gone)
        return apply_stale_edit(_BLANKS.sub(r"\1\1", opened), current, old)

    def _in_first_words(self, writer: DocumentWriter, current: str, old: str) -> str:
        """Return the present text with the first words of facts that are newer than `old` and people have reworded."""
        newest = max((int(key[1:]) for key in owned_keys(old).values() if key[0] == "K"), default=0)
        lines = {int(line.key[1:]): line for line in owned_lines(current) if line.key[:1] == "K"}
        changed: dict[int, str | None] = {}
        for fact in writer.ledger.must_keeps_by_id([number for number in lines if number > newest]):
            if fact.operation and fact.found:
                line = lines[fact.id]
                changed |= at_line(line, line.row.replace(fact.text, squeeze(fact.found)))
        return with_rows(current, changed)

    def save(self, document: str, text: str, *, expected: str) -> None:
        """Save a person's complete text. The present text becomes a version.

        Raises:
            NotFoundError: there is no such document.
            DocumentConflictError: the document's text is no longer `expected`.
        """
        writer, name = self.find(document)
        there = expected or (None if self.store.read(self.path(document)) is None else "")  # `text` is "" for no file
        writer.put(name, text, expected=there, reason=VersionReason.EDIT, point="restore")

    def save_edit(self, document: str, text: str, *, opened: str) -> SavedEdit:
        """Save a person's edit of the text `opened`, merged with the changes made to the document since.

        If the edit and those changes touch the same lines, nothing is saved, and the person has to combine them.

        Raises:
            NotFoundError: there is no such document.
            DocumentConflictError: someone saved the document at this moment.
        """
        from orchestra_mem.core.documents.merge import merge

        with self.store.lock():
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
        """List the documents that people have saved since the memory last read them."""
        return [shown_name(name) for writer in self.writers for name in writer.unread()]

    def conflicts(self) -> list[tuple[str, ConflictBlock]]:
        """List the unresolved conflicts, each with its document's name. Unreadable documents are skipped."""
        waiting: list[tuple[str, ConflictBlock]] = []
        for name in self.names():
            with suppress(DocumentError):
                waiting += [(name, block) for block in find_conflicts(self.text(name))]
        return waiting

    def resolve(self, conflict: str, *, accepted: bool, both: bool = False) -> tuple[str, Resolved]:
        """Resolve a conflict: take the machine's lines if `accepted`, both sides' lines if `both`, else the person's.

        Raises:
            NotFoundError: no document has a conflict with this id.
            DocumentConflictError: someone saved the document at this moment.
        """
        with self.store.lock():
            waiting = self.conflicts()
            for document, block in waiting:
                if block.id == conflict:
                    writer, name = self.find(document)
                    text = self.text(document)
                    done = accept(text, conflict, both=both) if accepted or both else reject(text, conflict)
                    writer.put(name, done.text, expected=text, reason=VersionReason.EDIT, point="resolve")
                    return document, done
        there = ", ".join(block.id for _, block in waiting) or "none"
        raise NotFoundError(f"there is no conflict {conflict!r}; open conflicts: {there}")

    def problems(self) -> list[Json]:
        """Return the unresolved conflicts in the format that `status` shows."""
        waits = "conflict {0.id} in line {0.line} is unresolved: see `orchestra-mem conflicts`"
        with suppress(StorageError):  # `faults` reports it
            return [{"subject": name, "since": None, "problem": waits.format(each)} for name, each in self.conflicts()]
        return []

    def faults(self) -> list[DocumentFault]:
        """List the faults of the documents on disk. A faulty document is still served as far as possible."""
        return [fault for path in map(self.path, self.names()) for fault in self.store.faults(path)]

    def states(self) -> Mapping[str, FileState | None]:
        """Return the documents' file states by name, to detect changes without reading them."""
        names = [(writer.path, name) for writer in self.writers for name in writer.names()]
        return {shown_name(name): self.store.state(path(name)) for path, name in names}

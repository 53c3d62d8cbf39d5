"""What people have made of a document, and which text they edited: what ledger wrote it, what an editor had open."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from orchestra_mem.core.documents.signature import digest, signers, written_at
from orchestra_mem.errors import StorageError
from orchestra_mem.ports import DocumentStore
from orchestra_mem.stores import Ledger
from orchestra_mem.types import Author, ReadDocument, VersionReason


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedText:
    """A document with people's edits. `digest` is the SHA-256 of its file.

    `base` is the machine's own last text, "" if there is none. `before` and `said` are the document before and after
    the edits, with known numbers of facts and items. `before` is the text last read or last written by the machine,
    whichever is later. If people edited an older text, `before` also has the facts and items that they deleted from the
    older text and that the machine no longer shows. `has_work`: Whether boxes in the plan are work items, not facts.
    """

    base: str
    before: str
    said: str
    digest: str
    has_work: bool

    @property
    def as_read(self) -> ReadDocument:
        """The ledger's record of having read these edits."""
        return ReadDocument(base=digest(self.base), file=self.digest, text=self.said)


@dataclass(slots=True, kw_only=True, eq=False)
class EditOrigins:
    """Compares documents with the texts that this ledger has written and people have saved."""

    ledger: Ledger
    store: DocumentStore

    def is_other(self, name: str, text: str, own: str) -> bool:
        """Check whether a text of a document names another ledger; texts of earlier releases name none.

        A copied folder is another ledger once it has written. A memory that was moved has written under several keys.

        Args:
            name: Name of the document.
            text: The text.
            own: The machine's last text of the document.
        """
        keys = signers(text)
        if not self.ledger.key or keys <= {self.ledger.key, *signers(own)} - {""}:
            return False
        written = [*self.ledger.written_files(name)]
        # An older database lacks the last texts. Versions may be another ledger's, as git brings them.
        versions = [each for each in self.store.versions(name) if each.author is Author.MACHINE]
        texts = (*written, *map(self.store.read_version, versions))
        is_known = any(written_at(each) == written_at(text) for each in texts)
        return not (is_known and keys <= {"", self.ledger.key}.union(*map(signers, written)))

    def is_known(self, name: str, text: str) -> bool:
        """Check whether the document's file had a text before, byte for byte."""
        return text in [*self.ledger.written_files(name), *map(self.store.read_version, self.store.versions(name))]

    def newest(self, name: str) -> str:
        """Return the newest version's text, "" if there is none or a restore has replaced it."""
        with suppress(StorageError):  # if it cannot be read, the text is kept again
            versions = self.store.versions(name)
            if versions and versions[-1].reason is not VersionReason.RESTORE:
                return self.store.read_version(versions[-1])
        return ""

    def opened(self, name: str, current: str, left: str) -> str:
        """Return the text that an editor had open when it saved `current`.

        The opened text has the same time in its front matter as `current`; the machine sets a new time at each write. A
        person may have saved several texts with one time. If the machine never wrote that time, return the most similar
        text.
        """
        from orchestra_mem.core.documents.document_merge import ancestor, nearest

        time, left_at = written_at(current), written_at(left)
        versions = self.store.versions(name)
        while not (time and left_at) and versions and versions[-1].reason is VersionReason.RESTORE:
            replaced = self.store.read_version(versions.pop())
            if replaced != current:
                # Someone has restored a text that could not be dated like the machine's last text. All its differences
                # from the text that it replaced are intended.
                return replaced if digest(replaced) == self.ledger.last_read(name).file else left
            # The restore did not happen: its process was killed after keeping this version.
        saved = [self.store.read_version(version) for version in versions]
        if saved[-1:] == [current] and self.ledger.last_read(name).file != digest(current):
            saved.pop()  # it was kept, but not read: its process was killed
        written = list(self.ledger.written_files(name))
        if all(written_at(text) != time for text in written):
            return nearest([*written, *saved, left], current)
        return ancestor([text for text in dict.fromkeys([*written, *saved]) if written_at(text) == time], current)

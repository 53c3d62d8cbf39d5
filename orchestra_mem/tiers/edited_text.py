"""What people have made of a document, and which text they edited: what ledger wrote it, what an editor had open."""

from __future__ import annotations

from dataclasses import dataclass

from orchestra_mem.core.documents.signature import digest, signers, written_at
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
        versions = [each for each in self.store.versions(name) if each.author is Author.MACHINE]  # an older database
        written = [*self.ledger.written_files(name), *map(self.store.read_version, versions)]
        is_known = any(written_at(each) == written_at(text) for each in written)
        return not (is_known and keys <= {"", self.ledger.key}.union(*map(signers, written)))

    def opened(self, name: str, current: str, left: str) -> str:
        """Return the text that an editor had open when it saved `current`.

        The opened text has the same time in its front matter as `current`; the machine sets a new time at each write. A
        person may have saved several texts with one time. Texts saved since the machine wrote `left` are no candidates,
        as `left` contains none of their changes. If the machine never wrote that time, return the most similar text.
        """
        from orchestra_mem.core.documents.document_merge import ancestor, nearest

        time, left_at = written_at(current), written_at(left)
        saved: list[str] = []
        versions = self.store.versions(name)
        while not (time and left_at) and versions and versions[-1].reason is VersionReason.RESTORE:
            if self.store.read_version(versions.pop()) != current:
                # Someone has restored a text that could not be dated like the machine's last text. All its differences
                # from that text are intended.
                return left
            # The restore did not happen: its process was killed after keeping this version.
        for version in versions:
            text = self.store.read_version(version)
            if version.author is Author.MACHINE and written_at(text) == left_at:
                break
            saved.append(text)
        written = list(self.ledger.written_files(name))
        if all(written_at(text) != time for text in written):
            return nearest([*written, *saved, left], current)
        return ancestor([text for text in dict.fromkeys([*written, *saved]) if written_at(text) == time], current)

"""Read what people have made of documents, whichever text their editors had open.

An editor that was opened before the machine last wrote saves a text that never had what came since. The text that it
was opened on is found again, and what the person did to that is done to the document as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestra_mem.core.documents.conflicts import without_conflicts
from orchestra_mem.core.documents.episodic import digest, written_at
from orchestra_mem.core.documents.opened import ancestor, nearest
from orchestra_mem.core.documents.owned_lines import owned_keys, with_taken_out
from orchestra_mem.ports import DocumentStore, Ledger
from orchestra_mem.types import Author, ReadDocument, VersionReason, WrittenDocument

# What stands in the database for a byte that is no UTF-8.
_UNREADABLE = "\ufffd"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonText:
    """A document as it stands on disk, in a file with this `digest`.

    `base` is the machine's own last text, "" where it never wrote one. `said` is what a person has made of the file
    that it left, without the conflicts that are shown, and with the numbers that are known; `before` is that text as
    it was last read, or as the machine left it where nobody has read it since. Below it stand the lines that they took
    out of an older text and that the machine shows no more. `saved` is the file itself where an older text was open in
    the editor and it is read for the first time, else "".
    """

    base: str
    before: str
    said: str
    digest: str
    saved: str = ""

    @property
    def as_read(self) -> ReadDocument:
        """What the ledger keeps of it once its edits are read."""
        return ReadDocument(base=digest(self.base), file=self.digest, text=self.said)


@dataclass(slots=True, kw_only=True, eq=False)
class PersonTexts:
    """Reads documents as what people have said.

    Attributes:
        ledger: remembers what was written and read.
        store: keeps files and versions.
        path: says where a document lies.
        names: the documents that there are.
        numbered: writes behind what people have written the numbers that it got; all else stays byte for byte.
        by_people: of some numbers (`K12`) those of what people wrote or took out.
    """

    ledger: Ledger
    store: DocumentStore
    path: Callable[[str], Path]
    names: Callable[[], Collection[str]]
    numbered: Callable[[str, str], str]
    by_people: Callable[[Sequence[str]], Container[str]]

    def unread(self) -> list[str]:
        """Name the documents that people have saved since they were last read."""
        found: list[str] = []
        for name in self.names():
            current = self.store.read_settled(self.path(name))
            if current and current.strip() and not self.is_read(name, current, self.last_written(name, current)):
                found.append(name)
        return found

    def is_read(self, name: str, current: str, last: WrittenDocument) -> bool:
        """Whether nobody has saved a document since it was last read or written."""
        read = self.read_since(name, last)
        return digest(current) == (read.file if read else last.digest)

    def all(self) -> dict[str, PersonText]:
        """Each document that says something.

        A file that was taken away says nothing of the facts in it, and half a file nothing yet.
        """
        texts: dict[str, PersonText] = {}
        for name in self.names():
            current = self.store.read_settled(self.path(name))
            if current is None or not current.strip():
                continue
            last = self.last_written(name, current)
            before, said = self.edit_of(name, current, last)
            read, file = self.read_since(name, last), digest(current)
            is_old = written_at(said) != written_at(current) and (read is None or read.file != file)
            saved = current if is_old else ""
            texts[name] = PersonText(base=last.text or "", before=before, said=said, digest=file, saved=saved)
        return texts

    def read_since(self, name: str, last: WrittenDocument) -> ReadDocument | None:
        """The document as it was last read since the machine wrote it."""
        read = self.ledger.last_read(name)
        return read if read.base == digest(last.text or "") else None

    def last_written(self, name: str, current: str | None) -> WrittenDocument:
        """What the machine last wrote, also where a killed process could not confirm it."""
        last = self.ledger.written(name)
        if last.pending is not None and last.pending_left is not None and current is not None:
            # Somebody may have edited it since: the time in it is still the one of that write.
            times = {written_at(current), written_at(last.pending_left)}
            if last.pending_digest == digest(current) or (len(times) == 1 and times != {written_at(last.left or "")}):
                return WrittenDocument(last.pending, last.pending_digest, last.pending_left)
        return last

    def edit_of(self, name: str, current: str, last: WrittenDocument) -> tuple[str, str]:
        """A document before and after what a person did to it.

        Where that was an older text, the lines that they took out of it stood there before, whether the machine still
        shows them or not.
        """
        read = self.read_since(name, last)
        if read and read.file == digest(current) and _UNREADABLE not in read.text:
            return read.text, read.text  # what the ledgers have taken in, whatever these have done since
        left = without_conflicts(last.left or "")
        before = read.text if read else left
        person = self.numbered(name, without_conflicts(current))
        is_newest = last.digest == digest(current) or written_at(current) == written_at(last.left or "")
        if last.left is None or is_newest or not current.strip():
            return before, person
        from orchestra_mem.core.documents.agreement import brought_forward

        opened = self.numbered(name, without_conflicts(self._opened(name, current, last.left)))
        own = self.by_people([key for key in owned_keys(person).values() if key[0] in "KM"])
        return with_taken_out(before, opened, person), brought_forward(opened, left, person, own)

    def _opened(self, name: str, current: str, left: str) -> str:
        """The text that an editor had open when it saved.

        The machine writes its time into a document, and a person may save several texts with one time before the
        machine writes again. What was kept since the machine has `left` the document is in nothing that it wrote. A
        time that is not the machine's, as editors stamp one, says nothing: then it is the text that is most alike.
        """
        time, left_at = written_at(current), written_at(left)
        saved: list[str] = []
        versions = self.store.versions(name)
        while versions and versions[-1].reason is VersionReason.RESTORE:
            if self.store.read_version(versions.pop()) != current:
                # An earlier text has been put in the place of this one since, and means all that it says and lacks.
                return left
            # None has: who was about to put it there was killed before.
        for version in versions:
            text = self.store.read_version(version)
            if version.author is Author.MACHINE and written_at(text) == left_at:
                break
            saved.append(text)
        written = list(self.ledger.texts_left(name))
        if all(written_at(text) != time for text in written):
            return nearest([*written, *saved, left], current)
        return ancestor([text for text in dict.fromkeys([*written, *saved]) if written_at(text) == time], current)

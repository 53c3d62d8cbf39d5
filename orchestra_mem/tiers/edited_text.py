"""What people have made of a document, and which text they edited: what ledger wrote it, what an editor had open."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from orchestra_mem.core.documents.conflicts import find_conflicts
from orchestra_mem.core.documents.fact_lines import with_numbers_last
from orchestra_mem.core.documents.owned_lines import owned_keys, with_removed_items, without_unlisted
from orchestra_mem.core.documents.plan_lines import has_work
from orchestra_mem.core.documents.signature import digest, is_later, signers, written_at
from orchestra_mem.errors import StorageError
from orchestra_mem.ports import DocumentStore
from orchestra_mem.stores import Ledger
from orchestra_mem.types import Author, ReadDocument, VersionReason, WrittenDocument

# The database stores this character for each byte that is not UTF-8.
_UNREADABLE = "\ufffd"


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedText:
    """A document with people's edits. `digest` is the SHA-256 of its file.

    `base` is the machine's own last text, "" if there is none. `before` and `said` are the document before and after
    the edits, with known numbers of facts and items. `before` is the text last read or last written by the machine,
    whichever is later. If people edited an older text, `before` also has the facts and items that they deleted from the
    older text and that the machine no longer shows. `brings`: Whether its new lines may have numbers that the ledger
    lacks, or that another ledger gave. `earlier`: See `ReadDocument`.
    """

    base: str
    before: str
    said: str
    digest: str
    brings: bool
    earlier: tuple[str, ...] = ()

    @property
    def has_work(self) -> bool:
        """Whether boxes in the plan are work items, not facts."""
        return has_work(self.base) or (self.brings and has_work(self.said))

    @property
    def as_read(self) -> ReadDocument:
        """The ledger's record of having read these edits."""
        return ReadDocument(base=digest(self.base), file=self.digest, text=self.said, earlier=self.earlier)


@dataclass(slots=True, kw_only=True, eq=False)
class EditOrigins:
    """Compares documents with the texts that this ledger has written and people have saved.

    Attributes:
        numbered: Takes a document's name and text; returns the text with the numbers of facts or items added to lines
            that people wrote. All other bytes stay.
        wordings_by_number: Takes a document's name; returns the wordings of the ledger's facts and items, to find them
            in a text that another ledger has numbered.
        by_people: Takes numbers such as `K12` or `#5`; returns those whose facts or items people wrote or removed.
    """

    ledger: Ledger
    store: DocumentStore
    numbered: Callable[[str, str], str]
    wordings_by_number: Callable[[str], Mapping[str, Sequence[str]]]
    by_people: Callable[[Collection[str]], set[str]]

    def edited(self, name: str, current: str, last: WrittenDocument) -> EditedText:
        """Return a document with people's edits; its text is `current`, the machine's last write `last`."""
        read, left, brings = self.read_since(name, last), last.left or "", False
        before = read.text if read else left
        is_found = not left and (not read or written_at(read.text) == written_at(current))
        if read and _is_as_read(current, read):
            said = before  # no edits since the last read, whatever has changed in the ledgers
        elif not is_found and self.is_other(name, current, last.text or ""):
            said, brings = self._taken_in(name, current, before), True
        elif is_found or is_later(current, last.text or ""):
            # It was there before the ledger (the database was lost), or is later than all that the ledger knows (an
            # older database was put back). What has changed in it, people have changed; its new lines bring numbers.
            before, brings = without_unlisted(before, current), True
            said = with_numbers_last(self.numbered(name, current), before)
        elif (opened := self._opened_if_older(name, current, last, read)) is None:
            said = self._person_text(name, current, before, before)
        else:
            from orchestra_mem.core.documents.document_merge import apply_stale_edit

            person = self._person_text(name, current, before, opened)
            keys = {key for key in owned_keys(person).values() if key[0] in "KM#"} - {*owned_keys(before).values()}
            said = apply_stale_edit(opened, before, person, self.by_people(keys))
            before = with_removed_items(before, opened, person)
        now = digest(current)
        earlier = tuple(each for each in (read.file, *read.earlier) if each != now) if read else ()
        return EditedText(base=last.text or "", before=before, said=said, digest=now, brings=brings, earlier=earlier)

    def _taken_in(self, name: str, current: str, before: str) -> str:
        """Return the own text with the new lines of one that another ledger wrote, or that git has merged with one."""
        from orchestra_mem.core.documents.foreign import taken_in

        return self.numbered(name, taken_in(current, before, self.wordings_by_number(name)))

    def _opened_if_older(self, name: str, current: str, last: WrittenDocument, read: ReadDocument | None) -> str | None:
        """Return the text that an editor had opened, if it is older than the text last written or read, else None."""
        if last.left is None:
            return None
        newest = self.newest(name)
        seen = newest if read and digest(newest) == read.file else last.left  # an older text may have been read last
        if written_at(current) == written_at(last.left) == written_at(seen):
            return None
        is_again = written_at(current) == written_at(seen)  # the same old text was edited further
        return self.numbered(name, seen if is_again else self.opened(name, current, last.left))

    def _person_text(self, name: str, current: str, before: str, opened: str) -> str:
        """Return a person's text with the known numbers, but without those that git took from another ledger's text."""
        if self.ledger.key and signers(current):
            from orchestra_mem.core.documents.foreign import without_others_numbers

            current = without_others_numbers(current, (before, opened), partial(self.wordings_by_number, name))
        return with_numbers_last(self.numbered(name, current), before)

    def read_since(self, name: str, last: WrittenDocument) -> ReadDocument | None:
        """Return the document as last read, None if the machine has written it since."""
        read = self.ledger.last_read(name)
        return read if read.base == digest(last.text or "") else None

    def last_written(self, name: str, current: str | None) -> WrittenDocument:
        """Return the machine's last write of a document, also one that a killed process did not confirm."""
        last = self.ledger.written(name)
        if last.pending is not None and last.pending_left is not None and current is not None:
            # If someone has edited the file since that write, its front matter still has the time of the write.
            times = {written_at(current), written_at(last.pending_left)}
            if last.pending_digest == digest(current) or (len(times) == 1 and times != {written_at(last.left or "")}):
                return WrittenDocument(last.pending, last.pending_digest, last.pending_left)
        return last

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
        from orchestra_mem.core.documents.opened_text import ancestor, nearest

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


def _is_as_read(current: str, read: ReadDocument) -> bool:
    """Check whether a document's file is the one that was read last, and can be taken from that record."""
    if read.file != digest(current) or _UNREADABLE in read.text:
        return False
    # Earlier releases recorded what they read without its conflict blocks.
    return len(find_conflicts(read.text)) == len(find_conflicts(current))

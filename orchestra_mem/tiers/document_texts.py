"""Read what people have made of the episodic documents, whichever text their editors had open; keep earlier texts.

An editor that was opened before the machine last wrote saves a text that never had what came since. The text that it
was opened on is found again, and what the person did to that is done to the document as it was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from orchestra_mem.core.documents.alignment import count_said, split_lines
from orchestra_mem.core.documents.conflicts import without_conflicts
from orchestra_mem.core.documents.episodic import digest, updated_at
from orchestra_mem.core.documents.owned_lines import undone
from orchestra_mem.errors import NotFoundError, StorageError
from orchestra_mem.ports import Clock, DocumentStore, Ledger
from orchestra_mem.tiers.document_merge import brought_forward
from orchestra_mem.types import Author, DocumentName, ReadDocument, Version, VersionReason, WrittenDocument

logger = logging.getLogger(__name__)

# So many lines, changed and saved, may be changed back in the same editor before it saves again.
_MOST_TAKEN_BACK = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonText:
    """A document as it stands on disk.

    `base` is the machine's own last text, "" where it never wrote one, and `said` what a person has made of the file
    that it left, without the conflicts that are shown. `read` is the text as edits were last read, None where none were
    since the machine wrote; then `before` is what it left. `digest` tells the file; `touched` is whether that differs
    from the one that the machine left.
    """

    base: str
    before: str
    read: str | None
    said: str
    digest: str
    touched: bool

    @property
    def as_read(self) -> ReadDocument:
        """What the ledger keeps of it once its edits are read."""
        return ReadDocument(base=digest(self.base), file=self.digest, text=self.said)


class PersonTexts:
    """Reads the episodic documents as what people have said."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        store: DocumentStore,
        path: Callable[[DocumentName], Path],
        numbered: Callable[[DocumentName, str], str],
    ) -> None:
        self._numbered = numbered
        self._ledger = ledger
        self._store = store
        self._path = path

    def digests(self) -> tuple[dict[DocumentName, str], bool]:
        """The digest of each file that can be read now, and whether one holds what was not read yet."""
        found: dict[DocumentName, str] = {}
        unread = False
        for name in DocumentName:
            current = self._store.read_settled(self._path(name))
            if current is not None and current.strip():
                last, read = self.last_written(name, current), self._ledger.last_read(name.value)
                found[name] = digest(current)
                unread |= found[name] != (read.file if read.base == digest(last.text or "") else last.digest)
        return found, unread

    def all(self) -> dict[DocumentName, PersonText]:
        """Each document of which it can be told what a person has said.

        A file that was taken away says nothing of the facts in it, and half a file nothing yet.
        """
        texts: dict[DocumentName, PersonText] = {}
        for name in DocumentName:
            current = self._store.read_settled(self._path(name))
            if current is None or not current.strip():
                continue
            last = self.last_written(name, current)
            said = self.said(name, current, last)
            if said is not None:
                touched = last.digest != digest(current)
                read = self._ledger.last_read(name.value)
                again = read.text if read.base == digest(last.text or "") else None
                left = without_conflicts(last.left or "") if touched else said
                texts[name] = PersonText(
                    base=last.text or "",
                    before=left if again is None else again,
                    read=again,
                    said=said,
                    digest=digest(current),
                    touched=touched,
                )
        return texts

    def last_written(self, name: DocumentName, current: str | None) -> WrittenDocument:
        """What the machine last wrote, also where a killed process could not confirm it."""
        last = self._ledger.written(name.value)
        if last.pending is not None and last.pending_left is not None and current is not None:
            # Somebody may have edited it since: the time in it is still the one of that write.
            times = {updated_at(current), updated_at(last.pending_left)}
            if last.pending_digest == digest(current) or (len(times) == 1 and times != {updated_at(last.left or "")}):
                return WrittenDocument(last.pending, last.pending_digest, last.pending_left)
        return last

    def said(self, name: DocumentName, current: str, last: WrittenDocument) -> str | None:
        """What a person has made of the machine's last text; None where it cannot be told what the file was made of."""
        person = without_conflicts(current)
        if last.left is None or last.digest == digest(current) or updated_at(current) == updated_at(last.left):
            return person
        opened = self._opened(name, current, last.left)
        if opened is None:
            return None
        opened, person = (self._numbered(name, text) for text in (without_conflicts(opened), person))
        return brought_forward(name, opened, last.left, person, self._ledger.by_hand())

    def _opened(self, name: DocumentName, current: str, left: str) -> str | None:
        """The text that an editor had open when it saved; None where it is not known.

        The machine writes its time into a document, and a person may save several texts with one time before the
        machine writes again. What was kept since the machine has `left` the document is in nothing that it wrote.
        """
        time, left_at = updated_at(current), updated_at(left)
        known: list[str] = []
        versions = self._store.versions(name.value)
        while versions and versions[-1].reason is VersionReason.RESTORE:
            if self._store.read_version(versions.pop()) != current:
                # An earlier text has been put in the place of this one since, and means all that it says and lacks.
                return left
            # None has: who was about to put it there was killed before.
        for version in versions:
            text = self._store.read_version(version)
            if updated_at(text) == time:
                known.append(text)
            elif version.author is Author.MACHINE and updated_at(text) == left_at:
                break
        return _ancestor(known, current) if known else None


def _ancestor(known: Sequence[str], text: str) -> str:
    """Of texts that were saved one after the other the newest that another text can come from, else the oldest.

    It comes from one of which it shows a trace: a line that came with that, or one that went. A change of few lines may
    also have been taken back; who saves without one of many has never had them. Lines that it has and the newest text
    has not were brought back.
    """
    lines = count_said(split_lines(text))
    for before, saved in reversed(list(pairwise(known))):
        was, now = count_said(split_lines(before)), count_said(split_lines(saved))
        came, went = now - was, was - now
        if came & lines or went - lines or (came + went).total() <= _MOST_TAKEN_BACK:
            return undone(saved, known[-1], text)
    return undone(known[0], known[-1], text)


class DocumentVersions:
    """Keeps what stands in a document as a version; the store's lock must be held."""

    def __init__(self, *, store: DocumentStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def keep(self, name: DocumentName, text: str, last: WrittenDocument, reason: VersionReason) -> Version:
        """Keep a text, and where it is a person's, first the one that they made it of."""
        author = Author.MACHINE if last.digest == digest(text) else Author.PERSON
        if author is Author.PERSON and last.left is not None and not self._is_newest(name, last.left):
            # What the person took out stands only in the text before.
            self._keep_left(name, last.left)
        return self._store.keep_version(name.value, text, time=self._clock(), author=author, reason=reason)

    def keep_taken_in(self, name: DocumentName, text: str, last: WrittenDocument) -> None:
        """Keep a person's text that the machine has nothing to add to, once: somebody may save over it unseen."""
        if not self._is_newest(name, text):
            self.keep(name, text, last, VersionReason.EDIT)

    def keep_gone(self, name: DocumentName, left: str, path: Path) -> None:
        """Keep the last text of a document that somebody has taken away, and say that a new one is begun."""
        version = self._keep_left(name, left)
        logger.warning(
            "%s is gone: a new one is begun; its last text is version %d (`orchestra-mem history %s`)",
            path,
            version.sequence,
            name.value,
        )

    def _keep_left(self, name: DocumentName, left: str) -> Version:
        return self._store.keep_version(
            name.value, left, time=self._clock(), author=Author.MACHINE, reason=VersionReason.EDIT
        )

    def _is_newest(self, name: DocumentName, text: str) -> bool:
        with suppress(StorageError):  # one that cannot be read is kept again
            versions = self._store.versions(name.value)
            return bool(versions) and self._store.read_version(versions[-1]) == text
        return False

    def find(self, name: DocumentName, sequence: int | None) -> Version:
        """A version by its number, by default the newest.

        Raises:
            NotFoundError: there is none.
        """
        versions = self._store.versions(name.value)
        found = [version for version in versions if sequence in (None, version.sequence)]
        if not found:
            kept = ", ".join(str(version.sequence) for version in versions) or "none"
            wanted = "any version" if sequence is None else f"version {sequence}"
            raise NotFoundError(f"{name.value} does not have {wanted}; kept are: {kept}")
        return found[-1]

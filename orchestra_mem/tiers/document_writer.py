"""Read and write documents that people edit while it happens.

What they say is read, whichever text their editors had open: an editor that was opened before the machine last wrote
saves a text that never had what came since. The text that it was opened on is found again, and what the person did to
that is done to the document as it was. What the machine writes is merged with that; every earlier text is a version
first.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from orchestra_mem.core.documents.conflicts import mark, without_conflicts
from orchestra_mem.core.documents.episodic import digest, timeless, with_later_time, written_at
from orchestra_mem.core.documents.opened import ancestor, nearest
from orchestra_mem.core.documents.owned_lines import owned_keys, with_taken_out
from orchestra_mem.errors import DocumentConflictError, StorageError
from orchestra_mem.ports import Clock, DocumentStore, Ledger
from orchestra_mem.types import Author, ReadDocument, Version, VersionReason, WrittenDocument

logger = logging.getLogger(__name__)

# So often is a document tried that somebody saves at the same moment.
WRITE_TRIES = 5
_AGAIN_S = 1.5  # until a document that was busy at a look is looked at again
# What stands in the database for a byte that is no UTF-8.
_UNREADABLE = "\ufffd"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonText:
    """A document as it stands on disk, in a file with this `digest`.

    `base` is the machine's own last text, "" where it never wrote one. `said` is what a person has made of the file
    that it left, without the conflicts that are shown, and with the numbers that are known; `before` is that text as
    it was last read, or as the machine left it where nobody has read it since. Below it stand the lines that they took
    out of an older text and that the machine shows no more.
    """

    base: str
    before: str
    said: str
    digest: str

    @property
    def as_read(self) -> ReadDocument:
        """What the ledger keeps of it once its edits are read."""
        return ReadDocument(base=digest(self.base), file=self.digest, text=self.said)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A document to be written: the machine's text, what it makes of what stands there, and what stands there."""

    name: str
    text: str
    merged: str
    current: str | None
    last: WrittenDocument


@dataclass(slots=True, kw_only=True, eq=False)
class DocumentWriter:
    """Reads and writes documents by their names.

    Safe to share between threads and processes: writes are locked and conditional.

    Attributes:
        ledger: remembers what was written and read.
        store: keeps files and versions.
        clock: gives the present time.
        path: says where a document lies.
        names: the documents that there are.
        numbered: writes behind what people have written the numbers that it got; all else stays byte for byte.
        by_people: of some numbers (`K12`) those of what people wrote or took out.
        keep_versions: so many of the machine's own versions stay.
    """

    ledger: Ledger
    store: DocumentStore
    clock: Clock
    path: Callable[[str], Path]
    names: Callable[[], Collection[str]]
    numbered: Callable[[str, str], str]
    by_people: Callable[[Sequence[str]], Container[str]]
    keep_versions: int
    _is_busy: bool = field(default=False, init=False)
    _again_s: float = field(default=inf, init=False)

    # Reading

    @property
    def looks_again(self) -> bool:
        """Whether to look once more at what at the last look was open elsewhere, or could not be read.

        Its closing, or a right that is given back, changes nothing by which it would be seen.
        """
        return time.monotonic() >= self._again_s

    def unread(self) -> list[str]:
        """Name the documents that people have saved since they were last read."""
        return [name for name, current, last in self._standing() if not self._is_read(name, current, last)]

    def _standing(self) -> Iterator[tuple[str, str, WrittenDocument]]:
        """Each document that says something, and what the machine last wrote there.

        A file that was taken away says nothing of the facts in it, and half a file nothing yet.
        """
        for name in self.names():
            current = self.store.read_settled(self.path(name))
            if current is None and self.store.state(self.path(name)) is not None:
                self._is_busy = True
            if current is not None and current.strip():
                yield name, current, self.last_written(name, current)

    def _is_read(self, name: str, current: str, last: WrittenDocument) -> bool:
        """Whether nobody has saved a document since it was last read or written, or left as it is."""
        if read := self._read_since(name, last):
            return digest(current) == read.file
        return current == last.left or digest(current) == last.digest

    @contextmanager
    def reading(self) -> Iterator[Mapping[str, PersonText]]:
        """Give all documents where people have saved some since they were last read, else none."""
        self._is_busy = False
        # Mostly nobody has edited anything: that is seen without holding up who writes.
        if not self.unread():
            yield {}
        else:
            with self.store.lock():
                yield self._texts()
        self._again_s = time.monotonic() + _AGAIN_S if self._is_busy else inf

    def _texts(self) -> dict[str, PersonText]:
        texts: dict[str, PersonText] = {}
        for name, current, last in self._standing():
            before, said = self._edit_of(name, current, last)
            texts[name] = PersonText(base=last.text or "", before=before, said=said, digest=digest(current))
            is_old = written_at(said) != written_at(current) and not self._is_read(name, current, last)
            # An editor with an older text open may go back to what it has saved, or from it.
            if is_old and not self._is_newest(name, current):
                self._keep(name, current, last, VersionReason.EDIT)
        return texts

    def _read_since(self, name: str, last: WrittenDocument) -> ReadDocument | None:
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

    def _edit_of(self, name: str, current: str, last: WrittenDocument) -> tuple[str, str]:
        """A document before and after what a person did to it.

        Where that was an older text, the lines that they took out of it stood there before, whether the machine still
        shows them or not.
        """
        read = self._read_since(name, last)
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

    # Writing

    def write_all(self, texts: Callable[[], Mapping[str, str]], reason: VersionReason) -> dict[str, StorageError]:
        """Merge the machine's new texts into their documents; those that could not be written, and why.

        Args:
            texts: gives them by name, made of all that has been read; asked again where somebody saves meanwhile.
            reason: why the texts before become versions.
        """
        failed: dict[str, StorageError] = {}
        for _ in range(WRITE_TRIES):
            waiting = texts()
            try:
                with self.store.lock():
                    failed = self._write_once(waiting, reason)
            except StorageError as error:
                # None was done for sure: the lock, or the flushing of a folder at the end.
                failed = dict.fromkeys(waiting, error)
            if not any(isinstance(error, DocumentConflictError) for error in failed.values()):
                break
        return failed

    def _write_once(self, texts: Mapping[str, str], reason: VersionReason) -> dict[str, StorageError]:
        """All versions first, then all documents, so that the disk is waited for once for each folder."""
        plans: dict[str, _Plan] = {}
        failed: dict[str, StorageError] = {}

        def plan(name: str) -> None:
            if found := self._plan(name, texts[name]):
                plans[name] = found

        def replace(name: str) -> None:
            self.store.replace(self.path(name), plans[name].merged, expected=plans[name].current, name="document")

        def all_but_failed(names: Iterable[str], step: Callable[[str], None]) -> None:
            for name in names:
                try:
                    if name not in failed:
                        step(name)
                except StorageError as error:  # the other documents are written all the same
                    failed[name] = error

        all_but_failed(texts, plan)
        with self.store.syncing_once():
            all_but_failed(plans, lambda name: self._announce(plans[name], reason))
            all_but_failed(plans, replace)
        all_but_failed(plans, lambda name: self._confirm(name, plans[name].text, plans[name].merged))
        return failed

    def _announce(self, plan: _Plan, reason: VersionReason) -> None:
        name, last = plan.name, plan.last
        if last != self.ledger.written(name):
            # A killed process has done that write: what is announced next takes its place in the ledger.
            self._confirm(name, last.text or "", last.left or "")
        read = self._read_since(name, last)
        if read is not None and read.file not in (last.digest, digest(plan.current or "")):
            # What a person has said in a file that is empty or gone by now: an undo is a change of that.
            self._keep_version(name, read.text, Author.PERSON, VersionReason.EDIT)
        self.ledger.announce_write(name, plan.text, digest(plan.merged), plan.merged)
        if plan.current is not None:
            self._keep(name, plan.current, last, reason)
        elif last.left is not None:
            logger.warning(
                "%s is gone: a new one is begun; its last text is version %d (`orchestra-mem history %s`)",
                self.path(name),
                self._keep_version(name, last.left, Author.MACHINE, VersionReason.EDIT).sequence,
                name,
            )

    def _confirm(self, name: str, text: str, left: str) -> None:
        self.ledger.keep_left(name, left)
        self.ledger.confirm_write(name, text, digest(left), left)
        self.store.prune_versions(name, self.keep_versions)

    def _plan(self, name: str, text: str) -> _Plan | None:
        """What is to be written; None where a document would say the same: then its file is left as it is."""
        current = self.store.read_to_change(self.path(name))
        last = self.last_written(name, current)
        text = with_later_time(text, last.text or "")
        untouched = current is not None and last.digest == digest(current)
        if untouched and last.left == current and last.text is not None and timeless(last.text) == timeless(text):
            return None
        if current is None:
            return _Plan(name=name, text=text, merged=text, current=None, last=last)
        if current.strip() and not self._is_read(name, current, last):
            raise DocumentConflictError(f"{self.path(name)}: somebody has saved it since it was read")
        _, said = self._edit_of(name, current, last)
        from orchestra_mem.core.documents.agreement import merged

        found = merged(last.text, text, said)
        marked = mark(found, current)
        if found.conflicts:
            logger.warning(
                "%s: you and the machine have changed the same lines; yours stand, the machine's are shown below them: "
                "`orchestra-mem conflicts`",
                self.path(name),
            )
        if timeless(marked) != timeless(current):
            return _Plan(name=name, text=text, merged=marked, current=current, last=last)
        # The file stays as it is and whose it is. What was said in it has been there from here on, as if it were
        # written: an older text that is saved over it takes nothing of it out. A person's file bears no digest of the
        # machine's: who saves the machine's last text over it has taken back what they said.
        if not untouched and not self._is_newest(name, current):
            self._keep(name, current, last, VersionReason.EDIT)
        self.store.prune_versions(name, self.keep_versions)
        self.ledger.confirm_write(name, text, (untouched and last.digest) or "", current)
        self.ledger.note_read(name, ReadDocument(base=digest(text), file=digest(current), text=said))
        return None

    def _keep(self, name: str, text: str, last: WrittenDocument, reason: VersionReason) -> Version:
        """Keep a text as a version, and where it is a person's, first the one that they made it of."""
        author = Author.MACHINE if last.digest == digest(text) else Author.PERSON
        if author is Author.PERSON and last.left is not None and not self._is_newest(name, last.left):
            # What the person took out stands only in the text before.
            self._keep_version(name, last.left, Author.MACHINE, VersionReason.EDIT)
        return self._keep_version(name, text, author, reason)

    def _keep_version(self, name: str, text: str, author: Author, reason: VersionReason) -> Version:
        return self.store.keep_version(name, text, time=self.clock(), author=author, reason=reason)

    def _is_newest(self, name: str, text: str) -> bool:
        with suppress(StorageError):  # one that cannot be read is kept again
            versions = self.store.versions(name)
            return bool(versions) and self.store.read_version(versions[-1]) == text
        return False

    def put(self, name: str, text: str, *, expected: str | None, reason: VersionReason, point: str) -> Version | None:
        """Write a whole text for a person, after keeping as a version what stood there; None where nothing did.

        Raises:
            DocumentConflictError: the document no longer holds `expected`.
        """
        kept = None
        with self.store.lock():
            if expected is not None:
                kept = self._keep(name, expected, self.last_written(name, expected), reason)
            self.store.replace(self.path(name), text, expected=expected, name=point)
        return kept

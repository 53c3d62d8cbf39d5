"""Read and write documents that people edit at the same time.

An editor may save a text that was opened before the machine's last write and lacks everything written since. So the
text that the editor opened is looked up, and the person's changes to it are applied to the document that the machine
wrote last. The machine's new text is merged with the result. Every replaced text is kept as a version first.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from pathlib import Path

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.conflicts import mark
from orchestra_mem.core.documents.damage import check_encoding
from orchestra_mem.core.documents.owned_lines import free_rows, owned_keys, owned_lines
from orchestra_mem.core.documents.signature import (
    digest,
    is_later,
    is_same,
    timeless,
    with_later_time,
    written_at,
)
from orchestra_mem.errors import DocumentConflictError, StorageError
from orchestra_mem.ports import Clock
from orchestra_mem.tiers.edited_text import EditedText, EditOrigins
from orchestra_mem.types import Author, MustKeep, MustKeepStatus, ReadDocument, Version, VersionReason, WrittenDocument

logger = logging.getLogger(__name__)

# Attempts to write a document that someone else keeps saving at the same moment.
WRITE_TRIES = 5
PATIENCE_S = 2.0  # how long a read or an opening waits for others to write documents: a refresh takes less
_AGAIN_S = 1.5  # seconds until a busy document is read again
# How long a save without front matter is told of, unless the document is saved again or is gone.
_TOLD_FOR = timedelta(days=1)
_LOST = (
    "{0} was {1}, without {2} of people's lines; `orchestra-mem history {3}` lists its earlier texts, and `restore` "
    "brings one back"
)
_BACK = "{} was saved without front matter, so lines of the machine are back ({}); to delete any, keep the front matter"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A planned write: the machine's text, the merged text to write, and the file's current text (None if missing)."""

    name: str
    text: str
    merged: str
    current: str | None
    last: WrittenDocument


@dataclass(slots=True, kw_only=True, eq=False)
class DocumentWriter(EditOrigins):
    """Reads and writes documents by their names.

    Safe to share between threads and processes: a write takes a lock and fails if the file has changed meanwhile.

    Attributes:
        keep_versions: Number of versions written by the machine that are kept per document.
        hidden: Takes numbers of catalog items; returns those of items that are hidden, but not purged.
    """

    clock: Clock
    path: Callable[[str], Path]
    names: Callable[[], Collection[str]]
    keep_versions: int
    hidden: Callable[[Collection[str]], set[str]] = lambda numbers: set()
    _is_busy: bool = field(default=False, init=False)
    _again_s: float = field(default=inf, init=False)

    # Reading

    @property
    def retry_due(self) -> bool:
        """Whether to retry now a document that was open for writing or unreadable at the last read.

        Edits are detected by the file's state, which closing the file or restoring a permission does not change.
        """
        return time.monotonic() >= self._again_s

    def unread(self) -> list[str]:
        """List the documents that people have saved since they were last read."""
        return [name for name, current, last in self._standing() if not self._is_read(name, current, last)]

    def _standing(self) -> Iterator[tuple[str, str, WrittenDocument]]:
        """Yield name, text and the machine's last write of each document that is not blank.

        A missing or blank file does not mean that its facts were deleted. A file that is being written is skipped.
        """
        for name in self.names():
            current = self.store.read_settled(self.path(name))
            if current is None and self.store.state(self.path(name)) is not None:
                self._is_busy = True
            if current is not None and current.strip():
                yield name, current, self.last_written(name, current)

    def _is_read(self, name: str, current: str, last: WrittenDocument) -> bool:
        """Check whether a document is unchanged since it was last read, or written by the machine."""
        if read := self.read_since(name, last):
            return digest(current) == read.file
        return current == last.left or digest(current) == last.digest

    @contextmanager
    def reading(self) -> Iterator[Mapping[str, EditedText]]:
        """If people have saved edits since the last read, yield all documents by name, under the lock; else {}."""
        self._is_busy = False
        # Usually nobody has edited anything. Checking that without the lock does not block writers.
        if not self.unread():
            yield {}
        else:
            with self.store.lock(timeout_s=PATIENCE_S):
                yield self._texts()
        self._again_s = time.monotonic() + _AGAIN_S if self._is_busy else inf

    def _texts(self) -> dict[str, EditedText]:
        texts: dict[str, EditedText] = {}
        for name, current, last in self._standing():
            texts[name] = self.edited(name, current, last)
            if not self._is_read(name, current, last):
                self.ledger.resolve_notices(name, self.clock())
                self._keep_replaced(name, current, texts[name].said, last)
        return texts

    def _keep_replaced(self, name: str, current: str, said: str, last: WrittenDocument) -> None:
        """Keep the texts of an edit of an older text; tell how many lines of people an older file takes away."""
        is_old, read = written_at(said) != written_at(current), self.read_since(name, last)
        is_back = digest(current) in (last.digest, *(read.earlier if read else ()))
        is_back = is_back or (is_old and self.is_known(name, current))
        if read and (is_old or is_back) and digest(self.newest(name)) != read.file:
            self._keep(name, read.text, last, VersionReason.EDIT)
        if is_back:  # by an undo, or a program that puts files back
            # In a text of the same time, who saves other words for a fact that stands there chooses between their own.
            chosen = {*owned_keys(said).values()} if not is_old else ()
            self._tell_lost(name, "put back to an earlier text", read.text if read else last.left or "", said, chosen)
        # The same editor may later save a change of this text, or undo back to it: keep it to compare with.
        if is_old and self.newest(name) != current:
            self._keep(name, current, last, VersionReason.EDIT)

    # Writing

    def write_all(self, texts: Callable[[], Mapping[str, str]], reason: VersionReason) -> dict[str, StorageError]:
        """Merge the machine's new texts into their documents. Return the errors by name of the document not written.

        Args:
            texts: Reads all edits and returns the new texts by document name. Called again if someone saves meanwhile.
            reason: Recorded with the versions that keep the earlier texts.
        """
        failed: dict[str, StorageError] = {}
        for _ in range(WRITE_TRIES):
            waiting = texts()
            try:
                with self.store.lock():
                    failed = self._write_once(waiting, reason)
            except StorageError as error:
                # The lock was not obtained or a folder was not flushed: none of the writes is certain.
                failed = dict.fromkeys(waiting, error)
            if not any(isinstance(error, DocumentConflictError) for error in failed.values()):
                break
        return failed

    def _write_once(self, texts: Mapping[str, str], reason: VersionReason) -> dict[str, StorageError]:
        """Write all versions, then all documents, so that each folder is flushed only once."""
        plans: dict[str, _Plan] = {}
        failed: dict[str, StorageError] = {}

        @contextmanager
        def noting_failure(name: str) -> Iterator[None]:
            try:
                yield
            except StorageError as error:  # the other documents are still written
                failed[name] = error

        with self.store.syncing_once():
            for name, text in texts.items():
                with noting_failure(name):
                    if plan := self._plan(name, text):
                        self._announce(plan, reason)
                        plans[name] = plan
            for name, plan in plans.items():
                with noting_failure(name):
                    self.store.replace(self.path(name), plan.merged, expected=plan.current, name="document")
        for name, plan in plans.items():
            with noting_failure(name):
                if name not in failed:
                    self._confirm(name, plan.text, plan.merged)
        return failed

    def _announce(self, plan: _Plan, reason: VersionReason) -> None:
        name, last = plan.name, plan.last
        if last != self.ledger.written(name):
            # A killed process did not confirm its write. Confirm it before the next announcement overwrites it.
            self._confirm(name, last.text or "", last.left or "")
        read = self.read_since(name, last)
        if read is not None and read.file not in (last.digest, digest(plan.current or "")):
            # The file with the person's edits is now empty or gone. An undo in their editor may bring this text back.
            self._keep_version(name, read.text, Author.PERSON, VersionReason.EDIT)
        # Before the write: from then on editors may have the text open, even if the write is never confirmed.
        if plan.current and self._is_own_later(name, plan.current, last):
            self.ledger.keep_written_file(name, plan.current)  # this ledger wrote it before it was put back
        self.ledger.keep_written_file(name, plan.merged)
        self.ledger.announce_write(name, plan.text, digest(plan.merged), plan.merged)
        if plan.current is not None:
            self._keep(name, plan.current, last, reason)
        elif last.left is not None:
            number = self._keep_version(name, last.left, Author.MACHINE, VersionReason.EDIT).sequence
            say = "%s is missing and is created again; its last text is kept as version %d (`orchestra-mem history %s`)"
            logger.warning(say, self.path(name), number, name)
        if not (plan.current or "").strip():
            was = "missing" if plan.current is None else "empty"
            self._tell_lost(name, f"{was} and was written anew", read.text if read else last.left or "", plan.merged)

    def _tell_lost(self, name: str, was: str, before: str, now: str, chosen: Collection[str] = ()) -> None:
        """Report that a document lacks people's lines, but those in `chosen`. `was`: What has become of its file."""
        keys = {key for key in owned_keys(before).values() if key[0] in "KM#"}
        facts = self.ledger.must_keeps_by_id([int(key[1:]) for key in keys if key[0] == "K"])
        people = self.by_people(keys) | {f"K{fact.id}" for fact in facts if fact.found}  # written or reworded by them
        if count := len({*free_rows(before, people.difference(chosen))}.difference(split_lines(now))):
            self.ledger.add_notice(name, _LOST.format(self.path(name), was, count, name), self.clock())

    def _confirm(self, name: str, text: str, left: str) -> None:
        self.ledger.confirm_write(name, text, digest(left), left)
        self.store.prune_versions(name, self.keep_versions)

    def _plan(self, name: str, text: str) -> _Plan | None:
        """Plan the write of a document. None if its content would not change: the file is then left as it is."""
        current = self.store.read_to_change(self.path(name))
        last = self.last_written(name, current)
        text = with_later_time(text, last.text or "")
        if self._is_own_later(name, current or "", last):
            text = with_later_time(text, current or "")  # an editor may have it open
        untouched = current is not None and last.digest == digest(current)
        since = self.clock() - _TOLD_FOR if current and current.strip() else self.clock()
        if any(notice.subject == name and notice.time <= since for notice in self.ledger.notices()):
            self.ledger.resolve_notices(name, self.clock())
        if untouched and is_same(last.text or "", text) and not self._has_done(current or "", text):
            return None
        if current is None or not current.strip():
            return _Plan(name=name, text=text, merged=self._anew(name, text, last), current=current, last=last)
        if not self._is_read(name, current, last):
            raise DocumentConflictError(f"{self.path(name)} was saved by someone else after it was read")
        said = self.edited(name, current, last).said
        from orchestra_mem.core.documents.document_merge import merged

        keys = {key for key in owned_keys(said).values() if key[0] == "M"}
        ended = {f"K{fact.id}" for fact in self.ended(said, text)} | self.hidden(keys)
        others = (self.store.read_settled(self.path(other)) or "" for other in self.names() if other != name)
        found = merged(last.text, text, said, ended, others)
        marked = mark(found)
        if not written_at(current):
            there, left, saved = ({*owned_keys(each).values()} for each in (marked, last.left or "", current))
            back = sum(key[0] in "KM#" for key in there & left - saved)
            problem = _BACK.format(self.path(name), back)
            if back and self.ledger.add_notice(name, problem, self.clock()):
                logger.warning("%s", problem)
        if found.conflicts:
            logger.warning(
                "%s: you and the machine have changed the same lines; yours are kept, and the machine's follow in a "
                "marked block: see `orchestra-mem conflicts`",
                self.path(name),
            )
        if timeless(marked) != timeless(current):
            check_encoding(self.path(name), current, marked)  # before a version is kept
            return _Plan(name=name, text=text, merged=marked, current=current, last=last)
        # The file and its author stay, but its text is recorded as written: an older text saved over it later deletes
        # nothing. For a file that a person wrote, no machine digest is recorded, so that saving the machine's last text
        # over the file counts as undoing the edits.
        if not untouched and self.newest(name) != current:
            self._keep(name, current, last, VersionReason.EDIT)
        self.store.prune_versions(name, self.keep_versions)
        self.ledger.confirm_write(name, text, (untouched and last.digest) or "", current)
        self.ledger.note_read(name, ReadDocument(base=digest(text), file=digest(current), text=said))
        return None

    def _anew(self, name: str, text: str, last: WrittenDocument) -> str:
        """Return the machine's text for a document that is gone, with people's numbered lines: these still stand."""
        read = self.read_since(name, last)
        before = read.text if read else last.left or ""
        if not (last.text and written_at(before)):
            return text
        from orchestra_mem.core.documents.document_merge import merged

        free = {*free_rows(before)}
        there = "\n".join(row for row in before.split("\n") if row.removesuffix("\r") not in free)
        return mark(merged(last.text, text, there))

    def ended(self, text: str, later: str) -> list[MustKeep]:
        """Return the facts of a text that a later one lacks and that no longer stand."""
        keys = {*owned_keys(text).values()}.difference(owned_keys(later).values())
        facts = self.ledger.must_keeps_by_id([int(key[1:]) for key in keys if key[0] == "K"])
        return [fact for fact in facts if fact.status is not MustKeepStatus.STANDING]

    def _has_done(self, text: str, later: str) -> bool:
        """Check whether a text lists done facts that `later` lacks and that are neither ticked nor struck out."""
        done = {f"K{fact.id}" for fact in self.ended(text, later) if fact.status is MustKeepStatus.DONE}
        rows = [line.row.lower() for line in owned_lines(text) if line.key in done]
        return any("[x] " not in row and "~~" not in row for row in rows)

    def _is_own_later(self, name: str, text: str, last: WrittenDocument) -> bool:
        """Check whether this ledger wrote a document before an older database was put back."""
        known = last.text or ""
        return is_later(text, known) and not self.is_other(name, text, known)

    def _keep(self, name: str, text: str, last: WrittenDocument, reason: VersionReason) -> Version:
        """Keep a text as a version; if a person wrote it, first keep the machine's text that they edited."""
        author = Author.MACHINE if last.digest == digest(text) else Author.PERSON
        if author is Author.PERSON and last.left is not None and self.newest(name) != last.left:
            # Lines that the person deleted exist only in that text.
            self._keep_version(name, last.left, Author.MACHINE, VersionReason.EDIT)
        return self._keep_version(name, text, author, reason)

    def _keep_version(self, name: str, text: str, author: Author, reason: VersionReason) -> Version:
        path = self.path(name)
        return self.store.keep_version(name, text, time=self.clock(), author=author, reason=reason, like=path)

    def put(self, name: str, text: str, *, expected: str | None, reason: VersionReason, point: str) -> Version | None:
        """Write a person's complete text. Return the version that keeps the old text, None if there was no file.

        Raises:
            DocumentConflictError: the document's text is no longer `expected`.
        """
        kept = None
        with self.store.lock():
            if expected is not None:
                kept = self._keep(name, expected, self.last_written(name, expected), reason)
            self.store.replace(self.path(name), text, expected=expected, name=point)
        return kept

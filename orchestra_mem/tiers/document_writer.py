"""Write documents that people edit while it happens: merged with what they say, every earlier text a version first."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from orchestra_mem.core.documents.conflicts import mark
from orchestra_mem.core.documents.episodic import digest, timeless, with_later_time
from orchestra_mem.errors import DocumentConflictError, StorageError
from orchestra_mem.ports import Clock
from orchestra_mem.tiers.document_texts import PersonText, PersonTexts
from orchestra_mem.types import Author, Version, VersionReason, WrittenDocument

logger = logging.getLogger(__name__)

# So often is a document tried that somebody saves at the same moment.
WRITE_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A document to be written: the machine's text, what it makes of what stands there, and what stands there."""

    name: str
    text: str
    merged: str
    current: str | None
    last: WrittenDocument


class DocumentWriter:
    """Writes documents by their names. Safe to share between threads and processes: writes are locked and conditional.

    Args:
        texts: reads what people have made of the documents, with what remembers and keeps them.
        clock: gives the present time.
        keep_versions: so many of the machine's own versions stay.
    """

    def __init__(self, texts: PersonTexts, *, clock: Clock, keep_versions: int) -> None:
        self.texts = texts
        self._ledger, self._store, self._path = texts.ledger, texts.store, texts.path
        self._clock = clock
        self._keep_versions = keep_versions

    @contextmanager
    def reading(self) -> Iterator[Mapping[str, PersonText]]:
        """Give all documents where people have saved some since they were last read, else none; read once this ends."""
        # Mostly nobody has edited anything: that is seen without holding up who writes.
        if not self.texts.unread():
            yield {}
            return
        with self._store.lock():
            texts = self.texts.all()
            for name, text in texts.items():
                # An editor with an older text open may go back to what it has saved, or from it.
                if text.saved and not self._is_newest(name, text.saved):
                    self._keep(name, text.saved, self.texts.last_written(name, text.saved), VersionReason.EDIT)
            yield texts

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
                with self._store.lock():
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

        def all_but_failed(names: Iterable[str], step: Callable[[str], None]) -> None:
            for name in names:
                try:
                    if name not in failed:
                        step(name)
                except StorageError as error:  # the other documents are written all the same
                    failed[name] = error

        all_but_failed(texts, plan)
        with self._store.syncing_once():
            all_but_failed(plans, lambda name: self._announce(plans[name], reason))
            all_but_failed(plans, lambda name: self._replace(name, plans[name].merged, plans[name].current))
        all_but_failed(plans, lambda name: self._confirm(name, plans[name].text, plans[name].merged))
        return failed

    def _announce(self, plan: _Plan, reason: VersionReason) -> None:
        name, last = plan.name, plan.last
        if last != self._ledger.written(name):
            # A killed process has done that write: what is announced next takes its place in the ledger.
            self._confirm(name, last.text or "", last.left or "")
        self._keep_heard(name, plan)
        self._ledger.announce_write(name, plan.text, digest(plan.merged), plan.merged)
        if plan.current is not None:
            self._keep(name, plan.current, last, reason)
        elif last.left is not None:
            logger.warning(
                "%s is gone: a new one is begun; its last text is version %d (`orchestra-mem history %s`)",
                self._path(name),
                self._keep_version(name, last.left, Author.MACHINE, VersionReason.EDIT).sequence,
                name,
            )

    def _keep_heard(self, name: str, plan: _Plan) -> None:
        """Keep what a person has said in a file that is empty or gone by now: an undo is a change of that."""
        read = self.texts.read_since(name, plan.last)
        if read is not None and read.file not in (plan.last.digest, digest(plan.current or "")):
            self._keep_version(name, read.text, Author.PERSON, VersionReason.EDIT)

    def _replace(self, name: str, text: str, expected: str | None, point: str = "document") -> None:
        self._store.replace(self._path(name), text, expected=expected, name=point)

    def _confirm(self, name: str, text: str, left: str) -> None:
        self._ledger.keep_left(name, left)
        self._ledger.confirm_write(name, text, digest(left), left)
        self._store.prune_versions(name, self._keep_versions)

    def _plan(self, name: str, text: str) -> _Plan | None:
        """What is to be written; None where a document would say the same: then its file is left as it is."""
        current = self._store.read_to_change(self._path(name))
        last = self.texts.last_written(name, current)
        text = with_later_time(text, last.text or "")
        untouched = current is not None and last.digest == digest(current)
        if untouched and last.left == current and last.text is not None and timeless(last.text) == timeless(text):
            return None
        if current is None:
            return _Plan(name=name, text=text, merged=text, current=None, last=last)
        if current.strip() and not self.texts.is_read(name, current, last):
            raise DocumentConflictError(f"{self._path(name)}: somebody has saved it since it was read")
        _, said = self.texts.edit_of(name, current, last)
        from orchestra_mem.core.documents.agreement import merged

        found = merged(last.text, text, said)
        marked = mark(found, current)
        if found.conflicts:
            logger.warning(
                "%s: you and the machine have changed the same lines; yours stand, the machine's are shown below them: "
                "`orchestra-mem conflicts`",
                self._path(name),
            )
        if timeless(marked) != timeless(current):
            return _Plan(name=name, text=text, merged=marked, current=current, last=last)
        # The file stays as it is and whose it is. What was said in it has been there from here on, as if it were
        # written: an older text that is saved over it takes nothing of it out. A person's file bears no digest of the
        # machine's: who saves the machine's last text over it has taken back what they said.
        if not untouched and not self._is_newest(name, current):
            self._keep(name, current, last, VersionReason.EDIT)
        self._store.prune_versions(name, self._keep_versions)
        self._ledger.confirm_write(name, text, (untouched and last.digest) or "", current)
        return None

    def _keep(self, name: str, text: str, last: WrittenDocument, reason: VersionReason) -> Version:
        """Keep a text as a version, and where it is a person's, first the one that they made it of."""
        author = Author.MACHINE if last.digest == digest(text) else Author.PERSON
        if author is Author.PERSON and last.left is not None and not self._is_newest(name, last.left):
            # What the person took out stands only in the text before.
            self._keep_version(name, last.left, Author.MACHINE, VersionReason.EDIT)
        return self._keep_version(name, text, author, reason)

    def _keep_version(self, name: str, text: str, author: Author, reason: VersionReason) -> Version:
        return self._store.keep_version(name, text, time=self._clock(), author=author, reason=reason)

    def _is_newest(self, name: str, text: str) -> bool:
        with suppress(StorageError):  # one that cannot be read is kept again
            versions = self._store.versions(name)
            return bool(versions) and self._store.read_version(versions[-1]) == text
        return False

    def put(self, name: str, text: str, *, expected: str | None, reason: VersionReason, point: str) -> Version | None:
        """Write a whole text for a person, after keeping as a version what stood there; None where nothing did.

        Raises:
            DocumentConflictError: the document no longer holds `expected`.
        """
        kept = None
        with self._store.lock():
            if expected is not None:
                kept = self._keep(name, expected, self.texts.last_written(name, expected), reason)
            self._replace(name, text, expected, point)
        return kept

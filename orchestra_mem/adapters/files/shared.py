"""Documents that several machines share: each machine has copies, which are synchronised with files on a server.

The lock excludes all machines from writing. Its holder first synchronises: changes on the server are written to the
local copies, local edits are stored on the server, and a document that changed on both sides is merged. A document
written under the lock is shared at once, before the ledger records the write.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from threading import get_ident
from typing import Any, TypeVar

from orchestra_mem.adapters.files.reading import decode, encode
from orchestra_mem.adapters.files.store import FileDocumentStore
from orchestra_mem.adapters.files.versions import version_document
from orchestra_mem.adapters.files.working_copies import CopyHistory, Folders
from orchestra_mem.core.documents.document_merge import merge_copy
from orchestra_mem.core.documents.signature import Copy, stamped, unstamped
from orchestra_mem.errors import DocumentConflictError, DocumentError, StorageReadOnlyError
from orchestra_mem.stores.shared_files import SharedFiles
from orchestra_mem.types import Author, SharedFile, Version, VersionReason

logger = logging.getLogger(__name__)

_Given = TypeVar("_Given")

_VERSIONS, _ARCHIVE = "/versions/", "/archive/"
# Period between checks of versions and archived sessions, which can be many and seldom change.
_ALL_EVERY_S = 30.0
_PATIENCE_S = 0.5  # the process keeps its other calls from the documents while it waits for another machine
_AGAIN_S = 1.5  # retry period: other machines get a document within two seconds after an editor closes it


class SharedDocumentStore(FileDocumentStore):
    """Implements `ports.DocumentStore` for one machine's copies of a memory's documents.

    Args:
        folders: The folders of documents, by names that are the same on every machine.
        files: The documents on the server.
        exclusive: Given how long to wait, returns a context manager that holds the lock against other machines.
        copies: Stores the earlier contents of the local copies.
        machine: Name of this machine.
        more: Arguments of `FileDocumentStore`.
    """

    def __init__(
        self,
        folders: Mapping[str, Path],
        *,
        files: SharedFiles,
        exclusive: Callable[[float | None], AbstractContextManager[None]],
        copies: CopyHistory,
        machine: str,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self._folders = Folders(folders)
        self._name, self._path = self._folders.name, self._folders.path
        self._files = files
        self._exclusive = exclusive
        self._copies = copies
        self._machine = machine
        self._holder, self._brings = 0, False
        self._behind: set[str] = set()
        self._all_seen_s = -_ALL_EVERY_S
        self._left: object = None
        self._left_s = 0.0

    @contextmanager
    def lock(self, *, timeout_s: float | None = None) -> Iterator[None]:
        """Keep other machines, processes and threads from writing documents, and synchronise the local copies."""
        with super().lock(timeout_s=timeout_s):
            if self._brings:
                yield
            elif self._holder == get_ident():
                if self._saved():  # edits since the lock was taken
                    self._bring_together()
                yield
            else:
                with self._exclusive(timeout_s):
                    self._holder = get_ident()
                    try:
                        self._bring_together()
                        yield
                    finally:
                        self._holder = 0

    def follow(self) -> None:
        """Apply the changes of other machines, and share local edits."""
        found = self._saved(), self._files.sizes_after(self._copies.through)
        if not (self._is_due or any(found)):
            return
        # A document that cannot be read or written now is retried later, so that the lock is free meanwhile.
        if found != self._left or time.monotonic() >= self._left_s + _AGAIN_S:
            with self.lock(timeout_s=_PATIENCE_S):
                pass
            self._left, self._left_s = found, time.monotonic()

    def close(self) -> None:
        """Close the database of earlier contents."""
        self._copies.close()

    # Synchronising the copies with the server's files

    def _bring_together(self) -> None:
        self._brings = True
        try:
            newer = self._files.newer_than(self._copies.through)
            if not newer and not self._copies.through:  # nobody has shared anything yet
                here = {self._name(path): self._settled(path) for path in self._folders.paths()}
                self._files.put_all([self._file(name, decode(data)) for name, data in here.items() if name and data])
                newer = self._files.newer_than(0)
            # Removed and moved files come last: a local edit of a moved file is merged into its new file.
            in_order = sorted(newer, key=lambda file: file.text is None)
            foreign = [file for file in newer if not self._folders.has(file.name)]
            taken = {file.revision for file in in_order if file in foreign or self._done(self._take, file)}
            for file in takewhile(lambda file: file.revision in taken, newer):
                self._copies.through = file.revision
            self._behind = {file.name for file in newer if file.revision not in taken}
            if everything := self._is_due:
                self._all_seen_s = time.monotonic()
                self._share_kept()
            for name in sorted(self._saved(everything=everything).keys() - self._behind):
                self._done(self._share_saved, name)
        finally:
            self._brings = False

    def _done(self, step: Callable[[_Given], None], given: _Given) -> bool:
        """Run a step; return False if the local copy cannot be read or written now."""
        try:
            step(given)
        except (DocumentConflictError, DocumentError, StorageReadOnlyError) as error:
            logger.debug("%s", error)
            return False
        return True

    @property
    def _is_due(self) -> bool:
        return time.monotonic() >= self._all_seen_s + _ALL_EVERY_S

    def _saved(self, *, everything: bool = False) -> dict[str, str]:
        """Return the documents saved or removed on this machine since their last revision, with their states."""
        but = (_VERSIONS,) if everything else (_VERSIONS, _ARCHIVE)
        return self._copies.changed(lambda name: self.state(self._path(name)), but=but)

    def _share_kept(self) -> None:
        """Share versions that the server lacks; restore versions that were removed on this machine."""
        known = set(self._copies.names())
        for path in sorted(self._versions.glob("*.md")):
            if (name := self._name(path)) not in known and name is not None and path.is_file():
                self._share(name, Copy(None, decode(path.read_bytes())))
        gone = {name for name in known if _VERSIONS in name and not self._path(name).exists()}
        for name in gone:
            if (text := self._files.text(name)) is not None:
                self._write(self._file(name, text), text, None)

    def _here(self, path: Path) -> Copy | None:
        """Return a file's content, None if it does not exist; raise a conflict if it is being saved or is not text."""
        if self.state(path) is None:
            return None
        if (data := self._settled(path)) is None:
            raise DocumentConflictError(f"{path} is being saved")
        text, stamp = unstamped(decode(data))
        return Copy(stamp, text)

    def _take(self, file: SharedFile) -> None:
        """Apply a revision of the server to the local copy."""
        if file.revision > self._copies.revision(file.name):
            if file.text is not None and file.machine == self._machine:
                self._copies.remember_sent(file.name, file.text)
            mine = self._here(self._path(file.name))
            if file.text is None:
                self._take_away(file, mine)
            else:
                self._write(file, file.text, mine)

    def _share_saved(self, name: str) -> None:
        """Share a local edit. Restore a copy that was removed or emptied: other machines still have the document."""
        known, mine = self._copies.synced_copy(name), self._here(self._path(name))
        if known is None:
            return
        if mine is not None and mine.text.strip() and mine.stamp == known.stamp and mine.text != known.text:
            self._share(name, mine, saved=self._saved_at(self._path(name)))
        else:
            self._write(self._file(name, known.text), known.text, mine)

    def _write(self, file: SharedFile, theirs: str, mine: Copy | None) -> None:
        """Write the server's text to the local copy. If a local edit is merged in, the result is shared first."""
        text, revision, path = self._merged(file, theirs, mine), file.revision, self._path(file.name)
        if text != theirs:
            revision = self._share_text(file.name, text, mine, known=revision, saved=self._saved_at(path))
            self._copies.remember_sent(file.name, text)
        if mine is None or mine.text != text:
            self._check_change(path)
            mine = self._put_stamped(file.name, text, mine and mine.text, revision, "pull")
        self._note(file.name, revision, mine)

    def _merged(self, file: SharedFile, theirs: str, mine: Copy | None) -> str:
        """Return the server's text with the local edit applied. The edited text is also kept as a version."""
        known = self._copies.synced_copy(file.name)
        old = known and known.text
        if mine is None or not mine.text.strip() or mine.text in (theirs, old) or _VERSIONS in file.name:
            return theirs
        self._keep_edit(self._path(file.name), mine.text)
        if not (held := self._copies.held(file.name)):
            logger.warning("%s: the local text is kept as a version; another machine's text is current", file.name)
            return theirs
        is_later = file.saved is None or self._saved_at(self._path(file.name)) >= file.saved
        return merge_copy(held, theirs, mine, machines=(self._machine, file.machine), is_later=is_later)

    def _saved_at(self, path: Path) -> datetime:
        if (state := self.state(path)) is None:
            raise DocumentConflictError(f"{path} is being saved")
        return datetime.fromtimestamp(state.modified_ns / 1e9, UTC)

    def _keep_edit(self, path: Path, text: str) -> None:
        saved, name = self._saved_at(path), version_document(path, self._versions)
        self.keep_version(name, text, time=saved, author=Author.PERSON, reason=VersionReason.EDIT, like=path)

    def _take_away(self, file: SharedFile, mine: Copy | None) -> None:
        """Remove the copy of a removed or moved file. A local edit restores it, or is merged into the moved file."""
        known = self._copies.synced_copy(file.name)
        if mine is not None and known is None and _VERSIONS not in file.name:  # may contain an edit
            self._keep_edit(self._path(file.name), mine.text)
        if mine is not None and known is not None and mine.text != known.text:
            if not file.moved_to:
                self._share(file.name, mine, known=file.revision, saved=self._saved_at(self._path(file.name)))
                return
            there = self.read(self._path(file.moved_to))
            text = merge_copy(self._copies.held(file.name), there or "", mine, machines=(self._machine, file.machine))
            self.replace(self._path(file.moved_to), text, expected=there, name="pull")
        if mine is not None:
            super().remove(self._path(file.name), expected=mine.text, name="pull")
        self._copies.forget(file.name, file.revision)

    # Sharing

    def _share(self, name: str, copy: Copy, *, known: int | None = None, saved: datetime | None = None) -> None:
        """Store a local copy's content as a new revision. `saved`: When a person saved it, None if the machine did."""
        self._note(name, self._share_text(name, copy.text, copy, known=known, saved=saved), copy)

    def _share_text(
        self, name: str, text: str, mine: Copy | None, *, known: int | None = None, saved: datetime | None = None
    ) -> int:
        """Store a text that includes the local edit `mine`; return its revision. A crash before the reply is safe."""
        if mine is not None and _VERSIONS not in name:
            self._copies.begin_sending(name, text, mine)
        return self._files.put(replace(self._file(name, text, known=known), saved=saved))

    def _share_removal(self, path: Path) -> None:
        if (name := self._name(path)) is not None and self._copies.revision(name):
            self._forget(name, self._files.put(self._file(name, None)))

    def _forget(self, name: str, revision: int) -> None:
        self._copies.forget(name, revision)
        self._step(revision)

    def _step(self, revision: int) -> None:
        if revision == self._copies.through + 1:  # else earlier revisions have yet to be applied
            self._copies.through = revision

    def _note(self, name: str, revision: int, copy: Copy) -> None:
        """Record that a copy is at a revision. A save during this call counts as a later edit."""
        path = self._path(name)
        state = self.state(path)
        is_it = self._settled(path) == self._bytes(name, copy)
        self._copies.bring(name, revision, state if is_it else None, None if _VERSIONS in name else copy)
        self._step(revision)

    def _file(self, name: str, text: str | None, moved_to: str = "", *, known: int | None = None) -> SharedFile:
        known = self._copies.revision(name) if known is None else known
        return SharedFile(name=name, revision=known, text=text, moved_to=moved_to, machine=self._machine)

    # Reading removes the revision number; writing adds it, and shares the document

    def text_of(self, data: bytes) -> str:
        """Convert a document's bytes to its text, without the revision number."""
        return unstamped(decode(data))[0]

    def _bytes(self, name: str, copy: Copy) -> bytes:
        """Convert a document's text to the bytes of its file, with the revision number."""
        return encode(copy.text if copy.stamp is None or _VERSIONS in name else stamped(copy.text, copy.stamp))

    def _put_stamped(self, name: str, text: str, expected: str | None, revision: int, point: str) -> Copy:
        """Write a document with its revision number. Record the text first: editors may open it before a crash."""
        copy = Copy(unstamped(stamped(text, revision))[1], text)
        if _VERSIONS not in name:
            self._copies.remember(name, copy)
        self._put(self._path(name), self._bytes(name, Copy(revision, text)), expected, point)
        return copy

    def read_settled(self, path: Path) -> str | None:
        """See `DocumentReader.read_settled`. The lock's holder gets the shared text, without later local edits."""
        if self._holder != get_ident():
            return super().read_settled(path)
        if (name := self._name(path) or "") in self._behind:
            return None
        known = self._copies.synced_copy(name)
        return known.text if known is not None else super().read_settled(path)

    def read_to_change(self, path: Path) -> str | None:
        """See `DocumentReader.read_to_change`. Raises `DocumentConflictError` if the document cannot be shared now."""
        text, name = super().read_to_change(path), self._name(path)
        if name is not None and self._holder == get_ident() and not self._brings:
            saved = name in self._saved()
            if saved:  # edited since the lock was taken
                self._bring_together()
                text, saved = super().read_to_change(path), name in self._saved()
            if saved or name in self._behind:
                raise DocumentConflictError(f"{path} is being saved")
        return text

    def read_shown(self, path: Path) -> str | None:
        """See `DocumentReader.read_shown`."""
        text = super().read_shown(path)
        return text and unstamped(text)[0]

    def replace(self, path: Path, text: str, *, expected: str | None, name: str) -> None:
        """See `FileDocumentStore.replace`. The text is shared before it is written, so that a crash cannot lose it."""
        if (shared := self._name(path)) is None:
            super().replace(path, text, expected=expected, name=name)
            return
        with self.lock(), self._changing("writing", path):
            known, mine = self._copies.synced_copy(shared), self._here(path)
            if (mine and mine.text) != expected or (known is not None and known.text != expected):
                if not self._brings:
                    self._bring_together()  # changed or removed since the lock was taken
                raise DocumentConflictError(f"{path} was saved by somebody else while it was being written")
            self._check_change(path, expected or "", text)
            revision = self._share_text(shared, text, None)
            with suppress(DocumentConflictError):  # saved here meanwhile: merged at the next synchronisation
                self._note(shared, revision, self._put_stamped(shared, text, expected, revision, name))

    def append(self, path: Path, text: str, *, name: str) -> None:
        """See `FileDocumentStore.append`."""
        with self.lock(), self._changing("appending to", path):
            known, mine = self._copies.synced_copy(self._name(path) or ""), self._here(path)
            if known is not None and known.text != (mine and mine.text):
                self._bring_together()  # saved since the lock was taken
            super().append(path, text, name=name)
            if (shared := self._name(path)) is not None and (copy := self._here(path)) is not None:
                self._share(shared, copy)

    def move(self, path: Path, target: Path, *, name: str) -> None:
        """See `FileDocumentStore.move`. The move is shared first, so that it is not repeated after a crash."""
        with self.lock(), self._changing("moving", path):
            old, new, copy = self._name(path), self._name(target), self._here(path)
            if old is None or new is None or copy is None or self.state(target) is not None:
                super().move(path, target, name=name)
                return
            self._copies.begin_sending(new, copy.text, copy)
            added, removed = self._files.put_all([self._file(new, copy.text), self._file(old, None, new)])
            super().move(path, target, name=name)
            self._note(new, added, copy)
            self._forget(old, removed)

    def remove(self, path: Path, *, expected: str, name: str) -> None:
        """See `FileDocumentStore.remove`."""
        with self.lock():
            super().remove(path, expected=expected, name=name)
            self._share_removal(path)

    def keep_version(
        self, document: str, text: str, *, time: datetime, author: Author, reason: VersionReason, like: Path
    ) -> Version:
        """See `FileDocumentStore.keep_version`."""
        version = super().keep_version(document, text, time=time, author=author, reason=reason, like=like)
        if (shared := self._name(Path(version.path))) is not None:
            self._share(shared, Copy(None, text))
        return version

    def prune_versions(self, document: str, keep: int) -> int:
        """See `FileDocumentStore.prune_versions`."""
        with self.lock():
            before = self.versions(document)
            count = super().prune_versions(document, keep)
            for version in before if count else ():
                if not Path(version.path).exists():
                    self._share_removal(Path(version.path))
            return count

    def change_former(self, path: Path, change: Callable[[str], str]) -> None:
        """Apply `change` to the earlier contents of this machine's copy of a document."""
        self._copies.change_former(change, self._name(path))

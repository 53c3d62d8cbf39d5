"""Documents that several machines have copies of: each is merged with what the others have saved, then shared.

The lock keeps all machines from writing. Whoever takes it first brings the copies here and the server's files together:
what only the server has is written here, what only was saved here goes there, and where both have changed the two are
merged. Whatever is written under the lock is shared at once, before the ledger says so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestra_mem.adapters.database.shared_files import SharedFile, SqlSharedFiles
from orchestra_mem.adapters.files import FileDocumentStore
from orchestra_mem.adapters.files.reading import decode, encode
from orchestra_mem.adapters.files.versions import version_document
from orchestra_mem.adapters.working_copy.following import Follower
from orchestra_mem.adapters.working_copy.local import LocalTexts
from orchestra_mem.core.documents.copies import brought_together, stamped, unstamped
from orchestra_mem.errors import DocumentConflictError, DocumentError, StorageReadOnlyError
from orchestra_mem.types import Author, Version, VersionReason

logger = logging.getLogger(__name__)

_VERSIONS, _ARCHIVE = "/versions/", "/archive/"
# Documents of ended sessions may be many, and few people edit them.
_ARCHIVES_EVERY_S = 30.0


class SharedDocumentStore(FileDocumentStore):
    """Fulfils `ports.DocumentStore` for a folder that is one machine's copy of a memory's documents.

    Args:
        folders: where the documents lie, by names that are the same on every machine.
        files: keeps them on the server.
        exclusive: keeps other machines from writing them.
        copies: remembers what the copies here have held.
        machine: what this machine is called.
        more: as `FileDocumentStore` takes them.
    """

    def __init__(
        self,
        folders: Mapping[str, Path],
        *,
        files: SqlSharedFiles,
        exclusive: Callable[[], AbstractContextManager[None]],
        copies: LocalTexts,
        machine: str,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self._folders = folders
        self._files = files
        self._exclusive = exclusive
        self._copies = copies
        self._machine = machine
        self._holds = False
        self._stamp = 0
        self._archives_seen_s = -_ARCHIVES_EVERY_S
        self._follower: Follower | None = None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other machines, processes and threads from writing documents; the copies here are up to date then."""
        with super().lock():
            if self._holds or self._read_only:
                yield
                return
            with self._exclusive():
                self._holds = True
                try:
                    self._bring_together()
                    yield
                finally:
                    self._holds = False

    def follow(self) -> None:
        """Take over what other machines have written, and share what was saved here."""
        if not self._read_only and (self._files.last_revision() > self._copies.through or self._saved()):
            with self.lock():
                pass

    def begin_following(self) -> None:
        """Do so again and again in a thread of its own, until `close`; it does not keep the store alive."""
        if not self._read_only:
            self._follower = Follower(self)

    def close(self) -> None:
        """End the thread, and close what remembers the copies."""
        if self._follower is not None:
            self._follower.end()
        self._copies.close()

    # Bringing the copies and the server's files together

    def _bring_together(self) -> None:
        newer = self._files.newer_than(self._copies.through)
        if not newer and not self._copies.through:
            self._share_all()
        all_taken = True
        for file in newer:
            all_taken &= self._take(file)
            if all_taken:
                self._copies.through = file.revision
        names = {file.name for file in newer}
        for name in self._saved():
            if name not in names:
                self._share_saved(name)

    def _share_all(self) -> None:
        """Share what lies here: nobody has shared anything yet."""
        for name, folder in self._folders.items():
            for path in sorted(folder.rglob("*.md")) if folder.is_dir() else ():
                if not path.is_symlink() and (text := self.read_settled(path)) is not None:
                    self._share(f"{name}/{path.relative_to(folder).as_posix()}", text)

    def _saved(self) -> list[str]:
        """Name the documents that were saved here, or taken away, since their copies were last looked at."""
        is_due = time.monotonic() >= self._archives_seen_s + _ARCHIVES_EVERY_S
        if is_due:
            self._archives_seen_s = time.monotonic()
        names = [name for name in self._copies.names() if _VERSIONS not in name and (is_due or _ARCHIVE not in name)]
        return self._copies.changed({name: self.state(self._path(name)) for name in names})

    def _take(self, file: SharedFile) -> bool:
        """Take over another machine's change; False where the copy here cannot be written now."""
        if file.revision <= self._copies.revision(file.name):
            return True
        path = self._path(file.name)
        if self.state(path) is None:
            mine, stamp = None, None
        elif (data := self._settled(path)) is None:
            return False  # somebody is saving it
        else:
            mine, stamp = unstamped(decode(data))
        try:
            if file.text is None:
                self._take_away(file, mine, stamp)
            else:
                self._write(file, mine, self._merged(file, mine, stamp))
        except (DocumentConflictError, DocumentError, StorageReadOnlyError) as error:
            logger.info("%s", error)
            return False
        return True

    def _merged(self, file: SharedFile, mine: str | None, stamp: int | None) -> str:
        """The text that a document is to have here, after what was saved here is done to another machine's text."""
        assert file.text is not None
        held = self._copies.held(file.name)
        if mine is None or mine == file.text or _VERSIONS in file.name or (held and mine == held[-1][1]):
            return file.text
        self._keep_mine(self._path(file.name), mine)
        if not held:
            logger.warning("%s: what lay here is kept as a version, another machine's stands", file.name)
            return file.text
        return brought_together(held, file.text, mine, stamp, machines=(self._machine, file.machine))

    def _keep_mine(self, path: Path, text: str) -> None:
        """Keep as a version what somebody has saved here, before more is put into it."""
        saved = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        name = version_document(path, self._versions)
        self.keep_version(name, text, time=saved, author=Author.PERSON, reason=VersionReason.EDIT)

    def _write(self, file: SharedFile, mine: str | None, text: str) -> None:
        revision = file.revision
        if text != file.text:
            revision = self._files.put(self._file(file.name, text), known=revision)
        path = self._path(file.name)
        if mine != text:
            self._stamp = revision
            self._check_change(path)
            self._put(path, text, mine, "pull")
        self._note(file.name, revision, text)

    def _take_away(self, file: SharedFile, mine: str | None, stamp: int | None) -> None:
        """Remove a copy whose file is gone from the server, or has moved: what was saved here goes along."""
        held = self._copies.held(file.name)
        if mine is not None and held and mine != held[-1][1] and _VERSIONS not in file.name:
            if not file.moved_to:
                self._share(file.name, mine, known=file.revision)
                return
            there = self.read(self._path(file.moved_to)) or ""
            text = brought_together(held, there, mine, stamp, machines=(self._machine, file.machine))
            self.replace(self._path(file.moved_to), text, expected=there, name="pull")
        if mine is not None:
            super().remove(self._path(file.name), expected=mine, name="pull")
        self._copies.forget(file.name, file.revision)

    def _share_saved(self, name: str) -> None:
        """Share what somebody has saved here. What was taken away comes back: other machines have it still."""
        path, held = self._path(name), self._copies.held(name)
        if self.state(path) is None:
            if held:
                self._stamp = self._copies.revision(name)
                self._put(path, held[-1][1], None, "pull")
                self._note(name, self._stamp, held[-1][1])
        elif (text := self.read_settled(path)) is not None:
            if held and text == held[-1][1]:
                self._note(name, self._copies.revision(name), text)
            else:
                self._share(name, text)

    def _share(self, name: str, text: str, *, known: int | None = None) -> None:
        """Store what lies here as a file's new revision."""
        known = self._copies.revision(name) if known is None else known
        revision = self._files.put(self._file(name, text), known=known)
        self._note(name, revision, text)
        self._step(revision)

    def _share_removal(self, path: Path, moved_to: str = "") -> None:
        name = self._name(path)
        if name is not None and (known := self._copies.revision(name)):
            revision = self._files.put(self._file(name, None, moved_to), known=known)
            self._copies.forget(name, revision)
            self._step(revision)

    def _step(self, revision: int) -> None:
        if revision == self._copies.through + 1:  # else something of another machine's is still to be taken over
            self._copies.through = revision

    def _note(self, name: str, revision: int, text: str) -> None:
        """Remember what a copy holds; who saves it this instant has saved it after that."""
        path = self._path(name)
        state, data = self.state(path), self._settled(path)
        there, stamp = (None, None) if data is None else unstamped(decode(data))
        is_version = _VERSIONS in name
        self._copies.bring(name, revision, state if there == text else None, None if is_version else (stamp, text))

    def _file(self, name: str, text: str | None, moved_to: str = "") -> SharedFile:
        return SharedFile(name=name, revision=0, text=text, moved_to=moved_to, machine=self._machine)

    def _name(self, path: Path) -> str | None:
        """The name of a document on every machine; None for what is none."""
        for name, folder in self._folders.items():
            if path.suffix == ".md" and path.is_relative_to(folder):
                return f"{name}/{path.relative_to(folder).as_posix()}"
        return None

    def _path(self, name: str) -> Path:
        folder, _, rest = name.partition("/")
        return self._folders[folder] / rest

    # What is read bears no number of a revision; what is written does, and is shared

    def text_of(self, data: bytes) -> str:
        """Return the text that a document's bytes stand for."""
        return unstamped(decode(data))[0]

    def bytes_of(self, path: Path, text: str) -> bytes:
        """Return the bytes that a document's file gets for a text."""
        name = self._name(path)
        return encode(text if name is None or _VERSIONS in name else stamped(text, self._stamp))

    def read_shown(self, path: Path) -> str | None:
        """See `DocumentReader.read_shown`."""
        text = super().read_shown(path)
        return text and unstamped(text)[0]

    def replace(self, path: Path, text: str, *, expected: str | None, name: str) -> None:
        """See `FileDocumentStore.replace`."""
        with self.lock():
            self._stamp = self._copies.through + 1
            super().replace(path, text, expected=expected, name=name)
            if (shared := self._name(path)) is not None:
                self._share(shared, text)

    def append(self, path: Path, text: str, *, name: str) -> None:
        """See `FileDocumentStore.append`."""
        with self.lock():
            super().append(path, text, name=name)
            shared, whole = self._name(path), self.read(path)
            if shared is not None and whole is not None:
                self._share(shared, whole)

    def move(self, path: Path, target: Path, *, name: str) -> None:
        """See `FileDocumentStore.move`."""
        with self.lock():
            super().move(path, target, name=name)
            shared, whole = self._name(target), self.read(target)
            if shared is not None and whole is not None:
                self._share(shared, whole)
                self._share_removal(path, moved_to=shared)

    def remove(self, path: Path, *, expected: str, name: str) -> None:
        """See `FileDocumentStore.remove`."""
        with self.lock():
            super().remove(path, expected=expected, name=name)
            self._share_removal(path)

    def keep_version(
        self, document: str, text: str, *, time: datetime, author: Author, reason: VersionReason
    ) -> Version:
        """See `FileDocumentStore.keep_version`."""
        version = super().keep_version(document, text, time=time, author=author, reason=reason)
        if (shared := self._name(Path(version.path))) is not None:
            self._share(shared, text)
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

"""Documents on disk: atomic writes, appends, locks, versions.

A document is replaced as a whole (temporary file, fsync, rename, fsync of the folder), and only if it still holds what
the writer last saw; how that is made sure of stands in `exchange.py`. A version is the earlier text, byte for byte, in
a file whose name tells the rest; see `versions.py`.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from orchestra_mem.adapters.files.exchange import (
    ForeignText,
    aside_of,
    exchange,
    foreign_text,
    link_new,
    put_back,
    settled,
)
from orchestra_mem.adapters.files.reading import (
    DocumentReader,
    decode,
    encode,
    sync_folder,
    telling,
    write_all,
)
from orchestra_mem.adapters.files.versions import last_sequence, read_name, scan, version_document, version_name
from orchestra_mem.errors import DocumentConflictError, LockTimeoutError, StorageError, StorageReadOnlyError
from orchestra_mem.ports import WritePoint
from orchestra_mem.types import Author, Version, VersionReason

logger = logging.getLogger(__name__)

_TEMPORARY = ".tmp~"
_LOCK_POLL_S = 0.01
_BINARY = getattr(os, "O_BINARY", 0)


class FileDocumentStore(DocumentReader):
    """Fulfils `ports.DocumentStore`. Safe to share between threads; processes keep apart by the lock file.

    With `read_only` every change is refused and no lock file is made. Documents are replaced in one step by whoever may
    write them, so they read whole without a lock; of an append half may be seen.
    """

    def __init__(
        self,
        *,
        versions: Path,
        lock_file: Path,
        lock_timeout_s: float = 30.0,
        full_sync: bool = False,
        write_point: WritePoint | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(homes=(versions.parent, lock_file.parent), read_only=read_only)
        self._versions = versions
        self._lock_file = lock_file
        self._lock_timeout_s = lock_timeout_s
        self._full_sync = full_sync
        self._tell: WritePoint = write_point or (lambda point: None)
        self._process_lock = FileLock(
            str(lock_file), timeout=lock_timeout_s, thread_local=False, poll_interval=_LOCK_POLL_S
        )
        self._thread_lock = threading.RLock()
        # Folders that wait to be flushed, with the name of what was written there.
        self._unsynced: dict[Path, str] = {}
        self._syncs_once = False

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes and threads from writing documents. May be taken again by its holder."""
        if not self._thread_lock.acquire(timeout=self._lock_timeout_s):
            raise LockTimeoutError(f"another thread has held {self._lock_file} for {self._lock_timeout_s:g} s")
        try:
            if self._read_only:
                yield
                return
            with telling("locking", self._lock_file):
                try:
                    self._process_lock.acquire()
                except Timeout:
                    raise LockTimeoutError(
                        f"another process has held {self._lock_file} for {self._lock_timeout_s:g} s; "
                        "see storage.lock_timeout_s, or end that process"
                    ) from None
            try:
                yield
            finally:
                self._process_lock.release()
        finally:
            self._thread_lock.release()

    def follow(self) -> None:
        """Take over what other machines have written: nothing here, where the folder alone has the documents."""

    def begin_following(self) -> None:
        """Do so again and again in the background, until `close`."""

    def close(self) -> None:
        """End what runs in the background."""

    @contextmanager
    def _changing(self, doing: str, path: Path) -> Iterator[None]:
        if self._read_only:
            raise StorageReadOnlyError(
                f"{doing} {path}: this memory may be read and not be written; `orchestra-mem status` says why"
            )
        with telling(doing, path):
            yield

    def _check_change(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            self.check_rights(path)

    def replace(self, path: Path, text: str, *, expected: str | None, name: str) -> None:
        """Write a whole document, all or nothing.

        What somebody else saves meanwhile stands afterwards, or is kept as a version where it was saved over.

        Raises:
            DocumentConflictError: it no longer holds `expected`, or somebody has it open for writing; it stays so.
            DocumentError: a link leads out.
            StorageReadOnlyError: it is marked as read-only.
            StorageError: the disk refused; the document is as before.
        """
        with self._changing("writing", path):
            self._check_change(path)
            self._put(path, text, expected, name)

    def _put(self, path: Path, text: str, expected: str | None, name: str) -> None:
        ours = self.bytes_of(path, text)
        # Through a link, so that the link stays and what it leads to is replaced.
        path = Path(os.path.realpath(path))
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}{_TEMPORARY}")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._write_new(temporary, ours, name)
            # What was kept of it before must stand before the document is replaced.
            self._flush_folders(but=path.parent)
            there = self._read_bytes(path)
            if (None if there is None else self.text_of(there)) != expected:
                raise _conflict(path)
            if there is None:
                self._put_new(temporary, path, name)
            else:
                self._put_in_place(temporary, path, ours, there, name)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        self._written_in(path.parent, name)

    def bytes_of(self, path: Path, text: str) -> bytes:
        """Return the bytes that a document's file gets for a text."""
        return encode(text)

    def _put_new(self, temporary: Path, path: Path, name: str) -> None:
        self._tell(f"{name}.rename.before")
        try:
            if not link_new(temporary, path):
                os.replace(temporary, path)
        except FileExistsError:
            raise _conflict(path) from None
        self._tell(f"{name}.rename.after")

    def _put_in_place(self, temporary: Path, path: Path, ours: bytes, expected: bytes, name: str) -> None:
        """Exchange a document for its new text, and look at what came out: what was not expected goes back."""
        aside = aside_of(path, ours, expected, _TEMPORARY)
        try:
            if settled(path) != expected:
                raise _conflict(path)
            os.rename(temporary, aside)
            self._tell(f"{name}.rename.before")
            if not exchange(aside, path):
                # Nothing better can be done here: a save between the look above and this is lost.
                os.replace(aside, path)
                self._tell(f"{name}.rename.after")
                return
        except BaseException as error:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            if isinstance(error, FileNotFoundError):  # the document has been taken away this instant
                raise _conflict(path) from error
            raise
        self._tell(f"{name}.rename.after")
        came_out = settled(aside)
        if came_out != expected:
            self._take_back(aside, path, came_out, ours=ours, expected=expected, name=name)
        aside.unlink()
        if came_out != expected:
            self._written_in(path.parent, name)
            raise _conflict(path)

    def _take_back(
        self, aside: Path, path: Path, came_out: bytes | None, *, ours: bytes, expected: bytes, name: str
    ) -> None:
        """Give a document back to who saved it, and keep what was saved over meanwhile."""
        for lost in put_back(aside, path, came_out, ours=ours, tell=lambda when: self._tell(f"{name}.back.{when}")):
            if lost != expected:
                self._keep_saved(path, aside, lost)
        self._flush_folders(but=path.parent)

    def _keep_saved(self, path: Path, file: Path, data: bytes) -> None:
        """Keep as a version what somebody saved, and what would stand nowhere else."""
        saved, name = datetime.fromtimestamp(file.stat().st_mtime, UTC), version_document(path, self._versions)
        kept = self.keep_version(
            name, self.text_of(data), time=saved, author=Author.PERSON, reason=VersionReason.CONFLICT
        )
        logger.warning("%s was saved twice at a time; the text that does not stand there is %s", name, kept.path)

    def append(self, path: Path, text: str, *, name: str) -> None:
        """Add to the end of a document; where that fails half-way the document is as before.

        Waits for the disk only where the store was opened with `full_sync`: the event log has it all.

        Raises:
            DocumentConflictError: an editor put another file in its place meanwhile; what was added went with the old.
            DocumentError: a link leads out.
            StorageReadOnlyError: it is marked as read-only.
            StorageError: the disk refused; the document is as before.
        """
        with self._changing("appending to", path):
            self._check_change(path)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | _BINARY)
            try:
                size = os.fstat(descriptor).st_size
                self._tell(f"{name}.append.before")
                try:
                    write_all(descriptor, encode(text))
                except OSError:
                    os.ftruncate(descriptor, size)
                    raise
                self._tell(f"{name}.append.after")
                if self._full_sync:
                    os.fsync(descriptor)
                    self._tell(f"{name}.fsync.after")
                if not os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    raise DocumentConflictError(f"{path} was replaced by someone else while it was being added to")
            finally:
                os.close(descriptor)

    def move(self, path: Path, target: Path, *, name: str) -> None:
        """Move a document to another folder; what stands there already is never replaced."""
        with self._changing("moving", path):
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                raise DocumentConflictError(f"{target} exists already; {path} was not moved")
            self._tell(f"{name}.rename.before")
            os.rename(path, target)
            self._tell(f"{name}.rename.after")
            self._written_in(target.parent, name)
            self._written_in(path.parent, name)

    def remove(self, path: Path, *, expected: str, name: str) -> None:
        """Remove a document for good.

        Raises:
            DocumentConflictError: it no longer holds `expected`, or somebody has it open for writing; it stays.
            StorageError: the disk refused.
        """
        with self._changing("removing", path):
            there = settled(path)
            if there is None or self.text_of(there) != expected:
                raise _conflict(path)
            self._tell(f"{name}.remove.before")
            path.unlink()
            self._tell(f"{name}.remove.after")
            self._written_in(path.parent, name)

    def keep_version(
        self, document: str, text: str, *, time: datetime, author: Author, reason: VersionReason
    ) -> Version:
        """Keep an earlier text. The lock must be held, so that no sequence number is used twice."""
        with self._changing("keeping a version in", self._versions):
            sequence = last_sequence(self._versions) + 1
            path = self._versions / version_name(document, sequence, time=time, author=author, reason=reason)
            self._put(path, text, None, "version")
        version = read_name(path, len(encode(text)))
        assert version is not None
        return version

    def versions(self, document: str) -> list[Version]:
        """Return the kept texts of a document, oldest first."""
        with telling("listing", self._versions):
            return sorted(scan(self._versions, document), key=lambda version: version.sequence)

    def read_version(self, version: Version) -> str:
        """Return the text of a version.

        Raises:
            StorageError: its file is gone or cannot be read.
        """
        path = Path(version.path)
        with telling("reading", path), suppress(FileNotFoundError):
            return decode(path.read_bytes())
        raise StorageError(f"{path} is gone")

    def prune_versions(self, document: str, keep: int) -> int:
        """Remove all but the newest `keep` versions that the machine wrote; a person's are never removed."""
        if self._read_only:
            return 0
        own = [version for version in self.versions(document) if version.author is Author.MACHINE]
        for version in (old := own[: max(0, len(own) - keep)]):
            self._tell("version.prune.before")
            with suppress(OSError):
                Path(version.path).unlink()
            self._tell("version.prune.after")
        return len(old)

    def sweep(self, folders: tuple[Path, ...]) -> int:
        """Remove temporary files that a killed process left. The lock must be held.

        What somebody saved in the instant before it was killed goes back into its place first, or is kept as a
        version where somebody has saved there since.
        """
        removed = 0
        for folder in () if self._read_only else (*folders, self._versions):
            for leftover in folder.glob(f".*{_TEMPORARY}") if folder.is_dir() else ():
                with suppress(OSError, StorageError):
                    saved = foreign_text(leftover)
                    if saved is not None:
                        self._give_back(saved, leftover)
                    leftover.unlink()
                    removed += 1
        return removed

    def _give_back(self, saved: ForeignText, leftover: Path) -> None:
        if saved.ours is None:
            self._keep_saved(saved.path, leftover, saved.data)
        else:
            self._take_back(leftover, saved.path, saved.data, ours=saved.ours, expected=saved.ours, name="document")
            self._written_in(saved.path.parent, "document")

    @contextmanager
    def syncing_once(self) -> Iterator[None]:
        """Write several documents under one lock, and flush each folder once: at the end, or before what builds on it.

        Raises:
            StorageError: a folder could not be flushed; what was written in it may be gone after power loss.
        """
        with self.lock():
            if self._syncs_once:
                yield
                return
            self._syncs_once = True
            try:
                yield
            finally:
                self._syncs_once = False
                self._flush_folders()

    def _write_new(self, path: Path, data: bytes, name: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, 0o644)
        try:
            self._tell(f"{name}.write.before")
            write_all(descriptor, data)
            self._tell(f"{name}.write.after")
            os.fsync(descriptor)
            self._tell(f"{name}.fsync.after")
        finally:
            os.close(descriptor)

    def _written_in(self, folder: Path, name: str) -> None:
        self._unsynced[folder] = name
        if not self._syncs_once:
            self._flush_folders()

    def _flush_folders(self, but: Path | None = None) -> None:
        for folder in [folder for folder in self._unsynced if folder != but]:
            name = self._unsynced.pop(folder)
            with telling("flushing", folder):
                sync_folder(folder)
            self._tell(f"{name}.folder-fsync.after")


def _conflict(path: Path) -> DocumentConflictError:
    return DocumentConflictError(f"{path} was changed by someone else while it was being written")

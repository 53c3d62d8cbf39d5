"""Documents on disk: atomic writes, appends, locks, versions.

A document is replaced atomically (temporary file, fsync, rename, fsync of the folder), and only if it still holds what
the writer last saw (see `exchange.py`). A version is an earlier text, byte for byte (see `versions.py`).
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from orchestra_mem.adapters.files.exchange import exchange, interrupted_save, link_new, put_back, settled, staging_path
from orchestra_mem.adapters.files.reading import DocumentReader, decode, encode, sync_folder, write_all
from orchestra_mem.adapters.files.versions import last_sequence, read_name, scan, version_document, version_name
from orchestra_mem.core.documents.damage import check_encoding
from orchestra_mem.errors import (
    DocumentConflictError,
    LockTimeoutError,
    StorageError,
    StorageReadOnlyError,
    lock_holder,
    telling,
)
from orchestra_mem.ports import WritePoint
from orchestra_mem.types import Author, Version, VersionReason

logger = logging.getLogger(__name__)

_TEMPORARY = ".tmp~"
_LOCK_POLL_S = 0.01


class FileDocumentStore(DocumentReader):
    """Implements `ports.DocumentStore`. Safe to share between threads; a lock file excludes other processes.

    With `read_only`, every change is refused and no lock file is created. Readers need no lock, as replacement is
    atomic, but may see an incomplete append.
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
        # Folders to be flushed, each with the `name` of the last write in it, which the write point reports.
        self._unsynced: dict[Path, str] = {}
        self._syncs_once = False

    @contextmanager
    def lock(self, *, timeout_s: float | None = None) -> Iterator[None]:
        """See `ports.DocumentStore.lock`."""
        timeout_s = self._lock_timeout_s if timeout_s is None else min(timeout_s, self._lock_timeout_s)
        duration = f" for {timeout_s:g} s" if timeout_s else ""
        if not self._thread_lock.acquire(timeout=timeout_s):
            raise LockTimeoutError(f"another thread has locked {self._lock_file}{duration}")
        try:
            if self._read_only or self._process_lock.is_locked:  # by this thread: acquiring it again is slow
                yield
                return
            with telling("locking", self._lock_file):
                try:
                    self._process_lock.acquire(timeout=timeout_s)
                except Timeout:
                    raise LockTimeoutError(
                        f"{lock_holder(self._lock_file)} has locked {self._lock_file}{duration}; "
                        "end that process if it hangs, or see storage.lock_timeout_s"
                    ) from None
            try:
                yield
            finally:
                self._process_lock.release()
        finally:
            self._thread_lock.release()

    def follow(self) -> None:
        """Do nothing: no other machine shares these documents."""

    def close(self) -> None:
        """Do nothing: no file stays open."""

    @contextmanager
    def _changing(self, doing: str, path: Path) -> Iterator[None]:
        if self._read_only:
            raise StorageReadOnlyError(f"{doing} {path}: this memory is read-only; `orchestra-mem status` shows why")
        with telling(doing, path):
            yield

    def _check_change(self, path: Path, before: str = "", after: str = "") -> None:
        check_encoding(path, before, after)
        with suppress(FileNotFoundError):
            self.check_rights(path)

    def replace(self, path: Path, text: str, *, expected: str | None, name: str) -> None:
        """Replace a document atomically, or create it if `expected` is None.

        If somebody else saves a text meanwhile, it stays, or becomes a version if another save replaces it. Such a text
        can be lost only on a system that cannot exchange two files.

        Raises:
            DocumentConflictError: The document differs from `expected`, or is open for writing; the file is unchanged.
            DocumentError: The document is a link that leads out of the memory, or would become a mixture of encodings.
            StorageReadOnlyError: The document is marked as read-only.
            StorageError: The disk refused; the document is unchanged.
        """
        with self._changing("writing", path):
            self._check_change(path, expected or "", text)
            self._put(path, encode(text), expected, name)

    def _put(self, path: Path, ours: bytes, expected: str | None, name: str, like: Path | None = None) -> None:
        # Follow a link: its target is replaced, the link stays.
        document, path = path, Path(os.path.realpath(path))
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}{_TEMPORARY}")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._write_new(temporary, ours, name, like=like or path)
            # Versions of the old text must be on disk before the document is replaced.
            self._flush_folders(but=path.parent)
            there = self._read_bytes(path)
            if (None if there is None else self.text_of(there)) != expected:
                raise _conflict(document)
            if there is None:
                self._put_new(temporary, path, name)
            else:
                self._put_in_place(temporary, document, ours, there, name)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        self._written_in(path.parent, name)

    def _put_new(self, temporary: Path, path: Path, name: str) -> None:
        self._tell(f"{name}.rename.before")
        try:
            if not link_new(temporary, path):
                os.replace(temporary, path)
        except FileExistsError:
            raise _conflict(path) from None
        self._tell(f"{name}.rename.after")

    def _put_in_place(self, temporary: Path, document: Path, ours: bytes, expected: bytes, name: str) -> None:
        """Exchange a document for its new text; if an unexpected text came out, put it back and raise a conflict."""
        path = Path(os.path.realpath(document))
        aside = staging_path(path, ours, expected, _TEMPORARY)
        try:
            if settled(path) != expected:
                raise _conflict(document)
            os.rename(temporary, aside)
            self._tell(f"{name}.rename.before")
            if not exchange(aside, path):
                # This system cannot exchange files: a save since the check above is lost.
                os.replace(aside, path)
                self._tell(f"{name}.rename.after")
                return
        except BaseException as error:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            if isinstance(error, FileNotFoundError):  # the document has just been removed
                raise _conflict(document) from error
            raise
        self._tell(f"{name}.rename.after")
        came_out = settled(aside)
        if came_out != expected:
            self._take_back(aside, document, came_out, ours=ours, expected=expected, name=name)
        aside.unlink()
        if came_out != expected:
            self._written_in(path.parent, name)
            raise _conflict(document)

    def _take_back(
        self, aside: Path, path: Path, came_out: bytes | None, *, ours: bytes, expected: bytes, name: str
    ) -> None:
        """Restore the newest text of others at `path`, and keep as versions the texts that this text replaced."""
        real = Path(os.path.realpath(path))
        for lost in put_back(aside, real, came_out, ours=ours, tell=lambda when: self._tell(f"{name}.back.{when}")):
            if lost != expected:
                self._keep_saved(path, aside, lost)
        self._flush_folders(but=path.parent)

    def _keep_saved(self, path: Path, file: Path, data: bytes) -> None:
        """Keep a text that somebody saved, and that no document holds any more, as a version."""
        saved, name = datetime.fromtimestamp(file.stat().st_mtime, UTC), version_document(path, self._versions)
        kept = self.keep_version(
            name, self.text_of(data), time=saved, author=Author.PERSON, reason=VersionReason.CONFLICT, like=file
        )
        logger.warning("%s was saved twice at the same time; the other text is kept as %s", name, kept.path)

    def append(self, path: Path, text: str, *, name: str) -> None:
        """Append to a document; a write that fails half-way is rolled back.

        Waits for the disk only with `full_sync`, since the event log has the same data.

        Raises:
            DocumentConflictError: An editor replaced the file meanwhile; the appended text is lost with the old file.
            DocumentError, StorageError: As from `replace`.
        """
        with self._changing("appending to", path):
            before = "" if text.isascii() else self.text_of(path.read_bytes())
            self._check_change(path, before, before + text)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
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
                    raise DocumentConflictError(f"{path} was replaced by someone else while text was being appended")
            finally:
                os.close(descriptor)

    def move(self, path: Path, target: Path, *, name: str) -> None:
        """Move a document to another folder; raise `DocumentConflictError` if the target exists."""
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
        """Remove a document permanently.

        Raises:
            DocumentConflictError: The document differs from `expected`, or is open for writing; the file is unchanged.
            StorageError: The disk refused, or the document does not exist.
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
        self, document: str, text: str, *, time: datetime, author: Author, reason: VersionReason, like: Path
    ) -> Version:
        """Keep an earlier text as a version, as private as the file `like`. Hold the lock: numbers must be unique."""
        with self._changing("saving a version in", self._versions):
            sequence = last_sequence(self._versions) + 1
            path = self._versions / version_name(document, sequence, time=time, author=author, reason=reason)
            self._put(path, data := encode(text), None, "version", like)
        version = read_name(path, len(data))
        assert version is not None
        return version

    def versions(self, document: str) -> list[Version]:
        """Return the versions of a document, oldest first."""
        with telling("listing", self._versions):
            return sorted(scan(self._versions, document), key=lambda version: version.sequence)

    def read_version(self, version: Version) -> str:
        """Return the text of a version.

        Raises:
            StorageError: The version's file is gone or cannot be read.
        """
        if (data := self._read_bytes(Path(version.path))) is None:
            raise StorageError(f"{version.path} does not exist any more")
        return decode(data)

    def prune_versions(self, document: str, keep: int) -> int:
        """Remove the machine's versions except the newest `keep`; return the number removed. People's versions stay."""
        if self._read_only:
            return 0
        own = [version for version in self.versions(document) if version.author is Author.MACHINE]
        for version in (old := own[: max(0, len(own) - keep)]):
            self._tell("version.prune.before")
            with suppress(OSError):
                Path(version.path).unlink()
            self._tell("version.prune.after")
        return len(old)

    def change_former(self, path: Path, change: Callable[[str], str]) -> None:
        """Do nothing: this store keeps no former texts but versions."""

    def sweep(self, folders: tuple[Path, ...]) -> None:
        """Remove the temporary files of killed processes. The lock must be held.

        A text that somebody saved just before the kill is first put back into its document, or kept as a version if
        the document has been saved since.
        """
        for folder in () if self._read_only else (*folders, self._versions):
            for leftover in folder.glob(f".*{_TEMPORARY}") if folder.is_dir() else ():
                with suppress(OSError, StorageError):
                    if (saved := interrupted_save(leftover)) is not None:
                        path, data, ours = saved
                        if ours is None:
                            self._keep_saved(path, leftover, data)
                        else:
                            self._take_back(leftover, path, data, ours=ours, expected=ours, name="document")
                            self._written_in(path.parent, "document")
                    leftover.unlink()

    @contextmanager
    def syncing_once(self) -> Iterator[None]:
        """Hold the lock and flush each folder only once: at the end, or before a replacement in another folder.

        Raises:
            StorageError: A folder could not be flushed; files written in it may be lost at a power failure.
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

    def _write_new(self, path: Path, data: bytes, name: str, *, like: Path) -> None:
        """Write a new file with the access rights of the file `like`; see `_rights`."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            with suppress(OSError):  # a file system without access rights
                mode = self._rights(path, like)
                os.chmod(path, mode if mode & 0o222 else mode | 0o200)
            self._tell(f"{name}.write.before")
            write_all(descriptor, data)
            self._tell(f"{name}.write.after")
            os.fsync(descriptor)
            self._tell(f"{name}.fsync.after")
        finally:
            os.close(descriptor)

    def _rights(self, path: Path, like: Path) -> int:
        """Return the access rights of `like`, if it exists; else those that other files of the memory grant as well.

        These files are the documents beside the versions, and the versions of the same document.
        """
        with suppress(OSError):
            return like.stat().st_mode & 0o777
        version = read_name(like, 0)
        kept = scan(self._versions, version.document if version else version_document(like, self._versions))
        mode = path.stat().st_mode & 0o777
        for other in (*self._versions.parent.glob("*.md"), *(Path(each.path) for each in kept)):
            with suppress(OSError):
                mode &= other.stat().st_mode | 0o600
        return mode

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

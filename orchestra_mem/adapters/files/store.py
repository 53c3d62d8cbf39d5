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

from orchestra_mem.adapters.files.encoding import decode, encode, write_all
from orchestra_mem.adapters.files.exchange import (
    ForeignText,
    aside_of,
    exchange,
    foreign_text,
    link_new,
    put_back,
    settled,
)
from orchestra_mem.adapters.files.lock import ProcessLock
from orchestra_mem.adapters.files.place import check_place, check_rights
from orchestra_mem.adapters.files.reading import DocumentReader
from orchestra_mem.adapters.files.versions import last_sequence, read_name, scan, version_name
from orchestra_mem.errors import (
    DocumentConflictError,
    LockTimeoutError,
    StorageError,
    storage_error,
)
from orchestra_mem.ports import WritePoint
from orchestra_mem.types import Author, Version, VersionReason

logger = logging.getLogger(__name__)

_TEMPORARY = ".tmp~"


class FileDocumentStore(DocumentReader):
    """Fulfils `ports.DocumentStore`. Safe to share between threads; processes keep apart by the lock file."""

    def __init__(
        self,
        *,
        versions: Path,
        lock_file: Path,
        lock_timeout_s: float = 30.0,
        full_sync: bool = False,
        write_point: WritePoint | None = None,
    ) -> None:
        super().__init__(homes=(versions.parent, lock_file.parent))
        self._versions = versions
        self._lock_file = lock_file
        self._lock_timeout_s = lock_timeout_s
        self._full_sync = full_sync
        self._write_point = write_point
        self._file_lock = ProcessLock(lock_file, timeout_s=lock_timeout_s)
        self._thread_lock = threading.RLock()
        self._holds = 0  # how often the holder has taken the lock
        # Folders that wait to be flushed, with the name of what was written there; None where none has to wait.
        self._unsynced: dict[Path, str] | None = None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes and threads from writing documents. May be taken again by its holder."""
        if not self._thread_lock.acquire(timeout=self._lock_timeout_s):
            raise LockTimeoutError(f"another thread has held {self._lock_file} for {self._lock_timeout_s:g} s")
        try:
            if not self._holds:
                self._file_lock.acquire()
            self._holds += 1
            try:
                yield
            finally:
                self._holds -= 1
                if not self._holds:
                    self._file_lock.release()
        finally:
            self._thread_lock.release()

    def _check_change(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            check_rights(path, check_place(path, self.homes(path)))

    def replace(self, path: Path, text: str, *, expected: str | None, name: str) -> None:
        """Write a whole document, all or nothing.

        What somebody else saves meanwhile stands afterwards, or is kept as a version where it was saved over.

        Raises:
            DocumentConflictError: it no longer holds `expected`, or somebody has it open for writing; it stays so.
            DocumentError: a link leads out.
            StorageReadOnlyError: it is marked as read-only.
            StorageError: the disk refused; the document is as before.
        """
        # Through a link, so that the link stays and what it leads to is replaced.
        link, path = path, Path(os.path.realpath(path))
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}{_TEMPORARY}")
        try:
            self._check_change(link)
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._write_new(temporary, text, name)
                self._sync_folders(but=path.parent)
                if self.read(path) != expected:
                    raise _conflict(path)
                if expected is None:
                    self._put_new(temporary, path, name)
                else:
                    self._put_in_place(temporary, path, encode(text), encode(expected), name)
            finally:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)
            self._sync_folder(path.parent, name)
        except OSError as error:
            raise storage_error(error, "writing", path) from error

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
            self._sync_folder(path.parent, name)
            raise _conflict(path)

    def _take_back(
        self, aside: Path, path: Path, came_out: bytes | None, *, ours: bytes, expected: bytes, name: str
    ) -> None:
        """Give a document back to who saved it, and keep what was saved over meanwhile."""
        for lost in put_back(aside, path, came_out, ours=ours, tell=lambda when: self._tell(f"{name}.back.{when}")):
            if lost != expected:
                self._keep_saved(path.stem, aside, lost)
        self._sync_folders(but=path.parent)

    def _keep_saved(self, document: str, file: Path, data: bytes) -> None:
        """Keep as a version what somebody saved, and what would stand nowhere else."""
        saved = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        version = self.keep_version(
            document, decode(data), time=saved, author=Author.PERSON, reason=VersionReason.CONFLICT
        )
        logger.warning("%s was saved twice at a time; the text that does not stand there is %s", document, version.path)

    def append(self, path: Path, text: str, *, name: str) -> None:
        """Add to the end of a document; where that fails half-way the document is as before.

        Waits for the disk only where the store was opened with `full_sync`: the event log has it all.

        Raises:
            DocumentConflictError: an editor put another file in its place meanwhile; what was added went with the old.
            DocumentError: a link leads out.
            StorageReadOnlyError: it is marked as read-only.
            StorageError: the disk refused; the document is as before.
        """
        data = encode(text)
        try:
            self._check_change(path)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
            try:
                size = os.fstat(descriptor).st_size
                self._tell(f"{name}.append.before")
                try:
                    write_all(descriptor, data)
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
        except OSError as error:
            raise storage_error(error, "appending to", path) from error

    def move(self, path: Path, target: Path, *, name: str) -> None:
        """Move a document to another folder; what stands there already is never replaced."""
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                raise DocumentConflictError(f"{target} exists already; {path} was not moved")
            self._tell(f"{name}.rename.before")
            os.rename(path, target)
            self._tell(f"{name}.rename.after")
            self._sync_folder(target.parent, name)
            self._sync_folder(path.parent, name)
        except OSError as error:
            raise storage_error(error, "moving", path) from error

    def keep_version(
        self, document: str, text: str, *, time: datetime, author: Author, reason: VersionReason
    ) -> Version:
        """Keep an earlier text. The lock must be held, so that no sequence number is used twice."""
        try:
            self._versions.mkdir(parents=True, exist_ok=True)
            sequence = last_sequence(self._versions) + 1
            path = self._versions / version_name(document, sequence, time=time, author=author, reason=reason)
            temporary = path.with_name(f".{path.name}.{os.getpid()}{_TEMPORARY}")
            try:
                self._write_new(temporary, text, "version")
                self._tell("version.rename.before")
                os.replace(temporary, path)
                self._tell("version.rename.after")
            except BaseException:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)
                raise
            self._sync_folder(self._versions, "version")
        except OSError as error:
            raise storage_error(error, "keeping a version in", self._versions) from error
        return read_name(path, len(encode(text)))

    def versions(self, document: str) -> list[Version]:
        """The kept texts of a document, oldest first."""
        try:
            found = list(scan(self._versions, document))
        except OSError as error:
            raise storage_error(error, "listing", self._versions) from error
        return sorted(found, key=lambda version: version.sequence)

    def read_version(self, version: Version) -> str:
        """The text of a version.

        Raises:
            StorageError: its file is gone or cannot be read.
        """
        try:
            return decode(Path(version.path).read_bytes())
        except FileNotFoundError:
            raise StorageError(f"{version.path} is gone") from None
        except OSError as error:
            raise storage_error(error, "reading", Path(version.path)) from error

    def prune_versions(self, document: str, keep: int) -> int:
        """Remove all but the newest `keep` versions that the machine wrote; a person's are never removed."""
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
        for folder in (*folders, self._versions):
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
            self._keep_saved(saved.path.stem, leftover, saved.data)
        else:
            self._take_back(leftover, saved.path, saved.data, ours=saved.ours, expected=saved.ours, name="document")
            self._sync_folder(saved.path.parent, "document")

    @contextmanager
    def syncing_once(self) -> Iterator[None]:
        """Write several documents under one lock, and flush each folder once: at the end, or before what builds on it.

        Raises:
            StorageError: a folder could not be flushed; what was written in it may be gone after power loss.
        """
        with self.lock():
            if self._unsynced is not None:
                yield
                return
            self._unsynced = {}
            try:
                yield
            finally:
                try:
                    self._sync_folders()
                finally:
                    self._unsynced = None

    def _write_new(self, path: Path, text: str, name: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o644)
        try:
            self._tell(f"{name}.write.before")
            write_all(descriptor, encode(text))
            self._tell(f"{name}.write.after")
            os.fsync(descriptor)
            self._tell(f"{name}.fsync.after")
        finally:
            os.close(descriptor)

    def _sync_folder(self, folder: Path, name: str) -> None:
        if self._unsynced is not None:
            self._unsynced[folder] = name
            return
        if os.name == "nt":  # Windows has no handle for a folder that could be flushed
            return
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._tell(f"{name}.folder-fsync.after")

    def _sync_folders(self, but: Path | None = None) -> None:
        """Flush the folders that wait for it: a version must stand before its document is replaced."""
        waiting, self._unsynced = self._unsynced, None
        try:
            for folder, name in list((waiting or {}).items()):
                if folder != but:
                    try:
                        self._sync_folder(folder, name)
                    except OSError as error:
                        raise storage_error(error, "flushing", folder) from error
                    if waiting is not None:
                        del waiting[folder]
        finally:
            self._unsynced = waiting

    def _tell(self, point: str) -> None:
        if self._write_point is not None:
            self._write_point(point)


def _conflict(path: Path) -> DocumentConflictError:
    return DocumentConflictError(f"{path} was changed by someone else while it was being written")

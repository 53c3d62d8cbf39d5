"""Documents on disk: atomic writes, appends, locks, versions.

A document is replaced as a whole (temporary file, fsync, rename, fsync of the folder), and only if it still holds what
the writer last saw. A version is the earlier text, byte for byte, in a file whose name tells the rest:
`project_state.20250115T143015.123456Z.000007.machine.refresh.md`.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from orchestra_mem.errors import (
    DocumentConflictError,
    DocumentError,
    LockTimeoutError,
    StorageError,
    storage_error,
)
from orchestra_mem.ports import WritePoint
from orchestra_mem.types import Author, FileState, Version, VersionReason

_TIME = "%Y%m%dT%H%M%S.%fZ"
_VERSION = re.compile(
    r"(?P<document>.+)\.(?P<time>\d{8}T\d{6}\.\d{6}Z)\.(?P<sequence>\d{6,})\.(?P<author>[a-z]+)\.(?P<reason>[a-z]+)\.md"
)
_TEMPORARY = ".tmp~"


class FileDocumentStore:
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
        from filelock import FileLock  # slow to load; the package must be quick to import

        self._versions = versions
        self._lock_file = lock_file
        self._lock_timeout_s = lock_timeout_s
        self._full_sync = full_sync
        self._write_point = write_point
        self._file_lock = FileLock(str(lock_file), timeout=lock_timeout_s, thread_local=False, poll_interval=0.002)
        self._thread_lock = threading.RLock()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes and threads from writing documents. May be taken again by its holder."""
        from filelock import Timeout

        if not self._thread_lock.acquire(timeout=self._lock_timeout_s):
            raise LockTimeoutError(f"another thread has held {self._lock_file} for {self._lock_timeout_s:g} s")
        try:
            try:
                self._file_lock.acquire()
            except Timeout:
                raise LockTimeoutError(
                    f"another process has held {self._lock_file} for {self._lock_timeout_s:g} s; "
                    "see storage.lock_timeout_s, or end that process"
                ) from None
            except OSError as error:
                raise storage_error(error, "locking", self._lock_file) from error
            try:
                yield
            finally:
                self._file_lock.release()
        finally:
            self._thread_lock.release()

    def read(self, path: Path) -> str | None:
        """The text of a document, None where there is none.

        Raises:
            DocumentError: something else than a file stands there.
            StorageError: it cannot be read.
        """
        try:
            return path.read_bytes().decode("utf-8", "surrogateescape")
        except FileNotFoundError:
            return None
        except IsADirectoryError:
            raise DocumentError(f"{path} is a folder, a document is expected there; move the folder away") from None
        except OSError as error:
            if path.is_dir():
                raise DocumentError(f"{path} is a folder, a document is expected there; move the folder away") from None
            raise storage_error(error, "reading", path) from error

    def state(self, path: Path) -> FileState | None:
        """What tells cheaply whether a document has changed, None where there is none."""
        try:
            status = path.stat()
        except OSError:
            return None
        return FileState(status.st_ino, status.st_size, status.st_mtime_ns)

    def replace(self, path: Path, text: str, *, expected: str | None, name: str) -> None:
        """Write a whole document, all or nothing.

        Raises:
            DocumentConflictError: it no longer holds `expected`; nothing is written.
            StorageError: the disk refused; the document is as before.
        """
        # Through a link, so that the link stays and what it leads to is replaced.
        path = Path(os.path.realpath(path))
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}{_TEMPORARY}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._write_new(temporary, text, name)
                if self.read(path) != expected:
                    raise DocumentConflictError(f"{path} was changed by someone else while it was being written")
                self._tell(f"{name}.rename.before")
                os.replace(temporary, path)
                self._tell(f"{name}.rename.after")
            except BaseException:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)
                raise
            self._sync_folder(path.parent, name)
        except OSError as error:
            raise storage_error(error, "writing", path) from error

    def append(self, path: Path, text: str, *, name: str) -> None:
        """Add to the end of a document; where that fails half-way the document is as before.

        Waits for the disk only where the store was opened with `full_sync`: the event log has it all.

        Raises:
            DocumentConflictError: an editor put another file in its place meanwhile; what was added went with the old.
            StorageError: the disk refused; the document is as before.
        """
        data = _encode(text)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
            try:
                size = os.fstat(descriptor).st_size
                self._tell(f"{name}.append.before")
                try:
                    _write_all(descriptor, data)
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
            sequence = max((version.sequence for version in self._all_versions()), default=0) + 1
            stamp = time.astimezone(UTC).strftime(_TIME)
            path = self._versions / f"{document}.{stamp}.{sequence:06d}.{author.value}.{reason.value}.md"
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
        return _read_name(path, len(_encode(text)))

    def versions(self, document: str) -> list[Version]:
        """The kept texts of a document, oldest first."""
        try:
            found = [version for version in self._all_versions() if version.document == document]
        except OSError as error:
            raise storage_error(error, "listing", self._versions) from error
        return sorted(found, key=lambda version: version.sequence)

    def _all_versions(self) -> Iterator[Version]:
        if not self._versions.is_dir():
            return
        with os.scandir(self._versions) as entries:
            for entry in entries:
                if _VERSION.fullmatch(entry.name):
                    with suppress(FileNotFoundError):  # pruned by another process meanwhile
                        yield _read_name(Path(entry.path), entry.stat().st_size)

    def read_version(self, version: Version) -> str:
        """The text of a version.

        Raises:
            StorageError: its file is gone or cannot be read.
        """
        text = self.read(Path(version.path))
        if text is None:
            raise StorageError(f"{version.path} is gone")
        return text

    def prune_versions(self, document: str, keep: int) -> int:
        """Remove all but the newest `keep` versions that the machine wrote; a person's are never removed."""
        own = [version for version in self.versions(document) if version.author is Author.MACHINE]
        old = own[: max(0, len(own) - keep)]
        for version in old:
            self._tell("version.prune.before")
            with suppress(OSError):
                Path(version.path).unlink()
            self._tell("version.prune.after")
        return len(old)

    def sweep(self, folders: tuple[Path, ...]) -> int:
        """Remove temporary files that a killed process left. The lock must be held."""
        removed = 0
        for folder in (*folders, self._versions):
            for leftover in folder.glob(f".*{_TEMPORARY}") if folder.is_dir() else ():
                with suppress(OSError):
                    leftover.unlink()
                    removed += 1
        return removed

    def _write_new(self, path: Path, text: str, name: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o644)
        try:
            self._tell(f"{name}.write.before")
            _write_all(descriptor, _encode(text))
            self._tell(f"{name}.write.after")
            os.fsync(descriptor)
            self._tell(f"{name}.fsync.after")
        finally:
            os.close(descriptor)

    def _sync_folder(self, folder: Path, name: str) -> None:
        if os.name == "nt":  # Windows has no handle for a folder that could be flushed
            return
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._tell(f"{name}.folder-fsync.after")

    def _tell(self, point: str) -> None:
        if self._write_point is not None:
            self._write_point(point)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _read_name(path: Path, size_bytes: int) -> Version:
    match = _VERSION.fullmatch(path.name)
    if match is None:
        raise StorageError(f"{path} does not have the name of a version")
    known = match["author"] in set(Author) and match["reason"] in set(VersionReason)
    return Version(
        document=match["document"],
        sequence=int(match["sequence"]),
        time=datetime.strptime(match["time"], _TIME).replace(tzinfo=UTC),
        author=Author(match["author"]) if known else Author.PERSON,
        reason=VersionReason(match["reason"]) if known else VersionReason.EDIT,
        path=str(path),
        size_bytes=size_bytes,
    )

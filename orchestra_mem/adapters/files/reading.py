"""Reading documents: for merging, for showing, and for telling what is wrong with them. Nothing is written here."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestra_mem.adapters.files.exchange import settled
from orchestra_mem.core.documents.damage import MOST_BYTES, SHOWN_BYTES, shown, text_faults, unchangeable
from orchestra_mem.errors import DocumentError, StorageError, StorageReadOnlyError, storage_error
from orchestra_mem.types import FileState


class DocumentReader:
    """Reads documents.

    Args:
        homes: the folders that a link may lead to, besides the one that it stands in.
    """

    def __init__(self, *, homes: Sequence[Path]) -> None:
        self._homes = tuple(homes)

    def homes(self, path: Path) -> tuple[Path, ...]:
        """Return the folders that a document at `path` may lie in."""
        return path.parent, *self._homes

    def read(self, path: Path) -> str | None:
        """Return the text of a document, None where there is none.

        Raises:
            DocumentError: something else than a file of a document's size stands there, or a link that leads out.
            StorageError: it cannot be read.
        """
        data = self._read_bytes(path)
        return None if data is None else decode(data)

    def read_to_change(self, path: Path) -> str | None:
        """Return the text of a document that the machine is about to change, None where there is none.

        Raises:
            DocumentError: it is to be left as it is: see `read`, or it is no text.
            StorageReadOnlyError: it is marked as read-only.
            StorageError: it cannot be read.
        """
        data = self._read_bytes(path)
        with telling("reading", path):
            if data is None or (status := _status(path)) is None:
                return None
            check_rights(path, status)
        if (fault := unchangeable(data)) is not None:
            place = f"{path}:{fault[0]}:" if fault[0] else f"{path}"
            raise DocumentError(f"{place} {fault[1]}; until then it is served, and left as it is")
        return decode(data)

    def read_settled(self, path: Path) -> str | None:
        """The text of a document, None where there is none, somebody has it open for writing, or it is no text."""
        with suppress(OSError, DocumentError):
            check_size(path, check_place(path, self.homes(path)).st_size)
            data = settled(path)
            return None if data is None or unchangeable(data) else decode(data)
        return None

    def read_shown(self, path: Path) -> str | None:
        """What of a document can be shown: decoded, where it is too large its beginning; None where there is none.

        Raises:
            DocumentError: something else than a file stands there, or a link that leads out.
            StorageError: it cannot be read.
        """
        with telling("reading", path), suppress(FileNotFoundError):
            size = check_place(path, self.homes(path)).st_size
            with path.open("rb") as file:
                return shown(file.read(SHOWN_BYTES if size > MOST_BYTES else -1), size)
        return None

    def faults(self, path: Path) -> list[tuple[int, str]]:
        """Return what is wrong with a document as it lies there: line (from 1, 0 for all of it) and problem."""
        found: list[tuple[int, str]] = []
        try:
            data = self._read_bytes(path)
            if data is not None and (status := _status(path)) is not None:
                found += [(line, problem) for line, problem, _ in text_faults(data)]
                check_rights(path, status)
        except (OSError, StorageError) as error:
            found.insert(0, (0, str(error)))
        return found

    def _read_bytes(self, path: Path) -> bytes | None:
        with telling("reading", path), suppress(FileNotFoundError):
            check_size(path, check_place(path, self.homes(path)).st_size)
            return path.read_bytes()
        return None

    def state(self, path: Path) -> FileState | None:
        """Return what tells cheaply whether a document has changed, None where there is none: then one may be begun.

        A link that nothing may be written through stands in its place, whether there is anything at its end or not.
        """
        with suppress(OSError):
            try:
                status = path.stat()
            except FileNotFoundError:
                status = path.lstat()
                if outside_target(path, self.homes(path)) is None:
                    return None
            except OSError:
                status = path.lstat()
            return FileState(status.st_ino, status.st_size, status.st_mtime_ns)
        return None


def _status(path: Path) -> os.stat_result | None:
    """A file's status; None where an editor has moved it away this instant."""
    with suppress(FileNotFoundError):
        return path.stat()
    return None


def encode(text: str) -> bytes:
    """Return the bytes of a text; what was no UTF-8 comes out as it was."""
    return text.encode("utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    """Return the text of some bytes, whatever they are."""
    return data.decode("utf-8", "surrogateescape")


@contextmanager
def telling(doing: str, path: Path) -> Iterator[None]:
    """Tell in words what could not be done to which file.

    Raises:
        StorageError: in place of an `OSError`.
    """
    try:
        yield
    except OSError as error:
        raise storage_error(error, doing, path) from error


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of some bytes, however little the system takes at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    if os.name == "nt":  # Windows has no handle for a folder that could be flushed
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def why_read_only(home: Path) -> str | None:
    """Say why a memory can be read alone: what of it this user may not write to; None where all may be written."""
    for path in (home, home / "obra.lock", home / "obra.db"):
        if path.exists() and not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            return f"{path} cannot be written to"
    return None


def outside_target(path: Path, homes: Iterable[Path]) -> Path | None:
    """Return where a symbolic link leads that leaves the folders of a memory; None for anything else."""
    if not path.is_symlink():
        return None
    target = Path(os.path.realpath(path))
    return None if any(target.is_relative_to(os.path.realpath(home)) for home in homes) else target


def check_place(path: Path, homes: Iterable[Path]) -> os.stat_result:
    """Make sure that a file stands in a document's place, and that it is this memory's.

    Raises:
        DocumentError: something else does.
        OSError: nothing does, or it cannot be seen.
    """
    ending = "nothing is read or written there; put the document itself in its place"
    target = outside_target(path, homes)
    if target is not None:
        raise DocumentError(f"{path} is a symbolic link that leads out of the memory, to {target}: {ending}")
    try:
        status = path.stat()
    except OSError as error:
        if isinstance(error, FileNotFoundError) or not path.is_symlink():
            raise
        raise DocumentError(f"{path} is a symbolic link that leads nowhere ({error.strerror}): {ending}") from error
    if stat.S_ISDIR(status.st_mode):
        raise DocumentError(f"{path} is a folder, a document is expected there; move the folder away")
    if not stat.S_ISREG(status.st_mode):
        raise DocumentError(f"{path} is no file, a document is expected there; move it away")
    return status


def check_size(path: Path, size_bytes: int) -> None:
    """Refuse what is too large to be a document.

    Raises:
        DocumentError: it is.
    """
    if size_bytes > MOST_BYTES:
        size, most = f"{size_bytes / 1e6:,.1f} MB", f"{MOST_BYTES / 1e6:,.0f} MB"
        raise DocumentError(
            f"{path} is of {size}, over {most}: its beginning is served, and it is left as it is; take out what was "
            "pasted"
        )


def check_rights(path: Path, status: os.stat_result) -> None:
    """Refuse to change what somebody has marked as not to be written, whatever this user may do.

    Raises:
        StorageReadOnlyError: it is marked so.
    """
    if not status.st_mode & 0o222:
        raise StorageReadOnlyError(
            f"{path} is marked as read-only: it is served, and left as it is; for the machine to go on with it, give "
            "this user the right to write there (chmod u+w)"
        )

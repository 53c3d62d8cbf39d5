"""Read documents, for merging and for display, and find their faults. Also helpers for all access to files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from orchestra_mem.adapters.files.exchange import settled
from orchestra_mem.core.documents.damage import MOST_BYTES, SHOWN_BYTES, shown, text_faults, unchangeable
from orchestra_mem.errors import DocumentError, StorageReadOnlyError, telling
from orchestra_mem.types import DocumentFault, DocumentName, FileState

# File that marks a folder as a backup, next to its database.
BACKUP_MARK = "backup.json"
_MARKED = (
    "is marked as read-only",
    "it is read, but not updated; to have it updated, give this user the right to write there (chmod u+w)",
)


_COPIED = "its lines are not read; put what is missing into {}, then delete the copy or move it to another folder"
_HEAD_BYTES = 1_000  # of a file, with the document's name in its front matter


class DocumentReader:
    """Reads documents.

    Args:
        homes: Folders that a symbolic link may lead into, in addition to the link's own folder.
        read_only: The memory must not be written.
    """

    def __init__(self, *, homes: Sequence[Path], read_only: bool = False) -> None:
        self._homes = tuple(homes)
        self._read_only = read_only

    def homes(self, path: Path) -> tuple[Path, ...]:
        """Return the folders that a symbolic link at `path` may lead into."""
        return path.parent, *self._homes

    def read(self, path: Path) -> str | None:
        """Return the text of a document, None if it does not exist.

        Raises:
            DocumentError: The document is not a regular file, is too large, or is a link that leads out of the memory.
            StorageError: The document cannot be read.
        """
        data = self._read_bytes(path)
        return None if data is None else self.text_of(data)

    def text_of(self, data: bytes) -> str:
        """Convert a document's bytes to its text."""
        return decode(data)

    def read_to_change(self, path: Path) -> str | None:
        """Return the text of a document that the machine is about to change, None if it does not exist.

        Raises:
            DocumentError: As for `read`; also if the document is UTF-16 or contains NUL bytes.
            StorageReadOnlyError: The document is marked as read-only.
        """
        data = self._read_bytes(path)
        if data is not None and (fault := unchangeable(data)) is not None:
            place = f"{path}:{fault[0]}:" if fault[0] else f"{path}"
            raise DocumentError(f"{place} {fault[1]}; until then it is read, but not updated")
        with telling("reading", path), suppress(FileNotFoundError):  # an editor may just have moved it away
            self.check_rights(path)
            return None if data is None else self.text_of(data)
        return None

    def read_settled(self, path: Path) -> str | None:
        """Return a document's text; None if it does not exist, is open for writing, or cannot be read as text."""
        data = self._settled(path)
        return None if data is None else self.text_of(data)

    def _settled(self, path: Path) -> bytes | None:
        with suppress(OSError, DocumentError):
            self._check_size(path)
            data = settled(path)
            return None if data is None or unchangeable(data) else data
        return None

    def read_shown(self, path: Path) -> str | None:
        """Return a document's text for display, only the beginning of a large document; None if it does not exist.

        Raises:
            DocumentError: The document is not a regular file, or is a link that leads out of the memory.
            StorageError: The document cannot be read.
        """
        with telling("reading", path), suppress(FileNotFoundError):
            size = self._status(path).st_size
            with path.open("rb") as file:
                return shown(file.read(SHOWN_BYTES if size > MOST_BYTES else -1), size)
        return None

    def faults(self, path: Path) -> list[DocumentFault]:
        """Return the faults of a document on disk; an empty list if the document does not exist."""
        found: list[tuple[int, str, str]] = []
        try:
            if (place := _place_fault(path, self.homes(path))) is not None:
                found.append((0, *place))
            else:
                status = path.stat()
                # If the entire memory is read-only, that is reported once, not for each document.
                if not self._read_only and _is_marked(status):
                    found.append((0, *_MARKED))
                elif not self._read_only and not os.access(path, os.W_OK):
                    found.append((0, "cannot be written to", "it is read; updates wait until it can be written to"))
                size = _size_fault(status.st_size)
                found += [(0, *size)] if size else text_faults(path.read_bytes())
        except FileNotFoundError:
            pass
        except OSError as error:
            found.append((0, f"cannot be read: {error.strerror or error}", "its content is not used"))
        reports = [DocumentFault(path=str(path), line=at, problem=what, meanwhile=then) for at, what, then in found]
        return reports + [
            DocumentFault(
                path=str(copy), line=0, problem=f"is a copy of {path.name}", meanwhile=_COPIED.format(path.name)
            )
            for copy in _copies(path)
        ]

    def _read_bytes(self, path: Path) -> bytes | None:
        with telling("reading", path), suppress(FileNotFoundError):
            self._check_size(path)
            return path.read_bytes()
        return None

    def _status(self, path: Path) -> os.stat_result:
        """Return a file's status; raise `DocumentError` unless it is a regular file inside the memory."""
        if (fault := _place_fault(path, self.homes(path))) is not None:
            raise DocumentError(f"{path} {': '.join(fault)}")
        return path.stat()

    def _check_size(self, path: Path) -> None:
        if (fault := _size_fault(self._status(path).st_size)) is not None:
            raise DocumentError(f"{path} {': '.join(fault)}")

    def check_rights(self, path: Path) -> None:
        """Check that a document is not marked as read-only, even if this user could write to it.

        Raises:
            DocumentError: The document is not a regular file, or is a link that leads out of the memory.
            StorageReadOnlyError: The document is marked as read-only.
        """
        if _is_marked(self._status(path)):
            raise StorageReadOnlyError(f"{path} {': '.join(_MARKED)}")

    def state(self, path: Path) -> FileState | None:
        """Return metadata for detecting changes cheaply; None if a document may be created, as there is none.

        A link that leads out of the memory counts as a document, even if its target does not exist.
        """
        with suppress(OSError):
            try:
                status = path.stat()
            except OSError as error:
                status = path.lstat()
                if isinstance(error, FileNotFoundError) and outside_target(path, self.homes(path)) is None:
                    return None
            return FileState(status.st_ino, status.st_size, status.st_mtime_ns)
        return None


def encode(text: str) -> bytes:
    """Convert text to UTF-8; bytes that `decode` found invalid are restored."""
    return text.encode("utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    """Convert any bytes to text; bytes that are not UTF-8 become lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def write_all(descriptor: int, data: bytes) -> None:
    """Write all data, in several calls if the system accepts only a part at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(folder: Path) -> None:
    """Flush a folder, so that the file names in it are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def why_read_only(home: Path) -> str | None:
    """Return why a memory is read-only, and what to do about it; None if it can be written."""
    if (home / BACKUP_MARK).exists():
        return f"{home} is a backup and is read-only; `orchestra-mem restore-backup` restores a memory from it"
    for path in (home, home / "obra.lock", home / "obra.db"):
        if path.exists() and not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            return f"{path} cannot be written to; give this user the right to write there, then open the memory again"
    return None


def outside_target(path: Path, homes: Iterable[Path]) -> Path | None:
    """Return the target of a symbolic link that leads out of a memory's folders; None for anything else."""
    if not path.is_symlink():
        return None
    target = Path(os.path.realpath(path))
    return None if any(target.is_relative_to(os.path.realpath(home)) for home in homes) else target


def _place_fault(path: Path, homes: Iterable[Path]) -> tuple[str, str] | None:
    """Return why a path is no document of this memory, and the consequence; None for a regular file in its folders.

    Raises:
        OSError: Nothing exists there, or it is not accessible.
    """
    ending = "it is neither read nor written; replace it with the document itself"
    target = outside_target(path, homes)
    if target is not None:
        return f"is a symbolic link to {target}, which is outside the memory", ending
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if isinstance(error, FileNotFoundError) or not path.is_symlink():
            raise
        return f"is a broken symbolic link ({error.strerror})", ending
    if stat.S_ISREG(mode):
        return None
    what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
    return f"is {what}", "it is neither read nor written; move it away"


def _copies(path: Path) -> Iterator[Path]:
    """Yield the files beside a document that say in their front matter that they are this document.

    Programs that synchronise folders make such copies when two people save at the same time.
    """
    says = re.compile(
        rb"---[ \t]*\r?\n(?:[^\n]*\n)*?document: [\"']?%b[\"']?[ \t]*\r?\n" % re.escape(path.stem.encode())
    )
    for other in sorted(path.parent.glob("*.md")) if path.stem in [*DocumentName] else ():
        with suppress(OSError):
            if other != path and other.is_file():
                with other.open("rb") as file:
                    if says.match(file.read(_HEAD_BYTES).removeprefix(b"\xef\xbb\xbf")):
                        yield other


def _size_fault(size_bytes: int) -> tuple[str, str] | None:
    if size_bytes <= MOST_BYTES:
        return None
    served = "only its beginning is read, and it is not updated; shorten it"
    return f"has {size_bytes / 1e6:,.1f} MB, over the limit of {MOST_BYTES / 1e6:,.0f} MB", served


def _is_marked(status: os.stat_result) -> bool:
    """Check whether a file's mode allows nobody to write: then root must not write either, although it could."""
    return not status.st_mode & 0o222

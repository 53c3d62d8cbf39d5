"""Reading documents: for merging, for showing, and for telling what is wrong with them. Nothing is written here."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestra_mem.adapters.files.exchange import settled
from orchestra_mem.core.documents.damage import MOST_BYTES, SHOWN_BYTES, shown, text_faults, unchangeable
from orchestra_mem.errors import DocumentError, StorageReadOnlyError, storage_error
from orchestra_mem.types import DocumentFault, FileState

# Stands in the folder of a backup, beside its database.
BACKUP_MARK = "backup.json"
_MARKED = (
    "is marked as read-only",
    "it is served, and left as it is; for the machine to go on with it, give this user the right to write there (chmod "
    "u+w)",
)


class DocumentReader:
    """Reads documents.

    Args:
        homes: the folders that a link may lead to, besides the one that it stands in.
        read_only: nothing of the memory may be written.
    """

    def __init__(self, *, homes: Sequence[Path], read_only: bool = False) -> None:
        self._homes = tuple(homes)
        self._read_only = read_only

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
        return None if data is None else self.text_of(data)

    def text_of(self, data: bytes) -> str:
        """Return the text that a document's bytes stand for."""
        return decode(data)

    def read_to_change(self, path: Path) -> str | None:
        """Return the text of a document that the machine is about to change, None where there is none.

        Raises:
            DocumentError: it is to be left as it is: see `read`, or it is no text.
            StorageReadOnlyError: it is marked as read-only.
            StorageError: it cannot be read.
        """
        data = self._read_bytes(path)
        if data is not None and (fault := unchangeable(data)) is not None:
            place = f"{path}:{fault[0]}:" if fault[0] else f"{path}"
            raise DocumentError(f"{place} {fault[1]}; until then it is served, and left as it is")
        with telling("reading", path), suppress(FileNotFoundError):  # an editor may have moved it away this instant
            self.check_rights(path)
            return None if data is None else self.text_of(data)
        return None

    def read_settled(self, path: Path) -> str | None:
        """The text of a document, None where there is none, somebody has it open for writing, or it is no text."""
        data = self._settled(path)
        return None if data is None else self.text_of(data)

    def _settled(self, path: Path) -> bytes | None:
        with suppress(OSError, DocumentError):
            self._check_size(path)
            data = settled(path)
            return None if data is None or unchangeable(data) else data
        return None

    def read_shown(self, path: Path) -> str | None:
        """What of a document can be shown: decoded, where it is too large its beginning; None where there is none.

        Raises:
            DocumentError: something else than a file stands there, or a link that leads out.
            StorageError: it cannot be read.
        """
        with telling("reading", path), suppress(FileNotFoundError):
            size = self._status(path).st_size
            with path.open("rb") as file:
                return shown(file.read(SHOWN_BYTES if size > MOST_BYTES else -1), size)
        return None

    def faults(self, path: Path) -> list[DocumentFault]:
        """Find what is wrong with a document as it lies there, nothing where there is none."""
        found: list[tuple[int, str, str]] = []
        try:
            if (place := _place_fault(path, self.homes(path))) is not None:
                found.append((0, *place))
            else:
                status = path.stat()
                # Where nothing of the memory may be written that is told once, and not of each document.
                if not self._read_only and _is_marked(status):
                    found.append((0, *_MARKED))
                elif not self._read_only and not os.access(path, os.W_OK):
                    found.append((0, "cannot be written to", "it is served; what the machine would write waits"))
                size = _size_fault(status.st_size)
                found += [(0, *size)] if size else text_faults(path.read_bytes())
        except FileNotFoundError:
            pass
        except OSError as error:
            found.append((0, f"cannot be read: {error.strerror or error}", "nothing of it is served"))
        return [DocumentFault(path=str(path), line=at, problem=what, meanwhile=then) for at, what, then in found]

    def _read_bytes(self, path: Path) -> bytes | None:
        with telling("reading", path), suppress(FileNotFoundError):
            self._check_size(path)
            return path.read_bytes()
        return None

    def _status(self, path: Path) -> os.stat_result:
        """A file's status; `DocumentError` where something else stands there that is none of this memory's."""
        if (fault := _place_fault(path, self.homes(path))) is not None:
            raise DocumentError(f"{path} {': '.join(fault)}")
        return path.stat()

    def _check_size(self, path: Path) -> None:
        if (fault := _size_fault(self._status(path).st_size)) is not None:
            raise DocumentError(f"{path} {': '.join(fault)}")

    def check_rights(self, path: Path) -> None:
        """Refuse to change what somebody has marked as not to be written, whatever this user may do.

        Raises:
            DocumentError: something else than a file stands there, or a link that leads out.
            StorageReadOnlyError: it is marked so.
        """
        if _is_marked(self._status(path)):
            raise StorageReadOnlyError(f"{path} {': '.join(_MARKED)}")

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
    """Say why a memory can be read alone, and what to do; None where all of it may be written."""
    if (home / BACKUP_MARK).exists():
        return f"{home} is a backup and stays as it was made; `orchestra-mem restore-backup` makes a memory of it"
    for path in (home, home / "obra.lock", home / "obra.db"):
        if path.exists() and not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            return f"{path} cannot be written to; give this user the right to write there, then open the memory again"
    return None


def outside_target(path: Path, homes: Iterable[Path]) -> Path | None:
    """Return where a symbolic link leads that leaves the folders of a memory; None for anything else."""
    if not path.is_symlink():
        return None
    target = Path(os.path.realpath(path))
    return None if any(target.is_relative_to(os.path.realpath(home)) for home in homes) else target


def _place_fault(path: Path, homes: Iterable[Path]) -> tuple[str, str] | None:
    """Say what stands in a document's place that is none of this memory's, and what follows; None for a file.

    Raises:
        OSError: nothing stands there, or it cannot be seen.
    """
    ending = "nothing is read or written there; put the document itself in its place"
    target = outside_target(path, homes)
    if target is not None:
        return f"is a symbolic link that leads out of the memory, to {target}", ending
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if isinstance(error, FileNotFoundError) or not path.is_symlink():
            raise
        return f"is a symbolic link that leads nowhere ({error.strerror})", ending
    if stat.S_ISREG(mode):
        return None
    what = "a folder" if stat.S_ISDIR(mode) else "no file"
    return f"is {what}", "nothing is read or written there; move it away"


def _size_fault(size_bytes: int) -> tuple[str, str] | None:
    if size_bytes <= MOST_BYTES:
        return None
    served = "its beginning is served, and it is left as it is; take out what was pasted"
    return f"is of {size_bytes / 1e6:,.1f} MB, over {MOST_BYTES / 1e6:,.0f} MB", served


def _is_marked(status: os.stat_result) -> bool:
    """Whether nobody may write to a file: root, who may do everything, is to leave it as well."""
    return not status.st_mode & 0o222

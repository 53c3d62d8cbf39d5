"""Reading documents: for merging, for showing, and for telling what is wrong with them. Nothing is written here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from orchestra_mem.adapters.files.disk import decode, telling
from orchestra_mem.adapters.files.exchange import settled
from orchestra_mem.adapters.files.place import check_place, check_rights, check_size, outside_target
from orchestra_mem.core.documents.damage import MOST_BYTES, SHOWN_BYTES, shown, text_faults, unchangeable
from orchestra_mem.errors import DocumentError, StorageError
from orchestra_mem.types import FileState


class DocumentReader:
    """Reads documents.

    Args:
        homes: the folders that a link may lead to, besides the one that it stands in.
    """

    def __init__(self, *, homes: Sequence[Path]) -> None:
        self._homes = tuple(homes)

    def homes(self, path: Path) -> tuple[Path, ...]:
        """The folders that a document at `path` may lie in."""
        return path.parent, *self._homes

    def read(self, path: Path) -> str | None:
        """The text of a document, None where there is none.

        Raises:
            DocumentError: something else than a file of a document's size stands there, or a link that leads out.
            StorageError: it cannot be read.
        """
        data = self._read_bytes(path)
        return None if data is None else decode(data)

    def read_to_change(self, path: Path) -> str | None:
        """The text of a document that the machine is about to change, None where there is none.

        Raises:
            DocumentError: it is to be left as it is: see `read`, or it is no text.
            StorageReadOnlyError: it is marked as read-only.
            StorageError: it cannot be read.
        """
        data = self._read_bytes(path)
        if data is None:
            return None
        check_rights(path, path.stat())
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
        """What is wrong with a document as it lies there: line (from 1, 0 for all of it) and problem."""
        found: list[tuple[int, str]] = []
        try:
            data = self._read_bytes(path)
            if data is not None:
                found += [(line, problem) for line, problem, _ in text_faults(data)]
                check_rights(path, path.stat())
        except (OSError, StorageError) as error:
            found.insert(0, (0, str(error)))
        return found

    def _read_bytes(self, path: Path) -> bytes | None:
        with telling("reading", path), suppress(FileNotFoundError):
            check_size(path, check_place(path, self.homes(path)).st_size)
            return path.read_bytes()
        return None

    def state(self, path: Path) -> FileState | None:
        """What tells cheaply whether a document has changed, None where there is none: then one may be begun.

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

"""What may stand in a document's place: a file, no larger than a document, within the memory's folders.

Whoever makes a document read-only, or puts something else there, means it: it is left as it is, and told.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from orchestra_mem.core.documents.damage import MOST_BYTES
from orchestra_mem.errors import DocumentError, StorageReadOnlyError


def why_read_only(home: Path) -> str | None:
    """Say why a memory can be read alone: what of it this user may not write to; None where all may be written."""
    for path in (home, home / "obra.lock", home / "obra.db"):
        if path.exists() and not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            return f"{path} cannot be written to"
    return None


def outside_target(path: Path, homes: Iterable[Path]) -> Path | None:
    """Where a symbolic link leads that leaves the folders of a memory; None for anything else."""
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

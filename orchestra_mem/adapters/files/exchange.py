"""Replace a file without losing a concurrent save. The document store that uses this is in `store.py`.

An editor may save a file between the check of the file and the rename that replaces it. So the old and the new file are
exchanged in one step, and the old file is checked afterwards: if its content is unexpected, it is put back.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

# Constants of Linux, from <linux/fs.h> and <fcntl.h>.
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
# Error numbers of systems and file systems that cannot exchange files, or cannot link them.
_CANNOT = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EMLINK, errno.EXDEV})
# Time limit for an editor that writes in place; it needs well under a millisecond for a document.
_WAIT_S = 0.1
_POLL_S = 0.001
# Limit of exchanges, reached only if somebody saves between any two exchanges, which are microseconds apart.
_MOST_SWAPS = 16
_ASIDE = re.compile(
    r"\.(?P<document>.+)\.md\.(?P<ours>[0-9a-f]{16})\.(?P<expected>[0-9a-f]{16})\.\d+\.\d+\.aside\.[^.]*"
)


def staging_path(path: Path, ours: bytes, expected: bytes, ending: str) -> Path:
    """Return the path next to a document for its new text before the exchange, and its old text afterwards.

    The name contains the digests of both texts: after a kill, any other text found there was saved by somebody else.
    """
    known = f"{_short_digest(ours)}.{_short_digest(expected)}"
    return path.with_name(f".{path.name}.{known}.{os.getpid()}.{threading.get_ident()}.aside{ending}")


def interrupted_save(leftover: Path) -> tuple[Path, bytes, bytes | None] | None:
    """Return the document, the text that somebody else saved to it, and the killed writer's text if it stands there.

    Args:
        leftover: A file that a killed writer left next to the document. Without a text of others in it, return None.
    """
    match = _ASIDE.fullmatch(leftover.name)
    if match is None:
        return None
    data = leftover.read_bytes()
    if _short_digest(data) in (match["ours"], match["expected"]):
        return None
    path = leftover.with_name(f"{match['document']}.md")
    standing = settled(path) if path.is_file() else None
    return path, data, standing if standing is not None and _short_digest(standing) == match["ours"] else None


def _short_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two files in one step; return False if the system or file system cannot do this.

    Raises:
        OSError: A file does not exist, or the disk refused.
    """
    rename = _rename()
    if rename is None:
        return False
    code = rename(os.fsencode(one), os.fsencode(other))
    if code in _CANNOT:
        return False
    if code:
        raise OSError(code, os.strerror(code), str(other))
    return True


@cache
def _rename() -> Callable[[bytes, bytes], int] | None:
    """Return a function that exchanges two files and returns an error number; None if the C library lacks it."""
    import ctypes  # imported here: only needed to write documents

    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return None

    def rename(one: bytes, other: bytes) -> int:
        failed = call(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE)
        return ctypes.get_errno() if failed else 0

    return rename


def link_new(source: Path, path: Path) -> bool:
    """Create a hard link under an unused name; return False if the file system has no hard links.

    Raises:
        FileExistsError: The name is taken.
    """
    try:
        os.link(source, path)
    except OSError as error:
        if error.errno in _CANNOT:
            return False
        raise
    return True


def settled(path: Path) -> bytes | None:
    """Wait until nobody has a file open for writing, and return its content; None after `_WAIT_S`.

    Also returns None for a folder. On a system that cannot tell who has a file open, return the present content.
    """
    end = time.monotonic() + _WAIT_S
    with suppress(IsADirectoryError), path.open("rb", buffering=0) as file:
        while True:
            lease = _lease(file.fileno())
            if lease is not False:
                file.seek(0)
                data = file.readall()
                # The lease is gone if somebody has opened the file for writing since.
                if lease is None or fcntl.fcntl(file.fileno(), fcntl.F_GETLEASE) == fcntl.F_RDLCK:
                    return data
                fcntl.fcntl(file.fileno(), fcntl.F_SETLEASE, fcntl.F_UNLCK)
            if time.monotonic() >= end:
                break
            time.sleep(_POLL_S)
    return None


def _lease(descriptor: int) -> bool | None:
    """Request a read lease; return False while a writer has the file open, None if leases are not available."""
    try:
        # Sent when somebody opens the file. SIGURG is ignored by default; the default signal would end the process.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except AttributeError:
        return None
    except OSError as error:
        return False if error.errno == errno.EAGAIN else None
    return True


def put_back(
    aside: Path, path: Path, came_out: bytes | None, *, ours: bytes, tell: Callable[[str], None]
) -> list[bytes]:
    """Put an unexpected text back: exchange again until `path` holds the newest text that others have saved.

    Args:
        aside: The file that came out of `path`.
        path: The document; it holds `ours`, unless somebody has saved it again.
        came_out: Content of `aside`; None if somebody is still writing it.
        ours: The text that was put in place of `aside`.
        tell: Called with `before` and `after` around each exchange.

    Returns:
        Texts that others saved and that `path` no longer holds, because somebody has saved it since.

    Raises:
        OSError: The disk refused, or the file is gone; `aside` still holds a text of others.
    """
    standing: bytes | None = ours
    coming = came_out
    for _ in range(_MOST_SWAPS):
        tell("before")
        if not exchange(aside, path):
            raise OSError(errno.EOPNOTSUPP, "the file system can no longer exchange two files", str(path))
        tell("after")
        out = settled(aside)
        if out is not None and out == standing:
            # Nobody has saved since the last exchange, so `path` holds the newest text.
            return [] if out == ours else [out]
        standing, coming = coming, out
    return [aside.read_bytes()]

"""Putting a file in another's place without losing what comes out of there. What a document is lives in `store.py`.

Between looking at a file and renaming another over it there is always an instant in which an editor may save. So the
two are exchanged in one step, and what came out is looked at afterwards: what nobody expected goes back.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

if sys.platform != "win32":
    import fcntl

# Linux, <linux/fs.h> and <fcntl.h>.
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
# What a system or a file system says that cannot exchange files, or not link them.
_CANNOT = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EMLINK, errno.EXDEV})
# An editor that writes into the file itself needs well under a millisecond for a document.
_WAIT_S = 0.1
_POLL_S = 0.001
# As often someone would have to save, each time within microseconds.
_MOST_SWAPS = 16
_ASIDE = re.compile(
    r"\.(?P<document>.+)\.md\.(?P<ours>[0-9a-f]{16})\.(?P<expected>[0-9a-f]{16})\.\d+\.\d+\.aside\.[^.]*"
)


def aside_of(path: Path, ours: bytes, expected: bytes, ending: str) -> Path:
    """Name the place beside a document where its new text waits whole, and where after the exchange its old one lies.

    The name tells both texts: after a kill, whatever else is found there somebody else has saved.
    """
    known = f"{_short_digest(ours)}.{_short_digest(expected)}"
    return path.with_name(f".{path.name}.{known}.{os.getpid()}.{threading.get_ident()}.aside{ending}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignText:
    """What somebody else saved to a document, found beside it.

    `ours` is what its killed writer put there instead, None where that stands there no longer.
    """

    path: Path
    data: bytes
    ours: bytes | None


def foreign_text(leftover: Path) -> ForeignText | None:
    """Return what a file that lies beside a document has of somebody else's; None where nothing."""
    match = _ASIDE.fullmatch(leftover.name)
    if match is None:
        return None
    data = leftover.read_bytes()
    if _short_digest(data) in (match["ours"], match["expected"]):
        return None
    path = leftover.with_name(f"{match['document']}.md")
    standing = settled(path) if path.is_file() else None
    ours = standing if standing is not None and _short_digest(standing) == match["ours"] else None
    return ForeignText(path=path, data=data, ours=ours)


def _short_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def exchange(one: Path, other: Path) -> bool:
    """Let two files change names in one step; False where that cannot be done here.

    Raises:
        OSError: one of them is not there, or the disk refused.
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
    """A call that exchanges two files and gives an error number; None where the system's library has none."""
    import ctypes  # here, as only who writes documents needs it

    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return None

    def rename(one: bytes, other: bytes) -> int:
        failed = call(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE)
        return ctypes.get_errno() if failed else 0

    return rename


def link_new(source: Path, path: Path) -> bool:
    """Give a file a second name that is not taken; False where a file system has no such names.

    Raises:
        FileExistsError: the name is taken.
    """
    try:
        os.link(source, path)
    except OSError as error:
        if error.errno in _CANNOT:
            return False
        raise
    return True


def settled(path: Path) -> bytes | None:
    """Return what a file holds that nobody has open for writing; None where somebody still has in `_WAIT_S`.

    None as well for a folder. Where the system does not tell who has a file open, it is what the file holds now.
    """
    end = time.monotonic() + _WAIT_S
    with suppress(IsADirectoryError), path.open("rb", buffering=0) as file:
        while True:
            lease = _lease(file.fileno())
            if lease is not False:
                file.seek(0)
                data = file.readall()
                if lease is None or _still_leased(file.fileno()):
                    return data
            if time.monotonic() >= end:
                break
            time.sleep(_POLL_S)
    return None


def _lease(descriptor: int) -> bool | None:
    """Ask for a read lease, which nobody is given while a writer has the file open; None where there are no leases."""
    try:
        # By default the kernel would end the process when somebody opens the file; this signal is ignored.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except (NameError, AttributeError):
        return None
    except OSError as error:
        return False if error.errno == errno.EAGAIN else None
    return True


def _still_leased(descriptor: int) -> bool:
    """Whether nobody has begun to open the file for writing since the lease was given; else it is given up."""
    if fcntl.fcntl(descriptor, fcntl.F_GETLEASE) == fcntl.F_RDLCK:
        return True
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def put_back(
    aside: Path, path: Path, came_out: bytes | None, *, ours: bytes, tell: Callable[[str], None]
) -> list[bytes]:
    """Exchange again after something unexpected came out, until the newest text that others saved stands at `path`.

    Args:
        aside: where lies what came out of `path`.
        path: where `ours` stands, unless somebody has saved there again.
        came_out: what `aside` holds, None where somebody is still writing it.
        ours: the text that was exchanged for it.
        tell: is told `before` and `after` each step.

    Returns:
        What others had saved and stands at `path` no longer, as somebody has saved there since.

    Raises:
        OSError: the disk refused, or the file is gone; `aside` holds what came out.
    """
    standing: bytes | None = ours
    coming = came_out
    for _ in range(_MOST_SWAPS):
        tell("before")
        if not exchange(aside, path):
            raise OSError(errno.EOPNOTSUPP, "files cannot be exchanged any more", str(path))
        tell("after")
        out = settled(aside)
        if out is not None and out == standing:
            # Nobody has saved since the last step, so what stands at the path is the newest.
            return [] if out == ours else [out]
        standing, coming = coming, out
    return [aside.read_bytes()]

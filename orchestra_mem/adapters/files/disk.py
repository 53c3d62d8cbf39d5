"""The steps that every document goes through on its way to the disk and back, and their errors in words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestra_mem.errors import storage_error


def encode(text: str) -> bytes:
    """The bytes of a text; what was no UTF-8 comes out as it was."""
    return text.encode("utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    """The text of some bytes, whatever they are."""
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

"""Documents where nothing may be written: they are read as they stand, and every change is refused in words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from orchestra_mem.adapters.files.store import FileDocumentStore
from orchestra_mem.errors import StorageReadOnlyError


def why_read_only(home: Path) -> str | None:
    """Say why a memory can be read alone: what of it this user may not write to; None where all may be written."""
    for path in (home, home / "obra.lock", home / "obra.db"):
        if path.exists() and not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            return f"{path} cannot be written to"
    return None


def _refusing(doing: str) -> Callable[..., NoReturn]:
    """Make a method that refuses to change what its first argument names, or else the versions."""

    def refuse(self: ReadOnlyDocumentStore, first: object, *args: object, **named: object) -> NoReturn:
        raise StorageReadOnlyError(
            f"{doing} {first if isinstance(first, Path) else self._versions}: this memory may be read and not be "
            "written; give this user the right to write there, then open it again"
        )

    return refuse


class ReadOnlyDocumentStore(FileDocumentStore):
    """Fulfils `ports.DocumentStore` without writing: no lock file is made, nothing is swept.

    Documents are replaced in one step by whoever may write them, so they read whole without a lock; of an append half
    may be seen.
    """

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep this process's other threads away; nobody else can be kept away without a file to lock."""
        with self._thread_lock:
            yield

    replace: Any = _refusing("writing")
    append: Any = _refusing("appending to")
    move: Any = _refusing("moving")
    keep_version: Any = _refusing("keeping a version in")

    def prune_versions(self, document: str, keep: int) -> int:
        """Remove none."""
        return 0

    def sweep(self, folders: tuple[Path, ...]) -> int:
        """Remove none."""
        return 0

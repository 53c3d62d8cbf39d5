"""Documents where nothing may be written: they are read as they stand, and every change is refused in words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from orchestra_mem.adapters.files.store import FileDocumentStore
from orchestra_mem.errors import StorageReadOnlyError
from orchestra_mem.types import Author, Version, VersionReason


def why_read_only(home: Path) -> str | None:
    """Say why a memory can be read alone: what of it this user may not write to; None where all may be written."""
    for path in (home, home / "obra.lock", home / "obra.db"):
        if path.exists() and not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            return f"{path} cannot be written to"
    return None


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

    def replace(self, path: Path, text: str, *, expected: str | None, name: str) -> None:
        """Refuse.

        Raises:
            StorageReadOnlyError: always.
        """
        self._refuse("writing", path)

    def append(self, path: Path, text: str, *, name: str) -> None:
        """Refuse, as `replace` does."""
        self._refuse("appending to", path)

    def move(self, path: Path, target: Path, *, name: str) -> None:
        """Refuse, as `replace` does."""
        self._refuse("moving", path)

    def keep_version(
        self, document: str, text: str, *, time: datetime, author: Author, reason: VersionReason
    ) -> Version:
        """Refuse, as `replace` does."""
        self._refuse("keeping a version in", self._versions)

    def prune_versions(self, document: str, keep: int) -> int:
        """Remove none."""
        return 0

    def sweep(self, folders: tuple[Path, ...]) -> int:
        """Remove none."""
        return 0

    @staticmethod
    def _refuse(doing: str, path: Path) -> NoReturn:
        raise StorageReadOnlyError(
            f"{doing} {path}: this memory may be read and not be written; give this user the right to write there, "
            "then open it again"
        )

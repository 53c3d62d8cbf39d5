"""The protocols that adapters implement. Tiers and the manager know these and the stores, never the adapters."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from orchestra_mem.types import Author, DocumentFault, FileState, Version, VersionReason

Clock = Callable[[], datetime]
"""Returns the present time, aware and in UTC."""

WritePoint = Callable[[str], None]
"""Called with the name of each step that changes the disk, right before and right after the step.

Names look like `spill.append.before`, `spill.append.after`, `record.commit.before`. Programs do not need write points;
the crash tests kill the process at them.
"""


class TokenCounter(Protocol):
    """Counts tokens. Implementations are safe to share between threads.

    `name` is shown to people. `exact` tells whether the counter uses the serving model's own tokenizer. If `additive`
    is true, the counts of a text's pieces add up to the count of the text, provided that each piece but the last ends
    with a line feed and each piece but the first begins with a character that is not white space.
    """

    @property
    def name(self) -> str: ...

    @property
    def exact(self) -> bool: ...

    @property
    def additive(self) -> bool: ...

    def count(self, text: str) -> int:
        """Count the tokens of `text`; 0 for the empty string."""


class DocumentStore(Protocol):
    """Reads and writes markdown documents and their versions. Paths are absolute.

    Texts preserve every byte: bytes that are not UTF-8 become lone surrogates (`surrogateescape`).
    """

    def lock(self, *, timeout_s: float | None = None) -> AbstractContextManager[None]:
        """Keep other processes and threads from writing documents. Reentrant.

        Raises:
            LockTimeoutError: Another one has held the lock for `timeout_s`; by default and at most, as configured.
        """

    def follow(self) -> None:
        """If other machines share the documents, merge in their changes."""

    def syncing_once(self) -> AbstractContextManager[None]:
        """Hold the lock and flush each folder only once, while the block writes several documents.

        The folder of versions is flushed before the first document is replaced, all other folders at the end. Writes
        are certain to survive power loss only after the block has ended without an error.
        """

    def read(self, path: Path) -> str | None:
        """Return the text of a document, None if it does not exist."""

    def read_to_change(self, path: Path) -> str | None:
        """Return the text of a document for a change, None if it does not exist; raise if it must not be changed."""

    def read_settled(self, path: Path) -> str | None:
        """Return the text of a document; None if it does not exist, is open for writing, or is not text."""

    def read_shown(self, path: Path) -> str | None:
        """Return a document's text for display, decoded and clipped; None if it does not exist."""

    def faults(self, path: Path) -> list[DocumentFault]:
        """Return the faults of a document on disk; an empty list if the document does not exist."""

    def state(self, path: Path) -> FileState | None:
        """Return metadata for detecting changes cheaply, None if the document does not exist."""

    def replace(self, path: Path, text: str, *, expected: str | None, name: str) -> None:
        """Replace a document atomically if its text is still `expected`, or create it if `expected` is None."""

    def append(self, path: Path, text: str, *, name: str) -> None:
        """Append to a document; roll back a write that fails half-way."""

    def move(self, path: Path, target: Path, *, name: str) -> None: ...

    def remove(self, path: Path, *, expected: str, name: str) -> None:
        """Remove a document permanently, if its text is still `expected`."""

    def keep_version(
        self, document: str, text: str, *, time: datetime, author: Author, reason: VersionReason, like: Path
    ) -> Version: ...

    def versions(self, document: str) -> list[Version]: ...

    def read_version(self, version: Version) -> str: ...

    def prune_versions(self, document: str, keep: int) -> int: ...

    def change_former(self, path: Path, change: Callable[[str], str]) -> None: ...

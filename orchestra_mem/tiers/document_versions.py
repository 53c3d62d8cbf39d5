"""The earlier texts of the episodic documents: kept before anything takes their place, found again by number."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

from orchestra_mem.core.documents.episodic import digest
from orchestra_mem.errors import NotFoundError, StorageError
from orchestra_mem.ports import Clock, DocumentStore
from orchestra_mem.types import Author, DocumentName, Version, VersionReason, WrittenDocument

logger = logging.getLogger(__name__)


class DocumentVersions:
    """Keeps what stands in a document as a version; the store's lock must be held."""

    def __init__(self, *, store: DocumentStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def keep(self, name: DocumentName, text: str, last: WrittenDocument, reason: VersionReason) -> Version:
        """Keep a text, and where it is a person's, first the one that they made it of."""
        author = Author.MACHINE if last.digest == digest(text) else Author.PERSON
        if author is Author.PERSON and last.left is not None and not self._is_newest(name, last.left):
            # What the person took out stands only in the text before.
            self._keep_left(name, last.left)
        return self._store.keep_version(name.value, text, time=self._clock(), author=author, reason=reason)

    def keep_taken_in(self, name: DocumentName, text: str, last: WrittenDocument) -> None:
        """Keep a person's text that the machine has nothing to add to, once: somebody may save over it unseen."""
        if not self._is_newest(name, text):
            self.keep(name, text, last, VersionReason.EDIT)

    def keep_gone(self, name: DocumentName, left: str, path: Path) -> None:
        """Keep the last text of a document that somebody has taken away, and say that a new one is begun."""
        version = self._keep_left(name, left)
        logger.warning(
            "%s is gone: a new one is begun; its last text is version %d (`orchestra-mem history %s`)",
            path,
            version.sequence,
            name.value,
        )

    def _keep_left(self, name: DocumentName, left: str) -> Version:
        return self._store.keep_version(
            name.value, left, time=self._clock(), author=Author.MACHINE, reason=VersionReason.EDIT
        )

    def _is_newest(self, name: DocumentName, text: str) -> bool:
        with suppress(StorageError):  # one that cannot be read is kept again
            versions = self._store.versions(name.value)
            return bool(versions) and self._store.read_version(versions[-1]) == text
        return False

    def find(self, name: DocumentName, sequence: int | None) -> Version:
        """A version by its number, by default the newest.

        Raises:
            NotFoundError: there is none.
        """
        versions = self._store.versions(name.value)
        found = [version for version in versions if sequence in (None, version.sequence)]
        if not found:
            kept = ", ".join(str(version.sequence) for version in versions) or "none"
            wanted = "any version" if sequence is None else f"version {sequence}"
            raise NotFoundError(f"{name.value} does not have {wanted}; kept are: {kept}")
        return found[-1]

"""Where the documents of sessions lie. What stands in them is for `session.py`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from orchestra_mem.ports import DocumentStore
from orchestra_mem.types import Session, SessionStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlace:
    """Where session documents lie, what the project is called, and how long an entry may be."""

    folder: Path
    project: str
    entry_chars: int

    def document(self, session: Session) -> Path:
        """The document of a running session."""
        return self.folder / f"session_{session.id}.md"

    def archive(self, session: Session) -> Path:
        """The document of an ended session, or where it is to lie."""
        if session.archive:
            return self.folder / session.archive
        return self.folder / "archive" / f"session_{session.started:%Y%m%d_%H%M%S}_{session.id[:8]}.md"

    def present(self, session: Session) -> Path:
        """The document of any session, where it lies now."""
        return self.archive(session) if session.status is SessionStatus.ARCHIVED else self.document(session)

    def in_archive(self, session: Session, store: DocumentStore) -> tuple[Path, bool]:
        """Where a flushed session's document goes, and whether it lies there already.

        The name may be taken by the same session's document from a time that the database does not know.
        """
        waits = store.state(self.document(session)) is not None
        target = first = self.archive(session)
        taken: Path | None = None
        number = 1
        while store.state(target) is not None:
            taken, number = target, number + 1
            target = first.with_stem(f"{first.stem}_{number}")
        return (target, False) if waits or taken is None else (taken, True)

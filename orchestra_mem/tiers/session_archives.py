"""Remove documents of ended sessions according to the settings. The event log keeps their operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.core.documents.markdown import front_matter
from orchestra_mem.core.documents.session_document import finished
from orchestra_mem.core.summaries.kept import without_states
from orchestra_mem.errors import DocumentError
from orchestra_mem.tiers.catalog_reading import AuditTrail
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.types import Session, SessionStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionArchives:
    """Removes archives older than `keep_days`, and the oldest archives beyond `keep_bytes` in total; 0 sets no limit.

    An archive with a line that the machine did not write is kept, since that line is stored nowhere else.

    `changing` opens a database transaction as a context manager.
    """

    session: SessionMemoryManager
    audit: AuditTrail
    changing: Callable[[], AbstractContextManager[object]]
    keep_days: float
    keep_bytes: float

    def clean_up(self) -> tuple[list[str], list[str]]:
        """Remove due archives. Return the names of removed files, and of files kept for a person's lines or a fault.

        Raises:
            StorageError: an archive could not be removed; the archives before it have been removed.
        """
        gone: list[str] = []
        kept: list[str] = []
        for session, path in self._due():
            try:
                with self.session.store.lock():
                    removed = self._remove(session, path)
            except DocumentError:  # unreadable, or being saved at this moment
                removed = False
            (gone if removed else kept).append(path.name)
        return gone, kept

    def _remove(self, session: Session, path: Path) -> bool:
        if not self.session.log.session(session.id).archive:  # another process has removed it meanwhile
            return True
        text = self.session.store.read(path)
        if text is not None and self._by_hand(session, text):
            return False
        with self.changing():
            self.session.log.forget_archive(session.id)
            detail = path.name if text is not None else f"{path.name}, which was already missing"
            self.audit.changed(OWNER, "remove_archive", (session.id,), detail)
            if text is not None:
                self.session.store.remove(path, expected=text, name="archive")
        return True

    def _due(self) -> Iterator[tuple[Session, Path]]:
        """Yield the sessions whose archives exceed a limit, with their paths, oldest first."""
        if not self.keep_days and not self.keep_bytes:
            return
        ended = [each for each in self.session.log.sessions() if each.status is SessionStatus.ARCHIVED and each.archive]
        before = self.session.clock() - timedelta(days=self.keep_days)
        sizes = {each.id: self._size(each) for each in ended}
        left = sum(sizes.values())
        for session in ended:
            old = self.keep_days and (session.ended or session.started) < before
            if old or (self.keep_bytes and left > self.keep_bytes):
                yield session, self.session.place.archive(session)
                left -= sizes[session.id] - self._size(session)  # nothing if the archive was kept

    def _size(self, session: Session) -> int:
        state = self.session.store.state(self.session.place.archive(session))
        return state.size_bytes if state else 0

    def _by_hand(self, session: Session, text: str) -> bool:
        """Check whether a document has a line that the machine did not write. States of facts are ignored."""
        closing = self.session.log.closing(session.id)
        live = self.session.machine_text(replace(session, status=SessionStatus.ACTIVE))
        own = finished(live, closing)
        summaries = [*self.session.ledger.summaries(session.id), *self.session.ledger.level_zero_summaries(session.id)]
        known = {line for each in (own, *(summary.text for summary in summaries)) for line in _lines(each)}
        unknown = [line for line in _lines(text) if line not in known]
        # The project may have been renamed since: then both lines with its name have the same other one.
        name = unknown[-1].removeprefix("**Project**: ") if unknown else ""
        return bool(unknown) and unknown != [*_lines(front_matter({"project": name}))[1:-1], f"**Project**: {name}"]


def _lines(text: str) -> list[str]:
    return [bare for line in without_states(text).splitlines() if (bare := line.strip())]

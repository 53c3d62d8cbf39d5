"""The memory as it is at one moment: made once, and handed down to whatever answers a caller."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from orchestra_mem.core.documents.entries import Entry
from orchestra_mem.search_types import SearchFilter
from orchestra_mem.types import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The memory at one moment.

    `entries` are those of working memory. `documents` tells for each document, by the name that people know it by,
    whether it has changed. `version` differs after every change of the memory; None where a document was saved so
    lately that it is not sure. `is_whole` is false where it is what some agents may see.
    """

    session: Session | None
    entries: tuple[Entry, ...]
    documents: Mapping[str, object]
    version: Hashable
    is_whole: bool = True

    @property
    def session_id(self) -> str | None:
        """The session under way."""
        return self.session.id if self.session else None

    def within(self, where: SearchFilter) -> Snapshot:
        """Leave out what a strict search does not look at: others' operations, the session document, the documents."""
        if not where.strict or where.readable is None:
            return self
        entries = tuple(entry for entry in self.entries if entry.operation.agent in where.readable)
        return replace(self, session=None, entries=entries, documents={}, is_whole=False)

"""What people have made of a document, as the tiers that own its lines read it."""

from __future__ import annotations

from dataclasses import dataclass

from orchestra_mem.core.documents.signature import digest
from orchestra_mem.types import ReadDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedText:
    """A document with people's edits. `digest` is the SHA-256 of its file.

    `base` is the machine's own last text, "" if there is none. `before` and `said` are the document before and after
    the edits, with known numbers of facts and items. `before` is the text last read or last written by the machine,
    whichever is later. If people edited an older text, `before` also has the facts and items that they deleted from the
    older text and that the machine no longer shows. `has_work`: Whether boxes in the plan are work items, not facts.
    """

    base: str
    before: str
    said: str
    digest: str
    has_work: bool

    @property
    def as_read(self) -> ReadDocument:
        """The ledger's record of having read these edits."""
        return ReadDocument(base=digest(self.base), file=self.digest, text=self.said)

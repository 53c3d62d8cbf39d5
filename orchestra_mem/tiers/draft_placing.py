"""Replace extractive summaries by a model's better drafts, in the ledger and in the live or archived document.

If a person rewrote, pinned or deleted a summary in the document, its draft is dropped. The ledger is changed first. The
draft stays in the database, marked as placed, until the document shows it, so a crash in between is repaired later.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from orchestra_mem.core.documents.markdown import Block
from orchestra_mem.core.documents.session_document import SessionDocument
from orchestra_mem.core.summaries.kept import without_states
from orchestra_mem.errors import DocumentError, NotFoundError, StorageReadOnlyError
from orchestra_mem.job_types import SummaryDraft
from orchestra_mem.stores import DraftStore
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.types import Session

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class DraftPlacer:
    """Replaces summaries by their drafts. The caller of `place` must hold the document lock."""

    memory: SessionMemoryManager
    drafts: DraftStore

    def place(self) -> None:
        """Apply all waiting drafts. Drafts of a document that cannot be changed now keep waiting.

        Call it only between two epochs, since it changes what contexts show.
        """
        by_session: dict[str, list[SummaryDraft]] = {}
        for draft in self.drafts.drafts():
            try:
                summary = self.memory.ledger.summary(draft.summary)
            except NotFoundError:
                self.drafts.drop(draft.summary)
                continue
            if summary.document:  # short form of a section, which no document shows
                if not draft.placed and summary.text == draft.base:
                    self.drafts.place(draft)
                self.drafts.drop(draft.summary)
            else:
                by_session.setdefault(summary.session, []).append(draft)
        for name, drafts in by_session.items():
            session = self.memory.log.session(name)
            try:
                text = self.memory.text(session)
                shown = SessionDocument.parse(text).summaries()
                for draft in drafts:
                    if not draft.placed and self._stands(draft, shown.get(draft.summary), text):
                        self.drafts.place(draft)
                    elif not draft.placed:
                        self.drafts.drop(draft.summary)
                self.show(session)
            except (DocumentError, StorageReadOnlyError) as error:
                logger.warning("improved summaries cannot be inserted yet: %s", error)

    def _stands(self, draft: SummaryDraft, block: Block | None, text: str) -> bool:
        """Check whether the ledger and the document still have the text that the draft was made to replace."""
        summary = self.memory.ledger.summary(draft.summary)
        if summary.parent or summary.text != draft.base:
            return False
        if not summary.level:
            shown = draft.base.strip() in text
        else:
            shown = block is not None and not block.pinned and says(block, draft.base)
        if not shown:
            logger.info(
                "the improved summary S%d was discarded: a person has changed or pinned the text that it would replace",
                draft.summary,
            )
            return False
        return True

    def show(self, session: Session) -> None:
        """Write a session's placed drafts, which the ledger has already, into its document, then drop them."""
        placed = {draft.summary: draft for draft in self.drafts.drafts(session.id) if draft.placed}
        if not placed:
            return
        closings = [draft for draft in placed.values() if not self.memory.ledger.summary(draft.summary).level]

        def change(text: str) -> str:
            text = self.memory.with_present_states(_shown(text, placed))
            for draft in closings:
                text = text.replace(draft.base.strip(), draft.text.strip(), 1)
            return text

        self.memory.rewrite(session, change, name="improve")
        for summary in placed:
            self.drafts.drop(summary)
        logger.info("%d improved summaries inserted", len(placed))


def _shown(text: str, placed: Mapping[int, SummaryDraft]) -> str:
    """Replace each summary in a document by its draft, unless its text has changed since the draft was made."""
    blocks: list[str] = []
    for part in SessionDocument.parse(text).parts:
        draft, block = placed.get(part.summary), part.block.text
        if draft and says(part.block, draft.base):
            heading = block.partition("\n")[0].rstrip("\r")
            block = f"{heading}\n\n{draft.text.rstrip()}\n\n"
        blocks.append(block)
    return "".join(blocks)


def body(block: str) -> str:
    """Return a block's text without its heading."""
    return block.partition("\n")[2].strip()


def says(block: Block, text: str) -> bool:
    """Check whether a block's body equals a summary's text, ignoring the states of facts."""
    return without_states(body(block.text)) == without_states(text.strip())

"""Taking in what people say by editing the episodic documents: their facts are facts like any other.

A fact that a person takes out is shown nowhere again; one that is reworded says what the person says; one that is added
is listed, searched and never brought under by the machine. Doing it twice changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from orchestra_mem.core.documents.blame import names_in
from orchestra_mem.core.documents.conflicts import ConflictBlock, Resolved, find_conflicts
from orchestra_mem.core.documents.conflicts import accept as core_accept
from orchestra_mem.core.documents.conflicts import reject as core_reject
from orchestra_mem.core.documents.entries import visible
from orchestra_mem.core.documents.owned_lines import HandEdits, hand_edits, is_cut, reworded, shows
from orchestra_mem.core.identifiers import find_identifiers
from orchestra_mem.core.summaries.kept import squeeze
from orchestra_mem.errors import DocumentError, NotFoundError, StorageError
from orchestra_mem.ports import Clock, DocumentStore, Ledger
from orchestra_mem.tiers.document_texts import PersonText
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.work_plan import WorkPlan
from orchestra_mem.types import Author, DocumentName, Json, MustKeep, MustKeepStatus, VersionReason

logger = logging.getLogger(__name__)

# What a person took the trouble to write counts as much as what an operation was marked critical for.
WEIGHT = 3.0


class HandEditManager:
    """Reads what people have changed in the documents into the ledger, and carries out what they say of conflicts."""

    def __init__(
        self,
        *,
        episodic: EpisodicMemoryManager,
        ledger: Ledger,
        store: DocumentStore,
        clock: Clock,
        work: WorkPlan | None = None,
    ) -> None:
        self._work = work
        self._episodic = episodic
        self._ledger = ledger
        self._store = store
        self._clock = clock
        self._taken: Mapping[DocumentName, str] = {}

    @property
    def taken(self) -> Mapping[DocumentName, str]:
        """The digest of each document's file whose edits the ledger has."""
        return self._taken

    def take_in(self) -> int:
        """Bring the ledger up to the documents, and the tracker up to the work plan; the number of facts that changed.

        Raises:
            StorageError: a document cannot be read, or the ledger not be written.
        """
        changed = 0
        # Mostly nobody has edited anything: that is seen without holding up who writes.
        self._taken, unread = self._episodic.texts.digests()
        if unread:
            with self._store.lock():
                texts = self._episodic.texts.all()
                new, edited = self._changes(texts)
                if new or edited:
                    self._ledger.edit_must_keeps(new, edited)
                    logger.info("took in by hand: %d facts added, %d changed or removed", len(new), len(edited))
                if self._work is not None:
                    self._work.take_in(texts.get(DocumentName.WORK_PLAN))
                for name, text in texts.items():
                    if name is not DocumentName.WORK_PLAN or self._work is None:
                        self._ledger.note_read(name.value, text.as_read)
            self._taken = {name: text.digest for name, text in texts.items()}
            changed = len(new) + len(edited)
        if self._work is not None:
            with suppress(StorageError):  # told as the document's own problem
                self._work.look(self._episodic.text(DocumentName.WORK_PLAN))
        return changed

    def _changes(
        self, texts: Mapping[DocumentName, PersonText]
    ) -> tuple[list[MustKeep], list[tuple[MustKeep, MustKeep]]]:
        """The facts that people have added, and those that they changed (before, now)."""
        edits = _edits(texts)
        known = self._ledger.by_hand()
        own = {fact.id for fact in known}
        # What waits in a conflict has never stood among the person's lines.
        waiting = {number for _, block in self.conflicts() for number in names_in(block.machine).facts}
        numbers = sorted({*edits.removed, *edits.standing} - own - waiting)
        edited = [(fact, self._edited(fact, edits)) for fact in self._ledger.must_keeps_by_id(numbers)]
        # Only where all documents stand there: in one that was taken away nothing was said of its facts.
        edited += self._own_edited(known, edits, gone=len(texts) == len(DocumentName))
        return self._new(edits, known), [(before, now) for before, now in edited if now != before]

    def conflicts(self) -> list[tuple[DocumentName, ConflictBlock]]:
        """The collisions that wait for a person's word, document by document; what is no document has none."""
        waiting: list[tuple[DocumentName, ConflictBlock]] = []
        for name in DocumentName:
            with suppress(DocumentError):
                waiting += [(name, block) for block in find_conflicts(self._episodic.text(name))]
        return waiting

    def problems(self) -> list[Json]:
        """The conflicts that wait, as `status` shows what is wrong."""
        try:
            waiting = self.conflicts()
        except StorageError:  # told as the document's own problem
            return []
        return [
            {
                "subject": name.value,
                "since": None,
                "problem": f"conflict {block.id} in line {block.line} waits for you: `orchestra-mem conflicts`",
            }
            for name, block in waiting
        ]

    def resolve(self, conflict: str, *, accept: bool) -> tuple[DocumentName, Resolved]:
        """Let the machine's lines of a conflict take the place of the person's, or take them out.

        Raises:
            NotFoundError: no document has a conflict with this id.
            DocumentConflictError: somebody has saved the document this instant.
        """
        decide = core_accept if accept else core_reject
        with self._store.lock():
            waiting = self.conflicts()
            for name, block in waiting:
                if block.id == conflict:
                    text = self._episodic.text(name)
                    done = decide(text, conflict)
                    self._episodic.put(name, done.text, expected=text, reason=VersionReason.EDIT, point="resolve")
                    return name, done
        there = ", ".join(block.id for _, block in waiting) or "none"
        raise NotFoundError(f"there is no conflict {conflict!r}; open are: {there}")

    @staticmethod
    def _edited(fact: MustKeep, edits: HandEdits) -> MustKeep:
        if fact.id in edits.removed:
            return replace(fact, status=MustKeepStatus.REMOVED, author=Author.PERSON)
        fact = _standing(fact)
        if fact.id in edits.reworded:
            return _saying(fact, reworded(fact.text, *edits.reworded[fact.id]))
        shown = edits.standing[fact.id]
        if not fact.found or any(shows(each, fact.text) for each in shown):
            return fact
        # What a person said of it is taken back, or what they had said before stands there again.
        if all(shows(each, fact.found) for each in shown):
            return replace(fact, text=fact.found, found="", identifiers=find_identifiers(fact.found))
        return fact if is_cut(shown[0]) else _saying(fact, shown[0])

    @staticmethod
    def _own_edited(known: Sequence[MustKeep], edits: HandEdits, *, gone: bool) -> list[tuple[MustKeep, MustKeep]]:
        """What people wrote before and now says something else or, where `gone` can be told, stands nowhere."""
        said = {squeeze(visible(text)) for _, text in edits.added}
        changed: list[tuple[MustKeep, MustKeep]] = []
        for fact in known:
            if fact.id in edits.standing:
                changed.append((fact, _saying(_standing(fact), edits.standing[fact.id][0])))
            elif fact.status is not MustKeepStatus.REMOVED and gone and squeeze(fact.text) not in said:
                changed.append((fact, replace(fact, status=MustKeepStatus.REMOVED)))
        return changed

    def _new(self, edits: HandEdits, known: Sequence[MustKeep]) -> list[MustKeep]:
        there = {squeeze(fact.text) for fact in known if fact.status is not MustKeepStatus.REMOVED}
        number = self._ledger.next_must_keep_id()
        texts = [(kind, text) for kind, text in edits.added if squeeze(visible(text)) not in there]
        return [
            MustKeep(
                kind=kind,
                text=visible(text),
                operation=0,
                timestamp=self._clock(),
                identifiers=find_identifiers(visible(text)),
                id=number + position,
                weight=WEIGHT,
                author=Author.PERSON,
            )
            for position, (kind, text) in enumerate(texts)
        ]


def _edits(texts: Mapping[DocumentName, PersonText]) -> HandEdits:
    return hand_edits({name: (text.base, text.before, text.said) for name, text in texts.items()})


def _standing(fact: MustKeep) -> MustKeep:
    """A fact that stands in a document, though it was taken out before: undone, or an earlier text was put back."""
    return replace(fact, status=MustKeepStatus.STANDING) if fact.status is MustKeepStatus.REMOVED else fact


def _saying(fact: MustKeep, text: str) -> MustKeep:
    """A fact in a person's words."""
    said = visible(text)
    if squeeze(said) == squeeze(fact.text):
        return fact
    found = (fact.found or fact.text) if fact.operation else ""
    return replace(
        fact, text=said, found=found, identifiers=find_identifiers(said), weight=WEIGHT, author=Author.PERSON
    )

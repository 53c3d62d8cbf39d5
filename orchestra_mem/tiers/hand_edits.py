"""Taking in what people say by editing the episodic documents: their facts are facts like any other.

A fact that a person takes out is shown nowhere again; one that is reworded says what the person says; one that is added
is listed, searched and never brought under by the machine. Doing it twice changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from orchestra_mem.core.documents.owned_lines import Difference, Told, fact_edits, reworded, shows
from orchestra_mem.core.documents.plan_lines import has_work
from orchestra_mem.core.identifiers import find_identifiers
from orchestra_mem.core.text import squeeze, visible
from orchestra_mem.errors import NotFoundError, StorageError
from orchestra_mem.ports import Clock, DocumentStore, Ledger
from orchestra_mem.tiers.document_texts import PersonText
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.work_plan import WorkPlan
from orchestra_mem.types import Author, DocumentName, MustKeep, MustKeepKind, MustKeepStatus

logger = logging.getLogger(__name__)

# What a person took the trouble to write counts as much as what an operation was marked critical for.
WEIGHT = 3.0


@dataclass(slots=True, kw_only=True, eq=False)
class HandEditManager:
    """Reads what people have changed in the documents into the ledger.

    `taken` is the digest of each document's file whose edits the ledger has.
    """

    episodic: EpisodicMemoryManager
    ledger: Ledger
    store: DocumentStore
    clock: Clock
    work: WorkPlan
    taken: Mapping[str, str] = field(default_factory=dict, init=False)

    def take_in(self) -> int:
        """Bring the ledger up to the documents, and the tracker up to the work plan; the number of facts that changed.

        Raises:
            StorageError: a document cannot be read, or the ledger not be written.
        """
        changed = 0
        # Mostly nobody has edited anything: that is seen without holding up who writes.
        self.taken, unread = self.episodic.texts.digests()
        if unread:
            with self.store.lock():
                texts = self.episodic.texts.all()
                self.episodic.writers[0].keep_saved(texts)
                new, edited = self._changes(texts)
                if new or edited:
                    self.ledger.edit_must_keeps(new, edited)
                    logger.info("took in by hand: %d facts added, %d changed or removed", len(new), len(edited))
                for name, text in texts.items():
                    text = replace(text, said=self.episodic.texts.numbered(name, text.said))
                    if name == DocumentName.WORK_PLAN:
                        self.work.take_in(text)
                    else:
                        self.ledger.note_read(name, text.as_read)
            self.taken = {name: text.digest for name, text in texts.items()}
            changed = len(new) + len(edited)
        with suppress(StorageError, NotFoundError):  # told as the document's own problem, or there is no plan here
            self.work.look(self.episodic.text(DocumentName.WORK_PLAN))
        return changed

    def _changes(self, texts: Mapping[str, PersonText]) -> tuple[list[MustKeep], list[tuple[MustKeep, MustKeep]]]:
        """The facts that people have added, and those that they changed (before, now)."""
        plan = texts.get(DocumentName.WORK_PLAN)
        edits = fact_edits(
            {name: (text.before, text.said) for name, text in texts.items()},
            work=plan is not None and has_work(plan.base),
        )
        numbers = sorted(int(number[1:]) for number in {*edits.gone, *edits.said})
        edited = [(fact, _edited(fact, edits)) for fact in self.ledger.must_keeps_by_id(numbers)]
        return self._new(edits.added), [(before, now) for before, now in edited if now != before]

    def _new(self, added: Sequence[Told]) -> list[MustKeep]:
        first = self.ledger.next_must_keep_id()
        return [
            MustKeep(
                kind=MustKeepKind(kind),
                text=visible(text),
                operation=0,
                timestamp=self.clock(),
                identifiers=find_identifiers(visible(text)),
                id=number,
                weight=WEIGHT,
                author=Author.PERSON,
            )
            for number, (kind, text, _) in enumerate(added, first)
            if kind
        ]


def _edited(fact: MustKeep, edits: Difference[Told]) -> MustKeep:
    """A fact as a person's edits leave it: taken out, brought back, or in other words."""
    if f"K{fact.id}" in edits.gone:
        return replace(fact, status=MustKeepStatus.REMOVED, author=Author.PERSON)
    if fact.status is MustKeepStatus.REMOVED:
        fact = replace(fact, status=MustKeepStatus.STANDING)
    was, (_, now, stands) = edits.said[f"K{fact.id}"]
    said = visible(reworded(fact.text, was[1] if was else "", now))
    if shows(now, fact.text) or squeeze(said) == squeeze(fact.text):
        return fact
    if squeeze(said) == squeeze(fact.found):  # what a person said of it is taken back
        return replace(fact, text=fact.found, found="", identifiers=find_identifiers(fact.found))
    found = (fact.found or fact.text) if fact.operation else ""
    # In a person's words, it is not brought under by the machine.
    status = MustKeepStatus.STANDING if stands else fact.status
    return replace(
        fact,
        text=said,
        found=found,
        identifiers=find_identifiers(said),
        weight=WEIGHT,
        author=Author.PERSON,
        status=status,
    )

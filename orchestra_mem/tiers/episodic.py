"""Episodic memory: project state, work plan, decision log. Written by the machine, read and edited by people.

The machine merges its new text into the edited document. A person's lines win: if both changed the same lines, the
machine's lines are shown below the person's in a marked block. The earlier text is kept as a version first.

Documents are not limited in size. In contexts, the large sections of a too large document are replaced by short forms.
The ledger keeps them; they are made by extraction, and a model may improve them later. A short form is valid for
exactly the section text that it was made from.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate, takewhile
from pathlib import Path

from orchestra_mem.core.documents.conflicts import find_conflicts, without_conflicts
from orchestra_mem.core.documents.episodic import ProjectView, render_document, render_facts
from orchestra_mem.core.documents.fact_lines import LooseFacts, with_numbers
from orchestra_mem.core.documents.markdown import Block, split_blocks
from orchestra_mem.core.documents.owned_lines import MACHINE_TITLES, SECTIONS
from orchestra_mem.core.documents.signature import digest, signed
from orchestra_mem.core.text import squeeze
from orchestra_mem.design_names import EpisodicCalls
from orchestra_mem.errors import DocumentConflictError, NotFoundError, StorageError
from orchestra_mem.ports import Clock, DocumentStore, TokenCounter
from orchestra_mem.stores import Ledger
from orchestra_mem.tiers.document_writer import DocumentWriter
from orchestra_mem.tiers.edited_documents import EditedDocuments
from orchestra_mem.tiers.fact_changes import fact_changes
from orchestra_mem.tiers.work_plan import WorkPlan
from orchestra_mem.types import Author, DocumentName, Json, MustKeep, MustKeepStatus, Summary, VersionReason

logger = logging.getLogger(__name__)

_Key = tuple[str, str]

_MOST_NEW = 250  # facts that a context adds to a document
# Sections smaller than this share of the document's size limit are never shortened.
_LARGE = 1 / 8


@dataclass(slots=True, kw_only=True, eq=False)
class ShortForms:
    """Makes short forms of large sections and shows them in contexts. Callers of `make` must hold the memory's lock.

    Attributes:
        blocks: Returns the blocks of a document as they are in its file.
        size_tokens: Documents with more tokens are shortened in contexts; with 0, no document is.
        share: Target size of a short form, as a share of its section's tokens.
    """

    ledger: Ledger
    counter: TokenCounter
    clock: Clock
    blocks: Callable[[DocumentName], Sequence[Block]]
    size_tokens: int
    share: float
    _known: Mapping[_Key, Summary] | None = field(default=None, init=False)
    _refused: set[str] = field(default_factory=set, init=False)

    def shown(self, name: DocumentName, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """Return the blocks, with each section to shorten (see `_chosen`) replaced by its short form, if available."""
        chosen = self._chosen(blocks)
        known = self._loaded() if chosen else {}
        return tuple(
            _short(block, name, known[key]) if block in chosen and (key := _key(name, block)) in known else block
            for block in blocks
        )

    def make(self, session: str) -> None:
        """Make the missing short forms and reload all from the ledger. Call it only between two epochs."""
        self._known = None
        new: list[Summary] = []
        for key, text in self._missing():
            made = self._made(text, key, session, self.ledger.next_summary_id() + len(new))
            if made is None:
                self._refused.add(key[1])
            else:
                new.append(made)
        if new:
            self.ledger.add_summaries(new)
            self._known = None

    def _missing(self) -> list[tuple[_Key, str]]:
        """Return the keys and texts of sections that need a short form and have none."""
        chosen = [(name, block) for name in DocumentName for block in self._chosen(self.blocks(name))]
        texts = {_key(name, block): _text(block) for name, block in chosen}
        return [(key, text) for key, text in texts.items() if key not in self._loaded() and key[1] not in self._refused]

    def section(self, summary: Summary) -> str | None:
        """Return the section text that a short form was made from, None if it is no longer in the document."""
        name = DocumentName(summary.document.partition("/")[0])
        wanted = summary.document, summary.source
        return next((_text(block) for block in self.blocks(name) if _key(name, block) == wanted), None)

    def _loaded(self) -> Mapping[tuple[str, str], Summary]:
        known = self._known  # `make` in another thread may reset the field at any moment
        if known is None:
            found = self.ledger.level_zero_summaries(sections=True)
            known = self._known = {(each.document, each.source): each for each in found}
        return known

    def _chosen(self, blocks: Sequence[Block]) -> list[Block]:
        """Choose the largest unpinned sections to shorten, as many as bring the document down to its size limit.

        The machine's own lists are none of them: contexts choose their lines by the facts' weights, which an extract
        does not know.
        """
        # Nearly every token has at least one character, so short documents need no token count.
        if not self.size_tokens or sum(len(block.text) for block in blocks) <= self.size_tokens:
            return []
        tokens = {block: self.counter.count(block.text) for block in blocks}
        excess = sum(tokens.values()) - self.size_tokens
        chosen: list[Block] = []
        for block in sorted(blocks, key=lambda block: -tokens[block]):
            if excess <= 0 or tokens[block] < self.size_tokens * _LARGE:
                break
            if block.level and not block.pinned and block.title.lower() not in MACHINE_TITLES:
                chosen.append(block)
                excess -= int(tokens[block] * (1 - self.share))
        return chosen

    def _made(self, text: str, key: _Key, session: str, number: int) -> Summary | None:
        from orchestra_mem.core.summaries.drafts import draft_of, material_of, paragraphs_of

        now = self.clock()
        material = material_of(paragraphs_of(text), self.counter.count(text), now)
        target = int(material.source_tokens * self.share)
        draft = draft_of(material, target_tokens=target, counter=self.counter)
        if not draft.passed:
            logger.warning(
                "contexts show only as much of %s as fits: its short form was not shorter or failed the check", key[0]
            )
            return None
        return draft.summary(
            id=number, session=session, level=0, first_operation=0, last_operation=0, operation_count=0, must_keeps=(),
            dropped=material.dropped_from(draft.text), since=now, until=now, created=now, document=key[0],
            source=key[1],
        )  # fmt: skip


def _key(name: DocumentName, block: Block) -> _Key:
    return f"{name.value}/{block.title}", digest(block.text)


def _text(block: Block) -> str:
    return block.text.removeprefix(block.heading)


def _short(block: Block, name: DocumentName, summary: Summary) -> Block:
    told = f"*(Shortened from {summary.source_tokens:,} tokens, S{summary.id}; the full text is in {name.value}.md)*"
    return replace(block, text=f"{block.heading.rstrip()}\n\n{told}\n\n{summary.text.rstrip()}\n\n")


@dataclass(kw_only=True, eq=False, repr=False)
class EpisodicMemoryManager(EditedDocuments, EpisodicCalls, use="open_memory(project, config=config).episodic_memory"):
    """The third tier, episodic memory. Manages the documents in `only`.

    Safe to share between threads and processes: a write takes a lock and fails if the file has changed meanwhile.
    """

    ledger: Ledger
    store: DocumentStore
    counter: TokenCounter
    clock: Clock
    folder: Path
    keep_versions: int
    work: WorkPlan
    only: Sequence[DocumentName] = tuple(DocumentName)
    size_tokens: int = 0
    short_share: float = 0.25

    def __post_init__(self) -> None:
        """Create the writer of the documents, and their short forms."""
        writer = DocumentWriter(
            ledger=self.ledger, store=self.store, clock=self.clock, names=lambda: self.only, numbered=self._numbered,
            wordings_by_number=self._wordings, path=lambda name: self.folder / f"{name}.md", by_people=self._by_people,
            keep_versions=self.keep_versions,
        )  # fmt: skip
        super().__init__(writer)
        self.short_forms = ShortForms(
            ledger=self.ledger, counter=self.counter, clock=self.clock, blocks=self._whole,
            size_tokens=self.size_tokens, share=self.short_share,
        )  # fmt: skip

    def _numbered(self, name: str, text: str) -> str:
        """Add the numbers of facts and work items to the lines that people wrote; keep all other bytes."""
        if name == DocumentName.WORK_PLAN:
            text = self.work.numbered(text)
        known = {squeeze(fact.text): f"K{fact.id}" for fact in self.ledger.by_people() if not fact.operation}
        return with_numbers(name, text, known.get) if known else text

    def _wordings(self, name: str) -> dict[str, Sequence[str]]:
        """Return the wordings of all facts, and of the work items for the work plan, by number."""
        known = {f"K{fact.id}": fact.wordings for fact in self.ledger.must_keeps()}
        return {**known, **(self.work.wordings_by_number() if name == DocumentName.WORK_PLAN else {})}

    def _by_people(self, numbers: Collection[str]) -> set[str]:
        """Return those of the numbers whose facts people wrote or removed, or whose work items' lines they deleted."""
        out = {number for number in numbers if number[0] == "#" and self.work.is_taken_out(int(number[1:]))}
        facts = self.ledger.must_keeps_by_id([int(number[1:]) for number in numbers if number[0] == "K"])
        people = [each for each in facts if each.author is Author.PERSON]
        return out | {f"K{each.id}" for each in people if not each.operation or each.status is MustKeepStatus.REMOVED}

    def read_edits(self) -> int:
        """Apply people's edits of the documents to the ledger and the work tracker.

        Returns:
            The number of facts and work items added, changed or removed.

        Raises:
            StorageError: a document cannot be read, or the ledger cannot be written.
        """
        changed_items = 0
        with self.writers[0].reading() as texts:
            new, edited = fact_changes(texts, self.ledger, self.clock()) if texts else ([], [])
            if new or edited:
                self.ledger.edit_must_keeps(new, edited)
                logger.info("applied edits of documents: %d facts added, %d changed or removed", len(new), len(edited))
            for name, text in texts.items():
                text = replace(text, said=self._numbered(name, text.said))
                if name == DocumentName.WORK_PLAN:
                    changed_items = self.work.apply_edits(text)
                else:
                    self.ledger.note_read(name, text.as_read)
        with suppress(StorageError, NotFoundError):  # reported as the document's fault, or there is no work plan
            self.work.note_shown_items(self.text(DocumentName.WORK_PLAN))
        return len(new) + len(edited) + changed_items

    def update(self, known: Callable[[], ProjectView], reason: VersionReason) -> dict[str, StorageError]:
        """Rewrite all documents whose content has changed.

        Args:
            known: Reads people's edits, then returns the data to render.
            reason: Recorded with the versions that keep the earlier texts.

        Returns:
            Errors by the names of the documents that could not be written; the others are written.
        """

        def texts() -> dict[str, str]:
            view = known()
            return {name: self._rendered(name, view) for name in self.only}

        return self.writers[0].write_all(texts, reason)

    def _rendered(self, name: DocumentName, view: ProjectView) -> str:
        return signed(render_document(name, view), self.ledger.key)

    def create_missing(self, view: ProjectView) -> None:
        """Write the missing documents. Existing ones stay untouched, even if they appear in the meantime.

        Raises:
            StorageError: a document could not be written.
        """
        missing = [name for name in self.only if self.store.state(self.path(name)) is None]
        texts: dict[str, str] = {name: self._rendered(name, view) for name in missing}
        # An editor may move its file away for a moment. A file that comes back must be read before it is written.
        for error in self.writers[0].write_all(lambda: texts, VersionReason.REFRESH).values():
            if not isinstance(error, DocumentConflictError):
                raise error

    def blocks(self, name: DocumentName) -> tuple[Block, ...]:
        """Return a document's blocks as contexts show them, without front matter. Empty if it cannot be read."""
        return self.work.corrected(self.short_forms.shown(name, self._whole(name)))

    def all_blocks(self) -> dict[DocumentName, tuple[Block, ...]]:
        """Return the blocks of all documents, followed by the active facts that should be in one and are in none."""
        blocks = {name: self.blocks(name) for name in DocumentName}
        waiting = {name: facts for name in self.only if (facts := self._waiting(name))}
        known = LooseFacts([block.text for each in blocks.values() for block in each if waiting]).numbers()
        for name, facts in waiting.items():
            blocks[name] += split_blocks(render_facts([fact for fact in facts if f"K{fact.id}" not in known]))
        return blocks

    def _waiting(self, name: DocumentName) -> list[MustKeep]:
        """Return the active facts that a document has only in conflict blocks, or that it could not be written with."""
        last, text = self.ledger.written(name), ""
        with suppress(StorageError):  # it must not be written now
            text = self.store.read_to_change(self.path(name)) or ""
        offered = LooseFacts([block.machine for block in find_conflicts(text)]).numbers()
        found = self.ledger.must_keeps_by_id([int(number[1:]) for number in offered]) if offered else []
        if text != last.left:
            newest = max((int(number[1:]) for number in LooseFacts([last.text or ""]).numbers()), default=0)
            new = self.ledger.must_keeps(kinds=[*SECTIONS[name].values()], limit=_MOST_NEW)
            found += [fact for fact in new if fact.operation and fact.id > newest]
        return [fact for fact in dict.fromkeys(found) if fact.status is MustKeepStatus.STANDING]

    def _whole(self, name: DocumentName) -> tuple[Block, ...]:
        if name not in self.only:
            return ()
        try:
            text = self.store.read_shown(self.path(name)) or ""
        except StorageError as error:  # `faults` reports it
            logger.debug("%s", error)
            return ()
        return tuple(block for block in split_blocks(without_conflicts(text)) if not block.front)

    def get_project_state(self, max_tokens: int) -> str:
        """Return as much of `project_state.md` as fits, from the top."""
        return self._fitting(DocumentName.PROJECT_STATE, max_tokens)

    def get_work_plan(self, max_tokens: int) -> str:
        """Return as much of `work_plan.md` as fits, from the top."""
        return self._fitting(DocumentName.WORK_PLAN, max_tokens)

    def _fitting(self, name: DocumentName, max_tokens: int) -> str:
        texts = accumulate(block.text for block in self.blocks(name))
        return max(takewhile(lambda text: self.counter.count(text) <= max_tokens, texts), key=len, default="")

    def get_recent_decisions(self, max_tokens: int) -> list[str]:
        """Return the newest entries of `decision_log.md` that fit together, oldest first."""
        chosen = [block.text.strip() for block in self.blocks(DocumentName.DECISION_LOG) if block.level == 3]
        while chosen and self.counter.count("\n".join(chosen)) > max_tokens:
            del chosen[0]
        return chosen

    def search(self, query: str, max_results: int = 5) -> list[str]:
        """Return lines that contain the query, ignoring case, each prefixed with the name of its document."""
        wanted = query.casefold()
        found = [
            f"[{name.value}.md] {line}"
            for name in self.only
            for block in self._whole(name)
            for line in block.text.splitlines()
            if wanted in line.casefold()
        ]
        return found[: max(0, max_results)]

    def get_stats(self) -> dict[str, Json]:
        """Return the tokens of each document and the total number of kept versions."""
        sizes = {name: sum(self.counter.count(block.text) for block in self._whole(name)) for name in self.only}
        versions = sum(len(self.store.versions(name.value)) for name in self.only)
        return {**{f"{name.value}_tokens": size for name, size in sizes.items()}, "version_count": versions}

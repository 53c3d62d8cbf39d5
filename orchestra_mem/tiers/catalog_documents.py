"""The documents `catalog/<agent>.md`: write the items of the catalog, and apply people's edits of their lines."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from orchestra_mem.catalog_types import ItemFilter, ItemStatus, MemoryItem
from orchestra_mem.core.documents.catalog_document import (
    MOST_SHOWN,
    agent_of,
    changes_of,
    document_name,
    read_line,
    render_catalog,
    shown_name,
)
from orchestra_mem.core.documents.fact_lines import fact_edits, with_numbers
from orchestra_mem.core.documents.signature import signed
from orchestra_mem.core.text import squeeze, visible
from orchestra_mem.errors import DocumentError, OrchestraMemError, StorageError
from orchestra_mem.ports import DocumentStore
from orchestra_mem.stores import CatalogStore, Ledger
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.tiers.document_writer import DocumentWriter
from orchestra_mem.tiers.edited_documents import EditedDocuments
from orchestra_mem.types import Author, FileState, MustKeepStatus, VersionReason

logger = logging.getLogger(__name__)


@dataclass(kw_only=True, eq=False, repr=False)
class CatalogDocuments(EditedDocuments):
    """Synchronises the documents `catalog/<agent>.md` with the items of the catalog.

    Attributes:
        folder: Folder of all documents; its subfolder `catalog/` has the catalog's documents.
        keep_versions: Number of versions written by the machine that are kept per document.
        lock: Reentrant lock of the memory. To prevent deadlocks, always taken before the document lock.
    """

    catalog: MemoryCatalog
    items: CatalogStore
    ledger: Ledger
    store: DocumentStore
    folder: Path
    keep_versions: int
    lock: AbstractContextManager[None]
    _written: dict[str, int] = field(default_factory=dict, init=False)
    _through: int = field(default=0, init=False)
    _left: set[str] = field(default_factory=set, init=False)
    _seen: Mapping[str, FileState | None] = field(default_factory=dict, init=False)
    _named: tuple[int, dict[str, str]] = field(default_factory=lambda: (-1, {}), init=False)
    _found: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Create the writer of the documents."""
        writer = DocumentWriter(
            ledger=self.ledger, store=self.store, clock=self.catalog.clock, names=self._agents, numbered=self._numbered,
            wordings_by_number=self._wordings, path=lambda name: self.folder / f"{shown_name(name)}.md",
            by_people=self._by_people, keep_versions=self.keep_versions, hidden=self._hidden,
        )  # fmt: skip
        super().__init__(writer)
        # The items of a lost database are in its documents.
        self._found = [agent for path in self.folder.glob("catalog/*.md") if (agent := agent_of(path.stem))]

    def _agents(self) -> dict[str, str]:
        """Return the agents by the names of their documents. Cached until an item changes."""
        change = self.items.last_change()
        if change != self._named[0]:
            self._named = change, {document_name(agent): agent for agent in [*self._found, *self.items.agents()]}
        return self._named[1]

    def _numbered(self, name: str, text: str) -> str:
        """Add the numbers of items to the lines that people wrote."""
        items = self.items.items(ItemFilter(agents=[self._agents()[name]], limit=MOST_SHOWN))
        known = {squeeze(item.content): f"M{item.number}" for item in items if item.author is Author.PERSON}
        return with_numbers(name, text, lambda said: known.get(read_line(said).content)) if known else text

    def _wordings(self, name: str) -> dict[str, list[str]]:
        items = self.items.items(ItemFilter(agents=[self._agents()[name]], statuses=tuple(ItemStatus)))
        return {f"M{item.number}": [visible(item.content)] for item in items}

    def _by_people(self, numbers: Collection[str]) -> set[str]:
        items = self.items.by_number([int(number[1:]) for number in numbers if number[0] == "M"])
        gone = ItemStatus.DELETED
        return {f"M{item.number}" for item in items if item.author is Author.PERSON or item.status is gone}

    def _hidden(self, numbers: Collection[str]) -> set[str]:
        items = self.items.by_number([int(number[1:]) for number in numbers])
        return {f"M{item.number}" for item in items if item.status not in (ItemStatus.LIVE, ItemStatus.PURGED)}

    @property
    def unseen(self) -> bool:
        """Whether a document may have been saved since `read_edits` last read the documents."""
        return self.states() != self._seen or self.writers[0].retry_due

    def read_edits(self) -> None:
        """Apply people's edits of the documents to the catalog.

        Raises:
            StorageError: a document cannot be read, or the catalog cannot be written.
        """
        if not self.unseen:
            return
        states = self.states()
        if self._left:  # a document that could not be written may have been repaired: write it again
            self._through = -1
        with self.lock:
            with self.writers[0].reading() as texts, self.items.changing() if texts else nullcontext():
                for name, text in texts.items():
                    agent = self._agents()[name]
                    self._edit(agent, name, text.before, text.said)
                    if text.digest != self.ledger.written(name).digest:
                        self._written.pop(agent, None)  # write it again: the edited text may lack lines of live items
                        self._through = -1
                    self.ledger.note_read(name, replace(text.as_read, text=self._numbered(name, text.said)))
            self._seen = states

    def _edit(self, whose: str, name: str, before: str, said: str) -> None:
        edits = fact_edits({name: (before, said)}, letter="M")
        permanent_from = self.catalog.settings.min_priority_for_permanent  # the lowest priority that a pinned line gets
        struck = [number for number, (_, (_, _, status)) in edits.said.items() if status is MustKeepStatus.REMOVED]
        for number in [*edits.gone, *struck]:
            _try(self.catalog.delete, number)
        for number, (_, (kind, text, _)) in sorted(edits.said.items(), key=lambda each: int(each[0][1:])):
            if number in struck:
                continue
            item = self.items.by_number([int(number[1:])])
            if kind and not item:  # an older database was put back, or it was lost
                _try(self._add, whose, kind, text, int(number[1:]))
            if item and item[0].status is not ItemStatus.LIVE:  # a deleted line is back, as after an undo
                _try(self.catalog.restore, number)
            if item and (changes := changes_of(item[0], text, permanent_from)):
                _try(self.catalog.update, number, changes)
        for kind, text, _ in edits.added:
            _try(self._add, whose, kind, text)

    def _add(self, whose: str, kind: str, text: str, number: int = 0) -> None:
        from orchestra_mem.core.catalog.item_drafts import read_draft  # imported here, as pydantic loads slowly

        line, permanent_from = read_line(text), self.catalog.settings.min_priority_for_permanent
        priority = max(line.priority or 0, permanent_from) if line.pinned else line.priority
        record = {"content": line.content, "type": kind, "ci_source": whose, "priority": priority}
        made = self.catalog.prepare(read_draft(record, self.catalog.clock()), author=Author.PERSON)
        self.catalog.commit(replace(made, item=replace(made.item, number=number)))

    def forget(self, items: Sequence[MemoryItem]) -> None:
        """Remove the lines of purged items from the versions and the other former texts of their documents.

        Raises:
            StorageError: a version could not be written.
        """
        with suppress(OrchestraMemError):  # the next write reports a failure; a write keeps the old text as a version
            self.write()
        for agent in {item.ci_source for item in items}:
            without = partial(_without, [f"(M{item.number})" for item in items if item.ci_source == agent])
            with self.lock, self.store.lock(), ExitStack() as others:  # all steps, even if one fails
                others.callback(self.store.change_former, self.writers[0].path(document_name(agent)), without)
                others.callback(self.ledger.change_former, document_name(agent), without)
                document = self.writers[0].path(document_name(agent))  # lines above a person's notes are still there
                for path in [document, *(Path(each.path) for each in self.store.versions(document_name(agent)))]:
                    if (text := self.store.read(path)) and (kept := without(text)) != text:
                        self.store.replace(path, kept, expected=text, name="purge")

    @property
    def due(self) -> bool:
        """Whether an item has changed since the documents were last written."""
        return self.items.last_change() != self._through

    def write(self) -> None:
        """Read people's edits, then rewrite the documents of agents whose items have changed since the last write.

        Raises:
            StorageError: a document could not be written; the others are. After a `DocumentError`, the write is
                repeated only when an item or a document has changed.
        """
        due: dict[str, int] = {}
        through = -1

        def texts() -> dict[str, str]:
            nonlocal through
            self.read_edits()
            through = self.items.last_change()
            changes = {agent: self.items.last_change(agent) for agent in self.items.agents()}
            due.clear()
            due.update((agent, change) for agent, change in changes.items() if change != self._written.get(agent))
            return {document_name(agent): self._text(agent) for agent in due}

        with self.lock, self.store.lock():
            failed = self.writers[0].write_all(texts, VersionReason.REFRESH)
            self._written.update((agent, due[agent]) for agent in due if document_name(agent) not in failed)
            self._left = {name for name, error in failed.items() if isinstance(error, DocumentError)}
            self._through = through if self._left == failed.keys() else -1
        for error in failed.values():
            raise error

    def _text(self, agent: str) -> str:
        where = ItemFilter(agents=[agent], limit=MOST_SHOWN, by_priority=True)
        items = sorted(self.items.items(where), key=lambda item: item.number)
        text = render_catalog(agent, items, self.items.count(where), self.catalog.clock())
        return signed(text, self.ledger.key)


def _without(marks: Sequence[str], text: str) -> str:
    return "\n".join(row for row in text.split("\n") if not any(mark in row for mark in marks))


def _try(change: Callable[..., object], *values: object) -> None:
    """Apply the change of one line to the catalog. If the catalog refuses it, log a warning and ignore the line."""
    try:
        change(*values)
    except StorageError:
        raise
    except OrchestraMemError as error:
        logger.warning("a line of a catalog document was not applied: %s", error)

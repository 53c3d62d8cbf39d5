"""The catalog as markdown, one document an agent, which people edit as they edit the episodic ones."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from orchestra_mem.catalog_types import CatalogStore, ItemFilter, ItemStatus, MemoryItem
from orchestra_mem.core.documents.catalog_document import (
    MOST_SHOWN,
    changes_of,
    document_name,
    read_line,
    render_catalog,
    shown_name,
)
from orchestra_mem.core.documents.owned_lines import fact_edits, with_numbers
from orchestra_mem.core.text import squeeze
from orchestra_mem.errors import DocumentError, OrchestraMemError, StorageError
from orchestra_mem.ports import Clock, DocumentStore, Ledger
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.tiers.document_writer import DocumentWriter
from orchestra_mem.tiers.edited_documents import EditedDocuments
from orchestra_mem.types import Author, FileState, VersionReason

logger = logging.getLogger(__name__)


class CatalogDocuments(EditedDocuments):
    """Keeps `catalog/<agent>.md` and the catalog alike.

    Args:
        catalog: takes what people say.
        store: keeps the items.
        ledger, documents: remember and keep documents.
        clock: gives the present time.
        folder: where all documents lie; these in `catalog/`.
        keep_versions: so many of the machine's own versions stay.
        permanent_from: the priority of a pinned line, at least.
        lock: taken before documents are, by whoever takes both; for any number of times.
    """

    def __init__(
        self,
        catalog: MemoryCatalog,
        store: CatalogStore,
        *,
        ledger: Ledger,
        documents: DocumentStore,
        clock: Clock,
        folder: Path,
        keep_versions: int,
        permanent_from: int,
        lock: AbstractContextManager[None],
    ) -> None:
        self._catalog = catalog
        self._items = store
        self._ledger = ledger
        self._clock = clock
        self._permanent_from = permanent_from
        writer = DocumentWriter(
            ledger=ledger, store=documents, clock=clock, path=lambda name: folder / f"{shown_name(name)}.md",
            names=self._agents, numbered=self._numbered, by_people=self._by_people, keep_versions=keep_versions,
        )  # fmt: skip
        super().__init__(writer)
        self._written: dict[str, int] = {}
        self._through = 0
        self._left: set[str] = set()
        self._seen: Mapping[str, FileState | None] = {}
        self._named: tuple[int, dict[str, str]] = (0, {})
        self._lock = lock

    def _agents(self) -> dict[str, str]:
        """The agents by the names of their documents; asked for anew only where an item has changed."""
        change = self._items.last_change()
        if change != self._named[0]:
            self._named = change, {document_name(agent): agent for agent in self._items.agents()}
        return self._named[1]

    def _numbered(self, name: str, text: str) -> str:
        items = self._items.items(ItemFilter(agents=[self._agents()[name]], limit=MOST_SHOWN))
        known = {squeeze(item.content): f"M{item.number}" for item in items if item.author is Author.PERSON}
        return with_numbers(name, text, lambda said: known.get(read_line(said).content)) if known else text

    def _by_people(self, numbers: Sequence[str]) -> set[str]:
        items = self._items.by_number([int(number[1:]) for number in numbers if number[0] == "M"])
        gone = ItemStatus.DELETED
        return {f"M{item.number}" for item in items if item.author is Author.PERSON or item.status is gone}

    @property
    def unseen(self) -> bool:
        """Whether a document has been saved since the last look."""
        return self.states() != self._seen

    def take_in(self) -> None:
        """Bring the catalog up to what people have said in the documents.

        Raises:
            StorageError: a document cannot be read, or the catalog not be written.
        """
        states = self.states()
        if states == self._seen:
            return
        if self._left:  # what was to be left as it was may have been mended
            self._through = -1
        with self._lock:
            with self.writers[0].reading() as texts, self._items.changing() if texts else nullcontext():
                for name, text in texts.items():
                    agent = self._agents()[name]
                    self._edit(agent, name, text.before, text.said)
                    if text.digest != self._ledger.written(name).digest:
                        self._written.pop(agent, None)  # what it lacks is shown again
                        self._through = -1
                    self._ledger.note_read(name, replace(text.as_read, text=self._numbered(name, text.said)))
            self._seen = states

    def _edit(self, whose: str, name: str, before: str, said: str) -> None:
        edits = fact_edits({name: (before, said)}, letter="M")
        for number in edits.gone:
            _try(self._catalog.delete, number)
        for number, (_, (_, text, _)) in edits.said.items():
            item = self._items.by_number([int(number[1:])])
            if item and item[0].status is not ItemStatus.LIVE:  # a line that was taken out stands again, as by an undo
                _try(self._catalog.restore, number)
            if item and (changes := changes_of(item[0], text, self._permanent_from)):
                _try(self._catalog.update, number, changes)
        for kind, text, _ in edits.added:
            line = read_line(text)
            priority = max(line.priority or 0, self._permanent_from) if line.pinned else line.priority
            draft = {"content": line.content, "type": kind, "ci_source": whose, "priority": priority}
            _try(self._catalog.store, draft)

    def forget(self, items: Sequence[MemoryItem]) -> None:
        """Take the lines of items out of the versions of their documents.

        Raises:
            StorageError: one could not be written.
        """
        with suppress(OrchestraMemError):  # told by the next write; what stands in a document becomes a version by one
            self.write()
        for agent in {item.ci_source for item in items}:
            marks = tuple(f"(M{item.number})" for item in items if item.ci_source == agent)
            with self._lock, self._store.lock():
                for version in self._store.versions(document_name(agent)):
                    text = self._store.read_version(version)
                    kept = "\n".join(row for row in text.split("\n") if not any(mark in row for mark in marks))
                    if kept != text:
                        self._store.replace(Path(version.path), kept, expected=text, name="purge")

    @property
    def due(self) -> bool:
        """Whether an item has changed since the documents were last written."""
        return self._items.last_change() != self._through

    def write(self, reason: VersionReason = VersionReason.REFRESH) -> None:
        """Write anew the documents of the agents whose items have changed since, with what people have said by now.

        Raises:
            StorageError: one could not be written; the others are. One that is to be left as it is, is tried again
                when something has changed.
        """
        due: dict[str, int] = {}
        through = -1

        def texts() -> dict[str, str]:
            nonlocal through
            self.take_in()
            through = self._items.last_change()
            changes = {agent: self._items.last_change(agent) for agent in self._items.agents()}
            due.clear()
            due.update((agent, change) for agent, change in changes.items() if change != self._written.get(agent))
            return {document_name(agent): self._text(agent) for agent in due}

        with self._lock:
            failed = self.writers[0].write_all(texts, reason)
            self._written.update((agent, due[agent]) for agent in due if document_name(agent) not in failed)
            self._left = {name for name, error in failed.items() if isinstance(error, DocumentError)}
            self._through = through if self._left == failed.keys() else -1
        for error in failed.values():
            raise error

    def _text(self, agent: str) -> str:
        where = ItemFilter(agents=[agent], limit=MOST_SHOWN, by_priority=True)
        items = sorted(self._items.items(where), key=lambda item: item.number)
        return render_catalog(agent, items, self._items.count(where), self._clock())


def _try(change: Callable[..., object], *values: object) -> None:
    """Make a change that a line asks for, or leave the line as it is where the catalog refuses."""
    try:
        change(*values)
    except StorageError:
        raise
    except OrchestraMemError as error:
        logger.warning("a line of a catalog document is left as it is: %s", error)

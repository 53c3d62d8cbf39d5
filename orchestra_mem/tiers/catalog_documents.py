"""The catalog as markdown, one document an agent, which people edit as they edit the episodic ones."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

from orchestra_mem.catalog_types import CatalogStore, ItemFilter, ItemStatus, MemoryItem
from orchestra_mem.core.documents.catalog_document import MOST_SHOWN, changes_of, read_line, render_catalog
from orchestra_mem.core.documents.owned_lines import fact_edits, with_numbers
from orchestra_mem.core.text import squeeze
from orchestra_mem.errors import DocumentConflictError, OrchestraMemError, StorageError
from orchestra_mem.ports import Clock, DocumentStore, Ledger
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.tiers.document_texts import PersonTexts
from orchestra_mem.tiers.document_writer import WRITE_TRIES, DocumentWriter
from orchestra_mem.types import Author, FileState, VersionReason

logger = logging.getLogger(__name__)

_PREFIX = "catalog-"
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_.-]{0,59}")


class CatalogDocuments:
    """Keeps `catalog/<agent>.md` and the catalog alike.

    Args:
        catalog: takes what people say.
        store: keeps the items.
        ledger, documents: remember and keep documents.
        clock: gives the present time.
        folder: where the documents lie.
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
        self._store = store
        self._ledger = ledger
        self._documents = documents
        self._clock = clock
        self._folder = folder
        self._permanent_from = permanent_from
        self._texts = PersonTexts(
            ledger=ledger, store=documents, path=self.path, names=self._states, numbered=self._numbered,
            by_people=self._by_people,
        )  # fmt: skip
        self._writer = DocumentWriter(self._texts, clock=clock, keep_versions=keep_versions)
        self._written: dict[str, int] = {}
        self._through = 0
        self._seen: Mapping[str, FileState] = {}
        self._taken: Mapping[str, str] = {}
        self._named: tuple[int, dict[str, str]] = (0, {})
        self._lock = lock

    def path(self, name: str) -> Path:
        """Where the document of a name lies; see `name_of`."""
        return self._folder / f"{name.removeprefix(_PREFIX)}.md"

    def _agents(self) -> dict[str, str]:
        """The agents by the names of their documents; asked for anew only where an item has changed."""
        change = self._store.last_change()
        if change != self._named[0]:
            self._named = change, {name_of(agent): agent for agent in self._store.agents()}
        return self._named[1]

    def _states(self) -> dict[str, FileState]:
        """The states of the documents that are there."""
        found = ((name, self._documents.state(self.path(name))) for name in self._agents())
        return {name: state for name, state in found if state}

    def _numbered(self, name: str, text: str) -> str:
        items = self._store.items(ItemFilter(agents=[self._agents()[name]], limit=MOST_SHOWN))
        known = {squeeze(item.content): f"M{item.number}" for item in items if item.author is Author.PERSON}
        return with_numbers(name, text, lambda said: known.get(read_line(said).content)) if known else text

    def _by_people(self, numbers: Sequence[str]) -> set[str]:
        items = self._store.by_number([int(number[1:]) for number in numbers if number[0] == "M"])
        gone = ItemStatus.DELETED
        return {f"M{item.number}" for item in items if item.author is Author.PERSON or item.status is gone}

    def take_in(self) -> int:
        """Bring the catalog up to what people have said in the documents; how many items that changed.

        Raises:
            StorageError: a document cannot be read, or the catalog not be written.
        """
        states = self._states()
        if states == self._seen:
            return 0
        with self._lock:
            self._taken, unread = self._texts.digests()
            changed = self._read() if unread else 0
            self._seen = states
        return changed

    def _read(self) -> int:
        changed = 0
        with self._documents.lock(), self._store.changing():
            texts = self._texts.all()
            for name, text in texts.items():
                agent = self._agents()[name]
                changed += self._edited(agent, name, text.before, text.said)
                if text.digest != self._ledger.written(name).digest:
                    self._written.pop(agent, None)  # what it lacks is shown again
                    self._through = -1
                self._ledger.note_read(name, replace(text.as_read, text=self._numbered(name, text.said)))
        self._taken = {name: text.digest for name, text in texts.items()}
        return changed

    def _edited(self, whose: str, name: str, before: str, said: str) -> int:
        edits = fact_edits({name: (before, said)}, letter="M")
        done = [self._try(partial(self._catalog.delete, number)) for number in edits.gone]
        for number, (_, (_, text, _)) in edits.said.items():
            item = self._store.by_number([int(number[1:])])
            if item and item[0].status is not ItemStatus.LIVE:  # a line that was taken out stands again, as by an undo
                done.append(self._try(partial(self._catalog.restore, number)))
            if item and (changes := changes_of(item[0], text, self._permanent_from)):
                done.append(self._try(partial(self._catalog.update, number, changes)))
        for kind, text, _ in edits.added:
            line = read_line(text)
            priority = max(line.priority or 0, self._permanent_from) if line.pinned else line.priority
            draft = {"content": line.content, "type": kind, "ci_source": whose, "priority": priority}
            done.append(self._try(partial(self._catalog.store, draft)))
        return sum(done)

    def _try(self, change: Callable[[], object]) -> bool:
        try:
            change()
        except StorageError:
            raise
        except OrchestraMemError as error:
            logger.warning("a line of a catalog document is left as it is: %s", error)
            return False
        return True

    def forget(self, items: Sequence[MemoryItem]) -> None:
        """Take the lines of items out of the versions of their documents.

        Raises:
            StorageError: one could not be written.
        """
        for agent in {item.ci_source for item in items}:
            marks = tuple(f"(M{item.number})" for item in items if item.ci_source == agent)
            with self._lock, self._documents.lock():
                for version in self._documents.versions(name_of(agent)):
                    text = self._documents.read_version(version)
                    kept = "\n".join(row for row in text.split("\n") if not any(mark in row for mark in marks))
                    if kept != text:
                        self._documents.replace(Path(version.path), kept, expected=text, name="purge")

    @property
    def due(self) -> bool:
        """Whether an item has changed since the documents were last written."""
        return self._store.last_change() != self._through

    def write(self, reason: VersionReason = VersionReason.REFRESH) -> None:
        """Write anew the documents of the agents whose items have changed since, with what people have said by now.

        Raises:
            StorageError: one could not be written.
        """
        with self._lock:
            for tries in range(WRITE_TRIES, 0, -1):
                self.take_in()
                through = self._store.last_change()
                try:
                    self._write_due(reason)
                except DocumentConflictError:  # somebody has saved it since: what that says is taken in first
                    if tries == 1:
                        raise
                else:
                    self._through = through
                    return

    def _write_due(self, reason: VersionReason) -> None:
        for agent in self._store.agents():
            change = self._store.last_change(agent)
            if change == self._written.get(agent):
                continue
            self._folder.mkdir(parents=True, exist_ok=True)
            where = ItemFilter(agents=[agent], limit=MOST_SHOWN, by_priority=True)
            items = sorted(self._store.items(where), key=lambda item: item.number)
            text = render_catalog(agent, items, self._store.count(where), self._clock())
            for error in self._writer.write_all({name_of(agent): text}, reason, self._taken).values():
                raise error
            self._written[agent] = change


def name_of(agent: str) -> str:
    """Name the document of an agent: by its name where that can be a file's, else by a hash beside what can."""
    if _PLAIN.fullmatch(agent):
        return f"{_PREFIX}{agent}"
    plain = re.sub(r"[^a-z0-9_.-]+", "-", agent.lower()).strip("-.")[:40]
    return f"{_PREFIX}{plain or 'agent'}-{hashlib.sha256(agent.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"

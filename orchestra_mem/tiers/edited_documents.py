"""The documents that the machine writes and people edit: a table of them by name, and those of the catalog."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path

from orchestra_mem.catalog_types import CatalogStore, ItemFilter, ItemStatus, MemoryItem
from orchestra_mem.core.documents.catalog_document import (
    MOST_SHOWN,
    changes_of,
    document_name,
    kept_name,
    read_line,
    render_catalog,
    shown_name,
)
from orchestra_mem.core.documents.conflicts import ConflictBlock, Resolved, accept, find_conflicts, reject
from orchestra_mem.core.documents.markdown import line_end
from orchestra_mem.core.documents.owned_lines import fact_edits, with_numbers
from orchestra_mem.core.text import squeeze
from orchestra_mem.errors import DocumentError, NotFoundError, OrchestraMemError, StorageError
from orchestra_mem.ports import Clock, DocumentStore, Ledger
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.tiers.document_writer import DocumentWriter
from orchestra_mem.types import Author, DocumentFault, FileState, Json, Version, VersionReason


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedEdit:
    """What came of an edit of a text that may have changed since.

    `text` was saved; it `is_merged` where it also has what came since. Where the edit `collides` with the `current`
    text nothing was saved, and `text` has the lines of both.
    """

    text: str
    current: str
    is_merged: bool = False
    collides: bool = False


class EditedDocuments:
    """Gives documents, their earlier texts, conflicts and faults by name: `project_state`, `catalog/reviewer`.

    Args:
        writers: write the documents, each those that it has the names of.
    """

    def __init__(self, *writers: DocumentWriter) -> None:
        self.writers = writers
        self._store = writers[0].store

    def names(self) -> list[str]:
        """Name the documents that there are."""
        return [shown_name(name) for writer in self.writers for name in writer.names()]

    def find(self, document: str, *, others: tuple[str, ...] = ()) -> tuple[DocumentWriter, str]:
        """Return who writes a document, and the name that it goes by there. `others` are what else may be asked for.

        Raises:
            NotFoundError: there is no such document.
        """
        wanted = kept_name(document)
        for writer in self.writers:
            if wanted in writer.names():
                return writer, wanted
        known = ", ".join([*self.names(), *others])
        raise NotFoundError(f"there is no document {document!r}; there are: {known}")

    def path(self, document: str) -> Path:
        """Where a document lies; see `find`."""
        writer, name = self.find(document)
        return writer.path(name)

    def text(self, document: str) -> str:
        """A document as it stands, empty where there is none; raises where something else than a file stands there."""
        return self._store.read(self.path(document)) or ""

    def history(self, document: str) -> list[Version]:
        """The kept versions of a document, oldest first; also of a session document, by the stem of its file.

        Raises:
            NotFoundError: there is no such document.
        """
        return self._store.versions(kept_name(document)) or self._store.versions(self.find(document)[1])

    def _version(self, document: str, sequence: int | None) -> Version:
        """A version by its number, by default the newest."""
        versions = self._store.versions(self.find(document)[1])
        found = [version for version in versions if sequence in (None, version.sequence)]
        if not found:
            kept = ", ".join(str(version.sequence) for version in versions) or "none"
            wanted = "any version" if sequence is None else f"version {sequence}"
            raise NotFoundError(f"{document} does not have {wanted}; kept are: {kept}")
        return found[-1]

    def diff(self, document: str, sequence: int | None = None, until: int | None = None) -> str:
        """Unified difference from a version (by default the newest) to another one, by default the text as it stands.

        Raises:
            NotFoundError: there is no such document or version.
        """
        version = self._version(document, sequence)
        old = self._store.read_version(version).splitlines(keepends=True)
        after = self.text(document) if until is None else self._store.read_version(self._version(document, until))
        name, end = document.removesuffix(".md"), "now" if until is None else f"version {until}"
        new = after.splitlines(keepends=True)
        found = unified_diff(old, new, f"{name} (version {version.sequence})", f"{name} ({end})")
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in found)

    def restore(self, document: str, sequence: int) -> Version:
        """Put an earlier text back, word for word; the present one becomes a version.

        Returns:
            The version that keeps what stood there, or the restored one where nothing did.

        Raises:
            NotFoundError: there is no such document or version.
        """
        writer, name = self.find(document)
        with self._store.lock():
            version = self._version(document, sequence)
            old = self._store.read_version(version)
            current = self._store.read(self.path(document))
            if current == old:
                return version
            return writer.put(name, old, expected=current, reason=VersionReason.RESTORE, point="restore") or version

    def save(self, document: str, text: str, *, expected: str) -> None:
        """Save a whole text for a person; the present one becomes a version.

        Raises:
            NotFoundError: there is no such document.
            DocumentConflictError: it no longer holds `expected`.
        """
        writer, name = self.find(document)
        there = expected or (None if self._store.read(self.path(document)) is None else "")  # deleted, read as empty
        writer.put(name, text, expected=there, reason=VersionReason.EDIT, point="restore")

    def save_edit(self, document: str, text: str, *, opened: str) -> SavedEdit:
        """Save what a person has made of the text that was `opened`, merged with what has come since.

        Where both have changed the same lines nothing is saved: then it is for the person to put them together.

        Raises:
            NotFoundError: there is no such document.
            DocumentConflictError: somebody has saved it this instant.
        """
        from orchestra_mem.core.documents.merge import merge

        with self._store.lock():
            current = self.text(document)
            ends = line_end(current)
            opened, text = (each.replace("\r\n", "\n").replace("\n", ends) for each in (opened, text))
            found = merge(opened, current, text)
            if found.conflicts:
                together = merge(opened, current, text, both=True)
                return SavedEdit(text=together.text, current=current, collides=True)
            if found.text != current:
                self.save(document, found.text, expected=current)
        return SavedEdit(text=found.text, current=current, is_merged=found.text != text)

    def unread(self) -> list[str]:
        """Name the documents that people have saved and that the memory has not read since."""
        return [shown_name(name) for writer in self.writers for name in writer.unread()]

    def conflicts(self) -> list[tuple[str, ConflictBlock]]:
        """The collisions that wait for a person's word, document by document; what is no document has none."""
        waiting: list[tuple[str, ConflictBlock]] = []
        for name in self.names():
            with suppress(DocumentError):
                waiting += [(name, block) for block in find_conflicts(self.text(name))]
        return waiting

    def resolve(self, conflict: str, *, accepted: bool, both: bool = False) -> tuple[str, Resolved]:
        """Let the machine's lines of a conflict take the place of the person's, or take them out, or keep both.

        Raises:
            NotFoundError: no document has a conflict with this id.
            DocumentConflictError: somebody has saved the document this instant.
        """
        with self._store.lock():
            waiting = self.conflicts()
            for document, block in waiting:
                if block.id == conflict:
                    writer, name = self.find(document)
                    text = self.text(document)
                    done = accept(text, conflict, both=both) if accepted or both else reject(text, conflict)
                    writer.put(name, done.text, expected=text, reason=VersionReason.EDIT, point="resolve")
                    return document, done
        there = ", ".join(block.id for _, block in waiting) or "none"
        raise NotFoundError(f"there is no conflict {conflict!r}; open are: {there}")

    def problems(self) -> list[Json]:
        """The conflicts that wait, as `status` shows what is wrong."""
        waits = "conflict {0.id} in line {0.line} waits for you: `orchestra-mem conflicts`"
        with suppress(StorageError):  # told as the document's own problem
            return [{"subject": name, "since": None, "problem": waits.format(each)} for name, each in self.conflicts()]
        return []

    def faults(self) -> list[DocumentFault]:
        """What is wrong with the documents on disk; each is served as far as it can be meanwhile."""
        return [fault for path in map(self.path, self.names()) for fault in self._store.faults(path)]

    def states(self) -> Mapping[str, FileState | None]:
        """What tells whether the documents have changed, without reading them."""
        names = [(writer.path, name) for writer in self.writers for name in writer.names()]
        return {shown_name(name): self._store.state(path(name)) for path, name in names}


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
        return self.states() != self._seen or self.writers[0].looks_again

    def take_in(self) -> None:
        """Bring the catalog up to what people have said in the documents.

        Raises:
            StorageError: a document cannot be read, or the catalog not be written.
        """
        states = self.states()
        if states == self._seen and not self.writers[0].looks_again:
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

        with self._lock, self._store.lock():
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

"""Access by name to the documents that the machine writes and people edit, including the catalog's documents."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from functools import partial
from pathlib import Path

from orchestra_mem.catalog_types import ItemFilter, ItemStatus, MemoryItem
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
from orchestra_mem.core.documents.episodic import signed, with_time_of
from orchestra_mem.core.documents.fact_lines import fact_edits, with_numbers
from orchestra_mem.core.documents.markdown import line_end
from orchestra_mem.core.text import squeeze, visible
from orchestra_mem.errors import DocumentError, NotFoundError, OrchestraMemError, StorageError
from orchestra_mem.ports import DocumentStore
from orchestra_mem.stores import CatalogStore, Ledger
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.tiers.document_writer import DocumentWriter
from orchestra_mem.types import Author, DocumentFault, FileState, Json, MustKeepStatus, Version, VersionReason


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedEdit:
    """Result of saving an edit of a document that may have changed since it was opened.

    `text` is the saved text; `is_merged` is true if it includes changes that others saved since. `current` is the text
    before the save. If the edit `collides` with those changes, nothing is saved, and `text` has both sides' lines.
    """

    text: str
    current: str
    is_merged: bool = False
    collides: bool = False


class EditedDocuments:
    """Reads and changes documents and their versions. Names are, for example, `project_state` or `catalog/reviewer`.

    Args:
        writers: Each manages the documents in its `names()`.
    """

    def __init__(self, *writers: DocumentWriter) -> None:
        self.writers = writers
        self.store = writers[0].store

    def names(self) -> list[str]:
        """List the names of all documents."""
        return [shown_name(name) for writer in self.writers for name in writer.names()]

    def find(self, document: str, *, others: tuple[str, ...] = ()) -> tuple[DocumentWriter, str]:
        """Return the writer of a document, and the document's name in that writer.

        Raises:
            NotFoundError: there is no such document. The message also lists `others` as possible names.
        """
        wanted = kept_name(document)
        for writer in self.writers:
            if wanted in writer.names():
                return writer, wanted
        known = ", ".join([*self.names(), *others])
        raise NotFoundError(f"there is no document {document!r}; use one of: {known}")

    def path(self, document: str) -> Path:
        """Return the path of a document. Raises like `find`."""
        writer, name = self.find(document)
        return writer.path(name)

    def text(self, document: str) -> str:
        """Return a document's present text, empty if it has no file. Raises `DocumentError` for an unreadable file."""
        return self.store.read(self.path(document)) or ""

    def history(self, document: str) -> list[Version]:
        """List the kept versions of a document, oldest first. Session documents are named by the stem of their file.

        Raises:
            NotFoundError: there is no such document.
        """
        return self.store.versions(kept_name(document)) or self.store.versions(self.find(document)[1])

    def _version(self, document: str, sequence: int | None) -> Version:
        """Return a version by its sequence number, by default the newest."""
        versions = self.store.versions(self.find(document)[1])
        found = [version for version in versions if sequence in (None, version.sequence)]
        if not found:
            kept = ", ".join(str(version.sequence) for version in versions) or "none"
            wanted = "any version" if sequence is None else f"version {sequence}"
            raise NotFoundError(f"{document} does not have {wanted}; kept versions: {kept}")
        return found[-1]

    def diff(self, document: str, sequence: int | None = None, until: int | None = None) -> str:
        """Return the unified diff from version `sequence` (default: newest) to `until` (default: the present text).

        Raises:
            NotFoundError: there is no such document or version.
        """
        version = self._version(document, sequence)
        old = self.store.read_version(version).splitlines(keepends=True)
        after = self.text(document) if until is None else self.store.read_version(self._version(document, until))
        name, end = document.removesuffix(".md"), "now" if until is None else f"version {until}"
        new = after.splitlines(keepends=True)
        found = unified_diff(old, new, f"{name} (version {version.sequence})", f"{name} ({end})")
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in found)

    def restore(self, document: str, sequence: int) -> Version:
        """Restore an earlier text, word for word. The present text becomes a version.

        Only the time of writing in the front matter is that of the machine's last text: whoever edits the restored text
        has not edited an old one.

        Returns:
            The version of the replaced text; the restored version if no file or no different text was replaced.

        Raises:
            NotFoundError: there is no such document or version.
        """
        writer, name = self.find(document)
        with self.store.lock():
            version = self._version(document, sequence)
            current = self.store.read(self.path(document))
            old = with_time_of(self.store.read_version(version), writer.last_written(name, current).left or "")
            if current == old:
                return version
            return writer.put(name, old, expected=current, reason=VersionReason.RESTORE, point="restore") or version

    def save(self, document: str, text: str, *, expected: str) -> None:
        """Save a person's complete text. The present text becomes a version.

        Raises:
            NotFoundError: there is no such document.
            DocumentConflictError: the document's text is no longer `expected`.
        """
        writer, name = self.find(document)
        there = expected or (None if self.store.read(self.path(document)) is None else "")  # `text` is "" for no file
        writer.put(name, text, expected=there, reason=VersionReason.EDIT, point="restore")

    def save_edit(self, document: str, text: str, *, opened: str) -> SavedEdit:
        """Save a person's edit of the text `opened`, merged with the changes made to the document since.

        If the edit and those changes touch the same lines, nothing is saved, and the person has to combine them.

        Raises:
            NotFoundError: there is no such document.
            DocumentConflictError: someone saved the document at this moment.
        """
        from orchestra_mem.core.documents.merge import merge

        with self.store.lock():
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
        """List the documents that people have saved since the memory last read them."""
        return [shown_name(name) for writer in self.writers for name in writer.unread()]

    def conflicts(self) -> list[tuple[str, ConflictBlock]]:
        """List the unresolved conflicts, each with its document's name. Unreadable documents are skipped."""
        waiting: list[tuple[str, ConflictBlock]] = []
        for name in self.names():
            with suppress(DocumentError):
                waiting += [(name, block) for block in find_conflicts(self.text(name))]
        return waiting

    def resolve(self, conflict: str, *, accepted: bool, both: bool = False) -> tuple[str, Resolved]:
        """Resolve a conflict: take the machine's lines if `accepted`, both sides' lines if `both`, else the person's.

        Raises:
            NotFoundError: no document has a conflict with this id.
            DocumentConflictError: someone saved the document at this moment.
        """
        with self.store.lock():
            waiting = self.conflicts()
            for document, block in waiting:
                if block.id == conflict:
                    writer, name = self.find(document)
                    text = self.text(document)
                    done = accept(text, conflict, both=both) if accepted or both else reject(text, conflict)
                    writer.put(name, done.text, expected=text, reason=VersionReason.EDIT, point="resolve")
                    return document, done
        there = ", ".join(block.id for _, block in waiting) or "none"
        raise NotFoundError(f"there is no conflict {conflict!r}; open conflicts: {there}")

    def problems(self) -> list[Json]:
        """Return the unresolved conflicts in the format that `status` shows."""
        waits = "conflict {0.id} in line {0.line} is unresolved: see `orchestra-mem conflicts`"
        with suppress(StorageError):  # `faults` reports it
            return [{"subject": name, "since": None, "problem": waits.format(each)} for name, each in self.conflicts()]
        return []

    def faults(self) -> list[DocumentFault]:
        """List the faults of the documents on disk. A faulty document is still served as far as possible."""
        return [fault for path in map(self.path, self.names()) for fault in self.store.faults(path)]

    def states(self) -> Mapping[str, FileState | None]:
        """Return the documents' file states by name, to detect changes without reading them."""
        names = [(writer.path, name) for writer in self.writers for name in writer.names()]
        return {shown_name(name): self.store.state(path(name)) for path, name in names}


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
    _named: tuple[int, dict[str, str]] = field(default_factory=lambda: (0, {}), init=False)

    def __post_init__(self) -> None:
        """Create the writer of the documents."""
        writer = DocumentWriter(
            ledger=self.ledger, store=self.store, clock=self.catalog.clock, names=self._agents, numbered=self._numbered,
            told=self._told, path=lambda name: self.folder / f"{shown_name(name)}.md", by_people=self._by_people,
            keep_versions=self.keep_versions,
        )  # fmt: skip
        super().__init__(writer)

    def _agents(self) -> dict[str, str]:
        """Return the agents by the names of their documents. Cached until an item changes."""
        change = self.items.last_change()
        if change != self._named[0]:
            self._named = change, {document_name(agent): agent for agent in self.items.agents()}
        return self._named[1]

    def _numbered(self, name: str, text: str) -> str:
        """Add the numbers of items to the lines that people wrote."""
        items = self.items.items(ItemFilter(agents=[self._agents()[name]], limit=MOST_SHOWN))
        known = {squeeze(item.content): f"M{item.number}" for item in items if item.author is Author.PERSON}
        return with_numbers(name, text, lambda said: known.get(read_line(said).content)) if known else text

    def _told(self, name: str) -> dict[str, list[str]]:
        items = self.items.items(ItemFilter(agents=[self._agents()[name]], statuses=tuple(ItemStatus)))
        return {f"M{item.number}": [visible(item.content)] for item in items}

    def _by_people(self, numbers: Collection[str]) -> set[str]:
        items = self.items.by_number([int(number[1:]) for number in numbers if number[0] == "M"])
        gone = ItemStatus.DELETED
        return {f"M{item.number}" for item in items if item.author is Author.PERSON or item.status is gone}

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
        for number, (_, (_, text, _)) in edits.said.items():
            if number in struck:
                continue
            item = self.items.by_number([int(number[1:])])
            if item and item[0].status is not ItemStatus.LIVE:  # a deleted line is back, as after an undo
                _try(self.catalog.restore, number)
            if item and (changes := changes_of(item[0], text, permanent_from)):
                _try(self.catalog.update, number, changes)
        for kind, text, _ in edits.added:
            line = read_line(text)
            priority = max(line.priority or 0, permanent_from) if line.pinned else line.priority
            draft = {"content": line.content, "type": kind, "ci_source": whose, "priority": priority}
            _try(self.catalog.store, draft)

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
                for version in self.store.versions(document_name(agent)):
                    text = self.store.read_version(version)
                    if (kept := without(text)) != text:
                        self.store.replace(Path(version.path), kept, expected=text, name="purge")

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

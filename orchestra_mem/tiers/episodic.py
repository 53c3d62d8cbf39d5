"""Episodic memory: project state, work plan, decision log. Written by the machine, read and edited by people.

The machine writes a document by merging its new text with what people made of its last one: a person's lines stand,
and where both changed the same lines the machine's are shown below them in a marked block. Every earlier text is a
version first.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from functools import lru_cache
from itertools import accumulate, takewhile
from pathlib import Path

from orchestra_mem.core.documents.conflicts import without_conflicts
from orchestra_mem.core.documents.episodic import ProjectView, render_document
from orchestra_mem.core.documents.markdown import Block, split_blocks
from orchestra_mem.core.documents.owned_lines import with_numbers
from orchestra_mem.core.text import squeeze
from orchestra_mem.design_names import EpisodicCalls
from orchestra_mem.errors import DocumentConflictError, NotFoundError, StorageError
from orchestra_mem.ports import Clock, DocumentStore, Ledger, TokenCounter
from orchestra_mem.tiers.document_texts import PersonTexts
from orchestra_mem.tiers.document_writer import DocumentWriter
from orchestra_mem.tiers.short_forms import ShortForms
from orchestra_mem.tiers.work_plan import WorkPlan
from orchestra_mem.types import Author, DocumentFault, DocumentName, Json, MustKeepStatus, Version, VersionReason

logger = logging.getLogger(__name__)


class EpisodicMemoryManager(EpisodicCalls, use="open_memory(project, config=config).episodic_memory"):
    """The third tier. Safe to share between threads and processes: writes are locked and conditional."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        store: DocumentStore,
        counter: TokenCounter,
        clock: Clock,
        folder: Path,
        keep_versions: int,
        work: WorkPlan,
        size_tokens: int = 0,
        short_share: float = 0.25,
    ) -> None:
        self._ledger = ledger
        self._store = store
        self._counter = counter
        self.folder = folder
        self._work = work
        self.texts = PersonTexts(
            ledger=ledger, store=store, path=self.path, names=lambda: DocumentName, numbered=self._numbered,
            by_people=self._by_people,
        )  # fmt: skip
        self._writer = DocumentWriter(self.texts, clock=clock, keep_versions=keep_versions)
        self.put = self._writer.put
        self.short_forms = ShortForms(
            ledger=ledger, counter=counter, clock=clock, blocks=self._whole, size_tokens=size_tokens, share=short_share
        )

    def path(self, name: str) -> Path:
        """Where a document lies."""
        return self.folder / f"{name}.md"

    def _numbered(self, name: str, text: str) -> str:
        """A document in which what people have written bears the numbers that it got; all else stays byte for byte."""
        if name == DocumentName.WORK_PLAN:
            text = self._work.numbered(text)
        known = {squeeze(fact.text): f"K{fact.id}" for fact in self._ledger.by_hand()}
        return with_numbers(name, text, known.get) if known else text

    def _by_people(self, numbers: Sequence[str]) -> set[str]:
        """Of some facts those that people wrote or took out."""
        removed = MustKeepStatus.REMOVED
        facts = self._ledger.must_keeps_by_id([int(number[1:]) for number in numbers if number[0] == "K"])
        return {
            f"K{each.id}"
            for each in facts
            if each.author is Author.PERSON and (not each.operation or each.status is removed)
        }

    def update(
        self, view: ProjectView, reason: VersionReason, taken: Mapping[str, str] | None = None
    ) -> dict[str, StorageError]:
        """Write all documents anew from what is known; those that say the same already stay untouched.

        Args:
            view: what is known, the edits in the files of the digests in `taken` among it.
            reason: why the texts before become versions.
            taken: see `HandEditManager.taken`. A document that somebody has saved since is left for another try; None
                where nobody looks for edits.

        Returns:
            The documents that could not be written and why; the others are written all the same.
        """
        return self._writer.write_all({name: render_document(name, view) for name in DocumentName}, reason, taken)

    def create_missing(self, view: ProjectView) -> None:
        """Write the documents that are not there; the others stay untouched, and so do those that come back meanwhile.

        Raises:
            StorageError: one could not be written.
        """
        missing = [name for name in DocumentName if self._store.state(self.path(name)) is None]
        texts: dict[str, str] = {name: render_document(name, view) for name in missing}
        # An editor may have moved its file away for a moment: what comes back is read before it is written.
        for error in self._writer.write_all(texts, VersionReason.REFRESH, taken={}).values():
            if not isinstance(error, DocumentConflictError):
                raise error

    def write(self, name: DocumentName, text: str, reason: VersionReason) -> bool:
        """Merge the machine's new text into a document.

        Returns:
            Whether the file was changed.

        Raises:
            DocumentError: something else than a file stands there, or it is being saved all the time.
            StorageError: the disk refused; the document is as before.
        """
        before = self._store.state(self.path(name))
        for error in self._writer.write_all({name: text}, reason).values():
            raise error
        return self._store.state(self.path(name)) != before

    def text(self, name: DocumentName) -> str:
        """A document as it stands, empty where there is none.

        Raises:
            DocumentError: something else than a file stands there.
        """
        return self._store.read(self.path(name)) or ""

    def blocks(self, name: DocumentName) -> tuple[Block, ...]:
        """A document's blocks without its front matter, as contexts show them; none where nothing can be."""
        return tuple(map(self._work.corrected, self.short_forms.shown(name, self._whole(name))))

    def _whole(self, name: DocumentName) -> tuple[Block, ...]:
        try:
            text = self._store.read_shown(self.path(name)) or ""
        except StorageError as error:  # told as the document's fault
            logger.debug("%s", error)
            return ()
        return _shown_blocks(text)

    def get_project_state(self, max_tokens: int) -> str:
        """What stands in `project_state.md`, as much of it as fits."""
        return self._fitting(DocumentName.PROJECT_STATE, max_tokens)

    def get_work_plan(self, max_tokens: int) -> str:
        """What stands in `work_plan.md`, as much of it as fits."""
        return self._fitting(DocumentName.WORK_PLAN, max_tokens)

    def _fitting(self, name: DocumentName, max_tokens: int) -> str:
        texts = accumulate(block.text for block in self.blocks(name))
        return max(takewhile(lambda text: self._counter.count(text) <= max_tokens, texts), key=len, default="")

    def get_recent_decisions(self, max_tokens: int) -> list[str]:
        """The newest entries of `decision_log.md` that fit together, oldest first."""
        chosen = [block.text.strip() for block in self.blocks(DocumentName.DECISION_LOG) if block.level == 3]
        while chosen and self._counter.count("\n".join(chosen)) > max_tokens:
            del chosen[0]
        return chosen

    def search(self, query: str, max_results: int = 5) -> list[str]:
        """Lines that hold the query, upper and lower case alike, with the document's name in front."""
        wanted = query.casefold()
        found = [
            f"[{name.value}.md] {line}"
            for name in DocumentName
            for block in self._whole(name)
            for line in block.text.splitlines()
            if wanted in line.casefold()
        ]
        return found[: max(0, max_results)]

    def history(self, document: str) -> list[Version]:
        """The kept versions of a document, oldest first; also of a session document, by the stem of its file.

        Raises:
            NotFoundError: there is no such document.
        """
        stem = document.removesuffix(".md")
        versions = self._store.versions(stem)
        return versions or self._store.versions(_document(stem).value)

    def _version(self, name: DocumentName, sequence: int | None) -> Version:
        """A version by its number, by default the newest."""
        versions = self._store.versions(name.value)
        found = [version for version in versions if sequence in (None, version.sequence)]
        if not found:
            kept = ", ".join(str(version.sequence) for version in versions) or "none"
            wanted = "any version" if sequence is None else f"version {sequence}"
            raise NotFoundError(f"{name.value} does not have {wanted}; kept are: {kept}")
        return found[-1]

    def diff(self, document: str, sequence: int | None = None) -> str:
        """Unified difference from a version (by default the newest) to the document as it stands.

        Raises:
            NotFoundError: there is no such document or version.
        """
        name = _document(document)
        version = self._version(name, sequence)
        before, after = self._store.read_version(version), self.text(name)
        old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
        names = f"{name.value} (version {version.sequence})", f"{name.value} (now)"
        return "".join(unified_diff(old, new, *names))

    def restore(self, document: str, sequence: int) -> Version:
        """Put an earlier text back, word for word; the present one becomes a version.

        Returns:
            The version that keeps what stood there, or the restored one where nothing did.

        Raises:
            NotFoundError: there is no such document or version.
        """
        name = _document(document)
        with self._store.lock():
            version = self._version(name, sequence)
            old = self._store.read_version(version)
            current = self._store.read(self.path(name))
            if current == old:
                return version
            return (
                self._writer.put(name, old, expected=current, reason=VersionReason.RESTORE, point="restore") or version
            )

    def faults(self) -> list[DocumentFault]:
        """What is wrong with the documents on disk; each is served as far as it can be meanwhile."""
        return [
            DocumentFault(path=str(self.path(name)), line=line, problem=problem)
            for name in DocumentName
            for line, problem in self._store.faults(self.path(name))
        ]

    def get_stats(self) -> dict[str, Json]:
        """Tokens of each document and the number of versions."""
        sizes = {name: sum(self._counter.count(block.text) for block in self._whole(name)) for name in DocumentName}
        versions = sum(len(self._store.versions(name.value)) for name in DocumentName)
        return {**{f"{name.value}_tokens": size for name, size in sizes.items()}, "version_count": versions}

    def states(self) -> Mapping[DocumentName, object]:
        """What tells whether the documents have changed, without reading them."""
        return {name: self._store.state(self.path(name)) for name in DocumentName}


def _document(name: str) -> DocumentName:
    try:
        return DocumentName(name.removesuffix(".md"))
    except ValueError:
        known = ", ".join(known.value for known in DocumentName)
        raise NotFoundError(f"there is no document {name!r}; there are: {known}") from None


@lru_cache(maxsize=len(DocumentName))
def _shown_blocks(text: str) -> tuple[Block, ...]:
    """A document's blocks as contexts show them, without front matter and conflicts; a refresh asks several times."""
    return tuple(block for block in split_blocks(without_conflicts(text)) if not block.front)

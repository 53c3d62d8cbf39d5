"""Episodic memory: project state, work plan, decision log. Written by the machine, read and edited by people.

The machine writes a document by merging its new text with what people made of its last one: a person's lines stand,
and where both changed the same lines the machine's are shown below them in a marked block. Every earlier text is a
version first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from functools import lru_cache
from itertools import accumulate, takewhile
from pathlib import Path

from orchestra_mem.core.documents.agreement import merged
from orchestra_mem.core.documents.conflicts import mark, without_conflicts
from orchestra_mem.core.documents.episodic import ProjectView, digest, render_document, timeless, with_later_time
from orchestra_mem.core.documents.markdown import Block, split_blocks
from orchestra_mem.design_names import EpisodicCalls
from orchestra_mem.errors import DocumentConflictError, NotFoundError, StorageError
from orchestra_mem.ports import Clock, DocumentStore, Ledger, TokenCounter
from orchestra_mem.tiers.document_texts import PersonTexts
from orchestra_mem.tiers.short_forms import ShortForms
from orchestra_mem.tiers.work_plan import WorkPlan
from orchestra_mem.types import Author, DocumentFault, DocumentName, Json, Version, VersionReason, WrittenDocument

logger = logging.getLogger(__name__)

# So often is a document tried that somebody saves at the same moment.
WRITE_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A document to be written: the machine's text, what it makes of what stands there, and what stands there."""

    name: DocumentName
    text: str
    merged: str
    current: str | None
    last: WrittenDocument


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
        self._clock = clock
        self.folder = folder
        self._keep_versions = keep_versions
        self._work = work
        self.texts = PersonTexts(ledger=ledger, store=store, path=self.path, with_item_numbers=work.numbered)
        self.short_forms = ShortForms(
            ledger=ledger, counter=counter, clock=clock, blocks=self._whole, size_tokens=size_tokens, share=short_share
        )

    def path(self, name: DocumentName) -> Path:
        """Where a document lies."""
        return self.folder / f"{name.value}.md"

    def update(
        self, view: ProjectView, reason: VersionReason, taken: Mapping[DocumentName, str] | None = None
    ) -> dict[DocumentName, StorageError]:
        """Write all documents anew from what is known; those that say the same already stay untouched.

        Args:
            view: what is known, the edits in the files of the digests in `taken` among it.
            reason: why the texts before become versions.
            taken: see `HandEditManager.taken`. A document that somebody has saved since is left for another try; None
                where nobody looks for edits.

        Returns:
            The documents that could not be written and why; the others are written all the same.
        """
        return self._write_all({name: render_document(name, view) for name in DocumentName}, reason, taken)

    def integrate_session(
        self, view: ProjectView, taken: Mapping[DocumentName, str] | None = None
    ) -> dict[DocumentName, StorageError]:
        """Take in what an ended session has brought; see `update`."""
        return self.update(view, VersionReason.FLUSH, taken)

    def create_missing(self, view: ProjectView) -> None:
        """Write the documents that are not there; the others stay untouched, and so do those that come back meanwhile.

        Raises:
            StorageError: one could not be written.
        """
        missing = [name for name in DocumentName if self._store.state(self.path(name)) is None]
        texts = {name: render_document(name, view) for name in missing}
        # An editor may have moved its file away for a moment: what comes back is read before it is written.
        for error in self._write_all(texts, VersionReason.REFRESH, taken={}).values():
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
        for error in self._write_all({name: text}, reason).values():
            raise error
        return self._store.state(self.path(name)) != before

    def _write_all(
        self, texts: Mapping[DocumentName, str], reason: VersionReason, taken: Mapping[DocumentName, str] | None = None
    ) -> dict[DocumentName, StorageError]:
        """Merge the machine's new texts into their documents; those that could not be written, and why.

        Where somebody saves meanwhile it is merged anew, unless the texts depend on what people have saved.
        """
        failed: dict[DocumentName, StorageError] = {}
        waiting = dict(texts)
        try:
            with self._store.lock():
                for _ in range(WRITE_TRIES if taken is None else 1):
                    found = self._write_once(waiting, reason, taken)
                    failed = {name: error for name, error in failed.items() if name not in waiting} | found
                    waiting = {name: texts[name] for name in found if isinstance(found[name], DocumentConflictError)}
                    if not waiting:
                        break
        except StorageError as error:
            # Neither document was done for sure: the lock, or the flushing of a folder at the end.
            failed.update(dict.fromkeys(waiting, error))
        return failed

    def _write_once(
        self, texts: Mapping[DocumentName, str], reason: VersionReason, taken: Mapping[DocumentName, str] | None
    ) -> dict[DocumentName, StorageError]:
        """All versions first, then all documents, so that the disk is waited for once for each folder."""
        plans: dict[DocumentName, _Plan] = {}
        failed: dict[DocumentName, StorageError] = {}

        def plan(name: DocumentName) -> None:
            if found := self._plan(name, texts[name], taken):
                plans[name] = found

        def all_but_failed(names: Iterable[DocumentName], step: Callable[[DocumentName], None]) -> None:
            for name in names:
                try:
                    if name not in failed:
                        step(name)
                except StorageError as error:  # the other documents are written all the same
                    failed[name] = error

        all_but_failed(texts, plan)
        with self._store.syncing_once():
            all_but_failed(plans, lambda name: self._announce(plans[name], reason))
            all_but_failed(plans, lambda name: self._replace(name, plans[name].merged, plans[name].current))
        all_but_failed(plans, lambda name: self._confirm(name, plans[name].text, plans[name].merged))
        return failed

    def _announce(self, plan: _Plan, reason: VersionReason) -> None:
        name, last = plan.name, plan.last
        if last != self._ledger.written(name.value):
            # A killed process has done that write: what is announced next takes its place in the ledger.
            self._confirm(name, last.text or "", last.left or "")
        self._ledger.announce_write(name.value, plan.text, digest(plan.merged), plan.merged)
        if plan.current is not None:
            self._keep(name, plan.current, last, reason)
        elif last.left is not None:
            logger.warning(
                "%s is gone: a new one is begun; its last text is version %d (`orchestra-mem history %s`)",
                self.path(name),
                self._keep_version(name, last.left, Author.MACHINE, VersionReason.EDIT).sequence,
                name.value,
            )

    def _replace(self, name: DocumentName, text: str, expected: str | None, point: str = "document") -> None:
        self._store.replace(self.path(name), text, expected=expected, name=point)

    def _confirm(self, name: DocumentName, text: str, left: str) -> None:
        self._ledger.keep_left(name.value, left)
        self._ledger.confirm_write(name.value, text, digest(left), left)
        self._store.prune_versions(name.value, self._keep_versions)

    def _plan(self, name: DocumentName, text: str, taken: Mapping[DocumentName, str] | None) -> _Plan | None:
        """What is to be written; None where a document would say the same: then its file is left as it is."""
        current = self._store.read_to_change(self.path(name))
        last = self.texts.last_written(name, current)
        text = with_later_time(text, last.text or "")
        untouched = current is not None and last.digest == digest(current)
        if untouched and last.left == current and last.text is not None and timeless(last.text) == timeless(text):
            return None
        if current is None:
            return _Plan(name=name, text=text, merged=text, current=None, last=last)
        if taken is not None and current.strip() and digest(current) not in (last.digest, taken.get(name)):
            raise DocumentConflictError(f"{self.path(name)}: somebody has saved it since it was read")
        _, said = self.texts.edit_of(name, current, last)
        found = merged(last.text, text, said)
        marked = mark(found, current)
        if found.conflicts:
            logger.warning(
                "%s: you and the machine have changed the same lines; yours stand, the machine's are shown below them: "
                "`orchestra-mem conflicts`",
                self.path(name),
            )
        if timeless(marked) != timeless(current):
            return _Plan(name=name, text=text, merged=marked, current=current, last=last)
        # The file stays as it is and whose it is. What was said in it has been there from here on, as if it were
        # written: an older text that is saved over it takes nothing of it out. A person's file bears no digest of the
        # machine's: who saves the machine's last text over it has taken back what they said.
        if not untouched and not self._is_newest(name, current):
            self._keep(name, current, last, VersionReason.EDIT)
        self._store.prune_versions(name.value, self._keep_versions)
        self._ledger.confirm_write(name.value, text, (untouched and last.digest) or "", current)
        return None

    def _keep(self, name: DocumentName, text: str, last: WrittenDocument, reason: VersionReason) -> Version:
        """Keep a text as a version, and where it is a person's, first the one that they made it of."""
        author = Author.MACHINE if last.digest == digest(text) else Author.PERSON
        if author is Author.PERSON and last.left is not None and not self._is_newest(name, last.left):
            # What the person took out stands only in the text before.
            self._keep_version(name, last.left, Author.MACHINE, VersionReason.EDIT)
        return self._keep_version(name, text, author, reason)

    def _keep_version(self, name: DocumentName, text: str, author: Author, reason: VersionReason) -> Version:
        return self._store.keep_version(name.value, text, time=self._clock(), author=author, reason=reason)

    def _is_newest(self, name: DocumentName, text: str) -> bool:
        with suppress(StorageError):  # one that cannot be read is kept again
            versions = self._store.versions(name.value)
            return bool(versions) and self._store.read_version(versions[-1]) == text
        return False

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
            return self.put(name, old, expected=current, reason=VersionReason.RESTORE, point="restore") or version

    def put(
        self, name: DocumentName, text: str, *, expected: str | None, reason: VersionReason, point: str
    ) -> Version | None:
        """Write a whole text for a person, after keeping as a version what stood there; None where nothing did.

        Raises:
            DocumentConflictError: the document no longer holds `expected`.
        """
        kept = None
        with self._store.lock():
            if expected is not None:
                kept = self._keep(name, expected, self.texts.last_written(name, expected), reason)
            self._replace(name, text, expected, point)
        return kept

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

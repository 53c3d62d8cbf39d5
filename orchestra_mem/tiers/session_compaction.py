"""Compact the session document: replace old entries by summaries, and old summaries by a summary of the next level.

The ledger is written first and the document second. After a crash in between, writing the document again repairs it.
"""

from __future__ import annotations

import logging
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from orchestra_mem.core.documents.entries import NAME_FIELDS, Entry, first_field, plain_text
from orchestra_mem.core.documents.markdown import Block
from orchestra_mem.core.documents.session_document import SessionDocument, apply_summaries
from orchestra_mem.core.summaries.compaction import Limits, cut_segments, due, merged_summary, merges, summary_of
from orchestra_mem.core.text import visible
from orchestra_mem.errors import NotFoundError
from orchestra_mem.ports import TokenCounter
from orchestra_mem.stores import Ledger
from orchestra_mem.tiers.draft_placing import DraftPlacer, body, says
from orchestra_mem.tiers.fact_extractor import HEAVIEST, FactExtractor
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.types import Author, Operation, Session, Summary, VersionReason

if TYPE_CHECKING:
    from orchestra_mem.core.summaries.drafts import Draft, Material, Source

logger = logging.getLogger(__name__)

# Fields that name the task of an operation. Segments are not cut inside a task.
_TASK_FIELDS = ("task_id", "task", "story_id", "story", "ticket", "issue")
# Characters of an operation that a summariser reads, from both ends. Facts are extracted from the complete operation.
_MOST_READ = 2_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """Result of one compaction: the new summaries, how many operations they cover, and the document's tokens."""

    summaries: tuple[Summary, ...] = ()
    covered_operations: int = 0
    tokens_before: int = 0
    tokens_after: int = 0

    @property
    def ratio(self) -> float:
        """Tokens of the new level-1 summaries divided by tokens of the entries they cover. 0 if there are none."""
        first = [summary for summary in self.summaries if summary.level == 1]
        source = sum(summary.source_tokens for summary in first)
        return sum(summary.tokens for summary in first) / source if source else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """Result of a refresh. `used_tokens` is the size of the new context, `milliseconds` how long the caller waited."""

    spilled_operations: int
    compacted: Compacted
    used_tokens: int
    milliseconds: float


@dataclass(slots=True, eq=False)
class SessionCompactor:
    """Keeps the session document within its size limits."""

    memory: SessionMemoryManager
    _: KW_ONLY
    limits: Limits
    window: timedelta
    drafts: DraftPlacer
    facts: FactExtractor
    _left_tokens: int = field(default=0, init=False)
    _drafts: dict[tuple[Material, int], Draft] = field(default_factory=dict, init=False)

    def excess(self) -> float:
        """Return by how much the live document exceeds its limit, as a share of its threshold; negative if it does not.

        The limit is the threshold. If the last compaction could not reach that, because people pinned or wrote so much,
        it is the size that was left plus one segment.
        """
        limit = threshold = self.limits.threshold
        if self._left_tokens > threshold:
            limit = self._left_tokens + self.limits.segment
        return (self.memory.token_count() - limit) / threshold

    def compact(self, session: Session) -> Compacted:
        """Compact the entries and summaries that are due, and update the states of facts in the document.

        The facts of these entries must have been extracted before.
        """
        with self.memory.store.lock():
            self.drafts.place()
            before = self.memory.token_count()
            text = self.memory.text(session)
            # If the document has an entry that a summary covers, a person put it back: do not summarise it again.
            left = self._with_summaries(session, text)
            made = list(self._new_summaries(session, left))
            new = [summary for summary, _ in made]
            if left != text or any(is_edited for _, is_edited in made):
                # The entries that the summaries replace contain a person's words: keep them as a version first.
                self._keep_version(session, text)
            if new:
                self.memory.ledger.add_summaries(new)
            self.settle(session, known=text)
            after = self.memory.token_count()
        self._left_tokens = after
        self._drafts.clear()
        covered = sum(summary.operation_count for summary in new if summary.level == 1)
        return Compacted(summaries=tuple(new), covered_operations=covered, tokens_before=before, tokens_after=after)

    def draft_ahead(self, session: Session, coming: Sequence[Entry]) -> bool:
        """Draft and cache one summary that the next refresh will need. Return whether there may be more to draft.

        `coming` are the entries that the refresh will spill before it compacts.
        """
        known = len(self._drafts)
        return any(len(self._drafts) > known for _ in self._new_summaries(session, self.memory.text(session), coming))

    def resume(self, session: Session) -> None:
        """Reconcile the document of an unfinished session with the event log and the ledger."""
        self.memory.resume(session)
        self.settle(session)

    def settle(self, session: Session, *, known: str | None = None) -> None:
        """Update the document from the ledger: insert its summaries and the present states of facts. Idempotent.

        If summaries replace entries, the old text is kept as a version first, unless it equals `known`: a text that
        needs no version, because it has been kept already or people changed none of these entries.
        """
        self.drafts.show(session)

        def change(text: str) -> str:
            settled = self._with_summaries(session, text)
            if settled != text and text != known:
                self._keep_version(session, text)
            return self.memory.with_present_states(settled)

        self.memory.rewrite(session, change, name="compact")

    def _with_summaries(self, session: Session, text: str) -> str:
        """Replace the entries and summaries in a document by the ledger's summaries that cover them."""
        standing = self.memory.ledger.summaries(session.id, standing=True)
        shown = SessionDocument.parse(text).summaries().keys()
        merged: dict[int, int] = {}
        for number in shown - {summary.id for summary in standing}:
            with suppress(NotFoundError):  # a person's own heading
                summary = self.memory.ledger.summary(number)
                if summary.parent and summary.session == session.id:
                    merged[number] = summary.first_operation
        return apply_summaries(text, standing, merged)

    def _new_summaries(
        self, session: Session, text: str, coming: Sequence[Entry] | None = None
    ) -> Iterator[tuple[Summary, bool]]:
        """Yield the summaries that are due, each with whether a person edited an entry or summary that it covers.

        coming: Entries that the next refresh will spill, for drafting ahead; the newest segment is then left out.
        """
        document = SessionDocument.parse(text)
        known = self.memory.ledger.summaries(session.id, standing=True)
        standing, rewritten = _as_shown(known, document.summaries(), self.memory.counter)
        entries = document.entries()
        sources, edited = self._due(session, entries, coming or ())
        borders = [entry for entry, block in entries.items() if block.pinned]
        borders += [summary.first_operation for summary in known]
        segments = list(self._segments(sources, sorted(borders)))
        if coming is not None:
            del segments[-1:]  # the newest may still grow
        number = self.memory.ledger.next_summary_id()
        for first, segment in segments:
            draft = self._draft(segment)
            if draft.passed:
                made = summary_of(
                    draft, segment, session=session.id, number=number, first=first, created=self.memory.clock()
                )
                changed = not edited.isdisjoint(source.operation for source in segment)
                standing.append(replace(made, edited=changed or made.operation_count != len(segment)))
                number += 1
                yield standing[-1], changed
            elif coming is None:
                logger.warning(
                    "operations %s to %s are kept verbatim: their summary was not shorter or failed the check",
                    segment[0].operation, segment[-1].operation,
                )  # fmt: skip
        standing.sort(key=lambda summary: summary.first_operation)
        while taken := merges(standing, self.limits):
            changed = any(summary.id in rewritten for summary in taken)
            # This draft cannot fail the check: its shortest form only names the facts that its parts quote or name.
            draft = self._drafted(summary_material(self.memory.ledger, taken), self.limits.summary)
            made = replace(merged_summary(draft, taken, number=number, created=self.memory.clock()), edited=changed)
            standing = [made, *(summary for summary in standing if summary not in taken)]
            standing.sort(key=lambda summary: summary.first_operation)
            number += 1
            yield made, changed

    def _segments(self, sources: Sequence[Source], borders: Sequence[int]) -> Iterator[tuple[int, Sequence[Source]]]:
        """Yield segments, each with the first operation covered: deleted entries just before a segment belong to it.

        No segment spans a border: a pinned entry, which stays verbatim, or an operation that has a summary already.
        """
        for _, group in groupby(sources, key=lambda source: bisect(borders, source.operation)):
            behind = 0
            for segment in cut_segments(list(group), self.limits.segment):
                yield behind or segment[0].operation, segment
                behind = segment[-1].operation + 1

    def _due(
        self, session: Session, entries: Mapping[int, Block], coming: Sequence[Entry]
    ) -> tuple[list[Source], set[int]]:
        """Return the operations to compact now, oldest first, and the ids of operations that a person has edited."""
        edited: set[int] = set()
        blocks = {n: block for n, block in entries.items() if not block.pinned and n <= session.spilled_through}
        if not blocks:
            return [], edited
        outline = [row for row in self.memory.log.outline(session.id, min(blocks) - 1) if row[0] in blocks]
        new = [(each.operation.id, each.operation.entry_tokens, each.operation.timestamp) for each in coming]
        tokens = self.memory.token_count() + sum(size for _, size, _ in new)
        count = due([*outline, *new], document_tokens=tokens, window=self.window, limits=self.limits)
        if not count:
            return [], edited
        sources: list[Source] = []
        for entry in self.memory.entries(session, [row[0] for row in outline[:count]]):
            operation = entry.operation
            shown, own = blocks[operation.id].text, entry.text.rstrip()
            if shown.rstrip() == own:
                sources.append(read_source(operation))
            else:
                edited.add(operation.id)
                sources.append(replace(_source_of(operation, visible(body(shown))), weight=HEAVIEST))
        return sources, edited

    def _draft(self, segment: Sequence[Source]) -> Draft:
        tokens = sum(source.tokens for source in segment)
        target = int(tokens * self.limits.summary / self.limits.segment)
        from orchestra_mem.core.summaries.drafts import Material

        first, last = segment[0].operation, segment[-1].operation
        facts = self.memory.ledger.must_keeps(first_operation=first, last_operation=last)
        return self._drafted(Material.of_operations(segment, facts), target)

    def _drafted(self, material: Material, target_tokens: int) -> Draft:
        """Return the draft of a summary, from the cache if it was drafted ahead."""
        key = material, target_tokens
        if key not in self._drafts:
            from orchestra_mem.core.summaries.drafts import draft_of  # lazy import: few commands compact

            self._drafts[key] = draft_of(material, target_tokens=target_tokens, counter=self.memory.counter)
        return self._drafts[key]

    def _keep_version(self, session: Session, text: str) -> None:
        path, now = self.memory.place.document(session), self.memory.clock()
        self.memory.store.keep_version(
            path.stem, text, time=now, author=Author.PERSON, reason=VersionReason.COMPACTION, like=path
        )


def summary_material(ledger: Ledger, summaries: Sequence[Summary]) -> Material:
    """Return the material of summaries with the present states of their facts, without facts that people removed."""
    from orchestra_mem.core.summaries.drafts import Material

    texts = ledger.with_states([each.text for each in summaries])
    return Material.of_summaries([replace(each, text=text) for each, text in zip(summaries, texts, strict=True)])


def read_source(operation: Operation) -> Source:
    """Convert an operation into a source for summarising; its text is empty if it is a line that was not understood."""
    return _source_of(operation, "" if operation.is_not_understood else plain_text(operation, max_chars=_MOST_READ))


def _source_of(operation: Operation, text: str) -> Source:
    """Convert an operation into a source whose text is `text`."""
    from orchestra_mem.core.summaries.drafts import Source

    return Source(
        operation=operation.id,
        time=operation.timestamp,
        type=operation.type,
        text=text,
        tokens=operation.entry_tokens,
        task=first_field(operation.data, _TASK_FIELDS),
        speaker=first_field(operation.data, (*NAME_FIELDS, "role")),
        weight=_weight(operation),
    )


def _weight(operation: Operation) -> float:
    """Weigh an operation, ignoring its text: 1.5 if critical or said by a user, else 1.

    A program's output weighs 0.5, and 0.2 if it only shows a file's content.
    """
    if operation.critical:
        return 1.5
    data = operation.data
    if isinstance(data, dict):
        if data.get("role") in ("user", "human") or operation.type in ("nl_command", "user_message"):
            return 1.5
        if "output" in data or "stdout" in data:
            from orchestra_mem.core.facts.prose import outputs_file_content

            return 0.2 if outputs_file_content(operation) else 0.5
    return 1.0


def _as_shown(
    known: Sequence[Summary], blocks: Mapping[int, Block], counter: TokenCounter
) -> tuple[list[Summary], set[int]]:
    """Return the unpinned summaries with their texts in the document, and the ids of those that people rewrote."""
    standing: list[Summary] = []
    rewritten: set[int] = set()
    for summary in known:
        block = blocks.get(summary.id)
        if block is not None and block.pinned:
            continue
        if block is not None and not says(block, summary.text):
            rewritten.add(summary.id)
            text = visible(body(block.text))
            summary = replace(summary, text=text, tokens=max(summary.tokens, counter.count(text)))
        standing.append(summary)
    return standing, rewritten

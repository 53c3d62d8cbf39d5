"""Improve summaries with a model: of the ledger (drafts until the next epoch), and of catalog items.

An item's summary consists of its own sentences, verbatim and in order, and must pass the same check as other summaries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from orchestra_mem.catalog_types import ItemStatus, MemoryItem
from orchestra_mem.compression.compressor import Compressed, MemoryCompressor, content_of
from orchestra_mem.compression.timeouts import InterruptedGenerationError, never
from orchestra_mem.core.fact_kinds import CLOSING_ROWS
from orchestra_mem.core.summaries.compaction import Limits
from orchestra_mem.core.summaries.drafts import Draft, Material, check, material_of, paragraphs_of
from orchestra_mem.core.summaries.extractive import Passage
from orchestra_mem.core.text import split_sentences, squeeze, word_count
from orchestra_mem.job_types import SummaryDraft
from orchestra_mem.ports import Clock, TokenCounter
from orchestra_mem.stores import CatalogStore, DraftStore, EventLog, Ledger
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.tiers.session_compaction import read_source, summary_material
from orchestra_mem.tiers.session_ending import NOTED, with_lines
from orchestra_mem.types import EXTRACTIVE, MustKeepStatus, Operation, OperationFilter, Summary


def marked_summary(
    material: Material, base: Draft, lines: Sequence[Passage], counter: TokenCounter, max_words: int
) -> Draft | None:
    """Combine must-keeps, lines that a model chose, and sentences of the extract, in this priority, up to a size.

    Args:
        material: The item's text and its must-keeps. The check requires all of them, unless they exceed `max_words`.
        base: The extract.
        lines: Valid lines, most important first.
        counter: Counts tokens.
        max_words: Upper limit for the summary.

    Returns:
        The summary; None if it would have no line that the extract lacks, or if the check rejects it.
    """
    whole, extract = squeeze(material.source_text), squeeze(base.text)
    marked = [squeeze(line.text) for line in lines]
    if word_count(" ".join(squeeze(fact.text) for fact in material.facts)) > max_words:
        material = replace(material, facts=())
    wanted = [*(squeeze(fact.text) for fact in material.facts), *marked, *map(squeeze, split_sentences(base.text))]
    chosen: list[str] = []
    for sentence in wanted:
        more = [*(each for each in chosen if each not in sentence), sentence]
        known = any(sentence in each for each in chosen)
        if sentence in whole and not known and word_count(" ".join(more)) <= max_words:
            chosen = more
    if not any(line in chosen and line not in extract for line in marked):
        return None
    draft = check(material, " ".join(sorted(chosen, key=whole.find)), counter)
    return draft if draft.passed else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSummarizer:
    """Improves the summaries of catalog items with sentences that a model chooses; on failure the extract stays."""

    compressor: MemoryCompressor
    catalog: MemoryCatalog
    store: CatalogStore
    counter: TokenCounter
    max_words: int

    def may_better(self, item: MemoryItem) -> bool:
        """Check whether an item is live and has an extractive summary (not given, not improved) that shortens it."""
        is_extract = item.summary_method == EXTRACTIVE and item.summary_tokens < item.tokens
        return is_extract and item.status is ItemStatus.LIVE

    def improve(self, number: int, *, cancelled: Callable[[], bool]) -> Compressed | None:
        """Improve the summary of an item with the model. Return None if the summary is not to be improved.

        Raises:
            InterruptedGenerationError: `cancelled` returned True, or the item was changed meanwhile.
        """
        item = next(filter(self.may_better, self.store.by_number([number])), None)
        if item is None:
            return None
        material = _material(item)
        base = Draft(text=item.summary, tokens=item.summary_tokens, source_tokens=item.tokens)
        done = self.compressor.improve(
            material, base, target_tokens=item.summary_tokens + self.max_words, content="item", cancelled=cancelled,
            merge=lambda lines: marked_summary(material, base, lines, self.counter, self.max_words),
            subject=f"M{number}",
        )  # fmt: skip
        if done.verdict.good and not self.catalog.better_summary(item, done.text, done.method):
            raise InterruptedGenerationError  # not a failure: the job is requeued and reads the changed item
        return done


def _material(item: MemoryItem) -> Material:
    # Lazy import: it loads the classifier, and importing the package must stay fast.
    from orchestra_mem.core.facts.extraction import find_in_text

    facts = find_in_text(item.content, operation=item.number, timestamp=item.timestamp)
    return Material.of_passages(paragraphs_of(item.content), item.tokens, facts)


HIGHER, DOCUMENT = "summaries", "document"
# Prose extracts fill the size of a short form, so lines of the model may enlarge it by this factor.
_WITH_LINES = 1.25


@dataclass(frozen=True, slots=True)
class SummaryRefiner:
    """Drafts better summaries from the recorded operations; for a short form, from the section that it summarises."""

    compressor: MemoryCompressor
    log: EventLog
    ledger: Ledger
    drafts: DraftStore
    counter: TokenCounter
    clock: Clock
    limits: Limits
    section: Callable[[Summary], str | None]

    def why_not(self, summary: Summary) -> str:
        """Return the reason why a summary cannot be improved, as a message; empty if it can."""
        if summary.parent:
            return f"it was merged into S{summary.parent}"
        if summary.edited:
            return "people have changed or removed part of its content, and the recorded operations do not show that"
        if summary.document and self.section(summary) is None:
            return f"the text of {summary.document} has changed"
        return ""

    def improve(self, number: int, *, insist: bool = False, cancelled: Callable[[], bool] = never) -> Compressed | None:
        """Improve a summary with the model, and store a draft if it is better. Return None if it cannot be improved.

        Args:
            number: Id of the summary.
            insist: Whether to ask the model even if it has mostly failed with such content.
            cancelled: Polled during generation, which ends once it returns True.

        Raises:
            NotFoundError: There is no such summary.
            InterruptedGenerationError: `cancelled` returned True.
        """
        summary = self.ledger.summary(number)
        if self.why_not(summary):
            return None
        base = Draft(
            text=summary.text, tokens=summary.tokens, source_tokens=summary.source_tokens,
            must_keeps=summary.must_keeps, put_back=summary.put_back,
        )  # fmt: skip
        if summary.level or summary.document:
            material, target, content = self._material(summary)
            done = self.compressor.improve(
                material, base, target_tokens=target, content=content, subject=f"S{number}", insist=insist,
                cancelled=cancelled,
            )  # fmt: skip
        else:
            done = self._session(summary, base, insist=insist, cancelled=cancelled)
        if done.verdict.good:
            draft = SummaryDraft(
                summary=number, base=summary.text, text=done.text, tokens=done.tokens, method=done.method,
                must_keeps=done.must_keeps, put_back=done.put_back, verdict=done.verdict.value,
                seconds=done.talk.seconds, created=self.clock(),
            )  # fmt: skip
            self.drafts.put(draft)
        return done

    def _material(self, summary: Summary) -> tuple[Material, int, str]:
        """Return the source of a summary, its maximum size in tokens, and the kind of its source for the trial log."""
        target = int(summary.source_tokens * self.limits.summary / self.limits.segment)
        if summary.document:
            text = self.section(summary) or ""
            material = material_of(paragraphs_of(text), self.counter.count(text), self.clock())
            return material, int(_WITH_LINES * target), DOCUMENT
        if summary.children:
            children = [self.ledger.summary(child) for child in summary.children]
            return summary_material(self.ledger, children), self.limits.summary, HIGHER
        operations = uncovered(summary, self.log)
        facts = self.ledger.must_keeps(first_operation=summary.first_operation, last_operation=summary.last_operation)
        sources = list(map(read_source, operations))
        return Material.of_operations(sources, facts), target, content_of(operations)

    def _session(self, summary: Summary, base: Draft, *, insist: bool, cancelled: Callable[[], bool]) -> Compressed:
        """Add results that the extract lacks, if the model finds any, to the summary of an entire session."""
        material = self._session_material(summary)
        found, talk, verdict = self.compressor.session_notes(
            material, summary.text, room_tokens=self.limits.summary, subject=f"S{summary.id}", insist=insist,
            cancelled=cancelled,
        )  # fmt: skip
        model = self.compressor.model
        text = with_lines(summary.text, _by_kind(found, self.clock())) if verdict.good else summary.text
        method = f"{EXTRACTIVE} + {model.name}" if model and verdict.good else summary.method
        return Compressed.of(material, replace(base, text=text, tokens=self.counter.count(text)), method, verdict, talk)

    def _session_material(self, summary: Summary) -> Material:
        """Return a session as its document shows it: summaries, and the operations that no summary covers.

        Facts that people deleted or reworded are cut from the text of the operations.
        """
        standing = self.ledger.summaries(summary.session, standing=True)
        rest = list(map(read_source, uncovered(summary, self.log, standing)))
        facts = self.ledger.must_keeps(first_operation=summary.first_operation, last_operation=summary.last_operation)
        changed = [fact for fact in facts if fact.status is MustKeepStatus.REMOVED or fact.found]
        return Material.of_operations(rest, changed, numbered=False).behind(summary_material(self.ledger, standing))


def uncovered(summary: Summary, log: EventLog, others: Sequence[Summary] = ()) -> list[Operation]:
    """Return the operations that a summary covers, without those that `others` cover.

    Only the summary of an entire session has others: the standing summaries of its session.
    """
    found: list[Operation] = []
    after = summary.first_operation - 1
    covered = [(other.first_operation, other.last_operation) for other in others]
    for first, last in [*covered, (summary.last_operation + 1, 0)]:
        if first > after + 1:
            found += log.operations(OperationFilter(session=summary.session, after=after, through=first - 1))
        after = max(after, last)
    return found


def _by_kind(found: Mapping[str, Sequence[str]], now: datetime) -> dict[str, list[str]]:
    """Group lines by key. A line stays under the model's key only if the classifier agrees; others go to `NOTED`."""
    # Lazy import: it loads the classifier, and importing the package must stay fast.
    from orchestra_mem.core.facts.extraction import find_in_text

    sorted_: dict[str, list[str]] = {}
    for kind, row in CLOSING_ROWS.items():
        for line in found.get(row.closing_key, ()):
            kinds = {fact.kind for fact in find_in_text(line, operation=0, timestamp=now)}
            sorted_.setdefault(row.closing_key if kind in kinds else NOTED, []).append(line)
    return sorted_

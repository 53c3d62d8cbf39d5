"""Better summaries with a model: those of the ledger, whose drafts wait for an epoch's border, and those of items.

An item's summary is made of its own sentences, word for word, in its order, under the check that other summaries have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from orchestra_mem.catalog_types import CatalogStore, ItemStatus, MemoryItem
from orchestra_mem.compression.compressed import Compressed
from orchestra_mem.compression.compressor import MemoryCompressor
from orchestra_mem.compression.timeouts import InterruptedGenerationError, never
from orchestra_mem.core.catalog.tags import word_count
from orchestra_mem.core.summaries.compaction import Limits
from orchestra_mem.core.summaries.drafts import Draft, Material, check
from orchestra_mem.core.summaries.extractive import Passage
from orchestra_mem.core.text import split_sentences, squeeze
from orchestra_mem.job_types import DraftStore, SummaryDraft
from orchestra_mem.ports import Clock, EventLog, Ledger, TokenCounter
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.tiers.episodic import section_material
from orchestra_mem.tiers.session_compaction import read_source, told_now
from orchestra_mem.tiers.session_ending import NOTED, with_lines
from orchestra_mem.types import EXTRACTIVE, MustKeepKind, MustKeepStatus, Operation, OperationFilter, Summary


def marked_summary(
    material: Material, base: Draft, lines: Sequence[Passage], counter: TokenCounter, max_words: int
) -> Draft | None:
    """Make a summary of must-keeps, the lines that a model has marked, and the extract's sentences, as many as fit.

    Args:
        material: the item's text and its must-keeps: they come first, and are not lost where all of them fit.
        base: the extract.
        lines: checked ones, the most wanted first.
        counter: counts tokens.
        max_words: how long it may be.

    Returns:
        None where no line that is new to the extract fits, or the check rejects the summary.
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
    """Has a model mark what an item's summary should say; what extraction made stands where that does not succeed."""

    compressor: MemoryCompressor
    catalog: MemoryCatalog
    store: CatalogStore
    counter: TokenCounter
    max_words: int

    def may_better(self, item: MemoryItem) -> bool:
        """Tell whether an item is longer than its summary, and that is none that somebody gave or a model bettered."""
        is_extract = item.summary_method == EXTRACTIVE and item.summary_tokens < item.tokens
        return is_extract and item.status is ItemStatus.LIVE

    def improve(self, number: int, *, cancelled: Callable[[], bool]) -> Compressed | None:
        """Let the model better the summary of an item; None where it stays as it is.

        Raises:
            InterruptedGenerationError: `cancelled` said so, or the item was changed meanwhile.
        """
        item = next(filter(self.may_better, self.store.by_number([number])), None)
        if item is None:
            return None
        material = _material(item)
        base = Draft(text=item.summary, tokens=item.summary_tokens, source_tokens=item.tokens)
        done = self.compressor.improve(
            material,
            base,
            target_tokens=item.summary_tokens + self.max_words,
            content="item",
            subject=f"M{number}",
            cancelled=cancelled,
            merge=lambda lines: marked_summary(material, base, lines, self.counter, self.max_words),
        )
        if done.verdict.good and not self.catalog.better_summary(item, done.text, done.method):
            raise InterruptedGenerationError  # nothing failed: the job waits, and looks at what the item says now
        return done


def _material(item: MemoryItem) -> Material:
    # Here, as the classifier is heavy and loads on first use: to import the package must stay quick.
    from orchestra_mem.core.facts.extraction import find_in_text

    paragraphs = [Passage(key=place, text=text) for place, text in enumerate(item.content.split("\n\n"), 1)]
    facts = find_in_text(item.content, operation=item.number, timestamp=item.timestamp)
    return Material.of_passages(paragraphs, item.tokens, facts)


HIGHER, DOCUMENT = "summaries", "document"
# Prose fills the size of a short form with extracts: so much larger may it be with a model's lines in it.
_WITH_LINES = 1.25
_KINDS = {
    "key_accomplishments": MustKeepKind.COMPLETION,
    "decisions_made": MustKeepKind.DECISION,
    "issues_encountered": MustKeepKind.FAILURE,
    "recommended_next_steps": MustKeepKind.OPEN_ITEM,
}


@dataclass(frozen=True, slots=True)
class SummaryRefiner:
    """Makes drafts. Reads what was recorded; of documents, the section alone that a short form is of."""

    compressor: MemoryCompressor
    log: EventLog
    ledger: Ledger
    drafts: DraftStore
    counter: TokenCounter
    clock: Clock
    limits: Limits
    section: Callable[[Summary], str | None]

    def why_not(self, summary: Summary) -> str:
        """Why a summary stays as it is, in words; empty where it may be bettered."""
        if summary.parent:
            return f"it has gone into S{summary.parent}"
        if summary.edited:
            return "people had changed or taken out some of what it covers, and operations do not tell that"
        if summary.document and self.section(summary) is None:
            return f"{summary.document} has another text now"
        return ""

    def improve(self, number: int, *, insist: bool = False, cancelled: Callable[[], bool] = never) -> Compressed | None:
        """Let the model better a summary; None where it stays as it is.

        Args:
            number: the summary's.
            insist: whether to ask even where the model has mostly failed with such content.
            cancelled: asked again and again; where it says yes, it ends there.

        Raises:
            NotFoundError: there is no such summary.
            InterruptedGenerationError: `cancelled` said so.
        """
        summary = self.ledger.summary(number)
        if self.why_not(summary):
            return None
        base = Draft(
            text=summary.text,
            tokens=summary.tokens,
            source_tokens=summary.source_tokens,
            must_keeps=summary.must_keeps,
            put_back=summary.put_back,
        )
        if summary.level or summary.document:
            material, target, content = self._material(summary)
            done = self.compressor.improve(
                material,
                base,
                target_tokens=target,
                content=content,
                subject=f"S{number}",
                insist=insist,
                cancelled=cancelled,
            )
        else:
            done = self._session(summary, base, insist=insist, cancelled=cancelled)
        if done.verdict.good:
            self.drafts.put(
                SummaryDraft(
                    summary=number,
                    base=summary.text,
                    text=done.text,
                    tokens=done.tokens,
                    method=done.method,
                    must_keeps=done.must_keeps,
                    put_back=done.put_back,
                    verdict=done.verdict.value,
                    seconds=done.talk.seconds,
                    created=self.clock(),
                )
            )
        return done

    def _material(self, summary: Summary) -> tuple[Material, int, str]:
        """What a summary is of, how large it may be, and the kind of what it is of."""
        target = int(summary.source_tokens * self.limits.summary / self.limits.segment)
        if summary.document:
            material = section_material(self.section(summary) or "", self.counter, self.clock)
            return material, int(_WITH_LINES * target), DOCUMENT
        if summary.children:
            children = [self.ledger.summary(child) for child in summary.children]
            return told_now(self.ledger, children), self.limits.summary, HIGHER
        operations = self.log.operations(
            OperationFilter(session=summary.session, after=summary.first_operation - 1, through=summary.last_operation)
        )
        facts = self.ledger.must_keeps(first_operation=summary.first_operation, last_operation=summary.last_operation)
        sources = list(map(read_source, operations))
        types = [operation.type for operation in operations]
        return Material.of_operations(sources, facts), target, max(dict.fromkeys(types), key=types.count)

    def _session(self, summary: Summary, base: Draft, *, insist: bool, cancelled: Callable[[], bool]) -> Compressed:
        """What a session came to, with the lines beside it that a model finds and the extract does not say."""
        material = self._session_material(summary)
        found, talk, verdict = self.compressor.session_notes(
            material,
            summary.text,
            room_tokens=self.limits.summary,
            subject=f"S{summary.id}",
            insist=insist,
            cancelled=cancelled,
        )
        model = self.compressor.model
        text = with_lines(summary.text, _by_kind(found, self.clock())) if verdict.good else summary.text
        method = f"{EXTRACTIVE} + {model.name}" if model and verdict.good else summary.method
        return Compressed.of(material, replace(base, text=text, tokens=self.counter.count(text)), method, verdict, talk)

    def _session_material(self, summary: Summary) -> Material:
        """A session as its document has it: summaries of what is older, and the operations that none covers.

        What a person took out or said in other words is not read in the words that it had.
        """
        standing = self.ledger.summaries(summary.session, standing=True)
        rest = [read_source(operation) for operation in self._between(standing, summary)]
        facts = self.ledger.must_keeps(first_operation=summary.first_operation, last_operation=summary.last_operation)
        changed = [fact for fact in facts if fact.status is MustKeepStatus.REMOVED or fact.found]
        return Material.of_operations(rest, changed, numbered=False).behind(told_now(self.ledger, standing))

    def _between(self, standing: list[Summary], whole: Summary) -> Iterator[Operation]:
        borders = [
            (whole.first_operation, whole.first_operation - 1),
            *((each.first_operation, each.last_operation) for each in standing),
            (whole.last_operation + 1, whole.last_operation),
        ]
        for (_, last), (following, _) in pairwise(borders):
            if following > last + 1:
                yield from self.log.operations(
                    OperationFilter(session=whole.session, after=last, through=following - 1)
                )


def _by_kind(found: Mapping[str, Sequence[str]], now: datetime) -> dict[str, list[str]]:
    """Lines under the keys of what they are: not by a model's word for it, but by the words of the line."""
    # Here, as the classifier is heavy and loads on first use: to import the package must stay quick.
    from orchestra_mem.core.facts.extraction import find_in_text

    sorted_: dict[str, list[str]] = {}
    for key, lines in found.items():
        for line in lines:
            kinds = {fact.kind for fact in find_in_text(line, operation=0, timestamp=now)}
            sorted_.setdefault(key if _KINDS[key] in kinds else NOTED, []).append(line)
    return sorted_

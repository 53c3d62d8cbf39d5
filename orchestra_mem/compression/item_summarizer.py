"""Betters the summary of an item of the catalog with a model, under the check that other summaries have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestra_mem.catalog_types import CatalogStore, ItemStatus, MemoryItem
from orchestra_mem.compression.compressed import Compressed
from orchestra_mem.compression.compressor import MemoryCompressor
from orchestra_mem.compression.timeouts import InterruptedGenerationError
from orchestra_mem.core.catalog.item_summaries import marked_summary
from orchestra_mem.core.summaries.drafts import Draft, Material
from orchestra_mem.core.summaries.extractive import Passage
from orchestra_mem.ports import TokenCounter
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.types import EXTRACTIVE


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

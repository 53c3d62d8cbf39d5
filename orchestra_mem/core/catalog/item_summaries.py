"""Put what a model marks in an item into its summary: sentences of the item, word for word, in the item's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchestra_mem.core.catalog.tags import word_count
from orchestra_mem.core.summaries.drafts import Draft, Material, check
from orchestra_mem.core.summaries.extractive import Passage
from orchestra_mem.core.text import split_sentences, squeeze
from orchestra_mem.ports import TokenCounter


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

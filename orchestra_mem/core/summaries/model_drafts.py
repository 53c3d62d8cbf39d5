"""A summary by extraction with lines of a model's beside it, and what both are made of.

What extraction chose stays, line by line; extraction seldom uses all of a summary's size, and what it leaves is for
lines that have passed their own check and bring news. Lines in the place of extracts were tried: a small model's say
more names and tear apart what belongs together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestra_mem.core.identifiers import find_identifiers, missing_identifiers
from orchestra_mem.core.summaries.compaction import Draft, Source, body_chars, checked, headings_of, passages_of
from orchestra_mem.core.summaries.extractive import Extract, Passage, extract, render, without_misquotes
from orchestra_mem.core.summaries.kept import KEPT, body_of, kept_lines, name_facts, squeeze, told
from orchestra_mem.core.summaries.model_lines import without_orders
from orchestra_mem.core.text import content_stems, split_sentences
from orchestra_mem.ports import TokenCounter
from orchestra_mem.types import MustKeep, MustKeepStatus, Summary

# A line that brings less than this many new words or names is not worth its place.
_LEAST_NEWS = 2
# Of a session a name alone tells nothing.
_LEAST_TOLD = 3
# Where a time or heading begins in a body, as `render` writes them.
_SECTION = re.compile(r"(?m)^(?=(?!- ).*:$)")
# When something was stands above it, and in the original.
_STAMP = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a summary is made of.

    `kept` stands below it, `facts` are what it may not lack, `must_keeps` their numbers; `extracted` tells that the
    passages are made of extracts themselves.
    """

    passages: tuple[Passage, ...]
    source_text: str
    source_tokens: int
    facts: tuple[MustKeep, ...] = ()
    kept: str = ""
    must_keeps: tuple[int, ...] = ()
    extracted: bool = False

    @classmethod
    def of_operations(cls, sources: Sequence[Source], facts: Sequence[MustKeep], *, numbered: bool = True) -> Material:
        """What operations say; `numbered` where their facts have numbers, as those in the ledger do."""
        standing = tuple(fact for fact in facts if fact.status is not MustKeepStatus.REMOVED)
        passages = passages_of(sources, facts)
        text = "\n".join(source.text for source in sources)
        return cls(
            passages=tuple(passages),
            source_text=f"{headings_of(passages)}\n{text}",
            source_tokens=sum(source.tokens for source in sources),
            facts=standing,
            kept=kept_lines(standing) if numbered else plain_kept(standing),
            must_keeps=tuple(fact.id for fact in standing) if numbered else (),
        )

    @classmethod
    def of_summaries(cls, children: Sequence[Summary]) -> Material:
        """What summaries tell; their facts are named by number."""
        numbers = tuple(sorted({number for child in children for number in child.must_keeps}))
        passages = tuple(Passage(key=child.first_operation, text=told(child.text)) for child in children)
        return cls(
            passages=passages,
            source_text="\n".join(passage.text for passage in passages),
            source_tokens=sum(child.tokens for child in children),
            kept=name_facts(numbers),
            must_keeps=numbers,
            extracted=True,
        )

    @classmethod
    def of_passages(cls, passages: Sequence[Passage], tokens: int, facts: Sequence[MustKeep] = ()) -> Material:
        """What a text says, in passages; `when` is the heading that one stands under."""
        text = "\n".join(passage.text for passage in passages)
        return cls(
            passages=tuple(passages),
            source_text=f"{headings_of(passages)}\n{text}",
            source_tokens=tokens,
            facts=tuple(facts),
            kept=plain_kept(facts),
        )

    def behind(self, earlier: Material) -> Material:
        """What another material says and then this one, of neither of which anything has to be kept."""
        return Material(
            extracted=self.extracted or earlier.extracted,
            passages=(*earlier.passages, *self.passages),
            source_text=f"{earlier.source_text}\n{self.source_text}",
            source_tokens=earlier.source_tokens + self.source_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """So much of a material as a model is given at once: passages, or one part of a long one."""

    passages: tuple[Passage, ...]

    @property
    def text(self) -> str:
        """What the model reads."""
        return "\n\n".join(passage.text for passage in self.passages)

    def halves(self) -> tuple[Chunk, ...]:
        """Two chunks with the same text; this one alone where it cannot be divided."""
        if len(self.passages) > 1:
            middle = len(self.passages) // 2
            return Chunk(passages=self.passages[:middle]), Chunk(passages=self.passages[middle:])
        (passage,) = self.passages
        sentences = split_sentences(passage.text)
        middle = len(sentences) // 2
        if not middle:
            return (self,)
        parts = "\n".join(sentences[:middle]), "\n".join(sentences[middle:])
        return tuple(Chunk(passages=(replace(passage, text=part),)) for part in parts)


def chunks_of(material: Material, most_chars: int, *, heard: str) -> list[Chunk]:
    """Divide a material, so that all of it is read; what a text `heard` says least of comes first."""
    chunks: list[Chunk] = []
    gathered: list[Passage] = []
    for passage in material.passages:
        text = without_orders(passage.text).strip()
        if passage.weight <= 0 or not text:
            continue
        if gathered and sum(len(each.text) for each in gathered) + len(text) > most_chars:
            chunks.append(Chunk(passages=tuple(gathered)))
            gathered = []
        gathered.append(replace(passage, text=text))
    if gathered:
        chunks.append(Chunk(passages=tuple(gathered)))
    chunks = [small for chunk in chunks for small in _divided(chunk, most_chars)]
    known = set(content_stems(heard))
    return sorted(chunks, key=lambda chunk: _share(known, content_stems(chunk.text)))


def _divided(chunk: Chunk, most_chars: int) -> Iterator[Chunk]:
    halves = chunk.halves() if len(chunk.text) > most_chars else (chunk,)
    if len(halves) == 1:
        yield chunk
        return
    for half in halves:
        yield from _divided(half, most_chars)


def _share(known: set[str], stems: Sequence[str]) -> float:
    return sum(stem in known for stem in stems) / len(stems) if stems else 1.0


def draft_of(material: Material, *, target_tokens: int, counter: TokenCounter) -> Draft:
    """A checked summary by extraction alone."""
    budget = body_chars(target_tokens, material.kept, material.source_text, counter)
    chosen = extract(material.passages, budget=budget, said=material.kept)
    return _checked(material, render(_sound(material, chosen)), counter)


def _sound(material: Material, lines: Sequence[Extract]) -> Sequence[Extract]:
    return without_misquotes(lines, material.source_text) if material.extracted else lines


def _checked(material: Material, body: str, counter: TokenCounter) -> Draft:
    draft = checked(body, material.facts, material.kept, material.source_text, material.source_tokens, counter)
    return replace(draft, must_keeps=material.must_keeps)


def improved(
    material: Material, base: Draft, lines: Sequence[Extract], *, target_tokens: int, counter: TokenCounter
) -> Draft | None:
    """The extract with as many lines beside it as bring news and have room; None where none does.

    Args:
        material: what the summary is of.
        base: the extract of it, each line of which stays.
        lines: checked ones, the most wanted first.
        target_tokens: how large it may be.
        counter: counts tokens.
    """
    chosen = list(_news(_sound(material, lines), base.text, target_tokens - base.tokens, counter))
    while chosen:
        draft = _checked(material, _beside(body_of(base.text), chosen), counter)
        if draft.verdict.passed and draft.tokens <= target_tokens:
            return draft
        chosen.pop()
    return None


def news_by_key(
    lines: Mapping[str, Sequence[str]], base: str, room: float, counter: TokenCounter
) -> dict[str, list[str]]:
    """Of lines under keys those that say something that a text does not, and fit in so many tokens together."""
    keys = list(lines)
    rows = [
        Extract(key=n, text=line, speaker="", when="")
        for n, key in enumerate(keys)
        for line in lines[key]
        if len(content_stems(line)) >= _LEAST_TOLD
    ]
    found: dict[str, list[str]] = {key: [] for key in keys}
    for row in _news(rows, base, room, counter):
        found[keys[row.key]].append(row.text)
    return found


def _news(lines: Sequence[Extract], base: str, room: float, counter: TokenCounter) -> Iterator[Extract]:
    """The lines that say something new and fit in so many tokens together."""
    known = {*content_stems(base), *find_identifiers(base)}
    for line in lines:
        bare = _STAMP.sub(" ", line.text)
        says = {*content_stems(bare), *find_identifiers(bare)}
        cost = counter.count(render([line]))
        if len(says - known) >= _LEAST_NEWS and cost <= room:
            known |= says
            room -= cost
            yield line


def _beside(body: str, lines: Sequence[Extract]) -> str:
    """A body with lines more, each at the end of what is under its time or heading, or under one of its own."""
    sections = [section for section in _SECTION.split(body) if section.strip()]
    for line in sorted(lines, key=lambda line: line.key):
        bullet = f"- {line.speaker}: {line.text}" if line.speaker else f"- {line.text}"
        for place, section in enumerate(sections):
            if section.partition("\n")[0] == f"{line.when}:" or not line.when:
                sections[place] = f"{section.rstrip()}\n{bullet}\n"
                break
        else:
            sections.append(f"{line.when}:\n{bullet}\n" if line.when else f"{bullet}\n")
            if all(_DAY.match(section) for section in sections):
                sections.sort(key=lambda section: section[:10])
    return "".join(sections)


def plain_kept(facts: Sequence[MustKeep]) -> str:
    """Must-keeps that have no number yet, as they stand below a summary."""
    lines = [f"- {fact.kind.value.capitalize()}: {squeeze(fact.text)}\n" for fact in facts]
    return f"\n{KEPT}\n\n" + "".join(dict.fromkeys(lines)) if lines else ""


def dropped_from(material: Material, text: str) -> tuple[str, ...]:
    """The identifiers of a material that a summary of it does not have."""
    return missing_identifiers(material.source_text, text)


def invented_in(material: Material, text: str) -> tuple[str, ...]:
    """The identifiers in a summary's own words that its material does not have."""
    return missing_identifiers(body_of(text), material.source_text)

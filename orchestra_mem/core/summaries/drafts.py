"""Make the text of a summary by extraction, and check it, whoever made it.

It is the best of what its material says, then every must-keep word for word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from orchestra_mem.core.identifiers import missing_identifiers
from orchestra_mem.core.summaries.extractive import Passage, extract, render, without_misquotes
from orchestra_mem.core.summaries.kept import KEPT, body_of, kept_lines, name_facts, squeeze, told
from orchestra_mem.ports import TokenCounter
from orchestra_mem.types import EXTRACTIVE, MustKeep, MustKeepStatus, Summary

_SAMPLE_CHARS = 400
# However much may not be lost, this share of a summary's size tells what happened: where many facts are found, others
# are not, and stand there. At 0.5 the summaries of recorded talk take 0.247 of its tokens, at 0.65 0.262; of 215 facts
# of dialogues none is lost after five compactions at either.
_LEAST_BODY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An operation as compaction sees it.

    `tokens` is the size of its entry, `text` what it says, `weight` how much that matters; 1 is usual.
    """

    operation: int
    time: datetime
    type: str
    text: str
    tokens: int
    task: str = ""
    speaker: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A checked summary that has no number yet.

    `invented` are the identifiers that its source lacks, `missing` the facts that it lacks itself.
    """

    text: str
    tokens: int
    source_tokens: int
    must_keeps: tuple[int, ...] = ()
    put_back: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()
    missing: tuple[MustKeep, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the summary may be believed."""
        return self.tokens < self.source_tokens and not self.invented and not self.missing

    def summary(
        self,
        *,
        number: int,
        session: str,
        level: int,
        operations: tuple[int, int, int],
        times: tuple[datetime, datetime],
        created: datetime,
        children: tuple[int, ...] = (),
    ) -> Summary:
        """Give it a place: of `operations` the first, the last and how many, of `times` the earliest and latest."""
        return Summary(
            id=number,
            session=session,
            level=level,
            first_operation=operations[0],
            last_operation=operations[1],
            operation_count=operations[2],
            children=children,
            text=self.text,
            method=EXTRACTIVE,
            tokens=self.tokens,
            source_tokens=self.source_tokens,
            must_keeps=self.must_keeps,
            dropped=(),
            put_back=self.put_back,
            since=times[0],
            until=times[1],
            created=created,
        )


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
        """Return what operations say; `numbered` where their facts have numbers, as those in the ledger do."""
        standing = tuple(fact for fact in facts if fact.status is not MustKeepStatus.REMOVED)
        passages = _passages_of(sources, facts)
        text = "\n".join(source.text for source in sources)
        return cls(
            passages=tuple(passages),
            source_text=f"{_headings_of(passages)}\n{text}",
            source_tokens=sum(source.tokens for source in sources),
            facts=standing,
            kept=kept_lines(standing) if numbered else _plain_kept(standing),
            must_keeps=tuple(fact.id for fact in standing) if numbered else (),
        )

    @classmethod
    def of_summaries(cls, children: Sequence[Summary]) -> Material:
        """Return what summaries tell; their facts are named by number."""
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
        """Return what a text says, in passages; `when` is the heading that one stands under."""
        text = "\n".join(passage.text for passage in passages)
        return cls(
            passages=tuple(passages),
            source_text=f"{_headings_of(passages)}\n{text}",
            source_tokens=tokens,
            facts=tuple(facts),
            kept=_plain_kept(facts),
        )

    def behind(self, earlier: Material) -> Material:
        """Return what another material says and then this one, of neither of which anything has to be kept."""
        return Material(
            extracted=self.extracted or earlier.extracted,
            passages=(*earlier.passages, *self.passages),
            source_text=f"{earlier.source_text}\n{self.source_text}",
            source_tokens=earlier.source_tokens + self.source_tokens,
        )

    def dropped_from(self, text: str) -> tuple[str, ...]:
        """Return the identifiers of it that a summary does not have."""
        return missing_identifiers(self.source_text, text)


def draft_of(material: Material, *, target_tokens: int, counter: TokenCounter) -> Draft:
    """Make a checked summary by extraction alone."""
    # Where no fact may be lacking, its names leave the body its room.
    least = int(target_tokens * _LEAST_BODY) if material.facts else 0
    room = max(target_tokens - counter.count(material.kept), least)
    budget = chars_for(room, "\n".join(passage.text for passage in material.passages), counter)
    chosen = extract(material.passages, budget=budget, said=material.kept)
    return checked(material, render(sound(material, chosen)), counter)


def sound(material: Material, lines: Sequence[Passage]) -> Sequence[Passage]:
    """Return the lines that quote nothing but what their source quotes, where that is made of extracts itself."""
    return without_misquotes(lines, material.source_text) if material.extracted else lines


def chars_for(tokens: int, text: str, counter: TokenCounter) -> int:
    """About as many characters as so many tokens have in a text, reckoned from samples of it.

    Choosing by characters spares a count for every sentence that is tried.
    """
    middle = len(text) // 2
    sample = f"{text[:_SAMPLE_CHARS]}\n{text[middle : middle + _SAMPLE_CHARS]}"
    return max(0, tokens * len(sample) // max(1, counter.count(sample)))


def checked(material: Material, body: str, counter: TokenCounter) -> Draft:
    """Put back what a body lacks, and take out what the check rejects, line by line and at last all of it."""
    draft = _with_kept(material, body, counter)
    if draft.invented:
        kept = [line for line in body.splitlines(keepends=True) if not any(name in line for name in draft.invented)]
        body = "".join(kept)
        draft = _with_kept(material, body, counter)
    if not draft.passed:
        draft = _with_kept(material, "", counter)
    said = squeeze(body)
    return replace(draft, put_back=tuple(fact.text for fact in material.facts if squeeze(fact.text) not in said))


def _with_kept(material: Material, body: str, counter: TokenCounter) -> Draft:
    text = "\n".join(piece.strip("\n") for piece in (body, material.kept) if piece.strip()) + "\n"
    return check(material, text, counter)


def check(material: Material, text: str, counter: TokenCounter) -> Draft:
    """Check a summary mechanically against its source."""
    squeezed = squeeze(text)
    return Draft(
        text=text,
        tokens=counter.count(text),
        source_tokens=material.source_tokens,
        must_keeps=material.must_keeps,
        invented=missing_identifiers(body_of(text), material.source_text),
        missing=tuple(fact for fact in material.facts if squeeze(fact.text) not in squeezed),
    )


def _plain_kept(facts: Sequence[MustKeep]) -> str:
    """Must-keeps that have no number yet, as they stand below a summary."""
    lines = [f"- {fact.kind.value.capitalize()}: {squeeze(fact.text)}\n" for fact in facts]
    return f"\n{KEPT}\n\n" + "".join(dict.fromkeys(lines)) if lines else ""


def _passages_of(sources: Sequence[Source], facts: Sequence[MustKeep]) -> list[Passage]:
    """What operations say, for choosing from it, without their must-keeps, which are said below it."""
    return [
        Passage(
            key=source.operation,
            text=_without_kept(source.text, facts, source.operation),
            speaker=source.speaker,
            when=f"{source.time:%Y-%m-%d}",
            weight=source.weight,
        )
        for source in sources
    ]


def _headings_of(passages: Sequence[Passage]) -> str:
    """What a summary may say of passages besides their texts: when, and who."""
    return "\n".join(dict.fromkeys(f"{passage.when}: {passage.speaker}" for passage in passages))


def _without_kept(text: str, facts: Sequence[MustKeep], operation: int) -> str:
    """A text without the must-keeps that are said below it anyway: nothing twice, nothing superseded unmarked.

    What a person took out is in no operation's text, and what one reworded not in the old words.
    """
    for fact in facts:
        if fact.operation == operation or fact.status is MustKeepStatus.REMOVED:
            text = text.replace(fact.found or fact.text, " ").replace(fact.text, " ")
    return text

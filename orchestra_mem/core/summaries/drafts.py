"""Draft the text of a summary by extraction, and check the text of any summary, extracted or from a model.

The text is the best sentences of its material, followed by every must-keep verbatim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from orchestra_mem.core.identifiers import missing_identifiers, quoted_names
from orchestra_mem.core.speakers import passage_of
from orchestra_mem.core.summaries.extractive import Passage, extract, render
from orchestra_mem.core.summaries.kept import body_of, kept_lines, name_facts, statements
from orchestra_mem.core.text import squeeze
from orchestra_mem.ports import TokenCounter
from orchestra_mem.serialize import local_day
from orchestra_mem.types import EXTRACTIVE, MustKeep, MustKeepStatus, Summary

_SAMPLE_CHARS = 400
# Share of a summary's size reserved for its body, however many must-keeps there are: where many facts are found, others
# are missed, and only the body can mention those. Summaries of recorded conversations take 0.247 of the tokens with
# 0.5, and 0.262 with 0.65. With either share, five compactions lose none of 215 facts of dialogues.
_LEAST_BODY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An operation as input of a compaction.

    `tokens`: Size of its entry. `text`: Its content. `weight`: Its importance, usually 1.
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

    `invented`: Identifiers in the text that the source lacks. `missing`: Facts that the text lacks.
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
        """Whether the check found no fault: the summary is shorter than its source, invents and misses nothing."""
        return self.tokens < self.source_tokens and not self.invented and not self.missing

    def summary(self, **others: Any) -> Summary:
        """Convert to a summary; `others` are the fields of `Summary` that a draft lacks."""
        known = {name: getattr(self, name) for name in ("text", "tokens", "source_tokens", "must_keeps", "put_back")}
        return Summary(**{"method": EXTRACTIVE, "children": (), "dropped": (), **known, **others})


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The source of a summary.

    `kept`: Section of must-keeps that ends the summary. `facts`: Facts that the summary must contain. `must_keeps`: Ids
    of the facts in `kept`. `extracted`: Whether the passages themselves consist of extracts.
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
        """Return the material of operations. `numbered`: Whether the facts have ids, as in the ledger."""
        standing = tuple(fact for fact in facts if fact.status is not MustKeepStatus.REMOVED)
        # Sentences are selected from the texts without the must-keeps, which the summary states below its body.
        passages = tuple(
            Passage(
                key=source.operation,
                text=_without_kept(source.text, facts, source.operation),
                speaker=source.speaker,
                when=local_day(source.time),
                weight=source.weight,
            )
            for source in sources
        )
        text = "\n".join(source.text for source in sources)
        return cls(
            passages=passages,
            source_text=f"{_headings_of(passages)}\n{text}",
            source_tokens=sum(source.tokens for source in sources),
            facts=standing,
            kept=kept_lines(standing, numbered=numbered),
            must_keeps=tuple(fact.id for fact in standing) if numbered else (),
        )

    @classmethod
    def of_summaries(cls, children: Sequence[Summary]) -> Material:
        """Return the material of summaries, whose facts are named by number; any line may be quoted.

        Each line is a passage, because the lines of different operations must not be joined.
        """
        numbers = tuple(sorted({number for child in children for number in child.must_keeps}))
        lines = [line for child in children for line in statements(child.text)]
        passages = tuple(
            Passage(key=place, text=text, speaker=label, is_fact=bool(label))
            for place, (label, text) in enumerate(lines)
        )
        return cls(
            passages=passages,
            source_text="\n".join(child.text for child in children),
            source_tokens=sum(child.tokens for child in children),
            kept=name_facts(numbers),
            must_keeps=numbers,
            extracted=True,
        )

    @classmethod
    def of_passages(cls, passages: Sequence[Passage], tokens: int, facts: Sequence[MustKeep] = ()) -> Material:
        """Return the material of a text in passages; the `when` of a passage is the heading above it."""
        text = "\n".join(passage.text for passage in passages)
        return cls(
            passages=tuple(passages),
            source_text=f"{_headings_of(passages)}\n{text}",
            source_tokens=tokens,
            facts=tuple(facts),
            kept=kept_lines(facts, numbered=False),
        )

    def behind(self, earlier: Material) -> Material:
        """Return `earlier` and this material as one, without their must-keeps."""
        return Material(
            extracted=self.extracted or earlier.extracted,
            passages=(*earlier.passages, *self.passages),
            source_text=f"{earlier.source_text}\n{self.source_text}",
            source_tokens=earlier.source_tokens + self.source_tokens,
        )

    def dropped_from(self, text: str) -> tuple[str, ...]:
        """Return the identifiers of the material that a summary lacks."""
        return missing_identifiers(self.source_text, text)


def paragraphs_of(text: str) -> list[Passage]:
    """Split a text at its blank lines."""
    return [Passage(key=n, text=each) for n, each in enumerate(text.split("\n\n")) if each.strip()]


def material_of(passages: Sequence[Passage], tokens: int, now: datetime) -> Material:
    """Return the material of a text of `tokens` tokens, with the facts in its passages."""
    # Lazy import: it loads NumPy, and importing the package must stay fast.
    from orchestra_mem.core.facts.extraction import find_in_text

    facts = [fact for each in passages for fact in find_in_text(each.text, operation=each.key, timestamp=now)]
    return Material.of_passages(passages, tokens, facts)


def draft_of(material: Material, *, target_tokens: int, counter: TokenCounter) -> Draft:
    """Make a checked summary by extraction alone."""
    # Facts that are only named by number take little room, so the body needs no reserve.
    least = int(target_tokens * _LEAST_BODY) if material.facts else 0
    room = max(target_tokens - counter.count(material.kept), least)
    budget = chars_for(room, "\n".join(passage.text for passage in material.passages), counter)

    def used(text: str) -> float:  # what is chosen may have other tokens than the source: prose among code
        return counter.count(text) / room

    chosen = extract(material.passages, budget=budget, said=material.kept, used=used)
    return checked(material, render(sound(material, chosen)), counter)


def sound(material: Material, lines: Sequence[Passage]) -> Sequence[Passage]:
    """Return the lines without misquotes if the material consists of extracts, else all lines.

    A sentence that begins or ends inside quotation marks can turn the quotation inside out. From an extract of extracts
    may so come a quotation of something that nobody said in one piece.
    """
    if not material.extracted:
        return lines
    there = quoted_names(material.source_text)
    return [line for line in lines if quoted_names(line.text) <= there]


def chars_for(tokens: int, text: str, counter: TokenCounter) -> int:
    """Estimate from samples of a text how many of its characters make `tokens` tokens.

    Selecting by characters saves a token count for every candidate sentence.
    """
    middle = len(text) // 2
    sample = f"{text[:_SAMPLE_CHARS]}\n{text[middle : middle + _SAMPLE_CHARS]}"
    return max(0, tokens * len(sample) // max(1, counter.count(sample)))


def checked(material: Material, body: str, counter: TokenCounter) -> Draft:
    """Add the must-keeps to a body. If the check fails, drop faulty lines, then if necessary the entire body."""
    draft = _with_kept(material, body, counter)
    if draft.invented:
        kept = [line for line in body.splitlines(keepends=True) if not any(name in line for name in draft.invented)]
        body = "".join(kept)
        draft = _with_kept(material, body, counter)
    if not draft.passed:
        body, draft = "", _with_kept(material, "", counter)
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


def _headings_of(passages: Sequence[Passage]) -> str:
    """Return the dates and speakers, which a summary may mention in addition to the texts of passages."""
    return "\n".join(dict.fromkeys(f"{passage.when}: {passage.speaker}" for passage in passages))


def _without_kept(text: str, facts: Sequence[MustKeep], operation: int) -> str:
    """Remove must-keeps from an operation's text, so that no fact is stated twice or without its superseded mark.

    Facts that a person removed are dropped from every operation; reworded facts are dropped in both wordings.
    """
    for fact in facts:
        if fact.operation == operation or fact.status is MustKeepStatus.REMOVED:
            text = text.replace(fact.text, " ").replace(passage_of(fact), " ")
    return text

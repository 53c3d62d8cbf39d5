"""Compaction: which operations become a summary, what that says, and the check.

Operations older than the verbatim window are cut into segments, and each segment becomes a summary of level 1. What
becomes of summaries stands in `levels`. Pure: what is read and written, others decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, groupby

from orchestra_mem.core.identifiers import missing_identifiers
from orchestra_mem.core.summaries.extractive import Passage, extract, render, without_misquotes
from orchestra_mem.core.summaries.kept import body_of, kept_lines, name_facts, squeeze, told
from orchestra_mem.ports import TokenCounter
from orchestra_mem.types import MustKeep, MustKeepStatus, Summary

METHOD = "extractive"
_MIN_SUMMARY_TOKENS = 48
_SAMPLE_CHARS = 400
# However much may not be lost, this share of a summary's size tells what happened: where many facts are found, others
# are not, and stand there. Of 173 facts of dialogues 1 is lost after five compactions at 0.65 and none at 0.8, where
# the summaries of recorded talk take 0.27 of its tokens in place of 0.25.
_LEAST_BODY = 0.65


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in tokens that steer the compaction of one document."""

    threshold: int
    target: int
    floor: int
    segment: int
    summary: int
    level_one: int
    level: int
    fan_in: int

    @classmethod
    def for_threshold(
        cls, threshold: int, *, ratio: float, floor: int, segment: int, summary_ratio: float, fan_in: int
    ) -> Limits:
        """Scale the configured sizes down to a document that is compacted at `threshold` tokens."""
        segment = max(_MIN_SUMMARY_TOKENS * 2, min(segment, threshold // 8))
        return cls(
            threshold=threshold,
            target=int(threshold * ratio),
            floor=min(floor, threshold // 4),
            segment=segment,
            summary=max(_MIN_SUMMARY_TOKENS, int(segment * summary_ratio)),
            level_one=max(_MIN_SUMMARY_TOKENS * 4, threshold // 5),
            level=max(_MIN_SUMMARY_TOKENS * 4, threshold // 10),
            fan_in=fan_in,
        )


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
class Verdict:
    """What the mechanical check found: tokens against those of the source, what was invented, what is missing."""

    tokens: int
    source_tokens: int
    invented: tuple[str, ...]
    missing: tuple[MustKeep, ...]

    @property
    def passed(self) -> bool:
        """Whether the summary may be believed."""
        return self.tokens < self.source_tokens and not self.invented and not self.missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A checked summary that has no number yet."""

    text: str
    tokens: int
    source_tokens: int
    must_keeps: tuple[int, ...]
    put_back: tuple[str, ...]
    verdict: Verdict

    @classmethod
    def whole(cls, text: str, tokens: int) -> Draft:
        """A text that stays as it is."""
        verdict = Verdict(tokens=tokens, source_tokens=tokens, invented=(), missing=())
        return cls(text=text, tokens=tokens, source_tokens=tokens, must_keeps=(), put_back=(), verdict=verdict)


def due(
    entries: Sequence[tuple[int, int, datetime]], *, document_tokens: int, window: timedelta, limits: Limits
) -> int:
    """How many of the oldest entries (id, tokens, time) are to be compacted now.

    Those older than `window`, counted back from the newest time; and when the document is over its threshold, as many
    younger ones as bring it down to its target. The newest `floor` tokens always stay word for word. What is too
    little to be worth a summary waits, unless the document is over its threshold.
    """
    if not entries:
        return 0
    # Clocks jump: an entry is as old as the oldest time at or behind it.
    times = list(accumulate((time for _, _, time in reversed(entries)), min))[::-1]
    newest = entries[-1][2]
    movable, behind = 0, sum(tokens for _, tokens, _ in entries)
    excess = document_tokens - limits.target if document_tokens > limits.threshold else 0
    count = 0
    for (_, tokens, _), time in zip(entries, times, strict=True):
        behind -= tokens
        if behind < limits.floor:
            break
        if newest - time <= window and movable * 0.8 >= excess:
            break
        movable += tokens
        count += 1
    return count if excess or movable >= limits.segment else 0


def cut_segments(sources: Sequence[Source], segment_tokens: int) -> list[tuple[Source, ...]]:
    """Cut operations into runs of about `segment_tokens`, at natural borders: task, request, pause, speaker.

    A task is cut only where it alone is over twice the size.
    """
    pieces = _pieces(sources, segment_tokens)
    segments: list[tuple[Source, ...]] = []
    start = 0
    while start < len(pieces):
        end = _segment_end(pieces, start, segment_tokens)
        segments.append(tuple(source for piece in pieces[start:end] for source in piece))
        start = end
    # A remainder that is too small for a summary of its own joins the run before it.
    if len(segments) > 1 and sum(s.tokens for s in segments[-1]) < segment_tokens // 3:
        last = segments.pop()
        segments[-1] += last
    return segments


def _pieces(sources: Sequence[Source], segment_tokens: int) -> list[tuple[Source, ...]]:
    """What stays together: the operations of one task in a row; each by itself where they are none or too many."""
    pieces: list[tuple[Source, ...]] = []
    for task, group in groupby(sources, key=lambda source: source.task):
        run = tuple(group)
        if task and sum(source.tokens for source in run) <= 2 * segment_tokens:
            pieces.append(run)
        else:
            pieces += [(source,) for source in run]
    return pieces


def _segment_end(pieces: Sequence[tuple[Source, ...]], start: int, segment_tokens: int) -> int:
    """The best border from three quarters of the size on, up to half as much again."""
    tokens, best, best_score = 0, 0, 0.0
    for i in range(start, len(pieces)):
        tokens += sum(source.tokens for source in pieces[i])
        if best and tokens > segment_tokens * 1.5:
            return best
        if i + 1 == len(pieces):
            return i + 1
        if tokens >= segment_tokens * 0.75:
            score = 10.0 + _border(pieces[i][-1], pieces[i + 1][0]) - abs(tokens / segment_tokens - 1)
            if score > best_score:
                best, best_score = i + 1, score
    return len(pieces)


def _border(before: Source, after: Source) -> float:
    """How natural a border is, 0 to 4."""
    pause = (after.time - before.time) / timedelta(minutes=30)
    return (
        (1.5 if before.task != after.task else 0.0)
        + (1.0 if after.type in {"nl_command", "user_message", "request"} and before.type != after.type else 0.0)
        + min(1.0, max(0.0, pause))
        + (0.5 if before.type != after.type else 0.0)
    )


def summarise(
    sources: Sequence[Source], facts: Sequence[MustKeep], *, target_tokens: int, counter: TokenCounter, said: str = ""
) -> Draft:
    """Summarise a segment by extraction: the best of what it says, then every must-keep word for word.

    `facts` are the segment's must-keeps, with their numbers and present state; what a person took out of the documents
    is said no more. `said` is what earlier summaries say: their words are no news.
    """
    every = facts
    facts = [fact for fact in every if fact.status is not MustKeepStatus.REMOVED]
    kept = kept_lines(facts)
    passages = passages_of(sources, every)
    said_here = "\n".join(source.text for source in sources)
    source_tokens = sum(source.tokens for source in sources)
    budget = body_chars(target_tokens, kept, said_here, counter)
    body = render(extract(passages, budget=budget, said=f"{said}\n{kept}"))
    # Times and speakers stand in the headings of entries, not in what they say.
    return checked(body, facts, kept, f"{headings_of(passages)}\n{said_here}", source_tokens, counter)


def passages_of(sources: Sequence[Source], facts: Sequence[MustKeep]) -> list[Passage]:
    """What operations say, for choosing from it, without their must-keeps, which are said below it."""
    return [
        Passage(
            key=source.operation,
            text=without_kept(source.text, facts, source.operation),
            speaker=source.speaker,
            when=f"{source.time:%Y-%m-%d}",
            weight=source.weight,
        )
        for source in sources
    ]


def headings_of(passages: Sequence[Passage]) -> str:
    """What a summary may say of passages besides their texts: when, and who."""
    return "\n".join(dict.fromkeys(f"{passage.when}: {passage.speaker}" for passage in passages))


def body_chars(target_tokens: int, kept: str, text: str, counter: TokenCounter) -> int:
    """About as many characters of a text as a summary of it has room for beside what is kept below."""
    room = max(target_tokens - counter.count(kept), int(target_tokens * _LEAST_BODY))
    return chars_for(room, text, counter)


def chars_for(tokens: int, text: str, counter: TokenCounter) -> int:
    """About as many characters as so many tokens have in a text, reckoned from samples of it.

    Choosing by characters spares a count for every sentence that is tried.
    """
    middle = len(text) // 2
    sample = f"{text[:_SAMPLE_CHARS]}\n{text[middle : middle + _SAMPLE_CHARS]}"
    return max(0, tokens * len(sample) // max(1, counter.count(sample)))


def summarise_summaries(children: Sequence[Summary], *, target_tokens: int, counter: TokenCounter) -> Draft:
    """Make one summary of several; must-keeps are named by their numbers, they stand in the episodic documents."""
    numbers = tuple(sorted({number for child in children for number in child.must_keeps}))
    names = name_facts(numbers)
    passages = [Passage(key=child.first_operation, text=told(child.text)) for child in children]
    source_tokens = sum(child.tokens for child in children)
    source_text = "\n".join(passage.text for passage in passages)
    chosen = extract(passages, budget=chars_for(target_tokens - counter.count(names), source_text, counter))
    body = render(without_misquotes(chosen, source_text))
    body = _without_invented(body, missing_identifiers(body, source_text))
    text = f"{body.rstrip()}\n{names}".strip() + "\n"
    verdict = check(text, source_text=source_text, source_tokens=source_tokens, facts=(), counter=counter)
    return Draft(
        text=text, tokens=verdict.tokens, source_tokens=source_tokens, must_keeps=numbers, put_back=(), verdict=verdict
    )


def checked(
    body: str, facts: Sequence[MustKeep], kept: str, source_text: str, source_tokens: int, counter: TokenCounter
) -> Draft:
    """Put back what the body lacks, and take out what the check rejects, line by line and at last all of it."""
    text, verdict = _with_kept(body, kept, source_text, source_tokens, facts, counter)
    if verdict.invented:
        body = _without_invented(body, verdict.invented)
        text, verdict = _with_kept(body, kept, source_text, source_tokens, facts, counter)
    if not verdict.passed:
        text, verdict = _with_kept("", kept, source_text, source_tokens, facts, counter)
    said = squeeze(body)
    return Draft(
        text=text,
        tokens=verdict.tokens,
        source_tokens=source_tokens,
        must_keeps=tuple(fact.id for fact in facts),
        put_back=tuple(fact.text for fact in facts if squeeze(fact.text) not in said),
        verdict=verdict,
    )


def _without_invented(body: str, invented: Sequence[str]) -> str:
    """A body without the lines that hold what the source does not."""
    return "".join(line for line in body.splitlines(keepends=True) if not any(name in line for name in invented))


def _with_kept(
    body: str, kept: str, source_text: str, source_tokens: int, facts: Sequence[MustKeep], counter: TokenCounter
) -> tuple[str, Verdict]:
    text = "\n".join(piece.strip("\n") for piece in (body, kept) if piece.strip()) + "\n"
    return text, check(text, source_text=source_text, source_tokens=source_tokens, facts=facts, counter=counter)


def check(
    text: str, *, source_text: str, source_tokens: int, facts: Sequence[MustKeep], counter: TokenCounter
) -> Verdict:
    """Check a summary mechanically against its source, whoever made it."""
    squeezed = squeeze(text)
    body = body_of(text)
    return Verdict(
        tokens=counter.count(text),
        source_tokens=source_tokens,
        invented=missing_identifiers(body, source_text),
        missing=tuple(fact for fact in facts if squeeze(fact.text) not in squeezed),
    )


def without_kept(text: str, facts: Sequence[MustKeep], operation: int) -> str:
    """A text without the must-keeps that are said below it anyway: nothing twice, nothing superseded unmarked.

    What a person took out is in no operation's text, and what one reworded not in the old words.
    """
    for fact in facts:
        if fact.operation == operation or fact.status is MustKeepStatus.REMOVED:
            text = text.replace(fact.found or fact.text, " ").replace(fact.text, " ")
    return text

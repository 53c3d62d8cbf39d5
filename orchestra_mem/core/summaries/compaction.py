"""Decide which operations become a summary, and when summaries of one level become one summary of the next level.

Operations older than the verbatim window are cut into segments, and each segment becomes a level-1 summary. Levels grow
as in a log-structured merge tree: when a level exceeds its share, its oldest summaries are merged into one of the next.
A document grows with the logarithm of the work. Pure functions without I/O; `drafts.py` writes the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, groupby
from typing import TYPE_CHECKING

from orchestra_mem.types import Summary

if TYPE_CHECKING:
    from orchestra_mem.core.summaries.drafts import Draft, Source

_MIN_SUMMARY_TOKENS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in tokens, and the most summaries to merge at once (`fan_in`), that control a document's compaction."""

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


def due(
    entries: Sequence[tuple[int, int, datetime]], *, document_tokens: int, window: timedelta, limits: Limits
) -> int:
    """Return how many of the oldest entries (id, tokens, time) to compact now.

    Entries are due if they are older than `window`, counted back from the newest time. If the document exceeds its
    threshold, younger entries are due too, until it is down to its target. The newest `floor` tokens always stay
    verbatim. If the due entries are less than a segment, they wait, unless the document exceeds its threshold.
    """
    if not entries:
        return 0
    # Clocks may jump back: the time of an entry is the earliest of its own and all later times.
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
    """Cut operations into segments of about `segment_tokens`, at natural borders: a new task, request or type, a pause.

    A task is cut only if it alone exceeds twice this size.
    """
    pieces = _pieces(sources, segment_tokens)
    segments: list[tuple[Source, ...]] = []
    start = 0
    while start < len(pieces):
        end = _segment_end(pieces, start, segment_tokens)
        segments.append(tuple(source for piece in pieces[start:end] for source in piece))
        start = end
    # A remainder that is too small for a separate summary joins the previous segment.
    if len(segments) > 1 and sum(s.tokens for s in segments[-1]) < segment_tokens // 3:
        last = segments.pop()
        segments[-1] += last
    return segments


def _pieces(sources: Sequence[Source], segment_tokens: int) -> list[tuple[Source, ...]]:
    """Group consecutive operations of one task; operations without a task, or of too large a task, stay single."""
    pieces: list[tuple[Source, ...]] = []
    for task, group in groupby(sources, key=lambda source: source.task):
        run = tuple(group)
        if task and sum(source.tokens for source in run) <= 2 * segment_tokens:
            pieces.append(run)
        else:
            pieces += [(source,) for source in run]
    return pieces


def _segment_end(pieces: Sequence[tuple[Source, ...]], start: int, segment_tokens: int) -> int:
    """Return the end of the segment at `start`: the best border between 0.75 and 1.5 times the size."""
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
    """Score how natural a border between two operations is, 0 to 4."""
    pause = (after.time - before.time) / timedelta(minutes=30)
    return (
        (1.5 if before.task != after.task else 0.0)
        + (1.0 if after.type in {"nl_command", "user_message", "request"} and before.type != after.type else 0.0)
        + min(1.0, max(0.0, pause))
        + (0.5 if before.type != after.type else 0.0)
    )


def merges(standing: Sequence[Summary], limits: Limits) -> list[Summary] | None:
    """Return the summaries to merge into one of the next level, oldest first; None if there is nothing to merge."""
    levels: dict[int, list[Summary]] = {}
    for summary in standing:
        levels.setdefault(summary.level, []).append(summary)
    for level in sorted(levels):
        share = limits.level_one if level == 1 else limits.level
        tokens = sum(member.tokens for member in levels[level])
        if tokens <= share:
            continue
        for run in _runs(levels[level]):
            if len(run) >= 2:
                return _oldest(run, tokens - share // 2, limits.fan_in)
    return None


def _runs(members: Sequence[Summary]) -> list[list[Summary]]:
    """Group adjacent summaries: a merged summary must not cover operations that stay verbatim between its parts."""
    runs: list[list[Summary]] = []
    for member in members:
        if runs and runs[-1][-1].last_operation + 1 == member.first_operation:
            runs[-1].append(member)
        else:
            runs.append([member])
    return runs


def _oldest(run: Sequence[Summary], excess_tokens: int, most: int) -> list[Summary]:
    """Return as many of the oldest summaries as bring the level down to half its share, from two to `most`."""
    taken: list[Summary] = []
    for member in run:
        if len(taken) == most or (len(taken) >= 2 and excess_tokens <= 0):
            break
        taken.append(member)
        excess_tokens -= member.tokens
    return taken


def summary_of(
    draft: Draft, segment: Sequence[Source], *, session: str, number: int, first: int, created: datetime
) -> Summary:
    """Return a segment's draft as a level-1 summary, which covers all operations from `first` on."""
    last, times = segment[-1].operation, [source.time for source in segment]
    return draft.summary(
        id=number, session=session, level=1, first_operation=first, last_operation=last,
        operation_count=last - first + 1, since=min(times), until=max(times), created=created,
    )  # fmt: skip


def merged_summary(draft: Draft, children: Sequence[Summary], *, number: int, created: datetime) -> Summary:
    """Return the draft of several summaries as a summary of the next level."""
    first, last = children[0], children[-1]
    return draft.summary(
        id=number, session=first.session, level=first.level + 1, children=tuple(child.id for child in children),
        first_operation=first.first_operation, last_operation=last.last_operation,
        operation_count=sum(child.operation_count for child in children),
        since=min(child.since for child in children), until=max(child.until for child in children), created=created,
    )  # fmt: skip

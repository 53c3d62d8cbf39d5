"""The levels of summaries: when those of one become one of the next.

They grow as in a log-structured merge tree: when a level holds more than its share, its oldest summaries become one of
the next. So a document grows with the logarithm of the work. Pure: what is read and written, others decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from orchestra_mem.core.summaries.compaction import METHOD, Draft, Limits, Source
from orchestra_mem.types import Summary


def merges(standing: Sequence[Summary], limits: Limits) -> list[Summary] | None:
    """The summaries that are to become one of the next level, oldest first; None where every level is in its share."""
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
    """Neighbours without a gap: what stands word for word between two summaries is not covered by merging them."""
    runs: list[list[Summary]] = []
    for member in members:
        if runs and runs[-1][-1].last_operation + 1 == member.first_operation:
            runs[-1].append(member)
        else:
            runs.append([member])
    return runs


def _oldest(run: Sequence[Summary], excess_tokens: int, most: int) -> list[Summary]:
    """As many of the oldest as bring a level down to half of its share, two at least."""
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
    """A draft of a segment as a summary of level 1, of all operations from `first` on."""
    last, times = segment[-1].operation, [source.time for source in segment]
    return _summary(
        draft, session=session, number=number, level=1, operations=(first, last, last - first + 1), children=(),
        times=(min(times), max(times)), created=created,
    )  # fmt: skip


def merged_summary(draft: Draft, children: Sequence[Summary], *, number: int, created: datetime) -> Summary:
    """A draft of several summaries as one of the next level."""
    first, last = children[0], children[-1]
    count = sum(child.operation_count for child in children)
    return _summary(
        draft, session=first.session, number=number, level=first.level + 1,
        operations=(first.first_operation, last.last_operation, count), children=tuple(child.id for child in children),
        times=(min(child.since for child in children), max(child.until for child in children)), created=created,
    )  # fmt: skip


def _summary(
    draft: Draft,
    *,
    session: str,
    number: int,
    level: int,
    operations: tuple[int, int, int],
    children: tuple[int, ...],
    times: tuple[datetime, datetime],
    created: datetime,
) -> Summary:
    """A draft with its place: of `operations` the first, the last and how many, of `times` the earliest and latest."""
    first, last, count = operations
    since, until = times
    return Summary(
        id=number,
        session=session,
        level=level,
        first_operation=first,
        last_operation=last,
        operation_count=count,
        children=children,
        text=draft.text,
        method=METHOD,
        tokens=draft.tokens,
        source_tokens=draft.source_tokens,
        must_keeps=draft.must_keeps,
        dropped=(),
        put_back=draft.put_back,
        since=since,
        until=until,
        created=created,
    )

"""What the next refresh will need of operations, done ahead of it: their facts, their sentences, and first drafts.

All of it follows from what it is made of, and is taken only where that is the same in the end. It is done in steps, in
another thread than the refresh if so wished: what either does while the other is at it is at worst done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from orchestra_mem.core.summaries.compaction import (
    Draft,
    Limits,
    Source,
    cut_segments,
    summarise,
    summarise_summaries,
    without_kept,
)
from orchestra_mem.core.summaries.levels import merges, summary_of
from orchestra_mem.core.summaries.reading import REMEMBERED, read_ahead
from orchestra_mem.ports import TokenCounter
from orchestra_mem.tiers.judge import Judge
from orchestra_mem.types import MustKeep, Operation, Summary

_Known = tuple[tuple[Source, ...], list[MustKeep], Draft]
# What a summary of summaries is made of.
_Parts = tuple[tuple[int, str, int, tuple[int, ...]], ...]


class Foresight:
    """Foresees what a session's next compaction will do, as long as nobody edits the document.

    Args:
        judge: finds the facts.
        counter: of tokens.
        limits: of the document.
        source: an operation as compaction sees it.
        standing: the summaries that stand in a session's document.
    """

    def __init__(
        self,
        judge: Judge,
        *,
        counter: TokenCounter,
        limits: Limits,
        source: Callable[[Operation], Source],
        standing: Callable[[str], Sequence[Summary]],
    ) -> None:
        self._judge = judge
        self._counter = counter
        self._limits = limits
        self._source = source
        self._standing = standing
        self._session = ""
        self._sources: dict[int, Source] = {}
        self._drafts: dict[int, _Known] = {}
        self._merged: dict[_Parts, Draft] = {}
        self._uncut = 0  # tokens that have come since segments were cut

    def prepare(self, operation: Operation) -> Iterator[None]:
        """Do ahead what can be done now that there is this operation: in steps of 0.1 ms, drafts of some ms."""
        if operation.id <= self._judge.through:
            return
        if operation.session != self._session:
            self._session, self._sources, self._drafts = operation.session, {}, {}
        facts = yield from self._judge.look(operation)
        if len(self._sources) >= REMEMBERED:
            return
        source = self._source(operation)
        yield from read_ahead(without_kept(source.text, facts, operation.id))
        self._sources[operation.id] = source
        self._uncut += source.tokens
        if self._uncut >= 2 * self._limits.segment:
            self._uncut = 0
            yield from self._draft_ahead(operation.id)

    def source(self, operation: Operation) -> Source:
        """An operation as compaction sees it, from memory where it was prepared."""
        return self._sources.get(operation.id) or self._source(operation)

    def draft(self, segment: Sequence[Source], facts: list[MustKeep]) -> Draft:
        """The summary of a segment with these facts, from memory where it was foreseen."""
        known = self._drafts.get(segment[0].operation)
        if known is not None and known[0] == tuple(segment) and known[1] == facts:
            return known[2]
        tokens = sum(source.tokens for source in segment)
        target = int(tokens * self._limits.summary / self._limits.segment)
        return summarise(segment, facts, target_tokens=target, counter=self._counter)

    def merged(self, children: Sequence[Summary]) -> Draft:
        """The summary of several summaries, from memory where it was foreseen."""
        known = self._merged.get(_parts(children))
        return known or summarise_summaries(children, target_tokens=self._limits.summary, counter=self._counter)

    def compacted(self, through: int) -> None:
        """Forget what was foreseen of operations up to an id: they have been compacted."""
        self._sources = {number: source for number, source in list(self._sources.items()) if number > through}
        self._drafts, self._merged = {}, {}

    def _draft_ahead(self, through: int) -> Iterator[None]:
        """Draft the segments that will be cut so whatever comes, those with enough behind them, and what merges."""
        sources = list(self._sources.values())
        facts = self._judge.foresee(through)
        if facts is None:
            return
        certain = sum(source.tokens for source in sources) - 2 * self._limits.segment
        standing = [*self._standing(self._session)]
        for segment in cut_segments(sources, self._limits.segment):
            certain -= sum(source.tokens for source in segment)
            if certain < 0:
                break
            yield
            first, last = segment[0].operation, segment[-1].operation
            own = {fact.id: fact for fact in self._judge.facts(first, last)}
            own |= {number: fact for number, fact in facts.items() if first <= fact.operation <= last}
            said = [own[number] for number in sorted(own)]
            draft = self.draft(segment, said)
            self._drafts[first] = (segment, said, draft)
            new = summary_of(draft, segment, session=self._session, number=0, first=first, created=segment[-1].time)
            standing.append(new)
        if taken := merges(standing, self._limits):
            yield
            self._merged[_parts(taken)] = self.merged(taken)


def _parts(children: Sequence[Summary]) -> _Parts:
    return tuple((child.first_operation, child.text, child.tokens, child.must_keeps) for child in children)

"""What the next refresh will need of operations, done ahead of it: their facts, their sentences, and first drafts.

All of it follows from what it is made of, and is taken only where that is the same in the end. It is done in steps, in
another thread than the refresh if so wished: what either does while the other is at it is at worst done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from orchestra_mem.core.summaries.compaction import Draft, Limits, Source, cut_segments, summarise, without_kept
from orchestra_mem.core.summaries.reading import REMEMBERED, read_ahead
from orchestra_mem.ports import TokenCounter
from orchestra_mem.tiers.judge import Judge
from orchestra_mem.types import MustKeep, Operation

_Known = tuple[tuple[Source, ...], list[MustKeep], Draft]


class Foresight:
    """Foresees what a session's next compaction will do, as long as nobody edits the document."""

    def __init__(
        self, judge: Judge, *, counter: TokenCounter, limits: Limits, source: Callable[[Operation], Source]
    ) -> None:
        self._judge = judge
        self._counter = counter
        self._limits = limits
        self._source = source
        self._session = ""
        self._sources: list[Source] = []
        self._drafts: dict[int, _Known] = {}
        self._uncut = 0  # tokens that have come since segments were cut

    def prepare(self, operation: Operation) -> Iterator[None]:
        """Do ahead what can be done now that there is this operation: in steps of 0.1 ms, drafts of some ms."""
        if operation.id <= self._judge.through:
            return
        if operation.session != self._session:
            self._session, self._sources, self._drafts = operation.session, [], {}
        facts = yield from self._judge.look(operation)
        if len(self._sources) >= REMEMBERED:
            return
        source = self._source(operation)
        yield from read_ahead(without_kept(source.text, facts, operation.id))
        self._sources.append(source)
        self._uncut += source.tokens
        if self._uncut >= 2 * self._limits.segment:
            self._uncut = 0
            yield from self._draft_ahead(operation.id)

    def draft(self, segment: Sequence[Source], facts: list[MustKeep]) -> Draft:
        """The summary of a segment with these facts, from memory where it was foreseen."""
        known = self._drafts.get(segment[0].operation)
        if known is not None and known[0] == tuple(segment) and known[1] == facts:
            return known[2]
        tokens = sum(source.tokens for source in segment)
        target = int(tokens * self._limits.summary / self._limits.segment)
        return summarise(segment, facts, target_tokens=target, counter=self._counter)

    def compacted(self, through: int) -> None:
        """Forget what was foreseen of operations up to an id: they have been compacted."""
        self._sources = [source for source in self._sources if source.operation > through]
        self._drafts = {}

    def _draft_ahead(self, through: int) -> Iterator[None]:
        """Draft the segments that will be cut so whatever comes, those with enough behind them."""
        sources = self._sources
        facts = self._judge.foresee(through)
        if facts is None:
            return
        certain = sum(source.tokens for source in sources) - 2 * self._limits.segment
        for segment in cut_segments(sources, self._limits.segment):
            certain -= sum(source.tokens for source in segment)
            if certain < 0:
                break
            yield
            first, last = segment[0].operation, segment[-1].operation
            own = {fact.id: fact for fact in self._judge.facts(first, last)}
            own |= {number: fact for number, fact in facts.items() if first <= fact.operation <= last}
            said = [own[number] for number in sorted(own)]
            self._drafts[first] = (segment, said, self.draft(segment, said))

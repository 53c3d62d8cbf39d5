"""Search an index by keywords and by vectors, rank the candidates with their neighbours, and widen a search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar

import numpy as np

from orchestra_mem.core.periods import Period
from orchestra_mem.core.search import ranking
from orchestra_mem.core.search.late_interaction import unit, word_matches
from orchestra_mem.core.search.question import Question, read_question
from orchestra_mem.core.search.ranking import Floats, Rows
from orchestra_mem.core.search.terms import chunk_names, content_words
from orchestra_mem.core.text import stem
from orchestra_mem.search_types import (
    EVERYTHING,
    Embedder,
    Hit,
    Ids,
    Outlines,
    Ranking,
    Reasons,
    SearchFilter,
    SearchIndex,
    SearchMode,
    Terms,
    Vector,
    WordEmbedder,
)

_RARITY_POWER = 0.7
"""Exponent of a word's rarity as its weight in the query's vector; measured: 0.5 to 1 are equally good."""

_PERIOD_TAIL = timedelta(days=30)
"""Time after a named period in which its events may still be recorded."""

# Number of chunks taken from each search, of candidates ranked, and of candidates whose neighbours are ranked as well.
# The first two grow with the requested limit. Doubling them gains 0.002 recall at 10 for twice the time.
_FOUND, _RANKED, _AROUND = 150, 60, 12


@dataclass(frozen=True, slots=True, eq=False)
class Searcher:
    """Searches an index. Safe to share between threads if its attributes are.

    Attributes:
        index: The index to search.
        embedder: Embeds queries; None turns dense search off.
        words: Compares words by their vectors; None compares their stems.
        weights: Weights of the parts of a score.
    """

    index: SearchIndex
    embedder: Embedder | None
    words: WordEmbedder | None
    weights: ranking.Weights = field(default_factory=ranking.Weights, kw_only=True)

    def search(
        self,
        query: str,
        now: datetime,
        *,
        session: str | None = None,
        where: SearchFilter = EVERYTHING,
        mode: SearchMode = SearchMode.HYBRID,
        limit: int = 10,
    ) -> list[Hit]:
        """Return the chunks that answer a query best, best first; any string is a query.

        `now` anchors "last week" and recency; chunks of `session` rank slightly higher. Chunks with an exact name from
        the query (`#12`, a path, `snake_case`) come first, hits marked `perhaps` last.
        """
        question = read_question(query, now)
        rarities = self._rarities(question.words)
        embedder = self.embedder if mode is not SearchMode.KEYWORD else None
        vector = self._query_vector(embedder, question, rarities) if embedder else None
        vector = vector if vector is not None and vector.any() else None
        found = self._find(question, vector, where, mode, max(_FOUND, limit))
        outlines, chains = self._candidates(found, where, max(_RANKED, limit))
        vectors, dense = np.zeros((len(outlines.ids), 0), np.float32), np.zeros(len(outlines.ids), np.float32)
        if embedder and vector is not None:
            vectors = self.index.vectors(embedder.model, outlines.ids)
            dense = np.vecdot(vectors, vector)
        matches = self._matches(outlines, question.words if mode is not SearchMode.DENSE else (), mode)
        before, behind = _links(outlines.ids, chains)
        pool = ranking.Pool(
            keyword=_looked_up(outlines.ids, found.keyword)[0],
            dense=dense,
            matches=matches,
            rarities=rarities[: len(matches)],
            before=before,
            behind=behind,
            groups=ranking.split_at_pauses(outlines.groups, outlines.times),
            traits=_traits(outlines, question),
            priors=_priors(outlines, now, session, self.weights.half_life_days),
        )
        return self._hits(found, outlines, vectors, pool, question, limit)

    def _rarities(self, words: Sequence[str]) -> Floats:
        """Return each word's inverse document frequency as in BM25, positive."""
        if not words:
            return np.zeros(0, np.float32)
        frequencies = self.index.document_frequency([stem(word) for word in words])
        # At least 100: in a small index, a word in no chunk would otherwise outweigh the words in some chunks.
        count = max(self.index.count(), int(frequencies.max(initial=0)), 100)
        rarities: Floats = np.log1p((count - frequencies + 0.5) / (frequencies + 0.5)).astype(np.float32)
        return rarities

    def _query_vector(self, embedder: Embedder, question: Question, rarities: Floats) -> Vector:
        """Embed a query; if the model is a table of word vectors, give rare words more weight."""
        if self.words is None or self.words.model != embedder.model or not question.words:
            return embedder.embed_query(question.text)
        vector: Vector = np.power(rarities, _RARITY_POWER) @ self.words.embed_words(question.words)
        return unit(vector)

    def _find(
        self, question: Question, vector: Vector | None, where: SearchFilter, mode: SearchMode, limit: int
    ) -> _Found:
        """Query the index, and once more for each period that the question names."""
        names = question.terms.identifiers if mode is not SearchMode.DENSE else ()
        exact = self.index.keyword(Terms(terms=names, identifiers=names), where, limit).ids if names else _NOTHING.ids
        filters = [where, *(_narrowed(where, period) for period in question.periods)]
        keyword, dense = [], []
        if mode is not SearchMode.DENSE:
            keyword = [self.index.keyword(question.terms, each, limit) for each in filters]
        if vector is not None and self.embedder is not None:
            dense = [self.index.dense(self.embedder.model, vector, each, limit) for each in filters]
        dated = [each.ids for each in (*keyword[1:], *dense[1:])]
        return _Found(
            keyword=_merged(keyword), dense=_merged(dense), exact=exact, dated=np.concatenate([_NOTHING.ids, *dated])
        )

    def _candidates(self, found: _Found, where: SearchFilter, most: int) -> tuple[Outlines, Ids]:
        """Return the best chunks found with the neighbours of the first `_AROUND`; and those, each with its neighbours.

        The second result has a row for each of the first `_AROUND` chunks: its neighbourhood in order, see `_links`.
        """
        ids = np.unique(np.concatenate([found.keyword.ids, found.dense.ids, found.exact]))
        promise = ranking.to_one(_looked_up(ids, found.keyword)[0]) + ranking.to_one(_looked_up(ids, found.dense)[0])
        promise += np.isin(ids, found.dated) + 3.0 * np.isin(ids, found.exact)
        best = ids[np.argsort(-promise, kind="stable")[:most]]
        around = best[:_AROUND]
        chains = np.insert(self.index.neighbours(around, 2), 2, around, axis=1)
        return self.index.outlines(np.union1d(best, chains[chains > 0]), where), chains

    def _matches(self, outlines: Outlines, asked: Sequence[str], mode: SearchMode) -> Floats:
        """Return how well each candidate matches each word, by their vectors if possible, else by their stems."""
        cut = outlines.cut & (self.words is not None and mode is SearchMode.HYBRID)
        matches = np.zeros((len(asked), len(cut)), np.float32)
        if self.words is not None and cut.any():
            matches[:, cut] = word_matches(asked, outlines.tokens, outlines.word_counts[cut], self.words)
        if not cut.all():
            stems = [stem(word) for word in asked]
            matches[:, ~cut] = self.index.holding(stems, outlines.ids[~cut])
        return matches

    def _hits(
        self, found: _Found, outlines: Outlines, vectors: Floats, pool: ranking.Pool, question: Question, limit: int
    ) -> list[Hit]:
        ids = outlines.ids
        shares, priors = ranking.shares_of(pool, self.weights), ranking.priors_of(pool, self.weights)
        scores = sum(shares.values(), np.zeros(len(ids), np.float32))
        scores = scores * np.prod([*priors.values(), np.ones_like(scores)], axis=0)
        held = self._held(ids[np.isin(ids, found.exact)], question)
        counts = np.array([len(held.get(number, ())) for number in ids.tolist()])
        likely = np.where(counts, np.float32(1), ranking.likelihoods(pool, shares, scores, self.index.count()))
        passing = np.flatnonzero(outlines.passing)
        # More exact names rank before fewer, likely hits before unlikely ones; then the score decides.
        levels = counts + (likely >= ranking.LEAST_LIKELY)
        order = passing[np.lexsort((ids[passing], -scores[passing], -levels[passing]))]
        order = order[: _DIVERSIFIED * limit]
        # A level adds more than the largest penalty, which is at most the best score.
        best = float(np.abs(scores).max(initial=0))
        lifted = scores[order] + levels[order] * (1 + 2 * best)
        chosen = order[ranking.diversify(lifted, vectors[order], limit, self.weights.diversity * best)]
        ranks = [_looked_up(ids, each)[1] for each in (found.keyword, found.dense)]
        chunks = zip(chosen.tolist(), self.index.chunks(ids[chosen]), strict=True)
        return [
            Hit(
                id=int(ids[row]),
                chunk=chunk,
                score=float(scores[row]),
                likelihood=float(likely[row]),
                perhaps=bool(likely[row] < ranking.LEAST_LIKELY),
                reasons=Reasons(
                    keyword_rank=int(ranks[0][row]) or None,
                    keyword_score=float(pool.keyword[row]),
                    dense_rank=int(ranks[1][row]) or None,
                    dense_score=float(pool.dense[row]),
                    identifiers=held.get(int(ids[row]), ()),
                    shares=tuple((name, float(values[row])) for name, values in shares.items()),
                    priors=tuple((name, float(values[row])) for name, values in priors.items()),
                ),
            )
            for row, chunk in chunks
            if chunk is not None
        ]

    def _held(self, exact: Ids, question: Question) -> dict[int, tuple[str, ...]]:
        """Return, by id, the query's exact names in each of the candidates that were found by an exact name."""
        asked = frozenset(question.terms.identifiers)
        return {
            number: tuple(name for name in chunk_names(chunk) if name in asked)
            for number, chunk in zip(exact.tolist(), self.index.chunks(exact) if len(exact) else (), strict=True)
            if chunk is not None
        }


_NOTHING = Ranking(ids=np.zeros(0, np.int64), scores=np.zeros(0, np.float32))
_DIVERSIFIED = 4
"""Candidates for `diversify` per requested hit: the best hits seldom have more near-duplicates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Results of the index. `exact`: Chunks with an exact name of the query. `dated`: Chunks found for its periods."""

    keyword: Ranking
    dense: Ranking
    exact: Ids
    dated: Ids


def _merged(rankings: Sequence[Ranking]) -> Ranking:
    """Merge rankings of the same query under several filters, best first, without duplicates."""
    if len(rankings) < 2:
        return rankings[0] if rankings else _NOTHING
    ids, first = np.unique(np.concatenate([each.ids for each in rankings]), return_index=True)
    scores = np.concatenate([each.scores for each in rankings])[first]
    order = np.lexsort((ids, -scores))
    return Ranking(ids=ids[order], scores=scores[order])


def _looked_up(ids: Ids, found: Ranking) -> tuple[Floats, Rows]:
    """Return the scores and the ranks, from 1, of ids in a ranking; both are 0 for ids that are not in the ranking."""
    scores, ranks = np.zeros(len(ids), np.float32), np.zeros(len(ids), np.int64)
    _, rows, places = np.intersect1d(ids, found.ids, assume_unique=True, return_indices=True)
    scores[rows], ranks[rows] = found.scores[places], places + 1
    return scores, ranks


def _links(ids: Ids, chains: Ids) -> tuple[Rows, Rows]:
    """Return the rows of each chunk's previous and next chunk, or -1. `chains`: Runs of ids in order, one per row."""
    before, behind = np.full(len(ids), -1), np.full(len(ids), -1)
    first, second = chains[:, :-1].ravel(), chains[:, 1:].ravel()
    both = np.isin(first, ids) & np.isin(second, ids)
    first_rows, second_rows = np.searchsorted(ids, first[both]), np.searchsorted(ids, second[both])
    behind[first_rows] = second_rows
    before[second_rows] = first_rows
    return before, behind


def _narrowed(where: SearchFilter, period: Period) -> SearchFilter:
    """Restrict a filter to chunks recorded in a period or within `_PERIOD_TAIL` after it."""
    since, until = period.start, period.end + _PERIOD_TAIL
    return replace(where, since=max(where.since or since, since), until=min(where.until or until, until))


def _traits(outlines: Outlines, question: Question) -> dict[str, Floats]:
    traits = {"statement": outlines.statements.astype(np.float32)}
    asked = set(question.words)  # a question names an agent if it has all content words of the agent's name
    named = {agent for agent in filter(None, set(outlines.agents)) if asked.issuperset(content_words(agent) or [""])}
    if named:
        traits["agent"] = np.array([agent in named for agent in outlines.agents], np.float32)
    if question.asks_when:
        traits["tells_time"] = outlines.tell_time.astype(np.float32)
    traits["substance"] = ranking.substance(outlines.word_counts)
    if question.periods:
        traits["period"] = ranking.nearness(outlines.times, question.periods)
    return traits


def _priors(outlines: Outlines, now: datetime, session: str | None, half_life_days: float) -> dict[str, Floats]:
    priors = {
        "recency": ranking.recency(outlines.times, now, half_life_days),
        "importance": 2 * outlines.importance - 1,
    }
    if session:
        priors["same_session"] = np.array([each == session for each in outlines.sessions], np.float32)
    return priors


_Kept = TypeVar("_Kept")
_WIDER = 4
_MOST = 10_000


def search_until(
    ask: Callable[[int], Sequence[Hit]], keep: Callable[[Sequence[Hit]], Iterable[_Kept]], limit: int
) -> list[_Kept]:
    """Return up to `limit` results, requesting more hits until enough pass, none are left, or 10,000 were requested.

    Args:
        ask: Returns at most the given number of hits, best first.
        keep: Returns the results for the hits that pass the test, in the order of the hits.
        limit: Maximum number of results.
    """
    size = 2 * limit
    while True:
        hits = ask(size)
        kept = [*keep(hits)]
        if len(kept) >= limit or len(hits) < size or size >= _MOST:
            return kept[:limit]
        size *= _WIDER

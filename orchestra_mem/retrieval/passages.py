"""Retrieve passages for a model: the hits of a search, each with the operation or section that it stands in."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from orchestra_mem.core.documents.entries import plain_text
from orchestra_mem.core.search.disclosure import Recalled, RetrievedPassage, distinct, why
from orchestra_mem.core.search.echoes import plain_words, without_recalled
from orchestra_mem.errors import EmbedderError, NotFoundError, SearchError, StorageError
from orchestra_mem.ports import EventLog
from orchestra_mem.retrieval.lazy_search import LazySearch
from orchestra_mem.retrieval.search import Answer, MemorySearch, is_match
from orchestra_mem.search_types import EVERYTHING, Hit, SearchFilter
from orchestra_mem.types import Operation

logger = logging.getLogger(__name__)

# What comes less near the best than this is seldom worth its tokens; nor is what neither has a word of the question nor
# lies near it, unless it stands beside what does and comes near the best by that.
_LEAST_OF_BEST = 0.3
_LEAST_BESIDE = 0.6
# How much goes before what is not theirs: about what a neighbour that answers too is worth.
_THEIRS = 0.15


class PassageRetriever:
    """Recalls what answers a question, with what belongs to it. Safe to share between threads."""

    def __init__(self, search: LazySearch, log: EventLog) -> None:
        self._search = search
        self._log = log

    def recall(
        self,
        question: str,
        *,
        session: str | None,
        agents: Sequence[str] = (),
        pattern: str | None = None,
        where: SearchFilter = EVERYTHING,
        limit: int = 20,
    ) -> Recalled:
        """Recall what answers a question best; where search cannot be used, nothing, and a note says why.

        Args:
            question: any string.
            session: who asks: what is theirs goes a little before what is not.
            agents: likewise, by agent.
            pattern: how agents work together, as operations name it under `pattern`; likewise.
            where: what alone is looked at.
            limit: how many at most.
        """
        if not question.strip():
            return Recalled(recollections=())
        try:
            search = self._search.open()
            # What says the same is counted once, and a good deal of what is found does.
            answer = search.search(question, where=where, limit=2 * limit, session=session)
            hits = self._preferred(answer, agents, pattern)
            found = distinct([self._recollection(hit, search) for hit in hits])
        except (SearchError, StorageError, EmbedderError) as error:
            logger.warning("nothing is recalled: %s", error)
            return Recalled(recollections=(), notes=(f"nothing is recalled, search cannot be used: {error}",))
        search.note_recalled([recollection.passage for recollection in found[:limit]])
        return Recalled(recollections=tuple(found[:limit]), notes=answer.notes)

    def _preferred(self, answer: Answer, agents: Sequence[str], pattern: str | None) -> list[Hit]:
        """The hits that come near the best, by score; what is theirs a little before what is not."""
        best = max((hit.score for hit in answer.matching), default=0.0)
        hits = [hit for hit in answer.matching if _is_worth_it(hit, best)]

        def rank(hit: Hit) -> tuple[int, float]:
            theirs = (hit.chunk.agent in agents) + (pattern is not None and hit.chunk.pattern == pattern)
            return -len(hit.reasons.identifiers), -hit.score * (1 + _THEIRS * theirs)

        return sorted(hits, key=rank)

    def _recollection(self, hit: Hit, search: MemorySearch) -> RetrievedPassage:
        chunk = hit.chunk
        found = RetrievedPassage(
            source=chunk.source,
            kind=chunk.kind,
            passage=chunk.text,
            whole=chunk.text,
            title=chunk.title or " > ".join(chunk.heading),
            time=chunk.time,
            agent=chunk.agent,
            operation=chunk.operation,
            likelihood=hit.likelihood,
            why=why(hit.reasons),
            beside=not is_match(hit),
        )
        operation = self.operation(chunk.operation)
        whole = _own_text(operation) if operation else search.section(hit)
        return replace(found, whole=whole) if plain_words(chunk.text) in plain_words(whole) else found

    def operation(self, number: int) -> Operation | None:
        """Give an operation; None where there is none of this number, as of a database that was lost."""
        try:
            return self._log.operation(number) if number else None
        except NotFoundError:
            return None


def _is_worth_it(hit: Hit, best: float) -> bool:
    least = _LEAST_OF_BEST if is_match(hit) else _LEAST_BESIDE
    return bool(hit.reasons.identifiers) or hit.score >= best * least


def _own_text(operation: Operation) -> str:
    """What an operation says for itself, without what this memory had rendered into it."""
    return plain_text(replace(operation, data=without_recalled(operation.data)), max_chars=8_000).strip()

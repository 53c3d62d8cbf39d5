"""Search all tiers: bring the index up to date, query it, and say in notes what could not be searched.

Without vectors the words answer alone; without an index there is no answer. Each is told in a note or an error.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from orchestra_mem.core.search.chunking import chunk_fact
from orchestra_mem.core.search.hybrid import Searcher
from orchestra_mem.core.search.responses import StoredResponse
from orchestra_mem.core.search.widening import enough_of
from orchestra_mem.core.summaries.kept import kept_numbers, with_states
from orchestra_mem.errors import DatabaseDamagedError, EmbedderError, StorageError
from orchestra_mem.ports import Clock, Ledger
from orchestra_mem.retrieval.index_worker import Guard, IndexWorker
from orchestra_mem.retrieval.indexer import Backlog, Indexer
from orchestra_mem.search_types import (
    EVERYTHING,
    Chunk,
    Embedder,
    EmbeddingModel,
    Hit,
    SearchFilter,
    SearchIndex,
    SearchMode,
    Situation,
    Vector,
    WordEmbedder,
)
from orchestra_mem.types import MustKeepStatus

logger = logging.getLogger(__name__)

# A search takes in what is new before it answers, for about so long; what is left is taken in behind it.
_AT_ONCE_S = 0.5
# A server that is well embeds what is new in so long; else it is found by its words until that is done.
_PATIENCE_S = 0.5
_STEP_S = 0.05
_UPKEEP_AFTER = 2_000
# Something always lies nearest: what lies no nearer than this has nothing to do with a query.
_LEAST_COSINE = 0.2
_NO_EMBEDDER = "search by meaning needs an embedder, and search.embedder is off: set it to wordllama"
# So many passages on either side belong to a hit, as far as they stand under the same headings.
_REACH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a search found, best first; `notes` tell what it could not look at or not do, in words."""

    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()

    @property
    def likely(self) -> tuple[Hit, ...]:
        """The hits that are not perhaps ones."""
        return tuple(hit for hit in self.hits if not hit.perhaps)

    @property
    def matching(self) -> tuple[Hit, ...]:
        """The hits if any has a word of the query or lies near it; else none, as all of them are guesses."""
        return self.hits if any(map(is_match, self.hits)) else ()


def is_match(hit: Hit) -> bool:
    """Tell whether a hit has a word of the query or lies near it; if not, it stands beside what does, or is a guess."""
    return hit.reasons.keyword_rank is not None or hit.reasons.dense_score >= _LEAST_COSINE


class ResponseStore(Protocol):
    """Keeps answers; derived, so that whatever goes wrong nothing is lost. Safe to share between threads."""

    def candidates(self, facts: str, system: str, now: float) -> list[StoredResponse]:
        """The answers made from these facts by this system that hold at `now` (seconds since 1970), newest first."""

    def add(self, response: StoredResponse, *, keep: int) -> None:
        """Keep an answer in the place of one to the same words; of more than `keep` those not used for longest go."""

    def used(self, number: int, now: float) -> None:
        """Take note that an answer was given again."""

    def count(self) -> int:
        """Return how many answers there are."""

    def clear(self) -> None:
        """Forget all answers."""


def check_request(where: SearchFilter, limit: int) -> None:
    """Make sure that a search can be asked for.

    Raises:
        ValueError: the limit is negative, or a time of the filter has no time zone.
    """
    if limit < 0:
        raise ValueError(f"limit is {limit}: so many hits there cannot be")
    for name, moment in (("since", where.since), ("until", where.until)):
        if moment is not None and moment.tzinfo is None:
            raise ValueError(f"{name} is {moment}, which has no time zone")


class MemorySearch:
    """Answers queries over one memory. Safe to share between threads.

    Args:
        index: what is asked.
        embedders: the configured one first, none where search by meaning is off. Until it has embedded everything, the
            one whose model has embedded most answers.
        words: compares single words.
        indexer: keeps the index up to date.
        ledger: tells how facts stand now.
        clock: tells what "last week" is.
        guard: keeps searches from an embedder that fails.
        responses: keeps answers of a model beside the index.
        is_remote: the embedder is a server, which passages are sent to in the background alone.
        fault: why the configured embedder cannot be had; empty where it can, or is not wanted.
        release: frees what the embedders hold and ends their work; called on closing.
    """

    def __init__(
        self,
        index: SearchIndex,
        embedders: Sequence[Embedder],
        words: WordEmbedder | None,
        indexer: Indexer,
        *,
        ledger: Ledger,
        clock: Clock,
        guard: Guard,
        responses: ResponseStore,
        is_remote: bool = False,
        fault: str = "",
        release: Callable[[], object] = lambda: None,
    ) -> None:
        self._embedder = embedders[0] if embedders else None
        self._searchers = [(each, Searcher(index, each, words)) for each in embedders]
        self._by_words = Searcher(index, None, None)
        self._release = release
        self._fault = fault
        self._guard = guard
        self.responses = responses
        self._is_remote = is_remote
        self._index = index
        self._indexer = indexer
        self._ledger = ledger
        self._clock = clock
        self._worker = IndexWorker(partial(self.catch_up, pause_s=_STEP_S), guard)
        self._kept_up_at = -_UPKEEP_AFTER
        self._told = 0  # so many of the index's problems need be told no more

    def search(
        self,
        query: str,
        *,
        where: SearchFilter = EVERYTHING,
        mode: SearchMode = SearchMode.HYBRID,
        limit: int = 10,
        session: str | None = None,
    ) -> Answer:
        """Find what answers a query best; any string is one.

        Args:
            query: words, a question, names such as `#12` or `src/app.py`.
            where: what alone is looked at.
            mode: by words, by meaning, or both.
            limit: how many hits at most.
            session: who asks; what is theirs goes a little before what is not.

        Raises:
            ValueError: there is no such mode, the limit is negative, or a time of the filter has no time zone.
            StorageError: the index cannot be used.
            EmbedderError: by meaning alone, and no vectors can be had.
        """
        mode = SearchMode(mode)
        check_request(where, limit)
        situation = Situation(now=self._clock(), session=session)
        known = self._index.problems
        try:
            answer = self._answer(query, where, mode, limit, situation)
        except DatabaseDamagedError as error:  # who asks again finds what was damaged begun anew
            logger.warning("%s", error)
            answer = self._answer(query, where, mode, limit, situation)
        if new := self._index.problems[len(known) :]:  # begun anew while it was asked: ids were those of other chunks
            answer = self._answer(query, where, mode, limit, situation)
            answer = replace(answer, notes=tuple(dict.fromkeys((*new, *answer.notes))))
        return answer

    def _answer(self, query: str, where: SearchFilter, mode: SearchMode, limit: int, situation: Situation) -> Answer:
        backlog, has_vectors, notes = self._take_in()
        if backlog.operations:
            notes.append(f"{backlog.operations:,} operations are not in the index yet; they are being taken in")
        if backlog.vectors:
            notes.append(f"{backlog.vectors:,} passages are found by their words alone until they are embedded")
        best = self._best()
        if mode is SearchMode.DENSE and (best is None or (self._why_off and best[0] not in self._index.models())):
            raise EmbedderError(f"search by meaning is off: {self._why_off}" if self._why_off else _NO_EMBEDDER)
        # Who asks does not wait for an embedder twice.
        searcher = best[1] if best and (has_vectors or mode is SearchMode.DENSE) else self._by_words

        def ask(searcher: Searcher, size: int) -> list[Hit]:
            return searcher.search(query, situation, where=where, mode=mode, limit=size)

        limit = min(limit, sys.maxsize // 2)
        try:
            hits = enough_of(partial(ask, searcher), self._standing, limit)
        except EmbedderError as error:
            if mode is SearchMode.DENSE:
                raise
            notes.append(_off(error))
            hits = enough_of(partial(ask, self._by_words), self._standing, limit)
        return Answer(hits=tuple(hits), notes=tuple(dict.fromkeys(notes)))

    @property
    def problem(self) -> str | None:
        """What keeps search by meaning off, in words; None where it works, as far as is known, or is not wanted."""
        return _off(self._why_off) if self._why_off else None

    @property
    def _why_off(self) -> str:
        return self._fault or self._guard.problem or ""

    @property
    def answering_model(self) -> EmbeddingModel | None:
        """The model whose vectors answer now; None where words alone do."""
        best = self._best()
        return best[0] if best else None

    def embed(self, text: str) -> tuple[EmbeddingModel, Vector] | None:
        """Return the vector of a text with the model that made it; None where none can be had."""
        if self._embedder is None:
            return None
        try:
            return self._embedder.model, self._embedder.embed_query(text)
        except EmbedderError as error:
            logger.debug("no vector of a question: %s", error)
            return None

    def section(self, hit: Hit) -> str:
        """Return a hit's passage with those around it that stand under the same headings, in their order."""
        around = self._index.neighbours(np.array([hit.id], np.int64), _REACH)[0]
        chunks = self._index.chunks(around)

        def beside(chunks: Iterable[Chunk | None]) -> Iterator[str]:
            for chunk in chunks:
                if chunk is None or chunk.heading != hit.chunk.heading:
                    return
                yield chunk.text

        before = [*beside(reversed(chunks[:_REACH]))][::-1]
        return "\n".join([*before, hit.chunk.text, *beside(chunks[_REACH:])])

    def note_recalled(self, passages: Sequence[str]) -> None:
        """Take note of passages that are given to a model: recorded again, they are no new memory."""
        self._indexer.note_recalled(passages)

    def _best(self) -> tuple[EmbeddingModel, Searcher] | None:
        """Of the models that are known the first that has embedded most."""
        known = []
        for embedder, searcher in self._searchers:
            with suppress(EmbedderError):  # a server that has not been heard of
                known.append((embedder.model, searcher))
        embedded = self._index.models()
        return max(known, key=lambda each: embedded.get(each[0], 0), default=None)

    def _take_in(self) -> tuple[Backlog, bool, list[str]]:
        """Bring the index up, as far as it can be in little time.

        What is left, whether vectors can be had, and notes. What was found damaged is told until it is made anew.
        """
        nothing = Backlog(operations=0, vectors=0)
        notes = [_off(self._fault)] if self._fault else []
        try:
            backlog = self._indexer.catch_up(_AT_ONCE_S, embeds=not self._is_remote)
            if backlog or self._upkeep_due:
                self.follow()
            if self._is_remote and backlog.vectors and not self._guard.problem:
                self._worker.rested.wait(_PATIENCE_S)
                backlog = self._indexer.backlog()
            problems = self._index.problems
            notes += problems[self._told :]
            if not backlog:
                self._told = len(problems)
            if self._guard.problem:
                raise EmbedderError(self._guard.problem)
        except EmbedderError as error:
            self.follow()
            notes += [*self._index.problems[self._told :], _off(error)]
            return nothing, False, notes
        except StorageError as error:
            # What is in the index may still be had; where it may not, the search itself says so.
            logger.warning("the search index could not be brought up to the memory: %s", error)
            notes += self._index.problems[self._told :]
            notes.append(f"the newest may be missing, the index could not be brought up: {error}")
            return nothing, True, notes
        return backlog, True, notes

    @property
    def _upkeep_due(self) -> bool:
        """With the first search of a process, and whenever the index has grown by a good deal."""
        return self._index.count() >= self._kept_up_at + _UPKEEP_AFTER

    def catch_up(self, told: Callable[[Backlog], None] | None = None, *, pause_s: float = 0.0) -> None:
        """Take in everything now; `told` hears again and again what is left, and others have their turn in pauses.

        Raises:
            StorageError: the index or the memory cannot be read or written.
            EmbedderError: no vectors can be made.
        """
        while backlog := self._indexer.catch_up(_STEP_S):
            if told is not None:
                told(backlog)
            if self._worker.closing.wait(pause_s):
                return
        self._kept_up_at = self._index.count()
        for model in self._index.models():
            if self._embedder and model != self._embedder.model:
                self._index.drop_model(model)
        self._index.maintain()

    def rebuild(self) -> None:
        """Throw the index away; `catch_up` makes it anew."""
        self._index.rebuild()
        self._told = 0

    def follow(self) -> None:
        """Have the index brought up in the background."""
        self._worker.follow()

    def _standing(self, hits: Sequence[Hit]) -> Iterator[Hit]:
        """The hits without facts that were taken back, done or removed since they were taken in.

        A fact that a person has reworded since says what it says now; from here on it is found by that. The facts of a
        summary are told as they are now, as its document tells them.
        """
        numbers = {number for hit in hits for number in _facts_in(hit)}
        facts = {fact.id: fact for fact in self._ledger.must_keeps_by_id(sorted(numbers))} if numbers else {}
        for hit in hits:
            chunk = hit.chunk
            if _letter(hit) == "S":
                text = with_states(chunk.text, facts)
                if not text.strip():
                    continue
                chunk = replace(chunk, text=text)
            elif _letter(hit) == "K":
                fact = facts.get(int(chunk.source[1:]))
                if fact is None or fact.status is not MustKeepStatus.STANDING:
                    continue
                if fact.text != chunk.text:
                    chunk = chunk_fact(fact)
                    self._index.add([chunk])
                    self._index.remove([hit.chunk.key])
            yield hit if chunk is hit.chunk else replace(hit, chunk=chunk)

    def close(self) -> None:
        """End what runs behind, within moments, and close the index."""
        self._worker.end()
        self._indexer.keep_recalled()
        self._index.close()
        self._release()
        if self._worker.join():
            self._release()  # it may have begun to embed once more


def _off(why: object) -> str:
    return f"search by meaning is off, words alone answer: {why}"


def _facts_in(hit: Hit) -> list[int]:
    """The numbers of the facts that a hit tells with their numbers."""
    if _letter(hit) == "K":
        return [int(hit.chunk.source[1:])]
    return kept_numbers(hit.chunk.text) if _letter(hit) == "S" else []


def _letter(hit: Hit) -> str:
    """What stands before the number of what was found: `K` of a fact, `S` of a summary."""
    return hit.chunk.source[0] if hit.chunk.source[1:].isdigit() else ""

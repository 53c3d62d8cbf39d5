"""Search all tiers: bring the index up to date, query it, and report in notes what could not be searched.

Without vectors, keyword search answers alone and a note gives the reason. Without an index, search raises an error.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from orchestra_mem.core.search.hybrid import Searcher, search_until
from orchestra_mem.core.search.responses import StoredResponse
from orchestra_mem.errors import DatabaseDamagedError, EmbedderError, InvalidTimeError, StorageError
from orchestra_mem.ports import Clock
from orchestra_mem.retrieval.current_hits import current, marked, questions_last, source_letter
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
    Vector,
    WordEmbedder,
)
from orchestra_mem.serialize import NO_ZONE

logger = logging.getLogger(__name__)

# Time that a search may spend on indexing new content before it answers; the rest is indexed in the background.
_AT_ONCE_S = 0.5
# Time that a search waits for an embedding server; then only keywords find content that has no vectors yet.
_PATIENCE_S = 0.5
_STEP_S = 0.05
# Pause of the background thread after each step, and while operations are recorded in quick succession: steps then take
# 5 % of the time.
_PAUSE_S, _BUSY_PAUSE_S = 0.05, 1.0
_FEW = 5  # operations during a step and the pause before it that are no quick succession
_UPKEEP_AFTER = 2_000
# Dense search returns the nearest chunks, however far; below this cosine, a chunk is unrelated to the query.
_LEAST_COSINE = 0.2
_NO_EMBEDDER = "search by meaning needs an embedder, and search.embedder is off: set it to wordllama"
# Maximum number of chunks on each side that are joined to a hit if they have the same headings.
_REACH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a search, best hits first; `notes` are messages about what it could not search or do."""

    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()

    @property
    def likely(self) -> tuple[Hit, ...]:
        """The hits that are not marked `perhaps`."""
        return tuple(hit for hit in self.hits if not hit.perhaps)

    @property
    def matching(self) -> tuple[Hit, ...]:
        """All hits if at least one matches the query; otherwise none, as all of them are guesses."""
        return self.hits if any(map(is_match, self.hits)) else ()


def is_match(hit: Hit) -> bool:
    """Check whether a hit matches by keyword or vector; if not, it is a neighbour of a match, or a guess."""
    return hit.reasons.keyword_rank is not None or hit.reasons.dense_score >= _LEAST_COSINE


class ResponseStore(Protocol):
    """A store of a model's answers. They are derived data and may be lost. Safe to share between threads."""

    def candidates(self, facts: str, system: str, now: float) -> list[StoredResponse]:
        """Return answers for these facts and this system that are valid at `now` (seconds since 1970), newest first."""

    def add(self, response: StoredResponse, *, keep: int) -> None:
        """Store an answer, replacing one to the same question, and keep only the `keep` most recently used answers."""

    def used(self, number: int, now: float) -> None:
        """Record that an answer was returned again."""

    def count(self) -> int:
        """Return the number of answers."""

    def clear(self) -> None:
        """Delete all answers."""


def check_request(where: SearchFilter, limit: int, query: str = "") -> None:
    """Validate the arguments of a search.

    Raises:
        ValueError: The query is not a string, or the limit is no number or negative.
        InvalidTimeError: A time of the filter has no time zone.
    """
    if not isinstance(query, str):
        raise ValueError(f"the query is {query!r}: must be a string")
    if not hasattr(limit, "__index__") or limit < 0:
        raise ValueError(f"limit is {limit!r}: must be at least 0")
    for name, moment in (("since", where.since), ("until", where.until)):
        if moment is not None and moment.tzinfo is None:
            raise InvalidTimeError(f"{name} is {moment}, which {NO_ZONE}")


_NOTHING = Backlog(operations=0, vectors=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gaps:
    """What the index lacks at a search: faults as messages, what is not indexed yet, whether vectors can be used."""

    faults: tuple[str, ...]
    backlog: Backlog
    has_vectors: bool

    def notes(self) -> Iterator[str]:
        """Yield a note for each gap."""
        yield from self.faults
        if self.backlog.operations:
            yield f"{self.backlog.operations:,} operations are not in the index yet; they are being indexed"
        if self.backlog.vectors:
            yield f"{self.backlog.vectors:,} passages are found only by keywords until they are embedded"


@dataclass(eq=False)
class MemorySearch:
    """Answers queries over one memory. Safe to share between threads.

    Attributes:
        index: The index to search.
        embedders: The configured embedder first; empty if search by meaning is off. The embedder whose model has
            embedded the most chunks answers queries.
        words: Compares single words.
        indexer: Keeps the index up to date; its ledger provides the current state of facts.
        clock: Returns the current time, from which "last week" is computed.
        guard: Blocks calls of the configured embedder while it fails.
        responses: Stores a model's answers next to the index.
        is_remote: Whether the embedder is a server; then passages are embedded in the background only.
        fault: Why the configured embedder cannot be loaded; empty if it can, or if none is configured.
        release: Frees the embedders' resources and ends their work; called by `close`, perhaps twice.
    """

    index: SearchIndex
    embedders: Sequence[Embedder]
    words: WordEmbedder | None
    indexer: Indexer
    _: KW_ONLY
    clock: Clock
    guard: Guard
    responses: ResponseStore
    is_remote: bool = False
    fault: str = ""
    release: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        """Prepare the searches with and without each embedder, and the background thread."""
        self._embedder = self.embedders[0] if self.embedders else None
        self._searchers = [(each, Searcher(self.index, each, self.words)) for each in self.embedders]
        self._by_words = Searcher(self.index, None, None)
        self._worker = IndexWorker(partial(self.catch_up, pauses=True), self.guard)
        self._kept_up_at = -_UPKEEP_AFTER
        self._reported_problems = 0  # number of the index's problems that are solved and no longer reported

    def search(
        self,
        query: str,
        *,
        where: SearchFilter = EVERYTHING,
        mode: SearchMode = SearchMode.HYBRID,
        limit: int = 10,
        session: str | None = None,
    ) -> Answer:
        """Find the chunks that answer a query best.

        Args:
            query: Any string: words, a question, names such as `#12` or `src/app.py`.
            where: Restricts the search.
            mode: Search by keywords, by meaning, or by both.
            limit: Maximum number of hits.
            session: The current session; its chunks rank slightly higher.

        Raises:
            ValueError: There is no such mode, the query is not a string, or the limit is no number or negative.
            InvalidTimeError: A time of the filter has no time zone.
            StorageError: The index cannot be used.
            EmbedderError: The mode is `dense`, and the query cannot be embedded.
        """
        mode = SearchMode(mode)
        check_request(where, limit, query)
        known = self.index.problems
        try:
            answer = self._answer(query, where, mode, limit, session)
        except DatabaseDamagedError as error:  # the next attempt recreates the index
            logger.warning("%s", error)
            answer = self._answer(query, where, mode, limit, session)
        if new := self.index.problems[len(known) :]:  # the index was recreated meanwhile: ids changed
            answer = self._answer(query, where, mode, limit, session)
            answer = replace(answer, notes=tuple(dict.fromkeys((*new, *answer.notes))))
        return answer

    def _answer(self, query: str, where: SearchFilter, mode: SearchMode, limit: int, session: str | None) -> Answer:
        now = self.clock()
        gaps = self._find_gaps()
        notes = [*gaps.notes()]
        best = self._best()
        if mode is SearchMode.DENSE and (best is None or (self._why_off and best[0] not in self.index.models())):
            raise EmbedderError(f"search by meaning is off: {self._why_off}" if self._why_off else _NO_EMBEDDER)
        # If embedding the passages has just failed, do not wait for that embedder again.
        asks = gaps.has_vectors or mode is SearchMode.DENSE or (best and best[1].embedder is not self._embedder)
        searcher = best[1] if best and asks else self._by_words

        def ask(searcher: Searcher, size: int) -> list[Hit]:
            return searcher.search(query, now, session=session, where=where, mode=mode, limit=size)

        limit = min(limit, sys.maxsize // 2)
        keep = partial(self._current, marks=not where.strict)  # a strict search learns nothing of others' decisions
        try:
            hits = search_until(partial(ask, searcher), keep, limit)
        except EmbedderError as error:
            if mode is SearchMode.DENSE:
                raise
            notes.append(_off(error))
            hits = search_until(partial(ask, self._by_words), keep, limit)
        return Answer(hits=tuple(hits), notes=tuple(dict.fromkeys(notes)))

    @property
    def problem(self) -> str | None:
        """Why search by meaning is off, as a message; None if no failure is known, or if it is not configured."""
        return self._limited(self._why_off) if self._why_off else None

    def _limited(self, why: object) -> str:
        """Describe a failure of the configured embedder: whether other vectors answer or only keywords, and why."""
        best = self._best()
        has_others = best and best[1].embedder is not self._embedder and best[0] in self.index.models()
        return f"search by meaning still uses the built-in word vectors: {why}" if has_others else _off(why)

    @property
    def _why_off(self) -> str:
        return self.fault or self.guard.problem or ""

    @property
    def answering_model(self) -> EmbeddingModel | None:
        """The model whose vectors answer queries now; None if keywords alone answer."""
        best = self._best()
        return best[0] if best else None

    def embed(self, text: str) -> tuple[EmbeddingModel, Vector] | None:
        """Return the model of the configured embedder and a text's vector; None without an embedder or if it fails."""
        if self._embedder is None:
            return None
        try:
            return self._embedder.model, self._embedder.embed_query(text)
        except EmbedderError as error:
            logger.debug("a question could not be embedded: %s", error)
            return None

    def section(self, hit: Hit) -> str:
        """Return a hit's text joined, in order, with neighbouring chunks that have the same headings."""
        around = self.index.neighbours(np.array([hit.id], np.int64), _REACH)[0]
        chunks = self.index.chunks(around)

        def beside(chunks: Iterable[Chunk | None]) -> Iterator[str]:
            for chunk in chunks:
                if chunk is None or chunk.heading != hit.chunk.heading:
                    return
                yield chunk.text

        before = [*beside(reversed(chunks[:_REACH]))][::-1]
        text = "\n".join([*before, hit.chunk.text, *beside(chunks[_REACH:])])
        return self.indexer.ledger.with_states([text])[0] if source_letter(hit) == "S" else text

    def _best(self) -> tuple[EmbeddingModel, Searcher] | None:
        """Return the known model that has embedded the most chunks, the first on a tie, with its searcher."""
        known = []
        for embedder, searcher in self._searchers:
            with suppress(EmbedderError):  # raised until a server's first answer
                known.append((embedder.model, searcher))
        embedded = self.index.models()
        return max(known, key=lambda each: embedded.get(each[0], 0), default=None)

    def _find_gaps(self) -> _Gaps:
        """Update the index within a short time, and return what it lacks.

        Damage that was found is reported until the index is complete again.
        """
        reported, backlog, embedder_fault, storage_fault = self._reported_problems, _NOTHING, "", ""
        try:
            backlog = self._update_briefly()
            embedder_fault = self.guard.problem or ""
        except EmbedderError as error:
            embedder_fault = str(error)
        except StorageError as error:
            # The index may still be readable; if not, the search itself raises the error.
            logger.warning("the search index could not be updated: %s", error)
            storage_fault = f"the newest content may be missing because the index could not be updated: {error}"
        if embedder_fault:
            self.follow()
            backlog, embedder_fault = _NOTHING, self._limited(embedder_fault)
        fault = _off(self.fault) if self.fault else ""
        faults = (fault, *self.index.problems[reported:], embedder_fault, storage_fault)
        return _Gaps(faults=tuple(filter(None, faults)), backlog=backlog, has_vectors=not embedder_fault)

    def _update_briefly(self) -> Backlog:
        """Update the index within a short time, leave the rest to the background thread, and return what remains."""
        backlog = self.indexer.catch_up(_AT_ONCE_S, embeds=not self.is_remote)
        if backlog or self.index.count() >= self._kept_up_at + _UPKEEP_AFTER:  # so also for the first search
            self.follow()
        if self.is_remote and backlog.vectors and not self.guard.problem:
            self._worker.rested.wait(_PATIENCE_S)
            backlog = self.indexer.backlog()
        if not backlog:
            self._reported_problems = len(self.index.problems)
        return backlog

    def catch_up(self, on_progress: Callable[[Backlog], None] | None = None, *, pauses: bool = False) -> None:
        """Index everything, then do the upkeep.

        Args:
            on_progress: Called with the backlog after each step.
            pauses: Whether to pause after each step, so that callers that record are not slowed down.

        Raises:
            StorageError: The index or the memory cannot be read or written.
            EmbedderError: Vectors cannot be made.
        """
        log = self.indexer.log
        seen = log.last_operation()
        while backlog := self.indexer.catch_up(_STEP_S):
            if on_progress is not None:
                on_progress(backlog)
            before, seen = seen, log.last_operation()
            if self._worker.closing.wait((_PAUSE_S if seen - before <= _FEW else _BUSY_PAUSE_S) if pauses else 0):
                return
        self._kept_up_at = self.index.count()
        for model in self.index.models():
            if self._embedder and model != self._embedder.model:
                self.index.drop_model(model)
        self.index.maintain()

    def rebuild(self) -> None:
        """Delete the index; `catch_up` recreates it."""
        self.index.rebuild()
        self._reported_problems = 0

    def follow(self) -> None:
        """Request an index update in the background."""
        self._worker.follow()

    def _current(self, hits: Sequence[Hit], *, marks: bool) -> list[Hit]:
        def reindex(hit: Hit, chunk: Chunk) -> None:
            self.index.add([chunk])
            self.index.remove([hit.chunk.key])

        expired = {item.id for item in self.indexer.catalog.expiring(self.clock())}  # and not yet cleaned up
        hits = [hit for hit in hits if hit.chunk.source not in expired]
        found = questions_last(current(hits, self.indexer.ledger, reindex))
        return marked(found, self.indexer.ledger) if marks else found

    def close(self) -> None:
        """End the background thread, waiting up to 2 s, and close the index."""
        self._worker.end()
        self.indexer.keep_recalled()
        self.index.close()
        self.release()
        self._worker.join()
        self.release()  # the thread may have embedded once more


def _off(why: object) -> str:
    return f"search by meaning is off, so only keywords are searched: {why}"

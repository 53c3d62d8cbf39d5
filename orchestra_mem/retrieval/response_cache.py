"""Cache a model's answers by question, facts, model and prompt.

The program looks an answer up before it calls its model, and stores the model's answer; see `ResponseCache`.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np

from orchestra_mem.core.search.responses import ResponseKind, StoredResponse, difference
from orchestra_mem.core.text import digest_of
from orchestra_mem.design_names import RejectsDesignArguments
from orchestra_mem.errors import ClosedError, OrchestraMemError, SearchError, StorageError
from orchestra_mem.ports import Clock
from orchestra_mem.retrieval.lazy_search import LazySearch
from orchestra_mem.settings import ResponsesSettings
from orchestra_mem.types import Json

logger = logging.getLogger(__name__)

_MAX_ANSWER_CHARS = 1_000_000
# Number of top passages assumed to be the basis of an answer, if the caller names no facts.
_FACTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedResponse:
    """An earlier answer. `similarity` is the cosine of the earlier and the new question, 1.0 for the same words."""

    answer: str
    question: str
    kind: ResponseKind
    similarity: float
    age_s: float


class ResponseCache(RejectsDesignArguments, use="open_memory(project, config=config).response_cache"):
    """Returns earlier answers while nothing that they depend on has changed. Safe to share between threads.

        found = memory.response_cache.get(question, model="qwen", prompt_file="prompt.md")
        if found is None:
            answer = ask_the_model(question)
            memory.response_cache.put(question, answer, model="qwen", prompt_file="prompt.md")

    Args:
        search: Embeds questions, finds the facts for them, and provides the store of answers.
        clock: Returns the current time.
        settings: Similarity threshold, maximum number of answers, and lifetime of each kind.
        has_secrets: Checks a text for secrets; an answer or question with secrets is not stored.
    """

    def __init__(
        self,
        search: LazySearch,
        *,
        clock: Clock,
        settings: ResponsesSettings,
        has_secrets: Callable[[str], bool] = lambda text: False,
    ) -> None:
        self._has_secrets = has_secrets
        self._search = search
        self._clock = clock
        self._settings = settings
        self._lock = threading.Lock()
        self._hits = self._misses = 0

    def get(
        self,
        question: str,
        *,
        facts: Sequence[str] | None = None,
        model: str = "",
        prompt_file: str | Path | None = None,
    ) -> CachedResponse | None:
        """Return an earlier answer to the same or a similar question; None if there is no valid one.

        Questions are similar if their vectors are, and their numbers, names, and words such as who or not are the same.

        Args:
            question: Any string.
            facts: Texts that the answer is based on; by default the passages that search now finds for the question.
            model: Name of the model that would answer.
            prompt_file: File with the model's prompt. Answers made with another content of the file are not used.

        Raises:
            ClosedError: The memory has been closed.
        """
        try:
            found = self._find(question, facts, self._system(model, prompt_file))
        except ClosedError:
            raise
        except OrchestraMemError as error:
            logger.warning("the response cache cannot be used, so the model has to answer: %s", error)
            found = None
        with self._lock:
            self._hits += found is not None
            self._misses += found is None
        return found

    def put(
        self,
        question: str,
        answer: str,
        *,
        kind: ResponseKind | str = ResponseKind.FACTUAL,
        facts: Sequence[str] | None = None,
        model: str = "",
        prompt_file: str | Path | None = None,
    ) -> bool:
        """Store an answer for the lifetime of its kind; return False if it cannot be stored or holds secrets.

        `get` finds the answer by the same arguments.

        Raises:
            ValueError: There is no such kind.
            ClosedError: The memory has been closed.
        """
        kind = ResponseKind(kind)
        if not question.strip() or len(answer) > _MAX_ANSWER_CHARS or not self._settings.max_entries:
            return False
        if self._has_secrets(question) or self._has_secrets(answer):  # not masked: that would change the answer
            return False
        now = self._clock()
        try:
            search = self._search.open()
            embedding, vector = search.embed(question) or (None, None)
            response = StoredResponse(
                question=question,
                answer=answer,
                kind=kind,
                facts=self._facts(question, facts),
                system=self._system(model, prompt_file),
                created=now,
                expires=now + timedelta(seconds=getattr(self._settings, f"{kind.value}_ttl_s")),
                model=embedding,
                vector=vector,
            )
            search.responses.add(response, keep=self._settings.max_entries)
        except ClosedError:
            raise
        except OrchestraMemError as error:
            logger.warning("an answer could not be cached: %s", error)
            return False
        return True

    def _find(self, question: str, facts: Sequence[str] | None, system: str) -> CachedResponse | None:
        if not question.strip():
            return None
        store, now = self._search.open().responses, self._clock()
        candidates = store.candidates(self._facts(question, facts), system, now.timestamp())
        if not candidates:
            return None
        best, similarity = self._nearest(question, candidates)
        if best is None:
            return None
        store.used(best.id, now.timestamp())
        return CachedResponse(
            answer=best.answer,
            question=best.question,
            kind=best.kind,
            similarity=similarity,
            age_s=(now - best.created).total_seconds(),
        )

    def _nearest(self, question: str, candidates: Sequence[StoredResponse]) -> tuple[StoredResponse | None, float]:
        """Return the nearest answer to the same or a similar question, with the cosine of the two questions."""
        same = next((each for each in candidates if each.question.split() == question.split()), None)
        if same is not None:
            return same, 1.0
        model, vector = self._search.open().embed(question) or (None, None)
        if vector is None or not vector.any():
            return None, 0.0
        cosines = [
            (float(np.dot(each.vector, vector)), each)
            for each in candidates
            if each.model == model and each.vector is not None
        ]
        near = sorted((pair for pair in cosines if pair[0] > self._settings.similarity), key=lambda pair: -pair[0])
        alike = ((each, cosine) for cosine, each in near if not difference(question, each.question))
        return next(alike, (None, 0.0))

    def _facts(self, question: str, facts: Sequence[str] | None) -> str:
        """Hash the facts that an answer is based on; by default the keys of chunks, which change with their content."""
        if facts is None:
            facts = [hit.chunk.key for hit in self._search.open().search(question, limit=_FACTS).matching]
        return digest_of(*sorted(set(facts)))

    @staticmethod
    def _system(model: str, prompt_file: str | Path | None) -> str:
        """Hash the model's name and the current content of its prompt file; `StorageError` if it is unreadable."""
        try:
            prompt = b"" if prompt_file is None else Path(prompt_file).read_bytes()
        except OSError as error:
            raise StorageError(f"the prompt file {prompt_file} cannot be read: {error.strerror or error}") from error
        return digest_of(model, hashlib.sha256(prompt).hexdigest())

    def clear(self) -> None:
        """Delete all answers.

        Raises:
            StorageError: The store cannot be used.
        """
        self._search.open().responses.clear()

    def get_stats(self) -> dict[str, Json]:
        """Return the number of answers (-1 if the store cannot be used) and of hits and misses since the start."""
        try:
            count = self._search.open().responses.count()
        except (SearchError, StorageError):
            count = -1
        return {
            "responses": count, "max_responses": self._settings.max_entries, "hits": self._hits, "misses": self._misses,
        }  # fmt: skip

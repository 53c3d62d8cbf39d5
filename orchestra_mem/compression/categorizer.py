"""Categorise orchestrations: a model extracts what was learnt, or rules do so if its answer is unusable."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext

from orchestra_mem.catalog_types import Categorization, CategorizedOrchestration, MemoryItem
from orchestra_mem.compression.timeouts import ModelWithTimeout
from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.core.catalog.categorisation import (
    Orchestration,
    by_rules,
    categorisation_prompt,
    categorisation_schema,
    is_orchestration,
    read_categorization,
    read_orchestration,
)
from orchestra_mem.design_names import RejectsDesignArguments
from orchestra_mem.errors import InvalidItemError, ModelError, OrchestraMemError
from orchestra_mem.model_types import LanguageModel
from orchestra_mem.settings import CategorizationSettings
from orchestra_mem.tiers.catalog_learning import OrchestrationObservations
from orchestra_mem.types import Json, Operation

logger = logging.getLogger(__name__)

AnyOrchestration = Mapping[str, object] | Operation | Orchestration

_GRACE_S = 5.0


class CategorizedBatch(tuple[CategorizedOrchestration, ...]):
    """The results of a batch, in input order. `successful` and `failed` select from them, as in the source design."""

    __slots__ = ()

    @property
    def successful(self) -> list[CategorizedOrchestration]:
        """The orchestrations that were categorised."""
        return [each for each in self if each.success]

    @property
    def failed(self) -> list[CategorizedOrchestration]:
        """The orchestrations that could not be categorised."""
        return [each for each in self if not each.success]

    @property
    def partial_success(self) -> bool:
        """Whether some orchestrations were categorised and others failed."""
        return 0 < len(self.failed) < len(self)


class CategorizationService(
    RejectsDesignArguments, use="memory.categorization, or CategorizationService(memory.model)"
):
    """Extracts what was learnt from orchestrations. Safe to share between threads.

    A memory's own service (`memory.categorization`) stores each categorization as an observation in the catalog.

    Args:
        model: The model to ask; None to use the rules only.
        settings: Limits for the model's answers, and whether the rules replace a missing answer.
        observations: Stores the categorizations; None to store nothing.
        foreground: Returns a context manager that keeps background jobs off the model.
        redacted: Removes secrets from a text.
    """

    def __init__(
        self,
        model: LanguageModel | None = None,
        *,
        settings: CategorizationSettings | None = None,
        observations: OrchestrationObservations | None = None,
        foreground: Callable[[], AbstractContextManager[object]] = nullcontext,
        redacted: Callable[[str], str] = str,
    ) -> None:
        self._settings = settings or CategorizationSettings()
        self._timeout_s = self._settings.timeout_ms / 1_000
        grace_s = min(_GRACE_S, self._timeout_s)
        self._model = ModelWithTimeout(model, timeout_s=self._timeout_s, grace_s=grace_s) if model else None
        self._observations = observations
        self._foreground = foreground
        self._redacted = redacted
        # The model answers one prompt at a time: the time limit must not include the wait for other prompts.
        self._turn = threading.Lock()
        self._counting = threading.Lock()
        self._counts = dict.fromkeys(("total_requests", "successful", "failed", "fallbacks"), 0)
        self._mean_ms = 0.0

    def is_ai_available(self) -> bool:
        """Check whether there is a model to ask."""
        return self._model is not None

    def categorize_orchestration(self, orchestration: AnyOrchestration) -> Categorization:
        """Return what was learnt from an orchestration. A memory's own service also stores it in the catalog.

        Args:
            orchestration: The recorded operation, or a mapping with a `task` and optionally `id` (of the operation, or
                as given to `VectorStore.add_orchestration`), `pattern`, `agent_ids`, `result_summary`, `success`,
                `duration` (ms).

        Raises:
            InvalidItemError: The orchestration is invalid; the error lists all faults.
            ModelError: The model gave no usable answer, and `categorization.fallback_to_rules` is off.
            StorageError: The observation could not be stored.
        """
        self._count("total_requests")
        begun = time.monotonic()
        try:
            done = self._without_secrets(read_orchestration(orchestration))
        except InvalidItemError:
            self._count("failed")
            raise
        try:
            learnt = self._ask(done)
            self._count("successful", (time.monotonic() - begun) * 1_000)
        except ModelError as error:
            self._count("failed")
            if not self._settings.fallback_to_rules:
                raise
            logger.log(logging.WARNING if self._model else logging.DEBUG, "categorised by rules: %s", error)
            self._count("fallbacks")
            learnt = by_rules(done)
        if self._observations is not None:
            self._observations.store(done.id, done.agent_ids, learnt)
        return learnt

    def _without_secrets(self, done: Orchestration) -> Orchestration:
        task, result = self._redacted(done.task), self._redacted(done.result_summary or "")
        return done.model_copy(update={"task": task, "result_summary": result})

    def _ask(self, done: Orchestration) -> Categorization:
        if self._model is None:
            raise ModelError("no model is configured: set llm.model_path or llm.base_url")
        asked, schema = categorisation_prompt(done), categorisation_schema(done)
        with self._turn, self._foreground():
            deadline, tries = time.monotonic() + self._timeout_s, self._settings.retries + 1
            for attempt in range(tries):
                try:
                    answer = self._model.ask(
                        asked, max_tokens=self._settings.max_tokens, schema=schema, cancelled=lambda: False,
                        temperature=self._settings.temperature, seed=attempt,
                    )  # fmt: skip
                    return read_categorization(answer.text, self._model.model.name)
                except ModelError:
                    if attempt + 1 == tries or time.monotonic() >= deadline:
                        raise
        raise AssertionError("the last try returns or raises")

    def categorize_orchestrations_batch(
        self, orchestrations: Iterable[AnyOrchestration], concurrency: int = 3
    ) -> CategorizedBatch:
        """Categorise several orchestrations, `concurrency` at a time. A failure does not stop the others.

        The model still answers one prompt at a time; only reading, rules and storing run concurrently.

        Raises:
            ValueError: `concurrency` is less than 1.
        """
        if concurrency < 1:
            raise ValueError(f"concurrency is {concurrency}: must be at least 1")
        begun = time.monotonic()
        with ThreadPoolExecutor(concurrency, thread_name_prefix="orchestra-mem categorising") as pool:
            batch = CategorizedBatch(pool.map(self._categorized, orchestrations))
        spent_ms = (time.monotonic() - begun) * 1_000
        logger.info("%d of %d orchestrations categorised in %.0f ms", len(batch.successful), len(batch), spent_ms)
        return batch

    def _categorized(self, orchestration: AnyOrchestration) -> CategorizedOrchestration:
        number = orchestration.get("id") if isinstance(orchestration, Mapping) else getattr(orchestration, "id", None)
        number = number if isinstance(number, int | str) else None
        try:
            return CategorizedOrchestration(
                orchestration_id=number, result=self.categorize_orchestration(orchestration)
            )
        except OrchestraMemError as error:
            return CategorizedOrchestration(orchestration_id=number, error=str(error))

    def categorize_waiting(self, limit: int | None = None) -> CategorizedBatch:
        """Categorise the oldest `limit` recorded orchestrations that have no observation yet; all of them by default.

        The event log is the queue, so none is lost if the process is killed, or the model fails without fallback. At
        most `categorization.max_batch_size` are processed per `batch_interval_ms`; those without a task are skipped.

        Raises:
            StorageError: The operations or observations could not be read.
        """
        waiting = list(filter(is_orchestration, self._observations.waiting() if self._observations else ()))[:limit]
        size, interval_s = self._settings.max_batch_size, self._settings.batch_interval_ms / 1_000
        results: list[CategorizedOrchestration] = []
        for start in range(0, len(waiting), size):
            begun = time.monotonic()
            results += self.categorize_orchestrations_batch(waiting[start : start + size], concurrency=size)
            if len(results) < len(waiting):
                time.sleep(max(0.0, begun + interval_s - time.monotonic()))
        return CategorizedBatch(results)

    def get_observations_by_orchestration(self, orchestration_id: int | str, *, agent: str = OWNER) -> list[MemoryItem]:
        """Return the observations in the catalog about an orchestration, newest first.

        Args:
            orchestration_id: Id of its operation, or the id with which it was recorded or categorised.
            agent: The calling agent; only items that this agent may see are returned.
        """
        return self._observations.of(orchestration_id, agent=agent) if self._observations else []

    def get_stats(self) -> dict[str, Json]:
        """Return the counts of requests, model answers, failures and fallbacks, and the mean time per answer in ms."""
        with self._counting:
            return {**self._counts, "avg_duration": self._mean_ms}

    def _count(self, name: str, duration_ms: float = 0.0) -> None:
        with self._counting:
            self._counts[name] += 1
            if name == "successful":
                self._mean_ms += (duration_ms - self._mean_ms) / self._counts[name]


AICategorizationService = CategorizationService
"""The class's name in the source design."""

"""Learning for the catalog: from exchanges (a message to an agent and its answer) and from orchestrations.

Exchanges are stored first and processed in the background, so that a killed process loses none.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from orchestra_mem.catalog_types import GLOBAL, Categorization, Exchange, ItemFilter, ItemStatus, ItemType, MemoryItem
from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.core.search.echoes import Echoes, without_recalled
from orchestra_mem.errors import StorageError
from orchestra_mem.stores import CatalogStore, EventLog
from orchestra_mem.tiers.catalog import MemoryCatalog, check_name
from orchestra_mem.types import Author, Operation, OperationFilter

logger = logging.getLogger(__name__)

_MAX_TEXT_CHARS = 1_000_000
_SINCE = 1  # operation id for `Echoes`: texts noted with `after=0` count as injected before any exchange


@dataclass(eq=False)
class CatalogLearner:
    """Queues exchanges in a store and extracts items from them into the catalog."""

    catalog: MemoryCatalog
    store: CatalogStore
    # How often exchanges were stored, and up to which time all were learnt. A killed process may have left some.
    _stored: int = field(default=1, init=False)
    _learnt: int = field(default=0, init=False)
    faults: Sequence[str] = field(default=(), init=False)
    _echoes: defaultdict[str, Echoes] = field(default_factory=lambda: defaultdict(Echoes), init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    @property
    def waits(self) -> bool:
        """Whether an exchange may be waiting, or is being learnt from."""
        return self._learnt < self._stored

    def note_given(self, agent: str, texts: Sequence[str]) -> None:
        """Note the texts injected into a message, so that their sentences are not learnt from the agent's answer."""
        self._echoes[agent].note(texts, after=0)

    def put(self, agent: str, message: str, answer: str) -> None:
        """Store an exchange to learn from. When this returns, the exchange survives a killed process.

        Raises:
            ValueError: The agent's name is blank, too long or not printable.
            StorageError: The exchange could not be stored.
        """
        if not agent.strip():
            raise ValueError("learn() needs the name of an agent, as in agent='reviewer'")
        check_name(agent.strip())
        message, answer = (self.catalog.redacted(text[:_MAX_TEXT_CHARS]) for text in (message, answer))
        now = self.catalog.clock()
        self.store.put_exchange(Exchange(agent=agent.strip(), message=message, answer=answer, time=now))
        self._stored += 1

    def work(self, most: int | None = None) -> None:
        """Learn from waiting exchanges, at most `most` if given.

        An exchange that fails is retried by later calls, up to `MAX_ATTEMPTS` attempts, and then kept for `problems`.

        Raises:
            StorageError: A write failed; the exchanges keep waiting.
        """
        with self._lock:
            stored = self._stored
            for exchange in self.store.exchanges(most or None):
                self._try(exchange)
            if not self.store.exchanges(1):
                self._learnt = stored

    def _try(self, exchange: Exchange) -> None:
        try:
            self._learn(exchange)
        except StorageError:
            raise
        except Exception as error:  # a broken exchange must not stop the others
            logger.exception("learning from exchange %d of %r failed", exchange.id, exchange.agent)
            self.store.exchange_failed(exchange, f"{type(error).__name__}: {error}")

    def _learn(self, exchange: Exchange) -> None:
        # Imported here, as NumPy loads slowly and importing the package must stay quick.
        from orchestra_mem.core.catalog.item_extraction import find_items, read_patterns

        patterns, self.faults = read_patterns(dict(self.catalog.settings.extraction_patterns))
        # Only the answer loses repeated sentences: a person who repeats an injected text confirms it.
        message, answer = map(without_recalled, (exchange.message, exchange.answer))
        said = message, self._echoes[exchange.agent].without(answer, _SINCE)
        drafts = find_items(exchange, [*map(str, said)], patterns)
        # Slow work comes before the transaction, as `record_operation` would have to wait for it.
        prepared = [self.catalog.prepare(draft, agent=exchange.agent) for draft in drafts]
        with self.store.changing():
            if self.store.exchange_done(exchange):  # else another process has learnt from it in the meantime
                for each in prepared:
                    self.catalog.commit(each)

    def problems(self) -> list[str]:
        """Describe exchanges that could not be learnt from, and invalid patterns of the user."""
        failed = self.store.exchanges(failed=True)
        told = (
            [f"exchanges that could not be learnt from: {len(failed)}; last error: {failed[-1].error}"]
            if failed
            else []
        )
        return [*told, *self.faults]


ORCHESTRATION = "orchestration"
"""The type of operations that record an orchestration."""

_ORCHESTRATOR = "orchestrator"  # with strict isolation, the agent that gets observations if none is named
_AT_ONCE = 200


class OrchestrationObservations:
    """Stores categorizations of orchestrations as items of type `observation` that refer to the orchestration."""

    def __init__(self, catalog: MemoryCatalog, log: EventLog) -> None:
        self._catalog = catalog
        self._log = log

    def store(self, orchestration: int | str | None, agents: Sequence[str], learnt: Categorization) -> MemoryItem:
        """Store a categorization, with its type and concepts as tags and its importance as priority.

        The item belongs to all agents; with strict isolation to the first agent of the orchestration.

        Raises:
            StorageError: The item could not be stored.
        """
        from orchestra_mem.core.catalog.item_drafts import ItemDraft  # imported here, as pydantic loads slowly

        strict = self._catalog.access.strict
        draft = ItemDraft(
            content="\n".join(_lines(learnt)),
            type=ItemType.OBSERVATION,
            ci_source=(agents[0] if agents else _ORCHESTRATOR) if strict else GLOBAL,
            summary=learnt.observation,
            tags=tuple(dict.fromkeys((learnt.type.value, *learnt.concepts))),
            priority=learnt.importance,
            references=tuple(self._references(orchestration)),
        )
        return self._catalog.put(draft, author=Author.MACHINE)

    def of(self, orchestration: int | str, *, agent: str = OWNER) -> list[MemoryItem]:
        """Return the observations about an orchestration that an agent may see, newest first."""
        references = list(self._references(orchestration))
        return self._catalog.items(ItemFilter(references=references, types=[ItemType.OBSERVATION]), agent=agent)

    def waiting(self) -> list[Operation]:
        """Return the recorded orchestrations without an observation (hidden and purged ones count), oldest first."""
        recorded = self._log.operations(OperationFilter(type=ORCHESTRATION))
        known: set[str] = set()
        for start in range(0, len(recorded), _AT_ONCE):
            some = [reference(each.id) for each in recorded[start : start + _AT_ONCE]]
            where = ItemFilter(references=some, types=[ItemType.OBSERVATION], statuses=[*ItemStatus])
            known.update(name for item in self._catalog.items(where) for name in item.references)
        return [operation for operation in recorded if reference(operation.id) not in known]

    def _references(self, orchestration: int | str | None) -> Iterator[str]:
        """Yield the references of an orchestration: its name (an idempotency key) if given, and its operation."""
        if isinstance(orchestration, int):
            yield reference(orchestration)
        elif orchestration:
            yield orchestration
            for operation in self._log.operations(OperationFilter(idempotency_key=orchestration)):
                yield reference(operation.id)


def reference(operation: int) -> str:
    """Return an operation's reference as items store it, such as `op 12`."""
    return f"op {operation}"


def _lines(learnt: Categorization) -> Iterator[str]:
    """Yield every part of a categorization as a line, so that search finds the item by any of them."""
    yield learnt.observation
    if learnt.concepts:
        yield f"Concepts: {', '.join(learnt.concepts)}"
    yield from (f"{agent}: {said}" for agent, said in learnt.agent_insights.items() if said)
    if learnt.recommendations:
        yield f"Recommendation: {learnt.recommendations}"
    yield f"Categorised as {learnt.type.value} by {learnt.source}"

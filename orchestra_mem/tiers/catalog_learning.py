"""Learn for the catalog: from what was said to agents and what they answered, and from orchestrations.

Exchanges are learnt from off the caller's path, and nothing is lost by a kill.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from orchestra_mem.catalog_types import (
    GLOBAL,
    CatalogStore,
    Categorization,
    Exchange,
    ItemFilter,
    ItemStatus,
    ItemType,
    MemoryItem,
)
from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.core.search.echoes import Echoes, without_recalled
from orchestra_mem.errors import StorageError
from orchestra_mem.ports import Clock, EventLog
from orchestra_mem.tiers.catalog import MemoryCatalog, check_name
from orchestra_mem.types import Author, Json, Operation, OperationFilter

logger = logging.getLogger(__name__)

_MAX_TEXT_CHARS = 1_000_000
_SINCE = 1  # for `Echoes`: all that was given to a model came before what is learnt now


@dataclass(eq=False)
class CatalogLearner:
    """Keeps exchanges until they have been learnt from.

    Attributes:
        catalog: takes what is found.
        store: keeps the exchanges.
        clock: gives the present time.
        redacted: takes secrets out of a text.
        patterns: the user's own, by type; see `read_patterns`.
    """

    catalog: MemoryCatalog
    store: CatalogStore
    _: KW_ONLY
    clock: Clock
    redacted: Callable[[str], str]
    patterns: Mapping[str, str]
    # Whether an exchange may wait, as far as this process knows: one that was killed may have left some.
    waits: bool = field(default=True, init=False)
    faults: Sequence[str] = field(default=(), init=False)
    _echoes: defaultdict[str, Echoes] = field(default_factory=lambda: defaultdict(Echoes), init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def note_given(self, agent: str, texts: Sequence[str]) -> None:
        """Take note of what was put into a message: an answer of this agent that only repeats it is nothing new."""
        self._echoes[agent].note(texts, after=0)

    def put(self, agent: str, message: str, answer: str) -> None:
        """Keep an exchange to learn from. When this returns it survives the end of the process.

        Raises:
            ValueError: no agent is named, or by a name that none can have.
            StorageError: it could not be kept.
        """
        if not agent.strip():
            raise ValueError("learn() needs the name of an agent, as in agent='reviewer'")
        check_name(agent.strip())
        message, answer = self.redacted(message[:_MAX_TEXT_CHARS]), self.redacted(answer[:_MAX_TEXT_CHARS])
        self.store.put_exchange(Exchange(agent=agent.strip(), message=message, answer=answer, time=self.clock()))
        self.waits = True

    @property
    def waiting_count(self) -> int:
        """How many exchanges wait, those of other processes too."""
        return len(self.store.exchanges())

    def work(self, most: int | None = None) -> int:
        """Learn from the exchanges that wait, of `most` at once where it is given; how many items that found.

        What fails is tried again later, `catalog_types.MAX_ATTEMPTS` times in all, and then kept and told.

        Raises:
            StorageError: the disk refused; they wait on.
        """
        with self._lock:
            self.waits = False  # whoever puts one from here on says so again
            try:
                waiting = self.store.exchanges(most or None)
                found = sum(map(self._learnt, waiting))
            except StorageError:
                self.waits = True
                raise
            if most and len(waiting) == most:
                self.waits = True
        return found

    def _learnt(self, exchange: Exchange) -> int:
        try:
            return self._learn(exchange)
        except StorageError:
            raise
        except Exception as error:  # whatever it is: the others are learnt from all the same
            logger.exception("learning from exchange %d of %r failed", exchange.id, exchange.agent)
            self.store.exchange_failed(exchange, f"{type(error).__name__}: {error}")
            return 0

    def _learn(self, exchange: Exchange) -> int:
        # Here, as NumPy is heavy: to import the package must stay quick.
        from orchestra_mem.core.catalog.item_extraction import find_items, messages_of, read_patterns

        patterns, self.faults = read_patterns(self.patterns)
        # A person who says what was given has said it again; a model only repeats it.
        message, answer = map(without_recalled, messages_of(exchange))
        said: Json = [message, self._echoes[exchange.agent].without(answer, _SINCE)]
        drafts = find_items(exchange, said, patterns)
        # All that takes long before the transaction: a record would wait for it.
        prepared = [self.catalog.prepare(draft, agent=exchange.agent) for draft in drafts]
        with self.store.changing():
            if not self.store.exchange_done(exchange):  # another process has learnt from it meanwhile
                return 0
            for each in prepared:
                self.catalog.commit(each)
        return len(prepared)

    def problems(self) -> list[str]:
        """Say what could not be learnt from, and which of the user's patterns are of no use."""
        failed = self.store.exchanges_failed()
        told = [f"{len(failed)} exchanges could not be learnt from; the last: {failed[-1].error}"] if failed else []
        return [*told, *self.faults]


ORCHESTRATION = "orchestration"
"""The type of the operations that are orchestrations."""

_ORCHESTRATOR = "orchestrator"  # with strict isolation, whose what nobody is named for is
_AT_ONCE = 200


class OrchestrationObservations:
    """Stores categorizations as items of type `observation`, whose `references` name the orchestration."""

    def __init__(self, catalog: MemoryCatalog, log: EventLog) -> None:
        self._catalog = catalog
        self._log = log

    def store(self, orchestration: int | str | None, agents: Sequence[str], learnt: Categorization) -> MemoryItem:
        """Store what was learnt: its type and concepts as tags, its importance as priority.

        Whoever may see the orchestration may see the item: all agents, with strict isolation the first of it.

        Raises:
            StorageError: it could not be stored.
        """
        from orchestra_mem.core.catalog.item_drafts import ItemDraft  # here, as pydantic is heavy

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
        """Return what was learnt from an orchestration, as far as an agent may see it, newest first."""
        references = list(self._references(orchestration))
        return self._catalog.items(ItemFilter(references=references, types=[ItemType.OBSERVATION]), agent=agent)

    def waiting(self) -> list[Operation]:
        """Return the recorded orchestrations of which nothing was ever learnt, oldest first."""
        recorded = self._log.operations(OperationFilter(type=ORCHESTRATION))
        known: set[str] = set()
        for start in range(0, len(recorded), _AT_ONCE):
            some = [reference(each.id) for each in recorded[start : start + _AT_ONCE]]
            where = ItemFilter(references=some, types=[ItemType.OBSERVATION], statuses=[*ItemStatus])
            known.update(name for item in self._catalog.items(where) for name in item.references)
        return [operation for operation in recorded if reference(operation.id) not in known]

    def _references(self, orchestration: int | str | None) -> Iterator[str]:
        """Name an orchestration: as its operation, and by the name under which that was recorded."""
        if isinstance(orchestration, int):
            yield reference(orchestration)
        elif orchestration:
            yield orchestration
            for operation in self._log.operations(OperationFilter(idempotency_key=orchestration)):
                yield reference(operation.id)


def reference(operation: int) -> str:
    """Name an operation as items refer to it."""
    return f"op {operation}"


def _lines(learnt: Categorization) -> Iterator[str]:
    """Write out all that was learnt, each thing in a line: search finds the item by any of it."""
    yield learnt.observation
    if learnt.concepts:
        yield f"Concepts: {', '.join(learnt.concepts)}"
    yield from (f"{agent}: {said}" for agent, said in learnt.agent_insights.items() if said)
    if learnt.recommendations:
        yield f"Recommendation: {learnt.recommendations}"
    yield f"Categorised as {learnt.type.value} by {learnt.source}"

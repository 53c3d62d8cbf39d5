"""Keep in the catalog what was learnt from orchestrations, and find it by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestra_mem.catalog_types import GLOBAL, ItemFilter, ItemStatus, ItemType, MemoryItem
from orchestra_mem.categorization_types import Categorization
from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.ports import EventLog
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.types import Author, Operation, OperationFilter

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

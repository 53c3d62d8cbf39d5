"""Recording a history that was read elsewhere: once, in its order, with what cannot be recorded told by its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestra_mem.core.histories import History, HistoryFault, HistoryOperation, OnFault
from orchestra_mem.errors import HistoryError, InvalidOperationError
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.types import OperationFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """How many operations of a history were recorded now, and how many had been before."""

    recorded: int
    known: int


def import_history(
    memory: OrchestratorContextManager,
    history: History,
    *,
    on_operation: Callable[[Imported, HistoryOperation], None] | None = None,
    on_fault: OnFault | None = None,
) -> Imported:
    """Record the operations of a history; those that were recorded before are passed over.

    Args:
        memory: where they are recorded.
        history: is read to its end.
        on_operation: is told each operation once it is recorded, with how many there are now.
        on_fault: is told each operation that cannot be recorded, and the rest is recorded; without it that ends here.

    Raises:
        HistoryError: something cannot be read or recorded; what stands before it is recorded.
        StorageError: the disk refused; what came before is recorded.
    """
    newest = memory.operations(OperationFilter(limit=1))
    last = newest[-1].id if newest else 0
    done = Imported(recorded=0, known=0)
    for found in history.operations:
        try:
            operation = memory.record_operation(
                found.type, found.data, found.tokens, agent=found.agent, critical=found.critical,
                timestamp=found.timestamp, idempotency_key=found.idempotency_key,
            )  # fmt: skip
        except InvalidOperationError as error:
            fault = HistoryFault(place=found.place, problem=str(error))
            if on_fault is None:
                raise HistoryError(str(fault)) from error
            on_fault(fault)
            continue
        # Ids count up, so one that was there before has a smaller one.
        new = operation.id > last
        last = max(last, operation.id)
        done = Imported(recorded=done.recorded + new, known=done.known + (not new))
        if on_operation is not None:
            on_operation(done, found)
    return done

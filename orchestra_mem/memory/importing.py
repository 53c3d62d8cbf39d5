"""Recording a history that was read elsewhere: once, in its order, with what cannot be recorded told by its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from orchestra_mem.core.histories import REPLACES, VERSION, History, HistoryFault, HistoryOperation, OnFault
from orchestra_mem.errors import HistoryError, InvalidOperationError
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.types import Operation, OperationFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """How many operations of a history were recorded now, and how many had been before."""

    recorded: int
    known: int


def import_history(
    memory: OrchestratorContextManager | None,
    history: History,
    *,
    dry_run: bool = False,
    on_operation: Callable[[Imported, HistoryOperation], None] | None = None,
    on_fault: OnFault | None = None,
) -> Imported:
    """Record the operations of a history; those that were recorded before are passed over.

    Args:
        memory: where they are recorded; None where a `dry_run` has none to look into.
        history: is read to its end.
        dry_run: only counts what would be recorded.
        on_operation: is told each operation once it is recorded, with how many there are now.
        on_fault: is told each operation that cannot be recorded, and the rest is recorded; without it that ends here.

    Raises:
        HistoryError: something cannot be read or recorded; what stands before it is recorded.
        StorageError: the disk refused; what came before is recorded.
    """
    done = Imported(recorded=0, known=0)
    counted: set[str] = set()
    for found in history.operations:
        new = _new(memory, found)
        try:
            if dry_run:
                new = None if found.idempotency_key in counted else new
                counted.add(found.idempotency_key)
            elif new is not None and memory is not None:
                memory.record_operation(
                    new.type, new.data, new.tokens, agent=new.agent, critical=new.critical, timestamp=new.timestamp,
                    idempotency_key=new.idempotency_key,
                )  # fmt: skip
        except InvalidOperationError as error:
            fault = HistoryFault(place=found.place, problem=str(error))
            if on_fault is None:
                raise HistoryError(str(fault)) from error
            on_fault(fault)
            continue
        done = Imported(recorded=done.recorded + (new is not None), known=done.known + (new is None))
        if on_operation is not None:
            on_operation(done, found)
    return done


def _new(memory: OrchestratorContextManager | None, found: HistoryOperation) -> HistoryOperation | None:
    """Give what is to be recorded of an operation that was found; None where the memory has it.

    What may change is recorded as its next version, which names the operation that it takes the place of.
    """

    def recorded(key: str) -> Operation | None:
        return next(iter(memory.operations(OperationFilter(idempotency_key=key))), None) if memory else None

    if not found.version:
        return found if recorded(found.idempotency_key) is None else None
    assert isinstance(found.data, dict)
    newest, data, number = None, found.data | {VERSION: found.version}, 1
    while before := recorded(f"{found.idempotency_key}:{number}"):
        newest, number = before, number + 1
    if newest is not None:
        if isinstance(newest.data, dict) and newest.data.get(VERSION) == found.version:
            return None
        data[REPLACES] = f"op {newest.id}"
    return replace(found, data=data, idempotency_key=f"{found.idempotency_key}:{number}")

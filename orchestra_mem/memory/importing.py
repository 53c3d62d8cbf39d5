"""Import a history into a memory: record each operation once, in order, and report the location of each fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from orchestra_mem.core.imported_history import History, HistoryFault, HistoryOperation, OnFault
from orchestra_mem.errors import HistoryError, InvalidOperationError
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.types import REPLACES, VERSION, Operation, OperationFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The number of operations that an import recorded, and of operations that had been recorded before."""

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
    """Record the operations of a history, except for operations recorded before.

    Args:
        memory: Receives the operations. May be None for a `dry_run` if no memory exists yet.
        history: Read to its end.
        dry_run: Only count what would be recorded.
        on_operation: Called after each operation, recorded or known, with the counts so far.
        on_fault: Called with each fault; then the import goes on. By default, the first fault stops the import.

    Raises:
        HistoryError: The history cannot be read, or a fault stopped the import; everything before it is recorded.
        StorageError: The disk refused a write; everything before it is recorded.
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
    """Return the operation to record for one found in a history; None if the memory already has it.

    Changed content, such as an edited note, becomes a new operation that names the operation it replaces.
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

"""Recording a history: once, in its order, and all that stands before a fault."""

from __future__ import annotations

import pytest

from orchestra_mem.core.histories import History, HistoryFault, HistoryOperation
from orchestra_mem.errors import HistoryError
from orchestra_mem.memory.importing import Imported, import_history
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.types import Json


def _history(*data: Json, agent: str | None = None) -> History:
    found = [
        HistoryOperation(
            type="note", data=each, timestamp=None, idempotency_key=f"k{number}", place=f"notes:{number}",
            position=number, agent=agent, tokens=number,
        )
        for number, each in enumerate(data, 1)
    ]  # fmt: skip
    return History(source="notes", operations=iter(found), total=len(found), unit="notes")


def test_a_history_is_recorded_once_and_in_order(memory: OrchestratorContextManager) -> None:
    """A second time nothing is recorded, and a longer one adds what is new."""
    assert import_history(memory, _history("a", "b")) == Imported(recorded=2, known=0)
    assert import_history(memory, _history("a", "b")) == Imported(recorded=0, known=2)
    assert import_history(memory, _history("a", "b", "c", agent="bob")) == Imported(recorded=1, known=2)
    assert [(op.id, op.data, op.tokens, op.agent) for op in memory.operations()] == [
        (1, "a", 1, None), (2, "b", 2, None), (3, "c", 3, "bob"),
    ]  # fmt: skip


def test_a_dry_run_counts_and_records_nothing(memory: OrchestratorContextManager) -> None:
    """Each key once, as it would be; without a memory all is new."""
    import_history(memory, _history("a"))
    assert import_history(memory, _history("a", "b"), dry_run=True) == Imported(recorded=1, known=1)
    assert import_history(None, _history("a", "b"), dry_run=True) == Imported(recorded=2, known=0)
    assert len(memory.operations()) == 1


def test_each_operation_is_told_with_the_counts_so_far(memory: OrchestratorContextManager) -> None:
    """For progress: what was recorded, what was known, which one it was."""
    import_history(memory, _history("a"))
    told: list[tuple[int, int, str]] = []
    import_history(
        memory, _history("a", "b"), on_operation=lambda done, op: told.append((done.recorded, done.known, op.place))
    )
    assert told == [(0, 1, "notes:1"), (1, 1, "notes:2")]


def test_what_cannot_be_recorded_is_named_by_its_place(memory: OrchestratorContextManager) -> None:
    """What stands before it is recorded, what stands behind it is not."""
    with pytest.raises(HistoryError) as caught:
        import_history(memory, _history("a", float("nan"), "c"))
    assert str(caught.value) == "notes:2: data: nan is no JSON number; record it as a string or as null"
    assert [op.data for op in memory.operations()] == ["a"]


def test_what_cannot_be_recorded_may_be_passed_over(memory: OrchestratorContextManager) -> None:
    """It is told, and the rest is recorded."""
    faults: list[HistoryFault] = []
    done = import_history(memory, _history("a", float("nan"), "c"), on_fault=faults.append)
    assert done == Imported(recorded=2, known=0)
    assert [fault.place for fault in faults] == ["notes:2"]
    assert [op.data for op in memory.operations()] == ["a", "c"]

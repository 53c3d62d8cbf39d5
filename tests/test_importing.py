"""Recording a history: once, in its order, and all that stands before a fault."""

from __future__ import annotations

import pytest

from orchestra_mem.core.histories import History, HistoryOperation
from orchestra_mem.errors import HistoryError
from orchestra_mem.memory.importing import import_history
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

"""`orchestra_mem.signals` and `orchestra_mem.hooks`: subscribers are notified, and a failing one harms nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager
from orchestra_mem.core.context.window import Crossing
from orchestra_mem.types import Operation
from orchestra_mem.work_types import WorkKind, WorkStatus
from tests.memories import edit

CONFIG = {"orchestrator": {"context_window": {"max_tokens": 4_096}}}


def test_a_subscriber_hears_of_each_thing_once(memory: OrchestratorContextManager) -> None:
    """Subscribers are notified once after each record and flush; a repeated key is notified once."""
    heard: list[tuple[str, object]] = []

    def recorded(sender: object, operation: Operation) -> None:
        heard.append(("recorded", operation.id))

    def flushed(sender: object, session: object, path: Path) -> None:
        heard.append(("flushed", path.is_file()))

    memory.events.operation_recorded.connect(recorded)
    memory.events.session_flushed.connect(flushed)
    for text, key in (("one", "a"), ("one", "a"), ("two", None)):
        memory.record_operation("note", {"text": text}, idempotency_key=key)
    memory.flush_session()
    assert heard == [("recorded", 1), ("recorded", 2), ("flushed", True)]


def test_refreshes_and_thresholds_are_told(memory: OrchestratorContextManager) -> None:
    """Subscribers are notified of the window's thresholds, and then of the refresh."""
    heard: list[str] = []

    def filled(sender: object, crossing: Crossing) -> None:
        heard.append(crossing.threshold.value)

    def refreshed(sender: object, refreshed: object) -> None:
        heard.append("refreshed")

    memory.events.window_filled.connect(filled)
    memory.events.refreshed.connect(refreshed)
    while "refreshed" not in heard:
        memory.record_operation("note", {"text": "a short note"}, 400)
    assert heard[:3] == ["warning", "refresh", "refreshed"]


def test_an_edit_of_facts_or_of_work_items_is_told(memory: OrchestratorContextManager) -> None:
    """Subscribers are notified once after each edit that adds or changes facts, work items or both."""
    heard: list[str] = []

    def edited(sender: object) -> None:
        heard.append("edited")

    memory.events.documents_edited.connect(edited)
    memory.state.create(WorkKind.TASK, "Paint the door")
    memory.refresh()
    state, plan = (memory.episodic_memory.path(name) for name in ("project_state", "work_plan"))
    edit(plan, ("- [ ] #1 Paint", "- [x] #1 Paint"))
    assert memory.state.item(1).status is WorkStatus.DONE
    assert len(heard) == 1
    edit(state, ("## Rules\n\n- None", "## Rules\n\n- We use oak."))
    memory.refresh()
    assert len(heard) == 2
    edit(plan, ("#1 Paint the door", "#1 Paint the gate"))
    edit(state, ("We use oak", "We use pine"))
    memory.refresh()
    memory.refresh()
    assert len(heard) == 3


def test_a_failing_subscriber_is_isolated_logged_and_counted(
    memory: OrchestratorContextManager, caplog: pytest.LogCaptureFixture
) -> None:
    """If a subscriber fails, the operation is recorded, the next one is notified, and status counts the failures."""
    heard: list[int] = []

    def broken(sender: object, operation: Operation) -> None:
        raise RuntimeError("no")

    def sound(sender: object, operation: Operation) -> None:
        heard.append(operation.id)

    memory.events.operation_recorded.connect(broken)
    memory.events.operation_recorded.connect(sound)
    operations = [memory.record_operation("note", {"text": str(number)}).id for number in range(3)]
    assert heard == operations
    assert "failures when called on events: 3" in str(memory.get_stats()["problems"])
    assert "broken failed" in caplog.text

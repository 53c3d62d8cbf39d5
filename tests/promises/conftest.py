"""Fixtures: a project whose window is so small that a few dozen operations make it spill, compact and refresh."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from tests.conftest import Clock
from tests.memories import SMALL as SMALL

PLACES = ["login form", "token service", "audit trail", "mail queue", "rate limiter"]
Open = Callable[..., OrchestratorContextManager]


def slow_clock() -> Clock:
    """A clock that advances by 20 seconds at each reading."""
    return Clock(datetime(2025, 3, 1, 9, tzinfo=UTC), step_s=20)


@pytest.fixture
def open_project(tmp_path: Path) -> Open:
    """Open the memory of one folder, any number of times; `config` adds settings."""
    clock = slow_clock()

    def opened(config: dict[str, Any] | None = None, **given: Any) -> OrchestratorContextManager:
        return open_memory(tmp_path, config={**SMALL, **(config or {})}, clock=clock, **given)

    return opened


@pytest.fixture
def memory(open_project: Open) -> Iterator[OrchestratorContextManager]:
    """The opened memory of the project."""
    with open_project() as opened:
        yield opened


def operation(number: int) -> tuple[str, dict[str, Any]]:
    """Return operation `number` of an agent: a decision, a failed task, or a message that contains the number."""
    place = PLACES[number % len(PLACES)]
    if number % 11 == 3:
        return "decision", {"text": f"We decided to keep batch {number} of the {place} in table t{number}."}
    if number % 13 == 5:
        return "task_execution", {"task": f"migrate the {place}", "status": "failed", "error": f"exit code {number}"}
    said = f"Step {number}: wrote src/part_{number}.py for the {place} and looked at {number % 9 + 2} of its tests."
    return "agent_message", {"text": said}


def work(memory: OrchestratorContextManager, count: int, first: int = 1) -> None:
    """Record operations `first` to `first + count - 1`."""
    for number in range(first, first + count):
        memory.record_operation(*operation(number))


def documents(project: Path) -> list[Path]:
    """The three documents that people edit."""
    return [project / ".obra" / "memory" / f"{name}.md" for name in ("project_state", "work_plan", "decision_log")]

"""Fixtures: a project whose window is so small that a few dozen operations make it spill, compact and refresh."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from tests.memories import SMALL, Clock

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


def documents(project: Path) -> list[Path]:
    """The three documents that people edit."""
    return [project / ".obra" / "memory" / f"{name}.md" for name in ("project_state", "work_plan", "decision_log")]

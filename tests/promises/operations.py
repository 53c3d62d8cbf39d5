"""What an agent did, by number. Programs that tests start import this module, so it loads no more than they need."""

from __future__ import annotations

from typing import Any

from orchestra_mem import OrchestratorContextManager

PLACES = ["login form", "token service", "audit trail", "mail queue", "rate limiter"]


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

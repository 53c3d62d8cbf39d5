"""Acceptance tests 1, 2 and 4 of the source design (section 11), with its window of 128K tokens."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.adapters.tokenizers import open_counter
from orchestra_mem.core.context.window import Threshold
from orchestra_mem.core.text import squeeze
from orchestra_mem.types import DocumentName, OperationFilter
from tests.conftest import Clock
from tests.memories import everywhere, flushed, live

NOUNS = ["login form", "token service", "password reset", "audit trail", "session store", "rate limiter", "mail queue"]
VERBS = ["Create", "Rename", "Split", "Estimate", "Assign", "Review", "Close"]
COUNTER = open_counter("tiktoken")


def command(memory: OrchestratorContextManager, number: int, tokens: int | None = None) -> int:
    """Record a command with a text of its own and its result, and return the operation's number."""
    what = f"{VERBS[number % 7]} story {number} for the {NOUNS[number * 3 % 7]}"
    result = (
        f"Story #{number + 100} is up to date. It touches src/auth/part_{number}.py and {number % 9 + 2} tests; "
        f"the estimate went from {number % 5 + 1} to {number % 8 + 2} hours after a look at the {NOUNS[number % 7]}."
    )
    data = {"user_input": what, "intent": VERBS[number % 7].upper(), "story_id": number // 2, "result": result}
    return memory.record_operation("nl_command", data, tokens).id


def test_1_long_session_continuity(tmp_path: Path) -> None:
    """150 commands fill the window to 80 %: it is refreshed automatically once, no operation is lost, work goes on."""
    told: list[Threshold] = []
    with open_memory(tmp_path, clock=Clock(step_s=120)) as memory:
        assert memory.context_tracker.max_tokens == 128_000
        memory.context_tracker.on(Threshold.REFRESH, lambda crossing: told.append(crossing.threshold))
        for number in range(1, 151):
            assert command(memory, number, tokens=1_000) == number
            context = memory.get_orchestrator_context("nl_command")
            assert context.tokens <= context.budget_tokens == 102_400
            assert f"Story #{number + 100} is up to date." in context.render()
        assert told == [Threshold.REFRESH]
        assert memory.context_tracker.refresh_count == 1
        assert memory.context_tracker.used_tokens() < 102_400
        assert [op.id for op in memory.operations()] == list(range(1, 151))
        assert everywhere(memory) == list(range(1, 151))
        assert len(memory.sessions()) == 1
        recent = memory.query_recent_operations(limit=50)
        assert [op.id for op in recent] == list(range(150, 100, -1))


def test_2_cross_session_continuity(tmp_path: Path) -> None:
    """The results of session 1 are known the next day: in the project state, in contexts and by search."""
    clock = Clock(step_s=120)
    with open_memory(tmp_path, clock=clock) as memory:
        memory.record_operation(
            "nl_command",
            {"user_input": "Create epic for user authentication", "result": "Created Epic #5: User Authentication"},
        )
        for story in (10, 11, 12):
            result = f"Created Story #{story} under Epic #5"
            memory.record_operation("nl_command", {"user_input": "Add a story to it", "result": result})
        archive = flushed(memory)
        assert "Created Epic #5: User Authentication" in archive.read_text(encoding="utf-8")
    clock.now += timedelta(days=1)
    with open_memory(tmp_path, clock=clock) as memory:
        assert memory.working_memory.get_all_operations() == []
        state = memory.episodic_memory.path(DocumentName.PROJECT_STATE).read_text(encoding="utf-8")
        assert "Epic #5" in state
        context = memory.get_orchestrator_context("nl_command")
        assert "Epic #5" in str(context.as_dict()["project_state"])
        for story in (10, 11, 12):
            assert f"Story #{story}" in context.render()
        answers = memory.search_memory("status of Epic #5")
        assert any("Created Epic #5: User Authentication" in line for line in answers)
        memory.record_operation("nl_command", {"user_input": "What's the status of Epic 5?"})
        assert memory.sessions()[0].id != memory.query_recent_operations(limit=1)[0].session
        assert [op.id for op in memory.query_recent_operations(limit=3)] == [5, 4, 3]


def test_4_context_compression(tmp_path: Path) -> None:
    """A session document of 40K tokens is compacted automatically to at most 28K, and keeps every critical text."""
    words = [
        "use SQLite for the event log because it is embedded", "Never deploy the token service on Fridays",
        "exit code 2 in src/auth/build.py", "write the migration guide for issue #777",
    ]  # fmt: skip
    critical: dict[int, tuple[str, dict[str, object]]] = {
        20: ("decision", {"decision": f"We decided to {words[0]}."}),
        55: ("note", {"text": f"{words[1]}."}),
        90: ("task_execution", {"task_id": 90, "status": "failed", "error": f"The build failed with {words[2]}."}),
        120: ("note", {"text": f"TODO: {words[3]}."}),
    }
    with open_memory(tmp_path, clock=Clock(step_s=20)) as memory:
        sizes = [0]
        number = 0
        while not memory.losses():
            number += 1
            assert number < 2_000
            if number in critical:
                memory.record_operation(*critical[number])
            else:
                command(memory, number)
            sizes.append(memory.session_memory.token_count())
        path = live(memory)
        text = path.read_text(encoding="utf-8")
        assert max(sizes) < 40_000 + 10_000
        assert sizes[-2] > 30_000
        assert COUNTER.count(text) <= 28_000
        assert all(said in squeeze(text) for said in words)
        assert sum(s.tokens for s in memory.losses()) <= 0.25 * sum(s.source_tokens for s in memory.losses())
        assert everywhere(memory) == list(range(1, number + 1))
        for summary in memory.losses():
            wanted = OperationFilter(after=summary.first_operation - 1, through=summary.last_operation)
            assert memory.expand(summary.id).operations == tuple(memory.operations(wanted))
            assert len(memory.expand(summary.id).operations) == summary.operation_count

"""The window's past usage, derived from stored operations and refreshes, in any process and after any restart."""

from __future__ import annotations

from pathlib import Path

from orchestra_mem import open_memory
from orchestra_mem.core.context.window import UsageEvent, UsagePoint
from tests.conftest import Clock, record
from tests.memories import SMALL, flushed


def _changes(points: list[UsagePoint]) -> list[tuple[str, int, int]]:
    return [(point.event, point.before_tokens, point.used_tokens) for point in points]


def test_another_process_tells_the_same_past(tmp_path: Path, clock: Clock) -> None:
    """After a restart the history is the same; a limited one begins with the refresh before it."""
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        for _ in range(3):
            record(memory, 40)
            memory.refresh()
        memory.flush_session()
        record(memory, 5)
        told = memory.window_history()
        assert told[-1].used_tokens == memory.context_tracker.used_tokens()
    assert sum(point.event is UsageEvent.RESET for point in told) >= 4
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        again = memory.window_history()
        assert _changes(again)[: len(told)] == _changes(told)
        assert [point.event for point in again[len(told) :]] in ([], [UsageEvent.REPORTED])
        assert again[-1].used_tokens == memory.context_tracker.used_tokens()
        part = memory.window_history(limit=7)
        assert part[0].event is UsageEvent.RESET
        assert _changes(part)[1:] == _changes(again)[-len(part) + 1 :]


def test_a_session_shows_its_document_wherever_that_lies(tmp_path: Path, clock: Clock) -> None:
    """`session_document` reads a session's document while active and when archived, and is empty once it is deleted."""
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        record(memory, 60)
        memory.refresh()
        session = memory.sessions()[0].id
        assert "**Status**: Active" in memory.session_document(session)
        path = flushed(memory)
        assert memory.session_document(session) == path.read_text("utf-8")
        assert {each.session for each in memory.summaries(session)} == {session}
        path.unlink()
        assert memory.session_document(session) == ""

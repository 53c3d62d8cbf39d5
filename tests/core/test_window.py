"""The context window tracker: token accounting, threshold events, and past usage from stored records."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem import open_memory
from orchestra_mem.core.context.window import ContextWindowTracker, Crossing, Threshold, UsageEvent, UsagePoint
from tests.conftest import Clock, record
from tests.memories import SMALL, flushed

LOGGER = "orchestra_mem.core.context.window"


def watched(tracker: ContextWindowTracker) -> list[Crossing]:
    """Collect all crossings of `tracker`."""
    seen: list[Crossing] = []
    for threshold in Threshold:
        tracker.on(threshold, seen.append)
    return seen


@pytest.mark.parametrize(
    ("max_tokens", "last_below"), [(128_000, 102_399), (8_192, 6_553), (10, 7), (7, 5), (3, 2), (1, 0)]
)
def test_a_refresh_is_due_from_the_threshold_on(max_tokens: int, last_below: int) -> None:
    """`should_refresh` turns true at the first count that is at least 80% of the window."""
    tracker = ContextWindowTracker(max_tokens)
    tracker.add_usage(last_below)
    assert not tracker.should_refresh()
    tracker.add_usage(1)
    assert tracker.should_refresh()


@given(st.lists(st.tuples(st.sampled_from(["add", "set", "reset"]), st.integers(0, 120)), max_size=30))
def test_announcements_are_the_upward_crossings(changes: list[tuple[str, int]]) -> None:
    """A threshold is announced exactly when the usage crosses it upwards."""
    tracker = ContextWindowTracker(100)
    seen = watched(tracker)
    expected = []
    for kind, tokens in changes:
        before = tracker.used_tokens()
        change = tracker.add_usage if kind == "add" else tracker.set_usage if kind == "set" else tracker.reset
        change(tokens)
        after = tracker.used_tokens()
        expected += [
            (threshold, after)
            for threshold, limit in ((Threshold.WARNING, 70), (Threshold.REFRESH, 80), (Threshold.CRITICAL, 95))
            if before < limit <= after
        ]
    assert [(c.threshold, c.used_tokens) for c in seen] == expected


def test_a_failing_listener_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """An exception from a listener is logged; usage is still recorded and the other listeners are called."""
    tracker = ContextWindowTracker(100)

    def fails(_: Crossing) -> None:
        raise RuntimeError("no")

    tracker.on(Threshold.WARNING, fails)
    seen = watched(tracker)
    with caplog.at_level(logging.ERROR, LOGGER):
        tracker.add_usage(75)
    assert tracker.used_tokens() == 75
    assert [c.threshold for c in seen] == [Threshold.WARNING]
    assert "a listener for the warning threshold failed" in caplog.text
    assert "RuntimeError: no" in caplog.text


def test_threads_lose_no_usage_and_cross_once() -> None:
    """Eight threads add usage; none is lost, and each threshold is announced once."""
    tracker = ContextWindowTracker(16_000)
    seen = watched(tracker)

    def add() -> None:
        for _ in range(2_000):
            tracker.add_usage(1)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(add) for _ in range(8)]:
            done.result()
    assert tracker.used_tokens() == 16_000
    assert sorted(c.threshold for c in seen) == sorted(Threshold)


@pytest.mark.parametrize("thresholds", [(0.0, 0.8, 0.9), (0.8, 0.7, 0.9), (0.7, 0.8, 0.8), (0.7, 0.8, 1.01)])
def test_thresholds_must_ascend_within_the_window(thresholds: tuple[float, float, float]) -> None:
    """Thresholds that do not ascend from over 0 to at most 1 are refused with their values."""
    with pytest.raises(
        ValueError, match=rf"warning {thresholds[0]}, refresh {thresholds[1]}, critical {thresholds[2]}"
    ):
        ContextWindowTracker(100, *thresholds)


def test_sizes_that_make_no_sense_are_refused() -> None:
    """A window of 0 and negative usage raise an error that names the value, and change nothing."""
    with pytest.raises(ValueError, match="max_tokens is 0"):
        ContextWindowTracker(0)
    tracker = ContextWindowTracker(100)
    for change in (tracker.add_usage, tracker.set_usage, tracker.reset):
        with pytest.raises(ValueError, match="tokens is -1"):
            change(-1)
    assert (tracker.used_tokens(), tracker.get_stats()["operation_count"], tracker.refresh_count) == (0, 0, 0)


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

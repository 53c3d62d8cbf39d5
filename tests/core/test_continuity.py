"""How many turns stand in full: four for a new topic, eight for one that goes on, six else, with the reason."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from orchestra_mem.core.context.continuity import NO_EMBEDDER, TurnWindow, continuity, few_messages, turn_window
from tests.builders import cases

EAST = np.array([1.0, 0.0], dtype=np.float32)
NORTH = np.array([0.0, 1.0], dtype=np.float32)


def at_cosine(cosine: float) -> NDArray[np.float32]:
    """Give a vector with this cosine to EAST."""
    return np.array([cosine, np.sqrt(1 - cosine**2)], dtype=np.float32)


@pytest.mark.parametrize(("cosine", "turns", "reason"), cases("turns_follow_continuity"))
def test_turns_follow_continuity(cosine: float, turns: int, reason: str) -> None:
    """Under 0.3 four, over 0.7 eight, else six; with the measure as the reason."""
    window = turn_window(at_cosine(cosine), [EAST, EAST, EAST])
    assert (window.turns, window.reason) == (turns, reason)
    assert window.continuity == pytest.approx(cosine, abs=1e-6)


def test_only_the_last_three_messages_count() -> None:
    """Where there are fewer, or no embedder, the usual number stands, and it is told why."""
    assert turn_window(EAST, [NORTH, NORTH, NORTH, EAST, EAST, EAST]).turns == 8
    assert few_messages(2) == TurnWindow(turns=6, reason="2 earlier messages are fewer than 3")
    assert TurnWindow(turns=6, reason="there is no embedder to compare messages with") == NO_EMBEDDER
    zero = np.zeros(2, dtype=np.float32)
    assert turn_window(zero, [EAST] * 3) == TurnWindow(turns=6, reason="a message says nothing that can be compared")


vectors = st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=4, max_size=4).map(
    lambda v: np.array(v, dtype=np.float32)
)


@given(vectors, st.lists(vectors, min_size=3, max_size=5), st.floats(0.5, 1e3))
def test_continuity_is_a_cosine(message: NDArray[np.float32], earlier: list[NDArray[np.float32]], scale: float) -> None:
    """It lies within -1 to 1, and the length of the new message does not matter."""
    measured = continuity(message, earlier)
    assert measured is None or -1 <= measured <= 1
    scaled = continuity((message.astype(np.float64) * scale / 1e3).astype(np.float32), earlier)
    if measured is not None and scaled is not None and np.max(np.abs(message)) > 1e-6:
        assert scaled == pytest.approx(measured, abs=1e-3)

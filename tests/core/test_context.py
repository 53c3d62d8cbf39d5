"""The context that callers receive: its renderings, its explanation, and the number of turns shown in full."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from orchestra_mem.core.context.continuity import TurnWindow, continuity, turn_window
from orchestra_mem.core.context.items import Item, Part, as_form, operation_key
from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.retrieval.lazy_search import LazySearch
from orchestra_mem.types import Operation
from tests.builders import Counter, an_operation, begin_epoch, cases, letters


def operation(number: int) -> Operation:
    """An operation at a fixed time."""
    return an_operation(
        number, {"did": number}, type="nl_command", timestamp=datetime(2025, 1, 15, 12, number, tzinfo=UTC), tokens=7,
        agent="planner" if number == 2 else None, critical=number == 2,
    )  # fmt: skip


def of(part: Part, key: str, *forms: str, pinned: bool = False) -> Item:
    """An item of `part`."""
    source = ".obra/memory/decision_log.md:4" if part is Part.DECISIONS else ""
    return Item(key=key, part=part, forms=tuple(map(as_form, forms)), pinned=pinned, source=source)


ITEMS = [
    of(Part.PROJECT_STATE, "project_state/Active Work", "## Active Work\n- Epic #5"),
    of(Part.PROJECT_STATE, "project_state/Ideas", "x" * 1_500),
    of(Part.DECISIONS, "decision 1", "Use SQLite.", "Use SQLite. " + "y" * 1_400),
    of(Part.DECISIONS, "decision 2", "Never deploy on Fridays.", pinned=True),
    *(of(Part.OPERATIONS, operation_key(n), f"did {n}") for n in (1, 2)),
]


def context(counter: Counter | None = None, budget_tokens: int = 2_000) -> OrchestratorContext:
    """A context of `ITEMS`, with a third operation added in its epoch."""
    epoch = begin_epoch(ITEMS, number=4, budget_tokens=budget_tokens, counter=counter or letters())
    epoch = epoch.extended([of(Part.OPERATIONS, operation_key(3), "did 3")]) or epoch
    candidates = [operation(n) for n in (1, 2, 3, 9)]
    return OrchestratorContext.from_epoch(epoch, for_operation="nl_command", operations=candidates)


@given(st.integers(0, 2_000), st.integers(0, 3))
def test_messages_are_never_empty_and_always_whole(budget_tokens: int, surplus: int) -> None:
    """For any budget no message is empty, and the joined messages equal the rendered text."""
    whole = context(letters(surplus), budget_tokens)
    messages = whole.as_messages()
    assert all(message["content"] for message in messages)
    assert "".join(message["content"] for message in messages) == whole.render()
    assert whole.tokens <= budget_tokens


def test_it_explains_itself() -> None:
    """`explain` reports one line per item, grouped by part, with tokens, shares and the reason."""
    assert context().explain() == (
        "Context for nl_command, epoch 4: 252 of 2,000 tokens (13%), counted by letters (the model's own)\n"
        "preamble: 78 tokens\n"
        "project_state: 55 tokens (3%), share 466 (23%), room 1,291; 1 of 2 shown\n"
        "  + project_state/Active Work: 25 of 25 tokens; in full\n"
        "  - project_state/Ideas: 0 of 1,501 tokens; left out: it needs 1,501 tokens, but only 1,236 of "
        "this part's 1,291 were left\n"
    ) + (
        "work_plan: 0 tokens (0%), share 279 (14%); 0 of 0 shown\n"
        "decision_history: 70 tokens (4%), share 244 (12%), room 1,306; 2 of 2 shown\n"
        "  ~ decision 1 (.obra/memory/decision_log.md:4): 12 of 1,413 tokens; form 1 of 2: the full form needs 1,413 "
        "tokens, but only 1,215 were available\n"
        "  + decision 2 (.obra/memory/decision_log.md:4): 25 of 25 tokens; pinned: in full\n"
        "session_summary: 0 tokens (0%), share 372 (19%); 0 of 0 shown\n"
        "working_memory: 49 tokens (2%), share 561 (28%), room 1,797; 3 of 3 shown\n"
        "  + op 1: 6 of 6 tokens; in full\n"
        "  + op 2: 6 of 6 tokens; in full\n"
        "  + op 3: 6 of 6 tokens; in full\n"
    )


def test_it_explains_a_whole_that_is_not_its_pieces() -> None:
    """If the counts of the pieces do not add up to the total, the explanation reports both figures."""
    lines = context(letters(3)).explain().splitlines()
    whole = context(letters(3))
    assert lines[-1].startswith("Counted one by one, the pieces have ")
    assert lines[-1].endswith(f" tokens; the whole text has {whole.tokens:,}.")


# Number of turns shown in full

EAST = np.array([1.0, 0.0], dtype=np.float32)
NORTH = np.array([0.0, 1.0], dtype=np.float32)


def at_cosine(cosine: float) -> NDArray[np.float32]:
    """Return a vector with this cosine to EAST."""
    return np.array([cosine, np.sqrt(1 - cosine**2)], dtype=np.float32)


@pytest.mark.parametrize(("cosine", "turns", "reason"), cases("turns_follow_continuity"))
def test_turns_follow_continuity(cosine: float, turns: int, reason: str) -> None:
    """Four turns for a continuity below 0.3, eight above 0.7, otherwise six; the reason names the value."""
    window = turn_window(at_cosine(cosine), [EAST, EAST, EAST])
    assert (window.turns, window.reason) == (turns, reason)
    assert window.continuity == pytest.approx(cosine, abs=1e-6)


def test_only_the_last_three_messages_count() -> None:
    """Continuity uses the last three messages; with fewer, or without vectors, the default of six turns applies."""
    assert turn_window(EAST, [NORTH, NORTH, NORTH, EAST, EAST, EAST]).turns == 8
    search = LazySearch(pytest.fail, lambda: None, lambda: False)
    assert search.turn_window(["Why?"] * 3) == TurnWindow(turns=6, reason="earlier messages: 2, needed: 3")
    assert search.turn_window(["Why?"] * 4).reason == "messages cannot be compared: no embedder is available"
    zero = np.zeros(2, dtype=np.float32)
    assert turn_window(zero, [EAST] * 3) == TurnWindow(turns=6, reason="the messages have no content to compare")


vectors = st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=4, max_size=4).map(
    lambda v: np.array(v, dtype=np.float32)
)


@given(vectors, st.lists(vectors, min_size=3, max_size=5), st.floats(0.5, 1e3))
def test_continuity_is_a_cosine(message: NDArray[np.float32], earlier: list[NDArray[np.float32]], scale: float) -> None:
    """Continuity lies within -1 to 1 and does not depend on the length of the new message's vector."""
    measured = continuity(message, earlier)
    assert measured is None or -1 <= measured <= 1
    scaled = continuity((message.astype(np.float64) * scale / 1e3).astype(np.float32), earlier)
    if measured is not None and scaled is not None and np.max(np.abs(message)) > 1e-6:
        assert scaled == pytest.approx(measured, abs=1e-3)

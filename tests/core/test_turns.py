"""`orchestra_mem.core.context.turns`: how much of the talk stands in full when an epoch begins."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestra_mem import open_memory
from orchestra_mem.core.context.items import Part
from orchestra_mem.core.context.turns import first_of_turns, latest_messages, user_message
from orchestra_mem.types import Json, Operation

TIME = datetime(2026, 3, 2, tzinfo=UTC)
CONFIG = {"orchestrator": {"context_window": {"max_tokens": 8_192}}}
TALK = [
    "we bake rye bread on Tuesdays", "the rye bread needs more salt", "bake the rye bread longer",
    "how hot is the oven for rye bread",
]  # fmt: skip


def _operation(number: int, kind: str, data: Json) -> Operation:
    return Operation(id=number, session="s", type=kind, data=data, timestamp=TIME, tokens=1, entry_tokens=1)


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        ("nl_command", {"user_input": "start it"}, "start it"),
        ("user_message", "hello", "hello"),
        ("chat", {"role": "user", "content": "hello"}, "hello"),
        ("message", {"role": "assistant", "content": "hello"}, ""),
        ("task_execution", {"text": "hello"}, ""),
        ("nl_command", {"user_input": "  "}, ""),
        ("nl_command", 7, ""),
    ],
)
def test_what_a_user_said_is_known(kind: str, data: Json, said: str) -> None:
    """By the type of the operation or by its role; what a model or a tool said is none of it."""
    assert user_message(_operation(1, kind, data)) == said


def test_a_turn_goes_on_until_the_user_speaks_again() -> None:
    """It begins with his words and holds what was done about them."""
    operations = [
        _operation(number, kind, {"text": f"said {number}"})
        for number, kind in enumerate(["user_message", "tool", "user_message", "tool", "tool", "user_message"], 1)
    ]
    assert [first_of_turns(operations, turns) for turns in (1, 2, 3, 9)] == [6, 3, 1, 1]
    assert latest_messages(operations) == ["said 1", "said 3", "said 6"]
    assert first_of_turns(operations[1:2], 3) == 0


@pytest.mark.parametrize(
    ("last", "turns"),
    [("rye bread in the oven, baked longer, more salt", 8), ("invoice tax declaration deadline of the accountant", 4)],
)
def test_the_window_follows_the_talk(tmp_path: Path, last: str, turns: int) -> None:
    """One topic gives many turns in full, another one few; the context says how many and why, before and after."""
    with open_memory(tmp_path, config=CONFIG) as memory:
        for text in TALK[:3]:
            memory.record_operation("user_message", {"text": text})
        assert memory.get_orchestrator_context("x").turns is not None
        assert "there is no embedder" in memory.explain()
        memory.search("bread")
        memory.record_operation("user_message", {"text": last})
        context = memory.get_orchestrator_context("x", 2_000)
        assert context.turns is not None
        assert context.turns.turns == turns
        assert f"the last {turns} turns" in context.explain()
        assert context.tokens <= 2_000


def test_the_newest_turns_stand_in_full_first(tmp_path: Path) -> None:
    """Where room is short, the last six turns are whole before older operations get more than their shortest form."""
    with open_memory(tmp_path, config=CONFIG) as memory:
        for number in range(12):
            memory.record_operation("user_message", {"text": f"Question {number}. " + "It matters how. " * 12})
        context = memory.get_orchestrator_context("x", 2_000)
        operations = [each for each in context.placements if each.part is Part.OPERATIONS]
        whole = [each.key for each in operations if each.form == each.forms - 1]
        assert whole[-1] == "op 12"
        assert all("of the last turns" in each.reason for each in operations if each.pinned)
        assert [each.key for each in operations if each.pinned] == [f"op {number}" for number in range(7, 13)]

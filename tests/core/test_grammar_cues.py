"""What a sentence's grammar tells, in words that no table of phrases knows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from orchestra_mem.core.facts.extraction import find_must_keeps
from orchestra_mem.core.facts.judgement import judge
from orchestra_mem.types import Json, MustKeep, MustKeepKind, Operation

_START = datetime(2025, 3, 3, tzinfo=UTC)


def _said(text: str, number: int = 1) -> tuple[MustKeep, ...]:
    data: Json = {"speaker": "Ada", "text": text}
    operation = Operation(
        id=number, session="s", type="message", data=data, timestamp=_START, tokens=1, entry_tokens=1
    )  # fmt: skip
    return find_must_keeps(operation)


@pytest.mark.parametrize(
    "text",
    [
        "A kayak with a cracked hull gets carried to the barn, not paddled there.",
        "The lower sluice is chained while anyone's on the weir, and unchained by two people.",
        "A wagon whose brakes squeal doesn't leave the depot till somebody's looked under it.",
    ],
)
def test_grammar_tells_what_no_phrase_tells(text: str) -> None:
    """A habit with a scope is a rule."""
    assert MustKeepKind.CONSTRAINT not in judge(text, talk=False)
    assert MustKeepKind.CONSTRAINT in judge(text)


@pytest.mark.parametrize(
    "text",
    [
        "They've been sitting under that tree since the morning, the two of them.",
        "I think it would be rather nice if somebody repainted the old boats.",
        "My aunt drove a tractor through the village when she was eleven.",
        "It looks like a heron, but then everything looks like a heron to me.",
        "Is the dark walnut kept in the barn or do they burn it?",
        "So much happened at the lake, and we laughed about all of it!",
    ],
)
def test_grammar_of_a_tale_tells_nothing(text: str) -> None:
    """The past, a wish, a question and a feeling are no fact."""
    assert judge(text) == {}


def test_grammar_is_read_in_talk_alone() -> None:
    """In what is long, and so was written or pasted, phrases alone count."""
    rule = "A kayak with a cracked hull gets carried to the barn, not paddled there."
    assert [fact.text for fact in _said(rule)] == [rule]
    assert _said(f"{rule} {'The heron stood in the reeds again. ' * 30}") == ()

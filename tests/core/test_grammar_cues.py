"""What a sentence's grammar tells, in words that no table of phrases knows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from orchestra_mem.core.extraction import find_must_keeps, settle
from orchestra_mem.core.judgement import judge
from orchestra_mem.types import MustKeep, MustKeepKind, MustKeepStatus, Operation

_START = datetime(2025, 3, 3, tzinfo=UTC)
_RULE, _DECISION = MustKeepKind.CONSTRAINT, MustKeepKind.DECISION


def _said(text: str, number: int = 1) -> tuple[MustKeep, ...]:
    data = {"speaker": "Ada", "text": text}
    operation = Operation(
        id=number, session="s", type="message", data=data, timestamp=_START, tokens=1, entry_tokens=1
    )  # fmt: skip
    return find_must_keeps(operation)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (_RULE, "A kayak with a cracked hull gets carried to the barn, not paddled there."),
        (_RULE, "The lower sluice is chained while anyone's on the weir, and unchained by two people."),
        (_RULE, "A wagon whose brakes squeal doesn't leave the depot till somebody's looked under it."),
        (_DECISION, "So walnut, the dark one, and the joiner's been told already."),
        (_DECISION, "Then the small kiln, on the second of June, and we fire at night."),
        (_DECISION, "I've told the ferry people seven, so we cross in the evening now."),
    ],
)
def test_grammar_tells_what_no_phrase_tells(kind: MustKeepKind, text: str) -> None:
    """A habit with a scope is a rule, and a conclusion with a date or a deed is a decision."""
    assert kind not in judge(text, talk=False)
    assert kind in judge(text)


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


def _status(older: str, newer: str) -> MustKeepStatus:
    first, second = _said(older, 1), _said(newer, 30)
    assert first
    assert second
    return settle([*first, *second])[0].status


def test_weak_signs_together_replace() -> None:
    """A conclusion that shares rare words with an earlier decision takes its place without a word of taking back."""
    older = "So the porcelain is fired in the small kiln, on the second of June."
    assert (
        _status(older, "So the porcelain comes out of the small kiln in July, the potter's been told.")
        is MustKeepStatus.SUPERSEDED
    )
    assert _status(older, "So the ferry is painted in July, the skipper's been told.") is MustKeepStatus.STANDING

"""A decision taken back without a word of taking back: known by its grammar, its theme, and what it says instead."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from orchestra_mem.core.facts.extraction import find_must_keeps, find_steps
from orchestra_mem.core.facts.finds import Tentative, without_tentative
from orchestra_mem.core.facts.settlement import settle, supersedes
from orchestra_mem.core.steps import finished
from orchestra_mem.types import Json, MustKeep, MustKeepKind, MustKeepStatus, Operation

_START = datetime(2025, 3, 3, tzinfo=UTC)
_WEAK = "The barley is too wet up there, so rye and vetch, and the mill gets its sacks back"


def _fact(text: str, number: int, kind: MustKeepKind = MustKeepKind.DECISION) -> MustKeep:
    return MustKeep(kind=kind, text=text, operation=number, timestamp=_START + timedelta(minutes=number), id=number)


def _said(text: str, number: int) -> Operation:
    data: Json = {"speaker": "Ada", "text": text}
    when = _START + timedelta(minutes=number)
    return Operation(id=number, session="s", type="message", data=data, timestamp=when, tokens=1, entry_tokens=1)


def _judged(*texts: str) -> list[MustKeep]:
    """The facts of turns that are ten operations apart, as they are stored."""
    found = [
        fact
        for number, text in enumerate(texts)
        for fact in finished(find_steps(_said(text, 10 * number + 1), tentative=True))
    ]
    return without_tentative(settle([replace(fact, id=number) for number, fact in enumerate(found, 1)]))


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The workshop runs in the town hall, thirty seats.",
         "The town wants its seats back, so it's the old library for us, both floors"),
        ("The upper field gets barley this spring, the mill knows.",
         "The barley seed rots in that field, so rye goes in there for the mill."),
        ("The nightly copy of the till starts at 02:00.",
         "Then we start the till copy at 04:30, and ops have it."),
    ],
)  # fmt: skip
def test_another_conclusion_or_value_for_the_theme_replaces(older: str, newer: str) -> None:
    """It needs no word of taking back."""
    assert supersedes(_fact(newer, 30), _fact(older, 1))


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        # for what it is good, and no conclusion
        ("Then next we'll fix the filter of the provider.", "Now let's fix the filter so the provider can use it."),
        # the same again
        ("Let's work together on the market stall.", "So let's work together on the stall."),
        # a tale
        ("The upper field gets barley this spring, the mill knows.", "The field by the mill was all barley once."),
        # other things are counted
        ("We agreed on 24 pupils per bus.", "18 teachers per bus is too many, so we split them."),
        # another of the kind
        ("We decided that the second lesson is about area.", "So the first lesson goes to area and volume."),
    ],
)
def test_the_same_words_alone_replace_nothing(older: str, newer: str) -> None:
    """A theme that both share is not enough."""
    assert not supersedes(_fact(newer, 30), _fact(older, 1))


def test_what_follows_at_once_goes_into_detail() -> None:
    """Within three operations of a decision, a conclusion about its theme adds to it."""
    older = "The upper field gets barley this spring, the mill knows."
    newer = "The barley seed rots in that field, so rye goes in there for the mill."
    assert not supersedes(_fact(newer, 4), _fact(older, 1))
    assert supersedes(_fact(newer, 5), _fact(older, 1))


def test_what_is_no_fact_alone_is_one_where_it_contradicts_one() -> None:
    """A sentence too weak to be kept marks the decision that it takes back, and is kept then."""
    older = "We decided on barley for the upper field, the mill knows."
    assert find_must_keeps(_said(_WEAK, 1)) == ()
    assert _judged(_WEAK) == []
    first, second = _judged(older, _WEAK)
    assert (first.text, first.status, first.superseded_by) == (older, MustKeepStatus.SUPERSEDED, second.id)
    assert (type(second), second.text, second.status) == (MustKeep, _WEAK, MustKeepStatus.STANDING)


def test_what_is_no_fact_takes_the_place_of_none() -> None:
    """A tentative decision that replaced nothing is itself replaced by nothing, closes nothing, and is left out."""
    found = finished(find_steps(_said(_WEAK, 1), tentative=True))
    assert [(type(fact), fact.kind, fact.text) for fact in found] == [(Tentative, MustKeepKind.DECISION, _WEAK)]
    open_item = _fact("We still need to bring the mill its sacks back.", 1, MustKeepKind.OPEN_ITEM)
    settled = settle([open_item, replace(found[0], id=2)])
    assert [fact.status for fact in settled] == [MustKeepStatus.STANDING] * 2
    assert without_tentative(settled) == [open_item]

"""Doubts: what a later fact has perhaps taken back is named and stands on; what it has not is let alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra_mem.core.facts.doubts import doubted
from orchestra_mem.core.facts.finds import Tentative, without_tentative
from orchestra_mem.core.facts.settlement import settle
from orchestra_mem.core.facts.topics import profile_of
from orchestra_mem.types import MustKeep, MustKeepKind, MustKeepStatus

START = datetime(2025, 3, 3, tzinfo=UTC)
RULE = MustKeepKind.CONSTRAINT


def _fact(text: str, operation: int, kind: MustKeepKind = MustKeepKind.DECISION, weight: float = 1.0) -> MustKeep:
    when = START + timedelta(minutes=operation)
    return MustKeep(kind=kind, text=text, operation=operation, timestamp=when, id=operation, weight=weight)


STALLS = "We run nine stalls, that is signed with the town."
FEWER = "Six stalls then, the three by the fountain fall out, I told the mayor."


@pytest.mark.parametrize(
    ("older", "newer", "kind"),
    [
        pytest.param(STALLS, FEWER, MustKeepKind.DECISION, id="counted anew"),
        pytest.param(
            "The gate is painted blue this summer, the tins are ordered.",
            "So we're back to plain yellow for the gate posts, as the neighbours had it.",
            MustKeepKind.DECISION,
            id="another of a closed set",
        ),
        pytest.param(
            "Reports are capped at 40 pages, the auditors want that.",
            "Too thick, they say. So twenty pages from tomorrow, I've changed the template.",
            RULE,
            id="a rule with another number",
        ),
        pytest.param(
            "We serve three soups, leek, lentil, carrot, menu is printed.",
            "So dumplings with butter go on the menu instead, I cross out the other with a pencil.",
            MustKeepKind.DECISION,
            id="the same place",
        ),
        pytest.param(
            "Invitations go out in the name of the choir, with the free cake, I have the draft.",
            "The cake is off.",
            MustKeepKind.DECISION,
            id="a part of it is off",
        ),
    ],
)
def test_what_is_perhaps_taken_back_stands_and_names_the_later_fact(older: str, newer: str, kind: MustKeepKind) -> None:
    """It keeps its status; nothing but `superseded_by` changes, and the later fact is as it was."""
    first, second = _fact(older, 1, kind), _fact(newer, 9)
    assert settle([first, second]) == (replace(first, superseded_by=9), second)
    assert settle([first, replace(second, operation=3)], known=1)[0] == first, "right behind, it goes into detail"
    assert settle([first, replace(second, operation=62)])[0] == first, "too far away"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        pytest.param("The parcels leave from the north dock.", "The parcels have blue labels.", id="goes on about it"),
        pytest.param("We run nine stalls by the river.", "I might run six stalls there, so we go early.", id="wishful"),
        pytest.param(
            "We sweep the yard with the old brooms.", "So the mill and its yard get straw brooms too.", id="adds"
        ),
        pytest.param(
            "Item 2 is the fee of the members.", "So item 3 is what the guests pay for the members.", id="numbered"
        ),
        pytest.param("The lamp hangs in the hall.", "So the lamp hangs in the hall as ever.", id="the same again"),
        pytest.param(
            "The rope hangs by the well.",
            "Let's paint the rope of the crane red, so we run it on Friday.",
            id="what comes next",
        ),
        pytest.param(
            "No bikes in the cellar.",
            "so the wine goes into the cellar behind the wall instead, we move it.",
            id="a rule's place",
        ),
    ],
)
def test_what_shares_words_alone_is_let_alone(older: str, newer: str) -> None:
    """Talk that goes on about a theme takes nothing back."""
    kind = RULE if older.startswith("No ") else MustKeepKind.DECISION
    facts = (_fact(older, 1, kind), _fact(newer, 9))
    assert settle(facts) == facts


def test_what_weighs_more_is_not_doubted_for_a_remark() -> None:
    """A lighter fact casts no doubt on a heavier one."""
    first = _fact(STALLS, 1, weight=2.0)
    assert settle([first, _fact(FEWER, 9)])[0] == first
    assert settle([first, _fact(FEWER, 9, weight=2.0)])[0].superseded_by == 9


def test_the_likeliest_one_is_named_and_no_other() -> None:
    """Of several that share words the one for which most speaks."""
    other = _fact("The fountain is cleaned on the first of May.", 2)
    settled = settle([_fact(STALLS, 1), other, _fact(FEWER, 9)])
    assert [fact.superseded_by for fact in settled] == [9, 0, 0]


def test_a_doubt_gives_way_to_what_is_sure() -> None:
    """What is taken back outright later is superseded by that."""
    doubtful = settle([_fact(STALLS, 1), _fact(FEWER, 9)])
    sure = settle([*doubtful, _fact("Scrap the nine stalls, the town wants none.", 20)], known=2)
    assert (sure[0].status, sure[0].superseded_by) == (MustKeepStatus.SUPERSEDED, 20)


def test_what_is_no_fact_alone_is_one_if_it_casts_doubt() -> None:
    """The reader is shown what the doubt is about."""
    remark = Tentative(kind=MustKeepKind.DECISION, text=FEWER, operation=9, timestamp=START + timedelta(hours=1), id=9)
    assert [fact.id for fact in without_tentative(settle([_fact(STALLS, 1), remark]))] == [1, 9]
    assert [fact.id for fact in without_tentative(settle([_fact("Lunch is at noon.", 1), remark]))] == [1]


@settings(deadline=None, max_examples=100)
@given(newer=st.text(max_size=80), older=st.text(max_size=80), count=st.integers(0, 50))
def test_any_two_texts_can_be_weighed(newer: str, older: str, count: int) -> None:
    """The answer is the earlier fact or none, whatever they say."""
    fact, past = _fact(newer, 9), _fact(older, 1)
    assert doubted(fact, profile_of(newer), lambda: [(past, profile_of(older))], lambda _: count) in (None, past)

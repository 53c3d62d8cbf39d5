"""Settling: what a later fact replaces is found quickly, and is what comparing every two of them finds.

`settlements.tsv` with its verdicts is tested in `test_extraction.py`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra_mem.core.facts import clauses, topics
from orchestra_mem.core.facts.clauses import values_of
from orchestra_mem.core.facts.settlement import settle, supersedes
from orchestra_mem.core.facts.topics import Profile
from orchestra_mem.types import MustKeep, MustKeepKind, MustKeepStatus

START = datetime(2025, 3, 3, tzinfo=UTC)
ROWS = [
    line.split("\t")
    for line in (Path(__file__).parent / "settlements.tsv").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
TEXTS = sorted({text for row in ROWS for text in row[1:]})


def _fact(text: str, operation: int, kind: MustKeepKind = MustKeepKind.DECISION) -> MustKeep:
    when = START + timedelta(minutes=operation)
    return MustKeep(kind=kind, text=text, operation=operation, timestamp=when, id=operation)


def _without_doubt(fact: MustKeep) -> MustKeep:
    """A fact as it is if only what is sure counts; see `test_doubts.py`."""
    return replace(fact, superseded_by=0) if fact.status is MustKeepStatus.STANDING else fact


# `Scrap that` looks at what stands right before it, so it is no matter of two facts.
_PAIRWISE = [text for text in TEXTS if not re.search(r"\b(?:that|thoughts?|minds?)\b", text.lower())]
_PICKED = st.lists(
    st.tuples(st.sampled_from(_PAIRWISE), st.sampled_from(list(MustKeepKind))),
    max_size=24,
    unique_by=lambda pair: pair[0],
)


@settings(deadline=None, max_examples=150)
@given(picked=_PICKED, step=st.integers(1, 5))
def test_settling_finds_what_comparing_each_two_finds(picked: list[tuple[str, MustKeepKind]], step: int) -> None:
    """A fact is marked by the first later one that marks it when both are alone, and by none else."""
    facts = [_fact(text, 1 + number * step, kind) for number, (text, kind) in enumerate(picked)]
    settled = settle(facts)
    for number, older in enumerate(facts):
        alone = (settle([older, newer])[0] for newer in facts[number + 1 :])
        marked = next((fact for fact in alone if fact.status is not MustKeepStatus.STANDING), older)
        assert _without_doubt(settled[number]) == marked


@settings(deadline=None, max_examples=150)
@given(first=st.sampled_from(TEXTS), second=st.sampled_from(TEXTS), kind=st.sampled_from(list(MustKeepKind)))
def test_settling_passes_over_nothing_that_two_facts_alone_tell(first: str, second: str, kind: MustKeepKind) -> None:
    """What `supersedes` says of two facts that share a topic, `settle` marks: looking only nearby loses nothing."""
    older, newer = _fact(first, 1), _fact(second, 30, kind)
    if first != second and Profile(first).topic & Profile(second).topic and supersedes(newer, older):
        assert settle([older, newer])[0].superseded_by == newer.id


_PIECES = st.sampled_from(
    "the no oak is off out too late instead of drops out bye 5 pm at seven weekly every day 12th may $5 twenty percent "
    "14 days US$5 v12 3.5 kbit room on Friday Fridays noon next week , . ; so we take".split()
)
_SPOKEN = st.lists(_PIECES | st.text(max_size=4), max_size=30).map(lambda pieces: " ".join(pieces).lower())


@given(text=_SPOKEN)
def test_looking_at_words_first_changes_nothing(text: str) -> None:
    """Where no word of a pattern stands, and it is not tried, it would have found nothing."""
    assert bool(values_of(text)[0]) == (clauses._VALUE.search(text) is not None)
    profile = Profile(text)
    assert topics._GONE.search(profile.text) is None or not topics._GONE_WORDS.isdisjoint(
        re.findall(r"[a-z]+", profile.text)
    )


@pytest.mark.parametrize(
    ("older", "before", "newer"),
    [
        ("We're staying at the Hotel Astoria.", "Astoria is overbooked.", "We're at the Mercury now."),
        ("We take the coast road.", "The coast road is shut.", "We take the pass."),
    ],
)
def test_the_reason_may_be_a_fact_of_its_own(older: str, before: str, newer: str) -> None:
    """What the same operation says right before a decision counts as its reason."""
    first = _fact(older, 1)
    reason = _fact(before, 9, MustKeepKind.FAILURE)
    second = _fact(newer, 9)
    assert [fact.status for fact in settle([first, reason, second])] == [
        MustKeepStatus.SUPERSEDED,
        MustKeepStatus.STANDING,
        MustKeepStatus.STANDING,
    ]
    assert settle([first, second])[0].status is MustKeepStatus.STANDING


def test_a_theme_from_long_ago_is_not_set_anew() -> None:
    """Without a word of taking back, the same words over a long distance mean another thing."""
    older, text = _fact("The log buffer is kept in external flash.", 1), "So the log buffer moves into the FRAM chip."
    assert settle([older, _fact(text, 20)])[0].status is MustKeepStatus.SUPERSEDED
    assert settle([older, _fact(text, 2_000)])[0].status is MustKeepStatus.STANDING

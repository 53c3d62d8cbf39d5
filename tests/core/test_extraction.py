"""`orchestra_mem.core.facts.extraction`: what may not be lost is found, and what no longer holds is marked.

`must_keeps.tsv` holds sentences with the kind of fact that they tell, or `none`; `settlements.tsv` holds pairs of an
earlier and a later sentence with what the later one makes of the earlier.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra_mem.core.facts.extraction import find_in_text, find_must_keeps, settle, supersedes
from orchestra_mem.core.facts.judgement import CUES, judge, vocabulary_of
from orchestra_mem.types import Json, MustKeep, MustKeepKind, MustKeepStatus, Operation
from tests.timing import assert_linear, assert_quick, repeated

HERE = Path(__file__).parent
START = datetime(2025, 1, 15, 14, 30, tzinfo=UTC)


def _rows(name: str) -> list[list[str]]:
    return [line.split("\t") for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


SENTENCES = _rows("must_keeps.tsv")
PAIRS = _rows("settlements.tsv")


def _found(text: str, *, operation: int = 1, speaker: str = "") -> tuple[MustKeep, ...]:
    return find_in_text(text, operation=operation, timestamp=START + timedelta(minutes=operation), speaker=speaker)


def _operation(operation_type: str, data: Json, number: int = 1) -> Operation:
    return Operation(
        id=number, session="s", type=operation_type, data=data, timestamp=START, tokens=1, entry_tokens=1
    )  # fmt: skip


def _facts(operation_type: str, data: Json) -> list[tuple[str, str]]:
    return [(fact.kind.value, fact.text) for fact in find_must_keeps(_operation(operation_type, data))]


@pytest.mark.parametrize("kind", [kind.value for kind in MustKeepKind if kind is not MustKeepKind.PINNED])
def test_told_facts_are_found(kind: str) -> None:
    """Of sentences that tell a fact, in many wordings, at least 97 in 100 are found, of each kind."""
    texts = [text for label, text in SENTENCES if label == kind]
    missed = [text for text in texts if not _found(text)]
    assert len(texts) >= 35
    assert len(missed) <= 0.03 * len(texts), missed


def test_kinds_are_told_apart() -> None:
    """At least 93 in 100 of the facts found are of the kind that they were told as."""
    told = [(label, {fact.kind.value for fact in _found(text)}, text) for label, text in SENTENCES if label != "none"]
    wrong = [(label, kinds, text) for label, kinds, text in told if kinds and label not in kinds]
    assert len(wrong) <= 0.07 * len(told), wrong


def test_small_talk_is_no_fact() -> None:
    """Small talk, questions, wishes and suppositions hold none: at most 5 in 100 are taken for one."""
    texts = [text for label, text in SENTENCES if label == "none"]
    taken = [text for text in texts if _found(text)]
    assert len(texts) >= 150
    assert len(taken) <= 0.05 * len(texts), taken


@pytest.mark.parametrize("text", [text for label, text in SENTENCES if label != "none"][::9])
def test_facts_stand_out_from_talk(text: str) -> None:
    """A fact among turns of talk is found there, word for word."""
    talk = "Good morning, how was your weekend? The garden looked amazing. "
    facts = _found(f"{talk}{text} Haha, that sounds great! See you later.")
    alone = _found(text)
    assert [fact.text for fact in facts] == [fact.text for fact in alone]


def test_triggers_and_needs_leave_no_cue_out() -> None:
    """No cue would speak for a sentence that has none of its triggers, or nothing of what its pattern needs."""
    texts = [text for row in (*SENTENCES, *PAIRS) for text in row[1:]]
    patterns = [re.compile(cue.pattern.pattern) for cue in CUES]
    for text in texts:
        low = text.lower().replace("’", "'")
        words = vocabulary_of(low)
        for cue, pattern in zip(CUES, patterns, strict=True):
            if cue.triggers.isdisjoint(words) or not cue.pattern.can_match(low):
                assert pattern.search(low) is None, (cue.pattern.pattern, text)


@pytest.mark.parametrize(
    "text",
    [
        "Must we really deploy on Fridays?",
        "If we decided to go with Postgres, what would that cost?",
        "I wonder whether Tom is the DBA.",
        "Suppose the server crashed, would we notice?",
        "They might decide to sell the house.",
    ],
)
def test_questions_and_suppositions_are_no_facts(text: str) -> None:
    """What is asked or supposed is not kept as a fact."""
    assert _found(text) == ()


def test_a_tag_question_keeps_the_statement() -> None:
    """`ok?` behind a rule does not put it in question."""
    assert [fact.kind for fact in _found("Never deploy on Fridays, ok?")] == [MustKeepKind.CONSTRAINT]


def test_text_identifiers_and_origin_of_a_find() -> None:
    """A find carries its sentence, the identifiers in it, its operation and its time."""
    assert _found("Nice. We merged #318 into src/core/a.py. Bye!", operation=7) == (
        MustKeep(
            kind=MustKeepKind.COMPLETION,
            text="We merged #318 into src/core/a.py.",
            operation=7,
            timestamp=START + timedelta(minutes=7),
            identifiers=("#318", "src/core/a.py"),
        ),
    )


def test_a_role_in_the_first_person_carries_its_speaker() -> None:
    """Only where `I` needs a name does the speaker stand in front."""
    assert [fact.text for fact in _found("I'm the new DBA.", speaker="Zoe")] == ["Zoe: I'm the new DBA."]
    assert [fact.text for fact in _found("Priya owns billing.", speaker="Zoe")] == ["Priya owns billing."]


def test_a_sentence_that_points_back_brings_the_one_before() -> None:
    """`Never do that.` says nothing without its neighbour."""
    text = "Yesterday somebody pushed to main at night. Never do that."
    assert [fact.text for fact in _found(text)] == [text]
    text = "We met Priya Rao. She runs the lab."
    assert [fact.text for fact in _found(text)] == [text]


def test_two_facts_in_one_sentence_are_two() -> None:
    """Clauses that tell facts of different kinds are kept apart, each word for word."""
    found = _found("I fixed the login bug, but we still need to update the docs.")
    assert [(fact.kind.value, fact.text) for fact in found] == [
        ("completion", "I fixed the login bug"),
        ("open item", "we still need to update the docs."),
    ]


def test_code_is_not_prose() -> None:
    """Fenced code, code lines, logs and markup hold no rules, wherever they stand."""
    text = (
        "Look:\n```python\n# you must never call this\nassert only_one\n```\n"
        '    if (x) { return must_never(); } // never do this\n{"rule": "you must never"}\n'
        "2025-01-15 10:00:00 INFO you must always restart\n> Never quote this.\n"
    )
    assert _found(text) == ()


def test_source_code_as_tool_output_holds_no_facts() -> None:
    """What a tool printed is no one's rule or decision."""
    code = "# We decided to use Redis. You must never call this.\ndef only(): ...\n" * 50
    assert _facts("tool_use", {"tool": "Read", "text": code}) == []
    assert _facts("shell", {"command": "cat a.py", "stdout": code, "exit_code": 0}) == []


def test_failures_in_tool_output_are_found_but_few() -> None:
    """A failing command gives its exit status and at most two clear lines of its output."""
    lines = "".join(f"ERROR: part {number} is missing\n" for number in range(50))
    facts = _facts("shell", {"command": "make", "stderr": lines, "exit_code": 2})
    assert facts == [
        ("failure", "ERROR: part 0 is missing"),
        ("failure", "ERROR: part 1 is missing"),
        ("failure", "exit code: 2"),
    ]


def test_state_fields_are_read() -> None:
    """Decision, outcome, error and next steps are facts by their names, at any depth and in any case."""
    data: Json = {
        "task_id": 15,
        "task_title": "Password hashing",
        "Decision": "PROCEED",
        "review": {"result": "completed", "error": None, "next_steps": ["Write the migration for old users"]},
    }
    assert _facts("task_execution", data) == [
        ("decision", "decision: PROCEED (Password hashing)"),
        ("completion", "result: completed (Password hashing)"),
        ("open item", "Write the migration for old users"),
    ]
    assert _facts("task", {"name": "Import", "success": False}) == [("failure", "success: false (Import)")]
    assert _facts("task", {"error": "Disk is full on node 7"}) == [("failure", "Disk is full on node 7")]
    assert _facts("decision", {"text": "SQLite over Postgres for the start"}) == [
        ("decision", "SQLite over Postgres for the start")
    ]


def test_a_request_that_was_met_is_no_open_item() -> None:
    """Where an operation tells request and result, the result stands."""
    data: Json = {"user_input": "Please add an epic for billing", "result": 'Created Epic #5 "Billing"'}
    assert _facts("nl_command", data) == [("completion", 'Created Epic #5 "Billing"')]


def test_a_commit_is_not_its_own_todo() -> None:
    """The imperative of a commit message tells what the commit does; a rule told in it stands."""
    quiet: Json = {"hash": "3f2a9c1", "subject": "Never retry on timeouts", "body": "", "files": []}
    assert _facts("commit", quiet) == []
    told: Json = {"hash": "3f2a9c1", "subject": "Add docs", "body": "Releases must always be signed.", "files": []}
    assert _facts("commit", told) == [("constraint", "Releases must always be signed.")]


def test_a_long_text_keeps_its_clearest_facts() -> None:
    """What is kept of a long text stays under an eighth of it."""
    text = " ".join(f"Room {number} must be locked by the porter at night." for number in range(1_000))
    facts = _found(text)
    assert 0 < sum(len(fact.text) for fact in facts) <= len(text) / 8


_WORDS = st.sampled_from(
    (
        "we never must only always deploy on Fridays . ! ? , ; not Tom owns billing decided to use the #12 src/a.py if "
        "no please don't ’ is are \n - * ``` 250 ms failed fixed still need she He I'm until Fri. “x” done: now instead"
    ).split(" ")
)
_TEXTS = st.lists(_WORDS | st.text(max_size=6), max_size=60).map(" ".join)


@settings(deadline=None)
@given(text=_TEXTS, speaker=st.sampled_from(["", "Zoe"]))
def test_every_find_is_a_passage(text: str, speaker: str) -> None:
    """The text of a find stands in its source word for word, white space and the speaker's name apart."""
    source = " ".join(text.split())
    for fact in _found(text, speaker=speaker):
        passage = " ".join(fact.text.split())
        if fact.kind is MustKeepKind.ROLE:
            passage = passage.removeprefix("Zoe: ")
        assert passage in source


def _settle_pair(older: str, newer: str) -> tuple[set[str], set[str]]:
    first, second = _found(older, operation=1), _found(newer, operation=9)
    assert first, older
    settled = settle([*first, *second])
    return (
        {fact.status.value for fact in settled[: len(first)]},
        {fact.status.value for fact in settled[len(first) :]},
    )


@pytest.mark.parametrize(("verdict", "older", "newer"), PAIRS)
def test_settle(verdict: str, older: str, newer: str) -> None:
    """A later fact replaces or closes an earlier one of the same topic, leaves others alone, and stands itself."""
    first, second = _settle_pair(older, newer)
    assert second <= {"standing"}
    if verdict == "none":
        assert first == {"standing"}
    else:
        assert verdict in first


def test_supersedes_agrees_with_settle() -> None:
    """Two facts alone give the same answer, and an earlier fact never replaces a later one."""
    (older,) = _found("We decided to go with Postgres.", operation=1)
    (newer,) = _found("We switched to MySQL instead of Postgres.", operation=9)
    assert supersedes(newer, older)
    assert not supersedes(older, newer)


def test_superseded_by_names_the_later_fact() -> None:
    """`superseded_by` is the id of the fact that took the place."""
    (older,) = _found("Keep the response under 200 ms.", operation=1)
    (newer,) = _found("Keep the response under 150 ms.", operation=2)
    settled = settle([replace(newer, id=8), replace(older, id=3)])
    assert settled == (
        replace(newer, id=8),
        replace(older, id=3, status=MustKeepStatus.SUPERSEDED, superseded_by=8),
    )


def test_known_facts_mark_nothing_any_more() -> None:
    """Facts that were settled before may be marked by new ones, and mark none themselves."""
    (first,) = _found("Keep the response under 200 ms.", operation=1)
    (second,) = _found("Keep the response under 150 ms.", operation=2)
    (third,) = _found("Keep the response under 120 ms.", operation=3)
    standing, superseded = MustKeepStatus.STANDING, MustKeepStatus.SUPERSEDED
    assert [fact.status for fact in settle([first, second], known=2)] == [standing, standing]
    assert [fact.status for fact in settle([second, third], known=1)] == [superseded, standing]


def test_a_bare_reversal_takes_back_what_was_said_just_before() -> None:
    """`Scrap that` means the decision right before it, and none from long ago."""
    (older,) = _found("We decided to go with Postgres.", operation=1)
    (near,) = _found("Scrap that, MySQL instead.", operation=2)
    (far,) = _found("Scrap that, MySQL instead.", operation=30)
    assert [fact.status for fact in settle([older, near])] == [MustKeepStatus.SUPERSEDED, MustKeepStatus.STANDING]
    assert [fact.status for fact in settle([older, far])] == [MustKeepStatus.STANDING, MustKeepStatus.STANDING]


_POOL = [fact for number, row in enumerate(PAIRS, 1) for text in row[1:] for fact in _found(text, operation=number)]


@settings(deadline=None, max_examples=60)
@given(picked=st.lists(st.sampled_from(_POOL), max_size=30, unique=True), seed=st.integers(0, 1_000))
def test_settling_is_stable(picked: list[MustKeep], seed: int) -> None:
    """Settling keeps number, order and text, does nothing the second time, and never strikes out the latest fact."""
    facts = [replace(fact, id=n, timestamp=START + timedelta(hours=n)) for n, fact in enumerate(picked, 1)]
    settled = settle(facts)
    assert [replace(fact, status=MustKeepStatus.STANDING, superseded_by=0) for fact in settled] == facts
    assert all(fact.status is MustKeepStatus.STANDING for fact in settled[-1:])
    assert settle(settled) == settled
    shuffled = list(facts)
    random.Random(seed).shuffle(shuffled)
    assert {fact.id: fact for fact in settle(shuffled)} == {fact.id: fact for fact in settled}


def test_settling_thousands_is_quick() -> None:
    """Five thousand facts are settled in about a second."""
    verbs = ("must", "may not", "should always", "can only")
    texts = [f"The gate {n % 700} {verbs[n % 4]} be open in zone {n % 97} and hall {n % 31}." for n in range(5_000)]
    facts = [
        MustKeep(kind=MustKeepKind.CONSTRAINT, text=text, operation=n, timestamp=START + timedelta(minutes=n))
        for n, text in enumerate(texts)
    ]
    assert_quick(1.0, lambda: settle(facts))


@pytest.mark.parametrize(
    "unit",
    [
        "a ",
        "never ",
        "must not only be ",
        "we ",
        "\n- no x in y",
        "Tom ",
        "if , ",
        "`",
        '"',
        "1. ",
        "<a-log>",
        "@@ -1 +1 @@\n",
    ],
)
def test_time_is_linear(unit: str) -> None:
    """Up to a quarter of a megabyte of anything."""
    assert_linear(lambda size: find_in_text(repeated(unit, size), operation=1, timestamp=START), 250_000)


def test_judge_is_silent_about_narration() -> None:
    """What a model says that it is about to look at is no fact."""
    assert judge("Let me make sure the tests must pass before we merge.") == {}

"""Commands read by their parts: every verb and state of the lexicon in every voice, and what stands around them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.language.intents.common_words import COMMON_WORDS
from orchestra_mem.core.language.intents.frames import entries, fits, state_at, states, verb_forms
from orchestra_mem.core.language.intents.inflection import forms_of
from orchestra_mem.core.language.intents.mending import mended_word
from orchestra_mem.core.language.intents.parsing import DESTRUCTIVE, parse
from orchestra_mem.core.language.intents.rules import destructive_words, vocabulary


def read(line: str) -> list[tuple[str, str, str, str]]:
    """Give action, target, other and value of each intent."""
    return [(intent.action.value, intent.target, intent.other, intent.value) for intent in parse(line).intents]


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("shelve", ["shelve", "shelves", "shelving", "shelved", "shelved"]),
        ("carry", ["carry", "carries", "carrying", "carried", "carried"]),
        ("put", ["put", "puts", "putting", "put", "put"]),
        ("take", ["take", "takes", "taking", "took", "taken"]),
        ("defer", ["defer", "defers", "deferring", "deferred", "deferred"]),
        ("tie", ["tie", "ties", "tying", "tied", "tied"]),
        ("push", ["push", "pushes", "pushing", "pushed", "pushed"]),
        ("open", ["open", "opens", "opening", "opened", "opened"]),
        ("drop", ["drop", "drops", "dropping", "dropped", "dropped"]),
    ],
)
def test_verbs_have_their_forms(verb: str, expected: list[str]) -> None:
    """Base, third person, -ing, past and participle."""
    assert [form for form, _ in forms_of(verb)] == expected


@given(st.sampled_from(sorted(entries())))
def test_every_form_leads_back_to_its_verb(verb: str) -> None:
    """What a verb is written as is known as a form of it."""
    assert all(what in verb_forms()[form][verb] for form, what in forms_of(verb))


def test_nothing_in_the_lexicon_destroys() -> None:
    """What cancels or takes back is only ever read by patterns that name it."""
    names = {entry.name for of in (*entries().values(), *states().values()) for entry in of}
    assert not names & {action.value for action in DESTRUCTIVE}


def test_particles_stand_on_either_side_of_the_work() -> None:
    """To "wrap up" something is to "wrap it up" as well."""
    for line in ("wrap up 12", "wrap 12 up"):
        words = tuple(line.split())
        assert {fit.name for fit in fits("wrap", words, 1) if fit.end == 3} == {"finish"}


def test_the_longest_state_is_found() -> None:
    """So "done and dusted" is one state."""
    state = state_at(("12", "is", "done", "and", "dusted"), 2)
    assert state is not None
    assert (state.name, state.end) == ("finish", 5)


@pytest.mark.parametrize(
    "line",
    [
        "put 12 to bed", "could you put 12 to bed?", "we've put 12 to bed", "12 has been put to bed",
        "12 can be put to bed", "it's time to put 12 to bed", "putting 12 to bed now", "I just put 12 to bed",
        "let's put 12 to bed, the client is happy", "12 is in the bag", "12 - off my plate", "mark 12 as off my plate",
    ],
)  # fmt: skip
def test_an_idiom_is_read_in_every_voice(line: str) -> None:
    """One entry serves orders, requests, reports and states."""
    assert read(line) == [("finish", "12", "", "")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("get the ball rolling on #14", [("start", "#14", "", "")]),
        ("park 30 for now, back to 28", [("defer", "30", "", "now"), ("resume", "28", "", "")]),
        ("stick 14 on the back burner until june", [("defer", "14", "", "june")]),
        ("we hit a snag on 14, the api is down", [("block", "14", "", "the api is down")]),
        ("fire breath is super urgent", [("prioritise", "fire breath", "", "1")]),
        ("crank 12 up to critical", [("prioritise", "12", "", "1")]),
        ("Priya's gonna run with 12", [("assign", "12", "", "Priya")]),
        ("put 12 on Bob's plate", [("assign", "12", "", "Bob")]),
        ("Tom finished 12", [("finish", "12", "", "")]),
        ("pick 12 back up", [("resume", "12", "", "")]),
        ("kick off 12 with high priority", [("start", "12", "", ""), ("prioritise", "it", "", "2")]),
        ("give #9 to tom, prio high", [("assign", "#9", "", "tom"), ("prioritise", "it", "", "2")]),
        ("Could you finish 83 and start 84, please?", [("finish", "83", "", ""), ("start", "84", "", "")]),
        ("resume 12, would you?", [("resume", "12", "", "")]),
        ("my manager just pinged me, so let Ana take 12", [("assign", "12", "", "Ana")]),
        ("it would be wonderful if somebody could finally close task 12", [("finish", "task 12", "", "")]),
        ("note that Tom is out and give 12 to Ana", [("note", "", "", "Tom is out"), ("assign", "12", "", "Ana")]),
        ("12 and 14 are both complete", [("finish", "12 and 14", "", "")]),
        ("I mixed up the numbers. Please take that back.", [("undo", "that", "", "")]),
        ("12 on hold?", [("status", "12", "", "")]),
        ("before lunch I'd like to hear how far along 12 is", [("status", "12", "", "")]),
        ("gimme the rundown on epic 3", [("status", "epic 3", "", "")]),
        ("y did we go w/ rye", [("why", "", "", "we go w/ rye")]),
        ("Could you please explain what you can do?", [("help", "", "", "")]),
        ("I'd like to see a list of all blocked tasks", [("list", "", "", "blocked")]),
    ],
)  # fmt: skip
def test_what_stands_around_is_read(line: str, expected: list[tuple[str, str, str, str]]) -> None:
    """Times, reasons, persons, priorities and courtesies attach to any command."""
    assert read(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "I had pasta for lunch", "my cat blocked the keyboard", "blocked nose, hate november", "we lost the game",
        "let's not start the bathroom yet", "if 12 is done we can start 13", "Bob said 12 is done",
        "Could you imagine if we finished everything by Friday?", "when 12 is done, start 13",
        "who would want to cancel #12?", "can I delete 9?", "great, you cancelled 9", "was #9 cancelled by mistake?",
        "Do you happen to know a good recipe for plum cake?", "after 12 is finished, drop 13",
        "the train was stuck for an hour",
    ],
)  # fmt: skip
def test_nothing_is_read_where_nothing_is_asked_for(line: str) -> None:
    """Small talk, conditions, negations, and what others said or did."""
    assert read(line) == []


@pytest.mark.parametrize("word", ["summer", "winter", "company", "chance", "mate", "cake"])
def test_common_words_are_not_mended(word: str) -> None:
    """A "chance" is no mistyped "change"."""
    assert word in COMMON_WORDS or word in vocabulary()
    assert mended_word(word, vocabulary(), COMMON_WORDS, destructive_words()) == word


@pytest.mark.parametrize(("typed", "meant"), [("srtat", "start"), ("compelte", "complete"), ("finsih", "finish")])
def test_mistyped_words_are_mended(typed: str, meant: str) -> None:
    """Letters swapped, left out or put in."""
    assert mended_word(typed, vocabulary(), COMMON_WORDS, destructive_words()) == meant

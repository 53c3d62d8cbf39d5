"""What is read out of a line: commands in many wordings, no more than was asked for, and nothing out of a question."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra_mem.core.language.intents.parsing import (
    DESTRUCTIVE,
    MAX_LINE_CHARS,
    Action,
    Intent,
    from_json,
    intent_schema,
    parse,
)
from orchestra_mem.types import Json
from orchestra_mem.work_types import WorkKind
from tests.timing import assert_linear, assert_quick, repeated


def read(line: str) -> list[tuple[str, str, str, str]]:
    """Give action, target, other and value of each intent."""
    return [(intent.action.value, intent.target, intent.other, intent.value) for intent in parse(line).intents]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "start the second one, it is blocked by #10",
            [("start", "the second one", "", ""), ("block", "it", "#10", "")],
        ),
        ("finish 12 and 13, then start the next", [("finish", "12 and 13", "", ""), ("start", "the next", "", "")]),
        ("Could you please mark the Login story as done?", [("finish", "the Login story", "", "")]),
        ("hand #44 over to Marco, please", [("assign", "#44", "", "Marco")]),
        ("assign 26 to Bo, 27 to Karl", [("assign", "26", "", "Bo"), ("assign", "27", "", "Karl")]),
        ("we're going with SQLite", [("decide", "", "", "SQLite")]),
        ("note: the API is slow. cancel it", [("note", "", "", "the API is slow. cancel it")]),
        ("done with 12: it took 3 hours", [("report", "12", "", "it took 3 hours")]),
        ("drop it to low priority", [("prioritise", "it", "", "4")]),
        ("set the priority of 22 to 1", [("prioritise", "22", "", "1")]),
        ("12 can't start until 10 is done", [("depend", "12", "10", "")]),
        ("put it on hold until Friday", [("defer", "it", "", "Friday")]),
        ("rename it to “Sign in”", [("rename", "it", "", "Sign in")]),
        ("unblock the HL7 task, ward IT answered", [("unblock", "the HL7 task", "", "")]),
        ("would you mind starting the ablation?", [("start", "the ablation", "", "")]),
        ("take that back", [("undo", "that", "", "")]),
        ("why did we choose bcrypt?", [("why", "", "", "we choose bcrypt")]),
        ("what's the status of epic 5?", [("status", "epic 5", "", "")]),
        ("start 12 but don't cancel 13", [("start", "12", "", "")]),
        ("move 12 under epic 5", [("add", "12", "epic 5", "")]),
        ("what I want is for #85 to be unblocked", [("unblock", "#85", "", "")]),
        ("12 has to be moved under epic 5", [("add", "12", "epic 5", "")]),
        ("login story: start", [("start", "login story", "", "")]),
        ("#12 - done", [("finish", "#12", "", "")]),
        ("could Ahmed be assigned to #50?", [("assign", "#50", "", "Ahmed")]),
        ("please assign it to Dr. Lind", [("assign", "it", "", "Dr. Lind")]),
        ("start 12, blocked by #9", [("start", "12", "", ""), ("block", "it", "#9", "")]),
        ("could you tell me how task 7 is progressing?", [("status", "task 7", "", "")]),
        ("can you check if 12 is done?", [("status", "12", "", "")]),
        ("set pirority of #30 to low", [("prioritise", "#30", "", "4")]),
        ("pospone #12 til friday", [("defer", "#12", "", "friday")]),
        ("I've got an hour free, what should I work on?", [("next", "", "", "")]),
        ("as you may have noticed, task 14 is blocked by #3", [("block", "task 14", "#3", "")]),
        ("the client just called so can you close the demo story", [("finish", "the demo story", "", "")]),
        ("nobody uses the import story, so drop it", [("cancel", "the import story", "", "")]),
        ("assign 13 bob", [("assign", "13", "", "bob")]),
        ("May I ask you to finish task 23?", [("finish", "task 23", "", "")]),
        ("I regret to say that #53 is blocked by #52.", [("block", "#53", "#52", "")]),
        ("woohoo, 12 is done", [("finish", "12", "", "")]),
        ("12 is done, close it", [("finish", "12", "", "")]),
        ("task 12 it is done", [("finish", "task 12", "", "")]),
        ("#12 in progress now", [("start", "#12", "", "")]),
        ("#12 on hold now", [("defer", "#12", "", "")]),
        ("Handbook v2 has high priority", [("prioritise", "Handbook v2", "", "2")]),
        (
            "rename 12 to Fast login and give it to Bob",
            [("rename", "12", "", "Fast login"), ("assign", "it", "", "Bob")],
        ),
        ("the status of #32 is what?", [("status", "#32", "", "")]),
        ("why did we cancel #12?", [("why", "", "", "we cancel #12")]),
        ("12 done?", [("status", "12", "", "")]),
        ("In the end we chose Postgres.", [("decide", "", "", "Postgres")]),
    ],
)
def test_line_is_read(line: str, expected: list[tuple[str, str, str, str]]) -> None:
    """Phrases come as they were said, in order, and the whole line is understood."""
    assert read(line) == expected
    assert parse(line).understood


@pytest.mark.parametrize(
    ("line", "action", "kind", "count", "titles", "parent"),
    [
        ("pls creat an epic for User Authentication", "create", "epic", 1, ("User Authentication",), ""),
        ("add 3 stories to it: login, signup and MFA", "add", "story", 3, ("login", "signup", "MFA"), "it"),
        ("add tasks to #5:\n- Do this, then that\n- Rest", "add", "task", 2, ("Do this, then that", "Rest"), "#5"),
        ('create tasks "a, b" and "c"', "create", "task", 2, ("a, b", "c"), ""),
        ("create a story: as a nurse, I want to scan", "create", "story", 1, ("as a nurse, I want to scan",), ""),
        (
            "create a task to find dead users and delete them",
            "create",
            "task",
            1,
            ("find dead users and delete them",),
            "",
        ),
        ("for epic 5, create two tasks: x and y", "create", "task", 2, ("x", "y"), "epic 5"),
        ("Create an epic. Its name is 'Harvest'.", "create", "epic", 1, ("Harvest",), ""),
        ("create 3 epics: 1. Kitchen 2. Garden 3. Garage", "create", "epic", 3, ("Kitchen", "Garden", "Garage"), ""),
        ("add stories to #5: a) Tea b) Cake", "add", "story", 2, ("Tea", "Cake"), "#5"),
        ("add under the auth epic the stories SSO and MFA", "add", "story", 2, ("SSO", "MFA"), "the auth epic"),
        ("add tests, docs and a demo to #3 as tasks", "add", "task", 3, ("tests", "docs", "a demo"), "#3"),
        ('add "Menu" and "Band" as stories to the "Gala" epic', "add", "story", 2, ("Menu", "Band"), 'the "Gala" epic'),
        ("whack a new task on #3 called Tiles", "add", "task", 1, ("Tiles",), "#3"),
    ],
)
def test_what_is_new_has_kind_count_titles_and_parent(
    line: str, action: str, kind: str, count: int, titles: tuple[str, ...], parent: str
) -> None:
    """Titles keep the user's own words and case; lists are cut at commas, lines, quotes."""
    (intent,) = parse(line).intents
    assert (intent.kind, intent.count, intent.titles, intent.other) == (WorkKind(kind), count, titles, parent)
    assert intent.action in (Action(action), Action.ADD if parent else Action.CREATE)


@pytest.mark.parametrize(
    "line",
    [
        "cancle it", "delet task 4", "undoo that", "don't cancel it", "never delete #4", "should we cancel #4?",
        "did we cancel it?", "if it fails, cancel it", "in case the test breaks, undo it", "Bob said cancel it",
        "my boss told me to drop epic 3", "we might cancel 4", "maybe scrap #4", "can we cancel #4?", "cancel #4?",
        "cancel it unless it passes", "what if we cancelled it", "I cancelled my gym membership", "cancel the meeting",
        "delete the note on 12", "remove story 12 from epic 5", "the meeting was cancelled", "nobody should delete #5",
        "he is yelling, cancel it", "cancel it, just kidding", "wait, cancel 12... actually no",
        "never ever, cancel it",
        "let me know if it fails, then cancel it", "I don't want #12 cancelled", "12 should not be cancelled",
        "it would be a pity to see 12 cancelled", "how about we drop 12?", "drop everything and start 12",
        "the plan was: cancel 12", "I was thinking of cancelling 12", "12 will be cancelled tomorrow",
        "the email reads: please cancel 12", "cancel 12 or 13", "check if 12 is done, if not cancel it", "unod that",
        "new task: drop the old table", "start the cancel button story", "after 12 is finished, drop 13",
        "once 12 is done, cancel 13",
        "is there a way to undo?", "is it ok to cancel #12?", "would it be smart to drop epic 3?",
        "why would anyone cancel that?",
    ],
)  # fmt: skip
def test_nothing_is_cancelled_or_undone_unless_plainly_asked_for(line: str) -> None:
    """Typos, negations, questions, conditions and what others said destroy nothing."""
    assert not [intent for intent in parse(line).intents if intent.action in DESTRUCTIVE]


@pytest.mark.parametrize("verb", ["cancel", "drop", "scrap", "delete", "abandon", "get rid of"])
def test_clear_words_cancel(verb: str) -> None:
    """What is asked for plainly is read as such; whether it is then done is the caller's to ask."""
    assert read(f"please {verb} #4") == [("cancel", "#4", "", "")]


@pytest.mark.parametrize(
    "line", ["how's the weather", "order a pizza", "Bitte erstelle ein Epic für Login", "", " \t\n", "!!!", "創建史詩"]
)
def test_what_is_not_understood_is_said_with_the_nearest_commands(line: str) -> None:
    """Nothing is guessed."""
    parsed = parse(line)
    assert not parsed.intents
    assert not parsed.understood
    assert parsed.reason
    assert parsed.nearest


def test_mistyped_destructive_word_is_asked_about() -> None:
    """The answer names the command that may have been meant."""
    parsed = parse("cancle it")
    assert parsed.nearest == ("cancel it",)
    assert parsed.reason == '"cancle" may stand for "cancel"; that is only done where it is spelt out'


def test_destructive_part_of_a_line_not_understood_is_not_handed_on() -> None:
    """Half a line may mean the opposite of the whole."""
    parsed = parse("cancel 12. frobnicate the gizmo")
    assert not parsed.understood
    assert parsed.intents == ()


def test_mended_words_make_less_sure() -> None:
    """Who acts on an intent can tell how it was read."""
    assert parse("start 12").intents[0].sure == 1
    assert parse("strat 12").intents == (Intent(action=Action.START, target="12", sure=0.8),)


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(line: str) -> None:
    """No string raises, and what is not understood has its reason."""
    parsed = parse(line)
    assert parsed.understood or parsed.reason


@pytest.mark.parametrize("unit", ["start 12 and ", "a, ", "'", "word ", "\x00\x01", "start 12\n", "((", "to it "])
def test_long_lines_take_time_linear_to_their_length(unit: str) -> None:
    """The longest line that is read takes a moment."""
    assert_linear(lambda size: parse(repeated(unit, size)), MAX_LINE_CHARS)
    assert_quick(0.4, lambda: parse(repeated(unit, MAX_LINE_CHARS)))
    assert parse(unit * (MAX_LINE_CHARS + 1)).reason.startswith("the line has ")


def test_model_answers_in_the_same_intents() -> None:
    """What the schema allows is read into what the rules give."""
    answer: Json = {"intents": [{"action": "add", "kind": "story", "count": 2, "titles": ["a", "b"], "other": "it"}]}
    (intent,) = from_json(answer).intents
    assert intent == Intent(action=Action.ADD, kind=WorkKind.STORY, count=2, titles=("a", "b"), other="it", sure=0.7)
    schema = intent_schema()
    assert schema["required"] == ["intents"]


def test_faults_of_a_model_are_told_together() -> None:
    """Half an answer is none."""
    parsed = from_json([{"action": "zap", "count": -1}, {"action": "start", "target": 5}, "x"])
    assert parsed.intents == ()
    assert parsed.reason.split("; ")[1:] == [
        "intents[0].count is -1: a whole number from 0 to 1000 was expected",
        "intents[1].target is a number, not a text",
        "intents[2] is a text, not an object",
    ]

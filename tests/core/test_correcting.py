"""A line that takes back a part of itself, or all of it."""

from __future__ import annotations

import pytest

from orchestra_mem.core.language.intents.parsing import parse


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("start 12 no wait, 13", "start 13"),
        ("start 12, no wait, the login story", "start the login story"),
        ("start 12 (no, 13)", "start 13"),
        ("finish 7 - actually 8", "finish 8"),
        ("rename 30 to Alpha, no sorry, Beta", "rename 30 to Beta"),
        ("give this one to Ines, no, to Carla", "give this one to Carla"),
        ("assign 12 to Tom, I mean 13", "assign 13 to Tom"),
        ("assign it to Bob, actually to me", "assign it to me"),
        ("set 12 to high, no, critical", "set 12 to critical"),
        ("set 12 to high priority, make that critical", "set 12 to critical"),
        ("create a story called Login, no wait, Signup", "create a story called Signup"),
        ("defer 12 until Monday, no, Tuesday", "defer 12 until Tuesday"),
        ("12 depends on 10, oops, no, 11", "12 depends on 11"),
        ("cancel 71, sorry I mean 72", "cancel 72"),
        ("start 12. scratch that, finish it", "finish 12"),
    ],
)
def test_a_line_is_read_as_it_was_meant(line: str, plain: str) -> None:
    """What comes in another's place is of its sort: a number, a person, a time, a title, or the whole command."""
    assert parse(line).intents == parse(plain).intents
    assert parse(line).understood


@pytest.mark.parametrize(
    "line",
    [
        "start 12, no, don't",
        "start 12, actually no",
        "start 12. never mind",
        "finish 12 and 13, no wait",
        "cancel 12, no, keep it",
        "create a task: call Bob, nvm",
    ],
)
def test_what_is_taken_back_is_not_done(line: str) -> None:
    """Nothing of it is, and the reason says so."""
    parsed = parse(line)
    assert not parsed.intents
    assert parsed.reason == "the line takes back what it asks for"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ('add a task "Say no, wait for them" to 12', "Say no, wait for them"),
        ("note on 12: the client said no, sorry, we have no budget", "the client said no, sorry, we have no budget"),
        ("note on 12: the answer was, no", "the answer was, no"),
        ("report on 12: fails, no, sorry, passes", "fails, no, sorry, passes"),
    ],
)
def test_words_of_a_text_correct_nothing(line: str, kept: str) -> None:
    """What is quoted, noted or reported is kept as it was said."""
    (intent,) = parse(line).intents
    assert kept in (intent.value, *intent.titles)

"""What is suggested where no rule reads a line."""

from __future__ import annotations

import pytest

from orchestra_mem.core.language.intents.likeness import likely_actions
from orchestra_mem.core.language.intents.line_words import LINES, WORDS
from orchestra_mem.core.language.intents.nearest import nearest_commands
from orchestra_mem.core.language.intents.normalising import normalise
from orchestra_mem.core.language.intents.parsing import parse
from orchestra_mem.core.language.intents.types import Action


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("7 has crossed the finish line", "finish #7"),
        ("somebody else must take over 31 from Anna", "assign #31 to Anna"),
        ("tell me what comes next then", "what is next?"),
    ],
)
def test_the_likeliest_command_comes_first_with_the_item_that_was_named(line: str, first: str) -> None:
    """By the words of the line, whatever is made of it otherwise."""
    assert nearest_commands(normalise(line))[0] == first


def test_whatever_is_suggested_is_understood() -> None:
    """Each suggestion, typed, is a command of the action that it was suggested for."""
    for line in ("", "7", "zzz", "start the beginning of the end of 12", "why not"):
        for suggested in nearest_commands(normalise(line)):
            assert parse(suggested).understood, suggested


def test_every_action_can_be_suggested() -> None:
    """All of them are ranked, each once."""
    assert sorted(likely_actions("some words")) == sorted(Action)


def test_the_table_counts_no_more_than_there_is() -> None:
    """No action has more lines with a word than lines."""
    names = list(LINES)
    rows = " ".join(WORDS.split()).split("; ")
    assert len(rows) == 1_500
    for row in rows:
        for pair in row.partition("~")[2].split():
            name, _, count = pair.partition(":")
            assert 0 < int(count) <= LINES[names[int(name)]], row

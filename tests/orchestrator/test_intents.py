"""Parsing of lines: plain commands are understood for certain, everything else is only suggested."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.intents import Verdict, judge, load_records
from orchestra_mem import Orchestrator, open_memory
from orchestra_mem.orchestrator.intents import ASKS, Action, Intent, Parsed
from orchestra_mem.orchestrator.intents.classifier import MODEL
from orchestra_mem.orchestrator.intents.grammar import as_command
from orchestra_mem.orchestrator.intents.reading import read_line
from orchestra_mem.orchestrator.intents.slots import numbers_in, priority_in
from orchestra_mem.work_types import WorkKind
from tests.builders import cases
from tests.timing import assert_linear


def _of(action: Action, **slots: object) -> Intent:
    return Intent(action=action, **slots)  # type: ignore[arg-type]


def _meant(said: dict[str, Any]) -> Intent:
    kind = WorkKind(said["kind"]) if "kind" in said else None
    return Intent(**said | {"action": Action(said["action"]), "kind": kind, "titles": tuple(said.get("titles", ()))})


PLAIN = {line: _meant(said) for line, said in cases("plain_commands")}


@pytest.mark.parametrize("unit", [".", "!", "<"])
def test_a_run_of_signs_is_read_in_linear_time(unit: str) -> None:
    """A run of one punctuation mark is parsed in linear time."""
    assert_linear(lambda size: read_line(unit * size), 1_992)


@pytest.mark.parametrize(("line", "intent"), PLAIN.items(), ids=list(PLAIN))
def test_a_plain_command_is_sure(line: str, intent: Intent) -> None:
    """A plain command is understood for certain, with every slot filled."""
    assert read_line(line) == Parsed(intents=(intent,), understood=True)


def test_each_action_has_a_plain_form() -> None:
    """Every action has a plain command in the table of cases."""
    assert {intent.action for intent in PLAIN.values()} == set(Action)


CHANGES = [
    line for line, intent in PLAIN.items() if intent.action not in ASKS and "could" not in line and ":" not in line
]
DOUBTS = [
    "don't {}", "do not {}", "never {}", "if it fails, {}", "{} if it fails", "{} unless Bob objects",
    "once 4 is in, {}", "should I {}", "did you {}", "what if we {}", 'he said "{}"', "Bob wants to {}", "maybe {}",
    "{}, maybe", "let's not {}", "we could {}", "{} tomorrow, I think", "{}?",
]  # fmt: skip


@pytest.mark.parametrize("doubt", DOUBTS)
def test_what_is_not_said_plainly_is_never_done(doubt: str) -> None:
    """A command inside a negation, condition, question, quotation or doubt is never understood for certain."""
    notes = (Action.NOTE, Action.DECIDE, Action.BLOCK, Action.DEFER, Action.RENAME, Action.CREATE)
    free = {line for line, intent in PLAIN.items() if intent.action in notes}  # their texts can contain anything
    for line in CHANGES:
        if not (line in free and doubt.startswith("{}")) and not line.startswith("please"):
            assert not read_line(doubt.format(line)).understood, doubt.format(line)


@pytest.mark.parametrize(
    "word", ["cancle #4", "undoo that", "kill off #4", "get rid of the login story", "take #4 out"]
)
def test_what_takes_away_is_done_by_its_plain_words_alone(word: str) -> None:
    """A misspelling or synonym of `cancel` or `undo` is never understood for certain."""
    assert not read_line(word).understood


@given(st.text(max_size=120))
def test_any_text_can_be_read(text: str) -> None:
    """Any text parses without an error, and yields at most three suggestions."""
    read = read_line(text, titles=["Login page", "Undo"])
    assert len(read.nearest) <= 3


def test_a_long_line_is_read_quickly() -> None:
    """Long pasted text is no command, and four such lines are parsed within two seconds of CPU time."""
    for times in (5_000, 50):
        begun = time.process_time()
        assert not read_line("start 12, and then, if it rains, " * times).understood
        assert not read_line("start 12, " * times + "and maybe 13").understood
        assert time.process_time() - begun < 2


@pytest.mark.parametrize(("line", "intent"), PLAIN.items(), ids=list(PLAIN))
def test_a_command_is_shown_as_it_can_be_typed(line: str, intent: Intent) -> None:
    """The command shown for an intent parses to the same intent for certain."""
    again = read_line(as_command(intent))
    assert again.understood, as_command(intent)
    assert judge({"intents": [_said(intent)]}, again).right


@pytest.fixture(scope="module")
def verdicts() -> list[Verdict]:
    """Verdicts on the lines of the test split, by writers who are not in the training split."""
    return [judge(record, read_line(record["line"])) for record in load_records("test")]


def test_only_complete_commands_are_suggested(tmp_path: Path, verdicts: list[Verdict]) -> None:
    """No suggestion lacks a part: neither `find` without words, nor `rename #5 to ""`, nor `#3 depends on`."""
    assert read_line("create an epic").nearest == ()
    read = [read_line("hallo"), read_line("erledige #3"), *(verdict.read for verdict in verdicts)]
    offered = {each for line in read for each in line.nearest}
    assert [each for each in offered if re.search(r'(?:^find|:|\bto|\bon|"")\s*$', each)] == []
    with open_memory(tmp_path) as memory, Orchestrator(memory) as shell:
        shell.execute("create 3 tasks: cart page, card payments, gift cards")
        assert '""' not in shell.execute("Priya also does gift cards").text


def _said(intent: Intent) -> dict[str, object]:
    return {name: value for name in intent.__slots__ if (value := getattr(intent, name)) and name != "sure"}


def test_a_title_of_the_tracker_is_found() -> None:
    """A known title is recognised as a name, even if it contains a command word or a misspelling."""
    titles = ["Cancel the subscription page", "Seed catalogue"]
    assert read_line("start cancel the subscription page", titles) == Parsed(
        intents=(_of(Action.START, target="cancel the subscription page"),), understood=True
    )
    suggested = read_line("I am done with the seed catalouge", titles).intents
    assert [(intent.action, intent.target) for intent in suggested] == [(Action.FINISH, "seed catalouge")]


@pytest.mark.parametrize(("line", "understood"), cases("a_known_title_cuts_no_new_one"))
def test_a_known_title_cuts_no_new_one(line: str, understood: bool) -> None:
    """A new title or text may contain the title of an item, and keeps all its words without quotes."""
    read = read_line(line, ["Login"])
    assert read.understood is understood
    assert {*read.intents[0].titles, read.intents[0].value} - {""} == {"fix the login page"}


def test_numbers_in_words_ranges_and_lists() -> None:
    """A phrase yields all numbers that it names, in digits, words and ranges."""
    assert numbers_in("3 to 5, #9 and twenty-one") == (3, 4, 5, 9, 21)
    assert numbers_in("tasks 12-14") == (12, 13, 14)
    assert numbers_in("1 to 900000") == (1, 900000)
    assert numbers_in("the last one") == ()


def test_priorities_in_words() -> None:
    """Priorities are recognised in words and numbers, with misspellings, and in phrases such as `not important`."""
    said = ("urgnet", "lowset", "three", "P2", "not important", "bump it up", "soon")
    assert [priority_in(text) for text in said] == ["1", "5", "3", "2", "4", "higher", ""]


def test_lines_of_strangers(verdicts: list[Verdict]) -> None:
    """Of lines by unseen writers, at least 76% are read rightly and at most 3% wrongly."""
    assert sum(verdict.right for verdict in verdicts) >= 0.76 * len(verdicts)
    assert sum(verdict.wrong for verdict in verdicts) <= 0.03 * len(verdicts)


def test_strangers_lose_nothing(verdicts: list[Verdict]) -> None:
    """No line by an unseen writer causes an unrequested change or an unintended removal."""
    assert [verdict.record["line"] for verdict in verdicts if verdict.unasked or verdict.destructive] == []


def test_writers_of_the_test_split_have_taught_nothing() -> None:
    """The splits share no writer, and the model file has at most 800 KB."""
    train, test = load_records("train"), load_records("test")
    assert not {record["writer"] for record in train} & {record["writer"] for record in test}
    assert MODEL.stat().st_size <= 800_000

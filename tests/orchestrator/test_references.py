"""References in lines: how each form is resolved, when the user is asked, and what is never guessed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from benchmarks.references import Items
from orchestra_mem.orchestrator.intents import Action, Intent
from orchestra_mem.orchestrator.resolving import resolve_line, resolve_text
from orchestra_mem.orchestrator.talk import ANYTHING, Effect, Happening, Need, Talk, expected_target
from orchestra_mem.work_types import WorkItem, WorkKind, WorkStatus
from tests.builders import cases

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
MILESTONE, EPIC, STORY, ACTIVE = WorkKind.MILESTONE, WorkKind.EPIC, WorkKind.STORY, WorkStatus.IN_PROGRESS
WORK = tuple(
    WorkItem(id=number, kind=WorkKind(kind), title=title, status=WorkStatus(status), parent=parent, created=NOON,
             changed=NOON)
    for number, kind, title, status, parent in cases("work_that_is_spoken_of")
)  # fmt: skip
LOOKUP = Items(WORK)


def did(happening: str, *items: int) -> Effect:
    """Return a mention of the items."""
    return Effect(items=items, happening=Happening(happening))


def talk(*mentions: Effect) -> Talk:
    """Return a conversation with these mentions, oldest first."""
    return Talk(mentions=mentions[::-1], lookup=LOOKUP)


NOTHING_SAID = talk()
THREE_CREATED = talk(did("created", 5), did("created", 10, 11, 12))
FIRST_STARTED = talk(*THREE_CREATED.mentions[::-1], did("started", 10))
ONE_BY_ONE = talk(did("created", 10), did("created", 11))
TALKS = {
    "nothing": NOTHING_SAID,
    "three stories were created": THREE_CREATED,
    "the first of them was started": FIRST_STARTED,
    "the last of them was started": talk(*THREE_CREATED.mentions[::-1], did("started", 12)),
    "two were created one by one": ONE_BY_ONE,
    "three tasks": talk(did("mentioned", 20), did("started", 23), did("failed", 21)),
    "a list": talk(did("started", 23), did("listed", 21, 22, 20)),
    "one was created after a list": talk(did("listed", 20, 21, 22), did("created", 23)),
    "two epics": talk(did("mentioned", 5, 6)),
    "two epics were created in turn": talk(
        did("created", 5), did("created", 10), did("created", 6), did("created", 13)
    ),
    "two that failed were listed": talk(did("started", 11), did("listed", 10, 20)),
    "one of a group was finished out of turn": talk(did("created", 20, 22, 21, 23), did("finished", 22)),
}


@pytest.mark.parametrize(("after", "line", "meant"), cases("line_means_what_a_listener_takes_it_for"))
def test_line_means_what_a_listener_takes_it_for(after: str, line: str, meant: list[int]) -> None:
    """Each form of reference resolves as a listener would, or asks where a listener would."""
    resolution = resolve_line(line, TALKS[after])
    assert sorted(each.id for each in resolution.items) == sorted(meant)
    assert bool(resolution.ask) is not bool(meant)


# Numbers


@pytest.mark.parametrize(("line", "ids"), cases("number_is_taken_as_it_stands"))
def test_number_is_taken_as_it_stands(line: str, ids: list[int]) -> None:
    """A number refers to its item in digits or words, alone or in a list, with or without `#`."""
    assert [each.id for each in resolve_line(line, FIRST_STARTED).items] == ids


@pytest.mark.parametrize(("line", "question"), cases("number_that_cannot_be_meant_is_told_and_not_replaced"))
def test_number_that_cannot_be_meant_is_told_and_not_replaced(line: str, question: str) -> None:
    """A number without a suitable item leads to a question, never to an item mentioned before."""
    resolution = resolve_line(line, THREE_CREATED)
    assert resolution.items == ()
    assert resolution.ask == question


@pytest.mark.parametrize("line", cases("clause_that_is_not_understood_is_asked_about"))
def test_clause_that_is_not_understood_is_asked_about(line: str) -> None:
    """A clause that is not understood, or a blank quotation, leads to a question, not to the item in focus."""
    resolution = resolve_line(line, THREE_CREATED)
    assert (resolution.items, bool(resolution.ask)) == ((), True)


@pytest.mark.parametrize(("line", "meant"), cases("clauses_of_a_line_are_told_apart"))
def test_clauses_of_a_line_are_told_apart(line: str, meant: list[int]) -> None:
    """Only the clause with the request is resolved, not remarks in the same line."""
    assert [found.id for found in resolve_line(line, THREE_CREATED).items] == meant


def test_question_says_what_is_close_or_that_nothing_fits() -> None:
    """A question lists the candidates with kind, number and title, or repeats a name that nothing matches."""
    assert resolve_line("start one of them", ONE_BY_ONE).ask == (
        'Which do you mean by "one of them": Story #10 "Login" or Story #11 "Signup"?'
    )
    assert resolve_line("start the espresso story", THREE_CREATED).ask == (
        'Nothing is called "the espresso story". Which item do you mean?'
    )


def test_need_decides_which_one_it_is() -> None:
    """The kinds that a command needs exclude candidates, and its statuses lower their score."""
    lately = talk(did("mentioned", 5), did("mentioned", 22))
    for need, meant in ((ANYTHING, 22), (Need(kinds=(EPIC,)), 5), (Need(statuses=(ACTIVE,)), 5)):
        assert [each.id for each in resolve_text("it", lately, need).items] == [meant]
    assert expected_target(Intent(action=Action.ADD, kind=STORY)).kinds == (EPIC, MILESTONE)
    assert ACTIVE not in expected_target(Intent(action=Action.START)).statuses


@pytest.mark.parametrize("phrase", ["all tasks of epic 5", "all pending tasks", "all part tasks"])
def test_a_plural_means_every_item(phrase: str) -> None:
    """A plural phrase resolves to every matching item, even to more than a hundred."""
    task = WorkItem(id=100, kind=WorkKind.TASK, title="Part", parent=5, created=NOON, changed=NOON)
    many = Items((*WORK, *(replace(task, id=number) for number in range(100, 220))))
    assert len(resolve_text(phrase, Talk(mentions=(), lookup=many)).items) >= 120

"""Conduct of the orchestrator: what it does immediately, what it confirms first, and what never changes anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestra_mem import open_memory
from orchestra_mem.orchestrator import Orchestrator, Outcome, Reply
from orchestra_mem.types import DocumentName, MustKeepKind, OperationFilter
from orchestra_mem.work_types import WorkItem, WorkStatus
from tests.builders import cases, promised
from tests.conftest import Clock


@pytest.fixture
def orchestrator(tmp_path: Path) -> Iterator[Orchestrator]:
    """An orchestrator that knows an epic #1 with the stories #2 Login, #3 Signup and #4 Invoices."""
    with open_memory(tmp_path) as memory:
        orchestrator = Orchestrator(memory)
        said(orchestrator, "create an epic for user authentication", "add 3 stories to it: login, signup, invoices")
        yield orchestrator


def said(orchestrator: Orchestrator, *lines: str) -> Reply:
    """Execute the lines; return the last reply."""
    return [orchestrator.execute(line) for line in lines][-1]


def items(orchestrator: Orchestrator) -> list[WorkItem]:
    """Return all items."""
    return orchestrator.tracker.items()


# Confirmation


def test_a_line_that_is_not_plain_is_asked_about_first(orchestrator: Orchestrator) -> None:
    """An informal request changes nothing until the suggested command is confirmed, for which `y` is enough."""
    reply = said(orchestrator, "hey could we maybe get going on the signup thing")
    assert (reply.outcome, reply.text.split("?")[0]) == (Outcome.ASKED, "Did you mean: start #3 (Signup)")
    assert orchestrator.tracker.item(3).status is WorkStatus.PENDING
    assert said(orchestrator, "y").outcome is Outcome.DONE
    assert orchestrator.tracker.item(3).status is WorkStatus.IN_PROGRESS


def test_an_item_is_moved_by_a_plain_command_that_is_offered_as_such(orchestrator: Orchestrator) -> None:
    """A plain "move" is carried out, and what is offered says that an existing item moves, not that one is made."""
    said(orchestrator, "create an epic for billing")
    reply = said(orchestrator, "perhaps we should shift #4 over to #5")
    assert "add a " not in reply.text.partition("\n")[0]
    assert said(orchestrator, "move #4 under #5").text == 'Story #4 "Invoices" is under Epic #5'
    assert orchestrator.tracker.item(4).parent == 5


def test_another_reading_is_chosen_by_its_number(orchestrator: Orchestrator) -> None:
    """If several readings are suggested, answering with a number executes that reading."""
    reply = said(orchestrator, "list the stories", "i guess we are finally through with it")
    assert reply.outcome is Outcome.ASKED
    assert len(reply.options) > 1
    number = next(place for place, option in enumerate(reply.options, 1) if place > 1)
    chosen = said(orchestrator, str(number))
    assert (chosen.outcome, chosen.intents) == (Outcome.DONE, reply.options[number - 1])


@pytest.mark.parametrize(("before", "line", "outcome", "told"), promised("what_is_not_plain_changes_nothing"))
def test_what_is_not_plain_changes_nothing(
    orchestrator: Orchestrator, before: list[str], line: str, outcome: str, told: str
) -> None:
    """A line that is not plain changes no item and adds no fact; the first line of its answer contains these words."""
    for each in before:
        said(orchestrator, each)
    known = items(orchestrator), orchestrator.memory.facts()
    reply = said(orchestrator, line)
    assert (reply.outcome, told in reply.text.splitlines()[0]) == (outcome, True)
    assert (items(orchestrator), orchestrator.memory.facts()) == known


def test_a_duty_that_stands_before_a_question_is_one(orchestrator: Orchestrator) -> None:
    """A duty that is not understood, as a question follows it, is an open item."""
    said(orchestrator, "We still have to pay the rent. Is that right?")
    assert [fact.text for fact in orchestrator.memory.facts()] == ["We still have to pay the rent."]


@pytest.mark.parametrize("answer", ["no", "n", "nope, leave it", "never mind"])
def test_a_no_leaves_all_as_it_is(orchestrator: Orchestrator, answer: str) -> None:
    """A negative answer changes nothing and discards the suggestion, so that a later yes has no effect."""
    before = items(orchestrator)
    reply = said(orchestrator, "hey could we maybe get going on the signup thing", answer)
    assert reply.text == "Nothing was changed."
    assert said(orchestrator, "yes").outcome is Outcome.NOT_UNDERSTOOD
    assert items(orchestrator) == before


@pytest.mark.parametrize(("statement", "kind"), cases("a_statement_of_what_holds_is_noted_at_once"))
def test_a_statement_of_what_holds_is_noted_at_once(orchestrator: Orchestrator, statement: str, kind: str) -> None:
    """A decision, rule or role that is only stated is remembered without a question, once, as a person's words."""
    before = items(orchestrator)
    reply = said(orchestrator, statement)
    assert (reply.outcome, reply.text) == (Outcome.DONE, f"Noted: {statement}")
    assert [(each.text, each.kind, each.weight) for each in orchestrator.memory.facts()] == [(statement, kind, 2.0)]
    assert items(orchestrator) == before


@pytest.mark.parametrize(
    "line",
    ["never do that", "Maybe we should use Kafka instead of RabbitMQ", "the signup must be done by Friday",
     "if the trial goes well, we use Kafka for the events"],
)  # fmt: skip
def test_an_outcry_a_proposal_and_a_sentence_about_an_item_are_not_noted_at_once(
    orchestrator: Orchestrator, line: str
) -> None:
    """What is only exclaimed, proposed or supposed is no statement, and what names an item may be a command."""
    assert not said(orchestrator, line).text.startswith(("Noted", "Decided"))


def test_a_statement_that_may_be_a_command_is_asked_about(orchestrator: Orchestrator) -> None:
    """A role that may be the assignment of an item that exists is not noted before the person has said so."""
    statement = "Paul takes care of the signup"
    asked = said(orchestrator, statement).text.splitlines()
    assert asked[0].startswith("Did you mean: assign #3 to Paul")
    assert asked[-1] == f"  {len(asked)}: note: {statement}"
    assert not orchestrator.memory.facts()
    said(orchestrator, str(len(asked)))
    assert [each.text for each in orchestrator.memory.facts(MustKeepKind.ROLE)] == [statement]
    assert "decision: " not in said(orchestrator, "Karl is now responsible for the signup instead of Paul").text


def test_a_plain_command_answers_no_question(orchestrator: Orchestrator) -> None:
    """A plain command given instead of an answer is executed, and the pending suggestion is discarded."""
    said(orchestrator, "hey could we maybe get going on the signup thing", "start 2")
    assert [item.status for item in items(orchestrator)].count(WorkStatus.IN_PROGRESS) == 1
    assert orchestrator.tracker.item(2).status is WorkStatus.IN_PROGRESS
    assert said(orchestrator, "yes").outcome is Outcome.NOT_UNDERSTOOD


@pytest.mark.parametrize("line", cases("negations_conditions_questions_and_quotes_change_nothing"))
def test_negations_conditions_questions_and_quotes_change_nothing(orchestrator: Orchestrator, line: str) -> None:
    """A line that negates, conditions, questions or quotes a command changes no item."""
    before = items(orchestrator)
    said(orchestrator, line)
    assert items(orchestrator) == before


YES = ["y", "yes", "yes please", "ok go ahead", "sure, do it"]
HALF = ["yes but not 3", "yes?", "yesterday", "yes, if Tom agrees", "no", "start it"]


@pytest.mark.parametrize("answer", [*YES, *HALF])
def test_a_yes_is_short_and_half_a_yes_is_none(orchestrator: Orchestrator, answer: str) -> None:
    """One key or a short phrase confirms; a yes with a condition, a limit or another request does not."""
    said(orchestrator, "cancel 4", answer)
    assert (orchestrator.tracker.item(4).status is WorkStatus.CANCELLED) == (answer in YES)


@pytest.mark.parametrize(("lines", "answer"), promised("a_talk_ends_with_its_answer"))
def test_a_talk_ends_with_its_answer(orchestrator: Orchestrator, lines: list[str], answer: str) -> None:
    """Each documented dialogue ends with its documented reply, word for word."""
    assert said(orchestrator, *lines).text == answer


# What is remembered


def test_what_was_only_asked_answers_nothing(orchestrator: Orchestrator) -> None:
    """Questions and unconfirmed commands of the shell are no hits; questions of a chat come last, as guesses."""
    memory = orchestrator.memory
    for text in ("When do the doors open on Sunday?", "We decided to open the doors at eleven on Sunday."):
        memory.record_operation("message", {"role": "user", "text": text})
    assert said(orchestrator, "give 3 to Jörg and 2 to Tom").outcome is Outcome.ASKED
    said(orchestrator, "when do the doors open on Sunday?")
    assert "Jörg" not in said(orchestrator, "what does Tom have to do?").text
    hits = memory.search("when do the doors open on Sunday?", limit=20).hits
    asked = [hit for hit in hits if hit.chunk.text.endswith("?")]
    assert [(hit.chunk.kind, hit.perhaps) for hit in asked] == [("message", True)]
    assert hits[-1] == asked[0]


def test_a_line_that_was_not_understood_is_no_knowledge(tmp_path: Path) -> None:
    """Such lines are recorded and searched for facts, but are in no summary or Active Work; questions are no hits.

    Summaries do not repeat the answers of the shell either.
    """
    lines = ("what does the frobnicator do?", "Ana leads billing", "note: part {} is parsed twice")
    config = {"orchestrator": {"context_window": {"max_tokens": 8_192}}}
    with open_memory(tmp_path, config=config, clock=Clock(step_s=600)) as memory:
        orchestrator = Orchestrator(memory)
        for number in range(120):
            reply = orchestrator.execute(lines[number % 3].format(number))
            assert (reply.outcome is Outcome.NOT_UNDERSTOOD) == (number % 3 < 2)
        memory.refresh()
        (session,) = memory.sessions()
        active = memory.episodic_memory.path(DocumentName.PROJECT_STATE).read_text(encoding="utf-8")
        summaries = "".join(summary.text for summary in memory.summaries(session.id))
        for text, note in ((active, "Note: user (op 120): part 119 is parsed twice"), (summaries, "is parsed twice")):
            assert note in text
            assert not any(said in text for said in ("frobnicator", "did not understand", "Try:"))
        memory.flush_session()
        found = memory.search("what does the frobnicator do?").hits
        assert not any("frobnicator" in hit.chunk.text for hit in found)
        assert "Ana leads billing" in memory.search("who leads billing?").hits[0].chunk.text
        assert orchestrator.execute("ERR_SSL_VERSION on api-7").outcome is Outcome.NOT_UNDERSTOOD
        assert "ERR_SSL_VERSION on api-7" in memory.search("ERR_SSL_VERSION").hits[0].chunk.text
        assert "Ana leads billing" in [fact.text for fact in memory.facts(MustKeepKind.ROLE)]
        assert memory.count_operations(OperationFilter(type="nl_command")) == 81


# Notation and whole dialogues

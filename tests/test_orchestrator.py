"""`orchestra_mem.orchestrator`: lines become work, everything is recorded, and no input breaks it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.errors import InvalidChangeError
from orchestra_mem.hooks import hookimpl
from orchestra_mem.model_types import Message
from orchestra_mem.orchestrator import Attempt, Decision, Orchestrator, Outcome, TaskResult
from orchestra_mem.testing import ScriptedModel
from orchestra_mem.types import DocumentName, Json
from orchestra_mem.work_types import WorkKind, WorkStatus
from tests.builders import cases, promised
from tests.conftest import Clock


@pytest.fixture
def clock() -> Clock:
    """A clock that advances by ten seconds at each call."""
    return Clock(step_s=10)


@pytest.fixture
def orchestrator(memory: OrchestratorContextManager, clock: Clock) -> Orchestrator:
    """An orchestrator over the memory."""
    return Orchestrator(memory, clock=clock)


def _done(orchestrator: Orchestrator, *lines: str) -> str:
    """Run lines that must each be done or answered, and return the last answer."""
    answer = ""
    for line in lines:
        reply = orchestrator.execute(line)
        assert reply.outcome in (Outcome.DONE, Outcome.ANSWERED), (line, reply)
        answer = reply.text
    return answer


def test_every_line_is_an_operation_with_its_result(orchestrator: Orchestrator) -> None:
    """A line is recorded with type, input, intent and result, and its work changes refer to that operation."""
    reply = orchestrator.execute("create an epic for billing")
    operation = orchestrator.memory.query_recent_operations(limit=1)[0]
    assert operation.id == reply.operation
    assert operation.type == "nl_command"
    assert isinstance(operation.data, dict)
    assert operation.data["intent"] == "create"
    assert operation.data["user_input"] == "create an epic for billing"
    assert "Epic #1" in str(operation.data["result"])
    assert [event.operation for event in orchestrator.tracker.events(1)] == [operation.id]


def test_a_yes_is_for_what_was_named(orchestrator: Orchestrator) -> None:
    """A "yes" applies to the item or change that the question named, whatever others have done since."""
    _done(orchestrator, "create an epic for billing", "create an epic for search")
    assert "Search" in orchestrator.execute("cancel the last one").text
    other = Orchestrator(orchestrator.memory)
    _done(other, "create an epic for shipping")
    _done(orchestrator, "yes")
    assert [orchestrator.tracker.item(number).status for number in (1, 2, 3)] == [
        WorkStatus.PENDING, WorkStatus.CANCELLED, WorkStatus.PENDING,
    ]  # fmt: skip
    assert "cancel the last one" in orchestrator.execute("undo").text
    _done(other, "rename #3 to Freight")
    _done(orchestrator, "yes")
    assert orchestrator.tracker.item(2).status is WorkStatus.PENDING
    assert orchestrator.tracker.item(3).title == "Freight"


def test_undo_takes_back_the_last_change(orchestrator: Orchestrator) -> None:
    """Undo reverts changes one by one, newest first, until none is left, whatever has been recorded since."""
    _done(orchestrator, "create an epic for billing", "rename it to Invoices", "what did we just do?")
    for number in range(120):
        orchestrator.memory.record_operation("message", {"role": "assistant", "text": f"hello {number}"})
    assert orchestrator.execute("undo").outcome is Outcome.ASKED
    assert "Invoices" in orchestrator.execute("yes").text
    assert orchestrator.tracker.item(1).title == "Billing"
    orchestrator.execute("undo")
    orchestrator.execute("yes")
    assert orchestrator.tracker.item(1).status is WorkStatus.CANCELLED
    assert orchestrator.execute("undo").text == "There is nothing to undo."


@pytest.mark.parametrize(
    ("line", "answers"),
    [("start #1 and assign it to Lea", []), ("start #1, it is blocked by #2", []), ("start #1 and cancel #2", ["yes"])],
)
def test_undo_takes_back_a_whole_line(orchestrator: Orchestrator, line: str, answers: list[str]) -> None:
    """Undo reverts all changes of the last line, also those made after a question; a second one the line before."""
    _done(orchestrator, "create a task: paint signs", "create an epic: Fair")
    before = [(item.status, item.assignee) for item in orchestrator.tracker.items()]
    for each in (line, *answers, "undo", "yes"):
        orchestrator.execute(each)
    assert [(item.status, item.assignee) for item in orchestrator.tracker.items()] == before
    assert orchestrator.execute("undo").text == 'Really undo "create an epic: Fair"? (yes or no)'


@pytest.mark.parametrize("ended", [False, True])
def test_an_old_change_is_undone_only_after_a_yes_to_its_date(
    memory: OrchestratorContextManager, clock: Clock, ended: bool
) -> None:
    """The undo of a change of an earlier session or hour asks first and names the date, even without `confirm`."""
    orchestrator = Orchestrator(memory, clock=clock, confirm=False)
    _done(orchestrator, "create a task: order tyres", "start it", "undo", "what is still open?")
    if ended:
        memory.flush_session()
    else:
        clock.now += timedelta(hours=2)
    asked = orchestrator.execute("undo")
    assert asked.text == 'Really undo "create a task: order tyres" of 2025-01-15? (yes or no)'
    assert orchestrator.tracker.item(1).status is WorkStatus.PENDING
    _done(orchestrator, "yes")
    assert orchestrator.tracker.item(1).status is WorkStatus.CANCELLED


def test_a_new_task_does_not_belong_to_the_story_of_yesterday(orchestrator: Orchestrator, clock: Clock) -> None:
    """A task made right after its story belongs to it, and one made an hour later to none."""
    _done(orchestrator, "create a story: shop window", "create a task: buy light bulbs")
    clock.now += timedelta(hours=2)
    assert _done(orchestrator, "create a task: feed the cat") == 'Created Task #3 "Feed the cat"'
    assert orchestrator.tracker.item(2).parent == 1


@pytest.mark.parametrize(("lines", "answer"), promised("a_new_projects_talk_ends_with_its_answer"))
def test_a_new_projects_talk_ends_with_its_answer(orchestrator: Orchestrator, lines: list[str], answer: str) -> None:
    """Each dialogue that begins without work items ends with its reply, word for word."""
    assert [orchestrator.execute(line) for line in lines][-1].text == answer


@pytest.mark.parametrize(("line", "words"), cases("what_cannot_be_is_said_in_words"))
def test_what_cannot_be_is_said_in_words(orchestrator: Orchestrator, line: str, words: str) -> None:
    """A line that is impossible or not understood is answered with the reason and changes nothing."""
    _done(orchestrator, "create an epic for billing", "add 2 tasks to it: charge, refund", "#2 depends on #3")
    before = [orchestrator.tracker.item(number) for number in (1, 2, 3)]
    reply = orchestrator.execute(line)
    assert reply.outcome in (Outcome.REFUSED, Outcome.NOT_UNDERSTOOD, Outcome.ASKED), reply
    assert words in reply.text
    assert [orchestrator.tracker.item(number) for number in (1, 2, 3)] == before


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=st.text(max_size=80))
def test_any_line_is_answered(orchestrator: Orchestrator, line: str) -> None:
    """Any line gets a reply; it is recorded unless it is blank or ends the conversation."""
    reply = orchestrator.execute(line)
    assert bool(reply.operation) == (bool(line.strip()) and reply.outcome is not Outcome.ENDED)


def test_changes_made_elsewhere_are_told(tmp_path: Path, clock: Clock) -> None:
    """Work changes made without an operation are recorded once, by the next orchestrator, and are no facts."""
    with open_memory(tmp_path, clock=clock) as memory:
        memory.state.set_status(memory.state.create(WorkKind.EPIC, "Billing").id, WorkStatus.CANCELLED)
    for _ in range(2):
        with open_memory(tmp_path, clock=clock) as memory:
            orchestrator = Orchestrator(memory)
            told = [each for each in memory.query_recent_operations() if each.type == "work_change"]
            assert len(told) == 1
            assert "Billing" in str(told[0].data)
            memory.refresh()
            assert memory.facts() == []
            assert orchestrator.tracker.unattributed() == []


# Tasks


def _task(orchestrator: Orchestrator) -> int:
    return orchestrator.tracker.create(WorkKind.TASK, "Write the tests").id


def test_a_task_is_run_until_it_is_good_enough(orchestrator: Orchestrator) -> None:
    """A task is repeated until its quality suffices; each try gets a context and the previous result.

    A line during the task does not record its start, and undo skips the try that changed nothing.
    """
    seen: list[tuple[int, float | None]] = []

    def work(attempt: Attempt) -> TaskResult:
        assert attempt.context.tokens <= attempt.context.budget_tokens
        seen.append((attempt.iteration, attempt.previous.quality if attempt.previous else None))
        orchestrator.execute("what's next?")
        return TaskResult(result=f"draft {attempt.iteration}", quality=0.3 * attempt.iteration)

    task = _task(orchestrator)
    result = orchestrator.execute_task(task, work, max_iterations=5)
    assert seen == [(1, None), (2, 0.3), (3, 0.6)]
    assert (result.decision, result.iteration) == (Decision.PROCEED, 3)
    assert orchestrator.tracker.item(task).status is WorkStatus.DONE
    tries = orchestrator.memory.query_recent_operations("task_execution")
    told = [(each.data["decision"], each.data["status"]) for each in tries if isinstance(each.data, dict)]
    assert told == [("proceed", "completed"), ("retry", "failed"), ("retry", "failed")]
    assert "in progress" not in str(orchestrator.memory.query_recent_operations("work_change"))
    for line in ("undo", "yes") * 2:
        orchestrator.execute(line)
    assert orchestrator.tracker.item(task).status is WorkStatus.PENDING


def test_a_task_that_fails_says_so(orchestrator: Orchestrator) -> None:
    """A task whose work raises is escalated and failed, and "show the last failed task" names the error."""

    def work(attempt: Attempt) -> str:
        raise RuntimeError("the disk is full")

    task = _task(orchestrator)
    result = orchestrator.execute_task(task, work, max_iterations=2)
    assert (result.decision, result.iteration) == (Decision.ESCALATE, 2)
    assert orchestrator.tracker.item(task).status is WorkStatus.FAILED
    assert "disk is full" in _done(orchestrator, "show the last failed task")


def test_a_shell_command_is_work(orchestrator: Orchestrator, tmp_path: Path) -> None:
    """A shell command gets its task's number; its output is the result, its exit code the outcome."""
    task = _task(orchestrator)
    done = orchestrator.execute_task(task, 'echo "did $ORCHESTRA_MEM_TASK_ID"', folder=tmp_path)
    assert (done.result, done.error) == (f"did {task}", "")
    failed = orchestrator.execute_task(_task(orchestrator), "echo no; exit 3")
    assert (failed.result, failed.error) == ("no", "exit code 3")


def test_a_task_that_waits_cannot_be_finished(orchestrator: Orchestrator) -> None:
    """A task that depends on an open one is run and escalated, keeps its result, and is not done."""
    first, second = _task(orchestrator), _task(orchestrator)
    orchestrator.tracker.change(second, depends_on=[first])
    result = orchestrator.execute_task(second, lambda attempt: "made")
    assert result.result == "made"
    assert result.decision is Decision.ESCALATE
    assert orchestrator.tracker.item(second).status is not WorkStatus.DONE


def test_a_task_that_is_done_is_not_run(orchestrator: Orchestrator) -> None:
    """Work for a cancelled task is refused and not called."""
    task = _task(orchestrator)
    orchestrator.tracker.set_status(task, WorkStatus.CANCELLED)
    with pytest.raises(InvalidChangeError):
        orchestrator.execute_task(task, lambda attempt: pytest.fail("it was run"))


# Plugins and threads


def test_plugins_hear_of_everything(orchestrator: Orchestrator) -> None:
    """Plugins are called before and after each execution and on errors, and may replace a line, whichever fails.

    A failing hook is listed in the problems by class and method.
    """
    heard: list[tuple[str, Json]] = []

    class Plugin:
        @hookimpl
        def before_execution(self, kind: str, subject: Json) -> None:
            heard.append((f"before {kind}", subject))

        @hookimpl
        def after_execution(self, kind: str, result: dict[str, Json]) -> None:
            heard.append((f"after {kind}", result.get("outcome", result.get("decision"))))

        @hookimpl
        def on_error(self, kind: str, error: Exception) -> None:
            heard.append((f"error {kind}", str(error)))

        @hookimpl
        def pre_message(self, text: str) -> str | None:
            return "create an epic for billing" if text == "bill!" else None

        @hookimpl
        def post_message(self, text: str, answer: str, agent: str) -> None:
            heard.append((text, f"{agent}: {answer.split()[0]}"))

    class Broken:
        @hookimpl
        def pre_message(self, text: str) -> str:
            raise RuntimeError("no")

    for plugin in (Broken(), Plugin(), Broken()):
        orchestrator.hooks.add(plugin)
    orchestrator.execute("bill!")
    orchestrator.execute_task(_task(orchestrator), "exit 2")
    assert heard == [
        ("before nl_command", "create an epic for billing"), ("after nl_command", "done"),
        ("create an epic for billing", "orchestrator: Created"),
        ("before task_execution", 2), ("error task_execution", "exit code 2"), ("after task_execution", "escalate"),
    ]  # fmt: skip
    name, told = f"{__name__}.{Broken.__qualname__}.pre_message", "failures when called on events: 2; see the log"
    assert orchestrator.memory.get_stats()["problems"] == [{"subject": name, "since": None, "problem": told}]


# With a model


def test_a_model_words_an_answer_once(memory: OrchestratorContextManager) -> None:
    """A model words an answer above the memory's own text, and is called again only if that text has changed."""
    asked: list[str] = []

    def answer(messages: Sequence[Message]) -> str:
        asked.append(messages[-1].text)
        return "Because it is slow on purpose."

    orchestrator = Orchestrator(memory, model=ScriptedModel(answer))
    _done(orchestrator, "we decided to use bcrypt because it is slow on purpose")
    for _ in range(2):
        text = _done(orchestrator, "why did we choose bcrypt?")
        assert text.startswith("Because it is slow on purpose.\n")
        assert "use bcrypt because it is slow on purpose [" in text
    assert len(asked) == 1
    _done(orchestrator, "we decided to use argon2 in place of bcrypt <|im_end|>")
    _done(orchestrator, "why did we choose bcrypt?")
    assert len(asked) == 2
    assert "in place of bcrypt <\\|im_end|> [" in asked[1]


def test_why_is_answered_with_what_was_found_out(orchestrator: Orchestrator) -> None:
    """An insight answers "why" before tasks about the same thing do."""
    insight = "We found out that the brown-out reset comes from the modem's inrush current."
    orchestrator.memory.record_operation("note", {"text": insight})
    for number in range(8):
        done: Json = {"task": f"test the brown-out reset {number}", "result": "the brown-out reset: merged"}
        orchestrator.memory.record_operation("task_execution", done)
    assert _done(orchestrator, "why did the brown-out reset happen?") == f"{insight} [K1, 2025-01-15]"


def test_why_is_answered_with_what_a_person_wrote_below_a_decision(
    orchestrator: Orchestrator, memory: OrchestratorContextManager
) -> None:
    """The note below an entry of the decision log, where people write their reasons, answers "why"."""
    memory.record_operation("decision", {"text": "We print the poster in Bremen."})
    memory.refresh()
    path = memory.episodic_memory.path(DocumentName.DECISION_LOG)
    path.write_text(path.read_text() + "\nBecause the printer there takes old paper.\n\n### We rent the hall.\n")
    told = _done(orchestrator, "why do we print the poster in Bremen?").splitlines()
    assert "Because the printer there takes old paper. [decision_log.md]" in told
    assert not any("We rent the hall" in each or "###" in each for each in told)


def test_a_question_that_is_no_command_is_answered_by_search(
    orchestrator: Orchestrator, memory: OrchestratorContextManager
) -> None:
    """A question in other words is answered with what the memory has about it, but with no earlier question."""
    memory.record_operation("message", {"role": "user", "text": "Priya stands in for me until 30 November."})
    for _ in range(2):
        assert re.fullmatch(
            r"Priya stands in for me until 30 November\. \[(?:K1|op 1), 2025-01-15\]",
            _done(orchestrator, "who stands in for me?"),
        )
    assert orchestrator.execute("who tunes the piano?").outcome is Outcome.NOT_UNDERSTOOD


def test_a_question_that_names_an_item_gets_more_than_its_status(
    orchestrator: Orchestrator, memory: OrchestratorContextManager
) -> None:
    """What the memory has about a question follows the status of the item that it names, but no command about that."""
    memory.record_operation("note", {"text": "We open for bookings on 1 April, as the harbour office asked."})
    _done(orchestrator, "create an epic for berth booking")
    status, told = _done(orchestrator, "when do we open for bookings?").splitlines()
    assert status.startswith('Epic #1 "Berth booking" is pending')
    assert told.startswith("We open for bookings on 1 April")
    assert len(_done(orchestrator, "does the berth booking need a deposit?").splitlines()) == 1


def test_the_weightiest_rules_are_told_first(orchestrator: Orchestrator) -> None:
    """Of many rules those of people come first, then the newest; the last line counts the rest."""
    orchestrator.memory.record_operation("message", {"role": "user", "text": "Never deploy on a Friday."})
    for number in range(12):
        result = f"Never restart node{number} before node{number + 1}."
        orchestrator.memory.record_operation("task_execution", {"task": "restart", "result": result})
    rules = _done(orchestrator, "what are the rules?").splitlines()
    assert rules[0] == "Never deploy on a Friday. [K1, 2025-01-15]"
    assert rules[1].startswith("Never restart node11 ")
    assert rules[10:] == ["… and 3 more: `orchestra-mem facts --kind 'constraint' --limit 0`"]


def test_next_looks_beyond_what_has_work_below_it(orchestrator: Orchestrator) -> None:
    """The answer to "what's next?" names a story even if more than 20 epics come before it."""
    for _ in range(21):
        epic = orchestrator.tracker.create(WorkKind.EPIC, "Shop", priority=1).id
        orchestrator.tracker.create(WorkKind.STORY, "Cart", parent=epic)
    assert _done(orchestrator, "what's next?").startswith('Next: Story #2 "Cart"\n')


def test_what_failed_says_which_failures_were_solved(
    orchestrator: Orchestrator, memory: OrchestratorContextManager
) -> None:
    """Of the failures that "what failed?" lists, each once and dated, those that a later operation solved say so."""
    for task in ("load the orders", "send the bills"):
        memory.record_operation("task_execution", {"task": task, "status": "failed", "error": f"cannot {task}"})
    memory.record_operation("task_execution", {"task": "load the orders", "status": "completed"})
    assert orchestrator.execute("what failed?").text.splitlines() == [
        'Task execution "load the orders": cannot load the orders [op 1, 2025-01-15, solved since]',
        'Task execution "send the bills": cannot send the bills [op 2, 2025-01-15]',
    ]
    memory.record_operation("task_execution", {"task": "test", "status": "failed", "output": "FAILED test_tax"})
    assert "FAILED test_tax [K" in orchestrator.execute("what failed?").text


def test_what_was_decided_then_is_told_though_it_was_reversed_since(
    orchestrator: Orchestrator, memory: OrchestratorContextManager, clock: Clock
) -> None:
    """The decisions of a period are all that were made in it; without a period, only those that still stand."""
    for month, text in ((10, "We decided to use Postgres."), (11, "We decided to use MySQL instead of Postgres.")):
        clock.now = datetime(2025, month, 10, tzinfo=UTC)
        memory.record_operation("decision", {"text": text})
    told = "We decided to use Postgres. [K1, 2025-10-10, superseded by K2]"
    assert _done(orchestrator, "what did we decide in October?") == told
    assert "use Postgres." not in _done(orchestrator, "what did we decide?")


def test_what_was_decided_about_a_thing_in_a_period_is_of_both(
    orchestrator: Orchestrator, memory: OrchestratorContextManager, clock: Clock
) -> None:
    """Decisions about the thing from that time are listed, else those from other times as such, and no others."""
    texts = "We decided to print the poster in Bremen.", "We decided to rent the hall on 20 March for the concert."
    for months, text in enumerate(texts):
        clock.now = datetime(2025, 11 + months, 10, tzinfo=UTC)
        memory.record_operation("decision", {"text": text})
    poster, hall = (f"Decision: {text} [K{n}, 2025-1{n}-10]" for n, text in enumerate(texts, 1))
    clock.now = datetime(2026, 4, 1, tzinfo=UTC)
    other = "No decision or rule about that is recorded for that time; for others:"
    assert _done(orchestrator, "what did we decide about the poster in November?") == poster
    assert _done(orchestrator, "what did we decide about the poster in December?") == f"{other}\n{poster}"
    assert _done(orchestrator, "what did we decide about the hall in March?") == f"{other}\n{hall}"
    assert _done(orchestrator, "what did we decide about the poster before December?") == poster
    assert _done(orchestrator, "what did we decide about the poster after November?") == f"{other}\n{poster}"
    bounds = {
        "before 10 December": [1],
        "until 10 December": [1, 2],
        "by November": [1],
        "since December": [2],
        "after November": [2],
    }
    for when, numbers in bounds.items():
        listed = [f"{texts[n - 1]} [K{n}, 2025-1{n}-10]" for n in numbers]
        assert _done(orchestrator, f"what did we decide {when}?").splitlines() == listed, when
    assert _done(orchestrator, "what did we decide about the cafeteria in December?") == f"{other.split(' for ')[0]}."
    _done(orchestrator, "create a task called sew the flags", "start 1")
    assert "in progress" in _done(orchestrator, "what happened with #1 today?")  # no question for decisions


def test_of_a_busy_period_is_told_what_it_left(orchestrator: Orchestrator, memory: OrchestratorContextManager) -> None:
    """Of many operations those that left facts or changed work are told, else the newest; the rest is counted."""
    for number in range(30):
        memory.record_operation("tool_use", {"tool": "shell", "input": f"make part{number}", "exit_code": 0})
    told = _done(orchestrator, "what happened today?").splitlines()
    assert told[0] == 'Tool use "make part20" [op 21, 2025-01-15]'
    assert told[10:] == ["… and 20 more: `orchestra-mem ops --limit 0`"]
    memory.record_operation("decision", {"text": "We print the poster in Bremen."})
    _done(orchestrator, "create a task called sew the flags")
    assert _done(orchestrator, "what happened today?").splitlines() == [
        'Task #1 "Sew the flags" was created',
        "Decision: We print the poster in Bremen. [op 32, 2025-01-15]",
        "… and 30 more: `orchestra-mem ops --limit 0`",
    ]


def test_a_decision_that_holds_no_longer_says_so(
    orchestrator: Orchestrator, memory: OrchestratorContextManager, clock: Clock
) -> None:
    """If nothing decided in a period holds, the decisions of that time are listed as ended; doubts are told, too."""
    memory.record_operation("decision", {"text": "We decided to print the poster in Bremen."})
    memory.refresh()
    path = memory.episodic_memory.path(DocumentName.DECISION_LOG)
    path.write_text("".join(row for row in path.read_text().splitlines(keepends=True) if "poster" not in row))
    source = "[op 1, 2025-01-15, superseded or removed since]"
    answer = _done(orchestrator, "what did we decide today?")
    assert answer == f"Decision: We decided to print the poster in Bremen. {source}"
    path.write_text(path.read_text() + "### We bake rye bread on Tuesdays.\n")
    memory.refresh()
    memory.record_operation("decision", {"text": "We no longer bake rye bread on Tuesdays."})
    assert ", perhaps superseded by K3]" in _done(orchestrator, "what did we decide today?").splitlines()[0]

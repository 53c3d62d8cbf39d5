"""Commands in other languages than English: plain forms are carried out, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from benchmarks.intents import LANGUAGES, Verdict, judge, load_records
from orchestra_mem import Orchestrator, OrchestratorContextManager, open_memory
from orchestra_mem.orchestrator.intents import Action
from orchestra_mem.orchestrator.intents.languages import languages, parse_foreign
from orchestra_mem.orchestrator.intents.reading import read_line
from tests.builders import cases
from tests.conftest import Clock

FACTS = (
    "we decided to use Postgres", "note: never deploy on Fridays", "note: the build failed with exit code 2",
    "note: we still need to rotate the keys",
)  # fmt: skip


@pytest.fixture
def shell(memory: OrchestratorContextManager, clock: Clock) -> Orchestrator:
    """Return a shell with an epic, three tasks, and a fact of each kind."""
    orchestrator = Orchestrator(memory, clock=clock)
    for line in ('create an epic "Ofen"', "add 3 tasks to it: Datenbank einrichten, Tests schreiben, 写文档", *FACTS):
        orchestrator.execute(line)
    return orchestrator


@pytest.mark.parametrize(("line", "answer"), cases("shell_in_other_languages"))
def test_a_plain_command_is_carried_out(shell: Orchestrator, line: str, answer: str) -> None:
    """A plain command or question is carried out at once, its texts as typed; no other is guessed at as in English."""
    assert answer in shell.execute(line).text


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestrator]:
    """A shell with a decision and a failure of last month, last week, this week, yesterday and today."""
    clock = Clock()
    present = clock.now
    with open_memory(tmp_path_factory.mktemp("weeks"), clock=clock) as memory:
        made = Orchestrator(memory, clock=clock)
        for days in (36, 7, 2, 1, 0):
            clock.now = present - timedelta(days=days)
            made.execute(f"we decided to use number {days}")
            made.execute(f"note: the build failed with exit code {days}")
        yield made


@pytest.mark.parametrize(("english", "line"), cases("a_period_is_the_same_in_every_language"))
def test_a_period_is_the_same_in_every_language(weeks: Orchestrator, english: str, line: str) -> None:
    """A question about a period is answered as in English: with what was done, decided or failed then."""
    answer = weeks.execute(english).text
    assert "number" in answer or "build" in answer
    assert weeks.execute(line).text == answer


def test_what_was_decided_on_a_day_is_no_search_for_the_day(memory: OrchestratorContextManager, clock: Clock) -> None:
    """A question for the decisions of a weekday is answered from that day, not with decisions that name it."""
    shell = Orchestrator(memory, clock=clock)
    present = clock.now  # a Wednesday
    for days, what in ((5, "the blue tent"), (4, "a party on Friday"), (0, "the red car")):
        clock.now = present - timedelta(days=days)
        shell.execute(f"we decided to have {what}")
    answer = shell.execute("what did we decide on Friday?").text
    assert "the blue tent" in answer
    assert "party" not in answer
    assert shell.execute("what did we decide last Friday?").text == answer
    assert "party" in shell.execute("what did we decide since Saturday?").text


def test_a_question_about_another_time_is_not_answered_with_all_times(shell: Orchestrator) -> None:
    """A question about a time that the forms lack is not understood."""
    for line in (
        "was haben wir vor Ostern gemacht?",
        "¿qué hicimos antes de Pascua?",
        "qu'avons-nous fait avant Pâques",
    ):
        assert "I did not understand that." in shell.execute(line).text


@pytest.mark.parametrize(
    "line",
    ["Schließ Aufgabe 3 bitte nicht ab", "Quand la tâche 3 sera finie, on commencera la 2", "Задача 3 ещё не готова"],
)
def test_a_line_about_an_item_that_is_not_understood_states_no_fact(shell: Orchestrator, line: str) -> None:
    """What is said of an item and not understood leaves no rule, failure or open item in the memory unasked."""
    before = shell.memory.facts()
    shell.execute(line)
    assert shell.memory.facts() == before


def test_a_foreign_rule_with_an_items_number_is_offered_as_a_note(shell: Orchestrator) -> None:
    """A number that an item happens to have takes no rule away: the shell asks whether to note it."""
    rule = "Wir dürfen nie mehr als 3 Verbindungen öffnen."
    assert shell.execute(rule).text == f"Did you mean: note: {rule}? (yes/no)"
    shell.execute("ja")
    assert rule in [fact.text for fact in shell.memory.facts()]


@pytest.mark.parametrize(
    ("yes", "no"), [("ja", "nein"), ("Sí.", "no"), ("oui", "non"), ("да", "нет"), ("是的", "不要")]
)
def test_questions_are_answered_in_the_language_of_the_command(shell: Orchestrator, yes: str, no: str) -> None:
    """What has to be confirmed can be confirmed, and refused, in each of the languages."""
    for answer, status in ((no, "pending"), (yes, "cancelled")):
        assert "Really cancel" in shell.execute("storniere Aufgabe 3").text
        shell.execute(answer)
        assert status in shell.execute("status of 3").text


@pytest.fixture(scope="module")
def verdicts() -> dict[str, list[Verdict]]:
    """Verdicts on the lines of each split."""
    return {
        split: [judge(record, read_line(record["line"])) for record in load_records(split, LANGUAGES)]
        for split in ("train", "test")
    }


@pytest.mark.parametrize("split", ["train", "test"])
def test_nothing_unasked_is_done(verdicts: dict[str, list[Verdict]], split: str) -> None:
    """Negations, conditions, questions and hearsay change nothing, and what is done is what the writer asked for."""
    found = verdicts[split]
    assert len(found) > 400
    assert [each.record["line"] for each in found if each.unasked or each.destructive] == []
    assert sum(each.wrong for each in found) <= 0.01 * len(found)


@pytest.mark.parametrize("language", ["de", "es", "fr", "zh", "ru"])
def test_the_plain_commands_of_a_language_are_read(verdicts: dict[str, list[Verdict]], language: str) -> None:
    """Nine of ten plain commands of the train split, for which the forms were written, are carried out correctly."""
    found = [each for each in verdicts["train"] if each.record["language"] == language]
    plain = [each for each in found if "plain" in each.record["traits"]]
    assert len(plain) >= 50
    assert sum(each.read.understood and each.right for each in plain) >= 0.9 * len(plain)


def test_every_language_has_forms_for_every_action() -> None:
    """Each language has at least one valid form for each of the actions, and reads its own numbers of items."""
    assert len(languages()) == 5
    for language in languages():
        assert {action for action, _, _ in language._forms} == {*Action}


def test_a_line_that_two_languages_read_differently_is_not_carried_out() -> None:
    """A line in two languages at once, or with one word that no form has, is not understood."""
    for line in ("cierra 12 und starte 13", "Aufgabe 3 ist fast erledigt", "完成任务3的一半", "закрой 3, если готово"):
        assert parse_foreign(line) == ()

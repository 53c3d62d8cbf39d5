"""Hand edits: what a person changes in a document holds in every document, permanently."""

from __future__ import annotations

import random
import re
import shutil
import textwrap
import unicodedata
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem import open_memory
from orchestra_mem.core.documents.conflicts import find_conflicts
from orchestra_mem.core.documents.document_merge import apply_stale_edit
from orchestra_mem.core.documents.owned_lines import free_rows
from orchestra_mem.core.documents.signature import written_at
from orchestra_mem.types import Author, DocumentName, MustKeepKind, MustKeepStatus
from orchestra_mem.work_types import WorkItem, WorkKind, WorkStatus
from tests.builders import cases, promised
from tests.conftest import Clock
from tests.memories import killing, machine_writes, problems_of, text_of
from tests.tiers.conftest import Desk, retyped
from tests.timing import until

# With so small a working memory a refresh extracts facts from nearly all recorded operations.
CONFIG = {"orchestrator": {"context_window": {"max_tokens": 32_000}, "working_memory": {"max_operations": 2}}}
STATE, PLAN, LOG = DocumentName.PROJECT_STATE, DocumentName.WORK_PLAN, DocumentName.DECISION_LOG

# The rule, the open item, and the machine's lines for them.
RULE, TODO = "Never deploy on a Friday.", "TODO: write the migration guide."
RULE_LINE, TODO_LINE = f"- {RULE} (K2)\n", f"- {TODO} (K3)\n"
DECISION, CONSTRAINT, OPEN_ITEM = MustKeepKind.DECISION, MustKeepKind.CONSTRAINT, MustKeepKind.OPEN_ITEM
BACKLOG, DECISIONS = "## Backlog\n", "## Decisions\n\n"


@pytest.fixture
def desk(empty: Desk) -> Desk:
    """A memory with a decision, a rule and an open item in its documents."""
    empty.go_on("We decided to store sessions in Postgres.", RULE, TODO)
    return empty


def add_rule(desk: Desk) -> str:
    """Add a rule by hand and let the machine read it; return its text."""
    desk.state.edit((RULE_LINE, f"{RULE_LINE}- Never merge without a review.\n"))
    desk.go_on()
    return "Never merge without a review."


@pytest.mark.parametrize("refreshed", [True, False])
def test_words_that_a_person_removed_or_reworded_come_back_with_no_operation(desk: Desk, refreshed: bool) -> None:
    """Words that a person took out stay out, however often agents record them, until the person puts them back."""
    desk.go_on("We decided to log in JSON.", "We decided to log in JSON.")
    opened = desk.log.text
    head, *_, last = opened.split("### [")
    desk.log.save(f"{head}### [{last.replace('JSON', 'XML')}")
    desk.plan.edit((TODO_LINE, ""))
    said = "We decided to store sessions in Postgres.", TODO, "We decided to log in JSON."
    for _ in range(2):
        for text in said:
            desk.memory.record_operation("note", {"text": text}, agent="coder")
        if refreshed:
            desk.go_on()
    desk.go_on()
    assert [*desk.says(DECISION), *desk.says(OPEN_ITEM)] == ["We decided to log in XML."]
    assert not any(text.rstrip(".") in page.text for text in said for page in (desk.log, desk.plan))
    desk.log.save(opened)
    desk.plan.edit((BACKLOG, f"{BACKLOG}\n{TODO_LINE}"))
    desk.go_on()
    assert {*desk.says(DECISION), *desk.says(OPEN_ITEM)} == {*said}
    desk.log.has_once("sessions in Postgres", "log in JSON")


_LABELS = (
    "Rule: ",
    "Policy: ",
    "Regel: ",
    "Vorschrift: ",
    "Beschluss: ",
    "Regla: ",
    "Règle : ",
    "Правило: ",
    "规则：",
    "决定：",
)
_RESTED = (
    "crates must rest 24 hours", "Crates must rest 24 hours!", "Crates must rest ２４ hours。",
    *(f"{label}Crates must rest 24 hours！" for label in _LABELS),
)  # fmt: skip


@pytest.mark.parametrize("said", _RESTED)
def test_a_stop_a_capital_or_a_label_makes_no_other_words(empty: Desk, said: str) -> None:
    """What differs only in case, white space, final stop, label or width of signs is a repetition, even of an edit."""

    def record(text: str) -> list[str]:
        empty.memory.record_operation("rules", {"rules": [text]}, agent="coder")
        empty.go_on()
        return empty.says(CONSTRAINT)

    record("Crates must rest 24 hours.")
    assert record(said) == [said]
    empty.state.edit((f"- {said} (K2)", "- Crates must rest 36 hours. (K2)"))
    assert record("Crates must rest 24 hours.") == ["Crates must rest 36 hours."]
    assert record("crates must rest 36 hours") == ["Crates must rest 36 hours."]
    empty.state.edit(("- Crates must rest 36 hours. (K2)\n", ""))
    assert record("Crates must rest 24 hours.") == record("crates must rest 36 hours") == []


def test_every_wording_that_a_person_replaced_stays_away(desk: Desk) -> None:
    """A fact that a person reworded several times comes back in none of its former words, a person's own neither."""
    desk.state.edit((RULE_LINE, f"{RULE_LINE}- Gloves must be worn on Fridays.\n"))
    days = "Friday", "Monday", "Tuesday", "Wednesday"
    for old, new in pairwise(days):
        desk.go_on()
        desk.state.edit((f"a {old}.", f"a {new}."), (f"on {old}s.", f"on {new}s."))
    desk.go_on()
    for day in days:
        said = [f"Never deploy on a {day}.", f"Gloves must be worn on {day}s."]
        desk.memory.record_operation("rules", {"rules": said})
    desk.go_on()
    assert desk.says(CONSTRAINT) == ["Never deploy on a Wednesday.", "Gloves must be worn on Wednesdays."]


def test_who_rewords_a_decision_rewords_the_rule_and_the_insight_in_the_same_words(desk: Desk) -> None:
    """A decision that is a rule or an insight too is reworded once: its old words stand in no document"""
    desk.memory.record_operation("decision", {"text": "The price at release is 14.99 euros."})
    desk.memory.record_operation("decision", {"text": "Grades are 60 percent essay and 40 percent talk."})
    desk.go_on()
    assert "The price at release is 14.99 euros." in desk.says(CONSTRAINT)
    desk.log.edit(("14.99", "12.99"), ("60 percent essay and 40 percent talk", "given for the essay alone"))
    desk.go_on()
    stands = " ".join(fact.text for fact in desk.memory.facts())
    pages = "".join(page.text for page in (desk.state, desk.plan, desk.log))
    assert not [each for each in ("14.99", "40 percent talk") if each in stands or each in pages]
    desk.log.has_once("12.99", "the essay alone")
    assert "The price at release is 12.99 euros." in desk.says(CONSTRAINT)
    desk.state.has_once("12.99")
    desk.log.edit(("12.99", "14.99"))
    desk.go_on()
    assert "The price at release is 14.99 euros." in desk.says(CONSTRAINT)


def test_a_rule_that_a_person_removed_and_says_again_stands(desk: Desk) -> None:
    """What an agent repeats stays out; what a person says again in a message is a rule again."""
    desk.state.edit((RULE_LINE, ""))
    desk.go_on()
    desk.memory.record_operation("note", {"text": RULE}, agent="coder")
    desk.go_on()
    assert desk.says(CONSTRAINT) == []
    desk.memory.record_operation("message", {"role": "user", "text": RULE})
    desk.go_on()
    assert desk.says(CONSTRAINT) == [RULE]


@pytest.mark.parametrize(
    ("edits", "stands"),
    [
        ([(RULE_LINE, ""), (TODO_LINE, "")], []),
        ([(RULE_LINE, f"- ~~{RULE}~~ (K2)\n"), (TODO_LINE, TODO_LINE.replace("- ", "- [x] ", 1))], []),
        ([("Friday", "Sunday"), ("guide", "notes")], ["Never deploy on a Sunday.", "TODO: write the migration notes."]),
    ],
    ids=["deleted", "struck out, ticked", "reworded"],
)
def test_what_an_agent_repeated_before_a_person_edited_the_line_stays_as_the_person_left_it(
    desk: Desk, edits: list[tuple[str, str]], stands: list[str]
) -> None:
    """A line stands for the same words that agents recorded since the document was written: an edit counts for all."""
    for text in (RULE, TODO, RULE):
        desk.memory.record_operation("note", {"text": text}, agent="builder")
        assert text in [fact.text for fact in desk.memory.facts()]  # extracts facts, writes no document
    desk.state.edit(edits[0])
    desk.plan.edit(edits[1])
    desk.memory.flush_session()
    assert [*desk.says(CONSTRAINT), *desk.says(OPEN_ITEM)] == stands
    rows = f"{desk.state.text}{desk.plan.text}".splitlines()
    assert [row for row in rows if row.startswith((f"- {RULE}", f"- {TODO}"))] == []


def test_an_answer_that_cites_a_fact_is_no_line_of_the_fact(desk: Desk) -> None:
    """An operation listed as active work may end with a fact's number: it is no fault, and the fact can be deleted."""
    desk.memory.record_operation("agent_message", {"role": "assistant", "text": "Not today, it is Friday. (K2)"})
    desk.memory.refresh()
    assert desk.state.text.count("(K2)\n") == 2
    assert "K2" not in desk.problems()
    desk.state.edit((RULE_LINE, ""))
    desk.memory.refresh()
    assert desk.says(CONSTRAINT) == []


def test_a_tick_closes_what_is_unfinished_and_nothing_else(desk: Desk) -> None:
    """A ticked open item is done, not removed, until the tick goes; its line may go, too. A ticked rule stands."""

    def told() -> list[tuple[str, str]]:
        return [(each.status.value, each.author.value) for each in desk.memory.facts(standing=False)[1:3]]

    desk.plan.edit((TODO_LINE, TODO_LINE.replace("- ", "- [x] ")))
    desk.state.edit((RULE_LINE, RULE_LINE.replace("- ", "- [x] ")))
    desk.go_on(times=2)
    assert told() == [("standing", "machine"), ("done", "person")]
    desk.plan.has_once(f"- [x] {TODO} (K3)")
    desk.state.has_once(f"- [x] {RULE} (K2)")
    desk.plan.edit(("- [x] TODO", "- [ ] TODO"))
    assert told() == [("standing", "machine"), ("standing", "person")]
    desk.plan.edit(("- [ ] TODO: write the", "- [x] TODO: print the"))
    desk.go_on()
    desk.plan.edit(("- [x] TODO: print the migration guide. (K3)\n", ""))
    desk.go_on()
    assert told()[1] == ("done", "person")
    assert "migration guide" not in desk.plan.text


def test_a_line_of_a_persons_that_an_operation_completes_is_struck_out(empty: Desk) -> None:
    """A person's open item, and one that they gave a box, are struck out when done, whatever else is written then."""
    empty.memory.record_operation("note", {"next_steps": ["order display cases"]})
    empty.go_on()
    row = "- order display cases (K1)\n"
    empty.plan.edit((row, f"- [ ] {row[2:]}- Send the offer to Tomas\n"))
    for task in ("order display cases", "Send the offer to Tomas"):
        empty.memory.record_operation("task_execution", {"task": task, "status": "completed"})
        empty.go_on()
    empty.plan.has_once("- [ ] ~~order display cases~~ (K1)\n- ~~Send the offer to Tomas~~ (K2)\n")
    assert empty.says(OPEN_ITEM) == []
    written = empty.plan.text
    empty.memory.refresh()
    assert empty.plan.text == written


def test_an_item_that_was_ticked_and_is_open_again_is_in_the_context(empty: Desk) -> None:
    """A ticked line does not stand for an open item in the same words."""
    for _ in range(2):
        empty.memory.record_operation("note", {"next_steps": ["ask the insurer", "call Ida"]})
        empty.memory.refresh()
        empty.plan.save(empty.plan.text.replace("- ask the insurer (K1)", "- [x] ask the insurer (K1)"))
    rows = empty.memory.get_orchestrator_context("step").render().splitlines()
    assert [row for row in rows if row.endswith((" (K1)", " (K3)"))] == [
        "- [x] ask the insurer (K1)", "- ask the insurer (K3)",
    ]  # fmt: skip


def test_what_is_saved_by_a_program_that_keeps_the_file_open_counts_once_it_is_closed(desk: Desk) -> None:
    """A save counts once its file is closed, though closing changes neither size nor time."""
    with desk.log.path.open("a", encoding="utf-8") as file:
        file.write("\n\n### Use bcrypt for passwords\n")
        file.flush()
        assert "Use bcrypt for passwords" not in desk.says(DECISION)
    desk.memory.documents.unread()  # like a page that shows unread documents
    until(lambda: "Use bcrypt for passwords" in desk.says(DECISION))


@pytest.mark.parametrize(
    "written",
    [
        "### Use bcrypt for passwords\n\nBecause it is slow.\n",
        "- Use bcrypt for passwords\n",
        "- Use bcrypt for passwords <!-- pin -->\n",
    ],
)
def test_a_decision_that_is_added_is_one_like_any_other(desk: Desk, written: str) -> None:
    """A person's decision is listed immediately, gets a number in the log exactly once, and can be expanded."""
    if written.startswith("-"):
        desk.log.edit((DECISIONS, f"{DECISIONS}{written}\n"))
    else:
        desk.log.save(desk.log.text.rstrip("\n") + f"\n\n{written}")
    (own,) = [fact for fact in desk.memory.facts(DECISION) if fact.author is Author.PERSON]
    assert (own.text, own.operation, own.weight) == ("Use bcrypt for passwords", 0, 3.0)
    for number in range(2):
        desk.go_on(f"We decided to rename topic {number}.")
    pin = " <!-- pin -->" * ("pin" in written)
    desk.log.has_once("Use bcrypt for passwords", f"Use bcrypt for passwords (K{own.id}){pin}\n")
    assert len([fact for fact in desk.memory.facts() if fact.author is Author.PERSON]) == 1
    expansion = desk.memory.expand(f"K{own.id}")
    assert (expansion.operations, expansion.fact) == ((), own)


@pytest.mark.parametrize("with_later", [True, False])
def test_a_decision_whose_mark_a_person_deletes_stands(empty: Desk, with_later: bool) -> None:
    """Without its mark a superseded decision stands, in the log and in the facts, whether the later one goes or not."""
    old, new = (
        "We show the tapestries in the east wing.",
        "We show the tapestries in the north hall, not the east wing.",
    )
    empty.memory.record_operation("decision", {"text": old})
    empty.go_on(new)
    assert empty.says(DECISION) == [new]
    rows = empty.log.text.splitlines(keepends=True)
    gone = ["Superseded by", *(["north hall"] if with_later else [])]
    empty.log.save("".join(row for row in rows if not any(each in row for each in gone)))
    for _ in range(2):
        empty.go_on()
        assert empty.says(DECISION) == [old, *([] if with_later else [new])]
    assert "Superseded" not in empty.log.text


def test_no_operation_ends_a_decision_in_a_persons_words(desk: Desk) -> None:
    """A contradiction only marks a person's decision; a completion, but no rule, closes a person's open item."""
    desk.log.edit((DECISIONS, f"{DECISIONS}- We decided to use MySQL for the event log.\n\n"))
    flour = "Order flour for the bakery"
    desk.plan.edit((BACKLOG, f"{BACKLOG}\n- Write the changelog of release 4\n- {flour}\n"))
    desk.go_on()
    remark = "We decided to use SQLite for the event log instead of MySQL."
    desk.memory.record_operation("note", {"text": remark}, critical=True)
    desk.memory.record_operation("note", {"text": "Done: wrote the changelog of release 4."}, critical=True)
    desk.memory.record_operation("note", {"text": "Never order flour from Miller for the bakery."}, critical=True)
    facts = desk.memory.facts(standing=False)
    newer = next(fact for fact in facts if fact.text == remark)
    own = [(fact.text, fact.status, fact.superseded_by) for fact in facts if fact.author is Author.PERSON]
    assert sorted(own) == [
        (flour, MustKeepStatus.STANDING, newer.id + 2),
        ("We decided to use MySQL for the event log.", MustKeepStatus.STANDING, newer.id),
        ("Write the changelog of release 4", MustKeepStatus.DONE, 0),
    ]


@pytest.mark.parametrize("back_s", [0, 86_400])
def test_a_clock_that_does_not_go_on_tells_an_old_text_all_the_same(desk: Desk, back_s: int) -> None:
    """An old text is recognised though the clock stood still or was put back: later facts stay."""
    opened = [desk.log.text]
    for way in ("We decided to log in JSON.", "We decided to drop the cron job."):
        desk.clock.now -= timedelta(seconds=back_s)
        desk.memory.record_operation("message", {"role": "user", "text": way})
        for said in ("Tea was had.", "It rained."):
            desk.memory.record_operation("message", {"role": "user", "text": said})
        desk.memory.refresh()
        opened.append(desk.log.text)
    times = [written_at(text) for text in opened]
    assert times == sorted(set(times))
    desk.log.save(opened[0] + "\n## Tea\n\nAt noon.\n")
    assert len(desk.says(DECISION)) == 3
    desk.memory.refresh()
    desk.log.has_once("sessions in Postgres", "log in JSON", "drop the cron job", "At noon.")


@pytest.mark.parametrize("way", ["edited", "deleted", "emptied", "a day later"])
def test_lines_that_come_back_to_a_text_without_front_matter_are_told_until_it_is_changed(desk: Desk, way: str) -> None:
    """A text without front matter deletes nothing; the problems say so until it is saved again or a day has passed."""
    desk.state.save("Nothing.\n")
    desk.go_on()
    desk.state.has_once(RULE_LINE, "Nothing.\n")
    assert "saved without front matter, so lines of the machine are back (1)" in desk.problems()
    if way == "edited":
        desk.state.edit((RULE_LINE, ""))
    elif way == "deleted":
        desk.state.path.unlink()
    elif way == "emptied":
        desk.state.save("")
    else:
        desk.clock.now += timedelta(days=1)
    desk.go_on()
    assert "front matter" not in desk.problems()
    assert desk.says(CONSTRAINT) == [RULE] * (way != "edited")


@pytest.mark.parametrize("is_missing", [True, False])
def test_lines_of_people_that_went_with_their_document_are_told(desk: Desk, *, is_missing: bool) -> None:
    """The problems say how many lines of people a deleted or emptied document has lost, until they are back."""
    desk.state.edit(
        ("## Rules\n\n", "## Rules\n\n- Never paint it green.\n"), ("## Blockers\n", "Ask Joan.\n\n## Blockers\n")
    )
    desk.go_on()
    for paper in (desk.state, desk.log):
        paper.path.unlink() if is_missing else paper.save("")
    desk.go_on()
    (told,) = [problem["problem"] for problem in problems_of(desk.memory)]
    was = "missing" if is_missing else "empty"
    assert told == (
        f"{desk.state.path} was {was} and was written anew, without 1 of people's lines; `orchestra-mem history "
        "project_state` lists its earlier texts, and `restore` brings one back"
    )
    desk.state.has_once("## Rules\n\n- Never paint it green. (K4)\n")  # a fact that stands is in its document
    assert desk.says(CONSTRAINT) == [RULE, "Never paint it green."]
    desk.state.restore(desk.state.first_version("Ask Joan"))
    desk.go_on()
    desk.state.has_once("- Never paint it green. (K4)", "Ask Joan.")
    assert "written anew" not in desk.problems()


@pytest.mark.parametrize("again", [True, False])
def test_a_save_that_is_undone_before_the_machine_writes_is_in_a_version_and_told(desk: Desk, again: bool) -> None:
    """If a person's own text is put back, a version has what they had saved over it, also in another process."""
    desk.plan.save(f"{desk.plan.text}\n## Keys\n\nAsk Turid.\n")
    assert desk.problems() == "[]"
    before = desk.plan.text
    desk.plan.edit(("Ask Turid.", "Ask Turid. The safe: ask Odd."))
    with desk.once_more() as other:
        other.memory.facts() if again else desk.memory.facts()
    desk.plan.save(before)
    assert "was put back to an earlier text, without 1 of people's lines" in desk.problems()
    assert any("ask Odd." in text for _, text in desk.plan.versions())
    desk.go_on()
    desk.plan.has_once("Ask Turid.\n")
    desk.plan.edit(("Ask Turid.", "Ask Grace."))  # a deletion of one's own is no undo
    assert desk.problems() == "[]"


def test_a_persons_rewording_that_an_old_tab_reverts_is_told(desk: Desk) -> None:
    """A line of the machine's that a person has reworded is a line of theirs, if an old text takes the words away."""
    tab = desk.state.text
    desk.state.edit(("on a Friday.", "on a Sunday."))
    desk.go_on("Never push at night.")
    desk.state.save(tab)
    assert "without 1 of people's lines" in desk.problems()
    desk.go_on()
    desk.state.has_once("Never push at night.")


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        ("; ask Ida", "Friday.; ask Ida"),
        (", says Bergen", "Friday., says Bergen"),
        (": so it is", "Friday.: so it is"),
        ("!", "Friday.!"),
        (".", "Friday."),
    ],
)
def test_what_is_typed_behind_a_number_is_kept_to_the_last_character(desk: Desk, behind: str, said: str) -> None:
    """The number goes behind the words, and no punctuation is lost but a full stop after one."""
    desk.state.edit(("(K2)", f"(K2){behind}"))
    desk.go_on()
    desk.state.has_once(f"- Never deploy on a {said} (K2)\n")


def test_a_line_that_is_struck_out_ends_whatever_stop_is_behind_its_number(desk: Desk) -> None:
    """A full stop behind the number of a line that a person strikes out does not undo the striking."""
    desk.state.edit((f"{RULE} (K2)", f"~~{RULE}~~ (K2)."))
    desk.go_on()
    assert desk.says(CONSTRAINT) == []


def test_an_item_that_is_unticked_again_takes_no_words_of_people_away(desk: Desk) -> None:
    """Taking back one's own tick, by putting the text back, is no loss to tell of."""
    desk.go_on("TODO: call Ida.")
    opened = desk.plan.text
    desk.plan.edit(("- TODO: call Ida.", "- [x] TODO: call Ida."))
    desk.memory.facts()
    desk.plan.save(opened)
    assert desk.problems() == "[]"


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_rewording_that_a_person_takes_back_takes_no_words_of_people_away(desk: Desk, by_hand: bool) -> None:
    """Putting back the words that one has just reworded is a choice of one's own, and a version has the others."""
    said = add_rule(desk) if by_hand else RULE
    opened = desk.state.text
    for _ in range(2):
        desk.state.edit((said, "Never work in May."))
        assert "Never work in May." in desk.says(CONSTRAINT)
        desk.state.save(opened)
        assert said in desk.says(CONSTRAINT)
        assert desk.problems() == "[]"
    assert any("Never work in May." in text for _, text in desk.state.versions())
    desk.go_on()
    desk.state.has_once(said)
    assert desk.problems() == "[]"


def test_a_rewording_that_a_tab_takes_back_again_and_again_is_told(desk: Desk) -> None:
    """An old text that is saved twice takes back, the second time, what somebody has reworded in between."""
    tab = f"{desk.state.text}\nAsk Joan.\n"
    desk.go_on("Never push at night.")
    desk.state.save(tab)
    desk.memory.facts()
    desk.state.edit(("on a Friday.", "on a Sunday."))
    assert desk.says(CONSTRAINT)[0] == "Never deploy on a Sunday."
    assert desk.problems() == "[]"
    desk.state.save(tab)
    assert "without 1 of people's lines" in desk.problems()


@pytest.mark.parametrize("form", ["- {}\n", "### {}\n\n", "Ida said: {}\n\n"])
def test_a_line_that_a_person_moves_to_another_document_stands_there_alone(desk: Desk, form: str) -> None:
    """A rule that is cut from the state and pasted into the log is one fact, listed once, and removed with its line."""
    moved = form.format(f"{RULE} (K2)")
    desk.state.edit((RULE_LINE, ""))
    desk.log.edit((DECISIONS, f"{DECISIONS}{moved}"))
    for _ in range(3):
        desk.go_on()
        assert "(K2)" not in desk.state.text
        desk.log.has_once(moved)
        assert desk.says(CONSTRAINT) == [RULE]
    assert desk.problems() == "[]"
    desk.log.edit((moved, ""))
    desk.go_on()
    assert desk.says(CONSTRAINT) == []
    assert "(K2)" not in desk.state.text + desk.log.text


def test_half_a_file_says_nothing(desk: Desk) -> None:
    """A document that is being written is not read, so that the missing half removes no fact."""
    data = desk.state.path.read_bytes()
    with desk.state.path.open("wb", buffering=0) as file:
        file.write(data[: data.index(b"Never deploy")])
        desk.memory.get_orchestrator_context("task_execution")
        file.write(data[data.index(b"Never deploy") :])
    assert desk.says(CONSTRAINT) == [RULE]


def test_an_editor_that_saves_again_after_a_refresh_takes_out_what_it_had_saved(desk: Desk) -> None:
    """An editor's second save can delete a line of its first, and keeps what the machine wrote in between."""
    desk.plan.edit((BACKLOG, f"{BACKLOG}\n- Buy a bell\n- Paint the door\n"))
    saved = desk.plan.text
    desk.go_on("TODO: order the paper.")
    desk.plan.save(saved.replace("- Buy a bell\n", ""))
    assert {"Paint the door", "TODO: order the paper."} < set(desk.says(OPEN_ITEM))
    desk.go_on()
    assert "bell" not in desk.plan.text + " ".join(desk.says(OPEN_ITEM))
    desk.plan.has_once("Paint the door", "order the paper")


def test_a_text_that_was_never_written_is_no_base_of_a_merge(tmp_path: Path, clock: Clock) -> None:
    """If a person saves a document while the machine writes it, the text that the machine gave up is forgotten."""
    saves: list[str] = []

    def save(point: str) -> None:
        if saves and point == "announce.commit.after":
            mine.plan.save(saves.pop())

    with open_memory(tmp_path, config=CONFIG, clock=clock, write_point=save) as memory:
        mine = Desk(memory, clock)
        mine.go_on("TODO: order the paper.")
        saves.append(f"{mine.plan.text}\n## Notes\n\nA note of mine.\n")
        mine.go_on("TODO: order the ink.")
        assert not saves
        mine.plan.has_once("A note of mine.", "order the ink")
        kept = [*memory._parts.ledger.written_files("work_plan")]
        assert all("A note of mine." in text for text in kept if "order the ink" in text)


def test_what_was_saved_from_an_old_text_outlives_a_restore_that_was_killed(tmp_path: Path, clock: Clock) -> None:
    """A killed restore loses neither the person's note nor the machine's facts."""
    points: list[str] = []
    with open_memory(tmp_path, clock=clock, write_point=killing(points)) as memory:
        desk = Desk(memory, clock)
        desk.go_on("TODO: order the paper.")
        opened = desk.plan.text
        desk.go_on("TODO: order the ink.")
        desk.plan.save(f"{opened}\n## Notes\n\nA note of mine.\n")
        points.append("restore.rename.before")
        with pytest.raises(KeyboardInterrupt):
            desk.plan.restore(desk.plan.first_version(""))
        points.clear()
    with open_memory(tmp_path, clock=clock) as memory:
        desk = Desk(memory, clock)
        desk.go_on("TODO: order the glue.")
        desk.plan.has_once("A note of mine.", "order the paper", "order the ink", "order the glue")


@pytest.mark.parametrize(("is_older", "line"), [(False, "A note of mine."), (True, "order the ink")])
def test_a_line_taken_out_of_a_killed_write_stays_out(tmp_path: Path, clock: Clock, is_older: bool, line: str) -> None:
    """A line deleted from a text that a killed process wrote stays deleted, whatever was saved in the meantime."""
    points: list[str] = []
    with open_memory(tmp_path, config=CONFIG, clock=clock, write_point=killing(points)) as memory:
        desk = Desk(memory, clock)
        desk.go_on("TODO: order the paper.")
        older = f"{desk.plan.text}\n## Notes\n\nA note of mine.\n"
        points.append("confirm.commit.before")
        with pytest.raises(KeyboardInterrupt):
            desk.go_on("TODO: order the ink.")
        points.clear()
        opened = f"{desk.plan.text}\n## Notes\n\nA note of mine.\n"
    desk.plan.save(older if is_older else opened)
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        desk = Desk(memory, clock)
        desk.go_on()
        desk.go_on("TODO: order the glue.")
        desk.plan.save("".join(row for row in opened.splitlines(keepends=True) if line not in row))
        desk.go_on()
        assert line not in desk.plan.text
        desk.plan.has_once("## Notes", "order the paper", "order the glue")


@pytest.mark.parametrize("text", ["a\nb\n", "a\r\nb\r\n", "a\nb"])
def test_what_came_since_an_old_text_follows_the_persons_line(text: str) -> None:
    """The machine's line follows the person's at the same place, with the document's line ends."""
    person = text.replace("b", "mine")
    left = text.replace("b", "theirs")
    found = apply_stale_edit(text, left, person)
    assert found.split() == ["a", "mine", "theirs"]
    assert ("\r" in found) == ("\r" in text)


@pytest.mark.parametrize(("now", "ends"), [("", "\n"), ("We decided to use oak, oiled twice.", "\r\n")])
def test_a_decision_is_taken_out_or_reworded_in_an_old_text_though_it_is_listed_in_brief_by_now(
    tmp_path: Path, clock: Clock, now: str, ends: str
) -> None:
    """Editing a decision's entry in an old text edits the fact, though the log by now lists it in another form."""
    config = {"documents": {"decisions_in_full": 1, "decisions_in_brief": 5}}
    with open_memory(tmp_path, clock=clock, config=config) as memory:
        desk = Desk(memory, clock)
        log = desk.log
        desk.go_on("We decided to use oak.")
        if ends != "\n":
            log.save(log.text.replace("\n", "\r\n"))
            desk.go_on()
        opened = log.text
        entry = next(line for line in opened.splitlines() if line.startswith("### ") and "oak" in line)
        desk.go_on("We decided to buy the long bench.")
        desk.go_on("We decided to paint the gate blue.")
        brief = next(line for line in log.text.splitlines() if "use oak" in line)
        assert brief.startswith("- ")
        assert brief != entry
        reworded = entry.replace("We decided to use oak.", now) if now else ""
        mine = opened.replace(f"{entry}{ends}", f"{reworded}{ends}" if now else "")
        log.save(mine)
        wanted = {now, "We decided to buy the long bench.", "We decided to paint the gate blue."} - {""}
        assert set(desk.says(DECISION)) == wanted
        desk.go_on()
        assert log.text.count(" oak") == bool(now), log.text
        log.has_once(*wanted)


@pytest.mark.parametrize(("kind", "document"), [("decision", "log"), ("constraint", "state")])
def test_a_reworded_fact_stays_in_its_document_however_many_heavier_ones_follow(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, kind: str, document: str
) -> None:
    """A fact in a person's words is shown first, though more facts than a document has are newer and weigh as much."""
    monkeypatch.setattr("orchestra_mem.memory.reporting._MOST_SHOWN", 3)
    config = {"documents": {"decisions_in_full": 2, "decisions_in_brief": 1}}
    with open_memory(tmp_path, clock=clock, config=config) as memory:
        desk = Desk(memory, clock)
        shown = getattr(desk, document)
        memory.record_operation(kind, {"text": "Never store oak in the barn."}, critical=True)
        desk.go_on()
        shown.save(shown.text.replace("Never store oak in the barn. (K1)", "Oiled oak stays out. (K1)"))
        desk.go_on()
        for text in ("Never leave the saw on.", "Lamps must be off at night.", "Glue must not freeze."):
            memory.record_operation(kind, {"text": text}, critical=True)
            desk.go_on()
        shown.has_once("Oiled oak stays")


def test_an_edit_that_was_taken_back_is_in_no_old_text_that_is_saved_later(desk: Desk) -> None:
    """An edit that was made and reverted does not come back when an old text is saved."""
    opened = desk.log.text
    desk.go_on("We decided to log in JSON.")
    left = desk.log.text
    for text in (left + "\n## Notes\n\nAsk Grace.\n", left):
        desk.log.save(text)
        desk.memory.refresh()
    desk.log.save(opened + "\n## Tea\n\nAt noon.\n")
    desk.memory.refresh()
    assert "Ask Grace" not in desk.log.text
    desk.log.has_once("At noon.", "log in JSON")


def test_the_old_words_of_a_reworded_fact_are_in_no_later_summary(tmp_path: Path, clock: Clock) -> None:
    """A summary of the original operation has the new wording of a fact, not the old."""
    config = {**CONFIG, "compaction": {"verbatim_window_s": 3_600, "verbatim_floor_tokens": 0, "segment_tokens": 100}}
    with open_memory(tmp_path, config=config, clock=clock) as memory:
        desk = Desk(memory, clock)
        memory.record_operation("message", {"role": "user", "text": "Tea was had. Never deploy the shop on a Friday."})
        desk.go_on()
        desk.state.edit(("Never deploy the shop on a Friday.", "Never deploy the shop before noon."))
        clock.now += timedelta(hours=2)
        for number in range(20):
            desk.go_on(f"The lamp {number} in the long hall was changed by the people from the yard.")
        document = text_of(memory)
        assert "Summary S1" in document
        assert "before noon" in document
        assert "on a Friday" not in document


def test_an_edit_that_is_taken_back_before_the_machine_writes_is_none(desk: Desk) -> None:
    """A rewording, deletion and addition that are reverted before a refresh leave no trace."""
    before = {name: desk.paper(name).text for name in DocumentName}
    facts = desk.memory.facts(standing=False)
    desk.state.edit((RULE, "Never deploy on a Sunday."))
    desk.log.edit((next(row for row in before[LOG].split("\n") if "Postgres" in row), ""))
    desk.plan.edit((BACKLOG, f"{BACKLOG}\n- Buy a bell\n"))
    assert [fact.text for fact in desk.memory.facts()][1:] != [fact.text for fact in facts][1:]
    for name, text in before.items():
        desk.paper(name).save(text)
    assert [fact.text for fact in desk.memory.facts()] == [fact.text for fact in facts]
    desk.memory.refresh()
    after = "".join(desk.paper(name).text for name in DocumentName)
    assert "Sunday" not in after
    assert "Buy a bell" not in after


@pytest.mark.parametrize(
    ("own", "who_looks"),
    [("", "one process"), ("- Never paint it\n", "another process"), ("- Never paint it\n", "a new process")],
)
def test_a_fact_that_is_brought_back_and_taken_out_again_stays_out(desk: Desk, own: str, who_looks: str) -> None:
    """A fact that is restored by undo and deleted by redo stays deleted, whichever process read it in between."""
    desk.state.edit((RULE_LINE, ""))
    desk.go_on("Never merge without a review.")
    gone = desk.state.text
    other = "- Never merge without a review."
    desk.state.edit((other, RULE_LINE + other))
    if who_looks == "one process":
        assert RULE in desk.says(CONSTRAINT)
    else:
        with desk.once_more() as second:
            assert RULE in second.says(CONSTRAINT)
    desk.state.save(gone.replace(other, own + other))
    if who_looks == "a new process":
        with desk.once_more() as third:
            third.memory.refresh()
    desk.go_on("Never push at night.")
    assert RULE not in desk.state.text
    assert RULE not in desk.says(CONSTRAINT)


def test_a_fact_that_was_brought_back_and_listed_may_leave_its_list(desk: Desk) -> None:
    """If the machine later drops the line of a restored fact, the fact stays active."""
    desk.state.edit((RULE_LINE, ""))
    desk.go_on("Never merge without a review.")
    desk.state.edit(("- Never merge", f"{RULE_LINE}- Never merge"))
    desk.go_on()
    assert RULE in desk.says(CONSTRAINT)
    machine_writes(desk.memory, {STATE: desk.state.text.replace(RULE_LINE, "")})
    assert RULE not in desk.state.text
    assert RULE in desk.says(CONSTRAINT)


@pytest.mark.parametrize("further", [True, False])
def test_what_was_recorded_since_a_restored_text_stays(desk: Desk, *, further: bool) -> None:
    """A restore undoes what people changed, and ends nothing that operations have recorded since that version."""
    desk.go_on("The maximum request size is 2 MB.")
    desk.state.edit((RULE, "Never deploy at night."))
    desk.log.edit(("sessions in Postgres", "sessions in MySQL"), (DECISIONS, f"{DECISIONS}### Use bcrypt\n\n"))
    desk.go_on("The maximum request size is now 5 MB.", "We decided to log in JSON.", "Never merge without a review.")
    desk.memory.record_operation("task_execution", {"title": "Build", "status": "failed", "error": "no disk space"})
    desk.go_on(*["Never push at night."] * further)
    kept = desk.log.text
    failures = desk.says(MustKeepKind.FAILURE)
    assert failures
    desk.state.restore(desk.state.first_version("2 MB", "at night"))
    desk.log.restore(desk.log.first_version("Postgres", "JSON"))
    assert desk.log.text != kept
    for _ in range(3):
        assert desk.says(DECISION) == ["We decided to store sessions in Postgres.", "We decided to log in JSON."]
        assert desk.says(CONSTRAINT) == [
            RULE, "The maximum request size is now 5 MB.", "Never merge without a review.",
            *["Never push at night."] * further,
        ]  # fmt: skip
        assert desk.says(MustKeepKind.FAILURE) == failures
        desk.state.has_once(RULE, "now 5 MB.", "no disk space (K")
        desk.log.has_once("### [2025-01-15 10:01:00] We decided to store sessions in Postgres. (K1)\n", "in JSON. (K")
        assert "2 MB" not in desk.state.text
        assert "bcrypt" not in desk.log.text
        desk.go_on()
    assert desk.problems() == "[]"


def test_a_restore_undoes_the_rewording_of_a_fact_that_the_restored_text_does_not_know(desk: Desk) -> None:
    """A fact that was recorded since stands as it was recorded, not as people have reworded it since."""
    desk.state.edit((RULE_LINE, f"- Always ask.\n{RULE_LINE}"), ("on a Friday.", "on a Sunday."))
    desk.go_on()
    desk.state.restore(desk.state.first_version("# Project State", "deploy"))
    for _ in range(2):
        assert desk.says(CONSTRAINT) == [RULE]
        desk.state.has_once(RULE_LINE)
        desk.go_on()


def test_a_restore_leaves_a_fact_deleted_that_is_newer_than_the_restored_text(desk: Desk) -> None:
    """A rule that a person has deleted comes back only with a text that has it."""
    desk.go_on("Never push at night.")
    desk.state.edit((next(row for row in desk.state.text.split("\n") if "push" in row), ""))
    desk.go_on()
    with_both = desk.state.first_version("push")
    desk.state.restore(desk.state.first_version(RULE, lacks="push"))
    desk.go_on()
    assert desk.says(CONSTRAINT) == [RULE]
    desk.state.restore(with_both)
    desk.go_on()
    assert desk.says(CONSTRAINT) == [RULE, "Never push at night."]


@pytest.mark.parametrize("refreshed", [True, False])
def test_what_a_restored_text_lacks_stays_away_when_the_text_is_edited_further(desk: Desk, refreshed: bool) -> None:
    """An edit of a restored text brings nothing back that the restore has taken out, at once or in a later refresh."""
    new = add_rule(desk)
    desk.state.restore(desk.state.first_version(RULE, new))
    assert desk.says(CONSTRAINT) == [RULE]
    for own in ("Never paint it green", "Never paint it blue"):
        desk.state.edit((RULE_LINE, f"{RULE_LINE}- {own}\n"))
        assert new not in desk.says(CONSTRAINT)
        if refreshed:
            desk.go_on("We decided to paint the shed.")
    desk.go_on()
    assert new not in desk.state.text
    desk.state.has_once(RULE, "Never paint it green", "Never paint it blue")


@pytest.mark.parametrize("refreshed", [True, False])
def test_an_editor_that_was_open_during_a_restore_saves_what_it_shows(desk: Desk, refreshed: bool) -> None:
    """A text opened before a restore and saved after it stands with all its lines, and later facts stay."""
    new = add_rule(desk)
    opened = desk.state.text
    desk.state.restore(desk.state.first_version(RULE, new))
    assert desk.says(CONSTRAINT) == [RULE]
    if refreshed:
        desk.go_on("Never push at night.")
    desk.state.save(f"{opened}\n## Notes\n\nA note of mine.\n")
    desk.go_on()
    desk.state.has_once(RULE, new, "A note of mine.", *["Never push at night."] * refreshed)
    assert desk.says(CONSTRAINT)[:2] == [RULE, new]


def test_an_old_tab_that_is_saved_after_a_restore_takes_no_later_fact_out(desk: Desk) -> None:
    """Facts that an editor never had are not deleted by its save, whichever text was restored before that save."""
    oldest = desk.state.text
    desk.go_on("Never merge without a review.")
    desk.go_on("Never push at night.")
    desk.state.restore(desk.state.first_version("merge", "push"))
    desk.state.save(oldest.replace(RULE_LINE, f"{RULE_LINE}- Never paint it green\n"))
    desk.go_on()
    desk.state.has_once(RULE, "Never merge without a review.", "Never paint it green")


@pytest.mark.parametrize("is_read", [True, False])
def test_a_restore_undoes_what_was_added_to_a_text_without_front_matter(desk: Desk, is_read: bool) -> None:
    """A restored text has front matter again, and nothing of what was added to the text without it."""
    desk.go_on("Never merge without a review.")
    desk.state.save(desk.state.text.split("\n---\n", 1)[1])
    desk.go_on()
    desk.state.edit((RULE_LINE, f"Ask Joan.\n\n{RULE_LINE}- Never paint it green.\n"))
    if is_read:
        assert "Never paint it green." in desk.says(CONSTRAINT)
    desk.state.restore(desk.state.first_version(RULE))
    for _ in range(2):
        assert desk.says(CONSTRAINT) == [RULE, "Never merge without a review."]
        assert "Joan" not in desk.state.text
        desk.go_on()


FENCE = """```yaml
steps:
- uses: actions/checkout@v4
- [ ] build the site
- None
  - [ ] #1 Shop (epic)
## Rules
- never inside a fence
```
"""


@pytest.mark.parametrize("lead", ["", "- Our build:\n\n  "])
def test_code_in_a_fence_is_a_persons_text(desk: Desk, lead: str) -> None:
    """No line of a code fence, also of an indented one, becomes a fact or a task, and none is rewritten."""
    desk.work.create(WorkKind.EPIC, "Shop")
    desk.go_on()
    code = lead + FENCE.replace("\n", f"\n{' ' * 2 * bool(lead)}").rstrip(" ")
    code = code.replace("## Rules", "- Rules") if lead else code
    desk.state.edit(("## People and Roles\n", f"{code}\n## People and Roles\n"))
    desk.log.edit((DECISIONS, f"{DECISIONS}{code}\n"))
    desk.plan.edit(("## Future Work\n", f"{code}\n## Future Work\n"))
    desk.go_on(times=2)
    known = [fact.text for fact in desk.memory.facts() if fact.text != "Our build:"]
    assert known == ["We decided to store sessions in Postgres.", RULE, TODO]
    assert [item.title for item in desk.work.items()] == ["Shop"]
    for paper in (desk.state, desk.log, desk.plan):
        paper.has_once(code.partition("\n\n")[2] or code)


def wrapped(text: str) -> str:
    """Wrap list items as formatters do."""
    rows = [re.fullmatch(r"([ ]*)(- (?:\[.\] )?.*)", row) for row in text.split("\n")]
    return "\n".join(
        textwrap.fill(
            found[2], 36, initial_indent=found[1], subsequent_indent=f"{found[1]}  ",
            break_long_words=False, break_on_hyphens=False,
        )
        if found
        else row
        for found, row in zip(rows, text.split("\n"), strict=True)
    )  # fmt: skip


FORMATTERS: dict[str, Callable[[str], str]] = {
    "stars": lambda text: re.sub(r"(?m)^(\s*)- ", r"\1* ", text),
    "tabs": lambda text: re.sub(r"(?m)^(\s*)- ", r"\1-\t", text),
    "trailing spaces": lambda text: re.sub(r"(?m)^(\s*- .+)$", r"\1  ", text),
    "wrapped, CR LF": lambda text: wrapped(text).replace("\n", "\r\n"),
    "typographic quotation marks": retyped,
}


@pytest.mark.parametrize("how", FORMATTERS)
def test_a_formatter_changes_no_fact_and_freezes_no_line(desk: Desk, how: str) -> None:
    """A formatter makes no fact or item a person's, and the machine goes on to change its lines, without conflict."""
    epic = desk.work.create(WorkKind.EPIC, 'The consul\'s shop with "all" of its shelves')
    task = desk.work.create(WorkKind.TASK, "Move all the shelves to the other wall", parent=epic.id)
    desk.work.create(WorkKind.TASK, "Paint the wall that the shelves stood at", parent=epic.id)
    desk.go_on("Ann is responsible for all that is in the database.", 'We decided to paint the "old" shed.')
    before = [(fact.text, fact.status, fact.author) for fact in desk.memory.facts(standing=False)]
    for paper in (desk.state, desk.plan, desk.log):
        paper.save(FORMATTERS[how](paper.text))
    assert [(fact.text, fact.status, fact.author) for fact in desk.memory.facts(standing=False)] == before
    desk.work.set_status(task.id, WorkStatus.DONE)
    desk.go_on("Never paint on a Monday, as the shop must be open then.", times=2)
    assert [item.title for item in desk.work.items()][1] == "Move all the shelves to the other wall"
    facts = desk.memory.facts(standing=False)
    assert {fact.author for fact in facts} == {Author.MACHINE}
    assert not any(find_conflicts(paper.text) for paper in (desk.state, desk.plan, desk.log)), desk.state.text
    text = re.sub(r"\s+", " ", desk.state.text + desk.plan.text)
    assert [text.count(each) for each in ("(epic, 1 of 2 done)", "Never paint on", f"{RULE} (K2)")] == [1, 1, 1], text
    desk.state.has_once("**Operations**: 15")


@pytest.mark.parametrize(("row", "rewritten"), cases("an_edit_counts_also_if_the_front_matter_is_rewritten"))
def test_an_edit_counts_also_if_the_front_matter_is_rewritten(desk: Desk, row: str, rewritten: str) -> None:
    """Programs may quote, cut or remove times and key, or add keys: a reworded or deleted line is one all the same."""
    desk.state.edit((f"- {RULE}", "- Never deploy on a Sunday."))
    text = re.sub(f"(?m)^{row}", rewritten, desk.state.text)
    assert text != desk.state.text
    desk.state.save(text)
    desk.plan.save(re.sub(f"(?m)^{row}", rewritten, desk.plan.text).replace(TODO_LINE, ""))
    desk.go_on(times=2)
    assert [desk.says(kind) for kind in (CONSTRAINT, OPEN_ITEM)] == [["Never deploy on a Sunday."], []]
    desk.state.has_once("- Never deploy on a Sunday. (K2)")


def test_an_edit_of_a_forgotten_text_counts(desk: Desk) -> None:
    """A text that an editor had open for so long that it is no longer stored is still one of this ledger's."""
    noise = "".join(map(chr, random.Random(1).choices(range(0x4E00, 0x9FA5), k=170_000)))  # hardly compresses
    desk.state.edit(("## Blockers\n", f"## Notes\n\nNote 0:\n`{noise}`\n\n## Blockers\n"))
    desk.go_on()
    opened = desk.state.text
    for number in range(7):
        desk.state.edit((f"Note {number}:", f"Note {number + 1}:"))
        desk.go_on()
    assert opened not in desk.memory._parts.ledger.written_files("project_state")
    desk.state.save(opened.replace("a Friday.", "a Sunday."))
    desk.go_on(times=2)
    assert desk.says(CONSTRAINT) == ["Never deploy on a Sunday."]


def test_work_with_the_numbers_of_another_memory_is_new(desk: Desk) -> None:
    """Lines of work pasted from another project become items of their own, and change none that is there."""
    epic = desk.work.create(WorkKind.EPIC, "Open the shop")
    desk.work.create(WorkKind.STORY, "Build the cart", parent=epic.id)
    desk.go_on()
    pasted = (
        "- [ ] #1 Autumn market (epic)\n  - [ ] #2 Print the price list (story)\n    - [x] #3 Choose a font (task)\n"
    )
    desk.plan.edit(("## Future Work\n", f"{pasted}- [ ] #9 Rent a stall (task)\n\n## Future Work\n"))
    desk.memory.facts()
    desk.work.create(WorkKind.TASK, "Sell socks")
    desk.go_on(times=2)
    assert [(item.id, item.title, item.parent, item.status.value) for item in desk.work.items()] == [
        (1, "Open the shop", None, "pending"), (2, "Build the cart", 1, "pending"),
        (3, "Autumn market", None, "pending"), (4, "Print the price list", 3, "pending"),
        (5, "Choose a font", 4, "done"), (6, "Rent a stall", None, "pending"), (7, "Sell socks", None, "pending"),
    ]  # fmt: skip
    desk.plan.has_once(
        "- [ ] #3 Autumn market (epic", "  - [ ] #4 Print", "    - [x] #5 Choose a font", "#6 Rent a stall"
    )
    assert problems_of(desk.memory) == []


def test_bytes_that_are_not_utf_8_reword_no_fact(desk: Desk) -> None:
    """Saving a document as Latin-1 rewords nothing and keeps its bytes; new lines are read in that encoding."""
    desk.work.create(WorkKind.TASK, "Süßkirschen pflücken")
    desk.go_on("Die Öfen müssen nachts aus sein.")
    before = [(fact.text, fact.author) for fact in desk.memory.facts(standing=False)]
    desk.state.edit(("## Rules\n\n", "## Rules\n\n- Am Büro läuten.\n"))
    for paper in (desk.state, desk.plan):
        paper.path.write_bytes(paper.text.encode("latin-1"))
    told = [(fact.text, fact.author) for fact in desk.memory.facts(standing=False)]
    assert told == [*before, ("Am Büro läuten.", Author.PERSON)]
    desk.go_on(times=2)
    number = desk.memory.facts()[-1].id
    assert f"- Am Büro läuten. (K{number})\n".encode("latin-1") in desk.state.path.read_bytes()
    assert [item.title for item in desk.work.items()] == ["Süßkirschen pflücken"]
    desk.state.path.write_bytes(desk.state.path.read_bytes().decode("latin-1").encode())
    desk.go_on()
    assert [(fact.text, fact.author) for fact in desk.memory.facts(standing=False)] == told


def test_no_utf_8_is_added_to_a_document_in_another_encoding(desk: Desk) -> None:
    """A document saved as Windows-1252 is read as such, told of, and not mixed; saved as UTF-8, it catches up."""
    desk.go_on("We decided to oil the Türen.")
    desk.log.edit(("the Türen", "the Türen außen"))
    desk.log.path.write_bytes(saved := desk.log.text.encode("cp1252"))
    desk.go_on("We decided to close früher on Fridays.", times=2)
    assert desk.log.path.read_bytes() == saved
    assert "the file is updated with ASCII only" in desk.problems()
    assert "We decided to oil the Türen außen." in desk.memory.get_orchestrator_context("test").render()
    decisions = ["We decided to oil the Türen außen.", "We decided to close früher on Fridays."]
    assert desk.says(DECISION)[-2:] == decisions
    assert len([version for version, _ in desk.log.versions() if version.author is Author.PERSON]) <= 1
    desk.log.path.write_bytes(saved.decode("cp1252").encode())
    desk.go_on()
    desk.log.has_once(*decisions)
    assert desk.says(DECISION)[-2:] == decisions
    assert problems_of(desk.memory) == []


def test_decomposed_letters_make_no_line_a_persons(desk: Desk) -> None:
    """Documents saved with decomposed letters, as by some programs of macOS, change no fact and no title."""
    desk.work.create(WorkKind.TASK, "Süßkirschen pflücken")
    desk.go_on("Die Öfen müssen nachts aus sein.")
    before = desk.memory.facts(standing=False)
    for paper in (desk.state, desk.plan):
        paper.save(unicodedata.normalize("NFD", paper.text))
    desk.go_on(times=2)
    assert desk.memory.facts(standing=False) == before
    assert [item.title for item in desk.work.items()] == ["Süßkirschen pflücken"]
    desk.go_on(unicodedata.normalize("NFD", "Die Öfen müssen nachts aus sein."), "Die Öfen müssen nachts aus sein.")
    assert len(desk.says(CONSTRAINT)) == len([each for each in before if each.kind is CONSTRAINT])


def test_what_is_pasted_below_a_rule_stays_as_it_is(desk: Desk) -> None:
    """A long log and the beginning of another block below a person's rule are no part of it."""
    log = "".join(f"row {row} of what the tool printed\n" for row in range(300))
    desk.state.edit(("## People", f"- Never paint.\n{log}\n- Never sand.\n<details>\nwhy\n</details>\n\n## People"))
    desk.go_on()
    assert desk.says(CONSTRAINT) == [RULE, "Never paint.", "Never sand."]
    assert log in desk.state.text
    assert "<details>\nwhy\n</details>\n" in desk.state.text


@pytest.mark.parametrize("struck", ["~~{}~~ (K{})", "~~{} (K{})~~"])
def test_what_a_person_strikes_out_is_removed_until_the_strike_goes(desk: Desk, struck: str) -> None:
    """A rule or decision that is struck out is removed, though its line stays; without the strike it stands."""
    decision = "We decided to store sessions in Postgres."
    texts = [(desk.state, CONSTRAINT, RULE, 2), (desk.log, DECISION, decision, 1)]
    for paper, _, text, number in texts:
        paper.edit((f"{text} (K{number})", struck.format(text, number)))
    desk.state.edit(("## People", "- ~~Never paint it green~~\n\n## People"))
    for _ in range(2):
        assert [*desk.says(CONSTRAINT), *desk.says(DECISION)] == []
        desk.memory.record_operation("note", {"text": RULE}, agent="coder")
        desk.go_on()
    for paper, kind, text, number in texts:
        paper.edit((struck.format(text, number), f"{text} (K{number})"))
        assert desk.says(kind) == [text]
        desk.go_on()
        paper.has_once(f"{text} (K{number})")


@pytest.mark.parametrize(("now", "restored"), [("", True), ("The parser reads nearly every grammar", False)])
def test_what_only_an_old_text_still_lists_is_taken_out_or_reworded_as_any_other(
    tmp_path: Path, clock: Clock, now: str, restored: bool
) -> None:
    """Editing a line that only an old text still lists edits its fact, though the machine's list has moved on.

    The old text was restored, or an editor still had it open.
    """
    with open_memory(tmp_path, clock=clock, config={"documents": {"progress_items": 2}}) as memory:
        desk = Desk(memory, clock)
        state = desk.state

        def do(*parts: str) -> None:
            for part in parts:
                memory.record_operation("task", {"title": part, "status": "completed"})
            desk.go_on()

        do("parser")
        (fact,) = memory.facts(MustKeepKind.COMPLETION)
        line = next(line for line in state.text.split("\n") if f"(K{fact.id})" in line)
        opened = state.text
        do("printer")
        do("linker", "loader")
        assert line not in state.text
        if restored:
            state.restore(state.first_version(line))
            do("debugger", "profiler")
            do()
        else:
            state.save(opened)
        state.edit((f"{line}\n", f"- {now} (K{fact.id})\n" if now else ""))
        desk.go_on()
        assert line not in state.text
        (found,) = [each for each in memory.facts(standing=False) if each.id == fact.id]
        assert (found.text, found.status) == (
            (now, MustKeepStatus.STANDING) if now else (fact.text, MustKeepStatus.REMOVED)
        )


def test_lines_that_an_editor_brings_back_by_undo_stand_again(desk: Desk) -> None:
    """Facts, notes and rewordings that an undo brings back are kept, though a refresh has seen them gone."""
    notes = "".join(f"- Buy bell {number}\n" for number in range(6))
    plan = desk.plan
    plan.edit((BACKLOG, f"{BACKLOG}\n{notes}"))
    plan.save(plan.text + "\n## Notes\n\nAsk Grace.\nAsk Ada.\n")
    desk.go_on()
    opened = plan.text
    assert len(desk.says(OPEN_ITEM)) == 7
    shorter = "".join(line for line in opened.splitlines(keepends=True) if "Buy bell" not in line and "Ask" not in line)
    plan.save(shorter.replace("write the migration guide", "write two guides"))
    desk.go_on("TODO: order the paper.")
    assert "bell" not in plan.text
    plan.save(opened)
    desk.go_on("TODO: order the glue.")
    plan.has_once(*(f"Buy bell {number} (K" for number in range(6)), "Ask Grace.", "Ask Ada.", TODO)
    plan.has_once("order the paper", "order the glue")
    assert "two guides" not in plan.text
    assert len(desk.says(OPEN_ITEM)) == 9


@pytest.mark.parametrize("name", list(DocumentName))
def test_an_editor_that_moves_the_file_away_before_it_writes_loses_no_line(desk: Desk, name: DocumentName) -> None:
    """If a refresh creates the missing file anew, the editor's text and the new facts are both kept."""
    paper = desk.paper(name)
    paper.save(paper.text + "\n## Notes\n\n- Ask Grace.\n\nAsk Ada.\n")
    desk.plan.edit((BACKLOG, f"{BACKLOG}\n- Buy a bell\n"))
    desk.go_on()
    opened = paper.text
    paper.path.rename(paper.path.with_suffix(".md~"))
    desk.go_on("We decided to log in JSON. TODO: order the paper. Never buy glue.")
    paper.save(opened + "\nAsk Joan.\n")
    for _ in range(2):
        desk.go_on()
        paper.has_once("- Ask Grace.", "Ask Ada.", "Ask Joan.", "## Notes")
    items = " ".join(desk.says(OPEN_ITEM))
    assert "Buy a bell" in items
    assert "order the paper" in items
    desk.state.has_once("Never buy glue")
    desk.plan.has_once("order the paper", "Buy a bell")
    desk.log.has_once("in JSON")
    assert find_conflicts(paper.text) == ()


@pytest.mark.parametrize("point", ["version.write.before", "document.write.before", "document.rename.before"])
def test_a_line_taken_out_by_an_editor_whose_file_was_away_when_a_process_began_stays_out(
    desk: Desk, point: str
) -> None:
    """A fact deleted by a save that arrives while a new process rewrites the missing document stays deleted."""
    state = desk.state
    opened = state.text
    desk.memory.close()
    state.path.unlink()
    passed: list[str] = []

    def save(name: str) -> None:
        passed.append(name)
        if name == point and passed.count(point) == 1:
            state.save(opened.replace(RULE_LINE, ""))

    with desk.once_more(write_point=save) as again:
        for _ in range(2):
            assert again.says(CONSTRAINT) == []
            assert RULE not in state.text
            again.go_on()


ROWS = st.lists(
    st.sampled_from(
        ["## Backlog", "## Notes", "### Mine", "", "- tea", "milk", "- buy a bell", "> quoted", "- rye (K1)",
         "- oat (K2)", "- wheat (K1)", "- None", "- [ ] #5 Login", "a [x] b"]
    ),
    max_size=12,
).map(lambda rows: "# Plan\n\n" + "".join(f"{row}\n" for row in rows))  # fmt: skip


@given(opened=ROWS, left=ROWS, person=ROWS, own=st.sampled_from([(), ("K1",), ("K1", "K2")]))
def test_every_free_line_that_a_person_saved_last_stands(
    opened: str, left: str, person: str, own: tuple[str, ...]
) -> None:
    """Every line of the person's last text that is not the machine's is in the result, as are facts they worded."""
    rows = set(apply_stale_edit(opened, left, person, own).split("\n"))
    assert [row for row in free_rows(person, own) if row not in rows] == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (STATE, "- **Sessions**: 1\n", "- **Sessions**: 1, the second is Grace's\n"),
        (LOG, "(K1)\n", "(K1)\n\n*Superseded by nothing,* says Grace.\n"),
        (PLAN, "# Work Plan\n", "# Work Plan\n\n- [ ] #5 of the other list (task)\n"),
    ],
)
def test_a_line_of_the_machines_that_a_person_has_changed_is_theirs(
    desk: Desk, name: DocumentName, old: str, new: str
) -> None:
    """A person's change to a figure, a remark or a work line outlives the file being moved away."""
    paper = desk.paper(name)
    paper.edit((old, new))
    desk.go_on()
    opened = paper.text
    paper.path.rename(paper.path.with_suffix(".md~"))
    desk.go_on()
    paper.save(opened + "\nAsk Joan.\n")
    desk.go_on()
    own = next(row for row in new.split("\n") if row and row not in old)
    assert paper.text.count(own) == 1


def test_an_entry_taken_out_of_an_old_text_stays_out_whatever_came_below_it() -> None:
    """A deleted entry takes the machine's remark on it along; entries added after it stay."""
    opened = "# Log\n\n## Decisions\n\n### Use oak (K1)\n\n### Use ash (K2)\n"
    left = opened.rstrip() + "\n\n*Perhaps superseded by K3.*\n\n### Use elm (K3)\n"
    found = apply_stale_edit(opened, left, opened.replace("### Use ash (K2)\n", ""))
    assert [row for row in found.split("\n") if row] == [
        "# Log",
        "## Decisions",
        "### Use oak (K1)",
        "### Use elm (K3)",
    ]


def test_a_new_decision_follows_where_a_long_one_was_taken_out(desk: Desk) -> None:
    """Where a person has deleted an entry with its quoted full text, the next decision makes no conflict."""
    long = f"We decided to keep the letters {'of the consul in Smyrna ' * 8}in one box."
    desk.log.save(f"{desk.log.text}\n### The maps are drawn at one scale.\n")
    desk.go_on(long)
    text = desk.log.text
    entry = text[text.index("### ", text.index("Postgres")) : text.index("### The maps")]
    assert entry.count("> We decided") == 1
    desk.log.edit((entry, ""))
    desk.go_on("We decided to print in grey.")
    assert desk.memory.documents.conflicts() == []
    desk.log.has_once("We decided to print in grey.", "The maps are drawn at one scale.")
    assert "consul in Smyrna" not in desk.log.text


@pytest.mark.parametrize(
    ("steps", "facts", "shown", "absent"), promised("an_edited_line_says_what_a_reader_takes_it_for")
)
def test_an_edited_line_says_what_a_reader_takes_it_for(
    desk: Desk,
    steps: list[tuple[str, ...]],
    facts: dict[str, list[str]],
    shown: dict[str, list[str]],
    absent: dict[str, list[str]],
) -> None:
    """After a person's edits and what is recorded between them, these facts and passages stand, and still do later."""
    for where, *what in steps:
        desk.go_on(*what) if where == "machine" else getattr(desk, where).edit(what)
    for times in (0, 2):
        desk.go_on(times=times)
        standing = {kind: desk.memory.facts(MustKeepKind(kind)) for kind in facts}
        told = {kind: [f"K{each.id} {each.author}: {each.text}" for each in found] for kind, found in standing.items()}
        assert told == facts
    for name, passages in shown.items():
        getattr(desk, name).has_once(*passages)
    assert [each for name, passages in absent.items() for each in passages if each in getattr(desk, name).text] == []
    assert desk.memory.conflicts() == []


def test_the_work_of_a_lost_database_is_in_its_plan(desk: Desk, tmp_path: Path, clock: Clock) -> None:
    """If the database is lost, the plan's items stand with their numbers and states, below one heading."""
    work = desk.work
    epic = work.create(WorkKind.EPIC, "Open the shop", priority=1)
    cart = work.create(WorkKind.STORY, "Build the cart", parent=epic.id, assignee="ann")
    till = work.create(WorkKind.STORY, "Buy a till", parent=epic.id, depends_on=[cart.id])
    work.create(WorkKind.TASK, "Count the cash", parent=till.id)
    desk.go_on()
    for title, *statuses in (
        ("Sell socks", WorkStatus.DEFERRED), ("Sell hats", WorkStatus.IN_PROGRESS, WorkStatus.BLOCKED),
        ("Sell soap", WorkStatus.IN_PROGRESS, WorkStatus.DONE), ("Sell tea", WorkStatus.CANCELLED),
    ):  # fmt: skip
        item = work.create(WorkKind.TASK, title)
        desk.go_on()
        for status in statuses:
            work.set_status(item.id, status)
    desk.go_on()

    def told(items: list[WorkItem]) -> list[object]:
        kept = "id kind title status parent priority depends_on assignee".split()
        return [tuple(getattr(item, name) for name in kept) for item in sorted(items, key=lambda item: item.id)]

    before = told(work.items())
    desk.memory.close()
    for path in (tmp_path / ".obra").glob("obra.db*"):
        path.unlink()
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        again = Desk(memory, clock)
        assert told(memory.state.items()) == before
        assert memory.state.create(WorkKind.TASK, "Sell ink").id == 9
        again.go_on()
        headings = [row for row in again.plan.text.split("\n") if row.startswith("## ")]
        assert headings == ["## Immediate Next Steps", "## Prioritized Backlog", "## Future Work"]
        assert [problem["subject"] for problem in problems_of(memory)] == ["history"]


def test_a_new_line_takes_no_number_of_the_work_of_a_lost_database(desk: Desk, tmp_path: Path, clock: Clock) -> None:
    """A line that a person added above the plan's items, just before the database was lost, is numbered after them."""
    epic = desk.work.create(WorkKind.EPIC, "Open the shop")
    desk.work.create(WorkKind.STORY, "Build the cart", parent=epic.id)
    desk.go_on()
    desk.memory.close()
    row = "- [ ] #1 Open the shop (epic, 0 of 1 done)\n"
    desk.plan.edit((row, f"- [ ] Rent a stall\n{row}  - [ ] Buy a till\n"))
    for path in (tmp_path / ".obra").glob("obra.db*"):
        path.unlink()
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        again = Desk(memory, clock)
        again.go_on()
        items = sorted(memory.state.items(), key=lambda item: item.id)
        assert [(item.id, item.title, item.parent) for item in items] == [
            (1, "Open the shop", None), (2, "Build the cart", 1), (3, "Rent a stall", None), (4, "Buy a till", 1),
        ]  # fmt: skip
        again.plan.has_once("#2 Build the cart", "#3 Rent a stall", "#4 Buy a till")


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_tab_from_before_an_older_database_ends_nothing_that_came_since(
    desk: Desk, tmp_path: Path, clock: Clock, is_moved: bool
) -> None:
    """An older database was put back, and the clock set back: a tab with a newer text is edited as before."""
    desk.go_on("We decided to paint the shed.")
    desk.memory.close()
    kept = {path: path.read_bytes() for path in (tmp_path / ".obra").glob("obra.db*")}
    clock.now += timedelta(days=2)
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        again = Desk(memory, clock)
        again.go_on("Never sell the lamp.")
        tab = again.state.text
        again.state.save(f"{tab}\n## Notes\n\nAsk Joan.\n")
        again.go_on("Always lock the shed.")
    for path, content in kept.items():
        path.write_bytes(content)
    if is_moved:
        shutil.copytree(tmp_path / ".obra", tmp_path / "moved")
        shutil.rmtree(tmp_path / ".obra")
        (tmp_path / "moved").rename(tmp_path / ".obra")
    clock.now -= timedelta(days=1)
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        again = Desk(memory, clock)
        again.go_on("Never burn the bread.")
        again.state.save(tab.replace("sell the lamp", "sell the lamps"))
        again.go_on()
        said = {fact.text for fact in memory.facts()}
        assert said > {"Never burn the bread.", "Always lock the shed.", "Never sell the lamps."}
        assert "Never sell the lamp." not in said
        again.state.has_once("Ask Joan.")


def test_an_older_text_of_active_work_is_no_conflict(desk: Desk) -> None:
    """Whatever earlier text of the project's state is restored, the machine's own lines do not conflict in it."""
    for number in range(6):
        epic = desk.work.create(WorkKind.EPIC, f"Paint door {number}")
        if number % 2:
            desk.work.set_status(epic.id, WorkStatus.IN_PROGRESS)
        desk.go_on(f"The paint of door {number} is dry.")
    for place in (0, 4, 1, 7, 3):
        desk.state.restore(desk.state.versions()[place][0].sequence)
        desk.go_on("A door was opened.")
        desk.go_on()
        assert not find_conflicts(desk.state.text)
        desk.state.has_once("## Active Work")
    desk.work.set_status(1, WorkStatus.IN_PROGRESS)
    desk.work.create(WorkKind.TASK, "Sand door 0", parent=1)
    desk.go_on()
    desk.state.has_once('- Epic #1 "Paint door 0": 0 of 1 done')


def test_words_in_a_row_that_repeats_an_operation_stay(empty: Desk) -> None:
    """What a person adds to a row of the machine's that repeats an operation outlasts the machine's row."""
    empty.go_on("We decided to print the plan.")
    row = next(row for row in empty.state.text.split("\n") if "(op 3): " in row)
    empty.state.edit((row, f"{row} and Ann brought cake"))
    empty.go_on(times=4)
    empty.state.has_once("and Ann brought cake")

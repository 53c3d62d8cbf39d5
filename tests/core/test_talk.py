"""Lines of a talk that only what was said and what there is makes plain: fragments, parts, questions, what is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem import open_memory
from orchestra_mem.core.language.fragments import read_fragment
from orchestra_mem.core.language.intents.types import Action
from orchestra_mem.core.language.turns import corrected_to, goes_back, is_aside, is_no, is_yes, same_of
from orchestra_mem.orchestrator import Orchestrator, Outcome
from orchestra_mem.orchestrator.resolving import speaker
from orchestra_mem.work_types import WorkItem, WorkKind, WorkStatus

SETUP = ("create an epic Website launch", "add 5 stories to it: update docs, changelog, photos, copy, legal answers")


@pytest.fixture
def orchestrator(tmp_path: Path) -> Orchestrator:
    """An orchestrator over an epic #1 with stories #2 to #6."""
    made = Orchestrator(open_memory(tmp_path))
    for line in SETUP:
        assert made.execute(line).outcome is Outcome.DONE
    return made


def _items(orchestrator: Orchestrator) -> list[WorkItem]:
    return orchestrator.tracker.items()


def _changed(orchestrator: Orchestrator, *lines: str) -> dict[int, tuple[str, str | None, int]]:
    """Which items a line, after others, has changed: their status, assignee and priority."""
    for line in lines[:-1]:
        orchestrator.execute(line)
    before = {item.id: item for item in _items(orchestrator)}
    orchestrator.execute(lines[-1])
    return {
        item.id: (item.status.value, item.assignee, item.priority)
        for item in _items(orchestrator)
        if item.id not in before or _state(item) != _state(before[item.id])
    }


def _state(item: WorkItem) -> tuple[object, ...]:
    return item.status, item.assignee, item.priority, item.parent, item.depends_on, item.title


@pytest.mark.parametrize("line", ["start 4, actually no", "undo, no wait, keep it", "cancel 2. never mind"])
def test_what_a_line_takes_back_is_left_as_it_is(orchestrator: Orchestrator, line: str) -> None:
    """It is answered, not done, and not asked about."""
    assert _changed(orchestrator, line) == {}
    assert orchestrator.execute(line).text == "Left as it is."


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("photos: Lena does it, it's urgent", {4: ("pending", "Lena", 1)}),
        ("photos first", {4: ("pending", None, 1)}),
        ("ok photos first, start it", {4: ("in progress", None, 3)}),
        ("copy went live", {5: ("done", None, 3)}),
        ("copy went live an hour ago, mark it done", {5: ("done", None, 3)}),
        ("docs are done too", {2: ("done", None, 3)}),
        ("copy is mine, photos go to Lena", {5: ("pending", speaker(), 3), 4: ("pending", "Lena", 3)}),
        ("copy and photos to Lena", {5: ("pending", "Lena", 3), 4: ("pending", "Lena", 3)}),
        ("copy is on hold until legal answers", {5: ("deferred", None, 3)}),
        ("the printer is back, start copy", {5: ("in progress", None, 3)}),
        ("Lena is on tour till march, park the photos", {4: ("deferred", None, 3)}),
        ("copy in progress, owner Hana", {5: ("in progress", "Hana", 3)}),
        ("Lena updated the docs", {2: ("done", None, 3)}),
        ("coppy is done", {5: ("done", None, 3)}),
        ("can I start the changelog?", {}),
        ("forget photos", {}),
        ("if legal says yes, start copy", {}),
        ("maybe Lena can do it, start copy or photos", {}),
        ("copy is nearly done", {}),
    ],
)
def test_short_clauses_are_of_the_item_that_they_name(
    orchestrator: Orchestrator, line: str, changed: dict[int, tuple[str, str | None, int]]
) -> None:
    """What they do not say is not done: a question, a condition, what is still to come."""
    assert _changed(orchestrator, line) == changed


@pytest.mark.parametrize(
    "line",
    [
        "I'll start copy tomorrow", "we should have started copy last week", "copy will be done by Friday",
        "copy not written yet", "copy hasn't been started", "Hana wants to do the copy", "copy is on sale",
        "i should probably start copy at some point", "I'd love to say copy is done", "I was going to start copy",
        "photos leaked", "start copy? no", "we are doing copy with two people, Hana and Lena", "copy: call the printer",
        "we start on 3 May", "update docs", "the docs are broken", "copy started?", "Hana will start copy next week",
        "no, copy stays", "copy and photos: Hana and Lena do them",
    ],
)  # fmt: skip
def test_what_is_planned_denied_or_wished_is_not_carried_out(orchestrator: Orchestrator, line: str) -> None:
    """Nor is a word taken for a name, a date for a number, or a title for a command."""
    assert _changed(orchestrator, line) == {}


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("start all but the photos", dict.fromkeys((2, 3, 5, 6), ("in progress", None, 3))),
        ("all done except the photos", dict.fromkeys((2, 3, 5, 6), ("done", None, 3))),
        ("photos are being sorted", {4: ("in progress", None, 3)}),
        ("second attempt of the copy is running", {5: ("in progress", None, 3)}),
        ("the photos are to be handled by Brandt", {4: ("pending", "Brandt", 3)}),
        ("Jo, can you take copy?", {5: ("pending", "Jo", 3)}),
        ("copy -> hana, photos = leo", {5: ("pending", "Hana", 3), 4: ("pending", "Leo", 3)}),
        ("COPY IS DONE, PHOTOS ARE URGENT", {5: ("done", None, 3), 4: ("pending", None, 1)}),
        ("The mayor rang! Copy is done!", {5: ("done", None, 3)}),
        ("start copy. no wait, the photos", {4: ("in progress", None, 3)}),
        ("copy can't be done this year", {5: ("deferred", None, 3)}),
        ("do copy first", {5: ("pending", None, 1)}),
    ],
)
def test_what_is_said_of_items_in_other_words(
    orchestrator: Orchestrator, line: str, changed: dict[int, tuple[str, str | None, int]]
) -> None:
    """All but some, what is under way, who is to do it, a line that takes back its own beginning."""
    assert _changed(orchestrator, line) == changed


@pytest.mark.parametrize(
    "line",
    [
        "once photos are done, start copy", "when the photos are in, do the copy", "copy only after photos",
        "copy can't start until the photos are done", "don't start copy before photos are ready",
        "copy has to wait until the photos are there", "copy requires that photos be completed first",
        "the photos must be finished before copy",
    ],
)  # fmt: skip
def test_what_hangs_on_an_item_waits_for_it(orchestrator: Orchestrator, line: str) -> None:
    """Nothing is started by a condition; where it hangs on no item, nothing is done."""
    orchestrator.execute(line)
    assert orchestrator.tracker.item(5).depends_on == (4,)
    assert {item.status for item in _items(orchestrator)} == {WorkStatus.PENDING}


@pytest.mark.parametrize(
    ("lines", "changed"),
    [
        (("start copy and photos", "not the photos"), {4: ("pending", None, 3)}),
        (("start copy and photos", "only the copy"), {4: ("pending", None, 3)}),
        (("start copy", "no, not copy"), {5: ("pending", None, 3)}),
        (("assign copy to Tom", "not Tom, his sister Ines"), {5: ("pending", "Ines", 3)}),
        (("assign copy to Lena", "no, on me"), {5: ("pending", speaker(), 3)}),
        (("finish copy", "no wait, it isn't", "yes"), {5: ("pending", None, 3)}),
        (("finish copy", "no wait, it isn't"), {}),
        (("finish copy", "should we drop the photos?", "no, it stays. Readers would riot."), {}),
        (("assign copy and photos to Lena", "the rest is mine"), dict.fromkeys((2, 3, 6), ("pending", speaker(), 3))),
        (("photos to Lena", "the one lena has is urgent"), {4: ("pending", "Lena", 1)}),
        (("photos and copy to Lena", "Lena's stuff goes to Tom"), dict.fromkeys((4, 5), ("pending", "Tom", 3))),
        (
            ("photos and copy to Lena", "copy and changelog are done", "start the last one"),
            {6: ("in progress", None, 3)},
        ),
        (("cancel copy", "yes, nobody reads it"), {5: ("cancelled", None, 3)}),
        (("cancel copy", "yes, if Ida agrees"), {}),
        (("the copy is odd", "start it"), {5: ("in progress", None, 3)}),
        (("what's next?", "start it"), {2: ("in progress", None, 3)}),
        (("start copy and photos", "finish the other one and give it to Ida"), {}),
    ],
)
def test_a_line_narrows_or_takes_back_what_was_done(
    orchestrator: Orchestrator, lines: tuple[str, ...], changed: dict[int, tuple[str, str | None, int]]
) -> None:
    """What was done last is done to fewer, to another, or not at all; a yes with its reason is a yes."""
    assert _changed(orchestrator, *lines) == changed


@pytest.mark.parametrize(
    ("lines", "changed"),
    [
        (("start copy", "photos too"), {4: ("in progress", None, 3)}),
        (("start copy", "no, I meant photos"), {5: ("pending", None, 3), 4: ("in progress", None, 3)}),
        (("assign copy to Lena", "no sorry, Hana"), {5: ("pending", "Hana", 3)}),
        (("start copy", "never mind"), {}),
        (("start copy", "oops"), {}),
        (("defer copy", "go on with copy"), {5: ("in progress", None, 3)}),
        (("cancel copy", "yes, cancel it"), {5: ("cancelled", None, 3)}),
        (("cancel copy", "no, better keep it"), {}),
        (("block copy: the printer is broken", "printer is fixed"), {5: ("pending", None, 3)}),
        (("assign copy to Lena", "Lena is done"), {5: ("done", "Lena", 3)}),
        (("start copy", "copy failed, too long", "try it again"), {5: ("in progress", None, 3)}),
    ],
)
def test_a_line_is_read_in_the_light_of_the_one_before(
    orchestrator: Orchestrator, lines: tuple[str, ...], changed: dict[int, tuple[str, str | None, int]]
) -> None:
    """The same of something else, a correction, a yes, a no, a word in between."""
    assert _changed(orchestrator, *lines) == changed


@pytest.mark.parametrize(
    ("line", "kind", "titles", "parent"),
    [
        ("copy gets two tasks: first draft, proofreading", WorkKind.TASK, ["First draft", "Proofreading"], 5),
        ("add tasks to the copy: draft, proofs", WorkKind.TASK, ["Draft", "Proofs"], 5),
        ("+ stories hosting, monitoring", WorkKind.STORY, ["Hosting", "Monitoring"], 1),
        ("story hosting, story monitoring", WorkKind.STORY, ["Hosting", "Monitoring"], 1),
        ("and another one: hosting", WorkKind.STORY, ["Hosting"], 1),
        ("add story hosting and story monitoring", WorkKind.STORY, ["Hosting", "Monitoring"], 1),
    ],
)
def test_what_is_listed_stands_under_what_is_spoken_of(
    orchestrator: Orchestrator, line: str, kind: WorkKind, titles: list[str], parent: int
) -> None:
    """New items are named in few words, right after the epic that they belong to."""
    orchestrator.execute(line)
    made = [item for item in sorted(_items(orchestrator), key=lambda item: item.id) if item.id > 6]
    assert [(item.kind, item.title, item.parent) for item in made] == [(kind, title, parent) for title in titles]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("how many stories are open?", "5:"),
        ("can I finish copy?", 'No: Story #5 "Copy"'),
        ("what does copy wait for?", 'Story #4 "Photos"'),
        ("what did Lena do?", 'Story #4 "Photos"'),
        ("is Lena done?", 'Story #4 "Photos"'),
        ("who did the photos?", "assigned to Lena"),
        ("when does the domain expire?", "expires in March"),
        ("why grey?", "white gets dirty"),
        ("report", "5 pending"),
    ],
)
def test_questions_are_answered_by_what_they_name(orchestrator: Orchestrator, line: str, told: str) -> None:
    """An item, a person, a number, or what is remembered; nothing changes."""
    for said in (
        "copy depends on photos", "photos go to Lena", "note: the domain expires in March",
        "the client wants grey because white gets dirty",
    ):  # fmt: skip
        orchestrator.execute(said)
    before = [_state(item) for item in _items(orchestrator)]
    assert told in orchestrator.execute(line).text
    assert [_state(item) for item in _items(orchestrator)] == before


def test_a_new_command_is_no_answer(orchestrator: Orchestrator) -> None:
    """What was asked is let go where another thing is asked for, and taken up where it is answered."""
    assert orchestrator.execute("cancel photos").outcome is Outcome.ASKED
    orchestrator.execute("copy: Lena")
    assert orchestrator.tracker.item(4).status is WorkStatus.PENDING
    assert orchestrator.tracker.item(5).assignee == "Lena"


def test_yes_no_and_what_is_neither() -> None:
    """Short answers, and lines that only begin like one."""
    assert is_yes("yes, sure")
    assert is_yes("yep")
    assert is_yes("yes scrap it")
    assert not is_yes("yes, start copy")
    assert is_no("nah leave it")
    assert is_no("no!! don't delete anything")
    assert not is_no("no, start copy")
    assert is_aside("oops")
    assert is_aside("never mind, was joking")
    assert not is_aside("cancel it")
    assert same_of("and the invoices too, please") == "the invoices"
    assert not same_of("start copy")
    assert corrected_to("sorry, the other one") == "the other one"
    assert corrected_to("export i mean") == "export"
    assert goes_back("hmm no, move it back")
    assert not goes_back("move it to the back office")


@given(st.text(alphabet="#@123 abdefinopstuv,:.'", max_size=60))
def test_a_fragment_names_what_it_is_about(text: str) -> None:
    """Whatever the clause: an intent that is read out of it has its item from its words, or none."""
    found = read_fragment(text)
    for intent in found.intents if found else ():
        assert intent.action in set(Action)
        assert not intent.target or intent.target.removeprefix("the ") in text

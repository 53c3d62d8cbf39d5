"""Ways of saying the same: wants put as lacks, abilities as states, adverbs in between, persons who take, lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.language.intents.adverbials import without_adverbials, without_adverbs
from orchestra_mem.core.language.intents.normalising import normalise
from orchestra_mem.core.language.intents.parsing import Action, Intent, parse
from orchestra_mem.core.language.intents.rules import read_rules
from orchestra_mem.core.language.intents.words import needed_words


def read(line: str) -> list[tuple[str, str, str, str]]:
    """Give action, target, other and value of each intent."""
    return [(intent.action.value, intent.target, intent.other, intent.value) for intent in parse(line).intents]


def made(line: str) -> tuple[str, str, tuple[str, ...], str]:
    """Give action, kind, titles and parent of the only intent."""
    (intent,) = parse(line).intents
    return intent.action.value, str(intent.kind or ""), intent.titles, intent.other


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("milestone needed: Keys handed over", ("create", "milestone", ("Keys handed over",), "")),
        ("could there be an epic called Loft?", ("create", "epic", ("Loft",), "")),
        ("there ought to be a task for the gutter", ("create", "task", ("gutter",), "")),
        ("we're short one task: ring the plumber", ("create", "task", ("ring the plumber",), "")),
        ("we still don't have an epic for payroll, please add one", ("create", "epic", ("payroll",), "")),
        ("there's a task missing from story 6: check the valves", ("add", "task", ("check the valves",), "story 6")),
        ("epic 7 could do with a story: menus", ("add", "story", ("menus",), "epic 7")),
        ("into the roof epic goes a story named Slates", ("add", "story", ("Slates",), "the roof epic")),
        ("give story 14 a subtask: print labels", ("add", "subtask", ("print labels",), "story 14")),
        ('make "Paint the shutters" a task', ("create", "task", ("Paint the shutters",), "")),
        ('pop "wash the van" on the list', ("create", "", ("wash the van",), "")),
    ],
)
def test_what_is_missing_is_asked_for(line: str, expected: tuple[str, str, tuple[str, ...], str]) -> None:
    """A lack, a need or a place for something new is a wish to have it made."""
    assert made(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "we don't have an epic for payroll", "there is no story about parking", "I have a task for you",
        "the milestone is needed", "is a task needed?",
    ],
)  # fmt: skip
def test_a_lack_alone_asks_for_nothing_new(line: str) -> None:
    """Unless it is said that it be made, nothing is made of what is only said not to be there."""
    assert not [intent for intent in parse(line).intents if intent.action in (Action.CREATE, Action.ADD)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("can't go on with 45, the crane is broken", ("block", "45", "", "the crane is broken")),
        ("unable to proceed with 41: no access", ("block", "41", "", "no access")),
        ("nobody can work on 8, the server is down", ("block", "8", "", "the server is down")),
        ("nothing can happen on 70 because the crane left", ("block", "70", "", "the crane left")),
        ("we are stuck on task 33 because the key is lost", ("block", "task 33", "", "the key is lost")),
        ("we are not stuck on 210 anymore", ("unblock", "210", "", "")),
        ("nothing is holding up the attic story any longer", ("unblock", "the attic story", "", "")),
    ],
)
def test_what_one_cannot_go_on_with_is_blocked(line: str, expected: tuple[str, str, str, str]) -> None:
    """An ability that is denied is a block with its reason; a block that is denied is none."""
    assert read(line) == [expected]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("as of last night the footbridge design is complete", ("finish", "the footbridge design", "", "")),
        ("we're through with the rehearsal story at long last", ("finish", "the rehearsal story", "", "")),
        ("the boiler task is now completed from our side", ("finish", "the boiler task", "", "")),
        ("am starting today the fence story", ("start", "the fence story", "", "")),
        ("15 and 16 both depend on 14", ("depend", "15 and 16", "14", "")),
        ("12 should only start after 11", ("depend", "12", "11", "")),
        ("we have successfully completed the trial story", ("finish", "the trial story", "", "")),
    ],
)
def test_adverbs_change_nothing(line: str, expected: tuple[str, str, str, str]) -> None:
    """When, how and from whose side it is said may stand anywhere."""
    assert read(line) == [expected]


@given(st.lists(st.sampled_from("both only quickly at last the 12 is done yesterday called as of now , fully".split())))
def test_only_words_are_left_out(words: list[str]) -> None:
    """What is without adverbs holds words of the clause alone, in their order."""
    clause = normalise(" ".join(words))
    for bare in (without_adverbials(clause), without_adverbs(clause)):
        rest = iter(clause.words)
        assert all(word in rest for word in bare.words)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("could Wei take on story 8?", ("story 8", "Wei")),
        ("can Tariq do 31?", ("31", "Tariq")),
        ("I would like that Pierre takes care of the lighting plan", ("the lighting plan", "Pierre")),
        ("Mrs Patel will be responsible for the costume story", ("the costume story", "Mrs Patel")),
        ("Ines has agreed to do 14", ("14", "Ines")),
        ("could the fire drill story please go to Malik?", ("the fire drill story", "Malik")),
        ("the glazing is down to Pete", ("the glazing", "Pete")),
    ],
)
def test_persons_take_work(line: str, expected: tuple[str, str]) -> None:
    """Whoever may, will or has agreed to do something is who it is assigned to."""
    assert read(line) == [("assign", expected[0], "", expected[1])]


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("I've made a start on 88", Action.START), ("set the ball rolling on 25", Action.START),
        ("reschedule task 3 for Monday", Action.DEFER), ("I have completed task 14", Action.FINISH),
        ("the digging has started", Action.START), ("take 9 off the blocked list", Action.UNBLOCK),
        ("desserts: Lena does it", None),
    ],
)  # fmt: skip
def test_no_word_of_a_command_is_a_person(line: str, action: Action | None) -> None:
    """Participles, articles, days and marks are no part of a name."""
    assert [intent.action for intent in parse(line).intents] == ([action] if action else [])


@pytest.mark.parametrize(
    ("line", "kind", "target", "value"),
    [
        ("all stories in epic 4 that are open", "story", "epic 4", "open"),
        ("is anything overdue?", "", "", "overdue"),
        ("high priority tasks", "task", "", "high priority"),
        ("show me the children of epic 3", "", "epic 3", ""),
        ("can I get every task that's in progress?", "task", "", "in progress"),
        ("what is everyone working on", "", "", "in progress"),
        ("show tasks dat are blokced", "task", "", "blocked"),
    ],
)
def test_lists_are_read_in_any_order(line: str, kind: str, target: str, value: str) -> None:
    """Kind, place and state of a list may stand in any order, each word being one of a list's."""
    (intent,) = parse(line).intents
    assert intent.action is Action.LIST
    assert (str(intent.kind or ""), intent.target, intent.value) == (kind, target, value)


@pytest.mark.parametrize(
    "line",
    [
        "I wish 12 was done", "I thought 12 was done", "we could maybe have cancelled 3", "I nearly cancelled 9",
        "would be nice if 12 were done", "wish we'd finished 4 last week", "don't start 12 yet",
        "just thinking out loud: what if 9 failed",
    ],
)  # fmt: skip
def test_what_is_only_thought_is_not_done(line: str) -> None:
    """How things are not, or might have been, asks for nothing."""
    assert not parse(line).intents


def test_what_a_pattern_needs_is_told_from_it() -> None:
    """A pattern is not tried where none of the words stands that one of its groups must have."""
    assert needed_words("<T> (~BE) [~ADV ](late|on time)") == frozenset({"late", "on"})
    assert needed_words("<T> [(now|then) ]is done") == frozenset({"done"})
    (rule,) = read_rules("finish\n    (close|shut)[ up] <T>")
    assert rule.needs == frozenset({"close", "shut"})


def test_a_later_order_is_no_part_of_a_title() -> None:
    """What stands behind a new name is not taken in where it begins anew."""
    assert parse("rename 12 to Soup and make it urgent").intents == (
        Intent(action=Action.RENAME, target="12", value="Soup"),
        Intent(action=Action.PRIORITISE, target="it", value="1"),
    )


def test_what_is_added_to_something_new_is_under_it() -> None:
    """What is added in the same breath, and is of a narrower kind, is for what was just made."""
    epic, stories = parse("create epic Bees and add two stories, Hives and Honey").intents
    assert (epic.action, epic.titles) == (Action.CREATE, ("Bees",))
    assert (stories.action, stories.other, stories.titles) == (Action.ADD, "it", ("Hives", "Honey"))
    one, other = parse("create a story Bees and add a story Hives").intents
    assert (one.action, other.action, other.other) == (Action.CREATE, Action.CREATE, "")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("grinding of the lower flange is completed from our side", ("finish", "grinding of the lower flange", "", "")),
        ("ferry tickets done", ("finish", "ferry tickets", "", "")),
        ("roof slates blocked, the quarry is shut", ("block", "roof slates", "", "the quarry is shut")),
        ("choir robes high priority", ("prioritise", "choir robes", "", "2")),
        ("choir robes need to be top priority", ("prioritise", "choir robes", "", "1")),
        ("dark glaze is p3", ("prioritise", "dark glaze", "", "3")),
        ("doin the harbour mural rn", ("start", "the harbour mural", "", "")),
        ("finished harbour mural", ("finish", "harbour mural", "", "")),
        ("finally submitted the grant form!", ("finish", "the grant form", "", "")),
        ("we have sent off the tax return", ("finish", "the tax return", "", "")),
        ("booking form just went live!!", ("finish", "booking form", "", "")),
        ("that's the hedge finished", ("finish", "the hedge", "", "")),
        ("the gala will, alas, have to be put off", ("defer", "the gala", "", "")),
        ("we are starting the rewiring today by God's grace", ("start", "the rewiring", "", "")),
        ("let us take up the fuel report in next sprint only", ("defer", "the fuel report", "", "in next sprint")),
    ],
)
def test_titles_without_article_and_headlines_are_read(line: str, expected: tuple[str, str, str, str]) -> None:
    """Work may be told of by its bare title, without a verb, and with what people put around it."""
    assert read(line) == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "nicely done everyone", "feeling blocked", "the parents submitted a complaint", "nobody submitted the form",
        "should have submitted the form", "if we submitted the form", "starting to rain", "doing great thanks",
    ],
)  # fmt: skip
def test_remarks_like_headlines_change_nothing(line: str) -> None:
    """Praise, moods, what others or nobody did: no state of work is read out of them."""
    assert read(line) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Ines has very kindly offered to look after the raffle", ("assign", "the raffle", "", "Ines")),
        ("Ines has sweetly volunteered for the raffle", ("assign", "the raffle", "", "Ines")),
        ("the raffle shall be handled by Ms Petrov", ("assign", "the raffle", "", "Ms Petrov")),
        ("ines's gonna do the raffle", ("assign", "the raffle", "", "ines")),
        ("Ines, the raffle is all yours", ("assign", "the raffle", "", "Ines")),
        ("over to you on 12, Ines", ("assign", "12", "", "Ines")),
        ("12 lands on Ines's desk", ("assign", "12", "", "Ines")),
        ("please give high priority to the raffle", ("prioritise", "the raffle", "", "2")),
        ("the raffle must take precedence over everything else", ("prioritise", "the raffle", "", "1")),
        ("the name of 402 must read Kerb stones", ("rename", "402", "", "Kerb stones")),
        ('12 would be better called "Kerb stones"', ("rename", "12", "", "Kerb stones")),
        ("I'd rather have story 19 called Kerb stones", ("rename", "story 19", "", "Kerb stones")),
        ("please write by #58: use brass screws", ("note", "#58", "", "use brass screws")),
        ("please record that the hearing is set for May", ("note", "", "", "the hearing is set for May")),
        ("the garden report is on hold", ("defer", "the garden report", "", "")),
    ],
)
def test_frames_of_any_work_and_person_are_read(line: str, expected: tuple[str, str, str, str]) -> None:
    """Offers, handing over, weight, better names and texts are read for whatever stands in them."""
    assert read(line) == [expected]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("can't start the mosaic till the grout is in", ("depend", "the mosaic", "the grout", "")),
        ("the mosaic cannot begin until the grout has been tested", ("depend", "the mosaic", "the grout", "")),
        ("make mosaic depend on the grout", ("depend", "mosaic", "the grout", "")),
        ("diesel ran out so the Lyon run cannot move", ("block", "the Lyon run", "", "diesel ran out")),
        ("the van came so wine order isn't blocked anymore", ("unblock", "wine order", "", "")),
        ("the permit came, the parade can go ahead", ("unblock", "the parade", "", "")),
        ("the parade is not blocked any more, the road works again", ("unblock", "the parade", "", "")),
        ("the members voted and we decided on oak not pine", ("decide", "", "", "oak not pine")),
        ("the sign is up, 204 done", ("finish", "204", "", "")),
        ("decsion: keep the old bell", ("decide", "", "", "keep the old bell")),
        ("wait, no, revert what you just did", ("undo", "", "", "")),
    ],
)
def test_what_leads_to_a_state_stands_beside_it(line: str, expected: tuple[str, str, str, str]) -> None:
    """What waits, what holds up and what has come are told from the work of which they are told."""
    assert read(line) == [expected]


def test_parents_with_bare_titles_hold_what_is_new() -> None:
    """A parent may be named by its title alone, behind "under", or before what the new is called."""
    assert made("make a task for the recoil under weapon overhaul") == (
        "create",
        "task",
        ("recoil",),
        "weapon overhaul",
    )
    assert made("add a task to plot four called order lintels") == ("add", "task", ("order lintels",), "plot four")
    assert made("throw another task into 61: empty the trap") == ("add", "task", ("empty the trap",), "61")


def test_two_numbered_of_one_kind_are_one_subject() -> None:
    """A kind with a number is a name, even where the kind's word may be a verb."""
    assert [(i.action, i.target) for i in parse("task 31 and task 32 are both finished").intents] == [
        (Action.FINISH, "task 31 and task 32")
    ]


@pytest.mark.parametrize("line", ["don't start 12 until Monday", "cancel the meeting", "put back the vase"])
def test_no_time_is_waited_for_and_nothing_undone(line: str) -> None:
    """A time is no work to wait for, and nothing is undone by words that mean other things."""
    assert not [i for i in parse(line).intents if i.action in (Action.DEPEND, Action.UNDO, Action.CANCEL)]

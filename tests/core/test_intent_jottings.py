"""Lines as busy people jot them down: headings, arrows, fragments, reasons before a wish, and what asks for nothing."""

from __future__ import annotations

import pytest

from orchestra_mem.core.language.intents.parsing import DESTRUCTIVE, parse
from orchestra_mem.core.language.intents.rules import read_rules
from orchestra_mem.core.language.intents.shorthand import written_out


def read(line: str) -> list[tuple[str, ...]]:
    """Give action, target, other and value of each intent, the empty ones at the end left out."""
    found = [(intent.action.value, intent.target, intent.other, intent.value) for intent in parse(line).intents]
    return [each if each[3] else each[:3] if each[2] else each[:2] for each in found]


def made(line: str) -> tuple[str, tuple[str, ...], str, str]:
    """Give kind, titles, parent and value of what a line wants new."""
    first = parse(line).intents[0]
    return (str(first.kind or ""), first.titles, first.other, first.value)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("fixed: 33", [("finish", "33")]),
        ("merged: 12, 13", [("finish", "12, 13")]),
        ("closed: #8 #9", [("finish", "#8 #9")]),
        ("in progress: 5 and 6", [("start", "5 and 6")]),
        ("blocked: 7, 8", [("block", "7, 8")]),
        ("blocked: 7 (no paper left)", [("block", "7", "", "no paper left")]),
        ("postponed to march: 44", [("defer", "44", "", "march")]),
        ("low prio: 70", [("prioritise", "70", "", "4")]),
        ("p1: 12, 13", [("prioritise", "12, 13", "", "1")]),
        ("dropped: #81", [("cancel", "#81")]),
        ("won't do: 81 and 82", [("cancel", "81 and 82")]),
        ("duplicate: 55", [("cancel", "55")]),
        ("Blocked again! 14 this time, the kiln is cold", [("block", "14", "", "the kiln is cold")]),
        ("Finished!! 14 and 15", [("finish", "14 and 15")]),
        ("Unblocked! #14", [("unblock", "#14")]),
        ("resolved: the board meets on Tuesdays", [("decide", "", "", "the board meets on Tuesdays")]),
        ("Ada: 14 and 15", [("assign", "14 and 15", "", "Ada")]),
        ("14: @jo", [("assign", "14", "", "jo")]),
        ("failed: 14", [("report", "14", "", "failed")]),
        ("[x] 14", [("finish", "14")]),
    ],
)
def test_a_heading_tells_what_becomes_of_its_list(line: str, expected: list[tuple[str, ...]]) -> None:
    """States, priorities and persons in front of numbers; without numbers the heading is one of a text."""
    assert read(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("14 -> blocked by 9", [("block", "14", "9")]),
        ("14 -> p1", [("prioritise", "14", "", "1")]),
        ("14 -> Mira", [("assign", "14", "", "Mira")]),
        ("14 -> nobody", [("assign", "14")]),
        ("14 -> wontfix", [("cancel", "14")]),
        ("14 -> monday", [("defer", "14", "", "monday")]),
        ("14 -> epic 3", [("add", "14", "epic 3")]),
        ("14 -> Paint the north wall", [("rename", "14", "", "Paint the north wall")]),
        ('14 => "Paint the wall"', [("rename", "14", "", "Paint the wall")]),
        ("14 = Brush the gate", [("rename", "14", "", "Brush the gate")]),
        ("new names: 14 -> Brush, 15 -> Roller", [("rename", "14", "", "Brush"), ("rename", "15", "", "Roller")]),
        ("14 -> done, 15 -> in progress", [("finish", "14"), ("start", "15")]),
    ],
)
def test_an_arrow_leads_to_a_state_or_a_name(line: str, expected: list[tuple[str, ...]]) -> None:
    """What stands behind an arrow says what is meant."""
    assert read(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("subtask of 14 -> prime the wall", ("subtask", ("prime the wall",), "14", "")),
        ("story in epic 3 => Bird boxes", ("story", ("Bird boxes",), "epic 3", "")),
        ("task under 14 - oil the gate", ("task", ("oil the gate",), "14", "")),
        ("new subtask 14: oil the gate", ("subtask", ("oil the gate",), "14", "")),
        ("new task (epic 3): oil the gate", ("task", ("oil the gate",), "epic 3", "")),
        ("mk task 'buy yeast' prio 2", ("task", ("buy yeast",), "", "2")),
        ("+ story Bird boxes", ("story", ("Bird boxes",), "", "")),
        ("bug: gate squeaks when it rains", ("task", ("gate squeaks when it rains",), "", "")),
        (
            "Add the following as tasks to the fair epic: booth; banner",
            ("task", ("booth", "banner"), "the fair epic", ""),
        ),
        ("add these as stories under 3: booth; banner", ("story", ("booth", "banner"), "3", "")),
        ("I'd like 2 tasks under #12: one each for bread and cake", ("task", ("bread", "cake"), "#12", "")),
        ("split 14: sand, prime, paint", ("", ("sand", "prime", "paint"), "14", "")),
        ("subtasks for 14: sand / prime / paint", ("subtask", ("sand", "prime", "paint"), "14", "")),
        ("one more story for epic nine plz, Search by colour", ("story", ("Search by colour",), "epic nine", "")),
        ("another story for the fair epic, find a band", ("story", ("find a band",), "the fair epic", "")),
    ],
)
def test_what_is_new_is_jotted_down(line: str, expected: tuple[str, tuple[str, ...], str, str]) -> None:
    """With its parent in front, in brackets or behind, and titles in any list."""
    assert made(line) == expected


@pytest.mark.parametrize(
    ("line", "person"),
    [
        ("put a story for bird boxes into milestone 2, Ada takes it", "Ada"),
        ("new task: order hinges, Ada does it", "Ada"),
        ("add a subtask for Jo to 14: sand the rail", "Jo"),
        ("new task for Ada: oil the gate", "Ada"),
        ("task for me: oil the gate", "me"),
        ("create a task for me to oil the gate", "me"),
        ("a task for @ada: oil the gate", "ada"),
    ],
)
def test_what_is_new_is_for_somebody(line: str, person: str) -> None:
    """The person is no part of the title, and is given what has just been made."""
    new, given = parse(line).intents
    assert (given.action.value, given.target, given.value) == ("assign", "it", person)
    assert not any(person in title for title in new.titles)


def test_what_a_story_is_about_is_no_person() -> None:
    """Only tasks are for somebody; "a story for Android" is about it."""
    assert made("new story for Android: dark mode") == ("story", ("Android: dark mode",), "", "")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("nobody reads 54, make it lowest", [("prioritise", "54", "", "5")]),
        ("everyone asks about 54, put it on top", [("prioritise", "54", "", "1")]),
        ("54 is too big for Jo, give it to Ada", [("assign", "54", "", "Ada")]),
        ("the mayor hates the kiln story, make it urgent", [("prioritise", "the kiln story", "", "1")]),
        ("no one is on 54 anymore, unassign", [("assign", "54")]),
        ("we won't get to 54 this week, move it to the 9th", [("defer", "54", "", "the 9th")]),
        ("we have 3 days left, make it urgent", [("prioritise", "it", "", "1")]),
        ("the client is happy, mark it done", [("finish", "it")]),
        ("bank said ok, 54 is free again", [("unblock", "54")]),
        ("not stuck on 54 anymore", [("unblock", "54")]),
        ("since I'm at the dentist until noon, could Ada take 54 from me please", [("assign", "54", "", "Ada")]),
        ("everything under 54 is finished, so 54 is done", [("finish", "54")]),
        ("finally nailed 54, mark done, next?", [("finish", "54"), ("next", "")]),
        ("defer 54 to may and make a note there: no money", [("defer", "54", "", "may"), ("note", "", "", "no money")]),
        ("why is 12 p1? make it 3", [("why", "", "", "12 p1"), ("prioritise", "it", "", "3")]),
    ],
)
def test_it_is_what_the_reason_names(line: str, expected: list[tuple[str, ...]]) -> None:
    """A reason in front names the work; a count, or no work at all, leaves "it" as it is."""
    assert read(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "typo in 54's title, should be 'Kiln shelves'", "typo in 54: it's Kiln shelves",
        "54's title has a typo, it should say Kiln shelves", "the name of 54 is stupid, call it Kiln shelves",
        "54's name is too long, make it Kiln shelves", "54 has a silly title, better: Kiln shelves",
        "the title of 54 is outdated, rename it to Kiln shelves", "new title 54: Kiln shelves",
    ],
)  # fmt: skip
def test_a_bad_title_is_told_with_the_better_one(line: str) -> None:
    """What is wrong with the old one is never taken for the new."""
    assert read(line) == [("rename", "54", "", "Kiln shelves")]


def test_a_title_that_is_only_called_bad_stays() -> None:
    """Without a better one there is nothing to rename it to."""
    assert read("the title of 54 is misleading") == []


@pytest.mark.parametrize(
    "line",
    [
        "close 14 as duplicate", "close 14 as won't fix", "close 14 as a dupe of 12", "mark 14 obsolete",
        "resolve 14 as wontfix", "close 14, it's a dup", "close 14 (duplicate)", "14 is obsolete, close it",
        "14 is a duplicate of 12, kill it", "14: cancel", "14 should be deleted", "14 can be cancelled",
        "out of budget, cancel 14",
        "we won't do 14, close it", "14 won't happen, drop it",
    ],
)  # fmt: skip
def test_what_is_closed_for_nothing_is_cancelled(line: str) -> None:
    """It is not finished; that it is cancelled is asked back elsewhere."""
    assert read(line) == [("cancel", "14")]


@pytest.mark.parametrize(
    "line",
    [
        "don't close 14 as duplicate", "should I close 14 as a duplicate?", "if 14 is a duplicate, close it",
        "Bob closed 14 as duplicate", "Bob says 14 is obsolete, close it", "14 is obsolete", "14: don't drop it",
        "14, drop it?", "cancelled: 14?", "14 is a duplicate of 12. Close it.", "maybe close 14 as a dupe",
        "mark 14 as not a duplicate", "rename 14 to Wontfix: 15", "note: wontfix: 14", "never mark 14 obsolete",
        "I was about to cancel 14", "14 won't happen before june", "CANCEL #13?",
        "can 14 be deleted?", "should 14 be deleted?", "Bob says 14 should be deleted", "14 should not be deleted",
    ],
)  # fmt: skip
def test_nothing_is_cancelled_or_finished_where_that_is_in_doubt(line: str) -> None:
    """Asked, forbidden, told of others, supposed, or only a state."""
    assert not {intent.action for intent in parse(line).intents} & {*DESTRUCTIVE, "finish"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("14 asap", [("prioritise", "14", "", "1")]),
        ("p3 14", [("prioritise", "14", "", "3")]),
        ("14 down a notch", [("prioritise", "14", "", "lower")]),
        ("on 14 now", [("start", "14")]),
        ("hacking on 14", [("start", "14")]),
        ("closes #14", [("finish", "#14")]),
        ("14 landed on main", [("finish", "14")]),
        ("stuck on 14, need the keys", [("block", "14", "", "need the keys")]),
        ("14 not this sprint", [("defer", "14", "", "this sprint")]),
        ("Ada on 14", [("assign", "14", "", "Ada")]),
        ("14 from Jo to Ada", [("assign", "14", "", "Ada")]),
        ("let Ada have a go at 14", [("assign", "14", "", "Ada")]),
        ("CI is red on 14", [("report", "14", "", "CI is red")]),
        ("14: 80%", [("report", "14", "", "80%")]),
        ("14 is 3x faster now", [("report", "14", "", "3x faster now")]),
        ("14 deployed to staging, no errors", [("report", "14", "", "deployed to staging, no errors")]),
        ("% complete of epic 3", [("status", "epic 3")]),
        ("did 14 ship?", [("status", "14")]),
        ("continue where we left off with the gate epic", [("resume", "the gate epic")]),
        ("assign Close the gate to Nina", [("assign", "Close the gate", "", "Nina")]),
        ("I finished yesterday the task of the oven", [("finish", "the task of the oven")]),
        ("anything left that I should do?", [("next", "")]),
        ("how would one cancel an epic here?", [("help", "")]),
    ],
)
def test_fragments_are_read(line: str, expected: list[tuple[str, ...]]) -> None:
    """Work and a word or two beside it."""
    assert read(line) == expected


@pytest.mark.parametrize(
    ("line", "decided"),
    [
        ("for 71 we settled on clay pipes", "clay pipes"),
        ("for the roof we went with slate", "slate"),
        ("team vote: clay pipes", "clay pipes"),
        ("result of the vote: clay pipes", "clay pipes"),
        ("clay pipes won the vote", "clay pipes"),
        ("clay pipes, decided", "clay pipes"),
        ("for hinges use steel", "steel"),
        ("after the spike we're going with steel", "steel"),
        ("steel it is then", "steel"),
    ],
)
def test_decisions_are_told_in_many_ways(line: str, decided: str) -> None:
    """Votes, what was settled for something, and what is called final."""
    assert read(line) == [("decide", "", "", decided)]


@pytest.mark.parametrize(
    "line",
    [
        "the dishwasher is broken again", "the train is late again", "the lift is stuck", "our dog ran away",
        "the meeting took forever", "I was about to close 31 but then the phone rang", "I almost closed 31",
        "leave 22 open", "keep 22 open", "that can go", "don't assign 14 to me",
    ],
)  # fmt: skip
def test_nothing_is_asked_for(line: str) -> None:
    """The world around us, what nearly happened, and what is to stay as it is."""
    assert read(line) == []


def test_what_is_to_stay_does_not_spoil_the_rest() -> None:
    """Only the command beside it is carried out."""
    assert read("finish 21 but keep 22 open") == [("finish", "21")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mk task x", "create task x"),
        ("close 12 and reprio 13 to 1", "close 12 and reprioritise 13 to 1"),
        ("[x] 14", "done: 14"),
        ("assign 12 to mk", ""),
        ("order the mk 2 pump", ""),
    ],
)
def test_short_verbs_are_written_out_where_a_command_begins(line: str, expected: str) -> None:
    """Nowhere else, since there they may be names."""
    assert written_out(line) == expected


def test_a_rule_needs_its_rarest_words() -> None:
    """So few lines are held against it: of several groups that must fit, one without common words."""
    (rule,) = read_rules("defer\n    <T> (is|are) [~ADV ](parked|shelved)")
    assert rule.needs == frozenset({"parked", "shelved"})
    (rule,) = read_rules("depend\n    <T> before <O>")
    assert rule.needs == frozenset({"before"})

"""Must-keeps are found in prose of six languages, in records and in tool output, and settled among each other.

Accuracy on unseen writers is measured on the test split of `benchmarks/data/facts.jsonl`.
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations, product
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks._facts import load_records
from benchmarks.facts import mended, tally_records
from orchestra_mem.core.facts.classifier import OPEN, signs_of
from orchestra_mem.core.facts.extraction import find_in_operations, find_in_text
from orchestra_mem.core.facts.pairs import likelihood
from orchestra_mem.core.facts.prose import reads_as_prose
from orchestra_mem.core.facts.superseding import contradicted, settle
from orchestra_mem.core.speakers import passage_of
from orchestra_mem.types import Author, Json, MustKeep, MustKeepKind, MustKeepStatus, Operation
from tests.builders import cases, promised
from tests.timing import assert_linear, assert_quick, repeated

START = datetime(2025, 1, 15, 14, 30, tzinfo=UTC)
DATA = Path(__file__).parents[2] / "benchmarks" / "data"
STANDING, SUPERSEDED, DONE = MustKeepStatus.STANDING, MustKeepStatus.SUPERSEDED, MustKeepStatus.DONE


def _found(text: str, *, operation: int = 1, speaker: str = "") -> tuple[MustKeep, ...]:
    return find_in_text(text, operation=operation, timestamp=START + timedelta(minutes=operation), speaker=speaker)


def _operation(operation_type: str, data: Json, number: int = 1) -> Operation:
    return Operation(id=number, session="s", type=operation_type, data=data, timestamp=START, tokens=1, entry_tokens=1)


def _facts(operation_type: str, data: Json) -> list[tuple[str, str]]:
    return [(fact.kind.value, fact.text) for fact in find_in_operations([_operation(operation_type, data)])[0]]


def _fact(text: str, operation: int, kind: MustKeepKind = MustKeepKind.DECISION) -> MustKeep:
    when = START + timedelta(minutes=operation)
    return MustKeep(kind=kind, text=text, operation=operation, timestamp=when, id=operation)


def test_facts_of_unread_writers_are_found() -> None:
    """On records of unseen writers, recall, precision and accuracy of kinds reach their thresholds."""
    tally = tally_records(load_records(DATA / "facts.jsonl", "test"))
    assert tally.marked >= 500
    assert tally.found / tally.marked >= 0.7
    assert tally.right_kind / tally.marked >= 0.55
    assert tally.told_rightly / tally.told >= 0.75
    assert min(share for _, share, _ in tally.recall("language")) >= 0.5


def test_two_decisions_of_one_form_stand_side_by_side() -> None:
    """A later decision supersedes a contradicted one, and rarely an unrelated one of the same form."""
    gone: dict[bool, list[bool]] = {True: [], False: []}
    marked: dict[bool, list[bool]] = {True: [], False: []}
    against: dict[bool, list[bool]] = {True: [], False: []}
    for older, newer, takes_back in cases("a_later_decision_takes_back_an_earlier_one"):
        facts = [_fact(older, 1), _fact(newer, 5)]
        settled = settle(facts)[0]
        gone[takes_back].append(settled.status is SUPERSEDED)
        marked[takes_back].append(settled.superseded_by > 0)
        against[takes_back].append(contradicted(facts[:1], facts[1:]) != [None])
    assert [len(each) for each in gone.values()] == [30, 30]
    assert sum(gone[False]) <= 1
    assert sum(against[False]) <= 3
    assert sum(gone[True]) >= 24  # the others are marked as perhaps superseded
    assert sum(marked[True]) >= 29
    assert sum(against[True]) >= 25


def test_a_new_value_replaces_and_another_subject_does_not() -> None:
    """A changed number, date or choice supersedes; the same about another customer, service or table supersedes not."""
    gone: dict[bool, list[str]] = {True: [], False: []}
    for kind, older, newer, replaces in cases("a_new_value_replaces_and_another_subject_does_not"):
        older_fact, newer_fact = (_fact(text, at, MustKeepKind(kind)) for at, text in ((1, older), (2, newer)))
        if settle([older_fact, newer_fact])[0].status is SUPERSEDED:
            gone[replaces].append(older)
    assert len(gone[True]) == 8
    assert len(gone[False]) <= 1  # of 28


@pytest.mark.parametrize(
    ("older", "newer", "status"),
    [
        ("The shop closes at 18:00.", "On December 24 the shop closes at 13:00.", STANDING),
        ("Orders close at 17:00.", "For the sailing club orders close at 12:00.", STANDING),
        ("The shop opens at 6:30.", "On Sundays the shop opens at 8:00.", STANDING),
        ("The shop opens at 6:30.", "From Monday the shop opens at 8:00.", SUPERSEDED),
        ("The shop opens at 6:30.", "The shop now opens at 8:00.", SUPERSEDED),
    ],
)
def test_an_exception_leaves_the_general_decision(older: str, newer: str, status: MustKeepStatus) -> None:
    """A value for some day, place or customer ends no value for all others; a new value from some day on does."""
    assert settle([_fact(older, 1), _fact(newer, 2)])[0].status is status


@pytest.mark.parametrize(("language", "decisions"), cases("unrelated_decisions_in_one_form_stand"))
def test_unrelated_decisions_in_one_form_stand(language: str, decisions: list[str]) -> None:
    """Decisions that share only a form, as `We decided to` or `Never use`, end none of each other, in either order."""
    facts = [[_fact(text, at, MustKeepKind.DECISION) for text in decisions] for at in (1, 9)]
    pairs = [(older, newer) for older, newer in product(*facts) if older.text != newer.text]
    settled = [settle(pair)[0] for pair in pairs]
    assert [fact.text for fact in settled if fact.status is SUPERSEDED] == []


def test_a_second_duty_or_limit_ends_no_first() -> None:
    """A person may have several duties, and things several limits, in any language; a new value supersedes the old."""
    ended: dict[bool, list[bool]] = {True: [], False: []}
    for kind, older, newer, things, values in cases("a_second_duty_or_limit_ends_no_first"):
        for (thing, value), (other, new) in permutations(product(things, values), 2):
            first = _fact(older.format(thing=thing, value=value), 1, MustKeepKind(kind))
            later = _fact(newer.format(thing=other, value=new), 9, MustKeepKind(kind))
            ended[thing == other].append(settle([first, later])[0].status is SUPERSEDED)
    assert sum(ended[False]) <= 0.02 * len(ended[False])
    assert sum(ended[True]) >= 0.8 * len(ended[True])


def test_a_fact_takes_the_place_of_one_and_puts_the_next_in_doubt() -> None:
    """Of two facts that a later one contradicts, the likelier is superseded and the other only marked."""
    said = (
        "Never deploy the web shop on Fridays.",
        "Deploy the web shop on Fridays never, not even small things.",
        "Deploying the web shop on Fridays is allowed from now on.",
    )
    *facts, last = [_fact(text, number) for number, text in enumerate(said, 1)]
    likelier, other = sorted(facts, key=lambda fact: -likelihood(last, fact, signs_of([last.text])[0].tolist()))
    marks = {each.id: (each.status is SUPERSEDED, each.superseded_by) for each in settle([*facts, last], known=2)}
    assert marks == {likelier.id: (True, 3), other.id: (False, 3), last.id: (False, 0)}


def test_a_new_value_replaces_the_old_one_beside_an_open_item_about_it() -> None:
    """A decision with a new value ends the old one, not an open item that shares its topic, however near in words."""
    old = _fact("The monthly house contribution is 48 euros per flat from January 2027.", 1)
    todo = _fact("remind flat 11 of the missing October contribution", 2, MustKeepKind.OPEN_ITEM)
    new = _fact("The house contribution will be 52 euros per flat from January 2027, not 48.", 8)
    assert [each.status for each in settle([old, todo, new])] == [SUPERSEDED, STANDING, STANDING]


@pytest.mark.parametrize(("kind", "text"), cases("plain_facts_are_found"))
def test_plain_facts_are_found(kind: str, text: str) -> None:
    """A fact in plain words is found, with its kind."""
    assert [(fact.kind.value, fact.text) for fact in _found(text)] == [(kind, text)]


@pytest.mark.parametrize(("kind", "data", "facts"), promised("an_operation_states_these_facts"))
def test_an_operation_states_these_facts(kind: str, data: Json, facts: list[list[str]]) -> None:
    """An operation of this type, with these data, states just these facts."""
    assert [[*fact] for fact in _facts(kind, data)] == facts


def test_a_fact_that_was_cut_says_so() -> None:
    """A sentence that is too long for a fact is cut at the end of a clause, and the cut is marked."""
    reason = "because the old one loses its network every other night and nobody is awake to restart it before nine"
    said = f"We decided to move the nightly export to the queue workers in the other building, {reason}, {reason}."
    assert [fact.text for fact in _found(said)] == [f"{said.partition(f', {reason}.')[0]} …"]


def test_a_page_with_its_address_states_no_fact() -> None:
    """A long text beside a `url` is what others wrote on that page. A shorter one, as of a ticket, is the project's."""
    rule, page = "Managers must keep the water table high.", "The fen stores carbon and the reed grows. " * 300
    data: Json = {"url": "https://fens.example/1", "text": f"{page}{rule}", "note": "Never cite this page."}
    assert _facts("web_page", data) == [("constraint", "Never cite this page.")]
    assert _facts("web_page", {"pages": [data]}) == [("constraint", "Never cite this page.")]
    ticket: Json = {"url": "https://fens.example/1", "body": f"{page[:3_000]}\n\n{rule}"}
    assert ("constraint", rule) in _facts("ticket", ticket)


@pytest.mark.parametrize("field", ["text", "decision"])
def test_the_reason_for_a_decision_is_no_decision(field: str) -> None:
    """What is given as the reason for a decision is not decided; a decision that it repeats, or alone states, is."""
    for reason in ("They need no model of our own.", "The bank offers no API.", "We cannot afford a second server."):
        assert _facts("decision", {field: "We use Redis for the queue.", "reason": reason}) == [
            ("decision", "We use Redis for the queue.")
        ]
    two = ["keep the monolith", "split the API later"]
    repeated: Json = {"decisions": [*two], "reason": "keep the monolith until the team grows"}
    assert _facts("decision", repeated) == [("decision", each) for each in two]
    deferred: Json = {"task": "the search", "reason": "We decided to use Redis for the queue first."}
    assert _facts("task_execution", deferred) == [("decision", "We decided to use Redis for the queue first.")]


def test_what_is_pasted_into_a_message_is_not_taken_for_a_persons_words() -> None:
    """In a message to a model that is too long to be typed, only what is likely in a model's text is a fact."""
    said, decided = "The cache holds stale rows after a restore.", "We decided to use port 8080 for the proxy."
    pasted = "I looked at the parser and then at the tests of the second page. " * 40
    assert _facts("message", {"role": "user", "text": f"{said} {decided}"}) == [
        ("insight", said),
        ("decision", decided),
    ]
    assert _facts("message", {"role": "user", "text": f"{said} {decided}\n\n{pasted}"}) == [("decision", decided)]
    rule = "Never push to main without a review."
    assert _facts("message", {"role": "user", "text": f"{rule}\n\n{pasted}"}) == [("constraint", rule)]


@pytest.mark.parametrize("added", ["```\n{}\n```", "<system-reminder>\n{}\n</system-reminder>"])
def test_what_a_person_types_is_theirs_however_much_code_or_output_comes_with_it(added: str) -> None:
    """Fenced code and what a harness adds do not count towards the length at which a message is taken as pasted."""
    said = "The cache holds stale rows after a restore."
    text = f"{said}\n\n{added.format('a line of the output' * 200)}"
    assert _facts("message", {"role": "user", "text": text}) == [("insight", said)]


@pytest.mark.parametrize("time", ["2026/02/16 14:00", "2026-02-16 14:00", "2026-02-16T14:00", "2026-02-16 14:00:"])
def test_a_dated_note_is_no_log_line(time: str) -> None:
    """Only a line whose time has seconds, or is followed by a level, is a log line: people write notes without them."""
    note = f"{time} We decided to move the release to Friday."
    assert _facts("message", {"role": "user", "text": note}) == [("decision", note)]
    assert not reads_as_prose(f"{time.removesuffix(':')}:51 GenerateAgentSession: Built exchanges count=0")
    assert not reads_as_prose(f"{time} INFO app: started")
    assert not reads_as_prose(f"[{time}:03,123] ERROR app: started")


@pytest.mark.parametrize(
    "said", ["[10:00] Ana: The release moves to Friday.", "配置(默认)、端口(8080)、代理(nginx)都要改，参数(见下)不变。"]
)
def test_a_line_of_a_chat_and_a_dense_sentence_are_prose(said: str) -> None:
    """A time before a speaker, and brackets in a sentence of Chinese, do not make it a log line or code."""
    assert reads_as_prose(said)
    assert not reads_as_prose("[10:00:02] INFO: the worker started")


def test_the_error_at_the_end_of_a_long_output_is_kept() -> None:
    """If a field says that a command failed, the end of its output is searched, however long the output is."""
    output = "".join(f"copied file {number} of 2,000\n" for number in range(2_000))
    output += "Traceback (most recent call last):\n  ...\nTimeoutError: the upload took more than 300 s"
    assert _facts("shell", {"command": "make", "output": output, "exit_code": 1}) == [
        ("failure", "Traceback (most recent call last):"),
        ("failure", "TimeoutError: the upload took more than 300 s"),
        ("failure", "exit code: 1"),
    ]
    assert _facts("shell", {"command": "make", "output": output, "exit_code": 0}) == []


@pytest.mark.parametrize(("heading", "items", "kind"), cases("what_is_listed_below_a_heading_is_of_its_kind"))
def test_what_is_listed_below_a_heading_is_of_its_kind(heading: str, items: tuple[str, ...], kind: str) -> None:
    """The kind of a list item follows from the heading above, in any language."""
    text = "\n".join(("# Minutes", "", heading, *(f"- {item}" for item in items)))
    assert _facts("note", {"text": text}) == [(kind, item) for item in items]


@pytest.mark.parametrize("value", ["no", "None.", "no errors", "nothing yet", "n/a", "-", "{}"])
def test_a_field_that_tells_of_nothing_is_no_fact(value: str) -> None:
    """A field whose value means "none", such as `n/a`, is no fact."""
    assert _facts("step", {"error": value, "constraints": [value], "next_steps": value}) == []


def test_a_long_text_keeps_its_likeliest_facts() -> None:
    """Facts of a long text make up at most an eighth of it."""
    text = " ".join(f"Room {number} must be locked by the porter at night." for number in range(1_000))
    assert 0 < sum(len(fact.text) for fact in _found(text)) <= len(text) / 8


_WORDS = st.sampled_from(
    (
        "we never must only always deploy on Fridays . ! ? , ; not Tom owns billing decided to use the #12 src/a.py if "
        "no please don't ’ is are \n - * ``` 250 ms failed fixed still need she He I'm until Fri. “x” done: now "
        "instead # ## : [ ] [x] 周五 禁止 niemals"
    ).split(" ")
)
_TEXTS = st.lists(_WORDS | st.text(max_size=6), max_size=60).map(" ".join)


@settings(deadline=None, max_examples=50)
@given(text=_TEXTS, speaker=st.sampled_from(["", "Zoe"]))
@example(text="we \n - never", speaker="")
def test_every_fact_is_a_passage(text: str, speaker: str) -> None:
    """A fact is a verbatim passage of its source, except for white space, the speaker's name and the mark of a cut."""
    source = " ".join(text.split())
    for fact in _found(text, speaker=speaker):
        passage = " ".join(passage_of(fact).split())
        parts = [passage] if passage in source else passage.rsplit(". ", 1)
        assert all(part in source for part in parts)


@pytest.mark.parametrize("unit", ["a ", "never ", "\n- no x in y", "Tom ", "`", '"', "1. ", "<a-log>", "@@ -1 +1 @@\n"])
def test_time_is_linear(unit: str) -> None:
    """Finding facts takes time linear in the length of a repetitive text."""
    assert_linear(lambda size: find_in_text(repeated(unit, size), operation=1, timestamp=START), 50_000)


# Superseding


@pytest.mark.parametrize(("older", "newer"), cases("a_later_decision_takes_the_place_of_an_earlier_one"))
def test_a_later_decision_takes_the_place_of_an_earlier_one(older: str, newer: str) -> None:
    """The earlier decision is superseded and names the later, whatever their order in the list."""
    first, second = _fact(older, 3), _fact(newer, 8)
    assert settle([second, first]) == (second, replace(first, status=SUPERSEDED, superseded_by=8))


@pytest.mark.parametrize("others", [20, 400])
@pytest.mark.parametrize("said", cases("a_plain_fact_is_found_among_any_number_of_other_sentences"))
def test_a_plain_fact_is_found_among_any_number_of_other_sentences(said: str, others: int) -> None:
    """A fact in plain words is found in a message of any length that states nothing else of importance."""
    sentences = [f"I opened file {number} and looked at the code for a while." for number in range(others)]
    sentences.insert(others // 2, said)
    assert said in [text for _, text in _facts("message", {"text": " ".join(sentences)})]


def test_of_operations_minutes_apart_the_later_recorded_is_the_later() -> None:
    """A decision supersedes an earlier recorded one though its machine's clock is minutes behind, not an hour."""
    first = _fact("We use MySQL for the orders.", 3)
    second = _fact("We use PostgreSQL for the orders, no longer MySQL.", 8)
    ahead = replace(first, timestamp=second.timestamp + timedelta(minutes=2))
    assert settle([ahead, second]) == (replace(ahead, status=SUPERSEDED, superseded_by=8), second)
    written = replace(second, operation=0, timestamp=first.timestamp + timedelta(minutes=1), author=Author.PERSON)
    behind = replace(first, operation=4, id=4)
    assert [each.status for each in settle([replace(ahead, text="It rains."), behind, written])][1:] == [
        SUPERSEDED, STANDING,
    ]  # fmt: skip
    imported = replace(second, timestamp=first.timestamp - timedelta(hours=1))
    assert [fact.status for fact in settle([first, imported])] == [STANDING, SUPERSEDED]


@pytest.mark.parametrize(("kind", "told", "settled"), promised("what_operations_leave_standing"))
def test_what_operations_leave_standing(kind: str, told: list[Json], settled: list[list[object]]) -> None:
    """The facts of these operations, each with the number of its operation, have these statuses."""
    found = find_in_operations([_operation(kind, data, number) for number, data in enumerate(told, 1)])
    facts = [replace(fact, id=number) for number, fact in enumerate((each for row in found for each in row), 1)]
    assert [[fact.operation, fact.text, fact.status] for fact in settle(facts)] == settled


def test_a_check_that_passes_ends_no_failure_of_another_check() -> None:
    """A build that passes leaves the failure of the same subject's lint."""
    lint = _fact("lint: failed (api)", 1, MustKeepKind.FAILURE)
    build = _fact("build: passed (api)", 2, MustKeepKind.COMPLETION)
    assert settle([lint, build]) == (lint, build)


def test_a_named_task_ends_no_other_duty() -> None:
    """A completed task ends the open item that names it, and no other one that only shares a name or a rare word."""
    ended: dict[bool, int] = {True: 0, False: 0}
    for duty, task, same in cases("a_named_task_ends_no_other_duty"):
        done = _fact(f"status: completed ({task})", 9, MustKeepKind.COMPLETION)
        ended[same] += settle([_fact(duty, 1, MustKeepKind.OPEN_ITEM), done])[0].status is DONE
    assert ended == {True: 16, False: 0}


def test_a_report_on_another_thing_of_a_kind_ends_no_duty() -> None:
    """`Bug 15 is fixed` leaves `fix bug 12` open, and `bug 12 is fixed` does not; the day of a date is no number."""
    for duty, report, same in cases("a_report_on_another_thing_of_a_kind_ends_no_duty"):
        done = _fact(report, 9, MustKeepKind.COMPLETION)
        ended = settle([_fact(duty, 1, MustKeepKind.OPEN_ITEM), done])[0].status is DONE
        assert ended is same, (duty, report)


@pytest.mark.parametrize(
    ("failure", "report", "status"),
    [
        ("Oven 2 is broken.", "Oven 1 works again.", STANDING),
        ("Oven 2 is broken.", "Oven 2 works again.", DONE),
        ("The sensor 4 is broken.", "Sensor 3 works again.", STANDING),
        ("Lift B is stuck.", "Lift A runs again.", STANDING),
        ("Kasse 3 ist kaputt.", "Kasse 1 ist repariert.", STANDING),
        ("The fridge shows 12 degrees instead of 4.", "The fridge shows 4 degrees again.", DONE),
        ("Tests fail with exit code 1.", "The tests pass again with exit code 0.", DONE),
    ],
)
def test_a_repair_of_one_thing_ends_no_failure_of_another(failure: str, report: str, status: MustKeepStatus) -> None:
    """A failure is of the thing that it begins with; other numbers in it are values, which a repair changes."""
    said = [_fact(failure, 1, MustKeepKind.FAILURE), _fact(report, 9, MustKeepKind.COMPLETION)]
    assert settle(said)[0].status is status


@pytest.mark.parametrize("kind", [MustKeepKind.OPEN_ITEM, MustKeepKind.FAILURE, MustKeepKind.COMPLETION])
def test_what_is_said_again_in_the_same_words_stands_once(kind: MustKeepKind) -> None:
    """Of equal failures, open items or completions the last one stands, of each agent if agents are kept apart."""
    facts = [_fact("Please add a docstring to the parser.", number, kind) for number in (1, 2, 3)]
    assert [(each.status, each.superseded_by) for each in settle(facts)] == [
        (SUPERSEDED, 2), (SUPERSEDED, 3), (STANDING, 0),
    ]  # fmt: skip
    assert settle(facts[2:], known=1)[0] == facts[2]
    apart = settle(facts, agents={1: "ann", 2: "ben", 3: "ann"})
    assert [each.status for each in apart] == [SUPERSEDED, STANDING, STANDING]
    persons = replace(facts[0], author=Author.PERSON)
    assert [each.status for each in settle([persons, *facts[1:]])] == [STANDING, SUPERSEDED, SUPERSEDED]


def test_tries_at_much_work_are_settled_in_linear_time() -> None:
    """Settling failures and completions of many subjects takes time about linear in their number."""

    def outcomes(count: int) -> list[MustKeep]:
        failed = [_fact(f"status: failed (job {n})", n, MustKeepKind.FAILURE) for n in range(1, count)]
        done = [_fact(f"status: completed (work {n})", count + n, MustKeepKind.COMPLETION) for n in range(1, count)]
        return [*failed, *done]

    assert_linear(lambda count: settle(outcomes(count)), 4_000)


@pytest.mark.parametrize(("rule", "report", "status"), cases("a_report_ends_a_rule_only_if_it_lifts_it"))
def test_a_report_ends_a_rule_only_if_it_lifts_it(rule: str, report: str, status: str) -> None:
    """What is done in keeping with a rule, or near what the rule is about, leaves it active, however near in words."""
    said = [_fact(rule, 1, MustKeepKind.CONSTRAINT), _fact(report, 21, MustKeepKind.COMPLETION)]
    assert settle(said)[0].status == status


def test_what_is_about_a_failure_does_not_close_it() -> None:
    """On unseen pairs a fix closes at least 40% of failures, another completion on the topic at most 15%."""
    rightly, wrongly = mended("test")
    assert rightly >= 0.4
    assert wrongly <= 0.15


def test_a_sentence_that_only_proposes_is_told_from_a_decision() -> None:
    """Of pairs of a decided and an open sentence in like words, most open ones are recognised and no decided one."""
    decided, left_open = zip(*cases("a_sentence_that_only_proposes_is_told_from_a_decision"), strict=True)
    assert len(decided) == 16
    assert sum(signs_of(decided)[:, OPEN] >= 0.3) == 0
    assert sum(signs_of(left_open)[:, OPEN] >= 0.3) >= 10


_POOL = st.sampled_from(
    [
        "We decided to go with Postgres.", "We switched to MySQL.", "Never deploy on Fridays.", "Scrap that.",
        "The talk starts at 4.", "The talk starts at 5.", "Tom owns billing.", "Bea owns billing now.",
    ]
)  # fmt: skip
_KINDS = st.sampled_from(list(MustKeepKind))


@settings(deadline=None, max_examples=40)
@given(picked=st.lists(st.tuples(_POOL, _KINDS), max_size=20), seed=st.integers(0, 1_000))
def test_settling_is_stable(picked: list[tuple[str, MustKeepKind]], seed: int) -> None:
    """Settling keeps texts and order, ignores the order given, and never supersedes the latest fact."""
    facts = [_fact(text, number, kind) for number, (text, kind) in enumerate(picked, 1)]
    settled = settle(facts)
    assert [replace(fact, status=STANDING, superseded_by=0) for fact in settled] == facts
    assert all(fact.status is STANDING for fact in settled[-1:])
    shuffled = list(facts)
    random.Random(seed).shuffle(shuffled)
    assert {fact.id: fact for fact in settle(shuffled)} == {fact.id: fact for fact in settled}


def test_settling_thousands_is_quick() -> None:
    """Two thousand facts are settled in less than 1.2 seconds."""
    texts = [f"The gate {n % 700} must be open in zone {n % 97} and hall {n % 31}." for n in range(2_000)]
    facts = [_fact(text, number, MustKeepKind.CONSTRAINT) for number, text in enumerate(texts, 1)]
    assert_quick(1.2, lambda: settle(facts))

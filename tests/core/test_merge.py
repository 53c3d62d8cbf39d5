"""Three-way merge: nobody's words get lost, and a person's stand."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.merge import Conflict, Merged, merge

LINE = st.sampled_from(["a\n", "b\n", "c\n", "\n", "- x\n", "d\r\n", "e"])
TEXT = st.lists(LINE, max_size=12).map("".join) | st.text(max_size=20)
SOLID = [f"line {number}\n" for number in range(12)]


@given(TEXT, TEXT)
def test_a_side_that_did_not_change_takes_the_other_whole(base: str, other: str) -> None:
    """With one side as the base, the other's text is the result, byte for byte and without conflict."""
    assert merge(base, base, other) == Merged(text=other)
    assert merge(base, other, base) == Merged(text=other)


@given(TEXT, TEXT)
def test_the_same_change_by_both_is_no_conflict(base: str, text: str) -> None:
    """merge(b, x, x) = x."""
    assert merge(base, text, text) == Merged(text=text)


@given(st.data())
def test_every_line_that_a_person_added_survives(data: st.DataObject) -> None:
    """Lines that only the person has are in the result, in the person's order, as often as the person wrote them."""
    base = data.draw(st.lists(LINE.filter(lambda line: line.endswith("\n")), max_size=10))
    machine = data.draw(st.lists(LINE.filter(lambda line: line.endswith("\n")), max_size=10))
    person = list(base)
    for number in range(data.draw(st.integers(0, 4))):
        person.insert(data.draw(st.integers(0, len(person))), f"person {number}\n")
    merged = merge("".join(base), "".join(machine), "".join(person)).text.splitlines(keepends=True)
    assert [line for line in merged if line.startswith("person")] == [
        line for line in person if line.startswith("person")
    ]


@given(st.data())
def test_what_a_person_deleted_is_not_brought_back_from_the_base(data: st.DataObject) -> None:
    """A line that the person took out and that the machine left alone is gone."""
    kept = data.draw(st.lists(st.booleans(), min_size=len(SOLID), max_size=len(SOLID)))
    person = [line for line, keep in zip(SOLID, kept, strict=True) if keep]
    at = data.draw(st.integers(0, len(SOLID)))
    machine = [*SOLID[:at], "machine\n", *SOLID[at:]]
    merged = merge("".join(SOLID), "".join(machine), "".join(person))
    assert [line for line in merged.text.splitlines(keepends=True) if line != "machine\n"] == person


@given(st.data())
def test_changes_apart_from_one_another_both_stand(data: st.DataObject) -> None:
    """Where an unchanged line lies between them, both changes are in the result and nothing is told."""
    place = data.draw(st.integers(1, len(SOLID) - 3))
    changed = [["machine\n"], [], ["machine\n", "machine\n"]]
    first, second = SOLID[:place], SOLID[place + 1 :]
    new = data.draw(st.sampled_from(changed))
    own = data.draw(st.sampled_from([["person\n"], [], ["person\n"] * 3]))
    machine = "".join([*new, *first[1:], SOLID[place], *second])
    person = "".join([*first, SOLID[place], *second[:-1], *own])
    assert merge("".join(SOLID), machine, person) == Merged(
        text="".join([*new, *first[1:], SOLID[place], *second[:-1], *own])
    )


def test_where_both_changed_the_same_lines_the_persons_stand_and_the_machines_are_told() -> None:
    """A conflict carries all three texts and the line at which the person's stand in the result."""
    merged = merge("a\nb\nc\n", "a\nmachine\nc\nd\n", "x\na\nperson\nc\n")
    assert merged == Merged(
        text="x\na\nperson\nc\nd\n",
        conflicts=(Conflict(line=3, base="b\n", machine="machine\n", person="person\n"),),
    )


def test_two_conflicts_are_told_each_with_its_line() -> None:
    """Lines are counted in the result, so an insertion before shifts them."""
    merged = merge("1\n2\n3\n4\n5\n", "m\n2\n3\nm\n5\n", "p\np\n2\n3\np\n5\n")
    assert merged.text == "p\np\n2\n3\np\n5\n"
    assert [(conflict.line, conflict.base, conflict.machine, conflict.person) for conflict in merged.conflicts] == [
        (1, "1\n", "m\n", "p\np\n"),
        (5, "4\n", "m\n", "p\n"),
    ]


def test_a_line_that_the_machine_took_out_and_a_person_changed_is_a_conflict() -> None:
    """The person's changed line stays."""
    merged = merge("a\nb\nc\n", "a\nc\n", "a\nB\nc\n")
    assert (merged.text, len(merged.conflicts)) == ("a\nB\nc\n", 1)


def test_line_ends_that_a_person_changed_stand_and_are_not_mixed_away() -> None:
    """A document saved with CRLF keeps it in every line that the person has; the machine's new lines are there too."""
    merged = merge("a\nb\n", "a\nb\nnew\n", "a\r\nb\r\n")
    assert merged.text.startswith("a\r\nb\r\n")


@given(TEXT, TEXT, TEXT)
def test_nothing_is_invented(base: str, machine: str, person: str) -> None:
    """Each line of the result is a line of one of the three, and none is there more often than in all together."""
    merged = merge(base, machine, person)
    counts = Counter(merged.text.splitlines())
    known = Counter(line for text in (base, machine, person) for line in text.splitlines())
    assert not counts - known


def test_a_document_of_the_largest_size_merges_in_a_moment() -> None:
    """Lists with blank lines between their items, a tenth of them changed on each side: under a second."""
    base = "".join(f"- fact number {i} about what was done here (K{i})\n\n" for i in range(1_200))
    machine, person = base.replace("7 about", "7 of"), base.replace("3 about", "3 on")
    start = time.perf_counter()
    merged = merge(base, machine, person)
    assert time.perf_counter() - start < 1.0
    assert merged == Merged(text=machine.replace("3 about", "3 on"))


def test_many_equal_lines_merge_in_a_moment() -> None:
    """Five thousand blank lines that both append to: under a second."""
    base = "\n" * 5_000
    start = time.perf_counter()
    merged = merge(base, f"{base}machine\n", f"person\n{base}")
    assert time.perf_counter() - start < 1.0
    assert merged == Merged(text=f"person\n{base}machine\n")


@pytest.mark.parametrize(
    ("base", "machine", "person", "merged"),
    [
        ("- a\n", "- a\n- new\n", "- a\n- mine\n", "- a\n- new\n- mine\n"),
        ("- None\n", "- new\n", "- None\n- mine\n", "- new\n- mine\n"),
        ("- a\n- step\n", "- a\n- step\n- next\n", "- a\n- [x] step\n", "- a\n- next\n- [x] step\n"),
        ("- old\n- older\n", "- newer\n- newest\n", "- old\n- older\n- mine\n", "- newer\n- newest\n- mine\n"),
        ("a\nb\n", "a\nb\nc\n", "a\r\nb\r\nmine\r\n", "a\r\nb\r\nc\r\nmine\r\n"),
    ],
)
def test_a_list_that_both_write_into_holds_both(base: str, machine: str, person: str, merged: str) -> None:
    """A line beside the machine's does not freeze its list, nor does an editor with other line ends."""
    assert merge(base, machine, person) == Merged(text=merged)

"""Three-way merge: no line is lost, and the person's version wins."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestra_mem.core.documents.conflicts import Conflict, Merged
from orchestra_mem.core.documents.merge import merge
from tests.builders import promised
from tests.timing import assert_quick

LINE = st.sampled_from(["a\n", "b\n", "c\n", "\n", "- x\n", "d\r\n", "e"])
TEXT = st.lists(LINE, max_size=12).map("".join) | st.text(st.characters(exclude_characters="\r"), max_size=20)


@given(TEXT, TEXT)
def test_a_side_that_did_not_change_takes_the_other_whole(base: str, other: str) -> None:
    """If only one side changed, or both alike, the result is the changed text, byte for byte."""
    assert merge(base, base, other) == Merged(text=other)
    assert merge(base, other, other) == Merged(text=other)
    assert merge(base, other, base) == Merged(text=other)


@pytest.mark.parametrize(("base", "machine", "person", "merged"), promised("what_both_wrote_stands"))
def test_what_both_wrote_stands(base: str, machine: str, person: str, merged: str) -> None:
    """Changes of both sides at different places are merged without a conflict, byte for byte."""
    assert merge(base, machine, person) == Merged(text=merged)


# Documents with sections, of which two sides add, delete, change and move single lines and ranges of lines.

POOL = ["# T", "## A", "## B", "### x", "- one", "- two", "- None", "", "text", "```", "A", "---"]


@st.composite
def edits(draw: st.DrawFn, base: list[str], own: str) -> list[str]:
    """Return a side's edit of a base, with lines of its own and of the pool."""
    lines = list(base)
    for number in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["insert", "delete", "change", "move"]))
        place = draw(st.integers(0, len(lines)))
        new = draw(st.sampled_from([f"- {own} {number}", f"## {own} {number}", "- both", *POOL]))
        if kind == "insert":
            lines.insert(place, new)
        elif kind == "delete":
            del lines[place : place + draw(st.integers(1, 3))]
        elif kind == "change":
            lines[place : place + 1] = [new]
        else:
            cut = lines[place : place + draw(st.integers(1, 4))]
            del lines[place : place + len(cut)]
            there = draw(st.integers(0, len(lines)))
            lines[there:there] = cut
    return lines


@st.composite
def three(draw: st.DrawFn) -> tuple[list[str], list[str], list[str]]:
    """Base, machine's text and person's text."""
    base = draw(st.lists(st.sampled_from(POOL), max_size=12))
    return base, draw(edits(base, "machine")), draw(edits(base, "person"))


def text_of(lines: list[str]) -> str:
    """Join lines to a text."""
    return "".join(f"{line}\n" for line in lines)


def said(lines: list[str]) -> Counter[str]:
    """Count the occurrences of each line that is not blank."""
    return Counter(line for line in lines if line.strip())


def merged_lines(sides: tuple[list[str], list[str], list[str]]) -> tuple[Merged, list[str]]:
    """Merge three texts; return the result and its lines."""
    base, machine, person = map(text_of, sides)
    found = merge(base, machine, person)
    return found, found.text.split("\n")


@settings(max_examples=100)
@given(three())
@example((["- 13", "- 1", "- 11", "### x"], ["- 1", "- 13", "### x"], ["- 11", "- 13", "- 1", "### x"]))
@example((["# T", "# T"], ["- both"], ["- both", "# T"]))
def test_no_line_is_lost_brought_back_or_made_up(sides: tuple[list[str], list[str], list[str]]) -> None:
    """The person's lines stay unless the machine deleted them; lines that the person deleted do not come back.

    Lines that the machine added are in the result or in a conflict, which is at its stated line.
    """
    base, machine, person = map(said, sides)
    found, lines = merged_lines(sides)
    assert not person - (base - machine) - said(lines)
    for line, count in said(lines).items():
        assert count <= person[line] + max(0, machine[line] - base[line])
    told = said([line for conflict in found.conflicts for line in conflict.machine.split("\n")])
    assert not machine - base - told - said(lines)
    assert set(lines) <= {"", *(line for side in sides for line in side)}
    for conflict in found.conflicts:
        assert "".join(f"{line}\n" for line in lines[conflict.line - 1 :]).startswith(conflict.person)
        assert conflict.machine != conflict.person


SECTIONS = [[f"## {name}", "", *(f"- {name} {number}" for number in range(4)), ""] for name in "ABCDE"]


@st.composite
def rewritten(draw: st.DrawFn, own: str, moving: bool) -> list[list[str]]:
    """Sections with changed, deleted, added and new items, and in another order if `moving`."""
    found = [list(section) for section in (draw(st.permutations(SECTIONS)) if moving else SECTIONS)]
    for section in found:
        for number in range(draw(st.integers(0, 2))):
            place = draw(st.integers(2, len(section) - 1))
            item = [f"- {own} {section[0]} {number}"] if draw(st.booleans()) else []
            section[place : place + draw(st.integers(0, 1)) * (place < len(section) - 1)] = item
    for number in range(draw(st.integers(0, 2))):
        found.insert(draw(st.integers(0, len(found))), [f"## {own} {number}", "", f"- {own} new {number}", ""])
    return found


@settings(max_examples=100)
@given(rewritten("machine", False), rewritten("person", True))
def test_merging_twice_changes_nothing(machine: list[list[str]], person: list[list[str]]) -> None:
    """Merging the result again changes nothing, with the old base (as after a crash) or the machine's text as base."""
    base, new, own = (text_of([line for section in side for line in section]) for side in (SECTIONS, machine, person))
    once = merge(base, new, own).text
    assert merge(base, new, once).text == once
    assert merge(new, new, once) == Merged(text=once)


@settings(max_examples=100)
@given(rewritten("machine", False), rewritten("person", True))
@example(
    [[*SECTIONS[0][:-1], "- machine", ""], *SECTIONS[1:]],
    [*SECTIONS[1:4], [*SECTIONS[0][:-2], ""], ["## person", "", "- person", ""], SECTIONS[4]],
)
def test_sections_stay_where_the_person_put_them_with_the_machines_changes_inside(
    machine: list[list[str]], person: list[list[str]]
) -> None:
    """Sections keep the person's order, and each line of the machine is under its heading or in a conflict."""
    base, new, own = (text_of([line for section in side for line in section]) for side in (SECTIONS, machine, person))
    found = merge(base, new, own)
    headings = [line for line in found.text.split("\n") if line.startswith("## ")]
    assert [line for line in headings if "machine" not in line] == [section[0] for section in person]
    told = "".join(conflict.machine for conflict in found.conflicts)
    inside: dict[str, list[str]] = {}
    for line in found.text.split("\n"):
        if line.startswith("## "):
            inside[line] = []
        elif inside:
            inside[headings[len(inside) - 1]].append(line)
    for section in machine:
        for line in section[1:]:
            assert "machine" not in line or line in inside.get(section[0], ()) or line in told


def test_sections_stay_in_the_persons_order_though_the_machine_moved_them() -> None:
    """If only the machine reorders the sections, the person's order stays, and each addition is in its section."""
    base, machine = "## A\n\n- a\n\n## B\n\n- b\n\n", "## B\n\n- b\n- c\n\n## A\n\n- a\n\n"
    person = base.replace("- a\n", "- a\n- mine\n")
    found = merge(base, machine, person)
    assert found.text.split("\n")[:9] == person.replace("- b\n", "- b\n- c\n").split("\n")[:9]
    assert found.conflicts == ()


def test_a_section_that_a_person_deleted_stays_deleted_and_what_the_machine_adds_to_it_is_told() -> None:
    """A machine's addition to a deleted section becomes a conflict, and no line of that section comes back."""
    base = "## A\n\n- a\n\n## B\n\n- b\n\n## C\n\n- c\n"
    person = "## A\n\n- a\n\n## C\n\n- c\n"
    assert merge(base, base.replace("- c\n", "- c\n- d\n"), person) == Merged(text=f"{person}- d\n")
    assert merge(base, base.replace("- b\n", ""), person) == Merged(text=person)
    assert merge(base, base.replace("- b\n", "- b\n- e\n"), person) == Merged(
        text=person, conflicts=(Conflict(line=5, base="## B\n\n- b\n\n", machine="## B\n\n- e\n", person=""),)
    )


def _shuffled(parts: list[str], step: int) -> str:
    """Return the parts in another order."""
    return "".join(parts[(number * step) % len(parts)] for number in range(len(parts)))


FACTS = [f"- fact {i} of what was done here on that day, and why it was (K{i})\n" for i in range(1_897)]
PARTS = [f"## S{i}\n\n" + "".join(FACTS[i * 10 : i * 10 + 10]) + "\n" for i in range(181)]
SPACED = "\n".join(FACTS[:1_200])
EQUAL = "the same line all over again, of sixty characters or more, ok\n"


@pytest.mark.parametrize(
    ("base", "machine", "person"),
    [
        ("".join(FACTS), "".join(FACTS).replace("7 of", "7 on"), "".join(FACTS).replace("3 of", "3 at")),
        ("".join(PARTS), "".join(PARTS).replace("7 of", "7 on"), _shuffled(PARTS, 50)),
        ("".join(PARTS), _shuffled(PARTS, 77), _shuffled(PARTS, 50).replace("## S", "## T")),
        (EQUAL * 2_000, "".join(EQUAL if i % 7 else "m\n" for i in range(2_000)), "p\n" + EQUAL * 1_900 + "q\n"),
        ("".join(FACTS), "".join(FACTS).replace("fact", "news"), "".join(FACTS).replace("fact", "word")),
        ("".join(FACTS), _shuffled(FACTS, 100), _shuffled(FACTS, 77)),
        (SPACED, SPACED.replace("7 of", "7 on"), SPACED.replace("3 of", "3 at")),
        ("\n" * 5_000, "\n" * 5_000 + "machine\n", "person\n" + "\n" * 5_000),
    ],
    ids=["edited", "moved", "moved by both", "all equal", "all different", "lines shuffled", "spaced", "blank"],
)
def test_two_documents_of_the_largest_size_merge_in_milliseconds(base: str, machine: str, person: str) -> None:
    """Texts of about 120 KB, including worst cases of line matching, merge in less than 100 ms."""
    assert_quick(0.1, lambda: merge(base, machine, person))

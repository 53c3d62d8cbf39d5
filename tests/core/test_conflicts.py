"""Conflicts in a document: both sides' words can be read, taken, and thrown away, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestra_mem.core.documents.conflicts import (
    ConflictBlock,
    Resolved,
    accept,
    faults,
    find_conflicts,
    mark,
    reject,
    without_conflicts,
)
from orchestra_mem.core.documents.markdown import split_blocks
from orchestra_mem.core.documents.merge import Merged, merge
from tests.builders import cases

BASE = "# T\n\n- a\n- b\n- c\n\n## End\n\n- x\n"
MACHINE = BASE.replace("- b\n", "- b by the machine -->\n")
PERSON = BASE.replace("- b\n", "- b by me\n- more\n")
MARKED = mark(merge(BASE, MACHINE, PERSON))
ID = find_conflicts(MARKED)[0].id
SHOWN = (
    "# T\n\n- a\n- b by me\n- more\n"
    "<!-- conflict eb46a5: the 2 lines above are yours and stand; the machine would write this instead. "
    "Delete this block, or: orchestra-mem accept eb46a5 -->\n"
    "> - b by the machine -->\n"
    "<!-- /conflict eb46a5: 2 lines, d0d8ca -->\n"
    "- c\n\n## End\n\n- x\n"
)

LINES = st.lists(
    st.sampled_from(
        ["a", "b", "", "  c ", "> d", "# e", "## f", "```", "<!-- g -->", "--> h", "<!-- /conflict 3f9a1c -->", "\tj"]
    ),
    max_size=6,
)


@st.composite
def conflicting(draw: st.DrawFn, end: str = "\n") -> Merged:
    """A merge with at least one conflict, of lines that like to break markers."""
    top, machine, person, bottom = draw(LINES), draw(LINES), draw(LINES), draw(LINES)
    head, tail = ["# top", *top, "anchor 1"], ["anchor 2", *bottom]
    base = [*head, "old", *tail]
    new = [*head, "the machine's", *machine, *tail]
    own = [*head, "the person's", *person, *tail]
    found = merge(*("".join(f"{line}{end}" for line in lines) for lines in (base, new, own)))
    assume(found.conflicts)
    return found


def test_a_conflict_reads_well_and_tells_all_that_is_needed_to_decide() -> None:
    """Where it stands, what the machine would write, and how many lines above it are meant; taken, it is gone."""
    assert MARKED == SHOWN
    assert accept(MARKED, ID) == Resolved(text=MACHINE, line=6, replaced=True, note="the machine's lines stand now")
    assert find_conflicts(SHOWN) == (
        ConflictBlock(
            id="eb46a5", line=6, last_line=8, machine="- b by the machine -->\n", person_lines=2, unchanged=True
        ),
    )


@pytest.mark.parametrize(("machine", "person", "said"), cases("a_block_says_what_each_side_did"))
def test_a_block_says_what_each_side_did(machine: str, person: str, said: str) -> None:
    """In words that fit one line and several, and lines that are no longer there."""
    text = mark(merge("a\nb\nc\n", f"a\n{machine}c\n", f"a\n{person}c\n"))
    block = find_conflicts(text)[0]
    assert text.split("\n")[block.line - 1] == (
        f"<!-- conflict {block.id}: {said}. Delete this block, or: orchestra-mem accept {block.id} -->"
    )


@given(st.sampled_from(["\n", "\r\n"]).flatmap(conflicting))
def test_a_block_can_be_left_out_taken_or_thrown_away(merged: Merged) -> None:
    """Byte for byte: without its blocks a document is the merged text; taken, the machine's lines stand there."""
    text = mark(merged)
    blocks, conflict = find_conflicts(text), merged.conflicts[0]
    assert len(blocks) == len(merged.conflicts)
    assert without_conflicts(text) == merged.text
    assert all("conflict" not in problem or "3f9a1c" in text for _, problem in faults(text))
    place = len("".join(merged.text.splitlines(keepends=True)[: conflict.line - 1]))
    assert blocks[0].unchanged
    resolved = accept(text, blocks[0].id)
    expected = merged.text[:place] + conflict.machine + merged.text[place + len(conflict.person) :]
    assert without_conflicts(resolved.text) == expected
    assert resolved.replaced
    for block in blocks:
        text = reject(text, block.id).text
    assert text == merged.text


@given(conflicting())
def test_the_machines_headings_and_code_do_not_leave_the_block(merged: Merged) -> None:
    """What is quoted is no section of the document, and opens no fence or comment."""
    shown = [(block.level, block.title) for block in split_blocks(mark(merged)) if block.level]
    own = [(block.level, block.title) for block in split_blocks(merged.text) if block.level]
    if "```" not in merged.text and "<!-- /" not in merged.text:
        assert shown == own


def test_the_same_conflict_again_is_the_same_block() -> None:
    """Merging once more, with or without the block in the person's file, changes no byte."""
    again = mark(merge(BASE, MACHINE, without_conflicts(MARKED)), MARKED)
    assert again == MARKED


def test_a_conflict_that_is_not_decided_stays_when_the_machine_writes_elsewhere() -> None:
    """The machine's text is the base by then, so that the merge itself knows of no conflict."""
    machine = MACHINE.replace("- x\n", "- x\n- y\n").replace("# T\n", "# T\n\n- new\n")
    merged = merge(MACHINE, machine, without_conflicts(MARKED))
    assert not merged.conflicts
    assert mark(merged, MARKED) == MARKED.replace("- x\n", "- x\n- y\n").replace("# T\n", "# T\n\n- new\n")


@pytest.mark.parametrize("person", [PERSON, BASE.replace("- b\n", "")])
def test_a_new_conflict_about_the_same_lines_takes_the_place_of_the_old(person: str) -> None:
    """There is one block, with what the machine would write now, also where nothing of the person's stands above it."""
    old = mark(merge(BASE, MACHINE, person))
    machine = MACHINE.replace("by the machine", "by the machine at last")
    text = mark(merge(MACHINE, machine, without_conflicts(old)), old)
    assert [block.machine for block in find_conflicts(text)] == ["- b by the machine at last -->\n"]
    assert without_conflicts(text) == person


def test_a_rejected_conflict_does_not_come_back() -> None:
    """While the machine leaves those lines as they are."""
    left = reject(MARKED, ID).text
    machine = MACHINE.replace("- x\n", "- x\n- y\n")
    assert mark(merge(MACHINE, machine, without_conflicts(left)), left) == left.replace("- x\n", "- x\n- y\n")


def test_equal_conflicts_have_ids_of_their_own() -> None:
    """Each can be decided alone."""
    base, ours, mine = "1\nb\n2\nb\n3\n", "1\nm\n2\nm\n3\n", "1\np\n2\np\n3\n"
    text = mark(merge(base, ours, mine))
    first, second = (block.id for block in find_conflicts(text))
    assert second == f"{first}-2"
    assert without_conflicts(accept(text, second).text) == "1\np\n2\nm\n3\n"


def test_lines_above_that_were_edited_meanwhile_stay_when_the_conflict_is_accepted() -> None:
    """Nobody knows any more which of them were meant; the machine's follow them, and that is told."""
    edited = MARKED.replace("- more\n", "- more and more\n")
    assert not find_conflicts(edited)[0].unchanged
    assert accept(edited, ID) == Resolved(
        text=without_conflicts(edited).replace("- more and more\n", "- more and more\n- b by the machine -->\n"),
        line=6,
        replaced=False,
        note="the lines above were changed meanwhile: they stay, and the machine's follow them",
    )


def test_blanks_that_an_editor_takes_out_at_the_ends_of_lines_are_no_edit() -> None:
    """Nor is another line end."""
    merged = merge("a\nb\nc\n", "a\nm  \n\nn\nc\n", "a\np \nc\n")
    stripped = "\n".join(line.rstrip() for line in mark(merged).split("\n"))
    assert [block.unchanged for block in find_conflicts(stripped)] == [True]
    assert len(find_conflicts(stripped.replace("\n", "\r\n"))) == 1


NOT_WHOLE = "this marker is of no whole conflict: what stands there is your text now, delete this line"
OPENING, MIDDLE, CLOSING = MARKED.split("\n")[5:8]


@pytest.mark.parametrize(
    ("text", "whole", "found"),
    [
        (f"{OPENING}\n{MIDDLE}\n", [], [1]),
        (f"{MIDDLE}\n{CLOSING}\n", [], [2]),
        (f"{OPENING}\n{MIDDLE}\n{OPENING}\n{CLOSING}\n", [], [1, 3, 4]),
        (f"<!-- conflict 3f9a1c what -->\n{MIDDLE}\n{CLOSING}\n", [], [1, 3]),
        (f"{OPENING}\nmine\n{MIDDLE}\n{CLOSING}\n", [], [1, 4]),
        ("<!-- /conflict 3f9a -->\n", [], [1]),
        ("<!-- a conflict of 3f9a -->\na conflict\n<!-- pin -->\n", [], []),
        (MARKED.replace("> - b by the machine", "> - b by both"), [], [6, 8]),
        (f"<!-- conflict abcdef: half -->\n{MARKED}", [ID], [1]),
        (f"{OPENING}\n{MARKED}", [ID], [1]),
        (f"{MARKED}{OPENING}\n{MIDDLE}\n{CLOSING}\n", [ID], [14, 16]),
    ],
)
def test_damaged_markers_are_text_and_are_told_with_their_line(text: str, whole: list[str], found: list[int]) -> None:
    """Halves, nested ones, edited and pasted ones; a text about conflicts is none. A whole block beside them is one."""
    assert [block.id for block in find_conflicts(text)] == whole
    assert faults(text) == tuple((line, NOT_WHOLE) for line in found)
    assert whole or without_conflicts(text) == text


def test_a_conflict_at_the_end_of_a_text_without_a_final_line_feed_leaves_no_trace() -> None:
    """Neither marked nor rejected."""
    merged = merge("a\nb", "a\nm", "a\np")
    text = mark(merged)
    assert merged.text == without_conflicts(text) == reject(text, find_conflicts(text)[0].id).text == "a\np"
    assert accept(text, find_conflicts(text)[0].id).text == "a\nm"


@given(st.text(), st.text())
def test_any_text_goes_through_unchanged_where_there_is_no_conflict(text: str, before: str) -> None:
    """Marking nothing, and looking for what is not there."""
    assert mark(Merged(text=text), before) == text
    assert without_conflicts(text) == text

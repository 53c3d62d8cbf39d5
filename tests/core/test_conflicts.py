"""Conflicts in a document: both versions can be read, accepted or rejected, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestra_mem.core.documents.conflicts import (
    ConflictBlock,
    Merged,
    Resolved,
    accept,
    faults,
    find_conflicts,
    mark,
    reject,
    without_conflicts,
)
from orchestra_mem.core.documents.markdown import split_blocks
from orchestra_mem.core.documents.merge import merge
from orchestra_mem.core.documents.owned_lines import owned_lines
from orchestra_mem.core.documents.plan_edits import plan_edits
from tests.builders import cases

BASE = "# T\n\n- a\n- b\n- c\n\n## End\n\n- x\n"
MACHINE = BASE.replace("- b\n", "- b by the machine -->\n")
PERSON = BASE.replace("- b\n", "- b by me\n- more\n")
MARKED = mark(merge(BASE, MACHINE, PERSON))
ID = find_conflicts(MARKED)[0].id
SHOWN = (
    "# T\n\n- a\n- b by me\n- more\n"
    "<!-- conflict eb46a5: the 2 lines above are yours and were kept; the machine would write this instead. "
    "To reject this, delete the block; to accept it, run: orchestra-mem accept eb46a5 -->\n"
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
    """A merge with at least one conflict, made of lines that look like markers."""
    top, machine, person, bottom = draw(LINES), draw(LINES), draw(LINES), draw(LINES)
    head, tail = ["# top", *top, "anchor 1"], ["anchor 2", *bottom]
    base = [*head, "old", *tail]
    new = [*head, "the machine's", *machine, *tail]
    own = [*head, "the person's", *person, *tail]
    found = merge(*("".join(f"{line}{end}" for line in lines) for lines in (base, new, own)))
    assume(found.conflicts)
    return found


def test_a_conflict_reads_well_and_tells_all_that_is_needed_to_decide() -> None:
    """A conflict block shows the machine's version and how many lines above it belong to it; accepting removes it."""
    assert MARKED == SHOWN
    assert accept(MARKED, ID) == Resolved(
        text=MACHINE, line=6, replaced=True, note="the machine's version was accepted"
    )
    assert find_conflicts(SHOWN) == (
        ConflictBlock(
            id="eb46a5", line=6, last_line=8, machine="- b by the machine -->\n", person_lines=2, unchanged=True
        ),
    )


@pytest.mark.parametrize(("machine", "person", "said"), cases("a_block_says_what_each_side_did"))
def test_a_block_says_what_each_side_did(machine: str, person: str, said: str) -> None:
    """The opening marker describes both changes, with wordings for one line, several lines and deleted lines."""
    text = mark(merge("a\nb\nc\n", f"a\n{machine}c\n", f"a\n{person}c\n"))
    block = find_conflicts(text)[0]
    assert text.split("\n")[block.line - 1] == (
        f"<!-- conflict {block.id}: {said}. To reject this, delete the block; to accept it, run: "
        f"orchestra-mem accept {block.id} -->"
    )


@given(st.sampled_from(["\n", "\r\n"]).flatmap(conflicting))
def test_a_block_can_be_left_out_taken_or_thrown_away(merged: Merged) -> None:
    """Without its blocks a document is byte for byte the merged text; accepting inserts the machine's lines."""
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
    """Headings and fences in a quoted version do not change the structure of the document."""
    shown = [(block.level, block.title) for block in split_blocks(mark(merged)) if block.level]
    own = [(block.level, block.title) for block in split_blocks(merged.text) if block.level]
    if "```" not in merged.text and "<!-- /" not in merged.text:
        assert shown == own


@pytest.mark.parametrize("person", [PERSON, BASE.replace("- b\n", "")])
def test_a_new_conflict_about_the_same_lines_takes_the_place_of_the_old(person: str) -> None:
    """A new conflict replaces the old block about the same lines, also if the person has deleted those lines."""
    old = mark(merge(BASE, MACHINE, person))
    machine = MACHINE.replace("by the machine", "by the machine at last")
    text = mark(merge(MACHINE, machine, old))
    assert [block.machine for block in find_conflicts(text)] == ["- b by the machine at last -->\n"]
    assert without_conflicts(text) == person


def test_a_rejected_conflict_does_not_come_back() -> None:
    """A rejected conflict does not reappear while the machine leaves those lines unchanged."""
    left = reject(MARKED, ID).text
    machine = MACHINE.replace("- x\n", "- x\n- y\n")
    assert mark(merge(MACHINE, machine, left)) == left.replace("- x\n", "- x\n- y\n")


def test_a_block_says_nothing_about_the_facts_and_work_around_it() -> None:
    """The quoted lines of a block belong to no entry above it, and name no work item of the plan."""
    entry = "## Decisions\n\n### Use Postgres … (K1)\n\n> Use Postgres for all.\n{}"
    log = mark(merge(entry.format("a\n"), entry.format("b\n"), entry.format("c\n")))
    assert [line.fact.text for line in owned_lines(log) if line.fact] == ["Use Postgres for all."]
    plan = "## Prioritized Backlog\n\n- [ ] #5 Tidy up (task)\n{}"
    now = mark(merge(*(plan.format(row) for row in ("a\n", "- #5 is late\n", "c\n"))))
    edits = plan_edits(now, now.replace("- [ ] #5 Tidy up (task)\n", ""))
    assert [line.number for line in edits.removed] == [5]
    assert edits.unread == ()


def test_equal_conflicts_have_ids_of_their_own() -> None:
    """Two identical conflicts have different ids, so that each can be decided separately."""
    base, ours, mine = "1\nb\n2\nb\n3\n", "1\nm\n2\nm\n3\n", "1\np\n2\np\n3\n"
    text = mark(merge(base, ours, mine))
    first, second = (block.id for block in find_conflicts(text))
    assert second == f"{first}-2"
    assert without_conflicts(accept(text, second).text) == "1\np\n2\nm\n3\n"


def test_lines_above_that_were_edited_meanwhile_stay_when_the_conflict_is_accepted() -> None:
    """Accepting keeps lines edited since the conflict, adds the machine's lines after them, and says so."""
    edited = MARKED.replace("- more\n", "- more and more\n")
    assert not find_conflicts(edited)[0].unchanged
    assert accept(edited, ID) == Resolved(
        text=without_conflicts(edited).replace("- more and more\n", "- more and more\n- b by the machine -->\n"),
        line=6,
        replaced=False,
        note="the lines above were changed since then: they were kept, followed by the machine's lines",
    )


def test_a_block_with_another_wording_is_read_the_same() -> None:
    """The words of the opening marker do not matter: a block that an earlier version wrote can be accepted."""
    earlier = MARKED.replace("were kept;", "stand;").replace(
        "To reject this, delete the block; to accept it, run:", "Or:"
    )
    assert earlier != MARKED
    assert find_conflicts(earlier) == find_conflicts(MARKED)
    assert accept(earlier, ID).text == MACHINE


def test_blanks_that_an_editor_takes_out_at_the_ends_of_lines_are_no_edit() -> None:
    """Stripped trailing blanks and changed line ends do not count as an edit of the conflict."""
    merged = merge("a\nb\nc\n", "a\nm  \n\nn\nc\n", "a\np \nc\n")
    stripped = "\n".join(line.rstrip() for line in mark(merged).split("\n"))
    assert [block.unchanged for block in find_conflicts(stripped)] == [True]
    assert len(find_conflicts(stripped.replace("\n", "\r\n"))) == 1


NOT_WHOLE = "this conflict marker does not belong to an intact block, so it counts as your text: delete this line"
OPENING, MIDDLE, CLOSING = MARKED.split("\n")[5:8]


@pytest.mark.parametrize(
    ("text", "whole", "found"),
    [
        (f"{OPENING}\n{MIDDLE}\n", [], [1]), (f"{MIDDLE}\n{CLOSING}\n", [], [2]),
        (f"{OPENING}\n{MIDDLE}\n{OPENING}\n{CLOSING}\n", [], [1, 3, 4]),
        (f"<!-- conflict 3f9a1c what -->\n{MIDDLE}\n{CLOSING}\n", [], [1, 3]),
        (f"{OPENING}\nmine\n{MIDDLE}\n{CLOSING}\n", [], [1, 4]), ("<!-- /conflict 3f9a -->\n", [], [1]),
        ("<!-- a conflict of 3f9a -->\na conflict\n<!-- pin -->\n", [], []),
        (MARKED.replace("> - b by the machine", "> - b by both"), [], [6, 8]),
        (f"<!-- conflict abcdef: half -->\n{MARKED}", [ID], [1]), (f"{OPENING}\n{MARKED}", [ID], [1]),
        (f"{MARKED}{OPENING}\n{MIDDLE}\n{CLOSING}\n", [ID], [14, 16]),
    ],
)  # fmt: skip
def test_damaged_markers_are_text_and_are_told_with_their_line(text: str, whole: list[str], found: list[int]) -> None:
    """Damaged markers are reported with their line and treated as text; an intact block next to them still works."""
    assert [block.id for block in find_conflicts(text)] == whole
    assert faults(text) == tuple((line, NOT_WHOLE) for line in found)
    assert whole or without_conflicts(text) == text


def test_a_conflict_at_the_end_of_a_text_without_a_final_line_feed_leaves_no_trace() -> None:
    """A conflict at the end of a text can be stripped, rejected or accepted without adding a final line feed."""
    merged = merge("a\nb", "a\nm", "a\np")
    text = mark(merged)
    assert merged.text == without_conflicts(text) == reject(text, find_conflicts(text)[0].id).text == "a\np"
    assert accept(text, find_conflicts(text)[0].id).text == "a\nm"

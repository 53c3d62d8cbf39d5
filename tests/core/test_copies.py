"""Copies of one document on several machines: revision numbers, and the merge of two people's changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.documents.conflicts import find_conflicts
from orchestra_mem.core.documents.document_merge import merge_copy
from orchestra_mem.core.documents.signature import Copy, stamped, unstamped

HEAD = "---\nformat: 1\nwritten: 2025-01-15T10:00:00.000+00:00\n---\n\n# Log\n\n## Notes\n\n"
MACHINES = ("laptop", "desk")
FACT = "- Never touch the oven (K12)"
ROWS = [row for number in range(4) for row in (f"### Entry {number}", f"Because of {number}.", f"- note {number}")]
lines = st.lists(st.sampled_from(ROWS), max_size=8, unique=True)


def text(rows: list[str]) -> str:
    """Return a document with these notes."""
    return HEAD + "".join(f"\n{row}\n\n" if row.startswith("###") else f"{row}\n" for row in rows)


def together(opened: str, theirs: str, mine: str, *, is_later: bool = True) -> str:
    """Merge two changes of one opened text."""
    return merge_copy([Copy(7, opened)], theirs, Copy(7, mine), machines=MACHINES, is_later=is_later)


@given(body=st.text(), number=st.integers(0, 10**9), ends=st.sampled_from(["\n", "\r\n"]), own=st.booleans())
def test_the_number_of_a_revision_leaves_no_trace(body: str, number: int, ends: str, own: bool) -> None:
    """Removing the stamped revision restores the document byte for byte, even if it has its own `revision` line."""
    head = HEAD.replace("format: 1\n", "format: 1\nrevision: 5\n") if own else HEAD
    document = head.replace("\n", ends) + body
    assert unstamped(stamped(document, number)) == (document, number)


@given(body=st.text())
def test_a_text_without_front_matter_bears_no_number(body: str) -> None:
    """A text without front matter is not stamped, and a `revision:` line in the body stays in the text."""
    for document in (f"# Log\n\n{body}", f"{HEAD}revision: 5\n{body}"):
        bare = unstamped(stamped(document, 4))
        assert bare[0] == document
    assert stamped("# Log\n", 4) == "# Log\n"


@given(opened=lines, theirs=lines, mine=lines, is_later=st.booleans())
def test_each_ones_lines_stand_and_each_ones_deletions(
    opened: list[str], theirs: list[str], mine: list[str], is_later: bool
) -> None:
    """Lines that either side added are in the result, and lines that either side deleted are not; nothing else is.

    The same holds for the heading of an entry, whatever the other side wrote below it.
    """
    # Both sides keep the order of the opened text: moved lines are not tested here.
    order = {row: place for place, row in enumerate(dict.fromkeys([*opened, *theirs, *mine]))}
    theirs, mine = (sorted(rows, key=order.__getitem__) for rows in (theirs, mine))
    found = together(text(opened), text(theirs), text(mine), is_later=is_later)
    rows = [row for row in found.partition("## Notes\n")[2].split("\n") if row]
    kept = {row for row in opened if row in theirs and row in mine}
    assert set(rows) == kept | (set(theirs) - set(opened)) | (set(mine) - set(opened))


def test_what_one_wrote_below_an_entry_that_the_other_took_out_stands_without_the_machines_words() -> None:
    """A person's bullet outlives a deleted entry; the machine's explanation of the entry does not."""
    opened = text(["### Entry 1 (K1)"])
    theirs = text(["### Entry 1 (K1)", "*Superseded by K2.*", "> Entry 1, in full", "* no longer, says Ada"])
    found = together(opened, theirs, text([]))
    assert [row for row in found.partition("## Notes\n")[2].split("\n") if row] == ["* no longer, says Ada"]


@pytest.mark.parametrize(
    ("theirs", "mine", "stands"),
    [
        ("- Never touch the stove (K12)", "- Never touch the hob (K12)", "- Never touch the hob (K12)"),
        (None, "- Never touch the hob (K12)", "- Never touch the hob (K12)"),
        ("- Never touch the stove (K12)", None, "- Never touch the stove (K12)"),
        (None, FACT, None),
    ],
)
def test_a_fact_that_both_have_changed(theirs: str | None, mine: str | None, stands: str | None) -> None:
    """Of two wordings the later one stays and the other is shown as a conflict; a rewording wins over a deletion."""
    for is_later, kept, other in ((True, mine, theirs), (False, theirs, mine)):
        sides = text([theirs] if theirs else []), text([mine] if mine else [])
        found = together(text([FACT]), *sides, is_later=is_later)
        rows = [row for row in found.split("\n") if row.startswith("- ")]
        assert rows == [each for each in [kept if theirs and mine else stands] if each]
        conflicts = [block.machine.strip() for block in find_conflicts(found)]
        assert conflicts == ([other] if theirs and mine else [])
        said = "from laptop and was kept; desk has" if is_later else "from desk and was kept; laptop has"
        assert not conflicts or f"{said} this instead" in found


def test_a_fact_that_one_brought_back_while_the_other_reworded_it_is_shown_with_both_wordings() -> None:
    """Two wordings of a fact that the common base lacks are both shown."""
    found = together(text([]), text(["- Never touch the stove (K12)"]), text([FACT]))
    assert [block.machine.strip() for block in find_conflicts(found)] == ["- Never touch the stove (K12)"]
    assert FACT in found


def test_a_conflict_that_one_has_decided_does_not_come_back() -> None:
    """A conflict whose block one person has deleted stays decided, though the other's copy still holds it."""
    opened = together(text([FACT]), text(["- Never touch the stove (K12)"]), text(["- Never touch the hob (K12)"]))
    assert find_conflicts(opened)
    decided = text(["- Never touch the hob (K12)"])
    for theirs, mine in ((opened + "- more\n", decided), (decided, opened + "- more\n")):
        found = together(opened, theirs, mine)
        assert not find_conflicts(found)
        assert "- more" in found


def test_of_a_text_that_is_older_than_all_that_is_known_nothing_is_taken_out() -> None:
    """A copy older than every known base deletes nothing; its lines are added to the current ones."""
    found = merge_copy([Copy(7, text(["- a"]))], text(["- a", "- b"]), Copy(2, text(["- old"])), machines=MACHINES)
    assert {"- a", "- b", "- old"} <= set(found.split("\n"))


@pytest.mark.parametrize("was", ["- Never touch the oven", "- Never touch the oven (K3)"])
def test_lines_that_got_a_number_meanwhile_are_the_same_lines(was: str) -> None:
    """Deleting a line deletes the same line in the other copy, where it has meanwhile been given a number.

    A line that a person has reworded while it was deleted elsewhere is there under a new number.
    """
    opened, numbered = text([was, "- flour"]), text([FACT, "- flour"])
    assert "oven" not in together(opened, numbered, text(["- flour"]))

"""Blame: each line of a document names its writer, also after further edits, moves and restores."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.tiers.authorship import Writer, carry, ranges
from orchestra_mem.types import Author
from tests.memories import edit, live
from tests.tiers.conftest import Desk
from tests.timing import assert_quick

CONFIG = {
    "orchestrator": {"working_memory": {"max_operations": 2}},
    "compaction": {"verbatim_window_s": 0, "verbatim_floor_tokens": 0, "segment_tokens": 200},
}
MACHINE, PERSON = Writer.MACHINE, Writer.PERSON


@pytest.fixture
def desk(empty: Desk) -> Desk:
    """A memory whose work plan has two items by the machine."""
    empty.go_on("TODO: write the migration guide.", "TODO: rotate the signing keys.")
    return empty


def _writers(desk: Desk, *words: str, document: str = "work_plan") -> list[Writer]:
    lines = desk.memory.blame(document)
    return [next(line.origin.writer for line in lines if word in line.text) for word in words]


def test_a_machines_line_names_the_operation_it_comes_from(desk: Desk) -> None:
    """A machine's line names, through its fact number, the operation it comes from, and the time of writing."""
    (line,) = [line for line in desk.memory.blame("work_plan.md") if "migration guide" in line.text]
    assert (line.origin.writer, line.origin.operations) == (MACHINE, ((1, 1),))
    assert line.origin.time is not None
    assert desk.plan.text.splitlines()[line.line - 1] == line.text


def test_a_persons_lines_stay_theirs(desk: Desk) -> None:
    """A person's line stays theirs when the machine writes, adds a fact number, or a section moves."""
    desk.plan.edit(("## Backlog\n", "## Backlog\n\n- Ask Grace about the quota\n"))
    assert _writers(desk, "Grace", "signing keys") == [PERSON, MACHINE]
    desk.go_on("TODO: order a new disk.")
    assert _writers(desk, "Grace", "signing keys", "new disk") == [PERSON, MACHINE, MACHINE]
    head, _, rest = desk.plan.text.partition("## Immediate Next Steps")
    steps, _, others = rest.partition("## Backlog")
    desk.plan.save(f"{head}## Backlog{others.rstrip()}\n\n## Immediate Next Steps{steps}")
    assert _writers(desk, "Grace", "signing keys", "new disk") == [PERSON, MACHINE, MACHINE]


def test_a_restored_text_has_its_authors_again(desk: Desk) -> None:
    """Restoring a version restores the writers of its lines; the restorer is not their writer."""
    desk.plan.edit(("## Backlog\n", "## Backlog\n\nMine alone.\n"))
    desk.go_on("TODO: order a new disk.")
    version, text = desk.plan.versions()[-1]
    assert "Mine alone." in text
    desk.plan.edit(("Mine alone.\n", ""))
    desk.plan.restore(version.sequence)
    assert _writers(desk, "Mine alone", "signing keys") == [PERSON, MACHINE]


def test_the_live_session_tells_agents_compactor_and_persons_apart(empty: Desk) -> None:
    """An entry is by its agent, a summary by the compactor, and a line edited in an entry by a person."""
    for number in range(40):
        empty.clock.now += timedelta(minutes=2)
        empty.memory.record_operation("message", {"text": f"Part {number} of the parser was moved to module {number}."})
    empty.memory.refresh()
    empty.clock.now += timedelta(minutes=2)
    for number in range(3):
        empty.memory.record_operation("message", {"text": f"The kiln number {number} cracked."})
    edit(live(empty.memory), ("The kiln number 0 cracked.", "The kiln was fine."))
    words = ("Summary S1", "(op 41)", "kiln was fine", "**Session ID**")
    expected = [Writer.COMPACTOR, Writer.AGENT, PERSON, MACHINE]
    assert _writers(empty, *words, document="session") == expected


def test_of_lines_that_repeat_the_nearest_is_taken() -> None:
    """If a moved line matches several old lines, it keeps the author and the heading of the nearest."""
    old = "x\n# A\n- one\n# B\n- two\n- x\n# C\n- three\n"
    text = "x\n# A\n- one\n# B\n- two\n# C\n- three\n- x\n"
    moved = carry(carry([], "", old, Author.MACHINE), old, text, Author.PERSON)[-1]
    assert (moved.author, moved.title) == (Author.MACHINE, "B")


@given(st.sets(st.integers(1, 40)))
def test_ranges_hold_just_the_operations(operations: set[int]) -> None:
    """Ranges contain exactly the given operations, ascending and with gaps between them."""
    found = ranges(operations)
    assert {number for first, last in found for number in range(first, last + 1)} == operations
    assert all(one[1] + 1 < other[0] for one, other in pairwise(found))


@pytest.mark.parametrize("kind", ["edited", "moved", "all equal"])
def test_a_document_of_the_largest_size_is_carried_in_milliseconds(kind: str) -> None:
    """The blame of a document of about 120 KB is carried over in less than 50 ms."""
    facts = [f"- fact {i} of what was done that day and why (K{i})\n" for i in range(1_920)]
    parts = [f"## S{i}\n\n" + "".join(facts[i * 12 : i * 12 + 12]) + "\n" for i in range(160)]
    old = (
        "same line of some sixty characters that is there all over again\n" * 2_000
        if kind == "all equal"
        else "".join(parts)
    )
    new = {
        "edited": old.replace("7 of", "7 on"),
        "moved": "".join(parts[(i * 77) % 160] for i in range(160)),
        "all equal": f"mine\n{old[6_400:]}mine\n",
    }[kind]
    blame = carry([], "", old, Author.MACHINE)
    assert_quick(0.05, lambda: carry(blame, old, new, Author.PERSON))

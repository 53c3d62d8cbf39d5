"""Blame: every line has one origin, and keeps it when the line moves."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.documents.blame import carry, ranges
from orchestra_mem.types import Author
from tests.timing import assert_quick


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

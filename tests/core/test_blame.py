"""Blame: every line has one origin, and keeps it when the line moves."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.documents.blame import Blame, Origin, OriginOf, Writer, carry, ranges
from tests.timing import assert_quick

NOON = datetime(2025, 1, 2, 12, tzinfo=UTC)
MACHINE = Origin(Writer.MACHINE, ((3, 5), (9, 9)), NOON)
PERSON = Origin(Writer.PERSON, (), NOON)
AGENT = Origin(Writer.AGENT, ((7, 7),))


def new_blame(text: str, origin: OriginOf) -> Blame:
    """Return the blame of a text in which every line is new."""
    return carry((), "", text, origin)


LINES = st.lists(
    st.sampled_from(["# A", "## B", "## C", "- a", "- b", "- None", "", "text", "```"])
    | st.text(st.characters(exclude_characters="\r\n"), max_size=3),
    max_size=12,
)
TEXTS = LINES.map("\n".join) | LINES.map("\r\n".join) | LINES.map(lambda lines: "".join(f"{line}\n" for line in lines))
ORIGINS = st.builds(
    Origin,
    st.sampled_from(Writer),
    st.sets(st.integers(1, 30)).map(ranges),
    st.none() | st.datetimes(timezones=st.just(UTC)),
)


def machine(line: str, title: str) -> Origin:
    """Attribute every line to the machine."""
    return MACHINE


def person(line: str, title: str) -> Origin:
    """Attribute every line to the person."""
    return PERSON


@given(TEXTS, ORIGINS)
def test_a_text_that_is_not_changed_keeps_its_blame(text: str, origin: Origin) -> None:
    """Saving a text unchanged, or with other line ends, changes no origin."""
    blame = new_blame(text, lambda line, title: origin)
    assert carry(blame, text, text, person) == blame
    assert carry(blame, text, text.replace("\r\n", "\n"), person) == blame


def test_of_lines_that_repeat_the_nearest_is_taken() -> None:
    """If a moved line matches several old lines, it takes the origin of the nearest."""
    old = "x\n# A\n- one\n# B\n- two\n- x\n# C\n- three\n"
    first = new_blame(old, lambda line, title: AGENT if title == "B" else MACHINE)
    text = "x\n# A\n- one\n# B\n- two\n# C\n- three\n- x\n"
    assert carry(first, old, text, person)[-1] == AGENT


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
    blame = new_blame(old, machine)
    assert_quick(0.05, lambda: carry(blame, old, new, person))

"""Damaged documents: faults are reported with their line, and readable text is shown, whatever the bytes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestra_mem.core.documents.damage import MOST_BYTES, SHOWN_BYTES, shown, text_faults, unchangeable
from tests.timing import assert_linear

TEXT = "---\nformat: 1\n---\n\n# Plan\n\n- a line\n- another\n"
PIECES = [b"---\n", b"a: [\n", b"\0", b"\xff\xfe", b"\xfc", b"# H\n", b"<!-- conflict abcdef", b"\r\n"]
BYTES = st.one_of(st.binary(max_size=200), st.lists(st.sampled_from(PIECES)).map(b"".join))


@given(BYTES)
@example(b"")
@example(b"\xff\xfe\0")
def test_any_bytes_are_looked_through_and_shown(data: bytes) -> None:
    """Faults lie within the file, in line order; shown text has no NUL; only NULs and UTF-16 are unchangeable."""
    faults = text_faults(data)
    assert faults == sorted(faults)
    assert all(0 <= line <= data.count(b"\n") + 1 and problem and meanwhile for line, problem, meanwhile in faults)
    assert "\0" not in shown(data, len(data))
    assert (b"\0" not in data and data[:2] not in (b"\xff\xfe", b"\xfe\xff")) == (unchangeable(data) is None)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_of_what_is_too_large_the_beginning_is_shown_and_that_is_told(encoding: str) -> None:
    """An oversized document is shown up to the end of a line, with a note of its full size."""
    data = (TEXT + "A line that somebody has pasted.\n" * 200_000).encode(encoding)
    assert len(data) > MOST_BYTES
    text = shown(data[:SHOWN_BYTES], len(data))
    body, told = text.split("\n## Clipped\n\n")
    assert told == f"*Only the first 0.2 of {len(data) / 1e6:,.1f} MB are shown here.*\n"
    assert len(body.encode(encoding)) <= SHOWN_BYTES + 2
    assert (TEXT + "A line that somebody has pasted.\n" * 200_000).startswith(body)
    assert body.endswith("pasted.\n")
    assert len(shown(b"x" * SHOWN_BYTES, MOST_BYTES + 1)) > SHOWN_BYTES


def test_a_text_of_many_documents_is_looked_through_in_linear_time() -> None:
    """A text into which somebody has pasted hundreds of documents with code does not take the square of its length."""
    assert_linear(lambda count: text_faults((f"{TEXT}\n```\ncode\n```\n\n" * count).encode()), 4_000)


@pytest.mark.parametrize("number", ["K1", "M1"])
def test_a_copied_line_that_says_something_else_is_told(number: str) -> None:
    """A line that reuses another line's number with different text is a fault; an exact copy is none."""
    text = f"{TEXT}\n## Decisions\n\n- Use oak. ({number})\n- Use oak. (priority: 9) ({number})\n"
    assert text_faults(text.encode()) == []
    ((line, problem, meanwhile),) = text_faults(f"{text}- Use elm. ({number})\n".encode())
    assert (line, problem) == (14, f"has the number ({number}) of line 12, but a different text")
    assert meanwhile == "it is no edit of that line; without the number it is a new line"

"""Tests of `orchestra_mem.core.identifiers`: what counts as an identifier, and when a text contains it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra_mem.core.identifiers import find_identifiers, missing_identifiers
from tests.builders import cases
from tests.timing import assert_linear, repeated


@pytest.mark.parametrize(("text", "identifiers"), cases("find_identifiers"))
def test_find_identifiers(text: str, identifiers: list[str]) -> None:
    """Identifiers are distinct and in order of appearance; plain words, apostrophes and slashes are none."""
    assert [*find_identifiers(text)] == identifiers


@pytest.mark.parametrize(("of", "in_", "missing"), cases("missing_identifiers"))
def test_missing_identifiers(of: str, in_: str, missing: list[str]) -> None:
    """An identifier must be complete in the other text; spacing, quotes and thousands separators do not matter."""
    assert [*missing_identifiers(of, in_)] == missing


_PIECES = st.sampled_from(
    [
        "#12", "#134.", "src/core/a.py", "(docs/x.md)", "C:\\a\\b.txt", "\"Blue", "Room\"", "'old", "barn'",
        "don't", "`x", "y`", "“Hall", "B”,", "250", "ms", "3.5GB,", "$1,200", "$", "15", "%", "1.2.3.",
        "11.2.34", "1,2345", "1,000,000", "March", "14th,", "2025", "2025-01-15", "14:30", "pm", "5", "-", "*",
        "https://e.org/a?b=c.", "a@b.io", "foo_bar()", "fooBar", "__init__", "utf-8", "and/or", "1/2", "cup",
        "of", "3f2a9c1", "\n", "\t", "—", "it’s", "''", "\"\"", "{\"a\":", "\"b c\"}", "²", "x²", "٣",
        "ms\u2028", "\u00a05", "°C", "€", "Ⅷ",
    ]
)  # fmt: skip
_SOURCES = st.lists(_PIECES | st.text(max_size=12), max_size=60).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(
    source=_SOURCES,
    cuts=st.lists(st.tuples(st.integers(0, 80), st.integers(1, 30)), max_size=8),
    bullet=st.sampled_from(["", "- ", "* ", "• "]),
)
def test_passages_invent_nothing(source: str, cuts: list[tuple[int, int]], bullet: str) -> None:
    """Passages cut from a source at white space contain no identifier that the source lacks."""
    words = source.split()
    passages = [" ".join(words[at : at + size]) for at, size in cuts]
    assert missing_identifiers("\n".join(bullet + passage for passage in passages), source) == ()


@settings(deadline=None)
@given(text=_SOURCES)
def test_a_text_lacks_nothing_of_its_own(text: str) -> None:
    """The identifiers of a text are distinct, not empty, and present in that text."""
    found = find_identifiers(text)
    assert len(set(found)) == len(found)
    assert all(found)
    assert missing_identifiers(text, text) == ()


HOSTILE = [
    '"', "'a", "1,", "a.", "a/", "-a", "a\\", "`", "1.1.1", '"a ', "a", "#", "@a.", "1-", "/", "\\\\a", "A_",
    "abcdef12", "1 ", "a:",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_time_is_linear(unit: str) -> None:
    """Finding identifiers takes time linear in the length of a repetitive text."""
    assert_linear(lambda size: find_identifiers(repeated(unit, size)), 50_000)

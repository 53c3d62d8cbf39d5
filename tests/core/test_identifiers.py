"""`orchestra_mem.core.identifiers`: what counts as an identifier, and when a text has it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra_mem.core.identifiers import find_identifiers, missing_identifiers
from tests.timing import assert_linear, repeated

FOUND = [
    ("Created Epic #5 and stories #10, #11.", ("#5", "#10", "#11")),
    ("See src/core/text.py and ./run.sh; not this.", ("src/core/text.py", "./run.sh")),
    ("It lies in ~/notes/plan.md, /etc/hosts or ../up.", ("~/notes/plan.md", "/etc/hosts", "../up")),
    (r"Open C:\Users\ana\plan.docx or \\server\share\x.", (r"C:\Users\ana\plan.docx", r"\\server\share\x")),
    ("README.md and setup.cfg are stale.", ("README.md", "setup.cfg")),
    ("Read https://example.com/a?b=1#c.", ("https://example.com/a?b=1#c",)),
    ("Write to ops@example.com today.", ("ops@example.com",)),
    (
        "Commit 3f2a9c1 reverts 9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d.",
        ("3f2a9c1", "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d"),
    ),
    ("It took 250 ms, 3.5GB and 15% of $1,200.", ("250 ms", "3.5GB", "15%", "$1,200")),
    ("Bake at 180 °C for 25 minutes with 1/2 cup of milk.", ("180 °C", "25 minutes", "1/2 cup")),
    ("From v1.2.3 to 2.0.0rc1 on Python 3.11.", ("v1.2.3", "2.0.0rc1", "3.11")),
    ("On 2025-01-15 14:30, or March 14th, 2025 at 5 pm.", ("2025-01-15 14:30", "March 14th, 2025", "5 pm")),
    ("The 14th, 3 May 2024, 9:30 or 3/4/2024.", ("14th", "3 May 2024", "9:30", "3/4/2024")),
    ("The \"Blue Room\" and the 'old barn' and “Hall B”.", ("Blue Room", "old barn", "Hall B")),
    ("Run `make all` with `retry-limit`.", ("make all", "retry-limit")),
    ("MemoryStore calls load_all with MAX_SIZE via utf-8.", ("MemoryStore", "load_all", "MAX_SIZE", "utf-8")),
    ("Ticket PROJ-1234 is about RFC7231 and iPhone.", ("PROJ-1234", "RFC7231", "iPhone")),
    ('The scheduler said "retry #12 in src/a.py".', ("retry #12 in src/a.py", "#12", "src/a.py")),
    ("#7, then #7 again.", ("#7",)),
]

NOT_FOUND = [
    "Nothing here but well-known plain words.",
    "He and/or she, yes/no, input/output.",
    "Don't touch the users' data or the dogs' food.",
    "PRs and URLs are fine, so are 12 of them.",
    "1234567 is a number, deadbeef a word.",
    "A sentence. Another one, e.g. this.",
    "",
]

MISSING = [
    ("#13", "see #134", ("#13",)),
    ("1.2.3", "we run 11.2.34", ("1.2.3",)),
    ("1.2.3", "we run 1.2.3.4", ("1.2.3",)),
    ("run_tests", "call run_tests_all", ("run_tests",)),
    ("run_tests", "call self.run_tests()", ()),
    ("250 ms", "1250 ms", ("250 ms",)),
    ("250 ms", "within 250ms", ()),
    ("250ms", "within 250 ms", ()),
    ("$1,200", "about $1200 in all", ()),
    ("“Blue Room”", "the 'Blue\nRoom'", ()),
    ('the "Red Room"', "the Blue Room", ("Red Room",)),
    ("src/a.py", "src/a.pyc", ("src/a.py",)),
    ("src/a.py and #4", "", ("src/a.py", "#4")),
    ("3f2a9c1", "3f2a9c1d", ("3f2a9c1",)),
]


@pytest.mark.parametrize(("text", "identifiers"), [*FOUND, *((text, ()) for text in NOT_FOUND)])
def test_find_identifiers(text: str, identifiers: tuple[str, ...]) -> None:
    """They come out distinct and in the order of first appearance; plain words, apostrophes and slashes are none."""
    assert find_identifiers(text) == identifiers


@pytest.mark.parametrize(("of", "in_", "missing"), MISSING)
def test_missing_identifiers(of: str, in_: str, missing: tuple[str, ...]) -> None:
    """An identifier must stand whole in the other text; spacing, quotes and thousands' commas make no difference."""
    assert missing_identifiers(of, in_) == missing


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


@settings(max_examples=300, deadline=None)
@given(
    source=_SOURCES,
    cuts=st.lists(st.tuples(st.integers(0, 80), st.integers(1, 30)), max_size=8),
    bullet=st.sampled_from(["", "- ", "* ", "• "]),
)
def test_passages_invent_nothing(source: str, cuts: list[tuple[int, int]], bullet: str) -> None:
    """A text made of passages of the source, cut at white space and set on lines of their own, lacks none."""
    words = source.split()
    passages = [" ".join(words[at : at + size]) for at, size in cuts]
    assert missing_identifiers("\n".join(bullet + passage for passage in passages), source) == ()


@settings(deadline=None)
@given(text=_SOURCES)
def test_a_text_lacks_nothing_of_its_own(text: str) -> None:
    """Identifiers are distinct, not empty, and present in their own text."""
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
    """Up to a quarter of a megabyte of anything."""
    assert_linear(lambda size: find_identifiers(repeated(unit, size)), 250_000)

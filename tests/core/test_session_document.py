"""The session document: its entries can be found again, and only the machine's text is ever replaced."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestra_mem.core.documents.damage import text_faults
from orchestra_mem.core.documents.entries import Entry
from orchestra_mem.core.documents.markdown import PIN, front_matter_fault, split_blocks
from orchestra_mem.core.documents.session_document import (
    LOG,
    SessionDocument,
    apply_summaries,
    finished,
    new_document,
    summary_block,
)
from orchestra_mem.types import Json, Session, SessionStatus, Summary
from tests.builders import a_summary, an_operation

START = datetime(2025, 1, 15, 10, tzinfo=UTC)
SESSION = Session(id="5f0c3c1e-1111-4222-8333-444455556666", started=START, status=SessionStatus.ACTIVE)
FORGERIES = [
    "\n### [10:00:00] X (op 3)\n", "### [10:00:00] X (op 3)", "\r### [10:00:00] X (op 3)\r",
    "\r\n### Summary S1: forged\r\n", "\x0b### [10:00:00] X (op 3)\x0c", "\u2028### [10:00:00] X (op 3)\u2029",
    "\x85### [10:00:00] X (op 3)", "## Operations Log", "\n## Operations Log\n", "\n---\n", "---", "\n```\n", "~~~",
    "\n\n\n", "\x00", "\ud800", "\udc80", "\ufeff# Head", "> ### quoted (op 9)", "(op 4)", "#", "<!-- pin -->",
    "\n<!-- pin -->\n", "<!--  PIN  -->",
]  # fmt: skip
PIECE = st.sampled_from(FORGERIES) | st.text(max_size=10)
TEXT = st.lists(PIECE, max_size=4).map("".join)
KEY = st.sampled_from(["title", "subject", "user_input", "text", "result", "status", "role", "tool", "error"]) | TEXT
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3),
    max_leaves=6,
)


def entry(number: int, data: Json = None, *, kind: str = "task_execution") -> str:
    """Return an operation's entry as the document shows it."""
    data = {"result": f"Result {number}."} if data is None else data
    operation = an_operation(number, data, type=kind, timestamp=START + timedelta(minutes=number), tokens=10)
    return Entry(operation=operation, started=date(2025, 1, 15), max_chars=4_000).text


def summary(number: int, first: int, last: int, **given: Any) -> Summary:
    """A summary of a run of operations."""
    return a_summary(
        number, first, last, text=f"- What operations {first} to {last} came to.\n",
        since=START + timedelta(minutes=first), until=START + timedelta(minutes=last), **given,
    )  # fmt: skip


def document(*numbers: int) -> str:
    """A document with entries of these operations."""
    return new_document(SESSION, "demo") + "".join(entry(number) for number in numbers)


def test_a_new_document_reads_as_the_source_design_shows_it() -> None:
    """A new document has front matter, a head for people, and an empty log."""
    text = new_document(SESSION, "demo")
    assert text == (
        '---\nformat: 1\nsession: "5f0c3c1e-1111-4222-8333-444455556666"\n'
        "project: demo\nstarted: 2025-01-15T10:00:00+00:00\nstatus: active\n---\n\n"
        "# Orchestrator Session: 2025-01-15 10:00:00\n\n"
        "**Session ID**: 5f0c3c1e-1111-4222-8333-444455556666\n**Project**: demo\n"
        "**Started**: 2025-01-15 10:00:00 UTC\n**Status**: Active\n\n---\n\n## Operations Log\n\n"
    )
    assert front_matter_fault(text) is None


@pytest.mark.parametrize(
    ("project", "shown"),
    [
        (os.fsdecode(b"b\xff"), r"b\udcff"),
        ("a\n## Operations Log\nb", "a ## Operations Log b"),
        ("x <!-- pin -->", r"x <\!-- pin -->"),
        ("Über 日本", "Über 日本"),
    ],
)
def test_a_projects_name_is_one_line_of_text(project: str, shown: str) -> None:
    """A project name is shown as one line without markup, even if the folder's name is not UTF-8."""
    text = new_document(SESSION, project)
    assert text_faults(text.encode("utf-8")) == []
    assert f"**Project**: {shown}\n**Started**" in text
    assert [block.title for block in split_blocks(text) if block.level == 2] == [LOG]
    assert not any(block.pinned for block in split_blocks(text) if block.level)


@given(TEXT | st.text())
@example(document(1, 2) + "### (op " + "9" * 5_000 + ")\n")
@example("### Summary S" + "9" * 5_000 + "\n")
@example("### x (op ٣)\n")
def test_any_text_is_a_document_and_stays_the_same(text: str) -> None:
    """Any text parses without an error, and renders to the same text."""
    assert SessionDocument.parse(text).text() == text


def test_a_summary_tells_what_it_covers() -> None:
    """The heading of a summary has its number, operations, times and level."""
    assert summary_block(summary(3, 1, 20)) == (
        "### Summary S3: 20 operations, 2025-01-15 10:01 to 10:20 (level 1)\n\n- What operations 1 to 20 came to.\n\n"
    )
    assert summary_block(summary(4, 1, 1)).startswith(
        "### Summary S4: 1 operation, 2025-01-15 10:01 to 10:01 (level 1)"
    )
    assert summary_block(summary(5, 1, 2_000, level=2)).startswith(
        "### Summary S5: 2,000 operations, 2025-01-15 10:01 to 2025-01-16 19:20 (level 2)"
    )


@given(VALUE, st.sampled_from(["nl_command", "task_execution", "## x", "<!-- pin -->", "x (op 3)"]))
@example({"title": "\n### [10:00:00] X (op 3)\n"}, "nl_command")
@example({"user_input": "x <!-- pin --> y"}, "nl_command")
@example({"\n### [10:00:00] X (op 3)\n": "\n### [10:00:00] X (op 3)\n"}, "nl_command")
@example(["\n### [10:00:00] X (op 3)\n", {"a": "\n### [10:00:00] X (op 3)\n"}], "nl_command")
@example("\r\r### [10:00:00] X (op 3)", "nl_command")
def test_data_can_neither_forge_nor_hide_entries_nor_pin(data: Json, kind: str) -> None:
    """Whatever data an operation has, the document gains exactly one entry, and nothing is pinned."""
    text = document(1) + entry(2, data, kind=kind) + entry(5)
    parsed = SessionDocument.parse(text)
    assert list(parsed.entries()) == [1, 2, 5]
    assert parsed.summaries() == {}
    assert parsed.entries()[5].text == entry(5)
    assert [block.title for block in split_blocks(text) if block.level == 2] == [LOG]
    assert not any(part.block.pinned for part in parsed.parts)
    text.encode("utf-8")


@st.composite
def edited_documents(draw: st.DrawFn) -> tuple[str, list[str], list[Summary]]:
    """A document as edited by people, their own blocks, and summaries that cover some operations."""
    numbers = draw(st.lists(st.integers(1, 30), unique=True, max_size=12).map(sorted))
    blocks: list[str] = []
    theirs: list[str] = []
    for number in numbers:
        text = entry(number)
        if draw(st.integers(0, 4)) == 0:
            text = text.replace("\n", f"\n{PIN}\n", 1)
            theirs.append(text)
        blocks.append(text)
        if draw(st.integers(0, 4)) == 0:
            own = [
                f"## Mine {number}\n\nWords.\n",
                f"#### Note {number}\r\n* x\r\n",
                f"### My remark on what went wrong there (op {number})\n\nWords.\n",
                f"### Summary S{number} is wrong\n\nWords.\n",
            ]
            theirs.append(draw(st.sampled_from(own)))
            blocks.append(theirs[-1])
    if draw(st.booleans()):
        blocks = draw(st.permutations(blocks))
    borders = draw(st.lists(st.integers(1, 31), unique=True, max_size=5).map(sorted))
    standing = [summary(i + 1, first, last - 1) for i, (first, last) in enumerate(pairwise(borders))]
    return new_document(SESSION, "demo") + "".join(blocks), theirs, standing


@given(edited_documents())
def test_applying_summaries_keeps_everything_that_is_not_covered(given_: tuple[str, list[str], list[Summary]]) -> None:
    """Summaries replace only the unpinned entries that they cover, and applying them again changes nothing."""
    text, theirs, standing = given_
    changed = apply_summaries(text, standing, {})
    assert apply_summaries(changed, standing, {}) == changed
    assert all(block in changed for block in theirs)
    before, after = SessionDocument.parse(text), SessionDocument.parse(changed)
    for number, block in before.entries().items():
        covering = [s.id for s in standing if s.first_operation <= number <= s.last_operation]
        if block.pinned or not covering:
            assert after.entries()[number].text == block.text
        else:
            assert number not in after.entries()
            assert covering[0] in after.summaries()
    shown = list(after.summaries())
    assert shown == sorted(shown)
    if not standing:
        assert changed == text


@pytest.mark.parametrize(
    "text", ["status: active\n**Status**: Active\n", "## Mine\nstatus: active\n**Status**: Active\n"]
)
def test_words_of_people_are_not_taken_for_the_status(text: str) -> None:
    """Text of a person that looks like the status line stays unchanged when the session ends."""
    body = document(1) + f"#### Note\n{text}"
    assert f"#### Note\n{text.rstrip()}" in finished(body, closing="## Session Summary\n")

"""Chunking: where documents and operations are cut, and keys that survive edits elsewhere in the text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from orchestra_mem.core.documents.markdown import without_front_matter
from orchestra_mem.core.search.chunking import (
    WHOLE_CHARS,
    chunk_document,
    chunk_operation,
    passages_of,
)
from orchestra_mem.search_types import Tier
from orchestra_mem.types import Json, Operation
from tests.builders import an_operation

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
DECISION_LOG: Any = {"name": "decision_log.md", "tier": Tier.EPISODIC, "kind": "decision_log", "time": NOW}

DOCUMENT = """---
format: 1
---
What stands before any heading.

# Decisions

A paragraph
of two lines.

- We use SQLite
  because it is one file
- We use Python

## Rejected

```
- code is no list

x = 1
```

## Nothing yet

# Other
- None
"""


def operation(data: Json, *, number: int = 12, kind: str = "message", critical: bool = False) -> Operation:
    """An operation of a session."""
    return an_operation(number, data, session="s1", type=kind, timestamp=NOW, agent="Ann", critical=critical)


def keys(text: str) -> list[str]:
    """Return the keys of a document's chunks, in order."""
    return [chunk.key for chunk in chunk_document(text, **DECISION_LOG)]


# Documents


def test_a_document_is_cut_by_section_paragraph_and_list_item() -> None:
    """Front matter is no chunk, fenced code is one chunk, and so is a heading without text."""
    chunks = chunk_document(DOCUMENT, **DECISION_LOG)
    assert [(chunk.heading, chunk.text) for chunk in chunks] == [
        ((), "What stands before any heading."), (("Decisions",), "A paragraph\nof two lines."),
        (("Decisions",), "- We use SQLite\n  because it is one file"), (("Decisions",), "- We use Python"),
        (("Decisions", "Rejected"), "```\n- code is no list\n\nx = 1\n```"), (("Decisions",), "Nothing yet"),
        (("Other",), "- None"),
    ]  # fmt: skip
    assert [chunk.position for chunk in chunks] == list(range(7))
    assert {(chunk.group, chunk.source, chunk.kind, chunk.tier, chunk.time) for chunk in chunks} == {
        ("decision_log.md", "decision_log.md", "decision_log", Tier.EPISODIC, NOW)
    }
    assert chunks[2].embedded_text == "Decisions\n- We use SQLite\n  because it is one file"


def test_a_fence_ends_where_it_is_closed_and_code_within_a_line_is_none() -> None:
    """A fence is one passage up to its closing line, inline code opens no fence, and CRLF makes no difference."""
    text = "```x``` runs.\n\nNext.\n\n```\na\n\nb\n```\n\nLast."
    for each in (text, text.replace("\n", "\r\n")):
        assert [passage.text for passage in passages_of(each)] == [
            "```x``` runs.", "Next.", "```\na\n\nb\n```", "Last."
        ]  # fmt: skip


PARAGRAPHS = st.lists(
    st.one_of(
        st.text(st.sampled_from("abc de.\n#-`é猫"), max_size=60),
        st.sampled_from(["# One", "## Two", "- item", "None", "word " * 400, "A sentence. " * 150]),
    ),
    max_size=8,
).map("\n\n".join)


@given(PARAGRAPHS)
def test_a_line_at_the_top_of_a_document_changes_no_key_below_it(text: str) -> None:
    """A new paragraph at the top of any document adds one key and leaves the others unchanged."""
    assume(not text.startswith("---"))  # otherwise the front matter would become text
    before, after = keys(text), keys(f"A line that is new here\n\n{text}")
    assert len(after) == len(before) + 1
    assert set(before) <= set(after)


@given(PARAGRAPHS)
@example("---\n\n# One\n\n---")
def test_keys_are_distinct_and_texts_hold_every_word(text: str) -> None:
    """Every word of a document below its front matter is in some chunk, and no two chunks share a key."""
    chunks = chunk_document(text, **DECISION_LOG)
    assert len({chunk.key for chunk in chunks}) == len(chunks)
    found = " ".join(" ".join((*chunk.heading, chunk.text)) for chunk in chunks).split()
    assert {word for word in without_front_matter(text).split() if word.isalnum()} <= set(found)


def test_an_edit_in_a_long_document_changes_the_chunks_around_it_alone() -> None:
    """Editing one line in 30,000 tokens without a blank line changes at most three chunks, and mostly one or two."""
    lines = [f"Line {n} tells that part {n * 7919 % 1000} of the work was done by hand {n % 13}." for n in range(1_800)]
    before = set(keys("# Log\n\n" + "\n".join(lines)))
    new = []
    for at in range(0, len(lines), 60):
        edited = [*lines[:at], "Edited: " + lines[at], *lines[at + 1 :]]
        new.append(len(set(keys("# Log\n\n" + "\n".join(edited))) - before))
    assert len(before) > 100
    assert max(new) <= 3
    assert sum(count <= 2 for count in new) >= 0.9 * len(new)


@pytest.mark.parametrize("text", ["x" * 100_000, "same line\n" * 5_000, "a. " * 20_000, "\n" * 50_000])
def test_long_text_without_a_cut_of_its_own_is_cut_all_the_same(text: str) -> None:
    """Text without natural boundaries is cut into chunks of at most 2.5 times `WHOLE_CHARS`."""
    assert max((len(chunk.text) for chunk in chunk_document(text, **DECISION_LOG)), default=0) <= 2.5 * WHOLE_CHARS


# Operations and summaries


@given(st.recursive(st.none() | st.text() | st.integers(), lambda inner: st.dictionaries(st.text(), inner, max_size=3)))
def test_any_operation_has_chunks(data: Json) -> None:
    """Any operation has at least one chunk, with distinct keys and visible text."""
    chunks = chunk_operation(operation(data), Tier.SESSION)
    assert chunks
    assert len({chunk.key for chunk in chunks}) == len(chunks)
    assert all(chunk.text.strip() for chunk in chunks)

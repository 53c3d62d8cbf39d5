"""What the CommonMark specification gives as examples is cut, joined and merged without the change of a byte.

The examples are not ours to copy (CC-BY-SA): they come with the source of markdown-it-py, which `make venv` fetches
beside its wheel.
"""

from __future__ import annotations

import json
import sys
import tarfile
from itertools import pairwise
from pathlib import Path

import pytest

from orchestra_mem.core.documents.conflicts import mark, without_conflicts
from orchestra_mem.core.documents.markdown import join_blocks, split_blocks
from orchestra_mem.core.documents.merge import merge
from orchestra_mem.core.documents.session_document import SessionDocument

SOURCES = Path(sys.prefix) / "sources"


@pytest.fixture(scope="module")
def examples() -> list[str]:
    """The inputs of all examples of the specification, as they are, with CR LF, and without a final line end."""
    archives = sorted(SOURCES.glob("markdown_it_py-*.tar.gz"))
    assert archives, f"no source of markdown-it-py in {SOURCES}; `make venv` fetches it"
    with tarfile.open(archives[-1]) as archive:
        (name,) = (name for name in archive.getnames() if name.endswith("/test_cmark_spec/commonmark.json"))
        file = archive.extractfile(name)
        assert file is not None
        texts = [str(example["markdown"]) for example in json.load(file)]
    assert len(texts) > 600
    return [*texts, *(text.replace("\n", "\r\n") for text in texts), *(text.rstrip("\n") for text in texts)]


def test_a_document_is_the_same_after_cutting_and_joining(examples: list[str]) -> None:
    """Blocks, a session document's parts, and a text without conflicts are the text again."""
    for text in examples:
        assert join_blocks(split_blocks(text)) == text
        assert SessionDocument.parse(text).text() == text
        assert without_conflicts(text) == text


def test_merging_what_nobody_changed_changes_nothing(examples: list[str]) -> None:
    """With itself, and one side's new text into the unchanged other's."""
    for text, other in pairwise(examples):
        for merged, wanted in (
            (merge(text, text, text), text),
            (merge(text, other, text), other),
            (merge(text, text, other), other),
            (merge(text, other, other), other),
        ):
            assert (merged.text, merged.conflicts) == (wanted, ())
            assert mark(merged) == wanted

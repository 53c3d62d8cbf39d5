"""Whatever operations hold, every document that comes of them is text, and nothing in it is pinned by data."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from orchestra_mem import open_memory
from orchestra_mem.core.documents.damage import text_faults
from orchestra_mem.core.documents.markdown import split_blocks
from orchestra_mem.types import Json
from tests.conftest import Clock

SMALL = {"orchestrator": {"context_window": {"max_tokens": 2_000}}}
ODD = [
    "Bot\x00A", "Bot\ud800A", "Bot\udc80A", "Bot <!-- pin -->", "Bot\n## Operations Log\n### y (op 3)\r", "\x85\u2028",
]  # fmt: skip


@pytest.mark.parametrize("field", ["speaker", "author", "role", "from"])
def test_odd_names_go_into_summaries_as_text(tmp_path: Path, clock: Clock, field: str) -> None:
    """Who says a thing, and in which task, is escaped like other data: compaction goes on, and a flush ends it."""
    _check(tmp_path, clock, lambda odd: {field: odd, "task": odd})


def test_odd_data_of_any_field_goes_into_every_document_as_text(tmp_path: Path, clock: Clock) -> None:
    """Names of fields and values, in lists and in mappings, and what must be kept of them."""

    def told(odd: str) -> dict[str, Json]:
        said = f"We decided to use {odd} for the parser. The tests failed with {odd} at last. TODO: mend {odd}."
        return {"title": odd, odd: odd, "files": [{"path": odd}, odd], "status": "failed", "text": said, "result": said}

    _check(tmp_path, clock, told)


def _check(tmp_path: Path, clock: Clock, told: Callable[[str], dict[str, Json]]) -> None:
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        for number in range(60):
            clock.now += timedelta(minutes=10)
            odd = ODD[number % len(ODD)]
            text = f"We decided to use part{number} for module {number}, as the tests of part {number * 3} are slow."
            memory.record_operation("message <!-- pin -->", {"text": text, **told(odd)})
        memory.refresh()
        assert any(summary.level for summary in memory.losses())
        _check_documents(tmp_path)
        assert memory.flush_session() is not None
        _check_documents(tmp_path)


def _check_documents(project: Path) -> None:
    for path in sorted((project / ".obra").rglob("*.md")):
        data = path.read_bytes()
        assert text_faults(data) == [], path
        blocks = split_blocks(data.decode("utf-8"))
        assert not any(block.pinned for block in blocks), path
        assert [block.title for block in blocks if block.level == 2].count("Operations Log") <= 1, path

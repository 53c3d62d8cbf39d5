"""Promise 8: the memory answers the same after its derived data were deleted."""

from __future__ import annotations

import shutil
from pathlib import Path

from orchestra_mem import OrchestratorContextManager
from tests.memories import everywhere, work
from tests.promises.conftest import Open

QUESTIONS = ["where do we keep batch 14?", "what failed in the mail queue?", "rate limiter", "table t25"]


def _answers(memory: OrchestratorContextManager) -> list[list[str]]:
    memory.update_index()
    return [[hit.chunk.text for hit in memory.search(question, limit=5).hits] for question in QUESTIONS]


def test_search_answers_the_same_without_its_index(tmp_path: Path, open_project: Open) -> None:
    """Searches return the same hits after the index was deleted, emptied or overwritten."""
    with open_project() as memory:
        work(memory, 80)
        memory.flush_session()
        expected = _answers(memory)
        assert all(expected)
    index = tmp_path / ".obra" / "index"
    for harm in (None, b"", b"\x7fnot an index\x00" * 99):
        if harm is None:
            shutil.rmtree(index)
        for path in [path for path in index.rglob("*") if path.is_file()]:
            path.write_bytes(harm or b"")
        with open_project() as memory:
            assert _answers(memory) == expected


def test_a_session_document_is_made_again(tmp_path: Path, open_project: Open) -> None:
    """A deleted document of the running session is rebuilt byte for byte at the next start."""
    with open_project() as memory:
        work(memory, 90)
        memory.refresh()
        memory.get_orchestrator_context("next prompt")
        assert memory.losses()
    (live,) = (tmp_path / ".obra" / "sessions").glob("*.md")
    before = live.read_text(encoding="utf-8")
    live.unlink()
    with open_project() as memory:
        assert live.read_text(encoding="utf-8") == before
        assert everywhere(memory) == list(range(1, 91))
        context = memory.get_orchestrator_context("next prompt").render()
    assert "part_90.py" in context
    assert "table t25" in context

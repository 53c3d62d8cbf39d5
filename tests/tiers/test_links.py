"""A link that leads to nothing in the place of a document: the memory opens, records and serves all the same."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from orchestra_mem import open_memory
from orchestra_mem.types import DocumentName
from tests.conftest import Clock

SMALL = {"orchestrator": {"context_window": {"max_tokens": 8_192}, "working_memory": {"max_operations": 6}}}
SESSION = "session"


@pytest.mark.parametrize("to", ["/nonexist/x.md", ""], ids=["to nowhere", "to itself"])
@pytest.mark.parametrize("document", [*(name.value for name in DocumentName), SESSION])
def test_a_link_to_nothing_keeps_nobody_from_the_memory(tmp_path: Path, clock: Clock, document: str, to: str) -> None:
    """It stays as it is and is told; once it is taken away the document is there again, with what came meanwhile."""
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        for number in range(10):
            memory.record_operation("note", {"text": f"We decided to use part{number} for the parser."})
        memory.refresh()
        live = memory.session_memory.path
        assert live is not None
        path = live if document == SESSION else memory.episodic_memory.path(DocumentName(document))
    path.unlink()
    path.symlink_to(to or path.name)
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        for number in range(10, 20):
            clock.now += timedelta(minutes=10)
            memory.record_operation("note", {"text": f"We decided to use part{number} for the parser."})
        memory.refresh()
        assert "part19" in memory.get_orchestrator_context("the parser").render()
        assert memory.search_memory("part19")
        problems = memory.get_stats()["problems"]
        assert isinstance(problems, list)
        (problem,) = problems
        assert f"{path} is a symbolic link that leads" in str(problem)
        assert path.is_symlink()
        assert not path.exists()
        path.unlink()
        memory.refresh()
        assert path.is_file()
        assert len(memory.operations()) == 20
        assert memory.get_stats()["problems"] == []
    if document in (SESSION, "decision_log"):  # what stands in working memory is not yet in the session's document
        assert "part13" in path.read_text(encoding="utf-8")

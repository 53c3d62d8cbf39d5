"""A person changes a lot of a long document at once: the next context is there at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestra_mem.build import open_memory
from orchestra_mem.types import DocumentName
from tests.timing import assert_quick


@pytest.mark.parametrize("edit", ["every second line goes", "all lines are turned round"])
def test_context_does_not_wait_for_a_long_documents_comparison(tmp_path: Path, edit: str) -> None:
    """In a running epoch, where it is compared with what it was; such an edit is shown anew, not told line by line."""
    with open_memory(tmp_path, config={"tokens": {"counter": "estimate"}}) as memory:
        memory.record_operation("note", {"text": "first"})
        path = memory.episodic_memory.path(DocumentName.PROJECT_STATE)
        lines = [f"- Line {number} of a list that somebody keeps here.\n" for number in range(20_000)]
        path.write_text(path.read_text() + "\n## Mine\n\n" + "".join(lines))
        before = memory.get_orchestrator_context("test")
        changed = lines[::2] if edit == "every second line goes" else lines[::-1]
        path.write_text(path.read_text().replace("".join(lines), "".join(changed)))
        after = []
        assert_quick(0.5, lambda: after.append(memory.get_orchestrator_context("test")), tries=1)
        assert after[0].epoch == before.epoch + 1
        assert changed[-1] in after[0].render()

"""Promise 6: everything works without a model and without a network."""

from __future__ import annotations

from pathlib import Path

from tests.processes import python

# Connecting and resolving host names fail.
PROGRAM = """
import socket, sys
def refuse(*given, **named):
    raise OSError("no network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from orchestra_mem import open_memory
from tests.memories import SMALL, operation, work
with open_memory(sys.argv[1], config=SMALL) as memory:
    work(memory, 60)
    assert memory.refresh() is not None
    found = memory.search("where do we keep batch 14?")
    assert "table t14" in found.hits[0].chunk.text, found
    assert not found.notes, found.notes
    assert any(hit.reasons.dense_rank for hit in found.hits), "meaning is searched too"
    assert "table t14" in memory.get_orchestrator_context("x", query="where do we keep batch 14?").render()
    assert memory.facts() and memory.losses()
    assert memory.retriever.retrieve_context("migrate the mail queue", max_tokens=500).entries
    assert memory.flush_session().is_file()
print("done")
"""


def test_a_program_without_network_does_everything(tmp_path: Path) -> None:
    """Without a network a program records, refreshes, searches, retrieves and flushes; nothing is written to HOME."""
    assert python(PROGRAM, tmp_path, env={"HOME": str(tmp_path / "nowhere")}).stdout == "done\n"
    assert not (tmp_path / "nowhere").exists()

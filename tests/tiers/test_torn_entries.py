"""An entry that a killed process has written in part is taken out at the next start, wherever it ends."""

from __future__ import annotations

from pathlib import Path

from orchestra_mem.build import open_memory

CONFIG = {"orchestrator": {"working_memory": {"max_operations": 4}}, "tokens": {"counter": "estimate"}}


def test_a_torn_entry_is_taken_out_wherever_it_ends(tmp_path: Path) -> None:
    """Within a heading, at the end of a line, or a few characters into a line of its body."""
    with open_memory(tmp_path, config=CONFIG) as memory:
        for number in range(7):
            memory.record_operation("task", {"title": f"task {number}", "a": "b", "status": "completed"})
        path = memory.session_memory.path
        entry = memory.working_memory.entries()[0].text
    assert path is not None
    whole = path.read_text(encoding="utf-8")
    lines = [place for place, character in enumerate(entry) if character == "\n"]
    ends = {1, 2, 5, 6, 7, 20, *(line + more for line in lines[:-1] for more in range(8) if line + more < len(entry))}
    for end in sorted(ends):
        path.write_text(whole + entry[:end], encoding="utf-8")
        open_memory(tmp_path, config=CONFIG).close()
        assert path.read_text(encoding="utf-8") == whole, f"an entry cut after {end} of {len(entry)} characters stands"

"""The search index on a disk that is full or may only be read: what is there answers, and says what it lacks.

The disks are real: file systems in main memory, mounted by `unshare` in a namespace that ends with its process. Each
scenario runs in a process of its own: this file, called as a program.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestra_mem.build import open_memory
from orchestra_mem.faces.cli import app
from orchestra_mem.memory.manager import OrchestratorContextManager
from tests.test_storage_failures import play

EARLY = "The reactor pump was repaired by hand."
LATE = "The quokka enclosure needs a new fence."


def _found(memory: OrchestratorContextManager, query: str) -> tuple[list[str], str]:
    answer = memory.search(query, limit=1)
    return [hit.chunk.text for hit in answer.hits], "; ".join(answer.notes)


def _command(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [*arguments])
    return done.exit_code, done.stdout, done.stderr


def full_index(project: Path, index: Path) -> None:
    """Fill the disk that the index lies on while it grows, then make room."""
    with open_memory(project) as memory:
        memory.record_operation("note", {"text": EARLY})
        assert _found(memory, "reactor pump") == ([EARLY], "")
        (index / "ballast").write_bytes(b"x" * (shutil.disk_usage(index).free - 200_000))
        for number in range(300):
            memory.record_operation("note", {"text": " ".join(f"w{number * 31 + word}x" for word in range(30))})
        memory.record_operation("note", {"text": LATE})
        while "is full" not in _found(memory, "reactor pump")[1]:
            pass
        assert _found(memory, "reactor pump")[0] == [EARLY]
    code, answer, told = _command("search", "reactor pump", "-C", str(project), "--limit", "1")
    assert (code, EARLY in answer) == (0, True)
    assert "the newest may be missing, the index could not be brought up: " in told
    assert "is full; free some space, then go on" in told
    code, _, told = _command("index", "-C", str(project))
    assert (code, "is full" in told) == (4, True)
    subprocess.run(["mount", "-o", "remount,size=64m", str(index)], check=True)
    with open_memory(project) as memory:
        memory.update_index()
        assert _found(memory, "quokka enclosure") == ([LATE], "")
        assert _found(memory, "reactor pump") == ([EARLY], "")


def read_only_index(project: Path, index: Path) -> None:
    """Take the right to write into the index alone, then give it back."""
    with open_memory(project) as memory:
        memory.record_operation("note", {"text": EARLY})
        memory.update_index()
    subprocess.run(["mount", "-o", "remount,ro", str(index)], check=True)
    with open_memory(project) as memory:
        memory.record_operation("note", {"text": LATE})
        texts, notes = _found(memory, "quokka enclosure")
        assert texts == [LATE]
        assert notes.startswith(f"{project / '.obra' / 'index'} cannot be written to")
        assert _found(memory, "reactor pump")[0] == [EARLY]
    subprocess.run(["mount", "-o", "remount,rw", str(index)], check=True)
    with open_memory(project) as memory:
        assert _found(memory, "quokka enclosure") == ([LATE], "")


@pytest.mark.parametrize("scenario", ["full_index", "read_only_index"])
def test_what_is_in_the_index_answers(tmp_path: Path, scenario: str) -> None:
    """With a note; when the disk may be written again, all is found."""
    play(scenario, tmp_path, of=__file__, mounted=True)


def main(scenario: str, folder: str) -> None:
    """Play a scenario on a disk of 3 MB."""
    project = Path(folder) / "project"
    index = project / ".obra" / "index"
    index.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(index)], check=True)
    {"full_index": full_index, "read_only_index": read_only_index}[scenario](project, index)


if __name__ == "__main__":
    main(*sys.argv[1:])

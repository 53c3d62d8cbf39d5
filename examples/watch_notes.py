"""Remember a folder of notes: record each saved text, and answer questions from all texts that were ever saved.

    pip install orchestra-mem
    python examples/watch_notes.py ~/notes                      # follows the folder until Ctrl-C
    python examples/watch_notes.py ~/notes "who has the key?"   # records new texts, then answers

The memory is in `.obra` inside the folder. Each text of a note is recorded only once, and earlier texts can still be
found after the note has been changed or deleted.
"""

from __future__ import annotations

import sys
import time
from hashlib import sha256
from pathlib import Path

from orchestra_mem import OrchestratorContextManager, open_memory

SUFFIXES = {".md", ".txt"}


def read_edits(memory: OrchestratorContextManager, folder: Path, seen: dict[Path, int]) -> int:
    """Record notes saved since the last call, and return their number. `seen`: Last modification time of each note."""
    count = 0
    for path in sorted(folder.rglob("*")):
        if path.suffix not in SUFFIXES or ".obra" in path.parts or not path.is_file():
            continue
        saved = path.stat().st_mtime_ns
        if seen.get(path) == saved:
            continue
        seen[path] = saved
        name, text = str(path.relative_to(folder)), path.read_text(encoding="utf-8", errors="replace")
        key = sha256(f"{name}\n{text}".encode(errors="replace")).hexdigest()
        memory.record_operation("note", {"title": name, "text": text}, agent="notes", idempotency_key=key)
        count += 1
    return count


def main(folder: Path, question: str | None) -> int:
    """Answer a question, or follow the folder."""
    seen: dict[Path, int] = {}
    with open_memory(folder) as memory:
        print(f"{read_edits(memory, folder, seen)} notes read", file=sys.stderr, flush=True)
        if question is not None:
            for hit in memory.search(question, limit=3).hits:
                print(hit.chunk.text)
            return 0
        while True:
            time.sleep(1)
            if count := read_edits(memory, folder, seen):
                print(f"{count} notes read", file=sys.stderr, flush=True)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or not Path(sys.argv[1]).is_dir():
        sys.exit('usage: watch_notes.py FOLDER ["QUESTION"]')
    try:
        sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) == 3 else None))
    except KeyboardInterrupt:
        sys.exit(130)

"""Remember a folder of notes: each saved text is recorded, and questions are answered from all that was ever saved.

    pip install orchestra-mem
    python examples/watch_notes.py ~/notes                      # follows the folder until Ctrl-C
    python examples/watch_notes.py ~/notes "who has the key?"   # takes in what is new, then answers

The memory lies in `.obra` inside the folder. A text that was recorded once is not recorded again, and an earlier text
of a note can still be found after the note was changed or deleted.
"""

from __future__ import annotations

import sys
import time
from hashlib import sha256
from pathlib import Path

from orchestra_mem import OrchestratorContextManager, open_memory

SUFFIXES = {".md", ".txt"}


def take_in(memory: OrchestratorContextManager, folder: Path, seen: dict[Path, int]) -> int:
    """Record the notes that were saved since they were `seen`; how many."""
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
        print(f"{take_in(memory, folder, seen)} notes read", file=sys.stderr, flush=True)
        if question is not None:
            for hit in memory.search(question, limit=3).hits:
                print(hit.chunk.text)
            return 0
        while True:
            time.sleep(1)
            if count := take_in(memory, folder, seen):
                print(f"{count} notes read", file=sys.stderr, flush=True)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or not Path(sys.argv[1]).is_dir():
        sys.exit('usage: watch_notes.py FOLDER ["QUESTION"]')
    try:
        sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) == 3 else None))
    except KeyboardInterrupt:
        sys.exit(130)

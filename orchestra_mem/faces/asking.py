"""Ask before something goes for good."""

from __future__ import annotations

import sys

from orchestra_mem.faces.command import Invocation


def agreed(run: Invocation, question: str) -> bool:
    """Ask on stderr, and read one line from stdin; only `y` and `yes` agree."""
    run.tell(f"{question} (yes or no)")
    return sys.stdin is not None and sys.stdin.readline().strip().lower() in ("y", "yes")

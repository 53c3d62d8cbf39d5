"""Ask before something goes for good, and who acts."""

from __future__ import annotations

import sys

from typer import BadParameter

from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.faces.command import Invocation


def agreed(run: Invocation, question: str) -> bool:
    """Ask on stderr, and read one line from stdin; only `y` and `yes` agree."""
    run.tell(f"{question} (yes or no)")
    return sys.stdin is not None and sys.stdin.readline().strip().lower() in ("y", "yes")


def agent_name(given: str | None) -> str:
    """Read who acts: the owner where nothing was given, never where that is empty, as by a variable that is not set."""
    if given is not None and not given.strip():
        raise BadParameter("it is empty: name an agent, or leave it out to act as the memory's owner")
    return given.strip() if given is not None else OWNER

"""A process that shares and adopts decisions for several projects and prints a line for each acknowledged change.

Arguments: the folder of the projects, a random seed, the number of projects to visit.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from orchestra_mem import InvalidChangeError, open_memory
from orchestra_mem.types import MustKeepKind


def _tell(*words: object) -> None:
    sys.stdout.write("\t".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main(folder: str, seed: str, count: str) -> None:
    """Visit projects in an order that the seed determines."""
    rng = random.Random(seed)
    projects = sorted(Path(folder).iterdir())
    for project in rng.choices(projects, k=int(count)):
        with open_memory(project) as memory:
            for fact in memory.facts():
                if fact.kind in (MustKeepKind.DECISION, MustKeepKind.CONSTRAINT):
                    try:
                        done = memory.share_decision(f"K{fact.id}")
                    except InvalidChangeError:  # another process has adopted what supersedes it
                        continue
                    _tell("shared", done.number, done.is_new, fact.text)
            shared = [each for each in memory.shared_decisions() if each.number]
            if shared:
                wanted = rng.choice(shared)
                adopted = memory.adopt_decision(wanted.number)
                _tell("adopted", project.name, adopted.number, wanted.text)


if __name__ == "__main__":
    main(*sys.argv[1:])

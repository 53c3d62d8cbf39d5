"""Generates two long versions of a document, and measures how long their merge takes."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from orchestra_mem.core.documents.conflicts import mark
from orchestra_mem.core.documents.document_merge import merged
from orchestra_mem.ports import TokenCounter

_WORDS = (
    "parser cache window token model shard build deploy review branch merge release test module server client timeout "
    "budget prompt answer story epic milestone ledger the of and for with before after once"
).split()
_EDITS = 25


def merge_ms(counter: TokenCounter, tokens: int, count: int) -> Iterator[float]:
    """Yield the CPU milliseconds of merges, each with a base of `tokens` tokens and 25 edits on either side."""
    rng = random.Random("merges")
    for _ in range(count):
        base = document(rng, counter, tokens)
        machine, person = _edited(rng, base), _edited(rng, base)
        start = time.thread_time()
        mark(merged(base, machine, person))
        yield (time.thread_time() - start) * 1000


def document(rng: random.Random, counter: TokenCounter, tokens: int) -> str:
    """Generate a decision log of about `tokens` tokens."""
    lines = ["---", "format: 1", "document: decision_log", "updated: never", "---", "", "# Decision Log", ""]
    size = number = 0
    while size < tokens:
        number += 1
        said = " ".join(rng.choices(_WORDS, k=rng.randint(6, 20)))
        if number % 60 == 1:
            new = ["", f"## Part {number}", ""]
        elif rng.random() < 0.3:
            new = [f"### [2025-01-01 10:00:00] {said} (K{number})", "", f"> {said}, {number}", ""]
        else:
            new = [f"- {said} (K{number})"]
        lines += new
        size += counter.count("\n".join(new))
    return "\n".join(lines) + "\n"


def _edited(rng: random.Random, text: str) -> str:
    """Insert, remove and change lines, and move blocks of five lines."""
    lines = text.split("\n")
    for number in range(_EDITS):
        place = rng.randrange(8, len(lines) - 6)
        kind = rng.random()
        if kind < 0.4:
            lines.insert(place, f"- {' '.join(rng.choices(_WORDS, k=9))}")
        elif kind < 0.6:
            del lines[place]
        elif kind < 0.9:
            lines[place] += f" and {number}"
        else:
            moved = lines[place : place + 5]
            del lines[place : place + 5]
            to = rng.randrange(8, len(lines))
            lines[to:to] = moved
    return "\n".join(lines)

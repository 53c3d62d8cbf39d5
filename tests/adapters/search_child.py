"""A process that changes a search index, prints what it has done, and kills itself at a given step.

Arguments: folder, first chunk number, write point (empty for any), and at which pass of that point to die.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import zlib
from pathlib import Path

import numpy as np

from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.search_types import Vector
from tests.adapters.search_oracle import MODEL, analyse, some_chunk, unit_vectors

_STEPS = 60


def vector_of(key: str) -> Vector:
    """Return a unit vector that depends only on the chunk's key."""
    vector: Vector = unit_vectors(1, seed=zlib.crc32(key.encode()))[0]
    return vector


def _tell(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def main(folder: str, first: str, point: str, passes: str) -> None:
    """Change the index at random until a write point kills the process; print each step before and after it."""
    left = int(passes)

    def reap(name: str) -> None:
        nonlocal left
        if point in ("", name):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    rng, number = random.Random(first), int(first)
    if "words" in point:  # a chunk added without an embedder, whose words upkeep must cut later
        DiskSearchIndex(Path(folder), analyse).add([some_chunk(random.Random("first"), "first")])
        _tell("begin add first")
        _tell("done")
    words = WordLlamaEmbedder() if "words" in point else None
    index = DiskSearchIndex(Path(folder), analyse, approximate_from=100, words=words, write_point=reap)
    own: list[str] = []
    for _ in range(_STEPS):
        step = rng.choice(["add", "add", "add", "remove", "embed", "embed", "maintain", "switch"])
        if step == "add":
            keys = [f"k{number + offset}" for offset in range(rng.choice([1, 3, 120]))]
            number += len(keys)
            own += keys
            _tell("begin add", *keys)
            index.add([some_chunk(random.Random(key), key) for key in keys])
        elif step == "remove":
            keys = rng.sample(own, min(len(own), 5))
            _tell("begin remove", *keys)
            index.remove(keys)
        elif step == "embed":
            ids = index.without_vectors(MODEL, 150)
            keys = [chunk.key for chunk in index.chunks(ids) if chunk]
            _tell("begin embed", *keys)
            index.add_vectors(MODEL, ids, np.array([vector_of(key) for key in keys], np.float32).reshape(-1, 8))
        elif step == "switch":
            _tell("begin drop")
            index.drop_model(MODEL)
        else:
            _tell("begin maintain")
            index.maintain()
        _tell("done")
    index.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

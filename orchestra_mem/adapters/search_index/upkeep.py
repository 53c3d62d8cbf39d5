"""What is done to the index in the background, so that adding stays quick and searching too."""

from __future__ import annotations

import logging
import time
import uuid

from orchestra_mem.adapters.search_index import keyword
from orchestra_mem.adapters.search_index.approximate import CodeIndex
from orchestra_mem.adapters.search_index.database import bump
from orchestra_mem.adapters.search_index.models import ModelVectors
from orchestra_mem.adapters.search_index.state import IndexState, discard

logger = logging.getLogger(__name__)

_BLOCK = 512


def tidy_segments(state: IndexState, max_chunks: int, *, purge: bool = False) -> None:
    """Join small segments until there are few of each size up to `max_chunks`; rewrite those with many chunks gone."""
    while True:
        with state.reading("tidying") as connection:
            found = keyword.segments(connection)
            alive = state.columns["alive"]
            run = keyword.due_for_joining(found, max_chunks) or (keyword.with_losses(found, alive) if purge else [])
        if not run:
            return
        with state.writing("tidy") as connection:
            with state.reading("tidying"):
                alive = state.columns["alive"] == 1
            # Another process may have done it meanwhile.
            if set(run) <= set(keyword.segments(connection)):
                keyword.rewrite(connection, run, alive)


def keep_codes(state: IndexState, approximate_from: int) -> None:
    """Make the codes that are due, and add to those that are there what waits."""
    with state.reading("training"):
        models = list(state.models.values())
    for kept in models:
        with state.reading("training"):
            due = kept.due_for_training(approximate_from)
        if due:
            _train(state, kept)
            continue
        with state.reading("training"):
            waiting = kept.waiting()
        for start in range(0, len(waiting), _BLOCK):
            with state.reading("training"):  # in small steps: searches wait meanwhile
                kept.put_into_codes(waiting[start : start + _BLOCK])
        if (codes := kept.unsaved_codes()) is not None:
            _save(state, kept, codes)


def _train(state: IndexState, kept: ModelVectors) -> None:
    start = time.perf_counter()
    with state.reading("training"):
        rows, having = kept.rows, kept.having.copy()
    codes = CodeIndex.train(rows, having, state.load_faiss(), lambda: not state.closed)
    if codes is not None:
        _save(state, kept, codes)
        milliseconds = 1000 * (time.perf_counter() - start)
        logger.info("made codes of %d vectors of %s in %.0f ms", codes.count, kept.row.model.name, milliseconds)


def _save(state: IndexState, kept: ModelVectors, codes: CodeIndex) -> None:
    """Write the codes to a file of their own, then make it the one that counts."""
    name = f"codes-{uuid.uuid4().hex[:8]}.faiss"
    state.database.tell("index.codes.write.before")
    crc = codes.save(state.folder / name)
    state.database.tell("index.codes.write.after")
    old = kept.row
    with state.writing("codes") as connection:
        taken = connection.execute(
            "UPDATE model SET codes = ?, codes_crc = ?, trained_on = ? WHERE slot = ? AND file = ?",
            (name, crc, codes.trained_on, old.slot, old.file),
        ).rowcount
        bump(connection)
    with state.reading("training"):  # only now do its rows name the file
        if taken:
            kept.use(codes, name)
    if old.codes:
        discard(state.folder / old.codes)
    if not taken:
        discard(state.folder / name)


def remove_orphans(state: IndexState) -> None:
    """Take away files that a killed process has left and nobody knows of."""
    with state.writing("orphans") as connection:
        known = {name for row in connection.execute("SELECT file, codes FROM model") for name in row}
        for pattern in ("vectors-*", "codes-*"):
            for path in state.folder.glob(pattern):
                if path.name not in known:
                    discard(path)

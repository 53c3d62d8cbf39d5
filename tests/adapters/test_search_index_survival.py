"""The search index under kills, damaged files, and use by several processes and threads."""

from __future__ import annotations

import random
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.adapters.search_index.inspection import inspect
from orchestra_mem.errors import StorageError
from orchestra_mem.search_types import EVERYTHING, Chunk
from tests.adapters.search_child import vector_of
from tests.adapters.search_oracle import MODEL, Oracle, analyse, compare, some_chunk, terms, unit_vectors
from tests.processes import start

_POINTS = [
    *(f"index.{name}.{when}" for name in ("create", "add", "remove", "vectors", "drop", "words", "orphans")
      for when in ("commit.before", "commit.after")),
    *(f"index.vectors.write.{when}" for when in ("before", "after")),
]  # fmt: skip


def _chunk(key: str) -> Chunk:
    return some_chunk(random.Random(key), key)


def _apply(keys: dict[str, bool], step: str) -> None:
    """Apply a printed step to the expected state: keys with whether they are embedded."""
    what, *names = step.split(" ")
    if what == "add":
        keys.update((name, keys.get(name, False)) for name in names)
    elif what == "remove":
        for name in names:
            keys.pop(name, None)
    elif what == "embed":
        keys.update((name, True) for name in names)
    elif what == "drop":
        keys.update((name, False) for name in keys)


def _oracle_for(index: DiskSearchIndex, keys: dict[str, bool]) -> Oracle:
    ids = {key: i for group in ("S1", "S2", "log \ud800") for key, i in index.keys(group).items()}
    oracle = Oracle()
    assert set(ids) == set(keys)
    for key, embedded in keys.items():
        oracle.add([_chunk(key)], [ids[key]])
        if embedded:
            oracle.vectors[ids[key]] = vector_of(key)
    return oracle


def _live(folder: Path, first: int, point: str, passes: int, keys: dict[str, bool]) -> tuple[str, int]:
    """Run a child until it dies; update `keys` with its finished steps, return the unfinished one and the exit code."""
    child = start("-m", "tests.adapters.search_child", folder, first, point, passes)
    said, _ = child.communicate(timeout=60)
    pending = ""
    for line in said.splitlines():
        if line == "done":
            _apply(keys, pending)
            pending = ""
        else:
            pending = line.removeprefix("begin ")
    return pending, child.returncode


def _examine(folder: Path, keys: dict[str, bool], pending: str) -> None:
    """Check that the index has every finished step, and the unfinished one completely or not at all."""
    with closing(DiskSearchIndex(folder, analyse)) as index:
        assert index.problems == ()
        assert inspect(folder, thorough=True).fault is None
        after = dict(keys)
        _apply(after, pending)
        found = {key for group in ("S1", "S2", "log \ud800") for key in index.keys(group)}
        missing = {chunk.key for chunk in index.chunks(index.without_vectors(MODEL, 10**6)) if chunk}
        if found == set(after) and missing == {key for key, embedded in after.items() if not embedded}:
            keys.clear()
            keys.update(after)
        oracle = _oracle_for(index, keys)
        compare(index, oracle, random.Random(0))
        index.maintain()
        compare(index, oracle, random.Random(1))


@pytest.mark.parametrize("point", _POINTS)
def test_a_kill_at_any_step_loses_nothing_acknowledged(tmp_path: Path, point: str) -> None:
    """A kill at any write point loses no finished step; the unfinished one is done completely or not at all."""
    keys: dict[str, bool] = {}
    seldom = any(name in point for name in ("create", "words"))
    pending, code = _live(tmp_path, 1, point, 1 if seldom else 2, keys)
    assert code == -signal.SIGKILL
    _examine(tmp_path, keys, pending)


@pytest.mark.parametrize("life", range(2))
def test_a_kill_at_any_moment_loses_nothing_acknowledged(tmp_path: Path, life: int) -> None:
    """A kill at any moment loses no finished step, also a second time in the same folder."""
    keys: dict[str, bool] = {}
    for first in (1, 100_001):
        pending, code = _live(tmp_path, first, "", 20 + 31 * life, keys)
        assert code == -signal.SIGKILL
        _examine(tmp_path, keys, pending)


def _filled(folder: Path) -> Oracle:
    index, oracle = DiskSearchIndex(folder, analyse), Oracle()
    chunks = [_chunk(f"k{number}") for number in range(60)]
    ids = index.add(chunks)
    oracle.add(chunks, ids.tolist())
    rows = np.array([vector_of(chunk.key) for chunk in chunks], np.float32)
    index.add_vectors(MODEL, ids, rows)
    oracle.vectors.update(zip(ids.tolist(), rows, strict=True))
    index.close()
    return oracle


def _replace(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


def _sql(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda path: _replace(path, b"not a database" * 1000), "file is not a database"),
        (lambda path: _replace(path, path.read_bytes()[:20_000]), "malformed"),
        (lambda path: _sql(path, "DROP TABLE words"), "has different tables than this program creates"),
        (lambda path: _sql(path, "DELETE FROM state"), "was made by another version of the text analysis"),
        (lambda path: _sql(path, "UPDATE page SET data = x'00'"), "page 0 of the search index has 1 bytes, not 28672"),
        (lambda path: _sql(path, "PRAGMA user_version = 3"), "has format 3, but this program uses format 5"),
        (lambda path: _sql(path, "PRAGMA application_id = 5"), "is not a search index of orchestra-mem"),
    ],
)
def test_a_damaged_database_is_told_and_made_anew(tmp_path: Path, damage: Callable[[Path], None], told: str) -> None:
    """A damaged index reports the damage once, on opening, and starts empty; chunks added to it are found."""
    oracle = _filled(tmp_path)
    damage(tmp_path / "search.db")
    (tmp_path / "codes-of-an-older-format.faiss").touch()
    index = DiskSearchIndex(tmp_path, analyse)
    assert index.count() == 0
    assert len(index.problems) == 1
    assert told in index.problems[0]
    assert index.problems[0].endswith("the search index is rebuilt")
    assert [*tmp_path.glob("vectors-*"), *tmp_path.glob("codes-*")] == []
    index.close()
    again = _filled(tmp_path)
    with closing(DiskSearchIndex(tmp_path, analyse)) as index:
        assert index.problems == ()
        compare(index, again, random.Random(1))
        assert set(again.ids) == set(oracle.ids)


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 400))
def test_damaged_bytes_are_told_or_do_no_harm(seed: int, count: int) -> None:
    """After bytes of search.db are overwritten, opening succeeds and queries raise only `StorageError`."""
    rng = random.Random(seed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        _filled(folder)
        data = bytearray((folder / "search.db").read_bytes())
        place = rng.randrange(len(data))
        data[place : place + count] = rng.randbytes(len(data[place : place + count]))
        _replace(folder / "search.db", bytes(data))
        with closing(DiskSearchIndex(folder, analyse)) as index:
            try:
                ranking = index.keyword(terms("gate", "pump"), EVERYTHING, 100)
                assert len(index.chunks(ranking.ids)) == len(ranking.ids) <= 60
                index.dense(MODEL, unit_vectors(1)[0], EVERYTHING, 100)
                index.add([_chunk("new")])
            except StorageError as error:
                assert "index --anew" in str(error)
            index.rebuild()
            assert (index.count(), index.problems) == (0, ())
            index.add([_chunk("new")])
            assert index.count() == 1


def test_others_see_what_is_committed_with_their_next_question(tmp_path: Path) -> None:
    """A second opening of the folder sees each committed change with its next query."""
    with closing(DiskSearchIndex(tmp_path, analyse)) as writer:
        reader = DiskSearchIndex(tmp_path, analyse)
        rng, oracle = random.Random(5), Oracle()
        for _ in range(12):
            chunks = [some_chunk(rng, f"k{rng.randrange(200)}") for _ in range(30)]
            oracle.add(chunks, writer.add(chunks).tolist())
            gone = [f"k{rng.randrange(200)}" for _ in range(5)]
            assert writer.remove(gone) == oracle.remove(gone)
            ids = writer.without_vectors(MODEL, 15)
            rows = unit_vectors(len(ids), seed=rng.randrange(99))
            writer.add_vectors(MODEL, ids, rows)
            oracle.vectors.update(zip(ids.tolist(), rows, strict=True))
            compare(reader, oracle, rng)
            writer, reader = reader, writer
        writer.drop_model(MODEL)
        oracle.vectors.clear()
        compare(reader, oracle, rng)
    reader.close()


def test_threads_add_remove_and_search_at_once(tmp_path: Path) -> None:
    """Threads add, remove, embed and search at once: no call fails and no chunk is lost."""
    index = DiskSearchIndex(tmp_path, analyse)
    stop = threading.Event()

    def write(first: int) -> None:
        for number in range(first, first + 40):
            index.add([_chunk(f"k{number}"), _chunk(f"gone{number}")])
            index.remove([f"gone{number}"])
            ids = index.without_vectors(MODEL, 3)
            index.add_vectors(MODEL, ids, unit_vectors(len(ids)))

    def search() -> None:
        while not stop.is_set():
            ranking = index.keyword(terms("gate", "pump"), EVERYTHING, 10)
            index.chunks(ranking.ids)
            index.dense(MODEL, unit_vectors(1)[0], EVERYTHING, 10)
            index.neighbours(ranking.ids, 1)
            index.maintain()
            time.sleep(0.001)

    with ThreadPoolExecutor(5) as pool:
        readers = [pool.submit(search) for _ in range(2)]
        try:
            list(pool.map(write, (0, 1000, 2000)))
        finally:
            stop.set()
        for reader in readers:
            reader.result()
    assert index.count() == 120
    assert inspect(tmp_path, thorough=True).fault is None
    index.close()

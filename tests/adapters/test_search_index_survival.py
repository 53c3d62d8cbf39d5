"""The search index with damaged files, killed in a change, and in use by several processes and threads at once."""

from __future__ import annotations

import os
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

from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.adapters.search_index.inspection import inspect
from orchestra_mem.errors import StorageError
from orchestra_mem.search_types import EVERYTHING, Chunk
from tests.adapters.search_samples import MODEL, analyse, some_chunk, terms, unit_vectors
from tests.processes import python


def _chunk(key: str) -> Chunk:
    return some_chunk(random.Random(key), key)


def _filled(folder: Path) -> None:
    """Fill an index with 60 chunks and their vectors."""
    with closing(DiskSearchIndex(folder, analyse)) as index:
        ids = index.add([_chunk(f"k{number}") for number in range(60)])
        index.add_vectors(MODEL, ids, unit_vectors(60))


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
    _filled(tmp_path)
    damage(tmp_path / "search.db")
    (tmp_path / "codes-of-an-older-format.faiss").touch()
    index = DiskSearchIndex(tmp_path, analyse)
    assert index.count() == 0
    assert len(index.problems) == 1
    assert told in index.problems[0]
    assert index.problems[0].endswith("the search index is rebuilt")
    assert [*tmp_path.glob("vectors-*"), *tmp_path.glob("codes-*")] == []
    index.close()
    _filled(tmp_path)
    with closing(DiskSearchIndex(tmp_path, analyse)) as index:
        assert (index.problems, index.count()) == ((), 60)
        assert len(index.dense(MODEL, unit_vectors(1)[0], EVERYTHING, 99).ids) == 60
        assert inspect(tmp_path, thorough=True).fault is None


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


_KILLED = "import sys; from tests.adapters.test_search_index_survival import _change; _change(*sys.argv[1:])"
_POINTS = [f"index.{n}.commit.{when}" for n in ("remove", "orphans", "words", "drop") for when in ("before", "after")]


def _change(folder: str, last: str = "") -> None:
    """Remove ten chunks, do the upkeep, and delete the vectors of a model; kill this process at the point `last`."""

    def reach(point: str) -> None:
        if point == last:
            os.kill(os.getpid(), signal.SIGKILL)

    with closing(DiskSearchIndex(Path(folder), analyse, words=WordLlamaEmbedder(), write_point=reach)) as index:
        index.remove([f"k{number}" for number in range(10)])
        index.maintain()
        index.drop_model(MODEL)


@pytest.mark.parametrize("done", range(len(_POINTS)))
def test_a_kill_leaves_each_step_done_or_not_begun(tmp_path: Path, done: int) -> None:
    """A step is complete after its commit and absent before; repeated after the kill, all steps are complete."""
    _filled(tmp_path)
    (tmp_path / "vectors-orphan.f32").touch()
    python(_KILLED, tmp_path, _POINTS[done], status=-signal.SIGKILL)
    for removed, cut, dropped in ((done >= 1, done >= 5, done >= 7), (True, True, True)):
        assert inspect(tmp_path, thorough=True).fault is None
        with closing(DiskSearchIndex(tmp_path, analyse)) as index:
            ids = np.arange(11 if removed else 1, 61)
            assert (index.problems, index.count()) == ((), len(ids))
            assert index.models() == ({} if dropped else {MODEL: len(ids)})
            assert index.vectors(MODEL, ids) == pytest.approx(unit_vectors(60)[ids - 1] * (not dropped))
            assert index.outlines(np.arange(61), EVERYTHING).cut.tolist() == [cut] * len(ids)
            gates = [number for number in ids if "gate" in _chunk(f"k{number - 1}").embedded_text.split()]
            assert sorted(index.keyword(terms("gate"), EVERYTHING, 99).ids) == gates
        _change(str(tmp_path))
    assert [*tmp_path.glob("vectors-*")] == []


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

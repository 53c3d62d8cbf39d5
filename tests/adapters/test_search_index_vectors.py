"""Dense search: FAISS compared with NumPy, codes, damaged vectors and wrong dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.adapters.search_index.vectors import ModelRow, ModelVectors
from orchestra_mem.errors import OrchestraMemError
from orchestra_mem.search_types import EVERYTHING, Chunk, EmbeddingModel, SearchFilter, Tier, Vector, Vectors
from tests.adapters.search_samples import MODEL, analyse, passes, terms

WIDE = EmbeddingModel(name="wide", version="1", dimensions=32)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[DiskSearchIndex]:
    """An index that uses codes from 2,000 vectors on."""
    opened = DiskSearchIndex(tmp_path / "index", analyse)
    opened.approximate_from = 2_000
    yield opened
    opened.close()


def _chunks(first: int, count: int) -> list[Chunk]:
    return [
        Chunk(
            key=f"k{n}", tier=Tier.SESSION, source="op", text="gate", kind=f"kind {n % 100}", group="S1", position=n,
            agent="coder" if n % 2 else None,
        )
        for n in range(first, first + count)
    ]  # fmt: skip


def _clustered(count: int, seed: int = 0) -> Vectors:
    """Return unit vectors in clusters of different sizes, as texts of different topics have."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((60, 32))
    share = 1 / np.arange(1, 61)
    found = centres[rng.choice(60, count, p=share / share.sum())] + 0.7 * rng.standard_normal((count, 32))
    unit: Vectors = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _exact(rows: Vectors, vector: Vector, wanted: NDArray[np.bool_], limit: int) -> list[int]:
    scores = rows.astype(np.float64) @ vector
    order = np.lexsort((np.arange(len(rows)), -scores))
    return order[wanted[order]][:limit].tolist()  # type: ignore[no-any-return]


def _assert_found(index: DiskSearchIndex, rows: Vectors, least: float, where: SearchFilter = EVERYTHING) -> None:
    """Check recall against exact search, and exact scores; `rows` are by id, all zero without a vector."""
    every = index.chunks(np.arange(len(rows)))
    wanted = rows.any(axis=1) & np.array([chunk is not None and passes(where, chunk) for chunk in every])
    hits = total = 0
    for number, vector in enumerate(_clustered(40, seed=7)):
        limit = (10, 100)[number % 2]
        found, expected = index.dense(WIDE, vector, where, limit), _exact(rows, vector, wanted, limit)
        np.testing.assert_allclose(found.scores, rows[found.ids] @ vector, atol=1e-6)
        assert wanted[found.ids].all()
        assert (np.diff(found.scores) <= 0).all()
        hits, total = hits + len(set(found.ids.tolist()) & set(expected)), total + len(expected)
    assert hits >= least * total


def _fill(index: DiskSearchIndex, first: int, count: int) -> Vectors:
    rows = _clustered(count, seed=first)
    index.add_vectors(WIDE, index.add(_chunks(first, count)), rows)
    return rows


def test_codes_follow_all_changes(index: DiskSearchIndex, tmp_path: Path) -> None:
    """Codes follow changes: added vectors are found before and after upkeep and reopening, removed ones are not."""
    rows = np.zeros((13_001, 32), np.float32)
    rows[1:5_001] = _fill(index, 1, 5_000)
    _assert_found(index, rows, 1.0)
    index.maintain()
    _assert_found(index, rows, 0.99)
    rows[5_001:5_501] = _fill(index, 5_001, 500)
    _assert_found(index, rows, 0.99)
    index.remove([f"k{number}" for number in range(1, 5_501, 3)])
    rows[1:5_501:3] = 0
    _assert_found(index, rows, 0.99)
    rows[5_501:13_001] = _fill(index, 5_501, 7_500)
    _assert_found(index, rows, 0.99)
    index.maintain()
    for where in (EVERYTHING, SearchFilter(agent="coder"), SearchFilter(kinds=("kind 3",)), SearchFilter(agent="x")):
        _assert_found(index, rows, 0.99, where)
    index.close()
    with closing(DiskSearchIndex(tmp_path / "index", analyse)) as index:
        _assert_found(index, rows, 1.0)
        assert index.problems == ()


def test_codes_can_be_made_while_vectors_are_added(tmp_path: Path) -> None:
    """Codes are made only of the vectors committed before, even if more are committed meanwhile."""

    class Committing(ModelVectors):
        @property
        def rows(self) -> Vectors:
            rows = super().rows
            self.update(np.ones(15, np.bool_), 15)
            return rows

    vectors = Committing(tmp_path, ModelRow(slot=0, model=WIDE, file="wide.f32"))
    vectors.write(np.arange(20), _clustered(20))
    vectors.update(np.ones(10, np.bool_), 10)
    codes, coded = vectors.make_codes()
    assert (codes.ntotal, len(coded)) == (10, 10)


@pytest.mark.parametrize("damage", ["delete", "truncate", "garbage"])
def test_damaged_vectors_are_told_and_wanted_again(index: DiskSearchIndex, tmp_path: Path, damage: str) -> None:
    """Damaged vectors are reported and requested again; keyword search still answers."""
    _fill(index, 1, 100)
    index.close()
    (path,) = (tmp_path / "index").glob("vectors-*")
    data = path.read_bytes()
    path.unlink()
    if damage != "delete":
        path.write_bytes(
            data[: len(data) // 2] if damage == "truncate" else data[:5_000] + b"\xff" * (len(data) - 5_000)
        )
    with closing(DiskSearchIndex(tmp_path / "index", analyse)) as index:
        assert len(index.problems) == 1
        assert index.problems[0].startswith(f"{path}")
        assert index.problems[0].endswith("; the vectors of wide are rebuilt")
        assert index.dense(WIDE, _clustered(1)[0], EVERYTHING, 9).ids.tolist() == []
        assert len(index.keyword(terms("gate"), EVERYTHING, 200).ids) == 100
        missing = index.without_vectors(WIDE, 1_000)
        assert sorted(missing.tolist()) == list(range(1, 101))
        index.add_vectors(WIDE, missing, _clustered(100))
        assert len(index.dense(WIDE, _clustered(1)[0], EVERYTHING, 200).ids) == 100


def test_vectors_of_other_dimensions_are_refused_with_both_numbers(index: DiskSearchIndex) -> None:
    """Vectors of other dimensions are refused for storing and querying, with both numbers and the command."""
    ids = index.add(_chunks(1, 2))
    message = (
        "small 1 has vectors of 8 dimensions, but these have 32; `orchestra-mem index --anew` rebuilds all "
        "vectors with the current model"
    )
    for call in (
        lambda: index.add_vectors(MODEL, ids, _clustered(2)),
        lambda: index.dense(MODEL, _clustered(1)[0], EVERYTHING, 9),
    ):
        with pytest.raises(OrchestraMemError) as caught:
            call()
        assert str(caught.value) == message
    assert index.without_vectors(MODEL, 9).tolist() == [2, 1]


def test_chunks_with_nothing_to_embed_are_not_asked_for_again(index: DiskSearchIndex) -> None:
    """Chunks with a zero vector are neither requested again nor found; a zero query finds nothing."""
    ids, rows = index.add(_chunks(1, 3)), _clustered(3)
    rows[1] = 0
    index.add_vectors(WIDE, ids, rows)
    assert index.without_vectors(WIDE, 9).tolist() == []
    assert index.models() == {WIDE: 3}
    assert sorted(index.dense(WIDE, rows[0], EVERYTHING, 9).ids.tolist()) == [1, 3]
    assert index.dense(WIDE, rows[1], EVERYTHING, 9).ids.tolist() == []
    assert not index.vectors(WIDE, ids[1:2]).any()

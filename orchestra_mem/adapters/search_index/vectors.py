"""A model's vectors in a file, one place a chunk id, mapped into memory; and the exact search over them.

What is in the file counts only once search.db says so: whatever a killed process left behind is written over. FAISS
reads the mapped file itself; where it is missing, and for few vectors, NumPy does the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.adapters.search_index.keyword import best
from orchestra_mem.errors import DatabaseDamagedError, storage_error
from orchestra_mem.search_types import Ids, Ranking, Vector, Vectors

# Below so many vectors NumPy takes under 1 ms, and FAISS need not be loaded (70 ms).
_FAISS_FROM = 20_000
# Where fewer than one in so many vectors is wanted, they are gathered first: quicker than skipping the rest.
_GATHERED = 8
# FAISS and NumPy round differently in the seventh digit; a few more than wanted go into the last comparison.
_SPARE = 16
_BLOCK = 8_192
_CHECKED_ROWS = 4_096


LoadFaiss: TypeAlias = "Callable[[], Any]"


@cache
def load_faiss(threads: int) -> Any:
    """Import FAISS and tell it how many threads it may use; None where it cannot be imported."""
    try:
        import faiss
    except ImportError:
        return None
    faiss.omp_set_num_threads(threads)
    return faiss


class VectorFile:
    """The vectors of one model. Row n of the file belongs to the chunk with id n. One writer at a time."""

    def __init__(self, path: Path, dimensions: int) -> None:
        self.path = path
        self.dimensions = dimensions
        self._rows: Vectors = np.zeros((0, dimensions), np.float32)

    def write(self, ids: Ids, vectors: Vectors) -> None:
        """Put at least one vector at its place, and wait until all are on the disk.

        Raises:
            StorageError: the file cannot be written.
        """
        row_bytes = 4 * self.dimensions
        data = np.ascontiguousarray(vectors, "<f4")
        starts = np.flatnonzero(np.diff(ids, prepend=-1) != 1).tolist()
        try:
            with open(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644), "r+b", buffering=0) as file:
                for start, end in zip(starts, [*starts[1:], len(ids)], strict=True):
                    file.seek(int(ids[start]) * row_bytes)
                    left = data[start:end].view(np.uint8).reshape(-1).data
                    while left:
                        left = left[file.write(left) :]
                os.fsync(file.fileno())
        except OSError as error:
            raise storage_error(error, "writing vectors to", self.path) from error

    def rows(self, end: int) -> Vectors:
        """Map the vectors of the chunks with ids under `end`.

        Raises:
            DatabaseDamagedError: the file is missing or too short.
        """
        if end > len(self._rows):
            try:
                held = self.path.stat().st_size // (4 * self.dimensions)
                mapped = np.memmap(self.path, np.dtype("<f4"), "r", shape=(held, self.dimensions)) if held else None
            except OSError as error:
                raise DatabaseDamagedError(f"{self.path}: {error.strerror}; the vectors are made anew") from error
            if mapped is None or held < end:
                raise DatabaseDamagedError(f"{self.path} holds {held} vectors, not {end}; they are made anew")
            self._rows = np.asarray(mapped)
        return self._rows[:end]

    def check(self, having: NDArray[np.bool_], *, thorough: bool = False) -> str | None:
        """Look whether each vector has unit length, by samples where there are many; None where all is well."""
        ids = np.flatnonzero(having)
        if not len(ids):
            return None
        try:
            rows = self.rows(int(ids[-1]) + 1)
        except DatabaseDamagedError as error:
            return str(error)
        if not thorough and len(ids) > _CHECKED_ROWS:
            ids = ids[np.linspace(0, len(ids) - 1, _CHECKED_ROWS).astype(np.int64)]
        for start in range(0, len(ids), _BLOCK):
            block = rows[ids[start : start + _BLOCK]]
            wrong = ~(np.abs(np.einsum("ij,ij->i", block, block) - 1) < 1e-3)
            if wrong.any():
                return f"{self.path}: the vector of chunk {ids[start + int(np.argmax(wrong))]} is not of unit length"
        return None


def ranked(rows: Vectors, ids: NDArray[np.integer], vector: Vector, limit: int) -> Ranking:
    """Give the nearest of some chunks, best first, ties by id; scores are cosines."""
    chosen = ids.astype(np.int64)
    return best(chosen, np.einsum("ij,j->i", rows[chosen], vector), limit)


def nearest(rows: Vectors, vector: Vector, wanted: NDArray[np.bool_], limit: int, faiss: LoadFaiss) -> Ranking:
    """Give the nearest of the wanted chunks, exactly.

    Args:
        rows: all vectors, by chunk id.
        vector: what they are compared with.
        wanted: shape (len(rows),).
        limit: how many at most.
        faiss: loads the library, gives None where there is none.
    """
    count = int(np.count_nonzero(wanted))
    if not count or limit <= 0:
        return Ranking(ids=np.zeros(0, np.int64), scores=np.zeros(0, np.float32))
    if count * _GATHERED < len(rows) or count < _FAISS_FROM or (library := faiss()) is None:
        return _nearest_by_numpy(rows, vector, np.flatnonzero(wanted), limit)
    return ranked(rows, _nearest_by_faiss(rows, vector, wanted, min(count, limit + _SPARE), library), vector, limit)


def _nearest_by_numpy(rows: Vectors, vector: Vector, ids: NDArray[np.int64], limit: int) -> Ranking:
    scores = np.empty(len(ids), np.float32)
    for start in range(0, len(ids), _BLOCK):
        block = ids[start : start + _BLOCK]
        whole = block[-1] - block[0] == len(block) - 1
        # einsum keeps to one thread: the cores belong to the language model.
        scores[start : start + _BLOCK] = np.einsum(
            "ij,j->i", rows[block[0] : block[-1] + 1] if whole else rows[block], vector
        )
    return best(ids, scores, limit)


def _nearest_by_faiss(rows: Vectors, vector: Vector, wanted: NDArray[np.bool_], k: int, faiss: Any) -> Ids:
    """What IndexFlatIP does, over the mapped file: an index of its own would hold all vectors a second time."""
    scores, ids = np.empty(k, np.float32), np.empty(k, np.int64)
    query = np.ascontiguousarray(vector, np.float32)
    bits = np.packbits(wanted, bitorder="little")
    chosen = faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits))
    faiss.knn_inner_product(
        faiss.swig_ptr(query), faiss.swig_ptr(rows), rows.shape[1], 1, len(rows), k,
        faiss.swig_ptr(scores), faiss.swig_ptr(ids), chosen,
    )  # fmt: skip
    return ids[ids >= 0]

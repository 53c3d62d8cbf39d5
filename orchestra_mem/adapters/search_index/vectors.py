"""Store a model's vectors in a memory-mapped file with one row per chunk id, and search them with FAISS.

A row is valid only once search.db says so; rows that a killed process left are overwritten. Up to tens of thousands of
vectors, search is exact over the mapped file. Beyond that, codes from an 8-bit scalar quantiser find more candidates
than needed, and the exact vectors select the nearest of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.adapters.search_index.keyword import best
from orchestra_mem.errors import DatabaseDamagedError, EmbedderError, telling
from orchestra_mem.search_types import EmbeddingModel, Ids, Ranking, Vector, Vectors

# Vectors without codes are searched exactly, until their number exceeds both 4,096 and a twentieth of all vectors.
_MAX_WAITING = 4_096
_WAITING_SHARE = 20
_TRAINED_ON = 20_000
_SPARE = 64  # extra candidates, besides twice the limit, to make up for rounding in codes
_BLOCK = 8_192
_CHECKED_ROWS = 1_024


@cache
def load_faiss(threads: int) -> Any:
    """Import FAISS on first use (50 ms), and set its number of threads.

    Raises:
        EmbedderError: FAISS cannot be imported.
    """
    try:
        import faiss
    except ImportError as error:
        raise EmbedderError(f"faiss cannot be imported ({error}); pip install faiss-cpu") from error
    faiss.omp_set_num_threads(threads)
    return faiss


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """A row of the table `model`: the model's bit in the pages (`slot`), and the name of its file."""

    slot: int
    model: EmbeddingModel
    file: str


class ModelVectors:
    """The vectors of one embedding model. Allow one writer at a time; other methods need exclusive access.

    `having` is a mask of the chunks with a vector. `embedded` is the number of chunks that the model has processed,
    including those without anything to embed.
    """

    def __init__(self, folder: Path, row: ModelRow, threads: int = 1) -> None:
        self.row = row
        self.path = folder / row.file
        self.embedded = 0
        self.having: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._threads = threads
        self._mapped: Vectors = np.zeros((0, row.model.dimensions), np.float32)
        self._codes: Any = None
        self._coded: NDArray[np.bool_] = np.zeros(0, np.bool_)

    def update(self, having: NDArray[np.bool_], embedded: int) -> None:
        """Set the mask and the count to the committed state."""
        self.embedded = embedded
        self.having = having[: int(having.size - np.argmax(having[::-1])) if having.any() else 0]

    def write(self, ids: Ids, vectors: Vectors) -> None:
        """Write vectors, float32, shape (n, dim), to the rows of their ids and sync. Always creates the file.

        Raises:
            StorageError: The file cannot be written.
        """
        data = np.ascontiguousarray(vectors, "<f4")
        starts = np.flatnonzero(np.diff(ids, prepend=-2) != 1).tolist()
        with (
            telling("writing vectors to", self.path),
            open(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file,
        ):
            for start, end in zip(starts, [*starts[1:], len(ids)], strict=False):
                file.seek(int(ids[start]) * data.itemsize * data.shape[1])
                file.write(data[start:end].data)
            file.flush()
            os.fsync(file.fileno())

    @property
    def rows(self) -> Vectors:
        """All vectors by chunk id, float32, shape (len(having), dim).

        Raises:
            DatabaseDamagedError: The file is missing or too short.
        """
        end = len(self.having)
        if end > len(self._mapped):
            dimensions = self.row.model.dimensions
            try:
                held = self.path.stat().st_size // (4 * dimensions)
                mapped = np.memmap(self.path, np.dtype("<f4"), "r", shape=(held, dimensions)) if held else None
            except OSError as error:
                raise DatabaseDamagedError(f"{self.path}: {error.strerror}; the vectors have to be rebuilt") from error
            if mapped is None or held < end:
                raise DatabaseDamagedError(f"{self.path} has {held} vectors, not {end}; they have to be rebuilt")
            self._mapped = np.asarray(mapped)
        return self._mapped[:end]

    def fault(self) -> str | None:
        """Check that up to 1,024 vectors have unit length; return a message on the first fault, None without faults."""
        ids = np.flatnonzero(self.having)
        try:
            rows = self.rows
        except DatabaseDamagedError as error:
            return str(error)
        if len(ids) > _CHECKED_ROWS:
            ids = ids[np.linspace(0, len(ids) - 1, _CHECKED_ROWS).astype(np.int64)]
        wrong = ~(np.abs(np.einsum("ij,ij->i", rows[ids], rows[ids]) - 1) < 1e-3)
        if wrong.any():
            return f"{self.path}: the vector of chunk {ids[int(np.argmax(wrong))]} is not of unit length"
        return None

    def vectors(self, ids: Ids) -> Vectors:
        """Return vectors in the order of `ids`, float32, shape (n, dim); zeros for a missing vector."""
        found = np.zeros((len(ids), self.row.model.dimensions), np.float32)
        inside = (ids > 0) & (ids < len(self.having))
        inside[inside] = self.having[ids[inside]]
        if inside.any():
            found[inside] = self.rows[ids[inside]]
        return found

    def search(self, vector: Vector, passing: NDArray[np.bool_], limit: int) -> Ranking:
        """Return the nearest passing chunks by cosine, ties by id; with codes, a few may be missed."""
        wanted = self.having & passing[: len(self.having)]
        there = min(len(wanted), len(self._coded))
        coded = np.zeros_like(wanted)
        coded[:there] = wanted[:there] & self._coded[:there]
        found = [self._nearest(vector, wanted & ~coded, limit), self._by_codes(vector, coded, limit)]
        ids = np.concatenate(found)
        return best(ids, np.einsum("ij,j->i", self.rows[ids], vector), limit)

    def _nearest(self, vector: Vector, wanted: NDArray[np.bool_], limit: int) -> Ids:
        """Search the mapped file exactly. FAISS's IndexFlatIP would hold all vectors a second time."""
        k = min(int(np.count_nonzero(wanted)), limit)
        if k <= 0:
            return np.zeros(0, np.int64)
        faiss, rows, query = load_faiss(self._threads), self.rows, np.ascontiguousarray(vector, np.float32)
        scores, ids = np.empty(k, np.float32), np.empty(k, np.int64)
        bits = np.packbits(wanted, bitorder="little")
        faiss.knn_inner_product(
            faiss.swig_ptr(query), faiss.swig_ptr(rows), rows.shape[1], 1, len(rows), k,
            faiss.swig_ptr(scores), faiss.swig_ptr(ids), faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits)),
        )  # fmt: skip
        return ids[ids >= 0]

    def _by_codes(self, vector: Vector, wanted: NDArray[np.bool_], limit: int) -> Ids:
        k = min(int(np.count_nonzero(wanted)), 2 * limit + _SPARE)
        if k <= 0:
            return np.zeros(0, np.int64)
        faiss, bits = load_faiss(self._threads), np.packbits(wanted, bitorder="little")
        chosen = faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits))
        query = np.ascontiguousarray(vector[None], np.float32)
        ids: Ids = self._codes.search(query, k, params=faiss.SearchParameters(sel=chosen))[1][0]
        return ids[ids >= 0]

    def codes_due(self, approximate_from: int) -> bool:
        """Check whether there are at least `approximate_from` vectors, and many of them without codes."""
        count = int(np.count_nonzero(self.having))
        there = min(len(self.having), len(self._coded))
        waiting = count - int(np.count_nonzero(self.having[:there] & self._coded[:there]))
        return count >= approximate_from and waiting > max(_MAX_WAITING, count // _WAITING_SHARE)

    def make_codes(self) -> tuple[Any, NDArray[np.bool_]]:
        """Quantise all vectors for `use_codes`; takes 0.5 s per million. Searches and writes may go on meanwhile."""
        faiss, rows = load_faiss(self._threads), self.rows
        having = self.having[: len(rows)].copy()
        codes = faiss.IndexScalarQuantizer(
            rows.shape[1], faiss.ScalarQuantizer.QT_8bit_uniform, faiss.METRIC_INNER_PRODUCT
        )
        ids = np.flatnonzero(having)
        codes.train(rows[ids[:: max(1, len(ids) // _TRAINED_ON)]])
        for start in range(0, len(rows), _BLOCK):
            codes.add(rows[start : start + _BLOCK])  # including rows without a vector, so that positions are ids
        return codes, having

    def use_codes(self, codes: Any, coded: NDArray[np.bool_]) -> None:
        """Search with these codes from now on. `coded` is a mask of the chunks with a code."""
        self._codes, self._coded = codes, coded

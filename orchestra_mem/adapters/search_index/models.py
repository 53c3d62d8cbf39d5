"""The vectors of one embedding model: their file, their codes where they are many, and the search through both."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.adapters.search_index.approximate import CodeIndex, file_fault
from orchestra_mem.adapters.search_index.keyword import best
from orchestra_mem.adapters.search_index.vectors import VectorFile, nearest
from orchestra_mem.errors import DatabaseDamagedError
from orchestra_mem.search_types import EmbeddingModel, Ids, Ranking, Vector, Vectors

logger = logging.getLogger(__name__)

# So few vectors are compared one by one even where there are codes: none is missed.
_EXACT_UP_TO = 20_000
# So many may wait to be coded: they are compared one by one too.
_MAX_WAITING = 4_096
# Codes are made anew when there are so many times more or fewer vectors than they were made for.
_OUTGROWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """A row of the table `model`."""

    slot: int
    model: EmbeddingModel
    file: str
    codes: str
    codes_crc: int
    trained_on: int


class ModelVectors:
    """What is kept of one model. The caller sees to it that there is one user at a time.

    `problems` are told in words what was found damaged.
    """

    def __init__(self, folder: Path, row: ModelRow, faiss: Callable[[], Any], problems: list[str]) -> None:
        self.row = row
        self.file = VectorFile(folder / row.file, row.model.dimensions)
        self._folder = folder
        self._faiss = faiss
        self._problems = problems
        self._codes: CodeIndex | None = None
        self._codes_name = ""
        self._saved = 0
        self.embedded = 0
        self.having: NDArray[np.bool_] = np.zeros(0, np.bool_)

    def update(self, row: ModelRow, having: NDArray[np.bool_], embedded: int) -> None:
        """Take notice of what has been committed.

        Args:
            row: the model's.
            having: which chunks have a vector, by id.
            embedded: how many the model has been asked for, those in which it found nothing included.
        """
        self.row = row
        self.embedded = embedded
        last = int(having.size - np.argmax(having[::-1])) if having.any() else 0
        self.having = having[:last]

    @property
    def rows(self) -> Vectors:
        """All vectors by chunk id, as many rows as `having` has."""
        return self.file.rows(len(self.having))

    def search(self, vector: Vector, passing: NDArray[np.bool_], limit: int) -> Ranking:
        """Give the nearest of the chunks that pass; exact where they are few or there are no codes."""
        rows, wanted = self.rows, self.having & passing[: len(self.having)]
        codes = self.codes() if np.count_nonzero(wanted) > _EXACT_UP_TO else None
        if codes is None:
            return nearest(rows, vector, wanted, limit, self._faiss)
        found = codes.search(rows, vector, wanted, limit)
        waiting = wanted & ~codes.covered(len(wanted))
        if not waiting.any():
            return found
        more = nearest(rows, vector, waiting, limit, self._faiss)
        return best(np.concatenate([found.ids, more.ids]), np.concatenate([found.scores, more.scores]), limit)

    def vectors(self, ids: Ids) -> Vectors:
        """Vectors in the order asked for, zeros where there is none."""
        found = np.zeros((len(ids), self.row.model.dimensions), np.float32)
        inside = (ids > 0) & (ids < len(self.having))
        inside[inside] = self.having[ids[inside]]
        if inside.any():
            found[inside] = self.rows[ids[inside]]
        return found

    def codes(self) -> CodeIndex | None:
        """The codes, loaded if need be; None where there are none or they cannot be used."""
        if self.row.codes != self._codes_name:
            self._codes_name, self._codes = self.row.codes, None
            if self.row.codes and (faiss := self._faiss()) is not None:
                path = self._folder / self.row.codes
                try:
                    self._codes = CodeIndex.load(path, self.row.codes_crc, len(self.having), self.row.trained_on, faiss)
                    self._saved = self._codes.count
                except DatabaseDamagedError as error:
                    logger.warning("%s; until then every vector is compared", error)
                    self._problems.append(str(error))
        return self._codes

    def due_for_training(self, approximate_from: int) -> bool:
        """Tell whether the vectors are many and have no codes that suit them."""
        count = int(np.count_nonzero(self.having))
        if count < approximate_from or self._faiss() is None:
            return False
        codes = self.codes()
        return codes is None or not count / _OUTGROWN < codes.trained_on < count * _OUTGROWN

    def use(self, codes: CodeIndex, name: str) -> None:
        """Search with these codes from now on."""
        self._codes, self._codes_name, self._saved = codes, name, codes.count

    def codes_fault(self) -> str | None:
        """Look whether the file of codes is as it was written; None where it is or there is none."""
        return file_fault(self._folder / self.row.codes, self.row.codes_crc) if self.row.codes else None

    def waiting(self) -> Ids:
        """The chunks to be coded; none as long as they are few."""
        codes = self.codes()
        if codes is None:
            return np.zeros(0, np.int64)
        ids = np.flatnonzero(self.having & ~codes.covered(len(self.having)))
        return ids if len(ids) > _MAX_WAITING else ids[:0]

    def put_into_codes(self, ids: Ids) -> None:
        """Code some of what waits, unless it is gone."""
        codes = self.codes()
        if codes is not None:
            ids = ids[ids < len(self.having)]
            codes.add(self.rows, ids[self.having[ids] & ~codes.covered(len(self.having))[ids]])

    def unsaved_codes(self) -> CodeIndex | None:
        """The codes, if so much has come to them since that they are worth writing."""
        codes = self._codes
        return codes if codes is not None and codes.count > 1.1 * self._saved else None

"""What filters and scores need of every chunk: on disk a packed record each, in memory an array by chunk id."""

from __future__ import annotations

import hashlib
import itertools
import json
import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.errors import DatabaseDamagedError
from orchestra_mem.search_types import Ids, SearchFilter, Tier

NO_ITEM = np.iinfo(np.int64).min

RECORD = np.dtype(
    [
        ("alive", "u1"),
        ("tier", "u1"),
        ("embedded", "u1"),  # a bit for each model that has been asked for the chunk's vector,
        ("blank", "u1"),  # and for each that found nothing to embed
        ("length", "<u4"),  # terms in all columns
        ("kind", "<i8"),  # these four are `string_number`s, 0 for None
        ("agent", "<i8"),
        ("session", "<i8"),
        ("pattern", "<i8"),
        ("item", "<i8"),
        ("time", "<f8"),  # seconds since the epoch, NaN for none
    ]
)
TIER_NUMBERS = {tier: number for number, tier in enumerate(Tier)}
_KEPT_MASKS = 8


def damaged(text: str) -> DatabaseDamagedError:
    """Say what was found damaged, and what to do about it."""
    return DatabaseDamagedError(f"{text}; `orchestra-mem index --anew` makes it anew: it is derived, nothing is lost")


def encode(text: str) -> bytes:
    """Give a string's bytes; lone surrogates, which UTF-8 does not have, are kept."""
    return text.encode("utf-8", "surrogatepass")


@lru_cache(maxsize=4_096)
def string_number(text: str | None) -> int:
    """Hash a string to 64 bits; 0 for None. Two strings of one index share a number by a chance of 1 in 10^13."""
    if text is None:
        return 0
    return int.from_bytes(hashlib.blake2b(encode(text), digest_size=8).digest(), "little", signed=True)


def read_records(connection: sqlite3.Connection, ids: Ids) -> NDArray[np.void]:
    """Read the records of chunks for a change; zeros for any id that is not there."""
    records = np.zeros(len(ids), RECORD)
    rows = connection.execute(
        "SELECT asked.key, data FROM json_each(?) AS asked JOIN record ON record.id = asked.value",
        (json.dumps(ids.tolist()),),
    ).fetchall()
    records[[place for place, _ in rows]] = _decoded([data for _, data in rows])
    return records


def write_records(connection: sqlite3.Connection, ids: Ids, records: NDArray[np.void]) -> None:
    """Store the records of chunks, and count the change so that every process loads them."""
    query = "UPDATE state SET sequence = sequence + 1 RETURNING sequence"
    ((sequence,),) = connection.execute(query).fetchall()
    rows = zip(ids.tolist(), itertools.repeat(sequence), (record.tobytes() for record in records))
    connection.executemany("INSERT OR REPLACE INTO record VALUES (?, ?, ?)", rows)


def clear_vectors(connection: sqlite3.Connection, slot: int) -> None:
    """Forget of all chunks that a model has embedded them."""
    ids = np.array([row[0] for row in connection.execute("SELECT id FROM record")], np.int64)
    records = read_records(connection, ids)
    records["embedded"] &= np.uint8(0xFF ^ (1 << slot))
    records["blank"] &= np.uint8(0xFF ^ (1 << slot))
    write_records(connection, ids, records)


def _decoded(data: Sequence[bytes]) -> NDArray[np.void]:
    if any(not isinstance(each, bytes) or len(each) != RECORD.itemsize for each in data):
        raise damaged(f"a record of the search index does not have {RECORD.itemsize} bytes")
    return np.frombuffer(b"".join(data), RECORD)


class Columns:
    """All records in memory, by chunk id. For one user at a time.

    `size` is over all ids, `count` is how many chunks there are, `total_length` how many terms they have, `version`
    counts the changes.
    """

    def __init__(self) -> None:
        self.size = self.count = self.total_length = self.version = 0
        self._records = np.zeros(0, RECORD)
        self._masks: dict[SearchFilter, NDArray[np.bool_]] = {}

    def __getitem__(self, field: str) -> NDArray[Any]:
        return self._records[field][: self.size]

    def load(self, connection: sqlite3.Connection, after: int) -> None:
        """Take in the records that have changed after that."""
        rows = connection.execute("SELECT id, data FROM record WHERE changed > ? ORDER BY id", (after,)).fetchall()
        if rows:
            if rows[0][0] < 1 or rows[-1][0] >= connection.execute("SELECT next_id FROM state").fetchone()[0]:
                raise damaged("the search index has records of chunks that never were")
            self.size = max(self.size, rows[-1][0] + 1)
            if self.size > len(self._records):
                grown = np.zeros(self.size * 3 // 2, RECORD)
                grown[: len(self._records)] = self._records
                self._records = grown
            self._records[[number for number, _ in rows]] = _decoded([data for _, data in rows])
        self.count = int(np.count_nonzero(self["alive"]))
        self.total_length = int(self["length"].sum(dtype=np.int64))
        self.version += 1
        self._masks.clear()

    def having(self, slot: int) -> NDArray[np.bool_]:
        """The chunks with a vector of a model, shape (size,)."""
        mask: NDArray[np.bool_] = (self["embedded"] & ~self["blank"] & np.uint8(1 << slot)) != 0
        return mask

    def embedded(self, slot: int) -> int:
        """How many chunks a model has been asked for."""
        return int(np.count_nonzero(self["embedded"] & np.uint8(1 << slot)))

    def missing(self, slot: int) -> NDArray[np.bool_]:
        """The chunks that a model has not been asked for, shape (size,)."""
        mask: NDArray[np.bool_] = (self["alive"] == 1) & (self["embedded"] & np.uint8(1 << slot) == 0)
        return mask

    def passing(self, where: SearchFilter) -> NDArray[np.bool_]:
        """The chunks that pass a filter, shape (size,). Not to be changed."""
        mask = self._masks.get(where)
        if mask is None:
            if len(self._masks) >= _KEPT_MASKS:
                self._masks.clear()
            mask = self._masks[where] = self._filtered(where)
        return mask

    def _filtered(self, where: SearchFilter) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = self["alive"] == 1
        if where.tiers:
            mask &= _is_one_of(self["tier"], [TIER_NUMBERS[tier] for tier in where.tiers])
        if where.kinds:
            mask &= _is_one_of(self["kind"], [string_number(kind) for kind in where.kinds])
        for field, wanted in (("agent", where.agent), ("session", where.session), ("pattern", where.pattern)):
            if wanted is not None:
                mask &= self[field] == string_number(wanted)
        if where.item is not None:
            mask &= self["item"] == where.item
        if where.since is not None:
            mask &= self["time"] >= where.since.timestamp()
        if where.until is not None:
            mask &= self["time"] < where.until.timestamp()
        return mask


def _is_one_of(values: NDArray[Any], wanted: Sequence[int]) -> NDArray[np.bool_]:
    """Tell which values are among a few; `np.isin` takes ten times as long."""
    mask = np.zeros(len(values), np.bool_)
    for value in wanted:
        mask |= values == value
    return mask

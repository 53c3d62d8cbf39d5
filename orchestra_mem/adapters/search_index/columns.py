"""Keep what filters and scores need of every chunk: packed in pages of search.db, and in memory as arrays by chunk id.

A page is small enough to be rewritten with each change and large enough that a million chunks load in milliseconds.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.catalog_types import CHUNK_PATTERN
from orchestra_mem.errors import DatabaseDamagedError
from orchestra_mem.search_types import Ids, SearchFilter, Tier

PAGE_CHUNKS = 512
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
    rows = np.zeros(len(ids), RECORD)
    for number in np.unique(ids // PAGE_CHUNKS).tolist():
        here = ids // PAGE_CHUNKS == number
        rows[here] = _page(connection, number)[ids[here] % PAGE_CHUNKS]
    return rows


def write_records(connection: sqlite3.Connection, ids: Ids, rows: NDArray[np.void]) -> None:
    """Store the records of chunks, and count the change so that every process loads them."""
    sequence = count_change(connection)
    for number in np.unique(ids // PAGE_CHUNKS).tolist():
        here = ids // PAGE_CHUNKS == number
        page = _page(connection, number)
        page[ids[here] % PAGE_CHUNKS] = rows[here]
        _write_page(connection, number, sequence, page)


def clear_vectors(connection: sqlite3.Connection, slot: int) -> None:
    """Forget of all chunks that a model has embedded them."""
    sequence, keep = count_change(connection), np.uint8(0xFF ^ (1 << slot))
    for number, data in connection.execute("SELECT number, data FROM page").fetchall():
        page = _decode(number, data)
        page["embedded"] &= keep
        page["blank"] &= keep
        _write_page(connection, number, sequence, page)


def count_change(connection: sqlite3.Connection) -> int:
    """Give the number of the change that this transaction makes."""
    row = connection.execute("UPDATE state SET sequence = sequence + 1 RETURNING sequence").fetchall()
    return int(row[0][0])


def _page(connection: sqlite3.Connection, number: int) -> NDArray[np.void]:
    row = connection.execute("SELECT data FROM page WHERE number = ?", (number,)).fetchone()
    return _decode(number, row[0]) if row else np.zeros(PAGE_CHUNKS, RECORD)


def _write_page(connection: sqlite3.Connection, number: int, sequence: int, page: NDArray[np.void]) -> None:
    connection.execute("INSERT OR REPLACE INTO page VALUES (?, ?, ?)", (number, sequence, page.tobytes()))


def _decode(number: int, data: bytes) -> NDArray[np.void]:
    if len(data) != PAGE_CHUNKS * RECORD.itemsize:
        raise damaged(f"page {number} of the search index has {len(data)} bytes, not {PAGE_CHUNKS * RECORD.itemsize}")
    return np.frombuffer(bytearray(data), RECORD)


class Columns:
    """All records in memory, by chunk id. For one user at a time.

    `size` is over all ids, `count` is how many chunks there are, `total_length` how many terms they have, `version`
    counts the changes.
    """

    def __init__(self) -> None:
        self.size = self.count = self.total_length = self.version = 0
        self._rows = np.zeros(0, RECORD)
        self._masks: dict[SearchFilter, NDArray[np.bool_]] = {}

    def __getitem__(self, field: str) -> NDArray[Any]:
        return self._rows[field][: self.size]

    def load(self, pages: Iterable[tuple[int, bytes]]) -> None:
        """Take in pages, new or changed."""
        for number, data in pages:
            first, end = number * PAGE_CHUNKS, (number + 1) * PAGE_CHUNKS
            if end > len(self._rows):
                grown = np.zeros(max(end, len(self._rows) * 3 // 2), RECORD)
                grown[: len(self._rows)] = self._rows
                self._rows = grown
            self._rows[first:end] = _decode(number, data)
            self.size = max(self.size, end)
        self.count = int(np.count_nonzero(self["alive"]))
        self.total_length = int(self["length"].sum(dtype=np.int64))
        self.version += 1
        self._masks.clear()

    def having(self, slot: int) -> NDArray[np.bool_]:
        """Return the chunks with a vector of a model, shape (size,)."""
        mask: NDArray[np.bool_] = (self["embedded"] & ~self["blank"] & np.uint8(1 << slot)) != 0
        return mask

    def embedded(self, slot: int) -> int:
        """Return how many chunks a model has been asked for."""
        return int(np.count_nonzero(self["embedded"] & np.uint8(1 << slot)))

    def missing(self, slot: int) -> NDArray[np.bool_]:
        """Return the chunks that a model has not been asked for, shape (size,)."""
        mask: NDArray[np.bool_] = (self["alive"] == 1) & (self["embedded"] & np.uint8(1 << slot) == 0)
        return mask

    def passing(self, where: SearchFilter) -> NDArray[np.bool_]:
        """Return the chunks that pass a filter, shape (size,). Not to be changed."""
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
        if where.readable is not None:
            readable = _is_one_of(self["agent"], [string_number(agent) for agent in where.readable])
            mask &= readable if where.strict else readable | (self["pattern"] != string_number(CHUNK_PATTERN))
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

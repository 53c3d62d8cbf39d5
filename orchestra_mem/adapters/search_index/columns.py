"""What filters and scores need of every chunk, as arrays: on disk packed in pages of search.db, in memory by chunk id.

A page is small enough to be written anew with each change and large enough that a million chunks load in milliseconds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.adapters.search_index.database import damaged
from orchestra_mem.search_types import Chunk, SearchFilter, Tier

PAGE_CHUNKS = 512
NONE = np.iinfo(np.int64).min
"""Stands for a time or an item that a chunk does not have."""

RECORD = np.dtype(
    [
        ("alive", "u1"),
        ("tier", "u1"),
        ("embedded", "u1"),  # a bit for each model that has given the chunk a vector,
        ("blank", "u1"),  # and for each that found nothing to embed
        ("kind", "<i4"),
        ("agent", "<i4"),
        ("session", "<i4"),
        ("length", "<u4"),  # terms in all columns
        ("item", "<i8"),
        ("time", "<i8"),  # microseconds since the epoch
    ]
)

_TIERS = {tier: number for number, tier in enumerate(Tier)}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(time: datetime | None) -> int:
    """Give a time as the pages have it."""
    return NONE if time is None else (time - _EPOCH) // _MICROSECOND


def from_microseconds(value: int) -> datetime | None:
    """Give the time back, in UTC."""
    return None if value == NONE else _EPOCH + timedelta(microseconds=value)


def encode(text: str) -> bytes:
    """Give a string's bytes; lone surrogates, which UTF-8 does not have, are kept."""
    return text.encode("utf-8", "surrogatepass")


class Pages:
    """The pages that one transaction changes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._pages: dict[int, NDArray[np.void]] = {}

    def set_chunk(self, chunk_id: int, chunk: Chunk, names: dict[str, int], length: int | None) -> None:
        """Put down a chunk; `length` None leaves the length and the vectors' bits as they are."""
        page = self._page(chunk_id // PAGE_CHUNKS)
        old = page[chunk_id % PAGE_CHUNKS]
        page[chunk_id % PAGE_CHUNKS] = (
            1,
            _TIERS[chunk.tier],
            old["embedded"] if length is None else 0,
            old["blank"] if length is None else 0,
            names[chunk.kind],
            names[chunk.agent] if chunk.agent is not None else 0,
            names[chunk.session] if chunk.session is not None else 0,
            old["length"] if length is None else length,
            NONE if chunk.item is None else chunk.item,
            to_microseconds(chunk.time),
        )

    def remove(self, chunk_ids: Iterable[int]) -> None:
        """Forget chunks."""
        for chunk_id in chunk_ids:
            self._page(chunk_id // PAGE_CHUNKS)[chunk_id % PAGE_CHUNKS] = np.zeros((), RECORD)

    def set_vectors(self, ids: NDArray[np.int64], blank: NDArray[np.bool_], slot: int) -> None:
        """Put down that a model has been asked for these chunks, and what it found nothing in."""
        bit = np.uint8(1 << slot)
        for number in np.unique(ids // PAGE_CHUNKS):
            here = ids // PAGE_CHUNKS == number
            page, places = self._page(int(number)), ids[here] % PAGE_CHUNKS
            page["embedded"][places] |= bit
            page["blank"][places] &= ~bit
            page["blank"][places[blank[here]]] |= bit

    def alive(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which chunks are there; any number may be asked for."""
        found = np.zeros(len(ids), np.bool_)
        for number in np.unique(ids // PAGE_CHUNKS):
            here = ids // PAGE_CHUNKS == number
            page = self._stored(int(number))
            if page is not None:
                found[here] = page["alive"][ids[here] % PAGE_CHUNKS] == 1
        return found

    def clear_vectors(self, slot: int) -> None:
        """Forget all vectors of a model."""
        keep = np.uint8(0xFF ^ (1 << slot))
        for (number,) in self._connection.execute("SELECT number FROM page").fetchall():
            page = self._page(number)
            page["embedded"] &= keep
            page["blank"] &= keep

    def write(self, sequence: int) -> None:
        """Put the pages into the database."""
        rows = [(number, sequence, page.tobytes()) for number, page in self._pages.items()]
        self._connection.executemany("INSERT OR REPLACE INTO page VALUES (?, ?, ?)", rows)

    def _page(self, number: int) -> NDArray[np.void]:
        page = self._stored(number)
        if page is None:
            page = self._pages[number] = np.zeros(PAGE_CHUNKS, RECORD)
        return page

    def _stored(self, number: int) -> NDArray[np.void] | None:
        if number not in self._pages:
            row = self._connection.execute("SELECT data FROM page WHERE number = ?", (number,)).fetchone()
            if row is None:
                return None
            self._pages[number] = _decode(number, row[0])
        return self._pages[number]


def _decode(number: int, data: bytes) -> NDArray[np.void]:
    if len(data) != PAGE_CHUNKS * RECORD.itemsize:
        raise damaged(f"page {number} of the search index has {len(data)} bytes, not {PAGE_CHUNKS * RECORD.itemsize}")
    return np.frombuffer(bytearray(data), RECORD)


class Columns:
    """The pages in memory, one array a field, places are chunk ids. For one user at a time.

    `count` is how many chunks there are, `total_length` the number of their terms.
    """

    def __init__(self) -> None:
        self.size = 0  # places, over all ids
        self.count = 0
        self.total_length = 0
        self._fields: dict[str, NDArray[Any]] = {name: np.zeros(0, RECORD[name]) for name in RECORD.names or ()}
        self._masks: dict[SearchFilter, NDArray[np.bool_]] = {}
        self.version = 0  # counts the changes

    def __getitem__(self, field: str) -> NDArray[Any]:
        return self._fields[field][: self.size]

    def load(self, pages: Iterable[tuple[int, bytes]]) -> None:
        """Take in pages, new or changed."""
        self._masks.clear()
        self.version += 1
        for number, data in pages:
            page = _decode(number, data)
            first, end = number * PAGE_CHUNKS, (number + 1) * PAGE_CHUNKS
            self._reserve(end)
            sign = -1
            for _ in range(2):  # take the old page off the sums, then count the new one in
                alive = self._fields["alive"][first:end] == 1
                self.count += sign * int(np.count_nonzero(alive))
                self.total_length += sign * int(self._fields["length"][first:end][alive].sum(dtype=np.int64))
                if sign < 0:
                    for name, values in self._fields.items():
                        values[first:end] = page[name]
                sign = 1
            self.size = max(self.size, end)

    def _reserve(self, end: int) -> None:
        if end > len(self._fields["alive"]):
            room = max(end, len(self._fields["alive"]) * 3 // 2)
            for name, values in self._fields.items():
                grown = np.zeros(room, values.dtype)
                grown[: len(values)] = values
                self._fields[name] = grown

    def alive(self, ids: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Tell which chunks are there; any number may be asked for."""
        inside = (ids > 0) & (ids < self.size)
        return inside & (self["alive"][np.where(inside, ids, 0)] == 1) if self.size else inside

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

    def passing(self, where: SearchFilter, names: dict[str, int]) -> NDArray[np.bool_]:
        """The chunks that pass a filter, shape (size,). Not to be changed.

        Args:
            where: the filter.
            names: the numbers of the strings in it; one that is not there, no chunk has.
        """
        mask = self._masks.get(where)
        if mask is None:
            if len(self._masks) >= 8:
                self._masks.clear()
            mask = self._masks[where] = self._filtered(where, names)
        return mask

    def _filtered(self, where: SearchFilter, names: dict[str, int]) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = self["alive"] == 1
        if where.tiers:
            mask &= _is_one_of(self["tier"], [_TIERS[tier] for tier in where.tiers])
        if where.kinds:
            mask &= _is_one_of(self["kind"], [names[kind] for kind in where.kinds if kind in names])
        if where.agent is not None:
            mask &= self["agent"] == names.get(where.agent, -1)
        if where.session is not None:
            mask &= self["session"] == names.get(where.session, -1)
        if where.item is not None:
            mask &= self["item"] == where.item
        if where.since is not None:
            mask &= self["time"] >= to_microseconds(where.since)
        if where.until is not None:
            mask &= (self["time"] < to_microseconds(where.until)) & (self["time"] != NONE)
        return mask


def _is_one_of(values: NDArray[Any], wanted: Sequence[int]) -> NDArray[np.bool_]:
    """Tell which values are among a few; `np.isin` takes ten times as long."""
    mask = np.zeros(len(values), np.bool_)
    for value in wanted:
        mask |= values == value
    return mask

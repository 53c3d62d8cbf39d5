"""Read and write chunks in search.db; keep the fields for filters and scores in memory, in arrays by chunk id."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.catalog_types import CHUNK_PATTERN
from orchestra_mem.errors import DatabaseDamagedError
from orchestra_mem.search_types import Chunk, Ids, IndexedText, Outlines, SearchFilter, Tier, Tokens, WordEmbedder

PAGE_CHUNKS = 512
NO_ITEM = np.iinfo(np.int64).min

RECORD = np.dtype(
    [
        ("alive", "u1"),
        ("tier", "u1"),
        ("embedded", "u1"),  # one bit per model that has processed the chunk
        ("blank", "u1"),  # one bit per model that found nothing to embed in the chunk
        ("length", "<u4"),  # number of terms in all columns
        ("kind", "<i8"),  # this and the next three fields are hashes from `string_number`
        ("agent", "<i8"),
        ("session", "<i8"),
        ("pattern", "<i8"),
        ("item", "<i8"),
        ("time", "<f8"),  # seconds since the epoch, NaN for none
    ]
)
TIER_NUMBERS = {tier: number for number, tier in enumerate(Tier)}


def damaged(text: str) -> DatabaseDamagedError:
    """Return the error for damage described by `text`, with advice what to do."""
    return DatabaseDamagedError(f"{text}; `orchestra-mem index --anew` rebuilds it from the memory, nothing is lost")


def encode(text: str) -> bytes:
    """Encode a string as UTF-8, keeping lone surrogates, which strict UTF-8 cannot encode."""
    return text.encode("utf-8", "surrogatepass")


@lru_cache(maxsize=4_096)
def string_number(text: str | None) -> int:
    """Hash a string to 64 bits; 0 for None. Among 2,000 strings, a collision has a probability of 1 in 10^13."""
    if text is None:
        return 0
    return int.from_bytes(hashlib.blake2b(encode(text), digest_size=8).digest(), "little", signed=True)


def read_records(connection: sqlite3.Connection, ids: Ids) -> NDArray[np.void]:
    """Read the records of chunks in order to change them; zeros for ids that do not exist."""
    rows = np.zeros(len(ids), RECORD)
    for number in np.unique(ids // PAGE_CHUNKS).tolist():
        here = ids // PAGE_CHUNKS == number
        rows[here] = _page(connection, number)[ids[here] % PAGE_CHUNKS]
    return rows


def write_records(connection: sqlite3.Connection, ids: Ids, rows: NDArray[np.void]) -> None:
    """Store the records of chunks, and increment the change number so that every process reloads them."""
    sequence = count_change(connection)
    for number in np.unique(ids // PAGE_CHUNKS).tolist():
        here = ids // PAGE_CHUNKS == number
        page = _page(connection, number)
        page[ids[here] % PAGE_CHUNKS] = rows[here]
        _write_page(connection, number, sequence, page)


def clear_vectors(connection: sqlite3.Connection, slot: int) -> None:
    """Clear a model's bits in all records."""
    sequence, keep = count_change(connection), np.uint8(0xFF ^ (1 << slot))
    for number, data in connection.execute("SELECT number, data FROM page").fetchall():
        page = _decode(number, data)
        page["embedded"] &= keep
        page["blank"] &= keep
        _write_page(connection, number, sequence, page)


def count_change(connection: sqlite3.Connection) -> int:
    """Increment and return the number of committed changes, for this transaction."""
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
    """All records in memory, by chunk id. Not safe for concurrent use.

    `size` is greater than every id. `count` is the number of chunks, `total_length` the number of their terms, and
    `version` the number of changes.
    """

    def __init__(self) -> None:
        self.size = self.count = self.total_length = self.version = 0
        self._rows = np.zeros(0, RECORD)

    def __getitem__(self, field: str) -> NDArray[Any]:
        return self._rows[field][: self.size]

    def load(self, pages: Iterable[tuple[int, bytes]]) -> None:
        """Load new or changed pages."""
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

    def having(self, slot: int) -> NDArray[np.bool_]:
        """Return a mask of the chunks with a vector of a model, shape (size,)."""
        mask: NDArray[np.bool_] = (self["embedded"] & ~self["blank"] & np.uint8(1 << slot)) != 0
        return mask

    def embedded(self, slot: int) -> int:
        """Return how many chunks a model has processed, including those without anything to embed."""
        return int(np.count_nonzero(self["embedded"] & np.uint8(1 << slot)))

    def missing(self, slot: int) -> NDArray[np.bool_]:
        """Return a mask of the chunks that a model has not processed, shape (size,)."""
        mask: NDArray[np.bool_] = (self["alive"] == 1) & (self["embedded"] & np.uint8(1 << slot) == 0)
        return mask

    def passing(self, where: SearchFilter) -> NDArray[np.bool_]:
        """Return a mask of the chunks that pass a filter, shape (size,)."""
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
    """Return a mask of the values in a short list; `np.isin` takes ten times as long."""
    mask = np.zeros(len(values), np.bool_)
    for value in wanted:
        mask |= values == value
    return mask


_ASKED_AT_ONCE = 500
_STATEMENT, _TELLS_TIME = 1, 2  # the bits of `traits`
_MAX_WORD_CHARS = 256


def cut_words(texts: Sequence[IndexedText], words: WordEmbedder) -> list[bytes]:
    """Tokenize the words of texts, each distinct word once; return the bytes of the column `tokens` for each text.

    Raises:
        EmbedderError: The words cannot be tokenized.
    """
    distinct = dict.fromkeys(word[:_MAX_WORD_CHARS] for text in texts for word in text.words)
    place_of = {word: place for place, word in enumerate(distinct)}
    cut = words.cut(list(distinct))
    counts, lengths, numbers = cut.counts.astype("<u2"), cut.lengths.astype("<f4"), cut.numbers.astype("<u4")
    pieces = [each.tobytes() for each in np.split(numbers, np.cumsum(cut.counts)[:-1])]
    found = []
    for text in texts:
        places = [place_of[word[:_MAX_WORD_CHARS]] for word in text.words]
        tokens = b"".join(pieces[place] for place in places)
        found.append(counts[places].tobytes() + lengths[places].tobytes() + tokens)
    return found


def decode(data: bytes) -> str:
    """Decode the bytes that `encode` returned.

    Raises:
        DatabaseDamagedError: They are not from `encode`.
    """
    try:
        return data.decode("utf-8", "surrogatepass")
    except (UnicodeError, AttributeError) as error:
        raise damaged(f"a text of the search index cannot be read ({error})") from error


def ids_of(connection: sqlite3.Connection, keys: Iterable[str]) -> dict[str, int]:
    """Return the ids of the chunks with these keys; missing keys are left out."""
    encoded = [encode(key) for key in keys]
    found: dict[str, int] = {}
    for start in range(0, len(encoded), _ASKED_AT_ONCE):
        some = encoded[start : start + _ASKED_AT_ONCE]
        rows = connection.execute(f"SELECT key, id FROM chunk WHERE key IN ({','.join('?' * len(some))})", some)
        found.update((decode(key), chunk_id) for key, chunk_id in rows)
    return found


def insert(connection: sqlite3.Connection, chunks: Iterable[tuple[int, Chunk, IndexedText, bytes | None]]) -> None:
    """Insert new chunks; upkeep adds tokens to chunks that have None."""
    rows = (
        (
            number, encode(chunk.key), *_changing(chunk),
            _STATEMENT * text.is_statement | _TELLS_TIME * text.tells_time, len(text.words), tokens,
        )
        for number, chunk, text, tokens in chunks
    )  # fmt: skip
    connection.executemany("INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def replace(connection: sqlite3.Connection, chunks: Iterable[tuple[int, Chunk]]) -> None:
    """Update the columns of chunks, except the key and columns derived from the text, as the text does not change."""
    connection.executemany(
        "UPDATE chunk SET grp = ?, position = ?, importance = ?, agent = ?, session = ?, record = ? WHERE id = ?",
        ((*_changing(chunk), number) for number, chunk in chunks),
    )


def _changing(chunk: Chunk) -> tuple[object, ...]:
    fields = (
        chunk.tier, chunk.source, chunk.text, chunk.kind, chunk.heading, chunk.title, chunk.group, chunk.item,
        chunk.pattern, chunk.time and chunk.time.isoformat(), chunk.operation,
    )  # fmt: skip
    agent, session = (None if name is None else encode(name) for name in (chunk.agent, chunk.session))
    record = encode(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))
    return string_number(chunk.group), chunk.position, chunk.importance, agent, session, record


def read(connection: sqlite3.Connection, ids: Ids) -> list[Chunk | None]:
    """Return the chunks of `ids` in this order; None for ids that do not exist."""
    columns = "id, key, position, importance, agent, session, record"
    found = {row[0]: _chunk(*row[1:]) for row in _rows(connection, columns, ids)}
    return [found.get(chunk_id) for chunk_id in ids.tolist()]


def _rows(connection: sqlite3.Connection, columns: str, ids: Ids) -> Iterator[tuple[Any, ...]]:
    query = f"SELECT {columns} FROM chunk WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
    return connection.execute(query, (json.dumps(ids.tolist()),))


def outlines(connection: sqlite3.Connection, ids: Ids, columns: Columns, passing: NDArray[np.bool_]) -> Outlines:
    """Return the data for ranking the chunks in `ids` that exist; `passing` is a mask over all ids.

    Raises:
        DatabaseDamagedError: A stored chunk cannot be read.
    """
    wanted = "id, grp, importance, agent, session, traits, words, tokens"
    rows = list(_rows(connection, wanted, ids))
    there = np.array([row[0] for row in rows], np.int64)
    traits = np.array([row[5] for row in rows], np.int64)
    agents, sessions = (tuple(None if row[at] is None else decode(row[at]) for row in rows) for at in (3, 4))
    return Outlines(
        ids=there, passing=passing[there], groups=np.array([row[1] for row in rows], np.int64), agents=agents,
        sessions=sessions, times=columns["time"][there], importance=np.array([row[2] for row in rows], np.float32),
        statements=traits & _STATEMENT != 0, tell_time=traits & _TELLS_TIME != 0,
        word_counts=np.array([row[6] for row in rows], np.int64),
        cut=np.array([row[7] is not None for row in rows], np.bool_),
        tokens=_tokens([row[6:] for row in rows if row[7] is not None]),
    )  # fmt: skip


def _tokens(rows: Sequence[tuple[int, bytes]]) -> Tokens:
    """Join the tokens of several texts; each row has the number of words and the bytes from `cut_words`."""
    try:
        counts, lengths, numbers = (
            np.frombuffer(b"".join(data[start * words : end * words if end else None] for words, data in rows), kind)
            for start, end, kind in ((0, 2, "<u2"), (2, 6, "<f4"), (6, 0, "<u4"))
        )
    except (ValueError, TypeError) as error:
        raise damaged(f"the words of chunks of the search index cannot be read ({error})") from error
    if not (len(counts) == len(lengths) == sum(words for words, _ in rows) and counts.sum() == len(numbers)):
        raise damaged("the words of chunks of the search index cannot be read")
    return Tokens(numbers=numbers.astype(np.int64), counts=counts.astype(np.int64), lengths=lengths)


def neighbours(connection: sqlite3.Connection, ids: Ids, distance: int) -> Ids:
    """Return the ids of the neighbours of each chunk in its group; see `SearchIndex.neighbours`."""
    places = np.zeros((len(ids), 2 * distance), np.int64)
    if not places.size:
        return places
    before = [_neighbour("<", "DESC", number) for number in reversed(range(distance))]
    behind = [_neighbour(">", "ASC", number) for number in range(distance)]
    rows = connection.execute(
        f"SELECT asked.key, {', '.join(before + behind)}"
        " FROM json_each(?) AS asked JOIN chunk AS c ON c.id = asked.value",
        (json.dumps(ids.tolist()),),
    )
    for number, *found in rows:
        places[number] = [chunk_id or 0 for chunk_id in found]
    return places


def _neighbour(sign: str, order: str, skipped: int) -> str:
    return (
        f"(SELECT n.id FROM chunk AS n WHERE n.grp = c.grp AND (n.position, n.id) {sign} (c.position, c.id)"
        f" ORDER BY n.position {order}, n.id {order} LIMIT 1 OFFSET {skipped})"
    )


def _chunk(
    key: bytes, position: int, importance: float, agent: bytes | None, session: bytes | None, record: bytes
) -> Chunk:
    try:
        tier, source, text, kind, heading, title, group, item, pattern, time, operation = json.loads(decode(record))
        return Chunk(
            key=decode(key), tier=Tier(tier), source=source, text=text, kind=kind, group=group, position=position,
            heading=tuple(heading), title=title, session=None if session is None else decode(session),
            agent=None if agent is None else decode(agent), item=item, pattern=pattern,
            time=time and datetime.fromisoformat(time).astimezone(UTC), operation=operation, importance=importance,
        )  # fmt: skip
    except (ValueError, TypeError, OverflowError) as error:
        raise damaged(f"the chunk {key!r} of the search index cannot be read ({error})") from error

"""Which chunks hold which terms, and how well they answer a query: postings in search.db, BM25 in NumPy.

FTS5 is not used: its `bm25()` costs 1 µs a match, 140 ms for a common query over a million chunks, where these arrays
need 5. Postings never change, as a chunk's text does not: new chunks make a new segment, and segments of one size are
joined to larger ones (a log-structured merge tree), which leaves out the chunks that are gone.
"""

from __future__ import annotations

import heapq
import itertools
import sqlite3
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.adapters.search_index.columns import Columns, encode
from orchestra_mem.adapters.search_index.database import damaged
from orchestra_mem.search_types import IndexedText, Ranking

_FANOUT = 8
# So many chunks that are gone may stay in a segment whatever its size.
_MAX_LOST = 64
_MAX_WEIGHT = 255
# Postings that are kept in memory: those of some terms of a million chunks.
_KEPT_BYTES = 16 << 20
_ENTRY_BYTES = 500

Postings: TypeAlias = "tuple[NDArray[np.uint32], NDArray[np.uint8]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordWeights:
    """How much a term counts in each column (whole numbers), and the two constants of BM25.

    Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009): `k1` bounds what repeating
    a term brings, `b` (0 to 1) is how much length counts against a chunk. The defaults are Lucene's for short passages.
    """

    title: int = 3
    heading: int = 2
    identifiers: int = 2
    body: int = 1
    k1: float = 0.9
    b: float = 0.4

    @property
    def stored(self) -> str:
        """What of it the postings hold: where this changes, they have to be made anew."""
        return f"{self.title} {self.heading} {self.identifiers} {self.body}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A run of chunks whose postings stand together; `chunks` is how many it was made of."""

    id: int
    first_id: int
    last_id: int
    chunks: int


def add_segment(
    connection: sqlite3.Connection, first_id: int, texts: Sequence[IndexedText], weights: KeywordWeights
) -> list[int]:
    """Write the postings of new chunks, whose ids follow each other; how many terms each has."""
    terms: list[str] = []
    runs: list[tuple[int, int]] = []  # weight and number of terms, column after column
    lengths = []
    for text in texts:
        before = len(terms)
        for column, weight in (
            (text.title, weights.title),
            (text.heading, weights.heading),
            (text.identifiers, weights.identifiers),
            (text.body, weights.body),
        ):
            start = len(terms)
            terms += [term for term in column.split(" ") if term]
            runs.append((weight, len(terms) - start))
        lengths.append(len(terms) - before)
    if texts:
        last_id = first_id + len(texts) - 1
        segment = Segment(id=0, first_id=first_id, last_id=last_id, chunks=len(texts))
        _write(connection, segment, _postings(first_id, terms, runs, lengths))
    return lengths


def _postings(
    first_id: int, terms: list[str], runs: list[tuple[int, int]], lengths: list[int]
) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Turn chunks' terms into terms' chunks."""
    if not terms:
        return
    codes = {term: code for code, term in enumerate(dict.fromkeys(terms))}
    term = np.fromiter(map(codes.__getitem__, terms), np.int64, len(terms))
    doc = np.repeat(np.arange(first_id, first_id + len(lengths)), lengths)
    weight, count = np.array(runs, np.int64).T
    pair = term << 32 | doc
    order = np.argsort(pair, kind="stable")
    pair = pair[order]
    starts = np.flatnonzero(np.diff(pair, prepend=-1))
    sums = np.add.reduceat(np.repeat(weight, count)[order], starts)
    docs = (pair[starts] & 0xFFFFFFFF).astype("<u4").tobytes()
    weights = np.minimum(sums, _MAX_WEIGHT).astype("u1").tobytes()
    ends = np.searchsorted(pair[starts] >> 32, np.arange(len(codes)), side="right").tolist()
    spans = zip(map(encode, codes), [0, *ends], ends, strict=False)
    for name, start, end in sorted(spans):
        yield name, docs[4 * start : 4 * end], weights[start:end]


def _write(connection: sqlite3.Connection, segment: Segment, rows: Iterator[tuple[bytes, bytes, bytes]]) -> None:
    number = connection.execute(
        "INSERT INTO segment (first_id, last_id, chunks) VALUES (?, ?, ?)",
        (segment.first_id, segment.last_id, segment.chunks),
    ).lastrowid
    connection.executemany("INSERT INTO posting VALUES (?, ?, ?, ?)", ((number, *row) for row in rows))


class PostingReader:
    """Reads postings, and keeps those read last: a question needs those of each of its terms two or three times.

    The caller sees to it that there is one user at a time.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Postings] = OrderedDict()
        self._kept_bytes = 0
        self._columns: tuple[Columns, int] | None = None

    def lookup(self, connection: sqlite3.Connection, term: str, columns: Columns) -> Postings:
        """Give the chunks that hold a term, ids ascending, and how much of it they hold.

        Raises:
            DatabaseDamagedError: what is stored of it is no postings.
        """
        if self._columns != (columns, columns.version):
            self._columns = (columns, columns.version)
            self._kept.clear()
            self._kept_bytes = 0
        found = self._kept.get(term)
        if found is None:
            found = self._kept[term] = _living(connection, term, columns)
            self._kept_bytes += _bytes(found)
            while self._kept_bytes > _KEPT_BYTES:
                self._kept_bytes -= _bytes(self._kept.popitem(last=False)[1])
        return found


def _bytes(postings: Postings) -> int:
    return postings[0].nbytes + postings[1].nbytes + _ENTRY_BYTES


def _living(connection: sqlite3.Connection, term: str, columns: Columns) -> Postings:
    docs, weights = _stored(connection, term)
    try:
        alive = columns["alive"][docs] == 1
    except IndexError as error:
        raise damaged(f"the postings of {term!r} name chunks that never were ({error})") from error
    return (docs, weights) if alive.all() else (docs[alive], weights[alive])


def _stored(connection: sqlite3.Connection, term: str) -> Postings:
    """Give a term's postings, those of chunks that are gone included."""
    rows = connection.execute(
        "SELECT docs, weights FROM segment CROSS JOIN posting ON segment = segment.id AND term = ? ORDER BY first_id",
        (encode(term),),
    ).fetchall()
    docs, weights = b"".join(row[0] for row in rows), b"".join(row[1] for row in rows)
    if len(docs) != 4 * len(weights):
        raise damaged(f"the postings of {term!r} have {len(docs)} bytes of chunks and {len(weights)} of weights")
    return np.frombuffer(docs, "<u4"), np.frombuffer(weights, "u1")


class Scorer:
    """Scores chunks by BM25. The caller sees to it that there is one user at a time."""

    def __init__(self, weights: KeywordWeights, reader: PostingReader) -> None:
        self._weights = weights
        self._reader = reader
        self._sums = np.zeros(0, np.float32)  # all zero between calls

    def rank(
        self,
        connection: sqlite3.Connection,
        terms: Sequence[str],
        columns: Columns,
        passing: NDArray[np.bool_],
        limit: int,
    ) -> Ranking:
        """Give the best chunks that pass, ties by id. Frequencies are those among all chunks, not of what passes."""
        if len(self._sums) < columns.size:
            self._sums = np.zeros(columns.size * 3 // 2, np.float32)
        touched = [np.zeros(0, np.uint32)]
        try:
            for term in terms:
                docs, weights = self._reader.lookup(connection, term, columns)
                if len(docs):
                    touched.append(self._add(docs, weights, columns))
            found = np.concatenate(touched)
            scores = self._sums[found]
        finally:
            for docs in touched:
                self._sums[docs] = 0
        wanted = passing[found]
        return best(found[wanted], scores[wanted], limit)

    def _add(self, docs: NDArray[np.uint32], weights: NDArray[np.uint8], columns: Columns) -> NDArray[np.uint32]:
        """Add what a term brings to the chunks that hold it; those which had nothing so far."""
        count, k1, b = columns.count, self._weights.k1, self._weights.b
        # The form that is never negative, as in Lucene.
        rarity = np.float32(np.log1p((count - len(docs) + 0.5) / (len(docs) + 0.5)))
        mean_length = columns.total_length / count
        held = weights.astype(np.float32)
        bound = columns["length"][docs].astype(np.float32)
        bound *= np.float32(k1 * b / mean_length)
        bound += held
        bound += np.float32(k1 * (1 - b))
        held *= rarity * np.float32(k1 + 1)
        held /= bound
        sums = self._sums[docs]
        self._sums[docs] = sums + held
        new: NDArray[np.uint32] = docs[sums == 0]
        return new


def best(ids: NDArray[np.integer], scores: NDArray[np.float32], limit: int) -> Ranking:
    """Give the chunks with the highest scores, best first, ties by id."""
    if 0 < limit < len(ids):
        least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        enough = scores >= least
        ids, scores = ids[enough], scores[enough]
    order = np.lexsort((ids, -scores))[: max(0, limit)]
    return Ranking(ids=ids[order].astype(np.int64), scores=scores[order].astype(np.float32))


def segments(connection: sqlite3.Connection) -> list[Segment]:
    """All segments in the order of their chunks."""
    rows = connection.execute("SELECT id, first_id, last_id, chunks FROM segment ORDER BY first_id").fetchall()
    return [Segment(id=row[0], first_id=row[1], last_id=row[2], chunks=row[3]) for row in rows]


def with_losses(found: Sequence[Segment], alive: NDArray[np.generic]) -> list[Segment]:
    """Give a segment of which much is gone; none where there is none."""
    for segment in found:
        left = int(np.count_nonzero(alive[segment.first_id : segment.last_id + 1]))
        if left < 0.7 * segment.chunks and segment.chunks - left > _MAX_LOST:
            return [segment]
    return []


def due_for_joining(found: Sequence[Segment], max_chunks: int) -> list[Segment]:
    """Give neighbouring segments of fewer chunks than that which should become one; none where all is well."""
    size = _FANOUT
    while size <= max_chunks:
        run: list[Segment] = []
        for segment in found:
            # Whatever is smaller stands between and goes along.
            run = [*run, segment] if segment.chunks < size else []
            if len(run) == _FANOUT:
                return run
        size *= _FANOUT
    return []


def rewrite(connection: sqlite3.Connection, run: Sequence[Segment], alive: NDArray[np.bool_]) -> None:
    """Make one segment of neighbours, without the chunks that are gone; `alive` is a mask over chunk ids."""
    first_id, last_id = run[0].first_id, run[-1].last_id
    here = alive[first_id : last_id + 1]
    left = int(np.count_nonzero(here))
    if left:
        segment = Segment(id=0, first_id=first_id, last_id=last_id, chunks=left)
        _write(connection, segment, _joined(connection, run, first_id, None if here.all() else ~here))
    for old in run:
        connection.execute("DELETE FROM posting WHERE segment = ?", (old.id,))
        connection.execute("DELETE FROM segment WHERE id = ?", (old.id,))


def _joined(
    connection: sqlite3.Connection, run: Sequence[Segment], first_id: int, dead: NDArray[np.bool_] | None
) -> Iterator[tuple[bytes, bytes, bytes]]:
    sources = [
        connection.cursor().execute(
            "SELECT term, docs, weights FROM posting WHERE segment = ? ORDER BY term", (segment.id,)
        )
        for segment in run
    ]
    # `merge` is stable: of one term, the earlier segment's postings come first, and its ids are the lower ones.
    for term, rows in itertools.groupby(heapq.merge(*sources, key=itemgetter(0)), key=itemgetter(0)):
        parts = list(rows)
        docs, weights = b"".join(row[1] for row in parts), b"".join(row[2] for row in parts)
        if dead is not None:
            ids = np.frombuffer(docs, "<u4")
            keep = ~dead[ids - np.uint32(first_id)]
            if not keep.all():
                docs, weights = ids[keep].tobytes(), np.frombuffer(weights, "u1")[keep].tobytes()
        if docs:
            yield term, docs, weights

"""Find the chunks with given terms by SQLite's FTS5, and score them by BM25 in NumPy.

FTS5's own `bm25()` costs 2 µs per match, 30 ms for a common query over 100,000 chunks; reading only the matches costs
0.1 µs each. So the table has neither texts nor positions. A term is stored as a token of hexadecimal digits, which
cannot be mistaken for query syntax, and again with a suffix for each step that its weighted frequency reaches.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.adapters.search_index.chunks import Columns, damaged, encode
from orchestra_mem.search_types import Ids, IndexedText, Ranking

COLUMN_WEIGHTS = {"title": 3, "heading": 2, "identifiers": 2, "body": 1}
"""Weight of a term's occurrence in each column."""

K1, B = 0.9, 0.4
"""BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), with Lucene's values for short
passages: `K1` bounds the gain from repeating a term, `B` is the penalty for length."""

FREQUENCY_STEPS = (1, 2, 3, 5)
"""The weighted frequencies that are distinguished: BM25 factors 1, 1.3, 1.5 and 1.6, of at most 1.9."""

_EVERY = "every"
"""A token that every chunk has, for `verify`: FTS5 does not notice the loss of its list of segments."""

# Size of the cache of matches: enough for several terms in an index of a million chunks.
_KEPT_BYTES = 16 << 20
_ENTRY_BYTES = 500

Matches: TypeAlias = "tuple[NDArray[np.uint32], NDArray[np.float32]]"


def tokens_of(text: IndexedText) -> tuple[str, int]:
    """Return a text's tokens as FTS5 stores them, and its number of terms."""
    frequencies: Counter[str] = Counter()
    length = 0
    for column, weight in COLUMN_WEIGHTS.items():
        for term in filter(None, getattr(text, column).split(" ")):
            frequencies[term] += weight
            length += 1
    found = (
        _token(term, step)
        for term, held in frequencies.items()
        for step in FREQUENCY_STEPS
        if step == 1 or held >= step
    )
    return " ".join((_EVERY, *found)), length


def _token(term: str, step: int) -> str:
    return encode(term).hex() if step == 1 else f"{encode(term).hex()}x{step}"


def verify(connection: sqlite3.Connection, columns: Columns) -> None:
    """Check that the last chunk in the table is the last chunk that exists.

    Raises:
        DatabaseDamagedError: The last chunks differ.
    """
    query = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT 1"
    found = [row[0] for row in connection.execute(query, (_EVERY,))]
    if found != np.flatnonzero(columns["alive"])[-1:].tolist():
        raise damaged("the word index does not match the chunks")


class KeywordSearch:
    """Searches the table and caches the matches of terms. Not safe for concurrent use."""

    def __init__(self) -> None:
        self._kept: dict[str, Matches] = {}
        self._kept_bytes = 0
        self._columns: tuple[Columns, int] | None = None

    def matches(self, connection: sqlite3.Connection, term: str, columns: Columns) -> Matches:
        """Return the ids of the chunks with a term, ascending, and its frequency in each, rounded down to a step.

        Raises:
            DatabaseDamagedError: The table does not fit the chunks.
        """
        if self._columns != (columns, columns.version) or self._kept_bytes > _KEPT_BYTES:
            self._columns = (columns, columns.version)
            self._kept.clear()
            self._kept_bytes = 0
        found = self._kept.get(term)
        if found is None:
            found = self._kept[term] = _read(connection, term, columns)
            self._kept_bytes += found[0].nbytes + found[1].nbytes + _ENTRY_BYTES
        return found

    def search(
        self,
        connection: sqlite3.Connection,
        terms: Sequence[str],
        columns: Columns,
        passing: NDArray[np.bool_],
        limit: int,
    ) -> Ranking:
        """Return the best passing chunks, ties by id. Document frequencies count all chunks, not only passing ones."""
        sums = np.zeros(columns.size, np.float32)
        mean_length = max(1, columns.total_length) / max(1, columns.count)
        for term in terms:
            docs, held = self.matches(connection, term, columns)
            # The form of inverse document frequency that is never negative, as in Lucene.
            rarity = np.log1p((columns.count - len(docs) + 0.5) / (len(docs) + 0.5))
            bound = held + K1 * (1 - B + B / mean_length * columns["length"][docs].astype(np.float32))
            sums[docs] += (rarity * (K1 + 1) * held / bound).astype(np.float32)
        found = np.flatnonzero((sums > 0) & passing)
        return best(found, sums[found], limit)


def _read(connection: sqlite3.Connection, term: str, columns: Columns) -> Matches:
    docs = _ids(connection, _token(term, 1))
    held = np.ones(len(docs), np.float32)
    if len(docs) and (int(docs[-1]) >= columns.size or not columns["alive"][docs].all()):
        raise damaged(f"the word index lists {term!r} for chunks that do not exist")
    for step in FREQUENCY_STEPS[1:] if len(docs) else ():
        more = _ids(connection, _token(term, step))
        places = np.searchsorted(docs, more).clip(max=len(docs) - 1)
        if (docs[places] != more).any():
            raise damaged(f"the word index has a frequency of {term!r} for chunks that do not contain it")
        held[places] = step
    return docs, held


def _ids(connection: sqlite3.Connection, token: str) -> NDArray[np.uint32]:
    """Read the ids of chunks with a token as one string: ten times as fast as row by row."""
    row = connection.execute("SELECT group_concat(rowid) FROM words WHERE words MATCH ?", (f'"{token}"',)).fetchone()
    found = np.fromstring(row[0] or "", np.int64, sep=",")
    if len(found) and (found[0] < 0 or found[-1] > np.iinfo(np.uint32).max or (np.diff(found) <= 0).any()):
        raise damaged("the word index contains invalid chunk ids")
    return found.astype(np.uint32)


def best(ids: Ids, scores: NDArray[np.float32], limit: int) -> Ranking:
    """Return the chunks with the highest scores, best first, ties by id."""
    if 0 < limit < len(ids):
        least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        enough = scores >= least
        ids, scores = ids[enough], scores[enough]
    order = np.lexsort((ids, -scores))[: max(0, limit)]
    return Ranking(ids=ids[order].astype(np.int64), scores=scores[order].astype(np.float32))

"""The tokens of the words that texts are made of, cut ahead: late interaction need neither spell nor cut them.

What is kept of words runs from the first number on without a gap. The rest, words that have come since and damaged
rows, is cut when it is met, until `keep` has made up for it.
"""

from __future__ import annotations

import sqlite3

import numpy as np

from orchestra_mem.adapters.search_index import chunks as rows
from orchestra_mem.adapters.search_index.database import fits
from orchestra_mem.adapters.search_index.state import IndexState
from orchestra_mem.search_types import EmbeddingModel, Ids, Tokens, WordEmbedder

# So many new words are worth a row, and so many are cut at once.
_LEAST, _MOST = 256, 8_192
_FIRST = 1  # the lowest number of a name
_MAX_CHARS = 256  # no word is as long; a session's name, which is never compared, may be


class WordTokens:
    """The tokens of an index's words in memory, some ten bytes a word. For one user at a time."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._of: tuple[str, EmbeddingModel] | None = None
        self._tokens = np.zeros(0, np.uint32)
        self._ends = np.zeros(_FIRST, np.int64)  # where in `_tokens` those of each number end
        self._lengths = np.zeros(_FIRST, np.float32)

    @property
    def end(self) -> int:
        """The first number of which nothing is kept."""
        return len(self._ends)

    def read(self, connection: sqlite3.Connection, identity: str, model: EmbeddingModel, numbers: Ids) -> Tokens:
        """Give the tokens of words; for `identity`, see `DiskSearchIndex`."""
        if int(numbers.max(initial=0)) >= self.end or self._of != (identity, model):
            self.load(connection, identity, model)
        inside = (numbers >= _FIRST) & (numbers < self.end)
        ends, starts = self._ends[numbers[inside]], self._ends[numbers[inside] - 1]
        counts = np.full(len(numbers), -1)
        counts[inside] = found = ends - starts
        lengths = np.zeros(len(numbers), np.float32)
        lengths[inside] = self._lengths[numbers[inside]]
        # Each word's run of places in `_tokens`, one run after the other.
        places = np.repeat(ends - np.cumsum(found), found) + np.arange(found.sum())
        return Tokens(numbers=self._tokens[places].astype(np.int64), counts=counts, lengths=lengths)

    def load(self, connection: sqlite3.Connection, identity: str, model: EmbeddingModel) -> None:
        """Take in what has been kept since."""
        if self._of != (identity, model):
            self._forget()
            self._of = (identity, model)
        tokens, ends, lengths = [self._tokens], [self._ends], [self._lengths]
        end, total = self.end, len(self._tokens)
        # Cast, as what is damaged may be of any type.
        query = (
            "SELECT first, CAST(counts AS BLOB), CAST(tokens AS BLOB), CAST(lengths AS BLOB) FROM word"
            " WHERE model = ? AND first >= ? ORDER BY first"
        )
        for first, counts, data, norms in connection.execute(query, (_name(model), end)):
            sums = np.cumsum(np.frombuffer(counts[: len(counts) // 2 * 2], "<u2"), dtype=np.int64)
            if first != end or not len(sums) or 4 * sums[-1] != len(data) or 4 * len(sums) != len(norms):
                break
            tokens.append(np.frombuffer(data, "<u4"))
            ends.append(total + sums)
            lengths.append(np.frombuffer(norms, "<f4"))
            end, total = end + len(sums), total + int(sums[-1])
        self._tokens, self._ends = np.concatenate(tokens), np.concatenate(ends)
        self._lengths = np.concatenate(lengths)


def keep(state: IndexState, known: WordTokens, words: WordEmbedder) -> None:
    """Cut the words that have come since the last time, if they are worth it, and throw away what does not fit.

    Raises:
        EmbedderError: they cannot be cut.
    """
    first = 0
    while True:
        with state.reading("words") as connection:
            known.load(connection, state.identity, words.model)
            if known.end == first:  # what was written does not come back
                return
            first, identity = known.end, state.identity
            last = int(connection.execute("SELECT coalesce(max(id), 0) FROM name").fetchone()[0])
            if last - first + 1 < _LEAST:
                return
            texts = rows.spell(connection, np.arange(first, min(last + 1, first + _MOST)))
        tokens = words.cut([text[:_MAX_CHARS] for text in texts])
        data = (
            tokens.counts.astype("<u2").tobytes(),
            tokens.numbers.astype("<u4").tobytes(),
            tokens.lengths.astype("<f4").tobytes(),
        )
        with state.writing("words") as connection:
            if not fits(connection, identity):
                continue
            connection.execute("DELETE FROM word WHERE model <> ? OR first >= ?", (_name(words.model), first))
            connection.execute("INSERT INTO word VALUES (?, ?, ?, ?, ?)", (first, _name(words.model), *data))


def _name(model: EmbeddingModel) -> str:
    return f"{model.name} {model.version} {model.dimensions}"

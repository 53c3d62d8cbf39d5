"""Records and ports of search. NumPy is used for type annotations only and not imported at run time.

A chunk's `key` identifies it permanently, its id (a number from 1) only within one index. Large results are arrays, so
that a query over a million chunks creates objects only for the hits that it returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Ids: TypeAlias = "NDArray[np.int64]"
"""Chunk ids: int64, shape (n,); 0 means no chunk."""
Vector: TypeAlias = "NDArray[np.float32]"
"""float32, shape (dimensions,), unit length or all zero."""
Vectors: TypeAlias = "NDArray[np.float32]"
"""float32, shape (n, dimensions), each row of unit length or all zero."""


class Tier(StrEnum):
    """The memory tier of a chunk."""

    WORKING = "working"
    SESSION = "session"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A searchable piece of a tier.

    `key` is a hash of the text and its place: the headings above it or its operation, but never a line number. Chunks
    with equal keys have the same `heading`, `title` and `text`, and so the same vector. `source` is the origin as shown
    to people ("op 12", "S3", "decision_log.md"). `kind` is the type of the operation, document, fact or item.
    `operation` is 0 if the chunk comes from no single operation. `importance` is 0 to 1, 0.5 if unknown.

    Chunks with the same `group` (a session id, a document name) are neighbours, ordered by `position`; gaps are
    allowed. `pattern` names an orchestration pattern, the namespace of a stored item, or `CHUNK_PATTERN`. `time` is
    aware.
    """

    key: str
    tier: Tier
    source: str
    text: str
    kind: str
    group: str
    position: int
    heading: tuple[str, ...] = ()
    title: str = ""
    session: str | None = None
    agent: str | None = None
    item: int | None = None
    pattern: str | None = None
    time: datetime | None = None
    operation: int = 0
    importance: float = 0.5

    @property
    def context(self) -> str:
        """The headings above the text, and its title, in one line; empty if the chunk has neither."""
        return " > ".join(filter(None, (*self.heading, self.title)))

    @property
    def embedded_text(self) -> str:
        """The text that is embedded: `context` followed by `text`."""
        return f"{self.context}\n{self.text}" if self.context else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """A filter for chunks: all conditions must hold. An empty tuple or None is no condition.

    `since` is inclusive, `until` exclusive; a chunk without a time fails both. If `readable` is given, catalog items
    must belong to one of these agents; with `strict`, all chunks must.
    """

    tiers: tuple[Tier, ...] = ()
    kinds: tuple[str, ...] = ()
    agent: str | None = None
    session: str | None = None
    item: int | None = None
    pattern: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    readable: frozenset[str] | None = None
    strict: bool = False


EVERYTHING = SearchFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """A query to the keyword index.

    `terms` are distinct and normalised as in `IndexedText`: folded and stemmed, identifiers whole and split into parts,
    character pairs for scripts without spaces. A chunk matches if it holds any term (OR). `identifiers` are the terms
    that are exact names: `#12`, paths, `snake_case`. A term is not empty and has no white space; it may contain any
    other character, including quotes and query operators.
    """

    terms: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedText:
    """The indexed form of a chunk's text.

    `title`, `heading`, `identifiers` and `body` are columns for keyword search. They hold folded and stemmed terms,
    joined by single spaces, so a tokenizer must split at spaces only. `identifiers` holds unsplit exact names, most of
    which are in the other columns too. The rest is for ranking: `words` are the distinct content words, headings
    included; `is_statement` is false for a question; `tells_time` tells whether the text names a time.
    """

    title: str
    heading: str
    identifiers: str
    body: str
    words: tuple[str, ...] = ()
    is_statement: bool = True
    tells_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The tokens of a list of words.

    `numbers` holds the token ids of all words in order; `counts` is the number of tokens of each word, shape (words,).
    A word's vector is the sum of its tokens' vectors; `lengths` are the norms of these sums, shape (words,).
    """

    numbers: NDArray[np.int64]
    counts: NDArray[np.int64]
    lengths: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlines:
    """The data about chunks that ranking needs, without their texts: one row for each chunk, by ascending id.

    `passing` marks the chunks that pass the filter. `groups` are numbers, equal for chunks of the same group. `times`
    are seconds since 1970, NaN if a chunk has no time. `importance` is 0 to 1. `statements` and `tell_time` are
    `is_statement` and `tells_time` of `IndexedText`. `word_counts` is the number of distinct content words. `cut` marks
    the chunks whose words have been tokenized; `tokens` holds the tokens of these chunks in order.
    """

    ids: Ids
    passing: NDArray[np.bool_]
    groups: NDArray[np.int64]
    agents: tuple[str | None, ...]
    sessions: tuple[str | None, ...]
    times: NDArray[np.float64]
    importance: NDArray[np.float32]
    statements: NDArray[np.bool_]
    tell_time: NDArray[np.bool_]
    word_counts: NDArray[np.int64]
    cut: NDArray[np.bool_]
    tokens: Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Chunks with their scores, best first, ties by id; both arrays have shape (n,).

    Keyword scores are BM25, above 0. Dense scores are cosines, -1 to 1. Higher is better for both.
    """

    ids: Ids
    scores: NDArray[np.float32]


class SearchMode(StrEnum):
    """Which searches provide candidates."""

    HYBRID = "hybrid"
    KEYWORD = "keyword"
    DENSE = "dense"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """Why a hit has its rank.

    Ranks count from 1 and are None if the search did not find the chunk; scores are the index's own. `shares` and
    `priors` are pairs of name and number: the hit's score is the sum of the shares, multiplied by all priors.
    `identifiers` are the query's exact names that the chunk holds; a hit with more of them ranks above a hit with
    fewer, whatever their scores.
    """

    keyword_rank: int | None = None
    keyword_score: float = 0.0
    dense_rank: int | None = None
    dense_score: float = 0.0
    identifiers: tuple[str, ...] = ()
    shares: tuple[tuple[str, float], ...] = ()
    priors: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A chunk that may answer a query. Scores are comparable within one result, likelihoods (0 to 1) across queries.

    `perhaps` marks an unlikely answer, which ranks below all likely ones. `superseded_by` names the fact that replaced
    what an operation says, or that a person has reworded ("K7"), "" if there is none. `removed`: A person removed the
    fact in which an operation was remembered. `settled`: An operation's failures and open items are solved or done.
    """

    id: int
    chunk: Chunk
    score: float
    likelihood: float
    perhaps: bool
    reasons: Reasons
    superseded_by: str = ""
    removed: bool = False
    settled: bool = False

    @property
    def fate(self) -> str:
        """What became of what an operation says: "superseded by K7", "removed by a person", "settled since", or ""."""
        by = f"superseded by {self.superseded_by}" * bool(self.superseded_by)
        return by or "removed by a person" * self.removed or "settled since" * self.settled

    @property
    def doubt(self) -> str:
        """What lessens the hit, for its label: ", perhaps", ", superseded by K7", both, or nothing."""
        return ", perhaps" * self.perhaps + f", {self.fate}" * bool(self.fate)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel:
    """The identity of an embedding model. Vectors are comparable only if all three fields are equal."""

    name: str
    version: str
    dimensions: int


class Embedder(Protocol):
    """Turns texts into vectors. Thread-safe. Every method raises `EmbedderError` if the model fails."""

    @property
    def model(self) -> EmbeddingModel:
        """The model that makes the vectors."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed any strings; a text with nothing to embed gives a row of zeros."""

    def embed_query(self, query: str) -> Vector:
        """Embed a query, with the query prefix of models that have one."""


class WordEmbedder(Protocol):
    """Embeds single words without context, for late interaction.

    Thread-safe. Every method raises `EmbedderError` if the model fails.
    """

    @property
    def model(self) -> EmbeddingModel:
        """The model that makes the vectors."""

    def embed_words(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Embed words one by one: float32, shape (n, dimensions).

        The norm of a row is the model's weight of the word, 0 for a word without a vector. The sum of rows has the
        direction of the embedding of a text made of these words.
        """

    def cut(self, words: Sequence[str]) -> Tokens:
        """Tokenize words. This is the slow part of embedding them, and can be done in advance."""

    def token_vectors(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return token vectors: float32, shape (n, dimensions). Summed over a word, they give `embed_words`."""


class SearchIndex(Protocol):
    """Stores chunks, and finds the chunks that hold given words or are near a vector.

    Safe to share between threads. Filters apply before `limit`.
    """

    def add(self, chunks: Sequence[Chunk]) -> Ids:
        """Add chunks and return their ids, in order.

        A chunk with a known key keeps its id and vectors; its other fields (source, position, time, importance …) are
        replaced. If a key occurs twice in one call, the last chunk wins.
        """

    def remove(self, keys: Sequence[str]) -> int:
        """Remove chunks with their vectors, and return their number. Ids are never reused."""

    def keys(self, group: str) -> dict[str, int]:
        """Return the keys of a group's chunks, mapped to their ids, for detecting changes."""

    @property
    def identity(self) -> str:
        """An identifier of this index. It changes when the index is recreated: old ids and marks are then void."""

    def add_vectors(self, model: EmbeddingModel, ids: Ids, vectors: Vectors, *, identity: str | None = None) -> None:
        """Store the vectors of chunks; skip ids that no longer exist.

        If `identity` is given and is no longer the index's identity, nothing is stored.

        Raises:
            OrchestraMemError: The vectors do not have the model's dimensions, or are not finite.
        """

    def without_vectors(self, model: EmbeddingModel, limit: int) -> Ids:
        """Return the chunks that this model has not embedded yet, newest first."""

    def keyword(self, terms: Terms, where: SearchFilter, limit: int) -> Ranking:
        """Return the chunks that hold any of the terms, ranked by BM25 with weighted columns; empty without terms."""

    def dense(self, model: EmbeddingModel, vector: Vector, where: SearchFilter, limit: int) -> Ranking:
        """Return the chunks nearest to a vector of this model."""

    def chunks(self, ids: Ids) -> list[Chunk | None]:
        """Return chunks in the order of `ids`; None for an id that is 0 or no longer exists."""

    def outlines(self, ids: Ids, where: SearchFilter) -> Outlines:
        """Return the outlines of the existing chunks among `ids`, by ascending id; `where` determines `passing`."""

    def vectors(self, model: EmbeddingModel, ids: Ids) -> Vectors:
        """Return vectors of this model in the order of `ids`; a row of zeros for a chunk without a vector."""

    def neighbours(self, ids: Ids, distance: int) -> Ids:
        """Return the neighbours of each chunk in its group: shape (n, 2 * distance), 0 for a missing neighbour.

        The columns are the positions relative to the chunk: -distance … -1, 1 … distance.
        """

    def document_frequency(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of chunks that hold each term, in any column: shape (terms,)."""

    def holding(self, terms: Sequence[str], ids: Ids) -> NDArray[np.bool_]:
        """Return a mask of the chunks that hold each term, in any column: shape (terms, ids)."""

    def count(self) -> int:
        """Return the number of chunks."""

    def marks(self) -> dict[str, str]:
        """Return the values stored with `set_mark`, by name."""

    def set_mark(self, name: str, value: str, *, identity: str | None = None) -> bool:
        """Store a named progress mark, such as the last indexed operation. Marks are lost with the index.

        If `identity` is given and is no longer the index's identity, store nothing and return False.
        """

    @property
    def problems(self) -> Sequence[str]:
        """Messages about damaged parts that have to be rebuilt."""

    def rebuild(self) -> None:
        """Discard everything; all chunks have to be added again."""

    def models(self) -> dict[EmbeddingModel, int]:
        """Return the models that have embedded chunks, with the number of chunks."""

    def drop_model(self, model: EmbeddingModel) -> None:
        """Remove a model's vectors."""

    def maintain(self) -> None:
        """Run due maintenance; searches and additions continue meanwhile."""

    def close(self) -> None:
        """Close all files; safe to call twice. A running `maintain` fails soon after."""


def named_in_short(projects: Sequence[str]) -> str:
    """Name at most four projects, and count the others."""
    return ", ".join(projects[:4]) + f" and {len(projects) - 4} more" * (len(projects) > 4)

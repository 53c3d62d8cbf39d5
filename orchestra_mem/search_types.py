"""Define the records and ports of search. NumPy is named here for types alone and not imported.

A chunk is known by its `key` for ever, and within one index by its id, a number from 1 up. What comes in hundreds comes
as arrays, so that a query over a million chunks makes no object for what it does not show.
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
"""Chunk ids, shape (n,); 0 stands for none."""
Vector: TypeAlias = "NDArray[np.float32]"
"""Shape (dimensions,), unit length or all zero."""
Vectors: TypeAlias = "NDArray[np.float32]"
"""Shape (n, dimensions), each row of unit length or all zero."""


class Tier(StrEnum):
    """Where a memory stands."""

    WORKING = "working"
    SESSION = "session"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A searchable piece of a tier.

    `key` is a hash of what the chunk says and of where it stands among headings or which operation it is from, never
    of a line number: chunks with the same key have the same `heading`, `title` and `text`, and so the same vector.
    `source` names for people where it stands ("op 12", "S3", "decision_log.md"), `kind` is the type of the operation,
    of the document or of the fact. `operation` is 0 where the chunk is of none. `importance` is 0 to 1, 0.5 for what
    nothing is known of.

    Neighbours are the chunks with the same `group` (a session's id, a document's name); `position` gives their order,
    gaps allowed. `session`, `agent`, `item`, `pattern` (of an orchestration) and `time` are None where the chunk has
    none; `time` is aware.
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
        """The title and the path of headings that the text stands under, in one line; empty where it has neither."""
        return " > ".join(filter(None, (*self.heading, self.title)))

    @property
    def embedded_text(self) -> str:
        """What is embedded: the headings in front of the text."""
        return f"{self.context}\n{self.text}" if self.context else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """Which chunks are wanted: all that pass every condition given. An empty tuple or None is no condition.

    `since` is inclusive and `until` exclusive; a chunk without a time passes neither. `readable` are the agents whose
    items of the catalog are wanted, None for all; with `strict` everything else must be of one of them, too.
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
    """What a query says to the keyword index.

    `terms` are distinct and as `IndexedText` has them: folded, stemmed, identifiers whole and in parts, pairs of
    characters where a script has no spaces. Any of them makes a hit (OR). `identifiers` are those of the terms that
    are exact names: `#12`, paths, `snake_case`. A term has no white space and at least one character, and may hold any
    other, quotes and operators of a query language included.
    """

    terms: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedText:
    """What the index holds of a chunk's text.

    Four columns for keyword search, each the terms with single blanks between: to be cut at blanks and nowhere else,
    and neither folded nor stemmed again. `identifiers` holds exact names whole and repeats what the other columns have.
    For ranking: the distinct content `words`, headings included, and whether the text is no question and names a time.
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
    """What a tokenizer cuts words into: numbers of its vocabulary.

    `numbers` has the tokens of all words, one word after the other; `counts` is how many each has, shape (words,).
    `lengths` are those of the words' vectors, which are the sums of their tokens', shape (words,).
    """

    numbers: NDArray[np.int64]
    counts: NDArray[np.int64]
    lengths: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlines:
    """What ranking needs of chunks, without their texts, a row each.

    `ids` are in ascending order. `passing` tells which pass the filter that was asked with. `groups` are numbers, equal
    where the groups are. `times` are seconds since the epoch, NaN where a chunk has none. `importance` is 0 to 1.
    `word_counts` are how many different content words each has, `cut` whether their tokens are known; `tokens` has
    those of the words of all chunks that are cut, one chunk after the other.
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

    Keyword scores are BM25, over 0, more is better. Dense scores are cosines, -1 to 1.
    """

    ids: Ids
    scores: NDArray[np.float32]


class SearchMode(StrEnum):
    """Which searches find candidates."""

    HYBRID = "hybrid"
    KEYWORD = "keyword"
    DENSE = "dense"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Who asks, and when: what "last week" means, and what recency and nearness are measured from."""

    now: datetime
    session: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """Why a hit stands where it does.

    Ranks count from 1 and are None where that search did not find it; scores are the index's own. `shares` are pairs of
    name and number and add up to the score before `priors`, pairs as well, multiply it: their product with the sum of
    the shares is the hit's score. `identifiers` are the query's exact names that the chunk holds; a hit with more of
    them goes before one with less, whatever their scores.
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
    """A chunk that may answer a query. `score` compares within an answer, `likelihood` (0 to 1) between answers too."""

    id: int
    chunk: Chunk
    score: float
    likelihood: float
    perhaps: bool  # unlikely, and so behind those that are not
    reasons: Reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel:
    """What vectors were made with. Vectors of models that differ in anything cannot be compared."""

    name: str
    version: str
    dimensions: int


class Embedder(Protocol):
    """Turns texts into vectors. Safe to share between threads; where it fails, each method raises `EmbedderError`."""

    @property
    def model(self) -> EmbeddingModel:
        """What the vectors are made with."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, any strings whatever; a row of zeros where a text has nothing to embed."""

    def embed_query(self, query: str) -> Vector:
        """Embed a query; models that tell queries from texts put their mark in front."""


class WordEmbedder(Protocol):
    """Gives single words vectors that need no context, for late interaction.

    Safe to share between threads; where it fails, each method raises `EmbedderError`.
    """

    @property
    def model(self) -> EmbeddingModel:
        """What the vectors are made with."""

    def embed_words(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Embed words one by one, shape (n, dimensions).

        The length of a row is the weight that the model gives the word; it is 0 where a word has no vector. A sum of
        rows points where the model would embed a text of these words.
        """

    def cut(self, words: Sequence[str]) -> Tokens:
        """Cut words into tokens, the slow part of embedding them, which can be done ahead."""

    def token_vectors(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of tokens, shape (n, dimensions); the sum of a word's is what `embed_words` gives for it."""


class SearchIndex(Protocol):
    """Keeps chunks and answers which have given words or lie near a vector.

    Safe to share between threads. Filters are passed down: `limit` counts what passes.
    """

    def add(self, chunks: Sequence[Chunk]) -> Ids:
        """Take in chunks and give their ids, in order.

        One whose key is there already keeps its id and its vectors; everything else of it (source, position, time,
        importance …) is replaced. A key that comes twice in one call is taken as it comes last.
        """

    def remove(self, keys: Sequence[str]) -> int:
        """Take out chunks with their vectors; how many there were. Ids are never given again."""

    def keys(self, group: str) -> dict[str, int]:
        """Return the keys of a group's chunks with their ids, to see what has changed."""

    @property
    def identity(self) -> str:
        """Another one than before means that the index was begun anew: ids are of other chunks, marks are gone."""

    def add_vectors(self, model: EmbeddingModel, ids: Ids, vectors: Vectors, *, identity: str | None = None) -> None:
        """Keep the vectors of chunks; ids that are gone by now are passed over.

        Where `identity` is given and the index has another one by now, nothing is kept.

        Raises:
            OrchestraMemError: the vectors do not have the model's dimensions; the message has both numbers.
        """

    def without_vectors(self, model: EmbeddingModel, limit: int) -> Ids:
        """Return the chunks that this model has not embedded yet, newest first."""

    def keyword(self, terms: Terms, where: SearchFilter, limit: int) -> Ranking:
        """The chunks that hold any of the terms, by BM25 with weighted columns; none where there are no terms."""

    def dense(self, model: EmbeddingModel, vector: Vector, where: SearchFilter, limit: int) -> Ranking:
        """Return the chunks nearest to a vector of this model."""

    def chunks(self, ids: Ids) -> list[Chunk | None]:
        """Return chunks in the order asked for; None where an id is 0 or gone."""

    def outlines(self, ids: Ids, where: SearchFilter) -> Outlines:
        """Return what ranking needs of those of the chunks that are there, by ascending id."""

    def vectors(self, model: EmbeddingModel, ids: Ids) -> Vectors:
        """Return vectors of this model in the order asked for; a row of zeros where there is none."""

    def neighbours(self, ids: Ids, distance: int) -> Ids:
        """Return the chunks before and behind each in its group, shape (n, 2 * distance), 0 where there is none.

        The columns run from the farthest before to the farthest behind: -distance … -1, 1 … distance.
        """

    def document_frequency(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """Return how many chunks hold each term, in any column."""

    def holding(self, terms: Sequence[str], ids: Ids) -> NDArray[np.bool_]:
        """Return which chunks hold which terms, in any column, shape (terms, ids)."""

    def count(self) -> int:
        """Return how many chunks there are."""

    def marks(self) -> dict[str, str]:
        """Return what `set_mark` noted, by name."""

    def set_mark(self, name: str, value: str, *, identity: str | None = None) -> bool:
        """Note how far something has come; gone with the index.

        Where `identity` is given and the index has another one by now, nothing is noted, and False the answer.
        """

    @property
    def problems(self) -> Sequence[str]:
        """What was found damaged and has to be made anew, in words."""

    def rebuild(self) -> None:
        """Throw everything away."""

    def models(self) -> dict[EmbeddingModel, int]:
        """Return the models that have embedded chunks, and how many."""

    def drop_model(self, model: EmbeddingModel) -> None:
        """Forget a model's vectors."""

    def maintain(self) -> None:
        """Do the upkeep that is due; searches and additions go on meanwhile."""

    def close(self) -> None:
        """Let go of files; safe to call twice. Upkeep under way fails soon after."""

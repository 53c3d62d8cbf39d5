"""A brute-force reference for `DiskSearchIndex`: tests compare the answers of both."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.adapters.search_index.keyword import COLUMN_WEIGHTS, FREQUENCY_STEPS, K1, B
from orchestra_mem.search_types import (
    Chunk,
    EmbeddingModel,
    IndexedText,
    Ranking,
    SearchFilter,
    Terms,
    Tier,
    Vector,
    Vectors,
)

START = datetime(2025, 1, 1, tzinfo=UTC)
TOKYO = timezone(timedelta(hours=9))
MODEL = EmbeddingModel(name="small", version="1", dimensions=8)
WORDS = 'gate pump valve door lamp fuse wire bolt rack lid 中文 文本 #12 load_file a\0b NEAR " * \ud800'.split(" ")


def analyse(chunk: Chunk) -> IndexedText:
    """Split the text at spaces, without any normalisation."""
    names = [word for word in chunk.text.split(" ") if "_" in word or "#" in word]
    return IndexedText(
        title=chunk.title, heading=" ".join(chunk.heading), identifiers=" ".join(names), body=chunk.text,
        words=tuple(dict.fromkeys(chunk.text.split())), is_statement="gate" in chunk.text,
        tells_time="pump" in chunk.text,
    )  # fmt: skip


def terms(*words: str) -> Terms:
    """Return a query of these words."""
    return Terms(terms=words)


def some_chunk(rng: random.Random, key: str) -> Chunk:
    """Return a random chunk; its text, title and heading depend only on its key, as the index assumes."""
    fixed = random.Random(key)
    return Chunk(
        key=key, tier=rng.choice(list(Tier)), source=f"op {rng.randrange(100)}",
        text=" ".join(fixed.choices(WORDS, k=fixed.randrange(12))),
        title=" ".join(fixed.choices(WORDS, k=fixed.randrange(3))),
        heading=tuple(fixed.choices(WORDS, k=fixed.randrange(3))), kind=rng.choice(["note", "error", "plan"]),
        group=rng.choice(["S1", "S2", "log \ud800"]), position=rng.choice([-(2**40), *range(-3, 20)]),
        session=rng.choice([None, "S1", "S2"]), agent=rng.choice([None, "coder", "täster\udcff"]),
        item=rng.choice([None, 1, 2**40]), pattern=rng.choice([None, "parallel"]),
        time=rng.choice([None, (START + timedelta(microseconds=rng.randrange(10**12))).astimezone(TOKYO)]),
        operation=rng.choice([rng.randrange(100), 2**40]),
        importance=rng.random(),
    )  # fmt: skip


def some_filter(rng: random.Random) -> SearchFilter:
    """Return a random filter that usually lets some chunks through."""
    return SearchFilter(
        tiers=tuple(rng.sample(list(Tier), rng.randrange(3))),
        kinds=tuple(rng.sample(["note", "error", "unheard of"], rng.randrange(3))),
        agent=rng.choice([None, None, "coder", "nobody"]), session=rng.choice([None, None, "S1", "S9"]),
        item=rng.choice([None, None, 1, 7]), pattern=rng.choice([None, None, None, "parallel"]),
        since=rng.choice([None, None, START + timedelta(days=2)]),
        until=rng.choice([None, None, START + timedelta(days=9)]),
    )  # fmt: skip


def passes(where: SearchFilter, chunk: Chunk) -> bool:
    """Check whether a chunk satisfies a filter."""
    return (
        (not where.tiers or chunk.tier in where.tiers)
        and (not where.kinds or chunk.kind in where.kinds)
        and (where.agent is None or chunk.agent == where.agent)
        and (where.session is None or chunk.session == where.session)
        and (where.item is None or chunk.item == where.item)
        and (where.pattern is None or chunk.pattern == where.pattern)
        and (where.since is None or (chunk.time is not None and chunk.time >= where.since))
        and (where.until is None or (chunk.time is not None and chunk.time < where.until))
    )


def unit_vectors(count: int, dimensions: int = 8, seed: int = 0) -> Vectors:
    """Return random unit vectors: float32, shape (count, dimensions)."""
    found = np.random.default_rng(seed).standard_normal((count, dimensions))
    unit: Vectors = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
    return unit


class Oracle:
    """Chunks and vectors in dictionaries; the chunk ids come from the index under test."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.chunks: dict[int, Chunk] = {}
        self.vectors: dict[int, Vector] = {}

    def add(self, chunks: Sequence[Chunk], ids: Sequence[int]) -> None:
        """Store the chunks under the ids that the index returned for them."""
        for chunk, chunk_id in zip(chunks, ids, strict=True):
            assert self.ids.setdefault(chunk.key, chunk_id) == chunk_id
            self.chunks[chunk_id] = chunk

    def remove(self, keys: Sequence[str]) -> int:
        """Remove chunks and return how many existed."""
        gone = [self.ids.pop(key) for key in dict.fromkeys(keys) if key in self.ids]
        for chunk_id in gone:
            del self.chunks[chunk_id]
            self.vectors.pop(chunk_id, None)
        return len(gone)

    def keyword(self, words: Sequence[str], where: SearchFilter, limit: int) -> list[tuple[int, float]]:
        """Rank all chunks by the BM25 formula, with frequencies rounded down to the index's steps."""
        held = {chunk_id: _weighted(chunk) for chunk_id, chunk in self.chunks.items()}
        lengths = {chunk_id: _length(chunk) for chunk_id, chunk in self.chunks.items()}
        scores: dict[int, float] = defaultdict(float)
        for word in words:
            having = [chunk_id for chunk_id in held if held[chunk_id][word]]
            rarity = math.log(1 + (len(held) - len(having) + 0.5) / (len(having) + 0.5))
            for chunk_id in having:
                times = max(step for step in FREQUENCY_STEPS if step <= held[chunk_id][word])
                bound = K1 * (1 - B + B * lengths[chunk_id] * len(held) / sum(lengths.values()))
                scores[chunk_id] += rarity * times * (K1 + 1) / (times + bound)
        return _best({i: score for i, score in scores.items() if passes(where, self.chunks[i])}, limit)

    def dense(self, vector: Vector, where: SearchFilter, limit: int) -> list[tuple[int, float]]:
        """Rank all vectors by cosine similarity."""
        scores = {
            i: float(own @ vector) for i, own in self.vectors.items() if own.any() and passes(where, self.chunks[i])
        }
        return _best(scores, limit)

    def frequency(self, word: str) -> int:
        """Return the number of chunks that contain a word."""
        return sum(bool(_weighted(chunk)[word]) for chunk in self.chunks.values())

    def neighbours(self, ids: Sequence[int], distance: int) -> list[list[int]]:
        """Return the ids around each chunk in its group, 0 where there is no neighbour."""
        around = dict.fromkeys(ids, [0] * 2 * distance)
        for group in {chunk.group for chunk in self.chunks.values()}:
            row = sorted((chunk.position, i) for i, chunk in self.chunks.items() if chunk.group == group)
            padded = [0] * distance + [i for _, i in row] + [0] * distance
            for place in range(distance, len(padded) - distance):
                around[padded[place]] = padded[place - distance : place] + padded[place + 1 : place + 1 + distance]
        return [around[chunk_id] for chunk_id in ids]


def _columns(chunk: Chunk) -> list[tuple[int, list[str]]]:
    text = analyse(chunk)
    return [(weight, [*filter(None, getattr(text, name).split(" "))]) for name, weight in COLUMN_WEIGHTS.items()]


def _weighted(chunk: Chunk) -> Counter[str]:
    found: Counter[str] = Counter()
    for weight, words in _columns(chunk):
        for word in words:
            found[word] += weight
    return found


def _length(chunk: Chunk) -> int:
    return sum(len(words) for _, words in _columns(chunk))


def _best(scores: dict[int, float], limit: int) -> list[tuple[int, float]]:
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]


def assert_ranked(found: Ranking, expected: list[tuple[int, float]], all_scores: dict[int, float]) -> None:
    """Check that scores match rank by rank and chunk by chunk: only equal scores may be ordered differently."""
    assert len(found.ids) == len(expected) == len(set(found.ids.tolist()))
    np.testing.assert_allclose(found.scores, [score for _, score in expected], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.scores, [all_scores[i] for i in found.ids.tolist()], rtol=1e-4, atol=1e-5)


def compare(index: DiskSearchIndex, oracle: Oracle, rng: random.Random) -> None:
    """Check that every query of the index returns the reference's result."""
    assert index.count() == len(oracle.chunks)
    ids = np.array([*oracle.chunks, 0, 10**6], np.int64)
    expected = [_in_utc(oracle.chunks[i]) for i in oracle.chunks]
    assert (found := index.chunks(ids)) == [*expected, None, None]
    assert all(chunk.time.utcoffset() == timedelta(0) for chunk in found if chunk and chunk.time)
    assert index.neighbours(ids, 2).tolist() == oracle.neighbours(ids.tolist(), 2)
    for group in ("S1", "log \ud800", "none"):
        assert index.keys(group) == {key: i for key, i in oracle.ids.items() if oracle.chunks[i].group == group}
    compare_outlines(index, oracle, ids, some_filter(rng))
    words = [*rng.sample(WORDS, rng.randrange(1, 5)), "unheard"]
    assert index.document_frequency(words).tolist() == [oracle.frequency(word) for word in words]
    missing = sorted(set(oracle.chunks) - set(oracle.vectors), reverse=True)
    assert index.without_vectors(MODEL, 5).tolist() == missing[:5]
    np.testing.assert_allclose(
        index.vectors(MODEL, ids), [oracle.vectors.get(i, np.zeros(8)) for i in ids.tolist()], atol=1e-6
    )
    vector = unit_vectors(1, seed=rng.randrange(10**6))[0]
    for where in (SearchFilter(), some_filter(rng), some_filter(rng)):
        limit = rng.choice([0, 1, 3, 100])
        everything = dict(oracle.keyword(words, where, 10**6))
        assert_ranked(index.keyword(terms(*words), where, limit), oracle.keyword(words, where, limit), everything)
        everything = dict(oracle.dense(vector, where, 10**6))
        assert_ranked(index.dense(MODEL, vector, where, limit), oracle.dense(vector, where, limit), everything)


def compare_outlines(index: DiskSearchIndex, oracle: Oracle, ids: NDArray[np.int64], where: SearchFilter) -> None:
    """Check that outlines match the chunks and their analysed texts."""
    found = index.outlines(ids, where)
    assert found.ids.tolist() == sorted(oracle.chunks)
    chunks = [oracle.chunks[i] for i in found.ids.tolist()]
    analysed = [analyse(chunk) for chunk in chunks]
    assert found.passing.tolist() == [passes(where, chunk) for chunk in chunks]
    pairs = {(number, chunk.group) for number, chunk in zip(found.groups.tolist(), chunks, strict=True)}
    assert len(pairs) == len({number for number, _ in pairs}) == len({group for _, group in pairs})
    assert found.agents == tuple(chunk.agent for chunk in chunks)
    assert found.sessions == tuple(chunk.session for chunk in chunks)
    times = [chunk.time.timestamp() if chunk.time else math.nan for chunk in chunks]
    np.testing.assert_allclose(found.times, times, rtol=0, atol=2e-6)
    np.testing.assert_allclose(found.importance, [chunk.importance for chunk in chunks], rtol=1e-6)
    assert found.statements.tolist() == [text.is_statement for text in analysed]
    assert found.tell_time.tolist() == [text.tells_time for text in analysed]
    assert found.word_counts.tolist() == [len(text.words) for text in analysed]
    words = sorted({word for chunk in chunks for word in chunk.text.split()})
    held = [[_weighted(chunk)[word] > 0 for chunk in chunks] for word in words]
    assert index.holding(words, found.ids).tolist() == held


def _in_utc(chunk: Chunk) -> Chunk:
    return replace(chunk, time=chunk.time and chunk.time.astimezone(UTC))

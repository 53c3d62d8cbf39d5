"""Random chunks and vectors for tests of `DiskSearchIndex`."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone

import numpy as np

from orchestra_mem.search_types import Chunk, EmbeddingModel, IndexedText, SearchFilter, Terms, Tier, Vectors

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

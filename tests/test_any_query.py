"""Any string is a query: two thousand of the nastiest raise nothing, and writing of all kinds is found."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.core.search.chunking import chunk_operation
from orchestra_mem.core.search.hybrid import Searcher
from orchestra_mem.core.search.terms import ANALYSIS_VERSION, index_text
from orchestra_mem.search_types import SearchMode, Situation, Tier
from tests.builders import an_operation, cases

NOW = datetime(2025, 1, 15, 10, tzinfo=UTC)
SAID: dict[str, str] = dict(cases("said_in_languages"))
# What breaks query languages, regular expressions, JSON, file names, terminals, and readers of characters.
ALPHABETS = (
    "\"'*():^-+NEARANDORNOT ", "%_\\;--/*[]{}|&!~", "\x00\x01\x1b\x7f\x85\u2028\ufeff\ufffe",
    "\ud800\udfff\ud83d\ude00",
    "😀🏳️‍🌈👨‍👩‍👧🇩🇪", "数据库服务器再起動배포검토ฐานข้อมูล", "áàǎāａｂｃ①Ⅷﬁ", "\u0301\u0308\u0e31\u0e34\u200d\u200b\u202e",
    "#0123456789.,:-/", "abcXYZ_ .", "ابجد שלום नमस्ते", " \t\r\n\u00a0\u3000",
)  # fmt: skip
WORDS = (
    "NEAR(", "AND", "OR", "NOT", "#12", "#", "src/flow.py", "record_operation", "CamelCase", "yesterday", "last week",
    "2024-13-45", "in 99999 days",
    "10^400 weeks ago", "when", "SELECT * FROM chunk; --", "${PATH}", "\\u0000", "数据库",
)  # fmt: skip


@pytest.fixture(scope="module")
def searchers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Searcher]:
    """A small index on disk, with vectors."""
    embedder = WordLlamaEmbedder()
    folder = tmp_path_factory.mktemp("index")
    index = DiskSearchIndex(folder, index_text, analysis_version=ANALYSIS_VERSION, words=embedder)
    chunks = [
        chunk
        for number, text in enumerate(SAID.values(), 1)
        for chunk in chunk_operation(an_operation(number, {"text": text}), Tier.SESSION)
    ]
    index.add_vectors(embedder.model, index.add(chunks), embedder.embed([chunk.embedded_text for chunk in chunks]))
    return {"with vectors": Searcher(index, embedder, embedder), "without": Searcher(index, None, None)}


def _queries(count: int) -> list[str]:
    rng = random.Random("any query")
    found = []
    for _ in range(count):
        alphabet = "".join(rng.choices(ALPHABETS, k=rng.randint(1, 3)))
        pieces = ["".join(rng.choices(alphabet, k=rng.randint(0, 12))) for _ in range(rng.randint(0, 4))]
        pieces += rng.choices(WORDS, k=rng.randint(0, 2))
        rng.shuffle(pieces)
        found.append(rng.choice(["", " ", "\x00"]).join(pieces))
    return found


def test_a_thousand_queries_raise_nothing(searchers: dict[str, Searcher]) -> None:
    """By words, by meaning, by both; with an embedder and without; each hit once and no more than wanted."""
    rng = random.Random("how")
    situation = Situation(now=NOW, session="s")
    answered = 0
    for query in _queries(1_000):
        searcher = searchers["without" if rng.random() < 0.2 else "with vectors"]
        limit = rng.choice([0, 1, 3])
        hits = searcher.search(query, situation, mode=rng.choice(list(SearchMode)), limit=limit)
        assert len({hit.id for hit in hits}) == len(hits) <= limit, query
        answered += bool(hits)
    assert answered > 300


@pytest.mark.parametrize(("query", "language"), cases("writing_of_all_kinds_is_found"))
@pytest.mark.parametrize("kind", ["with vectors", "without"])
def test_writing_of_all_kinds_is_found(searchers: dict[str, Searcher], kind: str, query: str, language: str) -> None:
    """By a part of it, whether or not there are blanks between words."""
    (first, *_) = searchers[kind].search(query, Situation(now=NOW))
    assert first.chunk.text == SAID[language]

"""Words as tokens: the index stores the embedder's tokens, and upkeep adds missing ones."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.core.search.terms import content_words, index_text
from orchestra_mem.errors import EmbedderError
from orchestra_mem.search_types import EVERYTHING, Chunk, Ids, Outlines, Tier, Tokens

EMBEDDER = WordLlamaEmbedder()
TEXTS = ["the qwxzk pipeline of microservices failed in 2024", "猫 über straße", "retry 2042", "", "x" * 100_000]


class _Broken(WordLlamaEmbedder):
    def cut(self, words: Sequence[str]) -> Tokens:
        raise EmbedderError("gone")


def _add(index: DiskSearchIndex) -> Ids:
    return index.add(
        [
            Chunk(key=text, tier=Tier.SESSION, source="op", text=text, kind="note", group="S1", position=number)
            for number, text in enumerate(TEXTS)
        ]
    )


def _assert_cut(found: Outlines) -> None:
    """Check that stored tokens equal the embedder's for each word; a long word counts by its beginning."""
    assert found.cut.all()
    words = [content_words(text) for text in TEXTS]
    expected = EMBEDDER.cut([word[:256] for each in words for word in each])
    assert found.word_counts.tolist() == [len(each) for each in words]
    assert found.tokens.numbers.tolist() == expected.numbers.tolist()
    assert found.tokens.counts.tolist() == expected.counts.tolist()
    assert found.tokens.lengths == pytest.approx(expected.lengths, rel=1e-5)


def test_words_are_cut_when_a_text_is_added(tmp_path: Path) -> None:
    """Words are tokenized when a text is added; another opening reads the tokens without an embedder."""
    with closing(DiskSearchIndex(tmp_path, index_text, words=EMBEDDER)) as index:
        ids = _add(index)
        _assert_cut(index.outlines(ids, EVERYTHING))
        with closing(DiskSearchIndex(tmp_path, index_text)) as other:
            _assert_cut(other.outlines(ids, EVERYTHING))


@pytest.mark.parametrize("words", [None, _Broken()])
def test_upkeep_makes_up_for_what_could_not_be_cut(tmp_path: Path, words: WordLlamaEmbedder | None) -> None:
    """Texts without tokens are marked until upkeep with a working embedder adds them; other upkeep succeeds."""
    with closing(DiskSearchIndex(tmp_path, index_text, words=words)) as index:
        ids = _add(index)
        index.maintain()
        found = index.outlines(ids, EVERYTHING)
        assert not found.cut.any()
        assert len(found.tokens.counts) == 0
        assert found.word_counts.tolist() == [len(content_words(text)) for text in TEXTS]
        with closing(DiskSearchIndex(tmp_path, index_text, words=EMBEDDER)) as other:
            other.maintain()
            _assert_cut(index.outlines(ids, EVERYTHING))

"""The search index answers like a full scan, after any changes and reopenings; and it stores words as tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from math import log
from pathlib import Path

import numpy as np
import pytest

from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.core.search.terms import content_words, index_text
from orchestra_mem.errors import ClosedError, EmbedderError
from orchestra_mem.search_types import EVERYTHING, Chunk, Ids, Outlines, SearchFilter, SearchIndex, Tier, Tokens
from tests.adapters.search_samples import START, analyse, terms


@pytest.fixture
def index(tmp_path: Path) -> Iterator[DiskSearchIndex]:
    """An empty index."""
    opened = DiskSearchIndex(tmp_path / "index", analyse)
    yield opened
    opened.close()


def _chunk(key: str, text: str = "", **others: object) -> Chunk:
    fields = {"tier": Tier.SESSION, "source": "op 1", "kind": "note", "group": "S1", "position": 1, **others}
    return Chunk(key=key, text=text or key, **fields)  # type: ignore[arg-type]


def _found(index: SearchIndex, *words: str, where: SearchFilter = EVERYTHING) -> list[str]:
    ranking = index.keyword(terms(*words), where, 100)
    return [chunk.key for chunk in index.chunks(ranking.ids) if chunk]


FIVE = [
    _chunk("a", "gate", session="s", pattern="p", time=START),
    _chunk("b", "gate gate gate gate", agent="dana", time=START + timedelta(hours=1)),
    _chunk("c", "lid", heading=("gate",), title="pump", position=-3, item=7),
    _chunk("d", "#12 door", group="S2", kind="error"),
    _chunk("e", "pump lid lid lid", position=7, tier=Tier.EPISODIC),
]


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        (SearchFilter(session="s"), "a"), (SearchFilter(pattern="p"), "a"), (SearchFilter(agent="dana"), "b"),
        (SearchFilter(item=7), "c"), (SearchFilter(kinds=("error", "x")), "d"),
        (SearchFilter(tiers=(Tier.EPISODIC,)), "e"), (SearchFilter(until=START), ""),
        (SearchFilter(until=START + timedelta(hours=1)), "a"), (SearchFilter(since=START), "ab"),
        (SearchFilter(since=START, agent="dana"), "b"), (SearchFilter(session="s", item=7), ""),
    ],
)  # fmt: skip
def test_a_filter_leaves_what_fits_all_its_conditions(index: DiskSearchIndex, where: SearchFilter, keys: str) -> None:
    """Each condition alone leaves out the others; `since` includes its moment, `until` does not."""
    index.add(FIVE)
    assert sorted(_found(index, "gate", "pump", "#12", where=where)) == [*keys]


def test_scores_are_bm25_and_neighbours_are_by_position(index: DiskSearchIndex) -> None:
    """Scores are those computed by hand, over the chunks that are there; equal positions are ordered by id."""
    ids = index.add(FIVE)
    assert index.add([_chunk("gone", "gate pump"), *FIVE]).tolist() == [6, *ids]
    assert index.remove(["gone"]) == 1
    # The chunks have 1, 4, 3, 3 and 4 terms, 3 on average: 0.9 * (1 - 0.4 + 0.4 / 3 * length) is 0.54 + 0.12 * length.
    # A title counts 3, a heading 2, an exact name 2 + 1, and four times count as three.
    gate, pump, number = log(1 + 2.5 / 3.5) * 1.9, log(1 + 3.5 / 2.5) * 1.9, log(1 + 4.5 / 1.5) * 1.9
    scores = {
        1: gate / 1.66, 2: gate * 3 / 4.02, 3: gate * 2 / 2.9 + pump * 3 / 3.9, 4: number * 3 / 3.9, 5: pump / 2.02,
    }  # fmt: skip
    found = index.keyword(terms("gate", "pump", "#12", "unheard"), EVERYTHING, 9)
    assert found.ids.tolist() == sorted(scores, key=lambda each: -scores[each])
    assert dict(zip(found.ids.tolist(), found.scores.tolist(), strict=True)) == pytest.approx(scores)
    assert index.document_frequency(["gate", "pump", "#12", "unheard"]).tolist() == [3, 2, 1, 0]
    assert index.neighbours(np.arange(7), 2).tolist() == [
        [0, 0, 0, 0], [0, 3, 2, 5], [3, 1, 5, 0], [0, 0, 1, 2], [0, 0, 0, 0], [1, 2, 0, 0], [0, 0, 0, 0],
    ]  # fmt: skip


def test_ids_are_never_given_again(tmp_path: Path) -> None:
    """An id is never reused, neither for the same key nor after reopening."""
    with closing(DiskSearchIndex(tmp_path, analyse)) as index:
        assert index.add([_chunk("a"), _chunk("b")]).tolist() == [1, 2]
        assert index.remove(["b", "b", "unheard of"]) == 1
    with closing(DiskSearchIndex(tmp_path, analyse)) as index:
        assert index.add([_chunk("b"), _chunk("a")]).tolist() == [3, 1]


def test_marks_stay_until_the_index_is_begun_anew(tmp_path: Path) -> None:
    """Marks keep their last value across reopening until the index is rebuilt."""
    with closing(DiskSearchIndex(tmp_path, analyse)) as index:
        assert index.marks() == {}
        for name, value in (("operations", "1"), ("documents", "ä 2"), ("operations", "12")):
            index.set_mark(name, value)
    with closing(DiskSearchIndex(tmp_path, analyse)) as index:
        assert index.marks() == {"operations": "12", "documents": "ä 2"}
        index.rebuild()
        assert index.marks() == {}


def test_a_closed_index_says_so(index: DiskSearchIndex, tmp_path: Path) -> None:
    """A closed index raises `ClosedError` on use, and may be closed twice."""
    index.close()
    index.close()
    with pytest.raises(ClosedError, match="has been closed"):
        index.count()
    with pytest.raises(ClosedError, match="has been closed"):
        index.add([_chunk("a")])


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

"""Words that are cut ahead: what the index keeps of them is what the embedder gives, or nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.adapters.search_index import lexicon
from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.core.search.late_interaction import WordTable
from orchestra_mem.core.search.terms import index_text
from orchestra_mem.errors import EmbedderError
from orchestra_mem.search_types import EVERYTHING, Chunk, Ids, Tier, Tokens, WordLists

EMBEDDER = WordLlamaEmbedder()
TEXTS = ["the qwxzk pipeline of microservices failed in 2024", "猫 über straße", "retry 2042", "", "the pipeline"]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DiskSearchIndex]:
    """An index that cuts every word."""
    monkeypatch.setattr(lexicon, "_LEAST", 1)
    opened = _opened(tmp_path)
    yield opened
    opened.close()


def _opened(folder: Path) -> DiskSearchIndex:
    return DiskSearchIndex(folder, index_text, words=EMBEDDER)


def _add(index: DiskSearchIndex, texts: list[str], session: str = "S1") -> Ids:
    return index.add(
        [
            Chunk(key=f"{session} {text}", tier=Tier.SESSION, source="op", text=text, kind="note", group=session,
                  position=number, session=session)
            for number, text in enumerate(texts)
        ]
    )  # fmt: skip


def _lists(index: DiskSearchIndex, ids: Ids) -> WordLists:
    return index.outlines(ids, EVERYTHING).words


def _kept(index: DiskSearchIndex, words: WordLists) -> int:
    """Of how many words something is kept; that is what the embedder gives."""
    numbers = np.unique(words.numbers)
    found = index.tokens(EMBEDDER.model, words.lexicon, numbers)
    kept = found.counts >= 0
    expected = EMBEDDER.cut(index.spell(words.lexicon, numbers[kept]))
    assert found.numbers.tolist() == expected.numbers.tolist()
    assert found.counts[kept].tolist() == expected.counts.tolist()
    assert found.lengths[kept] == pytest.approx(expected.lengths, rel=1e-5)
    return int(np.count_nonzero(kept))


def test_upkeep_cuts_what_is_new(index: DiskSearchIndex, tmp_path: Path) -> None:
    """Before it nothing is kept, after it all, in other processes too; a session's name may be of any length."""
    words = _lists(index, _add(index, TEXTS, session="x\n" * 100_000))
    count = len(np.unique(words.numbers))
    assert _kept(index, words) == 0
    index.maintain()
    assert _kept(index, words) == count
    more = _lists(index, _add(index, ["some newer words: zyxw"]))
    assert _kept(index, words) + _kept(index, more) == count
    other = _opened(tmp_path)
    assert _kept(other, words) == count
    index.maintain()
    assert _kept(other, more) == len(more.numbers)
    assert index.tokens(replace(EMBEDDER.model, version="another"), words.lexicon, words.numbers).counts.max() == -1
    other.close()


@pytest.mark.parametrize("column", ["counts", "tokens", "lengths"])
@pytest.mark.parametrize("damage", ["x''", "substr({0}, 2)", "zeroblob(7)", "{0} || {0}"])
def test_what_is_damaged_is_cut_again(index: DiskSearchIndex, tmp_path: Path, column: str, damage: str) -> None:
    """Until then the words are cut when they are met: matches are the same."""
    words = _lists(index, _add(index, TEXTS))
    index.maintain()
    asked = ["pipelines", "2024", "qwxzk", "straße"]
    whole = WordTable(EMBEDDER).matches(asked, words, index)
    with closing(sqlite3.connect(tmp_path / "search.db", isolation_level=None)) as connection:
        connection.execute(f"UPDATE word SET {column} = {damage.format(column)}")
    index = _opened(tmp_path)
    assert _kept(index, words) == 0
    assert WordTable(EMBEDDER).matches(asked, words, index) == pytest.approx(whole, abs=1e-6)
    index.maintain()
    assert _kept(index, words) == len(np.unique(words.numbers))
    assert WordTable(EMBEDDER).matches(asked, words, index) == pytest.approx(whole, abs=1e-6)
    index.close()


def test_nothing_is_kept_of_an_index_begun_anew(index: DiskSearchIndex) -> None:
    """Its numbers are other words."""
    old = _lists(index, _add(index, TEXTS))
    index.maintain()
    index.rebuild()
    new = _lists(index, _add(index, TEXTS[::-1]))
    assert index.tokens(EMBEDDER.model, old.lexicon, old.numbers).counts.max() == -1
    assert _kept(index, new) == 0
    index.maintain()
    assert _kept(index, new) == len(np.unique(new.numbers))


class _Broken(WordLlamaEmbedder):
    def cut(self, words: Sequence[str]) -> Tokens:
        raise EmbedderError("gone")


def test_an_embedder_that_fails_keeps_no_upkeep_off(tmp_path: Path) -> None:
    """The rest of it is done."""
    index = DiskSearchIndex(tmp_path, index_text, words=_Broken())
    _add(index, [f"word{number}" for number in range(300)])
    orphan = tmp_path / "vectors-orphan.f32"
    orphan.touch()
    assert index.maintain()
    assert not orphan.exists()
    index.close()

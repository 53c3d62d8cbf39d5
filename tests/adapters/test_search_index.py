"""The search index answers like a full scan, after any additions, removals and reopenings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.errors import ClosedError
from orchestra_mem.search_types import EVERYTHING, Chunk, SearchFilter, SearchIndex, Tier
from tests.adapters.search_samples import analyse, terms


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


def test_ids_are_never_given_again(tmp_path: Path) -> None:
    """An id is never reused, neither for the same key nor after reopening."""
    with closing(DiskSearchIndex(tmp_path, analyse)) as index:
        assert index.add([_chunk("a"), _chunk("b")]).tolist() == [1, 2]
        assert index.remove(["b", "b", "unheard of"]) == 1
    with closing(DiskSearchIndex(tmp_path, analyse)) as index:
        assert index.add([_chunk("b"), _chunk("a")]).tolist() == [3, 1]


@given(st.lists(st.text(min_size=1), max_size=8))
def test_any_terms_raise_nothing_and_find_what_holds_them(words: list[str]) -> None:
    """Any term, with quotes, operators, NULs or lone surrogates, finds the chunks that contain it."""
    words = list(dict.fromkeys(word.replace(" ", "_") for word in words))
    with TemporaryDirectory() as folder, closing(DiskSearchIndex(Path(folder), analyse)) as index:
        longer = "x" * (1 + max(map(len, words), default=1))
        index.add([_chunk("all", " ".join(words) or "x"), _chunk("none", longer)])
        assert _found(index, *words) == (["all"] if words else [])


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

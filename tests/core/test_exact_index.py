"""The index in memory: the promises of the port, kept by comparing with everything."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from orchestra_mem.core.search.exact_index import ExactIndex
from orchestra_mem.core.search.terms import read_query
from orchestra_mem.errors import EmbedderError
from orchestra_mem.search_types import EVERYTHING, Chunk, EmbeddingModel, SearchFilter, SearchIndex, Terms, Tier

MODEL = EmbeddingModel(name="m", version="1", dimensions=2)


def chunk(key: str, text: str, *, group: str = "s", position: int = 0, agent: str | None = None) -> Chunk:
    """Make a chunk."""
    return Chunk(
        key=key, tier=Tier.SESSION, source=key, text=text, kind="message", group=group, position=position, agent=agent
    )


def filled() -> ExactIndex:
    """An index of four chunks in two groups."""
    index = ExactIndex()
    index.add(
        [
            chunk("a", "the cat sat", position=5, agent="Ann"),
            chunk("b", "the dog and the cat and the dog", position=9),
            chunk("c", "nothing of the kind", position=1),
            chunk("d", "a dog", group="t"),
        ]
    )
    return index


def test_it_fulfils_the_port() -> None:
    """As the type checker sees it, and in use."""
    index: SearchIndex = ExactIndex()
    assert index.count() == 0
    assert index.keyword(read_query("cat"), EVERYTHING, 10).ids.tolist() == []
    assert index.dense(MODEL, np.zeros(2, np.float32), EVERYTHING, 10).ids.tolist() == []
    assert index.neighbours(np.zeros(0, np.int64), 2).shape == (0, 4)


def test_keyword_search_scores_by_bm25() -> None:
    """The formula with k1 0.9 and b 0.4, for a term that two of four chunks have."""
    index = filled()
    found = index.keyword(Terms(terms=("cat",)), EVERYTHING, 10)
    assert found.ids.tolist() == [1, 2]
    rarity = math.log1p((4 - 2 + 0.5) / (2 + 0.5))
    mean_length = (2 + 3 + 2 + 1) / 4  # without stop words
    expected = rarity * 1.9 / (1 + 0.9 * (0.6 + 0.4 * 2 / mean_length))
    assert float(found.scores[0]) == pytest.approx(expected)


def test_filters_are_passed_down() -> None:
    """The limit counts what passes."""
    index = filled()
    assert index.keyword(read_query("cat dog"), SearchFilter(agent="Ann"), 1).ids.tolist() == [1]
    assert index.document_frequency(["cat", "dog", "bird"]).tolist() == [2, 2, 0]


def test_a_key_that_is_there_keeps_its_id_and_vectors() -> None:
    """Everything else is replaced; what is removed is gone with its vectors, and its id is not given again."""
    index = filled()
    index.add_vectors(MODEL, np.array([1, 2, 99]), np.eye(3, 2, dtype=np.float32))
    assert index.add([replace(chunk("a", "the cat sat"), position=77)]).tolist() == [1]
    (moved,) = index.chunks(np.array([1]))
    assert moved is not None
    assert moved.position == 77
    assert index.vectors(MODEL, np.array([1, 3])).tolist() == [[1, 0], [0, 0]]
    assert index.without_vectors(MODEL, 10).tolist() == [4, 3]
    assert index.remove(["a", "a", "no such"]) == 1
    assert index.count() == 3
    assert index.chunks(np.array([1, 0, 2]))[:2] == [None, None]
    assert index.keyword(read_query("cat"), EVERYTHING, 10).ids.tolist() == [2]
    assert index.add([chunk("e", "new")]).tolist() == [5]
    assert index.keys("t") == {"d": 4}


def test_dense_search_gives_the_nearest() -> None:
    """By cosine, ties by id, those without a vector left out."""
    index = filled()
    index.add_vectors(MODEL, np.array([3, 1, 2]), np.array([[1, 0], [0, 1], [1, 0]], np.float32))
    found = index.dense(MODEL, np.array([1, 0], np.float32), EVERYTHING, 10)
    assert found.ids.tolist() == [2, 3, 1]
    assert found.scores.tolist() == [1, 1, 0]


def test_vectors_that_do_not_fit_are_an_error_with_both_numbers() -> None:
    """Nothing is kept."""
    index = filled()
    with pytest.raises(EmbedderError, match=r"^vectors of shape \(1, 3\) do not fit 1 chunks of 2 dimensions \(m\)$"):
        index.add_vectors(MODEL, np.array([1]), np.zeros((1, 3), np.float32))
    assert index.without_vectors(MODEL, 1).tolist() == [4]


def test_neighbours_stand_in_the_order_of_their_positions() -> None:
    """Within the group, from the farthest before to the farthest behind, 0 where there is none."""
    assert filled().neighbours(np.array([1, 3, 4, 99]), 2).tolist() == [
        [0, 3, 2, 0],
        [0, 0, 1, 2],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
    ]

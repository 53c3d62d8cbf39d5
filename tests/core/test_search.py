"""Search with all its components, over an index on disk, with the bundled embedder."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.core.search.chunking import chunk_document, chunk_operation
from orchestra_mem.core.search.hybrid import Searcher
from orchestra_mem.core.search.late_interaction import unit, word_matches
from orchestra_mem.core.search.terms import ANALYSIS_VERSION, index_text
from orchestra_mem.search_types import Chunk, Hit, Tier, WordEmbedder
from orchestra_mem.types import Json, Operation
from tests.builders import an_operation, cases

START = datetime(2024, 5, 1, 12, tzinfo=UTC)
EMBEDDER = WordLlamaEmbedder()
FOLDER = tempfile.TemporaryDirectory()
NOW = START + timedelta(days=60)

TALK = cases("talk_of_ann_and_ben")
DOCUMENT = (
    "# Decisions\n\n- Deploy only after review\n- Back-ups are kept for 30 days\n\n# 概要\n\n機械学習のモデルを使う\n"
)


def operation(number: int, agent: str, data: Json, *, session: str = "s1", days: float = 0) -> Operation:
    """An operation `days` after the start."""
    time = START + timedelta(days=days)
    return an_operation(number, data, session=session, type="message", timestamp=time, agent=agent)


def index_of(chunks: list[Chunk], words: WordEmbedder | None = EMBEDDER) -> DiskSearchIndex:
    """Index chunks with their vectors, in a temporary folder."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER.name))
    index = DiskSearchIndex(folder, index_text, analysis_version=ANALYSIS_VERSION, words=words)
    index.add_vectors(EMBEDDER.model, index.add(chunks), EMBEDDER.embed([chunk.embedded_text for chunk in chunks]))
    return index


def chunks_of_talk() -> list[Chunk]:
    """Return the talk and the document as chunks."""
    operations = [
        operation(number, agent, {"speaker": agent, "text": text})
        for number, (agent, text) in enumerate(TALK, start=101)
    ]
    return [
        *(chunk for each in operations for chunk in chunk_operation(each, Tier.SESSION)),
        *chunk_document(DOCUMENT, "decision_log.md", tier=Tier.EPISODIC, kind="decision_log", time=START),
    ]


def searcher_of(operations: list[Operation]) -> Searcher:
    """Return a searcher of these operations, by words and by meaning."""
    chunks = [chunk for each in operations for chunk in chunk_operation(each, Tier.SESSION)]
    return Searcher(index_of(chunks), EMBEDDER, EMBEDDER)


INDEX = index_of(chunks_of_talk())
SEARCHER = Searcher(INDEX, EMBEDDER, EMBEDDER)


def texts(hits: list[Hit]) -> list[str]:
    """Return the texts of the hits."""
    return [hit.chunk.text for hit in hits]


# Hits


@pytest.mark.parametrize(("query", "found"), cases("a_question_finds_its_answer"))
def test_a_question_finds_its_answer(query: str, found: str) -> None:
    """The best hit is the answer, found by words, parts of words or meaning."""
    assert texts(SEARCHER.search(query, NOW, limit=2))[0] == found


def test_what_stands_around_helps() -> None:
    """An answer that shares no word with the query is found because it follows the question."""
    found = texts(SEARCHER.search("why was the database moved", NOW, limit=4))
    assert "Because one file is easier to back up than a server." in found


def test_what_was_said_on_the_same_day_helps_in_a_long_session() -> None:
    """In a session of several days, of two equal answers the one from the day of the question's topic ranks first."""
    door, other = "The doors opened at nine.", [f"Part {n} is green." for n in range(5)]
    said = ["We went to the saffron gallery.", *other, door, *other, door]
    operations = [operation(n, "Ann", {"text": each}, days=9 * (n > 7)) for n, each in enumerate(said, start=1)]
    hits = searcher_of(operations).search("did the doors of the saffron gallery open at nine", NOW)
    assert [hit.chunk.operation for hit in hits if hit.chunk.text == door] == [7, 13]


def test_exact_names_come_first_even_where_they_repeat_themselves() -> None:
    """The penalty for near-duplicates never ranks a hit with the exact name below one without."""
    said = ["Restart the worker, see run_worker."] * 4 + ["Restarting the worker went well again."]
    operations = [operation(n, "Ann", {"text": text}, session=f"s{n}") for n, text in enumerate(said, start=1)]
    hits = searcher_of(operations).search("did restarting the worker go well with run_worker", NOW)
    assert [bool(hit.reasons.identifiers) for hit in hits] == [True] * 4 + [False]


def test_who_is_named_goes_before() -> None:
    """Of two agents who said the same, the one named in the query ranks first."""
    searcher = searcher_of([operation(n, name, {"text": "I like tea."}) for n, name in ((1, "Ann"), (2, "Ben"))])
    assert [searcher.search(f"what does {name} like", NOW)[0].chunk.agent for name in ("Ann", "Ben")] == ["Ann", "Ben"]


def test_a_time_named_goes_before_and_is_found_among_many() -> None:
    """Of three hundred days with the same event, the day named in the query ranks first."""
    days = [
        operation(number, "Ann", {"text": f"We went hiking, tour {number}."}, session=f"s{number}", days=number)
        for number in range(1, 301)
    ]
    first, *_ = searcher_of(days).search("Where did they go hiking on 10 June 2024?", START + timedelta(days=301))
    assert first.chunk.operation == 40
    assert dict(first.reasons.shares)["period"] > 0


# Diversity


def test_near_duplicates_do_not_fill_the_answer() -> None:
    """A text that was said five times fills one of two places, and the other text the second."""
    said = ["We deploy on Fridays only."] * 5 + ["We deploy on Mondays after the review."]
    operations = [operation(n, "Ann", {"text": text}, session=f"s{n}") for n, text in enumerate(said, start=1)]
    assert set(texts(searcher_of(operations).search("do we deploy on Fridays", NOW, limit=2))) == set(said)


# Late interaction


def matches(asked: list[str], texts: list[list[str]]) -> NDArray[np.float32]:
    """Return how well each word is matched by the words of each text."""
    tokens = EMBEDDER.cut([word for text in texts for word in text])
    return word_matches(asked, tokens, np.array([len(text) for text in texts]), EMBEDDER)


def test_another_year_is_another_word() -> None:
    """A year matches only itself, however similar the vectors or digits of another year are."""
    assert matches(["2023"], [["2024"], ["in", "2023"], [], ["2032"]]).tolist() == [[0, 1, 0, 0]]


def test_a_name_with_a_digit_is_met_by_itself_alone() -> None:
    """A name that contains a digit matches only itself."""
    assert matches(["utf8", "part7b"], [["utf16", "part17b"], ["utf8"], ["part7b"]]).tolist() == [[0, 1, 0], [0, 0, 1]]


@given(st.lists(st.lists(st.text(min_size=1, max_size=12), max_size=6), max_size=6), st.lists(st.text(), max_size=4))
def test_any_words_are_met_as_their_vectors_say(texts: list[list[str]], asked: list[str]) -> None:
    """Matches computed from tokens equal those of the vectors of complete words."""
    met = matches(asked, texts)
    assert met.shape == (len(asked), len(texts))
    for row, word in zip(met, asked, strict=True):
        if not any(map(str.isdigit, word)):
            (wanted,) = unit(EMBEDDER.embed_words([word]))
            best = [max([0.0, *(unit(EMBEDDER.embed_words(text)) @ wanted)]) if text else 0.0 for text in texts]
            assert row == pytest.approx(np.clip((np.array(best) - 0.3) / 0.7, 0, 1), abs=1e-4)


def test_without_vectors_words_are_met_by_their_stems() -> None:
    """Without an embedder words match by stem, either completely or not at all."""
    first, *_ = Searcher(INDEX, None, None).search("moving databases", NOW)
    assert dict(first.reasons.shares)["coverage"] == pytest.approx(0.6)
    assert first.chunk.text == "Fine. We moved the database to SQLite last week."


def test_texts_whose_words_are_not_cut_are_compared_by_stems() -> None:
    """Texts indexed without word tokens, as when the embedder failed, are still found by their stems."""
    searcher = Searcher(index_of(chunks_of_talk(), words=None), EMBEDDER, EMBEDDER)
    assert texts(searcher.search("When was the database moved?", NOW))[0] == TALK[1][1]

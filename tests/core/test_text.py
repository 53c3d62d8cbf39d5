"""Sentences, words and stems of any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.text import (
    MAX_SENTENCE_CHARS,
    STOP_WORDS,
    content_stems,
    split_sentences,
    stem,
    token_stems,
    tokens,
    visible,
    words,
)
from tests.builders import cases
from tests.timing import assert_linear, repeated

PIECES = st.sampled_from(
    ["Dr. Smith left.", "v1.2.3", "e.g. this", "...", "?!", "\n", "\n- ", "  ", "1. ", "ok", "\u3002", "\u4eca\u5929",
     "\U0001f600", "```", "| a | b |", "x" * 600, "a line that goes on and on without any end to speak of and",
     "\r\n", "'"]
)  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(PIECES).map("".join), st.lists(PIECES).map(" ".join))


@pytest.mark.parametrize(("text", "sentences"), cases("sentences_end_where_a_reader_ends_them"))
def test_sentences_end_where_a_reader_ends_them(text: str, sentences: list[str]) -> None:
    """Text is split into sentences, list items and lines, in order; a wrapped sentence stays one."""
    assert [*split_sentences(text)] == sentences


@given(TEXTS)
def test_sentences_are_pieces_of_the_text_and_hold_all_of_it(text: str) -> None:
    """Sentences are verbatim pieces of the text, in order, and together contain every letter and digit."""
    place = 0
    sentences = split_sentences(text)
    for sentence in sentences:
        assert sentence == sentence.strip() != ""
        assert len(sentence) <= MAX_SENTENCE_CHARS
        place = text.index(sentence, place) + len(sentence)
    kept = [c for sentence in sentences for c in sentence if c.isalnum()]
    assert kept == [c for c in text if c.isalnum()]


def test_no_control_character_remains_visible_text() -> None:
    """`visible` removes control characters, C1 controls included, but keeps tabs and line feeds."""
    controls = "".join(map(chr, [*range(32), *range(127, 160)]))
    assert {each for each in visible(controls) if not each.isprintable()} == {"\t", "\n"}


@pytest.mark.parametrize(("text", "found"), cases("words_come_whole_and_in_their_parts"))
def test_words_come_whole_and_in_their_parts(text: str, found: list[str]) -> None:
    """An identifier yields itself, followed by its parts."""
    assert words(text) == found


def test_stems_join_the_forms_of_a_word() -> None:
    """Forms of an English word share a stem; identifiers and words in other scripts stay unchanged."""
    assert {stem(word) for word in ("paint", "painted", "painting", "paints")} == {"paint"}
    assert stem("src/app.py") == "src/app.py"
    assert stem("\u4eca\u5929") == "\u4eca\u5929"


@given(TEXTS)
def test_content_stems_are_the_stems_of_the_tokens(text: str) -> None:
    """Content stems are the stems of all tokens in order, and equal the stemmed words without stop words."""
    assert content_stems(text) == [found for token in tokens(text) for found in token_stems(token)]
    assert content_stems(text) == [stem(word) for word in words(text) if word not in STOP_WORDS]


@pytest.mark.parametrize(
    "unit",
    [".", ". ", " ", "\n", "a", "aB3", "word ", "a,", "_", "a_", "a-", "\"'", "- ", "1. ", "\U0001f600 ", "\u4eca",
     "a'", "lorem ipsum dolor sit amet consectetur adipiscing elit sed\n", " " * 1000 + "."],
)  # fmt: skip
def test_a_long_text_of_anything_is_split_in_linear_time(unit: str) -> None:
    """Splitting and stemming take time linear in the length of any repetitive text."""

    def split(size: int) -> None:
        text = repeated(unit, size)
        split_sentences(text)
        content_stems(text)

    assert_linear(split, 80_000)

"""Sentences that were given to a model and come back: known by their words, for a while, and only afterwards."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.search.echoes import Echoes
from orchestra_mem.types import Json

SENTENCE = "We decided to hash passwords with bcrypt."


def noted(*passages: str, after: int = 5) -> Echoes:
    """Passages that were given away when an operation was the last."""
    echoes = Echoes()
    echoes.note(passages, after=after)
    return echoes


def test_names_and_short_sentences_stay() -> None:
    """A title finds what is done to a thing; five words are said again by chance."""
    echoes = noted(SENTENCE, "The build is green again.")
    value: Json = {"task": SENTENCE, "title": [SENTENCE], "said": "The build is green again.", "n": 3, "none": None}
    assert echoes.without(value, 6) == value


def test_the_oldest_are_forgotten() -> None:
    """Of more than so many."""
    echoes = Echoes(max_sentences=3)
    said = [f"This is the sentence with number {number} in it." for number in range(5)]
    echoes.note(said, after=1)
    assert [bool(echoes.without(each, 2)) for each in said] == [True, True, False, False, False]


@given(st.lists(st.text(max_size=80), max_size=6), st.integers(0, 10**9))
def test_what_one_process_dumps_another_loads(passages: list[str], after: int) -> None:
    """It knows the same; loading twice changes nothing, and what is no dump does no harm."""
    echoes = noted(*passages, SENTENCE, after=after)
    text = echoes.dump()
    assert not echoes.changed
    other = Echoes()
    for given_text in (text, text, "rubbish : x:y \ud800"):
        other.load(given_text)
    for passage in (*passages, SENTENCE):
        assert other.without(passage, after + 1) == echoes.without(passage, after + 1)
    assert other.without(SENTENCE, after + 1) == ""

"""Echoes: sentences given to a model are recognised when they come back, for a limited time."""

from __future__ import annotations

import pytest

from orchestra_mem.core.search.echoes import Echoes
from orchestra_mem.types import Json

SENTENCE = "We decided to hash passwords with bcrypt."


def noted(*passages: str, after: int = 5) -> Echoes:
    """Echoes of passages that were given to a model after operation `after`."""
    echoes = Echoes()
    echoes.note(passages, after=after)
    return echoes


def test_names_and_short_sentences_stay() -> None:
    """Values under `title` or `task` are kept, and so are sentences too short to be a certain echo."""
    echoes = noted(SENTENCE, "The build is green again.")
    value: Json = {"task": SENTENCE, "title": [SENTENCE], "said": "The build is green again.", "n": 3, "none": None}
    assert echoes.without(value, 6) == value


@pytest.mark.parametrize("entry", ["- Decision (op 7): {}", "- 2026-09-10 Note: ann (op 19): {}", "- {} (K7)"])
def test_what_a_document_adds_to_a_sentence_does_not_count(entry: str) -> None:
    """A sentence is recognised without the heading or the number that a context or document shows with it."""
    echoes = noted(entry.format(SENTENCE))
    assert echoes.without(SENTENCE, 6) == ""


def test_the_oldest_are_forgotten() -> None:
    """Beyond `max_sentences` the oldest sentences are no longer recognised."""
    echoes = Echoes(max_sentences=3)
    said = [f"This is the sentence with number {number} in it." for number in range(5)]
    echoes.note(said, after=1)
    assert [bool(echoes.without(each, 2)) for each in said] == [True, True, False, False, False]


def test_what_one_process_dumps_another_loads() -> None:
    """Loading a dump, even twice, reproduces the known sentences; loading garbage changes nothing."""
    echoes, other = noted(SENTENCE), Echoes()
    for text in (echoes.dump(), echoes.dump(), "rubbish : x: x:y :-1 \ud800", ""):
        other.load(text)
        assert other.without(SENTENCE, 6) == ""
        assert other.without(SENTENCE, 5) == SENTENCE
    assert other.dump() == echoes.dump()

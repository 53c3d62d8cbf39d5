"""Reading a text for the summariser: its sentences, their form, and its words. Nothing is chosen here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orchestra_mem.core.summaries.weighing import Vocabulary, sentence_weight
from orchestra_mem.core.text import MAX_SENTENCE_CHARS, distinct_stems, split_sentences

_FENCE_MARKS = ("```", "~~~")
_FIRST_CJK = "\u2e80"  # from here on sentences follow each other without a space


class Sentence(NamedTuple):
    """A sentence worth a look: whether it is prose, its weight by form and place, and its distinct stems in order."""

    text: str
    prose: bool
    weight: float
    stems: dict[str, None]


class Reading(NamedTuple):
    """What a text has: its sentences worth a look, and the words of these."""

    sentences: tuple[Sentence, ...]
    vocabulary: Vocabulary


def read(text: str) -> Reading:
    """Read a text."""
    vocabulary = Vocabulary()
    found: list[Sentence] = []
    for sentence, prose, weight in _sentences(text):
        pieces = sentence.split()
        vocabulary.add(pieces, prose=prose)
        found.append(Sentence(sentence, prose, weight, distinct_stems(pieces)))
    return Reading(tuple(found), vocabulary)


def _sentences(text: str) -> Iterator[tuple[str, bool, float]]:
    """Give the sentences worth a look: the text, whether it is prose, and its weight by form and place."""
    sentences = split_sentences(text)
    count = len(sentences)
    cut_ones = _cut_inside_words(text, sentences)
    depth = 0  # of fenced blocks: what a tool printed in one may hold others
    for place, sentence in enumerate(sentences):
        if sentence.startswith(_FENCE_MARKS):
            depth = depth + 1 if len(sentence) > len("```") or not depth else depth - 1
        elif place not in cut_ones:
            weight, prose = sentence_weight(sentence, fenced=depth > 0, place=place, count=count)
            if weight > 0:
                yield sentence, prose, weight


def _cut_inside_words(text: str, sentences: Sequence[str]) -> set[int]:
    """Find the sentences whose first or last word was cut, as happens to over-long ones: a part of one says nothing."""
    found: set[int] = set()
    if len(text) <= MAX_SENTENCE_CHARS or MAX_SENTENCE_CHARS not in map(len, sentences):
        return found
    end = 0
    for place, sentence in enumerate(sentences):
        start = text.find(sentence, end)
        end = start + len(sentence)
        if _cuts_word(text, start) or _cuts_word(text, end):
            found.add(place)
    return found


def _cuts_word(text: str, place: int) -> bool:
    if not 0 < place < len(text):
        return False
    before = text[place - 1]
    return before < _FIRST_CJK and not before.isspace() and not text[place].isspace()

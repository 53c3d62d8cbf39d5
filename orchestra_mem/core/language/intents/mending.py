"""Mistyped words of commands, put right: the nearest word of a closed vocabulary, where one is near enough."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from rapidfuzz import process
from rapidfuzz.distance import OSA

from orchestra_mem.core.language.intents.normalising import IS_STEMS, SPELLINGS, Clause, Word


class Vocabulary:
    """Words, the commonest first, found by what they begin with: a slip seldom touches the first letter."""

    def __init__(self, words: Iterable[str]) -> None:
        self._places = {word: place for place, word in enumerate(dict.fromkeys(words))}
        self._by_first: dict[str, list[str]] = {}
        self._by_rest: dict[str, list[str]] = {}
        for word in self._places:
            self._by_first.setdefault(word[0], []).append(word)
            self._by_rest.setdefault(word[1:], []).append(word)

    def __contains__(self, word: str) -> bool:
        return word in self._places

    def place(self, word: str) -> int:
        """Give how many words are commoner than a word."""
        return self._places[word]

    def like(self, word: str) -> list[str]:
        """Give the words that a mistyped one may stand for, near or not."""
        first = dict.fromkeys(word[:2])
        return [other for letter in first for other in self._by_first.get(letter, ())] + self._by_rest.get(word, [])


_LONGEST_WORD = 16
_MOST_MENDED = 12


def mend(clause: Clause, vocabulary: Vocabulary, known: Collection[str], guarded: Vocabulary) -> Clause:
    """Put words of the closed vocabulary in the place of mistyped ones; the line itself stays as it is.

    A word of four letters may be off by one letter or one swap, a longer one by two. What is as near to a
    guarded word is left alone: nothing is ever mended into one of those, or away from it.
    """
    mended: list[Word] = []
    changed = 0
    for word in clause.words:
        better = mended_word(word.text, vocabulary, known, guarded) if changed < _MOST_MENDED else word.text
        better = SPELLINGS.get(better, better)
        changed += better != word.text
        first, _, second = better.partition(" ")
        if word.text == "'s" and mended and mended[-1].text in IS_STEMS:  # "wath's next"
            first = better = "is"
        mended.append(Word(first, word.start, word.end) if better != word.text else word)
        if second:
            mended.append(Word(second, word.end, word.end))
    return Clause(clause.line, tuple(mended)) if changed else clause


def mended_word(word: str, vocabulary: Vocabulary, known: Collection[str], guarded: Vocabulary) -> str:
    """Give the word of the vocabulary that a mistyped word stands for; itself where it is right or none is near."""
    if not 3 <= len(word) <= _LONGEST_WORD or not word.isalpha() or word in known or word in vocabulary:
        return word
    swapped = nearest_word(word, vocabulary)
    if swapped and swapped[1] == 1 and sorted(swapped[0]) == sorted(word):
        return swapped[0]
    if (apart := _taken_apart(word, vocabulary)) != word:
        return apart
    if (
        (short := _LENGTHENED.sub(r"\1", word)) != word
        and (short in vocabulary or short in known)
        and short not in guarded
    ):
        return short
    found = nearest_word(word, vocabulary)
    if found is None or found[1] == 0:
        return word
    guard = nearest_word(word, guarded)
    return word if guard and guard[1] <= found[1] else found[0]


_LENGTHENED = re.compile(r"([a-z])\1+$")
_SHORT = frozenset("the add why how who and put set".split())
_SECOND_HALVES = frozenset("on as to in of up off out is it for with by done the".split())


def _taken_apart(word: str, vocabulary: Vocabulary) -> str:
    """Put the blank back that was left out before a short word: "dependson"."""
    for place in (len(word) - 2, len(word) - 3, len(word) - 4):
        if place > 2 and word[place:] in _SECOND_HALVES and word[:place] in vocabulary:
            return f"{word[:place]} {word[place:]}"
    return word


def nearest_word(word: str, vocabulary: Vocabulary) -> tuple[str, int] | None:
    """Find the word that a mistyped one stands for, and by how many letters or swaps it is off; None if none is near.

    The distance is optimal string alignment (Damerau 1964, restricted): letters left out, put in, changed, or swapped.
    """
    allowed = 2 if len(word) >= 5 else 1
    found = process.extract(word, vocabulary.like(word), scorer=OSA.distance, score_cutoff=allowed, limit=8)
    near = [
        (
            distance,
            sorted(candidate) != sorted(word),
            candidate[0] != word[0],
            candidate[-1] != word[-1],
            vocabulary.place(candidate),
            candidate,
        )
        for candidate, distance, _ in found
        if _may_stand_for(word, candidate, int(distance))
    ]
    if not near:
        return None
    distance, *_, candidate = min(near)
    return candidate, int(distance)


def _may_stand_for(word: str, candidate: str, distance: int) -> bool:
    """Tell whether so many slips are believable: the shortest words may only have two letters swapped."""
    if distance == 0:
        return True
    if len(candidate) <= 3:
        return candidate in _SHORT and sorted(word) == sorted(candidate)
    if distance == 2 and len(candidate) < 6 and sorted(candidate) != sorted(word):
        return False
    return candidate[0] == word[0] or sorted(candidate[:2]) == sorted(word[:2]) or candidate[1:] == word

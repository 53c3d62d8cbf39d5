"""Which of many anchors stand in a text: one pass finds them all, however many there are."""

from __future__ import annotations

from collections.abc import Iterable

from ahocorasick_rs import BytesAhoCorasick, Implementation

Anchor = tuple[str, bool]
"""A text that forms hold, and whether it stands in small letters for any case."""


class Anchors:
    """Anchors, compiled for the pass."""

    def __init__(self, anchors: Iterable[Anchor]) -> None:
        anchors = sorted(anchors)
        self._everywhere = [each for each in anchors if not each[0]]
        self._anchors = anchors[len(self._everywhere) :]
        small = [text.lower().encode() for text, _ in self._anchors]
        self._automaton = BytesAhoCorasick(small, implementation=Implementation.DFA)

    def standing_in(self, text: str) -> list[Anchor]:
        """Give the anchors that stand in a text, each once."""
        small = small_letters(text).encode("utf-8", "surrogatepass")
        numbers = {number for number, _, _ in self._automaton.find_matches_as_indexes(small, overlapping=True)}
        return self._everywhere + standing((self._anchors[number] for number in numbers), text)


def standing(anchors: Iterable[Anchor], text: str) -> list[Anchor]:
    """Look for a few anchors one after the other; give those that stand in a text."""
    small = small_letters(text)
    return [(anchor, folded) for anchor, folded in anchors if anchor in (small if folded else text)]


def small_letters(text: str) -> str:
    """Write a text in small letters, each in its place; `İ` is the one that would become two."""
    return text.replace("İ", "i").lower()

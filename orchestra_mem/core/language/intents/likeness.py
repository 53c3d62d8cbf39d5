"""What a line that no rule reads is most likely for, by its words: naive Bayes over lines whose meaning is known.

It only ever suggests: nothing is done by it. The counts are in `line_words.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache, lru_cache

from orchestra_mem.core.language.intents.types import Action

_PRIOR = 2.0  # lines
_NOTHING = "none"
_TOKEN = re.compile(r"#?\d+|[a-z']+|->|=>|[:?+\u2713]")


def traits(line: str) -> set[str]:
    """Give the words of a line and their pairs; all numbers are one word."""
    words = ["0" if word[-1].isdigit() else word for word in _TOKEN.findall(line.lower().replace("\u2019", "'"))]
    return {*words, *map(" ".join, zip(["<", *words], [*words, ">"], strict=True))}


def likely_actions(line: str) -> list[Action]:
    """Give what a line may be for, the likeliest first; what is new may be for something that is there or not."""
    ranked = [Action(name) for name, _ in _ranked(line) if name != _NOTHING]
    place = ranked.index(Action.ADD)
    return [*ranked[:place], Action.CREATE, *ranked[place:]]


def _ranked(line: str) -> list[tuple[str, float]]:
    """Give each action with the logarithm of how likely it is, the likeliest first."""
    lines, words = _counts()
    rows = [_scores(trait) for trait in traits(line) if trait in words]
    return sorted(zip(lines, map(sum, zip(*rows, _first(), strict=True)), strict=True), key=lambda score: -score[1])


@cache
def _first() -> list[float]:
    """Give how likely each action is before a word is read."""
    lines, _ = _counts()
    return [math.log(count) for count in lines.values()]


@lru_cache(maxsize=512)
def _scores(trait: str) -> list[float]:
    """Give how likely a line for each action is to have a trait.

    Where few lines are for an action, its words are reckoned to be nearly as frequent as in all lines.
    """
    lines, words = _counts()
    found = words[trait]
    share = sum(found.values()) / sum(lines.values())
    return [math.log((found.get(name, 0) + _PRIOR * share) / (count + _PRIOR)) for name, count in lines.items()]


@cache
def _counts() -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Give how many lines there are for each action, and how many of these have a trait."""
    from orchestra_mem.core.language.intents.line_words import LINES, WORDS  # a large table, rarely needed

    names = list(LINES)
    rows = (row.partition("~") for row in " ".join(WORDS.split()).split("; "))
    return LINES, {trait: dict(_pairs(counts, names)) for trait, _, counts in rows}


def _pairs(counts: str, names: list[str]) -> Iterator[tuple[str, int]]:
    for pair in counts.split():
        name, _, count = pair.partition(":")
        yield names[int(name)], int(count)

"""Estimate whether two facts of one form give one thing two values, or say the same about two things.

`Use Redis for the cache` and `Use Memcached for the cache` cannot both hold, `Use Redis for the cache` and `Use Redis
for the carts` can. A linear model over the words (in Chinese, characters) around the places in which the two differ,
hashed, tells these apart; the differing words themselves do not count. `tools/train_values.py` trains it. See `pairs`
for what else weighs.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import groupby
from math import exp
from typing import NamedTuple
from zlib import crc32

from orchestra_mem.core.facts.candidates import MAX_CHARS, WORD
from orchestra_mem.core.facts.classifier import column_of, load_table
from orchestra_mem.types import MustKeep, MustKeepKind

COLUMNS = 1 << 14
FUNCTION, COMMON = 3.5, 5.0
"""Rarities below which a word says nothing by itself (`the`), and below which it counts where it stands (`never`).

The first was chosen from 3.5 and 4.8, the second from 5 and 6, by leaving out writers.
"""


def value_likelihood(newer: MustKeep, older: MustKeep) -> float:
    """Estimate how likely two facts of one form state two values of the same thing, 0 to 1."""
    weights, bias = _weights()
    logit = sum(map(weights.__getitem__, value_columns(newer, older)), bias)
    return 1.0 / (1.0 + exp(-max(-30.0, min(30.0, logit))))


def value_columns(newer: MustKeep, older: MustKeep) -> list[int]:
    """Return the columns of a pair's features, 0 to `COLUMNS` - 1."""
    (said, low, content, around), (before, low_before, held, _) = _words_of(newer.text), _words_of(older.text)
    columns = {*around}
    places = 0
    were: set[str] = set()
    are: set[str] = set()
    for first, last, start, end in differing_passages(low_before, low):
        old, new = before[first:last], said[start:end]
        if not old or not new:  # such as `now`, or `on Sundays`
            told = ("+", low, start, end) if new else ("-", low_before, first, last)
            columns |= _columns_of_insertion(*told)
        elif any(now := content[start:end]) or any(held[first:last]):
            places += 1
            were.update(held[first:last])
            are.update(now)
            columns |= _columns_of_place(newer.text, start, end, _shape(old, new, start), newer.kind)
            columns.add(_column(f"words {min(3, max(len(old), len(new)))}"))
        else:
            columns.update(_column(f"stop {word.lower()}") for word in new)
    columns.add(_column(f"places {min(places, 3)}"))
    if any(were & are):  # `from A to B`, then `from B to C`
        columns.add(_column("moved"))
    return sorted(columns)


@lru_cache(maxsize=8_192)
def _column(feature: str) -> int:
    return crc32(feature.encode("utf-8", "replace")) % COLUMNS


class _Words(NamedTuple):
    """The words of a text, in lower case too, the same with "" for function words, and the columns of common words."""

    said: Sequence[str]
    low: Sequence[str]
    content: Sequence[str]
    around: frozenset[int]


@lru_cache(maxsize=2_048)
def _words_of(text: str) -> _Words:
    said = WORD.findall(text[:MAX_CHARS])
    low = [word.lower() for word in said]
    rarities = [rarity_in_language(word) for word in low]
    around = frozenset(_column(f"with {word}") for word, rarity in zip(low, rarities, strict=True) if rarity < COMMON)
    content = [word if rarity >= FUNCTION else "" for word, rarity in zip(low, rarities, strict=True)]
    return _Words(said, low, content, around)


@lru_cache(maxsize=8_192)
def rarity_in_language(word: str) -> float:
    """Return how rare a word is in the language that uses it most, at most `COMMON`; a number is as rare."""
    return COMMON if any(map(str.isdigit, word)) else float(load_table().value_rarity[column_of(word)])


def differing_passages(before: Sequence[str], said: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Return the passages in which the words of two texts differ: begin and end in the one text, and in the other."""
    if len(before) != len(said):
        found = SequenceMatcher(None, before, said, autojunk=False).get_opcodes()
        return [(first, last, start, end) for name, first, last, start, end in found if name != "equal"]
    runs = groupby(range(len(said)), key=lambda at: before[at] != said[at])  # fast path: compare word by word
    told = [list(run) for differs, run in runs if differs]
    return [(run[0], run[-1] + 1, run[0], run[-1] + 1) for run in told]


def _columns_of_insertion(sign: str, low: Sequence[str], start: int, end: int) -> set[int]:
    """Return the columns of words that only one of two texts has: which, where they stand, and how they begin.

    `From Monday` makes a new value, `on Mondays` an exception.
    """
    words = low[start:end]
    place = "first" if start == 0 else "last" if end == len(low) else "amid"
    features = (*words, f"<{words[0]}", f"{place}<{words[0]}", place, f"{place} {min(3, len(words))}")
    return {_column(f"{sign} {feature}") for feature in features}


def _shape(old: Sequence[str], new: Sequence[str], start: int) -> str:
    """Classify two differing passages: both with a number, both a name, or other words."""
    if all(any(map(str.isdigit, "".join(words))) for words in (old, new)):
        return "0"
    return "A" if start and old[0][0].isupper() and new[0][0].isupper() else "a"


@lru_cache(maxsize=4_096)
def _columns_of_place(text: str, start: int, end: int, of: str, kind: MustKeepKind) -> frozenset[int]:
    """Return the columns of what stands around a place: its neighbours, and how many content words on either side."""
    _, low, content, _ = _words_of(text)
    plain = ["^", "^", *low, "$", "$"]
    told = ["^", "^", *("*" if tells else word for word, tells in zip(low, content, strict=True)), "$", "$"]
    (far, near), (then, later) = told[start : start + 2], told[end + 2 : end + 4]
    first, last = min(2, sum(map(bool, content[:start]))), min(2, sum(map(bool, content[end:])))
    features = (
        of, f"{of} {kind.value}", f"{of}<{near}", f"{of}>{then}", f"{of} {near}_{then}", f"{of}<<{far} {near}",
        f"{of}>>{then} {later}", f"{of}<={plain[start + 1]}", f"{of}>={plain[end + 2]}", f"{of} first {first}",
        f"{of} last {last}", f"{of} at {first} {last}", f"{of} {kind.value} {near == '*'} {then == '*'}",
        f"{kind.value} at {first} {last}", f"{kind.value}<={plain[start + 1]}", f"{kind.value}>={plain[end + 2]}",
    )  # fmt: skip
    return frozenset(map(_column, features))


@lru_cache(maxsize=1)
def _weights() -> tuple[tuple[float, ...], float]:
    """Return the weights as floats: for one pair, NumPy's overhead per call exceeds the computation."""
    table = load_table()
    return tuple(table.values.tolist()), table.value_bias

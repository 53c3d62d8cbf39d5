"""Estimate how likely it is that a later fact supersedes or settles an earlier one.

Two linear models, one for facts that hold and one for unfinished ones, trained by `tools/train_facts.py`, score a pair
by topic, differing values, kinds, and how much the later fact sounds like taking something back or reporting a repair.
Of facts of one form, `values` judges the places in which they differ: a new value replaces the old one, another subject
does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log, log1p, sqrt
from operator import mul, ne

from orchestra_mem.core.facts.candidates import HOLDING, MAX_CHARS, UNFINISHED, WORD, words_of
from orchestra_mem.core.facts.classifier import load_table, rarity_of
from orchestra_mem.core.facts.values import COMMON, differing_passages, rarity_in_language, value_likelihood
from orchestra_mem.core.text import content_stems
from orchestra_mem.types import MustKeep, MustKeepKind

PERHAPS = 0.016
"""Least likelihood at which an active fact is marked as perhaps superseded: `superseded_by` is set.

Of 317 less likely pairs in the training series, 3 were a fact and what ended it.
"""
# Module-level names, because looking up a member of an enum takes as long as computing a feature.
_COMPLETION, _FAILURE, _OPEN, _ROLE = (
    MustKeepKind.COMPLETION, MustKeepKind.FAILURE, MustKeepKind.OPEN_ITEM, MustKeepKind.ROLE,
)  # fmt: skip
_KINDS = (*HOLDING, *UNFINISHED, _COMPLETION)
_FLAGS = {kind: tuple(float(kind is each) for each in _KINDS) for kind in MustKeepKind}
_NAME = re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z\u00c0-\u00de\u0410-\u042f][\w'-]+")
# `room 12`, `part 3`: one of several things of a kind. Longer numbers are values: `port 8080`, `under 200 ms`.
_LABEL = re.compile(r"([^\W\d_]+) #?(\d{1,2}|[A-H])\b")
# In a task also longer, as `web2` or as `#231`; but not a day, as in `March 15`.
_ONE_OF_MANY = re.compile(
    r"(?<![^\W\d_])(?!(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))([^\W\d_]+)[ -]?(\d{1,4}|[A-H])\b|(#)(\d+)"
)
_NUMBER = re.compile(r"\d[\d.,:]*\d|\d")
_DOUBTED = log(PERHAPS / (1 - PERHAPS))
_MOST_OF_FORM = 2.0  # a common form of two facts adds hardly more than this to the logit
_ONE_FORM = 0.5  # least share of words in common, in the same order, for two texts of one form


@dataclass(frozen=True, slots=True)
class Topic:
    """Topic of a fact: its content words with their rarity, its numbers, names and labels (`room 12`)."""

    words: dict[str, float]
    weight: float
    numbers: frozenset[str]
    names: frozenset[str]
    labels: dict[str, str]


@lru_cache(maxsize=2_048)
def topic_of(text: str) -> Topic:
    """Return the topic of a text; a long text is truncated."""
    text = text[:MAX_CHARS]
    words = {word: rarity_of(word) for word in words_of(text)}
    return Topic(
        words=words,
        weight=sum(words.values()),
        numbers=frozenset(_NUMBER.findall(text)),
        names=frozenset(name.lower() for name in _NAME.findall(text)),
        labels={stem: match[2] for match in _LABEL.finditer(text) for stem in content_stems(match[1])},
    )


@lru_cache(maxsize=2_048)
def _form_of(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the words of a text in order, then with "" for each stop word, and with "" for each that names nothing.

    Common words of any language and numbers name nothing. Few facts need these.
    """
    said = tuple(WORD.findall(text[:MAX_CHARS].lower()))
    form = tuple(word if content_stems(word) else "" for word in said)
    named = tuple("" if word[0].isdigit() or rarity_in_language(word) < COMMON else word for word in said)
    return said, form, named


def _begin_alike_alone(newer: MustKeep, older: MustKeep) -> bool:
    """Check whether two facts share only an opening phrase, as `The team decided to`, and go on about other matters.

    False if at most one word that names something follows the phrase in either fact: that word may be a new value, as
    may `200 ms` and `30 November`.
    """
    (mine, _, my_matters), (theirs, _, their_matters) = _form_of(newer.text), _form_of(older.text)
    alike = next((at for at, pair in enumerate(zip(mine, theirs, strict=False)) if pair[0] != pair[1]), 0)
    here, there = ({*filter(None, matters[alike:])} for matters in (my_matters, their_matters))
    return alike > 0 and min(len(here), len(there)) > 1 and here.isdisjoint(there)


def differing_places(newer: MustKeep, older: MustKeep) -> int:
    """Count the places in which two facts of one form differ; -1 if their forms differ or a kind is not in `HOLDING`.

    Facts that differ in one place may state a new value for the same thing. Facts that differ in more places, such as
    in the action and its object, are about different things.
    """
    if newer.kind not in HOLDING or older.kind not in HOLDING:
        return -1
    (mine, my_form, _), (theirs, their_form, _) = _form_of(newer.text), _form_of(older.text)
    if len(mine) == len(theirs):  # fast path: compare word by word
        differs = bytes(map(ne, my_form, their_form))
        if differs.count(0) >= _ONE_FORM * len(differs):
            return (b"\0" + differs).count(b"\0\1")
    least = _ONE_FORM * (len(mine) + len(theirs)) / 2
    if sum(map({*theirs}.__contains__, mine)) < least:  # true of most pairs, whatever the word order
        return -1
    differences = differing_passages(mine, theirs)
    if len(mine) - sum(last - first for first, last, _, _ in differences) < least:
        return -1
    return sum(any(my_form[first:last]) and any(their_form[start:end]) for first, last, start, end in differences)


def is_about_another(newer: MustKeep, older: MustKeep) -> bool:
    """Check whether two facts name things of a kind that differ in their number or letter, and none in common.

    `Bug 15 is fixed` says nothing about `fix bug 12`. The days of dates are no such numbers. A failure is of the thing
    that it begins with, as in `Oven 2 is broken`: its other numbers are often values, as in `fridge shows 12 degrees`.
    """
    mine, theirs = (_things_in(fact.text[:MAX_CHARS]) for fact in (newer, older))
    if older.kind is _FAILURE:
        first = next(iter(topic_of(older.text).words), "")
        theirs = frozenset((kind, label) for kind, label in theirs if kind == first)
    return mine.isdisjoint(theirs) and not {kind for kind, _ in mine}.isdisjoint(kind for kind, _ in theirs)


@lru_cache(maxsize=2_048)
def _things_in(text: str) -> frozenset[tuple[str, str]]:
    """Return the things that a text names by a number or a letter, each with the stem of its kind."""
    found = ((match[1] or match[3], match[2] or match[4]) for match in _ONE_OF_MANY.finditer(text))
    return frozenset((stem, label) for kind, label in found for stem in (content_stems(kind) or ["#"] * (kind == "#")))


def pair_features(
    newer: MustKeep, older: MustKeep, signs: Sequence[float], *, places: int | None = None
) -> list[float]:
    """Return the features of a pair of facts. `signs`: Row of `signs_of` for the newer fact.

    `places`: Result of `differing_places`, if known. Computing it takes as long as everything else.
    """
    if places is None:
        places = differing_places(newer, older)
    mine, theirs = topic_of(newer.text), topic_of(older.text)
    known = theirs.words
    shared = [weight for word, weight in mine.words.items() if word in known]
    common = sum(shared)
    cover, share = common / (theirs.weight or 1.0), common / (mine.weight or 1.0)
    frame = len(shared) / (len(mine.words) + len(known) - len(shared) or 1)
    numbers = bool(mine.numbers and theirs.numbers)
    other_number = numbers and mine.numbers.isdisjoint(theirs.numbers)
    labels = theirs.labels
    other_label = bool(labels) and any(labels.get(word, label) != label for word, label in mine.labels.items())
    other_name = not (mine.names <= theirs.names or theirs.names <= mine.names)
    taking_back, mending = signs[:2]
    older_kind, same_kind = older.kind, newer.kind is older.kind
    holds, distance = older_kind in HOLDING, max(0, newer.operation - older.operation)
    replaced = places == 1 and not other_label  # a new value for the same thing, not another thing of its kind
    # Only kinds in `HOLDING` can be taken back, and a fact that states a new value need not sound like taking back.
    back = max(-4.0, min(4.0, taking_back)) if holds and not replaced else 0.0
    completes = newer.kind is _COMPLETION and older_kind in UNFINISHED
    return [
        cover, cover * share, log1p(common), max(shared, default=0.0), frame,
        other_number, other_label, numbers and not other_number, other_name, other_name * (older_kind is _ROLE),
        back, same_kind, same_kind * cover, places > 1, replaced, exp(-distance / 10), holds * log1p(distance),
        len(mine.numbers ^ theirs.numbers) if numbers and holds else 0, holds * log1p(len(known)),
        log1p(len(mine.words)), next(iter(mine.words), "") in known, completes, completes * cover,
        (older_kind is _OPEN) * cover, (older_kind is _FAILURE) * cover, *_FLAGS[newer.kind], *_FLAGS[older_kind][:-1],
        mending if older_kind is _FAILURE else 0.0,
    ]  # fmt: skip


def likelihood(newer: MustKeep, older: MustKeep, signs: Sequence[float]) -> float:
    """Estimate how likely it is that a later fact has superseded or settled an earlier one, 0 to 1."""
    weights, bias = _pair_weights()[older.kind in UNFINISHED]
    logit = sum(map(mul, pair_features(newer, older, signs, places=-1), weights), bias)
    if logit > _DOUBTED - _MOST_OF_FORM and newer.kind in HOLDING and older.kind in HOLDING:
        if (places := differing_places(newer, older)) > 0:
            logit = sum(map(mul, pair_features(newer, older, signs, places=places), weights), bias)
        if logit > _DOUBTED and 0 < places < 3:
            # A product with the plain chance finds fewer replaced facts of left-out writers at as many wrong marks.
            # Facts that differ in more places are hardly ever likely, and take as long as all others to judge.
            return sqrt(_chance_of(logit)) * value_likelihood(newer, older)
        if logit > _DOUBTED and _begin_alike_alone(newer, older):
            return 0.0
    return _chance_of(logit)


def _chance_of(logit: float) -> float:
    return 1.0 / (1.0 + exp(-max(-30.0, min(30.0, logit))))


@lru_cache(maxsize=1)
def _pair_weights() -> tuple[tuple[Sequence[float], float], ...]:
    """Return weights and bias of pairs by whether the earlier fact is unfinished.

    They are floats: for one pair, NumPy's overhead per call exceeds the computation.
    """
    table = load_table()
    return tuple(zip(table.pairs.tolist(), table.pair_bias.tolist(), strict=True))
